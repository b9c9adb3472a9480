/* SPDX-License-Identifier: Apache-2.0 */
/* Finding a sandbox's folder and talking to its keeper. */

#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include <coffer/buffer.h>
#include <coffer/fd.h>
#include <coffer/files.h>
#include <coffer/packet.h>
#include <coffer/path.h>
#include <coffer/spec.h>

#include "host.h"

#define LEAVE_NS (INT64_C (5) * 1000000000)
#define LOOK_NS (INT64_C (2) * 1000000)

/* A shared lock is had only where no keeper has its own.  It is dropped at
 * once with the descriptor. */
int
sandbox_is_held (int folder)
{
  coffer_autoclose int own = openat (folder, ".", O_RDONLY | O_DIRECTORY |
                                     O_CLOEXEC);

  return own >= 0 && flock (own, LOCK_SH | LOCK_NB) < 0 &&
         errno == EWOULDBLOCK;
}

/* A keeper that is killed closes what it has open in no order: who finds its
 * socket closed may find its lock held, for as long as the machine has other
 * work. */
int
sandbox_is_left (const struct coffer_call *call, int folder, int sys_errno)
{
  int64_t now = coffer_now_ns (), until = now + LEAVE_NS;

  if (sys_errno != ECONNREFUSED && sys_errno != ECONNRESET
      && sys_errno != EPIPE)
    return 0;
  if (until > call->deadline_ns)
    until = call->deadline_ns;
  while (sandbox_is_held (folder)) {
    now = coffer_now_ns ();
    if (now >= until
        || coffer_wait_fd (call->cancel_fd, POLLIN, now + LOOK_NS, -1) > 0)
      return 0;
  }
  return 1;
}

int
sandbox_open (const struct host *host, const char *sandbox)
{
  coffer_autoclose int folder = -1;

  if (!coffer_id_is_valid (sandbox)) {
    errno = ENOENT;             /* no sandbox has such a name */
    return -1;
  }
  folder = coffer_open_beneath (host->runtime, sandbox,
                                O_RDONLY | O_DIRECTORY, 0);
  if (folder < 0)
    return -1;
  if (!sandbox_is_held (folder)) {
    errno = ENOENT;
    return -1;
  }
  return coffer_fd_steal (&folder);
}

int
keeper_connect (int folder)
{
  return coffer_socket_connect (folder, KEEPER_SOCKET, 0);
}

int
keeper_send (int connection, struct keeper_request *request, const int *fds,
             size_t n_fds)
{
  request->size = sizeof *request;
  request->protocol = KEEPER_PROTOCOL;
  return coffer_packet_send (connection, request, sizeof *request, fds, n_fds);
}

int
keeper_receive (int connection, struct keeper_reply *reply,
                int64_t deadline_ns, int cancel_fd)
{
  ssize_t n;

  memset (reply, 0, sizeof *reply);
  if (coffer_wait_fd (connection, POLLIN, deadline_ns, cancel_fd) != 1)
    return -1;
  n = coffer_packet_receive (connection, reply, sizeof *reply, NULL, NULL);
  if (n < 0)
    return -1;
  if (n < 16 || reply->protocol != KEEPER_PROTOCOL) {
    errno = n == 0 ? ECONNRESET : EPROTO;
    return -1;
  }
  if (reply->error) {
    errno = reply->error;
    return -1;
  }
  return 0;
}

int
keeper_ask (struct coffer_call *call, int folder,
            struct keeper_request *request, const int *fds, size_t n_fds,
            struct keeper_reply *reply)
{
  coffer_autoclose int connection = keeper_connect (folder);

  if (connection < 0 || keeper_send (connection, request, fds, n_fds) < 0)
    return -1;
  return keeper_receive (connection, reply, call->deadline_ns,
                         call->cancel_fd);
}

int32_t
fail_sandbox (struct coffer_call *call, int sys_errno, const char *sandbox)
{
  coffer_autobuffer struct coffer_buffer text = {0};

  /* A keeper that is gone between two looks is a sandbox that is gone. */
  if (sys_errno == ECONNREFUSED || sys_errno == ECONNRESET ||
      sys_errno == EPIPE || !coffer_id_is_valid (sandbox))
    sys_errno = ENOENT;
  if (sys_errno == ENOENT)
    return coffer_fail (call, COFFER_NOT_FOUND, "no such sandbox");
  coffer_buffer_printf (&text, "sandbox %s", sandbox);
  return coffer_fail_errno (call, sys_errno,
                            text.failed ? "sandbox" : text.data);
}
