/* SPDX-License-Identifier: Apache-2.0 */
/* The minder of one command: starts it, keeps its time, carries orders to it,
 * reports its end, and stays until nothing that it started is left.
 *
 * It ends all of them at the timeout, when it is told to, when the command of
 * a sandbox for a single one has ended, and when the keeper is gone: its end
 * of `control` closes with its process, however that ended. */

#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <coffer/descendants.h>
#include <coffer/fd.h>

#include "keeper.h"

#define KILL_NS (INT64_C (10) * 1000000000)
/* What withstood that is another user's, or was only too quick: it is tried again
 * for a moment each second. */
#define AGAIN_MS 1000
#define AGAIN_NS (INT64_C (50) * 1000000)

/* What is reported is the library's stage in the protocol's number. */
_Static_assert ((int) KEEPER_STAGE_SETUP == (int) COFFER_STAGE_PROCESS
                && (int) KEEPER_STAGE_FOLDER == (int) COFFER_STAGE_FOLDER
                && (int) KEEPER_STAGE_PROGRAM == (int) COFFER_STAGE_PROGRAM,
                "stages");

struct minder {
  const struct command *command;
  int control;
  int signals;
  int tty;                      /* until the command has ended */
  pid_t pid;                    /* 0 once it is reaped */
  int64_t begin_ns;
  int64_t timeout_ns;           /* INT64_MAX: never */
  int ended, reported, killing;
  int condemned;                /* nothing of it may live on */
  struct keeper_reply exit;
};

static void
minder_reaped (void *data, pid_t pid, int status, const struct rusage *usage)
{
  struct minder *minder = data;
  struct keeper_reply *exit = &minder->exit;

  if (!minder->reported)
    exit->cpu_us += coffer_usage_us (usage);
  if (pid != minder->pid) {
    if (minder->killing && WIFSIGNALED (status) && WTERMSIG (status) == SIGKILL)
      exit->killed++;
    return;
  }
  minder->pid = 0;
  minder->ended = 1;
  exit->duration_us = (uint64_t) (coffer_now_ns () - minder->begin_ns) / 1000;
  exit->code = WIFEXITED (status) ? WEXITSTATUS (status) : -1;
  exit->signal = WIFSIGNALED (status) ? WTERMSIG (status) : 0;
  coffer_fd_close (&minder->tty);
}

static void
minder_report (struct minder *minder)
{
  struct minder_report report;

  if (minder->reported || !minder->ended)
    return;
  minder->reported = 1;
  minder->exit.flags |= KEEPER_EXITED;
  report.exit = minder->exit;
  send (minder->control, &report, sizeof report, MSG_NOSIGNAL);
}

static void
minder_kill (struct minder *minder, int64_t most_ns)
{
  minder->condemned = minder->killing = 1;
  coffer_descendants_kill (NULL, 0, coffer_now_ns () + most_ns,
                           minder_reaped, minder);
  minder->killing = 0;
}

static void
minder_timeout (struct minder *minder)
{
  minder->timeout_ns = INT64_MAX;
  if (minder->ended)
    return;
  minder->exit.flags |= KEEPER_TIMED_OUT;
  minder_kill (minder, KILL_NS);
}

/* 0: the keeper is gone. */
static int
minder_order (struct minder *minder)
{
  struct minder_order order;
  struct winsize size = {0};
  ssize_t n = recv (minder->control, &order, sizeof order, MSG_DONTWAIT);

  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return 1;
  if (n != sizeof order)
    return 0;
  if (order.op == MINDER_SIGNAL && minder->pid > 0) {
    /* Not reaped yet, so the number is still its group's. */
    kill (-minder->pid, order.signal);
  } else if (order.op == MINDER_RESIZE && minder->tty >= 0) {
    size.ws_row = (unsigned short) order.rows;
    size.ws_col = (unsigned short) order.columns;
    ioctl (minder->tty, TIOCSWINSZ, &size);
  } else if (order.op == MINDER_KILL) {
    minder_kill (minder, KILL_NS);
  }
  return 1;
}

