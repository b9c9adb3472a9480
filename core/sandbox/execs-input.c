/* SPDX-License-Identifier: Apache-2.0 */
/* What a command in the background is given while it runs: bytes, the end of
 * them, the size of its terminal. */

#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "sandbox/execs-private.h"
#include "sandbox/request.h"
#include "sandbox/terminal.h"

#define TERMINAL_EOF "\004"
#define SIZE_MAX_CELLS 4096

static int
unknown (struct execs *execs, const char *sandbox, const char *exec,
         struct error **err)
{
  auto_exec_log struct exec_log *log = NULL;

  if (exec_log_find (execs->logs, sandbox, exec, &log, err) < 0)
    return -1;
  return error_set (err, E_SANDBOX_STATE, 0, "command %.64s has ended", exec);
}

static int
input_fd (const struct live_exec *live)
{
  return live->fds[live->tty ? KEEPER_MASTER : KEEPER_IN];
}

/* A copy to write to, for one writer at a time: the pump does not wait for who
 * waits for a client. */
static int
writer_begin (struct live_exec *live, int *out, struct error **err)
{
  int fd, r = 0;

  pthread_mutex_lock (&live->input_lock);
  fd = input_fd (live);
  if (live->writing)
    r = error_set (err, E_BUSY, 0, "something else is being written to %s",
                   live->log->exec);
  else if (fd < 0)
    r = error_set (err, E_SANDBOX_STATE, 0,
                   "command %s has no standard input that is open",
                   live->log->exec);
  else if ((*out = fcntl (fd, F_DUPFD_CLOEXEC, 3)) < 0)
    r = error_set (err, E_IO, errno, "the standard input of %s",
                   live->log->exec);
  else
    live->writing = 1;
  pthread_mutex_unlock (&live->input_lock);
  return r;
}

static void
writer_end (struct live_exec *live, int *fd)
{
  pthread_mutex_lock (&live->input_lock);
  coffer_fd_close (fd);
  live->writing = 0;
  pthread_mutex_unlock (&live->input_lock);
}

/* Waits for bytes, or notices that nobody will ever read them.  1: there is
 * something to read, or the end: who has read all and left has missed nothing. */
static int
source_wait (int from, int to, int cancel_fd)
{
  struct pollfd fds[] = { { .fd = from, .events = POLLIN },
                          { .fd = cancel_fd, .events = POLLIN },
                          { .fd = to } };

  while (poll (fds, 3, -1) < 0)
    if (errno != EINTR)
      return -1;
  if (fds[1].revents)
    errno = ECANCELED;
  else if (!fds[0].revents && (fds[2].revents & (POLLERR | POLLNVAL)))
    errno = EPIPE;
  else
    return 1;
  return -1;
}

static int
give (int to, const char *bytes, size_t size, int cancel_fd,
      uint64_t *written)
{
  ssize_t n;

  while (size > 0) {
    if (coffer_wait_fd (to, POLLOUT, INT64_MAX, cancel_fd) != 1)
      return -1;
    n = write (to, bytes, size);
    if (n < 0 && errno != EAGAIN && errno != EINTR)
      return -1;
    if (n > 0) {
      bytes += n;
      size -= (size_t) n;
      *written += (uint64_t) n;
    }
  }
  return 0;
}

static int
pass_on (int from, int to, int cancel_fd, uint64_t *written)
{
  coffer_unfilled char bytes[16384];
  ssize_t n;

  for (;;) {
    if (source_wait (from, to, cancel_fd) < 0)
      return -1;
    n = read (from, bytes, sizeof bytes);
    if (n == 0)
      return 0;
    if (n < 0 && errno != EAGAIN && errno != EINTR)
      return -1;
    if (n > 0 && give (to, bytes, (size_t) n, cancel_fd, written) < 0)
      return -1;
  }
}

