/* SPDX-License-Identifier: Apache-2.0 */
/* One command: starts it, moves its output, keeps its time, takes orders for it,
 * says how it ended, and leaves that in the folder of what is kept.
 *
 * It is the parent of all that the command starts, and at a timeout ends every one
 * of them; commands beside it have parents of their own.  The command has the
 * same user, and could stop or end this process: then its stream ends without a
 * word, and the provider ends all that this user runs in the sandbox. */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <coffer/descendants.h>
#include <coffer/fd.h>
#include <coffer/packet.h>
#include <coffer/process.h>
#include <coffer/provider.h>

#include "work.h"

#define KILL_NS (INT64_C (10) * 1000000000)
#define PIECE (64 << 10)
#define PIPE_SIZE (1 << 20)
#define WAITERS_MAX 64
#define MARK "COFFER_COMMAND="

struct output {
  int from;                     /* pipe or terminal; -1: it has ended */
  int kept;                     /* file of a command in the background; -1 */
  uint64_t total;
};

struct run {
  const struct wire_request *request;
  struct wire_end end;
  struct output out, err;
  int input;                    /* of a terminal: what is typed, else -1 */
  int terminal;                 /* our side of it; -1: none */
  int folder, listener, signals;
  int parent;                   /* of one in the background: waits for this */
  int waiters[WAITERS_MAX];
  size_t n_waiters;
  pid_t pid;                    /* 0 once it is reaped */
  int64_t begin_ns, timeout_ns; /* INT64_MAX: never */
  uint64_t oom_before, pids_before;
  int ended, told, killing, gone;       /* gone: nobody takes our output */
  int children;                 /* 1: some are left */
  const char *mark;             /* of its environment; NULL: none is needed */
};

/* ---- counts of the control group, as far as one can be seen ----------------- */

static uint64_t
count_in (const char *path, const char *word)
{
  coffer_autoclose int fd = open (path, O_RDONLY | O_CLOEXEC);
  char text[1024], *at;
  ssize_t n = fd >= 0 ? coffer_read_all (fd, text, sizeof text - 1) : -1;

  if (n <= 0)
    return 0;
  text[n] = '\0';
  for (at = text; at; at = strchr (at, '\n'), at = at ? at + 1 : NULL)
    if (strncmp (at, word, strlen (word)) == 0)
      return strtoull (at + strlen (word), NULL, 10);
  return 0;
}

static uint64_t
count_oom (void)
{
  return count_in ("/sys/fs/cgroup/memory/memory.oom_control", "oom_kill ")
         + count_in ("/sys/fs/cgroup/memory.events", "oom_kill ");
}

static uint64_t
count_pids (void)
{
  return count_in ("/sys/fs/cgroup/pids/pids.events", "max ")
         + count_in ("/sys/fs/cgroup/pids.events", "max ");
}

/* ---- its end ------------------------------------------------------------------ */

static void
reaped (void *data, pid_t pid, int status, const struct rusage *usage)
{
  struct run *run = data;
  struct wire_end *end = &run->end;

  if (!run->told)
    end->cpu_us += coffer_usage_us (usage);
  if (pid != run->pid) {
    if (run->killing && WIFSIGNALED (status) && WTERMSIG (status) == SIGKILL)
      end->killed++;
    return;
  }
  run->pid = 0;
  run->ended = 1;
  end->duration_us = (uint64_t) (coffer_now_ns () - run->begin_ns) / 1000;
  end->code = WIFEXITED (status) ? WEXITSTATUS (status) : -1;
  end->signal = WIFSIGNALED (status) ? WTERMSIG (status) : 0;
}

/* Whoever asked for it, and the provider. */
static void
tell_end (struct run *run)
{
  if (run->told || !run->ended)
    return;
  run->told = 1;
  run->end.info.running = 0;
  if (count_oom () > run->oom_before)
    run->end.flags |= WIRE_OOM;
  if (count_pids () > run->pids_before)
    run->end.flags |= WIRE_PIDS;
  kept_end_write (run->folder, &run->end);
  if (!(run->request->flags & WIRE_BACKGROUND))
    say (WIRE_ENDED, &run->end, sizeof run->end);
  for (size_t i = 0; i < run->n_waiters; i++) {
    coffer_packet_send (run->waiters[i], &run->end, sizeof run->end, NULL, 0);
    coffer_fd_close (&run->waiters[i]);
  }
  run->n_waiters = 0;
}

