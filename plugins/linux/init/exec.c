/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of a sandbox.
 *
 * A process is started with vfork's flags: the child runs in this memory until
 * it has become the program, so that a failure is known at once, with the
 * step.  In single mode the command is init's own child and everything else
 * dies with it; otherwise each command has a monitor (monitor.c). */

#include "init.h"

#define CLONE_VM_ 0x100
#define CLONE_VFORK_ 0x4000
#define SIGCHLD_ 17
#define SIGKILL_ 9
#define WALL_ 0x40000000
#define WNOHANG_ 1
#define WUNTRACED_ 2
#define SIGCONT_ 18
#define O_CLOEXEC_ 02000000
#define O_NONBLOCK_ 04000
#define TIOCSCTTY_ 0x540e
#define TIOCSWINSZ_ 0x5414
#define WATCH_NS 2000000000     /* that a monitor may be late */
#define SWEEP_AFTER_NS 300000000        /* the same, of a lone command's */
#define SWEEP_NS 1000000000
#define SPOOL_CAP 1048576

struct command commands[INIT_EXECS_MAX];
static uint32_t last_id;
static uint64_t reaped_us;      /* processor time of what has ended */
static int draining;            /* single mode: waiting for the last to die */

/* ---- a process ---------------------------------------------------------- */

static int
child_failed (struct start *start, uint32_t step, long error)
{
  start->step = step;
  start->error = (int) -error;
  return 127;
}

static long
program_try (const struct start *start, const char *file, uint64_t secret)
{
  return SYS (execve, file, start->argv, start->envp, 0, 0, secret);
}

static long
program_run (const struct start *start, uint64_t secret)
{
  const char *name = start->argv[0], *path = NULL, *end;
  char file[4096];
  long r, kept = -ENOENT_;
  size_t i, n;

  for (i = 0; name[i] != '\0'; i++)
    if (name[i] == '/')
      return program_try (start, name, secret);
  if (name[0] == '\0')
    return -ENOENT_;
  for (i = 0; start->envp[i] != NULL; i++)
    if (text_starts (start->envp[i], "PATH="))
      path = start->envp[i] + 5;
  if (path == NULL)
    path = DEFAULT_PATH;
  for (; *path != '\0'; path = *end == ':' ? end + 1 : end) {
    for (end = path; *end != '\0' && *end != ':'; end++)
      ;
    n = (size_t) (end - path);
    if (n == 0 || n + 1 + strlen (name) + 1 > sizeof file)
      continue;
    memcpy (file, path, n);
    text_join (file + n, sizeof file - n, "/", name, NULL);
    r = program_try (start, file, secret);
    if (r != -ENOENT_ && r != -ENOTDIR_ && r != -EACCES_)
      return r;
    if (r == -EACCES_)
      kept = r;
  }
  return kept;
}

static int
child_main (void *data)
{
  struct start *start = data;
  const int from[3] = { start->in, start->out, start->err };
  uint16_t size[4] = { (uint16_t) start->rows, (uint16_t) start->columns,
                       0, 0 };
  uint64_t none = 0, secret = 0;
  long r;
  int i;

  r = groups_enter ();
  if (r < 0)
    return child_failed (start, STEP_GROUP, r);
  /* A group of its own is what signals are sent to. */
  r = LAYER_ON (SESSION) ? SYS (setsid) : 0;
  if (r < 0)
    return child_failed (start, STEP_TERMINAL, r);
  for (i = 0; i < 3; i++) {
    r = SYS (dup3, from[i] >= 0 ? from[i] : null_fd, i, 0);
    if (r < 0)
      return child_failed (start, STEP_STREAMS, r);
  }
  r = LAYER_ON (EXEC_FDS) ? SYS (close_range, 3, ~0u, 0) : 0;
  if (r < 0)
    return child_failed (start, STEP_STREAMS, r);
  if (start->tty) {
    r = SYS (ioctl, 0, TIOCSCTTY_, 0);
    if (r >= 0 && start->rows != 0)
      r = SYS (ioctl, 0, TIOCSWINSZ_, size);
    if (r < 0)
      return child_failed (start, STEP_TERMINAL, r);
  }
  r = SYS (chdir, start->cwd);
  if (r < 0)
    return child_failed (start, STEP_CWD, r);
  SYS (rt_sigprocmask, 2, &none, 0, 8);
  if (strict_mode && LAYER_ON (SECCOMP)) {
    r = filter_enter_strict (&secret);
    if (r < 0)
      return child_failed (start, STEP_FILTER, r);
  }
  return child_failed (start, STEP_PROGRAM, program_run (start, secret));
}

