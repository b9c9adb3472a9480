/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of a sandbox, as its keeper sees them: a minder each. */

#define _GNU_SOURCE

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <coffer/descendants.h>
#include <coffer/fd.h>

#include "state.h"

#define KILL_NS (INT64_C (10) * 1000000000)

static void __attribute__ ((noreturn))
become_minder (const struct command *command, int control)
{
  const struct coffer_process *process = &command->session.process;
  int keep[] = {control, process->in, process->out, process->err,
                command->session.folder};

  coffer_close_others (keep, sizeof keep / sizeof keep[0]);
  minder_main (command, control);
}

static unsigned
running (const struct keeper *keeper)
{
  unsigned n = 0;

  for (size_t i = 0; i < keeper->n_execs; i++)
    n += keeper->execs[i]->minder != 0;
  return n;
}

static void
remove_exec (struct keeper *keeper, size_t i)
{
  free (keeper->execs[i]);
  keeper->n_execs--;
  memmove (&keeper->execs[i], &keeper->execs[i + 1],
           (keeper->n_execs - i) * sizeof keeper->execs[0]);
}

/* Room for one more: the oldest that has ended goes. */
static int
make_room (struct keeper *keeper)
{
  if (running (keeper) >= KEEPER_RUNNING_MAX)
    return -1;
  if (keeper->n_execs < KEEPER_EXECS_MAX)
    return 0;
  for (size_t i = 0; i < keeper->n_execs; i++)
    if (!keeper->execs[i]->minder) {
      remove_exec (keeper, i);
      return 0;
    }
  return -1;
}

int
keeper_start (struct keeper *keeper, const struct command *command,
              struct exec **out)
{
  struct exec *exec;
  int pair[2];

  if (make_room (keeper) < 0)
    return EAGAIN;
  exec = calloc (1, sizeof *exec);
  if (!exec)
    return ENOMEM;
  if (socketpair (AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
    free (exec);
    return errno;
  }
  exec->minder = fork ();
  if (exec->minder == 0)
    become_minder (command, pair[1]);
  coffer_fd_close (&pair[1]);
  if (exec->minder < 0) {
    coffer_fd_close (&pair[0]);
    free (exec);
    return errno;
  }
  exec->control = pair[0];
  exec->number = ++keeper->next_exec;
  exec->reply = (struct keeper_reply) {.started_ns = coffer_realtime_ns ()};
  keeper->execs[keeper->n_execs++] = exec;
  *out = exec;
  return 0;
}

int
keeper_order (const struct exec *exec, const struct minder_order *order)
{
  if (exec->control < 0 ||
      send (exec->control, order, sizeof *order, MSG_NOSIGNAL) < 0)
    return ESRCH;
  return 0;
}

static void
set_ended (struct keeper *keeper, struct exec *exec,
           const struct keeper_reply *reply)
{
  int64_t started = exec->reply.started_ns;

  exec->reply = *reply;
  exec->reply.started_ns = started;
  exec->reply.flags |= KEEPER_EXITED;
  keeper_answer_waiters (keeper, exec);
  if (keeper->single)
    keeper->uncollected_ns = coffer_now_ns () + INT64_C (60) * 1000000000;
}

void
keeper_report (struct keeper *keeper, struct exec *exec)
{
  /* A minder that ends without a report was killed, and what it minded is
   * being killed for it. */
  static const struct keeper_reply lost = {.code = -1, .signal = SIGKILL};
  struct minder_report report;
  ssize_t n = recv (exec->control, &report, sizeof report, MSG_DONTWAIT);

  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return;
  if (n == sizeof report) {
    set_ended (keeper, exec, &report.exit);
    return;
  }
  coffer_fd_close (&exec->control);
  if (!(exec->reply.flags & KEEPER_EXITED))
    set_ended (keeper, exec, &lost);
}

static void
keeper_reaped (void *data, pid_t pid, int status, const struct rusage *usage)
{
  struct keeper *keeper = data;

  (void) usage;
  for (size_t i = 0; i < keeper->n_execs; i++)
    if (keeper->execs[i]->minder == pid) {
      keeper->execs[i]->minder = 0;
      /* One that leaves by itself leaves nothing behind. */
      if (WIFSIGNALED (status))
        keeper->orphaned = 1;
    }
}

static unsigned
kill_but_minders (struct keeper *keeper)
{
  pid_t spared[KEEPER_RUNNING_MAX];
  size_t n = 0;

  for (size_t i = 0; i < keeper->n_execs && n < KEEPER_RUNNING_MAX; i++)
    if (keeper->execs[i]->minder)
      spared[n++] = keeper->execs[i]->minder;
  return coffer_descendants_kill (spared, n, coffer_now_ns () + KILL_NS,
                                  keeper_reaped, keeper);
}

void
keeper_reap (struct keeper *keeper)
{
  if (coffer_descendants_reap (keeper_reaped, keeper) && keeper->orphaned)
    kill_but_minders (keeper);
  keeper->orphaned = 0;
}

/* Tells the minders first, so that each can say exactly how its command
 * ended, and does the rest itself. */
unsigned
keeper_kill_all (struct keeper *keeper)
{
  const struct minder_order order = {.op = MINDER_KILL};
  int64_t deadline = coffer_now_ns () + KILL_NS / 2;
  struct exec *exec;

  for (size_t i = 0; i < keeper->n_execs; i++)
    keeper_order (keeper->execs[i], &order);
  for (size_t i = 0; i < keeper->n_execs; i++) {
    exec = keeper->execs[i];
    while (exec->control >= 0 &&
           coffer_wait_fd (exec->control, POLLIN, deadline, -1) == 1)
      keeper_report (keeper, exec);
  }
  return coffer_descendants_kill (NULL, 0, coffer_now_ns () + KILL_NS,
                                  keeper_reaped, keeper);
}