/* Where orphans do not come to us (a kernel that is none, such as gVisor's), they
 * are known by a mark, as long as they keep it. */
static void
kill_all (struct run *run)
{
  const int64_t until = coffer_now_ns () + KILL_NS;

  run->killing = 1;
  do
    coffer_descendants_kill (NULL, 0, until, reaped, run);
  while (run->mark && coffer_process_signal_marked (run->mark, SIGKILL) > 0
         && coffer_now_ns () < until);
  run->killing = 0;
}

static void
time_out (struct run *run)
{
  run->timeout_ns = INT64_MAX;
  if (run->ended)
    return;
  run->end.flags |= WIRE_TIMED_OUT;
  kill_all (run);
}

/* ---- its output ----------------------------------------------------------------- */

static void
output_ended (struct run *run, struct output *output)
{
  coffer_fd_close (&output->from);
  coffer_fd_close (&output->kept);
  if (!(run->request->flags & WIRE_BACKGROUND))
    say (output == &run->out ? WIRE_OUT_ENDED : WIRE_ERR_ENDED, &output->total,
         sizeof output->total);
}

/* No more than the cap is kept, and from the beginning on. */
static void
keep (struct run *run, struct output *output, const char *bytes, size_t n)
{
  const uint64_t cap = run->request->cap;
  uint64_t room = output->total < cap ? cap - output->total : 0;

  if (room > 0)
    (void) !coffer_write_all (output->kept, bytes, n < room ? n : room);
}

/* From pipe to pipe without a copy.  0: it cannot be done so. */
static ssize_t
move (struct run *run, struct output *output)
{
  ssize_t n = -1;

  errno = EINVAL;
  if (!run->gone && output->kept < 0 && run->terminal < 0)
    n = splice (output->from, NULL, 1, NULL, PIPE_SIZE, SPLICE_F_MOVE);
  return n;
}

static void
take_output (struct run *run, struct output *output)
{
  static char bytes[PIECE];
  ssize_t n = output == &run->out ? move (run, output) : -1;

  if (n < 0 || output != &run->out) {
    n = read (output->from, bytes, sizeof bytes);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
      return;
    if (n > 0 && output->kept >= 0)
      keep (run, output, bytes, (size_t) n);
    else if (n > 0 && output == &run->err)
      say (WIRE_ERR_BYTES, bytes, (size_t) n);
    else if (n > 0 && !run->gone
             && coffer_write_all (1, bytes, (size_t) n) < 0)
      run->gone = 1;
  }
  if (n <= 0)                   /* EIO: a terminal that nobody has any more */
    output_ended (run, output);
  else
    output->total += (uint64_t) n;
}

/* What is typed. */
static void
take_input (struct run *run)
{
  char bytes[4096];
  ssize_t n = read (run->input, bytes, sizeof bytes);

  if (n < 0 && (errno == EINTR || errno == EAGAIN))
    return;
  if (n <= 0)
    run->input = -1;
  else if (run->terminal >= 0)
    (void) !coffer_write_all (run->terminal, bytes, (size_t) n);
}

/* ---- orders ------------------------------------------------------------------------ */

static int32_t
obey (struct run *run, const struct order *order)
{
  struct winsize size = {0};

  if (run->ended || run->pid <= 0)
    return ESRCH;
  if (order->signal >= 0)
    return kill (-run->pid, order->signal) == 0 ? 0 : errno;
  if (run->terminal < 0)
    return ENOTTY;
  size.ws_row = (unsigned short) order->rows;
  size.ws_col = (unsigned short) order->columns;
  return ioctl (run->terminal, TIOCSWINSZ, &size) == 0 ? 0 : errno;
}