int
process_start (struct start *start)
{
  static char stack[32768] __attribute__ ((aligned (16)));
  long pid;

  start->error = 0;
  start->step = STEP_NONE;
  pid = sys_clone_run (CLONE_VM_ | CLONE_VFORK_ | SIGCHLD_,
                       stack + sizeof stack, child_main, start);
  if (pid < 0) {
    start->step = STEP_FORK;
    start->error = (int) -pid;
    return 0;
  }
  return (int) pid;
}

void
exit_from_status (struct init_exit *exit, int status)
{
  int signal = status & 0x7f;

  exit->signal = signal;
  exit->code = signal != 0 ? -1 : (status >> 8) & 0xff;
}

uint64_t
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
  fd_close (command->notify);
  fd_close (command->tty);
  fd_close (command->input);
  fd_close (command->spool[0]);
  fd_close (command->spool[1]);
  memset (command, 0, sizeof *command);
}

/* A free place, or that of the one that ended longest ago. */
static struct command *
command_new (void)
{
  struct command *found = NULL, *c;

  for (c = commands; c < commands + INIT_EXECS_MAX; c++) {
    if (c->id == 0) {
      found = c;
      break;
    }
    if (c->ended && c->monitor == 0 && (found == NULL || c->id < found->id))
      found = c;
  }
  if (found == NULL)
    return NULL;
  if (found->id != 0)
    command_forget (found);
  found->id = ++last_id;
  found->notify = found->tty = found->input = -1;
  found->spool[0] = found->spool[1] = -1;
  found->starter = -1;
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
  command->pid = 0;
  command->ended = 1;
  command->exit.flags &= ~(uint32_t) EXIT_RUNNING;
  command->exit.flags |= limits_reached ();
  fd_close (command->tty);
  fd_close (command->input);
  command->tty = command->input = -1;
  tell_exit (command);
}

static void
command_failed (struct command *command, const struct start *start)
{
  command->exit.code = -1;
  command->exit.failure_errno = start->error;
  command->exit.failure_step = start->step;
  command->exit.duration_us
    = (uint64_t) (clock_ns (1) - command->begun_ns) / 1000;
}

/* ---- starting ----------------------------------------------------------- */

static void
single_start (struct command *command, struct start *start)
{
  int pid = process_start (start);

  if (start->error != 0) {
    if (pid > 0)
      SYS (wait4, pid, 0, WALL_, 0);
    command_failed (command, start);
    tell_started (command);
    command_end (command);
    return;
  }
  command->pid = pid;
  tell_started (command);
}

/* Kept output: the command writes into pipes, its monitor from there into
 * files in memory that init can hand to whoever asks. */
static int
spool_make (struct command *command, struct start *start, int pipes[2])
{
  int ends[2], i;
  long r;

  for (i = 0; i < 2; i++) {
    r = SYS (memfd_create, "output", 1);
    if (r < 0)
      return (int) r;
    command->spool[i] = (int) r;
    r = SYS (pipe2, ends, O_CLOEXEC_);
    if (r < 0)
      return (int) r;
    pipes[i] = ends[0];
    *(i == 0 ? &start->out : &start->err) = ends[1];
  }
  return 0;
}

static int
monitored_start (struct command *command, struct start *start, int background,
                 uint64_t cap)
{
  int notify[2], pipes[2] = { -1, -1 }, i;
  long r = SYS (pipe2, notify, O_CLOEXEC_ | O_NONBLOCK_);

  if (r < 0)
    return (int) r;
  command->notify = notify[0];
  if (background)
    r = spool_make (command, start, pipes);
  if (r >= 0)
    r = SYS (clone, SIGCHLD_, 0, 0, 0, 0);
  if (r == 0)
    monitor_run (start, notify[1], command->deadline_ns, pipes,
                 command->spool, cap);
  fd_close (notify[1]);
  for (i = 0; i < 2; i++)
    fd_close (pipes[i]);
  if (background) {
    fd_close (start->out);
    fd_close (start->err);
  }
  if (r < 0)
    return (int) r;
  command->monitor = (int) r;
  return 0;
}

