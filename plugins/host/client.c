/* SPDX-License-Identifier: Apache-2.0 */
/* Finding a sandbox's folder and talking to its keeper. */

#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <unistd.h>

#include <coffer/buffer.h>
#include <coffer/fd.h>
#include <coffer/files.h>
#include <coffer/path.h>

#include "host.h"

int
sandbox_name_is_valid (const char *sandbox)
{
  static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
  size_t size = sandbox ? strlen (sandbox) : 0;

  return size > 0 && size <= 64 && sandbox[0] != '.' &&
         strspn (sandbox, allowed) == size;
}

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

int
sandbox_open (const struct host *host, const char *sandbox)
{
  coffer_autoclose int folder = -1;

  if (!sandbox_name_is_valid (sandbox)) {
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
  char control[CMSG_SPACE (KEEPER_FDS_MAX * sizeof (int))] = {0};
  struct iovec io = {request, sizeof *request};
  struct msghdr message = {.msg_iov = &io, .msg_iovlen = 1};
  struct cmsghdr *c;
  ssize_t n;

  request->size = sizeof *request;
  request->protocol = KEEPER_PROTOCOL;
  if (n_fds > 0) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE (n_fds * sizeof (int));
    c = CMSG_FIRSTHDR (&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN (n_fds * sizeof (int));
    memcpy (CMSG_DATA (c), fds, n_fds * sizeof (int));
  }
  n = coffer_send_message (connection, &message, MSG_NOSIGNAL);
  return n < 0 ? -1 : 0;
}

int
keeper_receive (int connection, struct keeper_reply *reply,
                int64_t deadline_ns, int cancel_fd)
{
  ssize_t n;

  memset (reply, 0, sizeof *reply);
  if (coffer_wait_fd (connection, POLLIN, deadline_ns, cancel_fd) != 1)
    return -1;
  do
    n = recv (connection, reply, sizeof *reply, 0);
  while (n < 0 && errno == EINTR);
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
      sys_errno == EPIPE || !sandbox_name_is_valid (sandbox))
    sys_errno = ENOENT;
  if (sys_errno == ENOENT)
    return coffer_fail (call, COFFER_NOT_FOUND, "no such sandbox");
  coffer_buffer_printf (&text, "sandbox %s", sandbox);
  return coffer_fail_errno (call, sys_errno,
                            text.failed ? "sandbox" : text.data);
}
