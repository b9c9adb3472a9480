/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of a sandbox.
 *
 * Each is a child of this process, which nothing in here can stop or end; what
 * a command leaves without a parent becomes one.  In single mode everything
 * else dies with the command; otherwise a tag says what is whose (tags.c). */

#include "init.h"

#define WALL_ 0x40000000
#define WNOHANG_ 1
#define WNOWAIT_ 0x1000000
#define WEXITED_ 4
#define SIGKILL_ 9
#define SPOOL_CAP 1048576
#define SPOOL_TURN 65536        /* bytes that one of many may have taken */
#define SPOOL_LAST (4u << 20)   /* of what a pipe holds at the end */

struct command commands[INIT_EXECS_MAX];
static uint32_t last_id;
static uint64_t reaped_us;      /* processor time of what has ended */
static int draining;            /* single mode: waiting for the last to die */

static uint64_t
rusage_us (const struct sys_rusage *usage)
{
  return (uint64_t) (usage->user.s + usage->system.s) * 1000000
         + (uint64_t) (usage->user.us + usage->system.us);
}

/* ---- the table ---------------------------------------------------------- */

struct command *
command_find (uint32_t id)
{
  size_t i;

  for (i = 0; id != 0 && i < INIT_EXECS_MAX; i++)
    if (commands[i].id == id)
      return &commands[i];
  return NULL;
}

static void
command_forget (struct command *command)
{
  fd_close (command->tty);
  fd_close (command->input);
  spool_close (&command->spool[0]);
  spool_close (&command->spool[1]);
  memset (command, 0, sizeof *command);
}

static int
command_heard (const struct command *command)
{
  return command->spool[0].pipe >= 0 || command->spool[1].pipe >= 0;
}

/* A free place, or that of the one that ended longest ago; of those whose
 * output is still written to by what they left behind, only when there is no
 * other. */
static struct command *
command_place (void)
{
  struct command *found = NULL, *c;

  for (c = commands; c < commands + INIT_EXECS_MAX; c++) {
    if (c->id == 0)
      return c;
    if (!c->ended)
      continue;
    if (found == NULL || command_heard (found) > command_heard (c)
        || (command_heard (found) == command_heard (c) && c->id < found->id))
      found = c;
  }
  return found;
}

static struct command *
command_new (void)
{
  struct command *found = command_place ();

  if (found == NULL || last_id == UINT32_MAX)
    return NULL;
  if (found->id != 0)
    command_forget (found);
  found->id = ++last_id;
  found->tty = found->input = -1;
  spool_init (&found->spool[0]);
  spool_init (&found->spool[1]);
  found->begun_ns = clock_ns (1);
  found->exit.size = sizeof found->exit;
  found->exit.exec = found->id;
  found->exit.flags = EXIT_RUNNING;
  found->exit.started_ns = clock_ns (0);
  return found;
}

static void
command_end (struct command *command)
{
  int i;

  for (i = 0; i < 2; i++)
    spool_take (&command->spool[i], command->cap, SPOOL_LAST);
  command->pid = 0;
  command->ended = 1;
  command->sweeping = 0;
  command->exit.flags &= ~(uint32_t) EXIT_RUNNING;
  command->exit.flags |= limits_reached ();
  if (single_mode)
    command->exit.flags |= EXIT_ALONE;
  fd_close (command->tty);
  fd_close (command->input);
  command->tty = command->input = -1;
  tell_exit (command);
  tell_spool (command);
}

static void
exit_time (struct command *command)
{
  command->exit.duration_us
    = (uint64_t) (clock_ns (1) - command->begun_ns) / 1000;
}

/* ---- starting ----------------------------------------------------------- */

static int
is_socket (int fd)
{
  int type, size = sizeof type;

  return SYS (getsockopt, fd, 1 /* SOL_SOCKET */, 3 /* SO_TYPE */, &type,
              &size) >= 0;
}

/* Kept output: the command writes into pipes, this process from there into
 * files in memory that it can hand to whoever asks. */