static int
command_start (struct command *command, struct start *start,
               const struct init_exec *body)
{
  uint64_t cap = body->output_cap ? body->output_cap : SPOOL_CAP;

  if (body->timeout_ns > 0 && body->timeout_ns < (uint64_t) 1 << 61)
    command->deadline_ns = command->begun_ns + (int64_t) body->timeout_ns;
  if (start->tty)
    command->tty = (int) SYS (fcntl, start->in, 1030, 3);
  else if (start->in >= 0)
    command->input = (int) SYS (fcntl, start->in, 1030, 3);
  if (single_mode) {
    single_start (command, start);
    return 0;
  }
  if (body->flags & EXEC_BACKGROUND)
    command->exit.flags |= EXIT_BACKGROUND;
  return monitored_start (command, start,
                          (body->flags & EXEC_BACKGROUND) != 0,
                          cap < INIT_SPOOL_MAX ? cap : INIT_SPOOL_MAX);
}

int
exec_start (struct packet *packet, int starter, struct command **out)
{
  struct request request;
  struct init_exec body;
  struct start start;
  struct command *command = NULL;
  const char *rest = packet_body (packet, &body, sizeof body);
  int r;

  if (rest == NULL)
    return -EPROTO_;
  if (single_mode && (last_id != 0 || (body.flags & EXEC_BACKGROUND)))
    return -EBUSY_;
  r = request_read (&request, &start, packet, &body, rest);
  if (r == 0 && (command = command_new ()) == NULL)
    r = -EAGAIN_;
  if (r == 0) {
    command->starter = starter;
    command->starter_serial = packet->header->serial;
    command->exit.marks[0] = body.marks[0];
    command->exit.marks[1] = body.marks[1];
    *out = command;
    r = command_start (command, &start, &body);
    if (r < 0)
      command_forget (command);
  }
  request_free (&request);
  return r;
}

/* ---- their end ---------------------------------------------------------- */

static struct command *
command_of (int pid)
{
  size_t i;

  for (i = 0; i < INIT_EXECS_MAX; i++)
    if (commands[i].id != 0
        && (commands[i].pid == pid || commands[i].monitor == pid))
      return &commands[i];
  return NULL;
}

/* A monitor is gone.  Without having said how its command ended, what the
 * command left can no longer be told from the rest. */
static void
monitor_ended (struct command *command)
{
  struct sys_pollfd poll = { command->notify, 1, 1 };

  exec_ready (&poll, 1);
  command->monitor = 0;
  fd_close (command->notify);
  command->notify = -1;
  if (command->ended)
    return;
  command->exit.flags |= EXIT_LEFT;
  command->exit.code = -1;
  command->exit.signal = SIGKILL_;
  command_end (command);
  init_exit_now (1);
}

static void
single_ended (struct command *command, int status)
{
  exit_from_status (&command->exit, status);
  command->exit.duration_us
    = (uint64_t) (clock_ns (1) - command->begun_ns) / 1000;
  command->deadline_ns = 0;
  command->pid = -1;
  draining = 1;
}

void
exec_reap (void)
{
  struct command *command;
  struct sys_rusage usage;
  int status;
  long pid;

  while ((pid = SYS (wait4, -1, &status,
                     WNOHANG_ | WALL_ | (single_mode ? 0 : WUNTRACED_),
                     &usage)) > 0) {
    command = command_of ((int) pid);
    if ((status & 0xff) == 0x7f) {
      /* A monitor does not rest because a command told it to. */
      if (command != NULL && command->monitor == (int) pid)
        SYS (kill, pid, SIGCONT_);
      continue;
    }
    reaped_us += rusage_us (&usage);
    if (command == NULL) {
      if (draining)
        commands[0].exit.killed++;
    } else if (single_mode)
      single_ended (command, status);
    else
      monitor_ended (command);
  }
  /* Whoever is left is a child of this process or below one: where there is no
   * child there is nobody, and the kernel need not look for whom to kill. */
  if (draining && pid != -ECHILD_ && LAYER_ON (PID))
    SYS (kill, -1, SIGKILL_);
  if (draining && (pid == -ECHILD_ || !LAYER_ON (PID))) {
    draining = 0;
    commands[0].exit.cpu_us = reaped_us;
    command_end (&commands[0]);
  }
}

size_t
exec_watch (struct sys_pollfd *polls)
{
  size_t i, n = 0;

  for (i = 0; i < INIT_EXECS_MAX; i++)
    if (commands[i].id != 0 && commands[i].notify >= 0) {
      polls[n].fd = commands[i].notify;
      polls[n++].events = 1;
    }
  return n;
}

