/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of clients, which are processes of the same user: what they send is
 * checked all the same. */

#define _GNU_SOURCE

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "keeper.h"

void
packet_fini (struct packet *packet)
{
  for (size_t i = 0; i < REQUEST_FDS_MAX; i++)
    coffer_fd_close (&packet->fds[i]);
}

static void
take_fds (struct packet *packet, struct msghdr *message)
{
  struct cmsghdr *c;
  size_t n;
  int fd;

  for (c = CMSG_FIRSTHDR (message); c; c = CMSG_NXTHDR (message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
      continue;
    n = (c->cmsg_len - CMSG_LEN (0)) / sizeof (int);
    for (size_t i = 0; i < n; i++) {
      memcpy (&fd, CMSG_DATA (c) + i * sizeof fd, sizeof fd);
      if (packet->n_fds < REQUEST_FDS_MAX)
        packet->fds[packet->n_fds++] = fd;
      else
        coffer_fd_close (&fd);
    }
  }
}

int
packet_receive (int client, struct packet *packet)
{
  char control[CMSG_SPACE (REQUEST_FDS_MAX * sizeof (int))];
  struct iovec io = {&packet->request, sizeof packet->request};
  struct msghdr message = {
    .msg_iov = &io, .msg_iovlen = 1,
    .msg_control = control, .msg_controllen = sizeof control,
  };
  ssize_t n;

  memset (packet, 0, sizeof *packet);
  memset (packet->fds, -1, sizeof packet->fds);
  n = recvmsg (client, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (n < 0)
    return -1;
  take_fds (packet, &message);
  return n == sizeof packet->request && !(message.msg_flags & MSG_CTRUNC)
         && packet->request.size == sizeof packet->request ? 0 : -1;
}

void
reply_send (int client, const struct reply *reply)
{
  struct reply full = *reply;

  full.size = sizeof full;
  send (client, &full, sizeof full, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void
reply_error (int client, int sys_errno)
{
  const struct reply reply = {.error = sys_errno};

  reply_send (client, &reply);
}

int
client_accept (int listener)
{
  coffer_autoclose int fd = accept4 (listener, NULL, NULL, SOCK_CLOEXEC);
  struct ucred peer;
  socklen_t size = sizeof peer;

  if (fd < 0 || getsockopt (fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0
      || (peer.uid != geteuid () && peer.uid != 0))
    return -1;
  return coffer_fd_steal (&fd);
}