static long
command_prepare (struct command *command, struct start *start,
                 const struct init_exec *body)
{
  uint64_t cap = body->output_cap ? body->output_cap : SPOOL_CAP;
  long r = 0;

  command->exit.marks[0] = body->marks[0];
  command->exit.marks[1] = body->marks[1];
  command->cap = cap < INIT_SPOOL_MAX ? cap : INIT_SPOOL_MAX;
  if (body->timeout_ns > 0 && body->timeout_ns < (uint64_t) 1 << 61)
    command->deadline_ns = command->begun_ns + (int64_t) body->timeout_ns;
  /* Another copy of a pipe's end would keep its writer from hearing that the
   * command has closed its own. */
  if (start->tty)
    command->tty = (int) SYS (fcntl, start->in, 1030, 3);
  else if (start->in >= 0 && is_socket (start->in))
    command->input = (int) SYS (fcntl, start->in, 1030, 3);
  if (!(body->flags & EXEC_BACKGROUND))
    return 0;
  command->exit.flags |= EXIT_BACKGROUND;
  r = spool_open (&command->spool[0], &start->out);
  return r < 0 ? r : spool_open (&command->spool[1], &start->err);
}

static void
command_run (struct command *command, struct start *start)
{
  start->tag = single_mode ? 0 : command->id;
  command->pid = start->come ? warm_start (start, command->id)
                             : process_start (start, single_mode);
  command->used_us = start->used_us;
  if (start->error == 0)
    return;
  command->exit.code = -1;
  command->exit.failure_errno = start->error;
  command->exit.failure_step = start->step;
  exit_time (command);
}

int
exec_fresh (void)
{
  return last_id == 0;
}

int
exec_start (struct packet *packet, struct command **out)
{
  struct request request;
  struct init_exec body;
  struct start start;
  struct command *command = NULL;
  const char *rest = packet_body (packet, &body, sizeof body);
  long r;

  if (rest == NULL)
    return -EPROTO_;
  if (pause_is ())
    return -ESTALE_;
  if (single_mode && (last_id != 0 || (body.flags & EXEC_BACKGROUND)))
    return -EBUSY_;
  if (packet->header->type == INIT_WARM && (r = warm_refused ()) < 0)
    return (int) r;
  r = request_read (&request, &start, packet, &body, rest);
  if (r == 0 && !(body.flags & EXEC_AHEAD))
    warm_drop ();
  if (r == 0 && (command = command_new ()) == NULL)
    r = -EAGAIN_;
  if (r == 0) {
    command->tell = (body.flags & EXEC_TELL) != 0;
    r = command_prepare (command, &start, &body);
    if (r >= 0)
      command_run (command, &start);
    if (body.flags & EXEC_BACKGROUND) {
      fd_close (start.out);
      fd_close (start.err);
    }
    if (r < 0)
      command_forget (command);
    else if (command->pid == 0)
      command_end (command);
    *out = command;
  }
  request_free (&request);
  return (int) r;
}

/* ---- their end ---------------------------------------------------------- */

static void
command_over (struct command *command, int status)
{
  int signal = status & 0x7f;

  command->exit.signal = signal;
  command->exit.code = signal != 0 ? -1 : (status >> 8) & 0xff;
  exit_time (command);
  command->deadline_ns = 0;
  command->pid = single_mode ? -1 : 0;
  if (single_mode)
    draining = 1;
  else if (!command->sweeping)
    command_end (command);
}

static struct command *
command_of (int pid)
{
  size_t i;

  for (i = 0; i < INIT_EXECS_MAX; i++)
    if (commands[i].id != 0 && !commands[i].ended && commands[i].pid == pid)
      return &commands[i];
  return NULL;
}

/* Whose a process was; one that has lowered its limits is that of a command
 * which is being ended and may have been its own. */
static struct command *
command_covering (int pid)
{
  struct command *c = command_find (tag_of (pid));

  if (c != NULL)
    return c;
  for (c = commands; c < commands + INIT_EXECS_MAX; c++)
    if (c->id != 0 && c->sweeping && tag_covers (pid, c->id))
      return c;
  return NULL;
}

/* A child that is over but not yet reaped: its tag can still be read.  0: there
 * is none, or a negative errno. */
static long
dead_child (struct command **whose)
{
  int info[32];
  long r;

  *whose = single_mode ? &commands[0] : NULL;
  memset (info, 0, sizeof info);
  r = SYS (waitid, 0 /* P_ALL */, 0, info,
           WEXITED_ | WNOHANG_ | WNOWAIT_ | WALL_, 0);
  if (r < 0)
    return r;
  if (info[4] > 0 && !single_mode)
    *whose = command_covering (info[4]);
  return info[4];
}

