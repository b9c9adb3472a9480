/* SPDX-License-Identifier: Apache-2.0 */
/* Packets with descriptors.  The peer is a process of the same user, and what
 * it sends is looked at all the same: no descriptor of its stays open that the
 * caller was not given. */

#define _GNU_SOURCE

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <coffer/fd.h>
#include <coffer/packet.h>

#define BACKLOG 64

int
coffer_socket_listen (int folder, const char *name)
{
  coffer_autoclose int fd = coffer_socket_bind (folder, name);

  if (fd < 0 || listen (fd, BACKLOG) < 0)
    return -1;
  return coffer_fd_steal (&fd);
}

int
coffer_socket_accept (int listener)
{
  coffer_autoclose int fd = -1;
  struct ucred peer;
  socklen_t size = sizeof peer;

  do
    fd = accept4 (listener, NULL, NULL, SOCK_CLOEXEC);
  while (fd < 0 && errno == EINTR);
  if (fd < 0 || getsockopt (fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
    return -1;
  if (peer.uid == geteuid () || peer.uid == 0)
    return coffer_fd_steal (&fd);
  errno = EACCES;
  return -1;
}

int
coffer_packet_send (int fd, const void *bytes, size_t size, const int *fds,
                    size_t n_fds)
{
  char control[CMSG_SPACE (COFFER_PACKET_FDS_MAX * sizeof (int))] = {0};
  struct iovec io = {(void *) (uintptr_t) bytes, size};
  struct msghdr message = {.msg_iov = &io, .msg_iovlen = 1};
  struct cmsghdr *c;

  if (n_fds > COFFER_PACKET_FDS_MAX) {
    errno = EINVAL;
    return -1;
  }
  if (n_fds > 0) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE (n_fds * sizeof (int));
    c = CMSG_FIRSTHDR (&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN (n_fds * sizeof (int));
    memcpy (CMSG_DATA (c), fds, n_fds * sizeof (int));
  }
  return coffer_send_message (fd, &message, MSG_NOSIGNAL) < 0 ? -1 : 0;
}

/* Closes what there is no room for.  How many came. */
static size_t
take_fds (struct msghdr *message, int *fds, size_t room)
{
  size_t n = 0, here;
  struct cmsghdr *c;
  int fd;

  for (c = CMSG_FIRSTHDR (message); c; c = CMSG_NXTHDR (message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
      continue;
    here = (c->cmsg_len - CMSG_LEN (0)) / sizeof (int);
    for (size_t i = 0; i < here; i++, n++) {
      memcpy (&fd, CMSG_DATA (c) + i * sizeof fd, sizeof fd);
      if (n < room)
        fds[n] = fd;
      else
        coffer_fd_close (&fd);
    }
  }
  return n;
}

ssize_t
coffer_packet_receive (int fd, void *bytes, size_t size, int *fds,
                       size_t *n_fds)
{
  char control[CMSG_SPACE (COFFER_PACKET_FDS_MAX * sizeof (int))];
  struct iovec io = {bytes, size};
  struct msghdr message = {
    .msg_iov = &io, .msg_iovlen = 1,
    .msg_control = control, .msg_controllen = sizeof control,
  };
  const size_t room = n_fds ? *n_fds : 0;
  size_t came;
  ssize_t n;

  for (size_t i = 0; i < room; i++)
    fds[i] = -1;
  if (n_fds)
    *n_fds = 0;
  do
    n = recvmsg (fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  while (n < 0 && errno == EINTR);
  if (n < 0)
    return -1;
  came = take_fds (&message, fds, room);
  if (came > room || message.msg_flags & MSG_CTRUNC) {
    for (size_t i = 0; i < room; i++)
      coffer_fd_close (&fds[i]);
    errno = EMSGSIZE;
    return -1;
  }
  if (n_fds)
    *n_fds = came;
  return n;
}
