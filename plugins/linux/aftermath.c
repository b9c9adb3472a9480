/* SPDX-License-Identifier: Apache-2.0 */
/* Not to wait for what the kernel takes down after the last process.
 *
 * An init that ends has first to take its mounts down, some tenth of what a
 * command in a sandbox of its own takes in all, and only then is it seen to be
 * gone.  While somebody else still has its namespace of mounts, all in the
 * sandbox is dead and gone without that; and what is in the queue of a socket
 * that nobody can reach any more is closed by the kernel, at its leisure. */

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "spawn.h"

/* An instance that has made a sandbox before lives on, and waits for nothing.
 * With something of the caller's inside it is waited for: a file system in a
 * file is whole only when it was taken down. */
void
aftermath_expect (struct making *making)
{
  struct linux_provider *self = making->self;
  int first;

  pthread_mutex_lock (&self->lock);
  first = self->spare.creations == 0;
  pthread_mutex_unlock (&self->lock);
  if (first && making->spec->single_exec && making->n_mounts == 0)
    making->mount_ns = openat (making->proc, "ns/mnt", O_RDONLY | O_CLOEXEC);
}

/* In a packet that lies in the queue of its own socket. */
static void
pair_strand (const int pair[2], int fd)
{
  const int fds[2] = { pair[0], fd };
  char byte = 0;
  struct iovec iov = { &byte, 1 };
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE (sizeof fds)];
  } rights;
  const struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1,
                                  .msg_control = &rights,
                                  .msg_controllen = sizeof rights };

  memset (&rights, 0, sizeof rights);
  rights.header.cmsg_level = SOL_SOCKET;
  rights.header.cmsg_type = SCM_RIGHTS;
  rights.header.cmsg_len = CMSG_LEN (sizeof fds);
  memcpy (CMSG_DATA (&rights.header), fds, sizeof fds);
  coffer_send_message (pair[1], &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Where that is refused, closing it here takes them down. */
void
aftermath_leave (int *mount_ns)
{
  int pair[2];

  if (*mount_ns < 0)
    return;
  if (socketpair (AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0) {
    pair_strand (pair, *mount_ns);
    coffer_fd_close (mount_ns);
    close (pair[0]);
    close (pair[1]);
  }
  coffer_fd_close (mount_ns);
}
