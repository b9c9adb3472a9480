/* SPDX-License-Identifier: Apache-2.0 */
/* The minder of one command: starts it, keeps its time and its output, carries
 * orders to it, writes down how it ended, and stays until nothing that it
 * started is left.
 *
 * It ends all of them at the timeout, when the command of a sandbox for a
 * single one has ended, and when the keeper has gone. */

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
#include <sys/wait.h>
#include <unistd.h>

#include <coffer/fd.h>
#include <coffer/packet.h>
#include <coffer/path.h>

#include "keeper.h"

#define CLIENTS_MAX 64

struct client {
  int fd;                       /* -1: none */
  uint32_t waits;               /* ASK_WAIT or ASK_FOLLOW; 0: has not asked */
};

struct minder {
  const struct assignment *task;
  int signals;
  int tty;                      /* until the command has ended; -1 */
  pid_t pid;                    /* 0 once it is reaped */
  int64_t begin_ns, timeout_ns; /* INT64_MAX: never */
  int has_ended, is_told, killing, stopped;
  struct ended ended;
  struct spool spools[2];
  struct client clients[CLIENTS_MAX];
};

/* ---- the end ------------------------------------------------------------- */

static void
minder_reaped (void *data, pid_t pid, int status, const struct rusage *usage)
{
  struct minder *minder = data;
  struct ended *ended = &minder->ended;

  ended->cpu_us += coffer_usage_us (usage);
  if (pid != minder->pid) {
    ended->killed += minder->killing && WIFSIGNALED (status)
                     && WTERMSIG (status) == SIGKILL;
    return;
  }
  minder->pid = 0;
  minder->has_ended = 1;
  ended->duration_us = (uint64_t) (coffer_now_ns () - minder->begin_ns) / 1000;
  ended->code = WIFEXITED (status) ? WEXITSTATUS (status) : -1;
  ended->signal = WIFSIGNALED (status) ? WTERMSIG (status) : 0;
  coffer_fd_close (&minder->tty);
}

static void
minder_kill (struct minder *minder)
{
  minder->killing = 1;
  tree_kill (minder_reaped, minder);
  minder->killing = 0;
}

static void
tell (struct minder *minder, uint32_t who, const struct reply *reply)
{
  for (size_t i = 0; i < CLIENTS_MAX; i++)
    if (minder->clients[i].fd >= 0 && minder->clients[i].waits == who)
      reply_send (minder->clients[i].fd, reply);
}

/* A file that appears whole.  Who waits is told after that. */
static void
write_exit (const struct minder *minder)
{
  struct coffer_new_file file = {0};

  if (coffer_new_file_begin (&file, minder->task->folder, EXIT, 0600, 0) < 0
      || coffer_write_all (file.fd, &minder->ended, sizeof minder->ended) < 0
      || coffer_new_file_commit (&file, 0, 0) < 0)
    coffer_new_file_abort (&file);
}

static void
minder_tell (struct minder *minder)
{
  const struct reply reply = {.last = 1};

  if (minder->is_told || !minder->has_ended)
    return;
  minder->is_told = 1;
  for (int i = 0; i < 2; i++) {
    while (spool_take (&minder->spools[i]))
      ;                         /* all that it has left behind */
    minder->ended.dropped += minder->spools[i].dropped;
    spool_close (&minder->spools[i]);
  }
  write_exit (minder);
  tell (minder, ASK_WAIT, &reply);
  tell (minder, ASK_FOLLOW, &reply);
}

/* ---- orders -------------------------------------------------------------- */

static int
order_signal (struct minder *minder, int number)
{
  if (!minder->pid)
    return ESRCH;
  if (minder->stopped && number)
    return ESTALE;
  /* Not reaped yet, so the number is still its group's. */
  return number && kill (-minder->pid, number) < 0 ? errno : 0;
}

static int
order_resize (const struct minder *minder, const struct request *request)
{
  const struct winsize size = {
    .ws_row = (unsigned short) request->rows,
    .ws_col = (unsigned short) request->columns,
  };

  if (!minder->pid)
    return ESRCH;
  if (minder->tty < 0)
    return ENOTTY;
  return ioctl (minder->tty, TIOCSWINSZ, &size) < 0 ? errno : 0;
}

static int
order (struct minder *minder, const struct request *request)
{
  switch (request->op) {
  case ASK_SIGNAL:
    return order_signal (minder, request->signal);
  case ASK_RESIZE:
    return order_resize (minder, request);
  case ASK_STOP:
    minder->stopped = 1;
    tree_stop ();
    return 0;
  case ASK_CONTINUE:
    minder->stopped = 0;
    tree_continue ();
    return 0;
  default:
    return EOPNOTSUPP;
  }
}

/* One that waits and becomes readable has gone away. */
static void
serve (struct minder *minder, struct client *client)
{
  const struct reply last = {.last = 1}, more = {0};
  const struct request *request;
  struct packet packet;

  if (client->waits || packet_receive (client->fd, &packet) < 0) {
    coffer_fd_close (&client->fd);
    return;
  }
  packet_fini (&packet);
  request = &packet.request;
  if (request->op == ASK_WAIT || request->op == ASK_FOLLOW) {
    client->waits = request->op;
    if (minder->is_told)
      reply_send (client->fd, &last);
    else if (request->op == ASK_FOLLOW)
      reply_send (client->fd, &more);
    return;
  }
  reply_error (client->fd, order (minder, request));
  coffer_fd_close (&client->fd);
}

static void
accept_client (struct minder *minder)
{
  int fd = coffer_socket_accept (minder->task->listener);

  for (size_t i = 0; fd >= 0 && i < CLIENTS_MAX; i++)
    if (minder->clients[i].fd < 0) {
      minder->clients[i] = (struct client) {.fd = coffer_fd_steal (&fd)};
      break;
    }
  coffer_fd_close (&fd);        /* one too many */
}

