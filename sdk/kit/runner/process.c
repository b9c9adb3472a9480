/* SPDX-License-Identifier: Apache-2.0 */
/* One case in a process of its own: forked, waited for with a deadline, and its
 * whole tree ended.  This process is the reaper of all that a case starts, so
 * that what is left behind is exactly what it finds among its children. */

#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <coffer/buffer.h>
#include <coffer/fd.h>

#include "base/text.h"
#include "runner.h"

#define LOG_TAIL 4096
#define LOG_LINES 8

static int signals = -1;        /* a signalfd: SIGCHLD, and those that end us */
static sigset_t original;

int
process_set_up (struct error **err)
{
  sigset_t set;

  sigemptyset (&set);
  sigaddset (&set, SIGCHLD);
  sigaddset (&set, SIGINT);
  sigaddset (&set, SIGTERM);
  sigaddset (&set, SIGHUP);
  if (sigprocmask (SIG_BLOCK, &set, &original) < 0
      || (signals = signalfd (-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)) < 0
      || prctl (PR_SET_CHILD_SUBREAPER, 1) < 0)
    return error_set (err, E_IO, errno, "getting ready to run cases");
  return 0;
}

/* ---- the tree ------------------------------------------------------------ */

static int64_t
ms_left (int64_t until_ns)
{
  int64_t left = (until_ns - coffer_now_ns () + 999999) / 1000000;

  return left > 0 ? left : 0;
}

/* A signal that ends the run is remembered; SIGCHLD only wakes. */
static void
drain_signals (struct run *run)
{
  struct signalfd_siginfo info;

  while (read (signals, &info, sizeof info) == sizeof info)
    if (info.ssi_signo != SIGCHLD)
      run->interrupted = (int) info.ssi_signo;
}

/* 1: there are children that have not ended. */
static int
reap_all (void)
{
  pid_t pid;

  do
    pid = waitpid (-1, NULL, WNOHANG);
  while (pid > 0 || (pid < 0 && errno == EINTR));
  return pid == 0;
}

/* Our own children; the list may miss one that is being born. */
static size_t
list_children (pid_t *pids, size_t room)
{
  char path[64], text[4096];
  coffer_autoclose int fd = -1;
  char *at, *end;
  size_t n = 0;
  ssize_t size;
  long pid;

  snprintf (path, sizeof path, "/proc/self/task/%d/children", (int) getpid ());
  fd = open (path, O_RDONLY | O_CLOEXEC);
  size = fd < 0 ? -1 : coffer_read_all (fd, text, sizeof text - 1);
  if (size < 0)
    return 0;
  text[size] = '\0';
  for (at = text; n < room && (pid = strtol (at, &end, 10)) > 0; at = end)
    pids[n++] = (pid_t) pid;
  return n;
}

/* "PID (its command)", for people. */
static void
describe (pid_t pid, struct coffer_buffer *out)
{
  char path[64], text[160];
  coffer_autoclose int fd = -1;
  ssize_t i, n = -1;

  snprintf (path, sizeof path, "/proc/%d/cmdline", (int) pid);
  fd = open (path, O_RDONLY | O_CLOEXEC);
  if (fd >= 0)
    n = coffer_read_all (fd, text, sizeof text);
  for (i = 0; i < n; i++)
    if (text[i] == '\0')
      text[i] = ' ';
  coffer_buffer_printf (out, " %d (", (int) pid);
  coffer_buffer_add_escaped (out, text, n > 0 ? (size_t) n : 0);
  coffer_buffer_add_string (out, ")");
}

/* Gives what ends by itself a while, then names and kills what is left: its
 * children become ours.  1: something was left. */
