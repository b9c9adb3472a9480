/* SPDX-License-Identifier: Apache-2.0 */
/* The process above one command of a sandbox that has several.
 *
 * It is the subreaper of all that the command starts: whatever forks twice,
 * makes a session of its own or loses its parent stays below it, so that "all
 * of this command" is a set that nothing inside can leave.  It runs the
 * command, keeps output of one in the background, enforces the timeout, and
 * ends when the last descendant has. */

#include "init.h"

#define SIGKILL_ 9
#define SIGSTOP_ 19
#define WALL_ 0x40000000
#define WNOHANG_ 1
#define O_CLOEXEC_ 02000000
#define O_NONBLOCK_ 04000
#define PR_SET_CHILD_SUBREAPER_ 36
#define GIVE_UP_NS 1500000000   /* init would not wait much longer */
#define STOP_NS 600000000
#define PIDS_MAX 8192

static struct notice notice;
static int notify_fd;
static int pipes[2], spool[2];
static uint64_t cap;
static int children = 1;        /* some may be left */
static int64_t begun_ns, deadline_ns;

static void
notify (uint32_t flags)
{
  struct sys_pollfd poll = { notify_fd, 4, 0 };

  notice.flags = flags;
  while (SYS (write, notify_fd, &notice, sizeof notice) == -EAGAIN_)
    poll_or_end (&poll, 1, 0);
}

/* ---- killing ------------------------------------------------------------ */

static int pids[PIDS_MAX], parents[PIDS_MAX];
static uint8_t marked[PIDS_MAX];
static char states[PIDS_MAX];

/* The state and the parent of a process: the words after the last ')' of its
 * stat.  -1: it is gone. */
static int
parent_read (int proc, const char *name, char *state)
{
  static char text[1024];
  char path[40];
  const char *at;
  int fd, parent = 0;
  long n;

  text_join (path, sizeof path, name, "/stat", NULL);
  fd = (int) SYS (openat, proc, path, O_CLOEXEC_);
  if (fd < 0)
    return -1;
  n = SYS (read, fd, text, sizeof text - 1);
  fd_close (fd);
  if (n <= 0)
    return -1;
  text[n] = '\0';
  for (at = text + n; at > text && *at != ')'; at--)
    ;
  if (*at != ')' || at[1] != ' ' || at[2] == '\0' || at[2] == 'Z'
      || at[3] != ' ')
    return -1;
  *state = at[2];
  for (at += 4; *at >= '0' && *at <= '9'; at++)
    parent = parent * 10 + (*at - '0');
  return parent;
}

static size_t
processes_read (void)
{
  static char entries[32768];
  int proc = (int) SYS (openat, -100, "/proc", O_CLOEXEC_);
  const char *name, *digit;
  uint16_t length;
  size_t count = 0;
  long n, at;
  int pid;

  /* Nothing could be told apart: init then ends everything. */
  if (proc < 0)
    init_exit_now (1);
  while ((n = SYS (getdents64, proc, entries, sizeof entries)) > 0)
    for (at = 0; at < n; at += length) {
      memcpy (&length, entries + at + 16, sizeof length);
      name = entries + at + 19;
      pid = 0;
      for (digit = name; *digit >= '0' && *digit <= '9'; digit++)
        pid = pid * 10 + (*digit - '0');
      if (*digit != '\0' || pid <= 1 || count == PIDS_MAX)
        continue;
      parents[count] = parent_read (proc, name, &states[count]);
      pids[count] = pid;
      if (parents[count] >= 0)
        count++;
    }
  fd_close (proc);
  return count;
}

static int
parent_marked (size_t n, int parent, int self)
{
  size_t i;

  if (parent == self)
    return 1;
  for (i = 0; i < n; i++)
    if (pids[i] == parent)
      return marked[i];
  return 0;
}

/* Sends a signal to every descendant; how many of them were not at rest. */
static size_t
descendants_signal (int signal)
{
  int self = (int) SYS (getpid), changed = 1;
  size_t n = processes_read (), i, running = 0;

  memset (marked, 0, n);
  while (changed) {
    changed = 0;
    for (i = 0; i < n; i++)
      if (!marked[i] && pids[i] != self && parent_marked (n, parents[i], self))
        changed = marked[i] = 1;
  }
  for (i = 0; i < n; i++)
    if (marked[i] && SYS (kill, pids[i], signal) == 0)
      running += states[i] != 'T' && states[i] != 'D';
  return running;
}

/* Nothing that forks is outrun by killing alone: each one that is gone makes
 * room for the next.  Stopped ones keep their places. */
static void
descendants_stop (void)
{
  const int64_t stop = clock_ns (1) + STOP_NS;

  while (descendants_signal (SIGSTOP_) > 0 && clock_ns (1) < stop)
    ;
}

/* ---- reaping ------------------------------------------------------------ */

static void
command_ended (int status)
{
  exit_from_status (&notice.exit, status);
  notice.exit.duration_us = (uint64_t) (clock_ns (1) - begun_ns) / 1000;
  notice.pid = 0;
}