static void
take_order (struct run *run)
{
  coffer_autoclose int peer = coffer_socket_accept (run->listener);
  struct order order;
  int32_t answer;

  if (peer < 0 || coffer_wait_fd (peer, POLLIN, coffer_now_ns () + KILL_NS, -1) != 1
      || coffer_packet_receive (peer, &order, sizeof order, NULL, NULL)
           != sizeof order)
    return;
  if (order.op == WIRE_LIST) {
    coffer_packet_send (peer, &run->end.info, sizeof run->end.info, NULL, 0);
  } else if (order.op == WIRE_TELL) {
    answer = obey (run, &order);
    coffer_packet_send (peer, &answer, sizeof answer, NULL, 0);
  } else if (run->told) {
    coffer_packet_send (peer, &run->end, sizeof run->end, NULL, 0);
  } else if (run->n_waiters < WAITERS_MAX) {
    run->waiters[run->n_waiters++] = coffer_fd_steal (&peer);
  }
}

/* ---- the loop ------------------------------------------------------------------------ */

static int
is_over (const struct run *run)
{
  return run->told && run->out.from < 0 && run->err.from < 0;
}

static void
take_signals (struct run *run)
{
  struct signalfd_siginfo info;

  while (read (run->signals, &info, sizeof info) > 0)
    ;
  run->children = coffer_descendants_reap (reaped, run);
}

/* A terminal hangs up when the last who has it is gone, but for kernels that are
 * none: it has ended when nothing is in it and nobody is left. */
static void
end_terminal (struct run *run)
{
  struct pollfd from = {run->out.from, POLLIN, 0};

  if (run->told && run->terminal >= 0 && run->out.from >= 0 && !run->children
      && poll (&from, 1, 0) == 0)
    output_ended (run, &run->out);
}

static void
loop (struct run *run)
{
  enum { OUT, ERR, INPUT, LISTENER, SIGNALS, N };
  struct pollfd fds[N];

  while (!is_over (run)) {
    fds[OUT] = (struct pollfd) {run->out.from, POLLIN, 0};
    fds[ERR] = (struct pollfd) {run->err.from, POLLIN, 0};
    fds[INPUT] = (struct pollfd) {run->input, POLLIN, 0};
    fds[LISTENER] = (struct pollfd) {run->listener, POLLIN, 0};
    fds[SIGNALS] = (struct pollfd) {run->signals, POLLIN, 0};
    if (poll (fds, N, coffer_poll_ms (run->timeout_ns)) < 0 && errno != EINTR)
      break;
    if (fds[SIGNALS].revents)
      take_signals (run);
    if (run->timeout_ns <= coffer_now_ns ())
      time_out (run);
    if (fds[OUT].revents)
      take_output (run, &run->out);
    if (fds[ERR].revents)
      take_output (run, &run->err);
    if (fds[INPUT].revents)
      take_input (run);
    if (fds[LISTENER].revents)
      take_order (run);
    tell_end (run);
    end_terminal (run);
  }
}

/* ---- the start -------------------------------------------------------------------------- */

static int
open_pipe (struct output *output, int *theirs)
{
  int ends[2];

  if (pipe2 (ends, O_CLOEXEC) < 0)
    return -1;
  output->from = ends[0];
  *theirs = ends[1];
  (void) fcntl (ends[0], F_SETPIPE_SZ, PIPE_SIZE);
  return 0;
}