static int
end_tree (struct run *run, int64_t patience_ms, struct coffer_buffer *left)
{
  int64_t until = coffer_now_ns () + patience_ms * 1000000;
  struct pollfd p = { .fd = signals, .events = POLLIN };
  pid_t pids[64];
  int rounds = 0;
  size_t i, n;

  while (reap_all () && ms_left (until) > 0) {
    poll (&p, 1, (int) ms_left (until));
    drain_signals (run);
  }
  while (reap_all () && rounds++ < 1000) {
    n = list_children (pids, 64);
    for (i = 0; i < n; i++) {
      if (rounds == 1)
        describe (pids[i], left);
      kill (pids[i], SIGKILL);
    }
    poll (&p, 1, 10);
    drain_signals (run);
  }
  return rounds > 0;
}

/* ---- one process --------------------------------------------------------- */

struct work {
  const struct kit_case *row;   /* NULL: probe, or sweep */
  uint64_t seed;
  int sweeps;
};

static _Noreturn void
child (struct run *run, const struct work *work, int log, pid_t parent)
{
  int null = open ("/dev/null", O_RDWR | O_CLOEXEC);

  prctl (PR_SET_PDEATHSIG, SIGKILL);
  if (getppid () != parent)     /* which ended before we asked */
    _exit (127);
  setpgid (0, 0);
  sigprocmask (SIG_SETMASK, &original, NULL);
  if (null < 0 || dup2 (null, 0) < 0 || dup2 (log, 1) < 0 || dup2 (log, 2) < 0)
    _exit (127);
  if (work->row)
    case_main (work->row, run->subject, run->shared, work->seed);
  if (work->sweeps)
    case_sweep (run->subject, run->shared);
  case_probe (run->subject, run->shared);
}

/* Until it ends or has had its time, and a while more once it cleans up; what
 * sweeps is left to it when the run is interrupted.  1: ended by itself, 0: was
 * killed. */
static int
await (struct run *run, pid_t pid, int pidfd, int64_t ms, int sweeps)
{
  int64_t until = coffer_now_ns () + ms * 1000000;
  int cleaning = 0;

  for (;;) {
    struct pollfd p[2] = { { pidfd, POLLIN, 0 }, { signals, POLLIN, 0 } };
    int n = poll (p, 2, (int) ms_left (until));

    drain_signals (run);
    if (p[0].revents)
      return 1;
    if (run->interrupted && !sweeps)
      break;
    if (n == 0 && !cleaning && atomic_load (&run->shared->cleaning)) {
      cleaning = 1;
      until = coffer_now_ns () + KIT_CLEAN_MS * 1000000LL;
    } else if (ms_left (until) == 0)
      break;
  }
  kill (pid, SIGKILL);
  return 0;
}

static char *
log_tail (int log)
{
  char text[LOG_TAIL + 1];
  off_t size = lseek (log, 0, SEEK_END);
  size_t part = size > LOG_TAIL ? LOG_TAIL : size > 0 ? (size_t) size : 0;
  ssize_t n = pread (log, text, part, size - (off_t) part);
  char *from = text + (n > 0 ? n : 0);
  int lines = 0;

  *from = '\0';
  while (from > text && (from[-1] != '\n' || lines++ < LOG_LINES))
    from--;
  return strdup (from);
}

/* How a case ended that did not say so itself. */
static void
explain (const struct run *run, int by_itself, int status, int64_t ms,
         struct result *result)
{
  const char *step = run->shared->step;

  result->verdict = VERDICT_FAILED;
  if (run->interrupted)
    result->reason = strdup ("the run was interrupted");
  else if (!by_itself)
    result->reason = text_printf ("expected an end within %lld ms, it had none"
                                  "; its last call was %s", (long long) ms,
                                  *step ? step : "none");
  else if (WIFSIGNALED (status))
    result->reason = text_printf ("the case's own process was ended by signal "
                                  "%d; its last call was %s",
                                  WTERMSIG (status), *step ? step : "none");
  else
    result->reason = text_printf ("the case's own process exited with %d; its "
                                  "last call was %s", WEXITSTATUS (status),
                                  *step ? step : "none");
}

static void
shared_begin (struct shared *shared)
{
  atomic_store (&shared->ended, 0);
  atomic_store (&shared->cleaning, 0);
  shared->verdict = VERDICT_NONE;
  shared->reason[0] = shared->notes[0] = shared->step[0] = '\0';
  shared->n_ids = 0;
  shared->ids_size = 0;
}

