/* SPDX-License-Identifier: Apache-2.0 */
/* The requests of a keeper.  A client is a process of the same user, but what
 * it sends is checked all the same: another release may have built it. */

#define _GNU_SOURCE

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <coffer/buffer.h>
#include <coffer/fd.h>
#include <coffer/packet.h>

#include "state.h"

struct received {
  struct keeper_request request;
  int fds[KEEPER_FDS_MAX];      /* -1: none */
  size_t n_fds;
};

static void
received_fini (struct received *received)
{
  for (size_t i = 0; i < KEEPER_FDS_MAX; i++)
    coffer_fd_close (&received->fds[i]);
}

/* 0, -1: the client is gone or talks nonsense. */
static int
receive (int fd, struct received *received)
{
  ssize_t n;

  memset (received, 0, sizeof *received);
  received->n_fds = KEEPER_FDS_MAX;
  n = coffer_packet_receive (fd, &received->request, sizeof received->request,
                             received->fds, &received->n_fds);
  return n < 16 || received->request.size < 16 ? -1 : 0;
}

static void
reply_with (int fd, const struct keeper_reply *reply)
{
  struct keeper_reply full = *reply;

  full.size = sizeof full;
  full.protocol = KEEPER_PROTOCOL;
  full.pid = getpid ();
  send (fd, &full, sizeof full, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void
keeper_reply_error (int fd, int sys_errno)
{
  struct keeper_reply reply = {.error = sys_errno};

  reply_with (fd, &reply);
}

static void
reply_exec (int fd, const struct exec *exec)
{
  struct keeper_reply reply = exec->reply;

  reply.exec = exec->number;
  reply_with (fd, &reply);
}

struct exec *
keeper_find (struct keeper *keeper, uint32_t number)
{
  for (size_t i = 0; i < keeper->n_execs; i++)
    if (keeper->execs[i]->number == number)
      return keeper->execs[i];
  return NULL;
}

void
keeper_answer_waiters (struct keeper *keeper, struct exec *exec)
{
  struct client *client;

  for (size_t i = 0; i < keeper->n_clients; i++) {
    client = &keeper->clients[i];
    if (client->waits_for != exec->number)
      continue;
    reply_exec (client->fd, exec);
    exec->collected = 1;
    coffer_fd_close (&client->fd);      /* swept by the loop */
  }
}

static void
reply_info (struct keeper *keeper, int fd)
{
  struct keeper_reply reply = {.created_ns = keeper->created_ns};

  if (keeper->expires_ns)
    reply.expires_ns = coffer_realtime_ns () +
                       (keeper->expires_ns - coffer_boottime_ns ());
  reply_with (fd, &reply);
}

/* The timer runs on while the machine sleeps: a ttl is a promise in real
 * time. */
void
keeper_arm (struct keeper *keeper)
{
  struct itimerspec when = {
    .it_value = {.tv_sec = keeper->expires_ns / 1000000000,
                 .tv_nsec = keeper->expires_ns % 1000000000},
  };

  timerfd_settime (keeper->timer, TFD_TIMER_ABSTIME, &when, NULL);
}

static int
extend (struct keeper *keeper, const struct keeper_request *request)
{
  if (request->ttl_ms == 0 || request->ttl_ms > INT64_MAX / 2000000)
    return EINVAL;
  keeper->expires_ns = coffer_boottime_ns () +
                       (int64_t) request->ttl_ms * 1000000;
  keeper_arm (keeper);
  return 0;
}

/* -- starting a command ---- */

struct block {
  char *bytes;
  const char **argv, **env, *cwd;
  struct coffer_strings merged;
};

static void
block_fini (struct block *block)
{
  free (block->bytes);
  free (block->argv);
  free (block->env);
  coffer_strings_free (&block->merged);
}

static void
merge (struct coffer_strings *env, const char *const *entries)
{
  for (; entries && *entries; entries++)
    coffer_strings_set (env, *entries);
}

static int
block_read (struct keeper *keeper, const struct received *received,
            struct block *block)
{
  const struct keeper_request *request = &received->request;
  const char *at, *end;
  size_t size = 0;

  if (received->fds[0] < 0 || request->argc == 0)
    return EPROTO;
  if (lseek (received->fds[0], 0, SEEK_SET) < 0 ||
      coffer_read_whole (received->fds[0], KEEPER_BLOCK_MAX, &block->bytes,
                         &size) < 0)
    return errno;
  at = block->bytes;
  end = block->bytes + size;
  block->argv = coffer_strings_split (&at, end, request->argc);
  if (block->argv)
    block->env = coffer_strings_split (&at, end, request->envc);
  if (!block->env)
    return errno;
  block->cwd = coffer_strings_next (&at, end);
  if (!block->cwd)
    return EPROTO;
  merge (&block->merged, keeper->base);
  merge (&block->merged, keeper->env);
  merge (&block->merged, block->env);
  return block->merged.failed ? ENOMEM : 0;
}

/* The descriptors that the flags name, in their order. */
static int
take_streams (const struct received *received, struct coffer_process *process)
{
  uint32_t flags = received->request.flags;
  size_t next = 1;

  if (flags & KEEPER_EXEC_IN)
    process->in = received->fds[next++];
  if (flags & KEEPER_EXEC_OUT)
    process->out = received->fds[next++];
  if (flags & KEEPER_EXEC_ERR)
    process->err = received->fds[next++];
  return next == received->n_fds ? 0 : EPROTO;
}

static int
start (struct keeper *keeper, const struct received *received,
       struct exec **exec)
{
  const struct keeper_request *request = &received->request;
  struct command command = {
    .session = {
      .process = {.in = -1, .out = -1, .err = -1},
      .folder = keeper->workspace,
      .tty = (request->flags & KEEPER_EXEC_TTY) != 0,
      .rows = request->rows, .columns = request->columns,
    },
    .single = keeper->single, .timeout_ms = request->timeout_ms,
  };
  struct coffer_process *process = &command.session.process;
  struct block block = {0};
  int r = block_read (keeper, received, &block);

  if (r == 0)
    r = take_streams (received, process);
  if (r == 0 && keeper->single && keeper->next_exec > 0)
    r = EBUSY;                  /* it was made for one */
  if (r == 0) {
    process->argv = block.argv;
    process->env = coffer_strings_view (&block.merged);
    process->cwd = *block.cwd ? block.cwd : keeper->workdir;
    r = keeper_start (keeper, &command, exec);
  }
  block_fini (&block);
  return r;
}

/* -- dispatch ---- */

static void
serve_list (struct keeper *keeper, int fd)
{
  struct keeper_reply last = {.flags = KEEPER_LAST};

  for (size_t i = 0; i < keeper->n_execs; i++)
    reply_exec (fd, keeper->execs[i]);
  reply_with (fd, &last);
}

static int
serve_wait (struct client *client, struct exec *exec)
{
  if (!(exec->reply.flags & KEEPER_EXITED)) {
    client->waits_for = exec->number;
    return 0;
  }
  reply_exec (client->fd, exec);
  exec->collected = 1;
  return -1;
}

/* Requests about one command. */
static int
serve_exec (struct client *client, struct exec *exec,
            const struct keeper_request *request)
{
  struct minder_order order = {.op = MINDER_SIGNAL, .signal = request->signal};
  int r;

  if (request->op == KEEPER_WAIT)
    return serve_wait (client, exec);
  if (request->op == KEEPER_RESIZE)
    order = (struct minder_order) {.op = MINDER_RESIZE, .rows = request->rows,
                                   .columns = request->columns};
  else if (request->signal < 0 || request->signal >= NSIG) {
    keeper_reply_error (client->fd, EINVAL);
    return -1;
  }
  r = exec->reply.flags & KEEPER_EXITED ? ESRCH : keeper_order (exec, &order);
  keeper_reply_error (client->fd, r);
  return -1;
}

static int
serve_sandbox (struct keeper *keeper, struct client *client,
               struct received *received)
{
  struct exec *exec = NULL;
  int r;

  switch (received->request.op) {
  case KEEPER_INFO:
    reply_info (keeper, client->fd);
    return -1;
  case KEEPER_EXEC:
    r = keeper->ending ? ESRCH : start (keeper, received, &exec);
    if (r)
      keeper_reply_error (client->fd, r);
    else
      reply_exec (client->fd, exec);
    return -1;
  case KEEPER_LIST:
    serve_list (keeper, client->fd);
    return -1;
  case KEEPER_EXTEND:
    r = extend (keeper, &received->request);
    if (r)
      keeper_reply_error (client->fd, r);
    else
      reply_info (keeper, client->fd);
    return -1;
  case KEEPER_KILL:
    keeper->ending = 1;
    client->waits_for_end = 1;
    return 0;
  default:
    keeper_reply_error (client->fd, EOPNOTSUPP);
    return -1;
  }
}

int
keeper_serve (struct keeper *keeper, struct client *client)
{
  struct received received;
  struct exec *exec;
  int r = -1;

  if (receive (client->fd, &received) == 0) {
    switch (received.request.op) {
    case KEEPER_WAIT:
    case KEEPER_SIGNAL:
    case KEEPER_RESIZE:
      exec = keeper_find (keeper, received.request.exec);
      if (exec)
        r = serve_exec (client, exec, &received.request);
      else
        keeper_reply_error (client->fd, ENOENT);
      break;
    default:
      r = serve_sandbox (keeper, client, &received);
    }
  }
  received_fini (&received);
  return r;
}