static int
open_terminal (struct run *run, int *theirs)
{
  const struct winsize size = {
    .ws_row = (unsigned short) run->request->rows,
    .ws_col = (unsigned short) run->request->columns,
  };
  int unlocked = 0, number;
  char name[32];

  run->terminal = open ("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (run->terminal < 0
      || ioctl (run->terminal, TIOCSPTLCK, &unlocked) < 0
      || ioctl (run->terminal, TIOCGPTN, &number) < 0)
    return -1;
  snprintf (name, sizeof name, "/dev/pts/%d", number);
  *theirs = open (name, O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (*theirs < 0)
    return -1;
  if (size.ws_row && size.ws_col)
    (void) ioctl (run->terminal, TIOCSWINSZ, &size);
  run->out.from = fcntl (run->terminal, F_DUPFD_CLOEXEC, 3);
  run->input = run->request->flags & WIRE_IN ? 0 : -1;
  return run->out.from < 0 ? -1 : 0;
}

static int
open_kept (struct run *run, const char *suffix)
{
  char name[WIRE_ID_MAX + 8];

  kept_name (name, run->request->id, suffix);
  return openat (run->folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC
                                      | O_NOFOLLOW, 0600);
}

/* The three of the command, which are closed here once it has them. */
static int
open_streams (struct run *run, struct coffer_process *process)
{
  const uint32_t flags = run->request->flags;

  if (flags & WIRE_BACKGROUND
      && ((run->out.kept = open_kept (run, "out")) < 0
          || (run->err.kept = open_kept (run, "err")) < 0))
    return -1;
  if (flags & WIRE_TTY) {
    if (open_terminal (run, &process->in) < 0)
      return -1;
    process->out = process->err = process->in;
    return 0;
  }
  process->in = flags & WIRE_IN ? fcntl (0, F_DUPFD_CLOEXEC, 3) : -1;
  if (flags & WIRE_OUT && open_pipe (&run->out, &process->out) < 0)
    return -1;
  if (flags & WIRE_ERR && open_pipe (&run->err, &process->err) < 0)
    return -1;
  return 0;
}

static void
close_streams (struct coffer_process *process)
{
  int in = process->in, out = process->out, err = process->err;

  coffer_fd_close (&in);
  if (out != process->in)
    coffer_fd_close (&out);
  if (err != process->in)
    coffer_fd_close (&err);
}

static void
never_ran (struct run *run, int sys_errno, uint32_t stage)
{
  run->end.failure_errno = sys_errno ? sys_errno : EIO;
  run->end.failure_stage = stage;
}

/* Kernels that are none, such as gVisor's, hang up a process group of which one
 * stands still whenever another of it ends, when no parent of any is of the same
 * session: there the command's is this process. */
static int
is_joined (const struct run *run)
{
  if (!run->mark || run->request->flags & WIRE_TTY)
    return 0;
  setsid ();                    /* it may lead one already */
  return getsid (0) == getpid ();
}

static void
start (struct run *run, const char *const *argv, const char *const *env,
       const char *cwd)
{
  struct coffer_session session = {
    .process = {.argv = argv, .env = env, .cwd = cwd,
                .in = -1, .out = -1, .err = -1},
    .folder = -1, .tty = (run->request->flags & WIRE_TTY) != 0,
    .rows = run->request->rows, .columns = run->request->columns,
    .joins = is_joined (run),
  };
  struct coffer_start_failure failure;
  int report = -1;

  if (open_streams (run, &session.process) < 0
      || (run->pid = coffer_session_start (&session, &report)) < 0) {
    run->pid = 0;
    never_ran (run, errno, COFFER_STAGE_PROCESS);
    run->end.code = -1;
    run->ended = 1;
  } else if (coffer_wait_fd (report, POLLIN, run->timeout_ns, -1) == 1
             && coffer_read_all (report, &failure, sizeof failure)
                  == sizeof failure) {
    never_ran (run, failure.sys_errno, failure.stage);
  }
  coffer_fd_close (&report);
  close_streams (&session.process);
}

/* One in the background has no streams, and a parent that ends when it has said
 * what there is to say: engines close the streams of what has ended. */
static int
fork_behind (void)
{
  int ends[2];
  char byte;
  pid_t pid;

  if (pipe2 (ends, O_CLOEXEC) < 0)
    return -1;
  pid = fork ();
  close (pid == 0 ? ends[0] : ends[1]);
  if (pid > 0)
    (void) !read (ends[0], &byte, 1);
  return pid == 0 ? ends[1] : -1;
}

static void
go_behind (int *parent)
{
  int null = open ("/dev/null", O_RDWR | O_CLOEXEC);

  for (int i = 0; i < 3 && null >= 0; i++)
    dup3 (null, i, 0);
  if (null > 2)
    close (null);
  setsid ();
  coffer_fd_close (parent);
}

static void
listen_here (struct run *run)
{
  run->folder = kept_open ();
  if (run->folder >= 0)
    run->listener = coffer_socket_listen (run->folder, run->request->id);
}

static void
prepare (struct run *run)
{
  sigset_t set;

  prctl (PR_SET_NAME, "coffer-run");
  prctl (PR_SET_DUMPABLE, 0);
  signal (SIGPIPE, SIG_IGN);
  sigemptyset (&set);
  sigaddset (&set, SIGCHLD);
  sigprocmask (SIG_SETMASK, &set, NULL);
  run->signals = signalfd (-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  run->begin_ns = coffer_now_ns ();
  run->end.info.started_ns = coffer_realtime_ns ();
  run->end.info.running = 1;
  run->end.info.flags = run->request->flags & WIRE_BACKGROUND;
  memcpy (run->end.info.id, run->request->id, WIRE_ID_MAX);
  if (run->request->timeout_ms > 0
      && run->request->timeout_ms < (uint64_t) (INT64_MAX / 2000000))
    run->timeout_ns = run->begin_ns
                      + (int64_t) run->request->timeout_ms * 1000000;
  run->oom_before = count_oom ();
  run->pids_before = count_pids ();
}

static void
run_all (struct run *run, const char *const *argv, const char *const *env,
         const char *cwd)
{
  prepare (run);
  listen_here (run);
  start (run, argv, env, cwd);
  say (WIRE_STARTED, &run->end.info, sizeof run->end.info);
  if (run->request->flags & WIRE_BACKGROUND)
    go_behind (&run->parent);
  else if (run->input < 0)
    close (0);
  run->children = coffer_descendants_reap (reaped, run);
  tell_end (run);
  loop (run);
  unlinkat (run->folder, run->request->id, 0);
}

/* ---- what it is given ------------------------------------------------------------------- */

/* What the engine started us with is the image's; over it comes what is always so,
 * what the sandbox was given, and what the command was. */
static int
environment (struct coffer_strings *env, const char **given_cwd,
             const char *const *own, int tty, char **given)
{
  extern char **environ;
  coffer_autoclose int fd = open (INSIDE_GIVEN, O_RDONLY | O_CLOEXEC);
  const char *at, *end, *entry;
  size_t size = 0;

  for (char **e = environ; *e; e++)
    coffer_strings_set (env, *e);
  coffer_strings_set (env, "HOME=" SANDBOX_WORKSPACE);
  coffer_strings_set (env, "TMPDIR=/tmp");
  coffer_strings_set (env, "LANG=C.UTF-8");
  if (tty)
    coffer_strings_set (env, "TERM=xterm");
  if (fd >= 0 && coffer_read_whole (fd, INSIDE_TOLD_MOST, given, &size) == 0) {
    at = *given;
    end = at + size;
    *given_cwd = coffer_strings_next (&at, end);
    while ((entry = coffer_strings_next (&at, end)))
      coffer_strings_set (env, entry);
  }
  for (; own && *own; own++)
    coffer_strings_set (env, *own);
  return env->failed ? -1 : 0;
}

int
run_command (const struct wire_request *request, char *block)
{
  struct run run = {
    .request = request, .out = {-1, -1, 0}, .err = {-1, -1, 0}, .input = -1,
    .terminal = -1, .folder = -1, .listener = -1, .signals = -1, .parent = -1,
    .timeout_ns = INT64_MAX,
  };
  coffer_autostrings struct coffer_strings env = {0};
  const char *at = block, *end = block + request->block, *given_cwd = NULL;
  const char *cwd = coffer_strings_next (&at, end);
  const char **argv = coffer_strings_split (&at, end, request->argc);
  const char **own = coffer_strings_split (&at, end, request->envc);
  char mark[sizeof MARK + WIRE_ID_MAX], *given = NULL;

  if (!cwd || !argv || !argv[0] || !own
      || environment (&env, &given_cwd, own, (request->flags & WIRE_TTY) != 0,
                      &given) < 0) {
    say_failed (COFFER_INTERNAL, 0, "the request to the program inside");
    return INSIDE_FAILED;
  }
  if (!*cwd)
    cwd = given_cwd && *given_cwd ? given_cwd : SANDBOX_WORKSPACE;
  if (request->flags & WIRE_BACKGROUND
      && (run.parent = fork_behind ()) < 0)
    return INSIDE_OK;           /* the child says the rest */
  if (prctl (PR_SET_CHILD_SUBREAPER, 1) < 0) {
    snprintf (mark, sizeof mark, MARK "%s", request->id);
    coffer_strings_set (&env, mark);
    run.mark = mark;
  }
  run_all (&run, argv, coffer_strings_view (&env), cwd);
  return INSIDE_OK;
}