/* Takes the children that have ended; 1: the command was among them. */
static int
children_reap (int wait)
{
  struct sys_rusage usage;
  int status, ended = 0;
  long pid;

  while ((pid = SYS (wait4, -1, &status, (wait ? 0 : WNOHANG_) | WALL_,
                     &usage)) > 0) {
    wait = 0;
    notice.exit.cpu_us += rusage_us (&usage);
    if (pid == notice.pid) {
      command_ended (status);
      ended = 1;
    } else if (notice.exit.flags & EXIT_TIMED_OUT)
      notice.exit.killed++;
  }
  if (pid == -ECHILD_)
    children = 0;
  return ended;
}

/* The end of all of it.  Every round kills the direct children at least, so
 * each wait ends; what is still left after a while is said to be left. */
static int
tree_end (void)
{
  int64_t stop = clock_ns (1) + GIVE_UP_NS;
  int ended = 0;

  notice.exit.flags |= EXIT_TIMED_OUT;
  descendants_stop ();
  while (children && clock_ns (1) < stop) {
    descendants_signal (SIGKILL_);
    ended |= children_reap (1);
  }
  if (children)
    notice.exit.flags |= EXIT_LEFT;
  return ended;
}

/* ---- kept output -------------------------------------------------------- */

static void
spool_take (int stream)
{
  static char bytes[65536];
  uint64_t room;
  long n, kept;

  while (pipes[stream] >= 0) {
    n = SYS (read, pipes[stream], bytes, sizeof bytes);
    if (n == -EAGAIN_)
      return;
    if (n <= 0) {
      fd_close (pipes[stream]);
      pipes[stream] = -1;
      return;
    }
    room = cap - notice.kept[stream];
    kept = room < (uint64_t) n ? (long) room : n;
    if (kept > 0
        && SYS (pwrite64, spool[stream], bytes, kept, notice.kept[stream])
             != kept)
      kept = 0;
    notice.kept[stream] += (uint64_t) kept;
    notice.dropped[stream] += (uint64_t) (n - kept);
  }
}

/* ---- the process -------------------------------------------------------- */

static void
descriptors_keep (const struct start *start)
{
  int keep[11] = { notify_fd, start->in, start->out, start->err, pipes[0],
                   pipes[1], spool[0], spool[1], null_fd, group_fds[0],
                   group_fds[1] };
  int next = 3, i, least;

  /* Close everything between the ones to keep, in order. */
  for (;;) {
    least = -1;
    for (i = 0; i < 11; i++)
      if (keep[i] >= next && (least < 0 || keep[i] < least))
        least = keep[i];
    if (signal_fd >= next && (least < 0 || signal_fd < least))
      least = signal_fd;
    if (least < 0)
      break;
    if (least > next)
      SYS (close_range, next, least - 1, 0);
    next = least + 1;
  }
  SYS (close_range, next, ~0u, 0);
  for (i = 0; i < 3; i++)
    SYS (dup3, null_fd, i, O_CLOEXEC_);
}

static void
command_run (struct start *start)
{
  int i;

  notice.pid = process_start (start);
  fd_close (start->in);
  if (start->out != start->in)
    fd_close (start->out);
  if (start->err != start->in && start->err != start->out)
    fd_close (start->err);
  for (i = 0; i < 2; i++)
    if (pipes[i] >= 0)
      SYS (fcntl, pipes[i], 4 /* F_SETFL */, O_NONBLOCK_);
  if (start->error == 0) {
    notify (1);
    return;
  }
  notice.exit.failure_errno = start->error;
  notice.exit.failure_step = start->step;
  notice.exit.code = -1;
  notice.pid = 0;
  notify (3);
  init_exit_now (0);
}

static void
events_wait (int running)
{
  struct sys_pollfd polls[3] = { { signal_fd, 1, 0 }, { pipes[0], 1, 0 },
                                 { pipes[1], 1, 0 } };
  struct sys_timespec left, *timeout = 0;
  char drain[128 * 4];
  int64_t ns;

  if (running && deadline_ns != 0) {
    ns = deadline_ns - clock_ns (1);
    ns = ns > 0 ? ns : 0;
    left.s = ns / 1000000000;
    left.ns = ns % 1000000000;
    timeout = &left;
  }
  poll_or_end (polls, 3, timeout);
  while (SYS (read, signal_fd, drain, sizeof drain) > 0)
    ;
}

void
monitor_run (struct start *start, int to_init, int64_t deadline,
             const int output[2], const int kept[2], uint64_t output_cap)
{
  int running = 1, ended, i;

  notify_fd = to_init;
  deadline_ns = deadline;
  cap = output_cap;
  for (i = 0; i < 2; i++) {
    pipes[i] = output[i];
    spool[i] = kept[i];
  }
  notice.exit.size = sizeof notice.exit;
  begun_ns = clock_ns (1);
  if (SYS (prctl, PR_SET_CHILD_SUBREAPER_, 1, 0, 0, 0) < 0)
    init_exit_now (1);
  descriptors_keep (start);
  command_run (start);
  while (children) {
    events_wait (running);
    ended = children_reap (0);
    if (running && !ended && deadline_ns != 0
        && clock_ns (1) >= deadline_ns)
      ended = tree_end ();
    spool_take (0);
    spool_take (1);
    if (running && (ended || (notice.exit.flags & EXIT_LEFT))) {
      running = 0;
      notify (2);
    } else if (spool[0] >= 0)
      notify (0);
  }
  init_exit_now (0);
}
