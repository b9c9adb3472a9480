/* SPDX-License-Identifier: Apache-2.0 */
/* A command that was not started here: a copy of an interpreter that stands
 * ready outside, which comes into the sandbox by itself (warm/enter.c).
 *
 * It begins with more rights here than any command has, so it comes before
 * there is any: into a sandbox that nothing ran in, and of the strict profile,
 * where nobody can start a process or send a signal.  What a command inherits
 * of this process it is told: limits, Landlock's rules, filters, groups.  From
 * the moment that it is a child of this process and says that it has put all
 * that on, it is a command like any other; or it waits to be the first one, and
 * has nothing of any. */

#include <linux/filter.h>

#include "init.h"

#define WALL_ 0x40000000
#define WNOHANG_ 1
#define WNOWAIT_ 0x1000000
#define WEXITED_ 4
#define SIGKILL_ 9
#define SOL_SOCKET_ 1
#define SCM_RIGHTS_ 1
#define MSG_NOSIGNAL_ 0x4000
#define MSG_DONTWAIT_ 0x40
#define COME_NS 20000000000     /* many come from one, one after another */
#define ETIMEDOUT_ 110
#define FIRST 1                 /* the number of a sandbox's first command */

static int groups[JOIN_DESCRIPTORS];
static size_t n_groups;
static int unfit;               /* errno, of every such command here */
static int ahead = -1;          /* the gate of one that waits to be the first */

size_t
warm_groups (const int *fds, size_t n)
{
  size_t i;

  if (n > JOIN_DESCRIPTORS - 3)
    setup_fail ("plan", -EPROTO_);
  for (i = 0; i < n; i++)
    groups[n_groups++] = fds[i];
  return n;
}

/* Its programs are those of the host's /usr, and it can enter no network that
 * is not the sandbox's own. */
void
warm_prepare (const struct plan *plan)
{
  if (!strict_mode
      || (plan->shape.flags & (PLAN_TEMPLATE | PLAN_HOST_NETWORK)) != 0)
    unfit = EOPNOTSUPP_;
  if (commands_group >= 0)
    groups[n_groups++] = commands_group;
}

int
warm_refused (void)
{
  return unfit != 0 ? -unfit : exec_fresh () ? 0 : -EEXIST_;
}

/* ---- JOIN and GO -------------------------------------------------------- */

/* Parts that lie behind a header, and descriptors. */
static long
gate_send (int gate, struct sys_iovec *iov, size_t n_iov, const int *fds,
           size_t n_fds)
{
  union {
    struct sys_cmsghdr header;
    char bytes[sizeof (struct sys_cmsghdr)
               + JOIN_DESCRIPTORS * sizeof (int) + 4];
  } rights;
  struct sys_msghdr message = { .iov = iov, .iov_count = n_iov };
  struct init_header *header = iov[0].base;
  size_t i;

  header->size = 0;
  for (i = 0; i < n_iov; i++)
    header->size += (uint32_t) iov[i].size;
  if (n_fds > 0) {
    memset (&rights, 0, sizeof rights);
    rights.header.size = sizeof rights.header + n_fds * sizeof (int);
    rights.header.level = SOL_SOCKET_;
    rights.header.type = SCM_RIGHTS_;
    memcpy (rights.bytes + sizeof rights.header, fds, n_fds * sizeof (int));
    message.control = &rights;
    message.control_size = (rights.header.size + 7) & ~(size_t) 7;
  }
  return SYS (sendmsg, gate, &message, MSG_NOSIGNAL_ | MSG_DONTWAIT_);
}

static size_t
rules_fill (struct init_join *join, int fds[JOIN_DESCRIPTORS])
{
  size_t n = 0, i;

  if (landlock_whole >= 0) {
    join->flags |= JOIN_LANDLOCK;
    fds[n++] = landlock_whole;
  }
  if (landlock_command >= 0) {
    join->flags |= JOIN_SCOPE;
    fds[n++] = landlock_command;
  }
  for (i = 0; i < n_groups; i++)
    fds[n++] = groups[i];
  return n;
}

static long
join_send (uint32_t id, uint32_t flags, int gate)
{
  struct init_join join = { .size = sizeof join, .flags = flags };
  struct init_header header = { 0, INIT_MAGIC, INIT_JOIN, 0, 0 };
  struct sys_iovec iov[4] = { { &header, sizeof header },
                              { &join, sizeof join } };
  int fds[JOIN_DESCRIPTORS];
  const size_t n = rules_fill (&join, fds);

  limits_of_command (id, &join);
  join.uid = (uint32_t) SYS (getuid);
  join.gid = (uint32_t) SYS (getgid);
  iov[2].base = (void *) filter_bytes (0, &join.general);
  iov[2].size = join.general * sizeof (struct sock_filter);
  iov[3].base = (void *) filter_bytes (1, &join.strict);
  iov[3].size = join.strict * sizeof (struct sock_filter);
  return gate_send (gate, iov, 4, fds, n);
}

/* The working folder and the environment: how many bytes, or a negative
 * errno. */
static long
strings_fill (const struct start *start, struct init_go *go,
              char out[JOIN_STRINGS])
{
  const char *string = start->cwd;
  size_t at = 0, size;

  for (;;) {
    size = strlen (string) + 1;
    if (size > JOIN_STRINGS - at)
      return -E2BIG_;
    memcpy (out + at, string, size);
    at += size;
    string = start->envp[go->envc];
    if (string == NULL)
      break;
    go->envc++;
  }
  go->strings_size = (uint32_t) at;
  return (long) at;
}