int
execs_write (struct execs *execs, const char *sandbox, const char *exec,
             int from, int cancel_fd, uint64_t *written, struct error **err)
{
  struct live_exec *live = live_find (execs, sandbox, exec);
  uint64_t bytes = 0;
  int to = -1, r;

  if (!live)
    return unknown (execs, sandbox, exec, err);
  r = writer_begin (live, &to, err);
  if (r == 0) {
    r = pass_on (from, to, cancel_fd, &bytes);
    if (r < 0 && errno == EPIPE)
      error_set (err, E_SANDBOX_STATE, 0,
                 "command %.64s takes no more of its standard input", exec);
    else if (r < 0 && errno == ECANCELED)
      error_set (err, E_EXEC_CANCELLED, 0, "left after %llu bytes",
                 (unsigned long long) bytes);
    else if (r < 0)
      error_set (err, E_IO, errno, "the standard input of %.64s", exec);
    if (r < 0)
      error_detail (err, "written", json_integer ((json_int_t) bytes));
    writer_end (live, &to);
  }
  live_unref (execs, live);
  if (r == 0)
    *written = bytes;
  return r;
}

static int
input_close (struct execs *execs, struct live_exec *live, struct error **err)
{
  int fd, r = 0;

  pthread_mutex_lock (&live->input_lock);
  fd = input_fd (live);
  if (live->writing)
    r = error_set (err, E_BUSY, 0, "something is being written to %s",
                   live->log->exec);
  else if (fd >= 0 && live->tty
           && write (fd, TERMINAL_EOF, 1) < 0)
    r = error_set (err, E_IO, errno, "the terminal of %s", live->log->exec);
  else if (!live->tty)
    coffer_fd_close (&live->fds[KEEPER_IN]);
  pthread_mutex_unlock (&live->input_lock);
  if (r == 0 && !live->tty)
    keeper_tell (execs, live, KEEPER_FORGET_IN);
  return r;
}

int
execs_close_input (struct execs *execs, const char *sandbox,
                   const char *exec, const struct provider_call *call,
                   struct error **err)
{
  struct live_exec *live = live_find (execs, sandbox, exec);
  struct provider *provider;
  int r;

  if (!live)
    return unknown (execs, sandbox, exec, err);
  /* Where its pipe ends elsewhere, the provider ends it; then ours is closed. */
  r = host_provider_of (execs->options.host, live->provider, sandbox,
                        &provider, err);
  if (r == 0 && !live->tty)
    r = INVOKE (provider, call, err, exec_stdin_close, .sandbox = sandbox,
                .exec = exec);
  if (r == 0)
    r = input_close (execs, live, err);
  live_unref (execs, live);
  return r;
}

int
execs_resize (struct execs *execs, const char *sandbox, const char *exec,
              uint32_t rows, uint32_t columns,
              const struct provider_call *call, struct error **err)
{
  struct live_exec *live = live_find (execs, sandbox, exec);
  struct provider *provider;
  int r = 0;

  if (rows < 1 || rows > SIZE_MAX_CELLS || columns < 1
      || columns > SIZE_MAX_CELLS)
    r = error_set (err, E_INVALID, 0, "rows and columns: 1 to %d",
                   SIZE_MAX_CELLS);
  else if (!live)
    return unknown (execs, sandbox, exec, err);
  else if (!live->tty)
    r = error_set (err, E_SANDBOX_STATE, 0, "command %.64s has no terminal",
                   exec);
  if (r == 0)
    r = host_provider_of (execs->options.host, live->provider, sandbox,
                        &provider, err);
  if (r == 0) {
    pthread_mutex_lock (&live->input_lock);
    if (live->fds[KEEPER_MASTER] >= 0)
      terminal_resize (live->fds[KEEPER_MASTER], rows, columns);
    pthread_mutex_unlock (&live->input_lock);
    r = INVOKE (provider, call, err, exec_resize, .sandbox = sandbox,
                .exec = exec, .rows = rows, .columns = columns);
  }
  if (live)
    live_unref (execs, live);
  return r;
}