static void
child_reap (int pid, struct command *whose)
{
  struct command *command = command_of (pid);
  struct sys_rusage usage;
  int status;

  if (SYS (wait4, pid, &status, WALL_, &usage) != pid)
    return;
  reaped_us += rusage_us (&usage);
  if (command != NULL)
    whose = command;
  if (whose != NULL && whose->id != 0 && !whose->ended) {
    whose->exit.cpu_us += rusage_us (&usage);
    if (command != NULL && whose->exit.cpu_us >= command->used_us)
      whose->exit.cpu_us -= command->used_us;
    if (command == NULL && (draining || whose->sweeping))
      whose->exit.killed++;
  }
  if (command != NULL)
    command_over (command, status);
}

void
exec_reap (void)
{
  struct command *whose;
  long pid;

  while ((pid = dead_child (&whose)) > 0)
    child_reap ((int) pid, whose);
  if (!draining)
    return;
  /* Whoever is left is a child of this process or below one: where there is no
   * child there is nobody, and nobody is looked for. */
  if (pid == -ECHILD_ || !LAYER_ON (PID)) {
    draining = 0;
    command_end (&commands[0]);
  } else if (!commands[0].sweeping) {
    commands[0].sweeping = 1;
    sweep_begin (&commands[0].sweep, 0);
  }
}

/* ---- kept output -------------------------------------------------------- */

size_t
exec_watch (struct sys_pollfd *polls)
{
  size_t i, k, n = 0;

  for (i = 0; i < INIT_EXECS_MAX; i++)
    for (k = 0; k < 2 && commands[i].id != 0; k++)
      if (commands[i].spool[k].pipe >= 0) {
        polls[n].fd = commands[i].spool[k].pipe;
        polls[n++].events = 1;
      }
  return n;
}

static void
output_take (int pipe)
{
  struct command *c;
  size_t k;

  for (c = commands; c < commands + INIT_EXECS_MAX; c++)
    for (k = 0; k < 2; k++)
      if (c->id != 0 && c->spool[k].pipe == pipe) {
        /* What comes after its end is not its own any more. */
        spool_take (&c->spool[k], c->ended ? 0 : c->cap, SPOOL_TURN);
        if (!c->ended)
          tell_spool (c);
        return;
      }
}

void
exec_ready (const struct sys_pollfd *polls, size_t n)
{
  size_t i;

  for (i = 0; i < n; i++)
    if (polls[i].revents != 0 && polls[i].fd >= 0)
      output_take (polls[i].fd);
}

/* ---- timeouts ----------------------------------------------------------- */

static int64_t
command_due_ns (const struct command *command)
{
  if (command->id == 0 || command->ended)
    return INT64_MAX;
  if (command->sweeping)
    return command->sweep.due_ns;
  return command->deadline_ns != 0 ? command->deadline_ns : INT64_MAX;
}

int64_t
exec_next_ns (void)
{
  int64_t due = INT64_MAX, one, now;
  size_t i;

  for (i = 0; i < INIT_EXECS_MAX; i++) {
    one = command_due_ns (&commands[i]);
    if (one < due)
      due = one;
  }
  if (due == INT64_MAX)
    return -1;
  now = clock_ns (1);
  return due > now ? due - now : 0;
}

/* What could not be ended ends with this process, and that is said first. */
static void
command_left (struct command *command)
{
  if (!single_mode || command->pid > 0)
    command->exit.flags |= EXIT_LEFT;
  if (command->pid > 0) {
    command->exit.code = -1;
    command->exit.signal = SIGKILL_;
    exit_time (command);
  }
  command_end (command);
  init_exit_now (1);
}

static void
command_sweep (struct command *command)
{
  switch (sweep_step (&command->sweep)) {
  case SWEEP_GOES_ON:
    return;
  case SWEEP_FAILED:
    command_left (command);
    return;
  default:
    exec_reap ();
    if (command->ended)
      return;
    /* The last of them may be one that has only just gone. */
    if (command->pid > 0 || draining)
      sweep_again (&command->sweep);
    else
      command_end (command);
  }
}

void
exec_timeouts (void)
{
  struct command *c;
  int64_t now;

  if (exec_next_ns () != 0)
    return;
  now = clock_ns (1);
  for (c = commands; c < commands + INIT_EXECS_MAX; c++) {
    if (command_due_ns (c) > now)
      continue;
    if (!c->sweeping) {
      c->exit.flags |= EXIT_TIMED_OUT;
      c->deadline_ns = 0;
      c->sweeping = 1;
      sweep_begin (&c->sweep, single_mode ? 0 : c->id);
      if (!LAYER_ON (PID))
        SYS (kill, c->pid, SIGKILL_);
    }
    command_sweep (c);
  }
}

uint64_t
exec_cpu_us (void)
{
  return reaped_us;
}