static void
notice_take (struct command *command, const struct notice *notice)
{
  int i;

  for (i = 0; i < 2; i++) {
    command->kept[i] = notice->kept[i];
    command->dropped[i] = notice->dropped[i];
  }
  if (command->starter >= 0) {
    command->pid = notice->pid;
    command->exit.failure_errno = notice->exit.failure_errno;
    tell_started (command);
    command->starter = -1;
  }
  if ((notice->flags & 2) && !command->ended) {
    struct init_exit before = command->exit;

    command->exit = notice->exit;
    command->exit.exec = command->id;
    command->exit.flags |= before.flags & EXIT_BACKGROUND;
    command->exit.started_ns = before.started_ns;
    command->exit.marks[0] = before.marks[0];
    command->exit.marks[1] = before.marks[1];
    command_end (command);
    if (command->exit.flags & EXIT_LEFT)
      init_exit_now (1);
  }
  tell_spool (command);
}

void
exec_ready (const struct sys_pollfd *polls, size_t n)
{
  struct notice notice;
  size_t i, k;

  for (i = 0; i < n; i++) {
    if (polls[i].revents == 0 || polls[i].fd < 0)
      continue;
    for (k = 0; k < INIT_EXECS_MAX; k++)
      if (commands[k].id != 0 && commands[k].notify == polls[i].fd)
        break;
    if (k == INIT_EXECS_MAX)
      continue;
    while (commands[k].notify >= 0
           && SYS (read, polls[i].fd, &notice, sizeof notice)
                == (long) sizeof notice)
      notice_take (&commands[k], &notice);
    if (polls[i].revents & 0x18 /* HUP, ERR: SIGCHLD says the rest */) {
      fd_close (commands[k].notify);
      commands[k].notify = -1;
    }
  }
}

/* Whether nothing here is another command's. */
static int
command_alone (const struct command *command)
{
  const struct command *c;

  for (c = commands; c < commands + INIT_EXECS_MAX; c++)
    if (c != command && c->monitor != 0)
      return 0;
  return 1;
}

/* Monitors keep the timeouts of their commands; but they are processes of the
 * sandbox's user, whom a command can kill, stop or starve.  What is not ended
 * a while after its time is ended from here: by itself when there is nothing
 * else, and otherwise with everything. */
static int64_t
command_due_ns (const struct command *command)
{
  if (command->id == 0 || command->ended || command->deadline_ns == 0)
    return INT64_MAX;
  if (single_mode)
    return command->deadline_ns;
  return command->deadline_ns
         + (command_alone (command) ? SWEEP_AFTER_NS : WATCH_NS);
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

/* Ends all that there is besides this process, at one stroke that nothing can
 * outrun.  0: it is gone. */
static int
command_sweep (struct command *command)
{
  const int64_t stop = clock_ns (1) + SWEEP_NS;
  const uint64_t before = reaped_us;
  struct sys_rusage usage;
  uint32_t killed = 0;
  int status;
  long pid;

  SYS (kill, LAYER_ON (PID) ? -1 : command->monitor, SIGKILL_);
  while ((pid = SYS (wait4, -1, &status, WNOHANG_ | WALL_, &usage))
         != -ECHILD_) {
    if (pid > 0) {
      reaped_us += rusage_us (&usage);
      killed += pid != command->monitor;
    } else if (clock_ns (1) >= stop)
      return -1;
    else
      nap ();
  }
  command->monitor = 0;
  command->exit.killed = killed;
  command->exit.cpu_us = reaped_us - before;
  return 0;
}

static void
command_overdue (struct command *command)
{
  command->exit.flags |= EXIT_TIMED_OUT;
  if (single_mode) {
    command->deadline_ns = 0;
    SYS (kill, LAYER_ON (PID) ? -1 : command->pid, SIGKILL_);
    return;
  }
  if (!command_alone (command) || command_sweep (command) == -1)
    command->exit.flags |= EXIT_LEFT;
  fd_close (command->notify);
  command->notify = -1;
  command->exit.code = -1;
  command->exit.signal = SIGKILL_;
  command->exit.duration_us
    = (uint64_t) (clock_ns (1) - command->begun_ns) / 1000;
  tell_started (command);
  command_end (command);
  tell_spool (command);
  if (command->exit.flags & EXIT_LEFT)
    init_exit_now (1);
}

void
exec_timeouts (void)
{
  int64_t now;
  size_t i;

  if (exec_next_ns () != 0)
    return;
  now = clock_ns (1);
  for (i = 0; i < INIT_EXECS_MAX; i++)
    if (command_due_ns (&commands[i]) <= now)
      command_overdue (&commands[i]);
}

uint64_t
exec_cpu_us (void)
{
  return reaped_us;
}