static pid_t
start (struct run *run, const struct work *work, int log, int *pidfd,
       struct error **err)
{
  const pid_t parent = getpid ();
  pid_t pid;

  fflush (NULL);
  pid = fork ();
  if (pid == 0)
    child (run, work, log, parent);
  if (pid < 0)
    return error_set (err, E_IO, errno, "start a case");
  *pidfd = (int) syscall (SYS_pidfd_open, pid, 0);
  if (*pidfd >= 0)
    return pid;
  kill (pid, SIGKILL);
  return error_set (err, E_IO, errno, "start a case");
}

/* A process of the kit's own that ends what a case could not. */
static void
sweep (struct run *run, int log)
{
  const struct work work = { .sweeps = 1 };
  coffer_autoclose int pidfd = -1;
  pid_t pid;

  atomic_store (&run->shared->cleaning, 0);
  pid = start (run, &work, log, &pidfd, NULL);
  if (pid > 0)
    await (run, pid, pidfd, KIT_CLEAN_MS, 1);
}

static void
take_result (struct run *run, int by_itself, int status, int64_t ms,
             struct result *result)
{
  struct shared *shared = run->shared;

  if (atomic_load (&shared->ended)) {
    result->verdict = shared->verdict;
    result->reason = shared->reason[0] ? strdup (shared->reason) : NULL;
    if (!by_itself && result->verdict == VERDICT_PASSED) {
      result->verdict = VERDICT_FAILED;
      result->reason = text_printf ("passed, but killing its sandboxes and "
                                    "closing did not end; the last call was "
                                    "%s", shared->step);
    }
  } else {
    explain (run, by_itself, status, ms, result);
  }
  result->notes = shared->notes[0] ? strdup (shared->notes) : NULL;
}

static int
run_work (struct run *run, const struct work *work, int64_t ms,
          struct result *result, struct error **err)
{
  coffer_autobuffer struct coffer_buffer left = { 0 };
  coffer_autoclose int log = memfd_create ("kit-log", MFD_CLOEXEC);
  coffer_autoclose int pidfd = -1;
  const int64_t began = coffer_now_ns ();
  int status = 0, by_itself;
  pid_t pid;

  if (log < 0 || fcntl (log, F_SETFL, O_APPEND) < 0)
    return error_set (err, E_IO, errno, "make a memory file");
  shared_begin (run->shared);
  pid = start (run, work, log, &pidfd, err);
  if (pid < 0)
    return -1;
  by_itself = await (run, pid, pidfd, ms, 0);
  while (waitpid (pid, &status, 0) < 0 && errno == EINTR)
    ;
  take_result (run, by_itself, status, ms, result);
  run->sandboxes += run->shared->n_ids;
  if (!by_itself || !atomic_load (&run->shared->ended))
    sweep (run, log);
  if (end_tree (run, KIT_LEFT_MS, &left)
      && result->verdict == VERDICT_PASSED) {
    result->verdict = VERDICT_FAILED;
    result->reason = text_printf ("processes are left behind:%s",
                                  left.data ? left.data : "");
  }
  folders_empty (run->subject);
  result->duration_us = (coffer_now_ns () - began) / 1000;
  if (result->verdict == VERDICT_FAILED)
    result->log = log_tail (log);
  return 0;
}

int
process_run (struct run *run, const struct kit_case *row, uint64_t seed,
             struct result *result, struct error **err)
{
  const struct work work = { .row = row, .seed = seed };
  /* The case keeps its deadline itself; this one is for one that cannot. */
  const int64_t ms = (row->timeout_ms ? row->timeout_ms : KIT_CASE_MS)
                     + KIT_LATE_MS;

  return run_work (run, &work, ms, result, err);
}

int
process_probe (struct run *run, struct result *result, struct error **err)
{
  const struct work work = { .row = NULL };

  return run_work (run, &work, 60000, result, err);
}