static long
go_send (const struct start *start, int gate)
{
  static char strings[JOIN_STRINGS];
  const int streams[GO_DESCRIPTORS] = { start->in, start->out, start->err };
  struct init_go go = { .size = sizeof go };
  struct init_header header = { 0, INIT_MAGIC, INIT_GO, 0, 0 };
  struct sys_iovec iov[3] = { { &header, sizeof header }, { &go, sizeof go },
                              { strings, 0 } };
  const long size = strings_fill (start, &go, strings);
  int fds[GO_DESCRIPTORS], i;

  if (size < 0)
    return size;
  iov[2].size = (size_t) size;
  for (i = 0; i < GO_DESCRIPTORS; i++)
    fds[i] = streams[i] >= 0 ? streams[i] : null_fd;
  return gate_send (gate, iov, 3, fds, GO_DESCRIPTORS);
}

/* ---- its answers -------------------------------------------------------- */

/* 1: an answer, 0: the end, or a negative errno. */
static long
answer_take (int gate, struct init_joined *answer)
{
  const int64_t stop = clock_ns (1) + COME_NS;
  struct {
    struct init_header header;
    struct init_joined body;
  } packet;
  long r;

  while (!wait_while_alive (gate, 100000000))
    if (clock_ns (1) >= stop)
      return -ETIMEDOUT_;
  r = SYS (read, gate, &packet, sizeof packet);
  if (r <= 0)
    return r;
  if (r != (long) sizeof packet || packet.header.magic != INIT_MAGIC
      || packet.header.type != INIT_JOINED
      || packet.body.size != sizeof packet.body)
    return -EPROTO_;
  *answer = packet.body;
  return 1;
}

static int
failed (struct start *start, uint32_t step, long error)
{
  start->step = step;
  start->error = (int) -error;
  return 0;
}

static int
is_child (int pid)
{
  int info[32];

  return pid > 1
         && SYS (waitid, 1 /* P_PID */, pid, info,
                 WEXITED_ | WNOHANG_ | WNOWAIT_ | WALL_, 0) >= 0;
}

/* One that was to come and did not is no command, but may be here. */
static void
turn_away (int pid)
{
  if (!is_child (pid))
    return;
  SYS (kill, pid, SIGKILL_);
  SYS (wait4, pid, 0, WALL_, 0);
}

static int
answer_failed (struct start *start, long r, const struct init_joined *answer,
               uint32_t step)
{
  if (r > 0 && answer->error != 0)
    return failed (start, answer->step <= STEP_CONFINE ? answer->step : step,
                   answer->error > 0 ? -(long) answer->error : -EPROTO_);
  return failed (start, step, r < 0 ? r : -ECHILD_);
}

/* What it has used so far was for nobody. */
static uint64_t
used_us (int pid)
{
  struct sys_timespec used = { 0, 0 };

  /* The clock of a whole process: linux/posix-timers.h. */
  return SYS (clock_gettime, (int) (~(unsigned) pid << 3 | 2), &used) < 0
           ? 0 : (uint64_t) used.s * 1000000 + (uint64_t) used.ns / 1000;
}

static int
gate_start (struct start *start, int gate)
{
  struct init_joined answer;
  long r = answer_take (gate, &answer);
  int pid;

  if (r <= 0 || answer.error != 0)
    return answer_failed (start, r, &answer, STEP_ENTER);
  pid = answer.pid;
  if (!is_child (pid))
    return failed (start, STEP_ENTER, -ECHILD_);
  start->used_us = used_us (pid);
  r = go_send (start, gate);
  if (r >= 0)
    r = answer_take (gate, &answer);
  if (r == 0)                   /* closed: it is what it was to become */
    return pid;
  turn_away (pid);
  return answer_failed (start, r, &answer, STEP_FILTER);
}

int
warm_start (struct start *start, uint32_t id)
{
  const int gate = start->gate >= 0 ? start->gate : ahead;
  long r;
  int pid;

  start->error = 0;
  start->step = STEP_NONE;
  if (gate < 0)
    return failed (start, STEP_ENTER, -ECHILD_);
  if (gate == start->gate) {
    r = join_send (id, 0, gate);
    return r < 0 ? failed (start, STEP_ENTER, r) : gate_start (start, gate);
  }
  ahead = -1;
  pid = gate_start (start, gate);
  fd_close (gate);
  return pid;
}

/* ---- ahead -------------------------------------------------------------- */

void
warm_ahead (struct packet *packet)
{
  if (packet->n_fds != 1 || ahead >= 0 || warm_refused () != 0
      || join_send (FIRST, JOIN_AHEAD, packet->fds[0]) < 0)
    return;
  ahead = packet->fds[0];
  packet->n_fds = 0;
}

/* It has come in by then, or never will: nothing else begins while somebody who
 * has rights here is on the way. */
void
warm_drop (void)
{
  struct init_joined answer;

  if (ahead < 0)
    return;
  if (answer_take (ahead, &answer) > 0 && answer.error == 0)
    turn_away (answer.pid);
  fd_close (ahead);
  ahead = -1;
}
