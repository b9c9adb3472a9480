/* SPDX-License-Identifier: Apache-2.0 */
/* Finding a sandbox's folder, and asking its keeper or a minder in it. */

#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <poll.h>

#include <coffer/fd.h>
#include <coffer/files.h>
#include <coffer/packet.h>
#include <coffer/path.h>
#include <coffer/spec.h>

#include "reference.h"

/* A keeper that has gone leaves a socket to which nobody can connect. */
int
sandbox_open (const struct reference *self, const char *sandbox)
{
  coffer_autoclose int folder = -1, connection = -1;

  if (!coffer_id_is_valid (sandbox)) {
    errno = ENOENT;             /* no sandbox has such a name */
    return -1;
  }
  folder = coffer_open_beneath (self->runtime, sandbox,
                                O_RDONLY | O_DIRECTORY, 0);
  if (folder < 0)
    return -1;
  connection = coffer_socket_connect (folder, KEEPER_SOCKET, 0);
  if (connection < 0) {
    errno = errno == ECONNREFUSED ? ENOENT : errno;
    return -1;
  }
  return coffer_fd_steal (&folder);
}

int
request_send (int connection, struct request *request, const int *fds,
              size_t n_fds)
{
  request->size = sizeof *request;
  return coffer_packet_send (connection, request, sizeof *request, fds, n_fds);
}

int
reply_receive (struct coffer_call *call, int connection, struct reply *reply)
{
  ssize_t n;

  if (coffer_wait_fd (connection, POLLIN, call->deadline_ns, call->cancel_fd)
      != 1)
    return -1;
  n = coffer_packet_receive (connection, reply, sizeof *reply, NULL, NULL);
  if (n != sizeof *reply) {
    if (n >= 0)
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
ask (struct coffer_call *call, int folder, const char *socket,
     struct request *request, const int *fds, size_t n_fds,
     struct reply *reply)
{
  coffer_autoclose int connection = coffer_socket_connect (folder, socket, 0);

  if (connection < 0 || request_send (connection, request, fds, n_fds) < 0)
    return -1;
  return reply_receive (call, connection, reply);
}

int32_t
fail_sandbox (struct coffer_call *call, int sys_errno)
{
  /* A keeper that is gone between two looks is a sandbox that is gone. */
  if (sys_errno == ENOENT || sys_errno == ECONNREFUSED
      || sys_errno == ECONNRESET || sys_errno == EPIPE)
    return coffer_fail (call, COFFER_NOT_FOUND, "no such sandbox");
  if (sys_errno == ESTALE)
    return coffer_fail (call, COFFER_CONFLICT, "the sandbox is paused: resume "
                        "it first");
  return coffer_fail_errno (call, sys_errno, "the sandbox");
}

int32_t
ask_keeper (struct coffer_call *call, const struct reference *self,
            const char *sandbox, struct request *request, struct reply *reply)
{
  coffer_autoclose int folder = sandbox_open (self, sandbox);

  if (folder < 0 || ask (call, folder, KEEPER_SOCKET, request, NULL, 0, reply)
                    < 0)
    return fail_sandbox (call, errno);
  return COFFER_OK;
}

int
file_load (int folder, const char *name, void *bytes, size_t size)
{
  coffer_autoclose int fd = openat (folder, name, O_RDONLY | O_CLOEXEC
                                    | O_NOFOLLOW);

  if (fd < 0)
    return -1;
  if (coffer_read_all (fd, bytes, size) == (ssize_t) size)
    return 0;
  errno = EPROTO;
  return -1;
}