/* ---- the loop ------------------------------------------------------------ */

/* 1: children are left. */
static int
minder_reap (struct minder *minder)
{
  struct signalfd_siginfo info;
  int left, before = minder->has_ended;

  while (read (minder->signals, &info, sizeof info) > 0)
    ;
  left = coffer_descendants_reap (minder_reaped, minder);
  if (left && !before && minder->has_ended && minder->task->single) {
    minder_kill (minder);
    left = coffer_descendants_reap (minder_reaped, minder);
  }
  return left;
}

static void
check_timeout (struct minder *minder)
{
  if (minder->timeout_ns > coffer_now_ns ())
    return;
  minder->timeout_ns = INT64_MAX;
  if (minder->has_ended)
    return;
  minder->ended.timed_out = 1;
  minder_kill (minder);
}

static void
take_output (struct minder *minder)
{
  const struct reply more = {0};
  int some = 0;

  for (int i = 0; i < 2 && !minder->is_told; i++)
    some |= spool_take (&minder->spools[i]);
  if (some)
    tell (minder, ASK_FOLLOW, &more);
}

/* 0: the keeper has gone. */
static int
minder_turn (struct minder *minder)
{
  struct pollfd fds[5 + CLIENTS_MAX] = {
    {.fd = minder->task->keeper, .events = POLLIN},
    {.fd = minder->signals, .events = POLLIN},
    {.fd = minder->task->listener, .events = POLLIN},
    {.fd = minder->spools[0].pipe, .events = POLLIN},
    {.fd = minder->spools[1].pipe, .events = POLLIN},
  };

  for (size_t i = 0; i < CLIENTS_MAX; i++)
    fds[5 + i] = (struct pollfd) {.fd = minder->clients[i].fd,
                                  .events = POLLIN};
  if (poll (fds, 5 + CLIENTS_MAX, coffer_poll_ms (minder->timeout_ns)) < 0)
    return errno == EINTR;
  if (fds[3].revents || fds[4].revents)
    take_output (minder);
  for (size_t i = 0; i < CLIENTS_MAX; i++)
    if (fds[5 + i].revents)
      serve (minder, &minder->clients[i]);
  if (fds[2].revents)
    accept_client (minder);
  return fds[0].revents == 0;
}

static void
minder_loop (struct minder *minder)
{
  int left = 1, keeper = 1;

  while (left && keeper) {
    keeper = minder_turn (minder);
    check_timeout (minder);
    left = minder_reap (minder);
    minder_tell (minder);
  }
  if (left)
    minder_kill (minder);
  minder_tell (minder);
}

/* ---- beginning ----------------------------------------------------------- */

static void
minder_failed (struct minder *minder, int sys_errno, uint32_t stage)
{
  minder->ended.failure_errno = sys_errno ? sys_errno : EIO;
  minder->ended.failure_stage = stage;
}

/* The streams belong to the command alone: whoever reads them must see the end
 * when it ends.  The terminal is kept to resize it. */
static void
drop_streams (struct minder *minder, struct coffer_session *session)
{
  if (session->tty)
    minder->tty = fcntl (session->process.in, F_DUPFD_CLOEXEC, 3);
  coffer_fd_close (&session->process.in);
  coffer_fd_close (&session->process.out);
  coffer_fd_close (&session->process.err);
}

static void
minder_start (struct minder *minder, struct coffer_session *session)
{
  struct coffer_start_failure failure;
  int report = -1;

  minder->pid = coffer_session_start (session, &report);
  drop_streams (minder, session);
  if (minder->pid < 0) {
    minder_failed (minder, errno, 0);
    minder->ended.code = -1;
    minder->pid = 0;
    minder->has_ended = 1;
    return;
  }
  /* A start that hangs, as on a dead network file system, is a command that
   * runs: its timeout reaches it. */
  if (coffer_wait_fd (report, POLLIN, minder->timeout_ns, minder->task->keeper)
      == 1
      && coffer_read_all (report, &failure, sizeof failure) == sizeof failure)
    minder_failed (minder, failure.sys_errno, failure.stage);
  coffer_fd_close (&report);
}

static int
open_spools (struct minder *minder, struct coffer_process *process)
{
  const struct assignment *task = minder->task;

  return !task->background ? 0 :
    spool_open (&minder->spools[0], task->folder, "out", task->cap_bytes,
                &process->out) < 0
    || spool_open (&minder->spools[1], task->folder, "err", task->cap_bytes,
                   &process->err) < 0 ? -1 : 0;
}

void
minder_main (const struct assignment *task)
{
  struct minder minder = {
    .task = task, .tty = -1, .begin_ns = coffer_now_ns (),
    .timeout_ns = INT64_MAX, .spools = {{.pipe = -1, .file = -1},
                                        {.pipe = -1, .file = -1}},
  };
  struct coffer_session session = task->session;
  sigset_t set;

  prctl (PR_SET_NAME, "minder");
  prctl (PR_SET_CHILD_SUBREAPER, 1);
  sigemptyset (&set);
  sigaddset (&set, SIGCHLD);
  sigprocmask (SIG_SETMASK, &set, NULL);
  minder.signals = signalfd (-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  for (size_t i = 0; i < CLIENTS_MAX; i++)
    minder.clients[i].fd = -1;
  if (task->timeout_ms > 0 && task->timeout_ms < UINT64_C (1) << 40)
    minder.timeout_ns = minder.begin_ns + (int64_t) task->timeout_ms * 1000000;
  if (minder.signals < 0 || open_spools (&minder, &session.process) < 0)
    _exit (1);
  minder_start (&minder, &session);
  minder_loop (&minder);
  _exit (0);
}