/* 1: children are left. */
static int
minder_reap (struct minder *minder)
{
  struct signalfd_siginfo info;
  int left, before = minder->ended;

  while (read (minder->signals, &info, sizeof info) > 0)
    ;
  left = coffer_descendants_reap (minder_reaped, minder);
  if (!before && minder->ended && minder->command->single && left) {
    minder_kill (minder, KILL_NS);
    left = coffer_descendants_reap (minder_reaped, minder);
  }
  return left;
}

static void
minder_loop (struct minder *minder)
{
  struct pollfd fds[2] = {
    {.fd = minder->control, .events = POLLIN},
    {.fd = minder->signals, .events = POLLIN},
  };
  int left = 1, keeper = 1, patience;

  while (left && keeper) {
    patience = minder->condemned ? AGAIN_MS
                                 : coffer_poll_ms (minder->timeout_ns);
    if (poll (fds, 2, patience) < 0 && errno != EINTR)
      break;
    if (fds[0].revents)
      keeper = minder_order (minder);
    if (minder->timeout_ns <= coffer_now_ns ())
      minder_timeout (minder);
    left = minder_reap (minder);
    if (left && keeper && minder->condemned) {
      minder_kill (minder, AGAIN_NS);
      left = minder_reap (minder);
    }
    minder_report (minder);
  }
  if (left)
    minder_kill (minder, KILL_NS);
  minder_report (minder);
}

/* Says why a command never ran. */
static void
minder_failed (struct minder *minder, int sys_errno, uint32_t stage)
{
  minder->exit.failure_errno = sys_errno ? sys_errno : EIO;
  minder->exit.failure_stage = stage;
}

static void
minder_start (struct minder *minder)
{
  const struct command *command = minder->command;
  struct coffer_start_failure failure;
  int report = -1;

  minder->pid = coffer_session_start (&command->session, &report);
  if (minder->pid < 0) {
    minder_failed (minder, errno, KEEPER_STAGE_SETUP);
    minder->exit.code = -1;
    minder->ended = 1;
    return;
  }
  /* A start that hangs, as on a dead network file system, is a command that
   * runs: its timeout and orders reach it. */
  if (coffer_wait_fd (report, POLLIN, minder->timeout_ns,
                      minder->control) == 1 &&
      coffer_read_all (report, &failure, sizeof failure) == sizeof failure)
    minder_failed (minder, failure.sys_errno, failure.stage);
  coffer_fd_close (&report);
}

/* The streams belong to the command alone: whoever reads them must see the
 * end when it ends.  The terminal is kept to resize it. */
static void
minder_drop_streams (struct minder *minder)
{
  const struct coffer_session *session = &minder->command->session;
  int in = session->process.in, out = session->process.out;
  int err = session->process.err;

  if (session->tty)
    minder->tty = fcntl (in, F_DUPFD_CLOEXEC, 3);
  coffer_fd_close (&in);
  if (out != session->process.in)
    coffer_fd_close (&out);
  coffer_fd_close (&err);
}

void
minder_main (const struct command *command, int control)
{
  struct minder minder = {
    .command = command, .control = control, .tty = -1,
    .begin_ns = coffer_now_ns (), .timeout_ns = INT64_MAX,
  };
  sigset_t set;

  prctl (PR_SET_NAME, "coffer-minder");
  prctl (PR_SET_CHILD_SUBREAPER, 1);
  sigemptyset (&set);
  sigaddset (&set, SIGCHLD);
  sigprocmask (SIG_SETMASK, &set, NULL);
  minder.signals = signalfd (-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (command->timeout_ms > 0 &&
      command->timeout_ms < (uint64_t) (INT64_MAX / 2000000))
    minder.timeout_ns = minder.begin_ns +
                        (int64_t) command->timeout_ms * 1000000;
  minder_start (&minder);
  minder_drop_streams (&minder);
  minder_loop (&minder);
  _exit (0);
}
