/* SPDX-License-Identifier: Apache-2.0 */
/* From descriptors to names and back, by way of /proc/self/fd. */

#define _GNU_SOURCE

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <coffer/fd.h>

char *
coffer_fd_path (int fd)
{
  char link[32], path[PATH_MAX];
  struct stat st;
  ssize_t n;

  snprintf (link, sizeof link, "/proc/self/fd/%d", fd);
  n = readlink (link, path, sizeof path);
  if (n < 0 || fstat (fd, &st) < 0)
    return NULL;
  if ((size_t) n == sizeof path) {
    errno = ENAMETOOLONG;
    return NULL;
  }
  if (n == 0 || path[0] != '/' || st.st_nlink == 0) {
    errno = ENOENT;
    return NULL;
  }
  return strndup (path, (size_t) n);
}

static int
socket_address (struct sockaddr_un *address, int folder, const char *name)
{
  int n;

  memset (address, 0, sizeof *address);
  address->sun_family = AF_UNIX;
  n = snprintf (address->sun_path, sizeof address->sun_path,
                "/proc/self/fd/%d/%s", folder, name);
  if (n >= 0 && (size_t) n < sizeof address->sun_path)
    return 0;
  errno = ENAMETOOLONG;
  return -1;
}

int
coffer_socket_bind (int folder, const char *name)
{
  struct sockaddr_un address;
  coffer_autoclose int fd = socket (AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

  if (fd < 0 || socket_address (&address, folder, name) < 0 ||
      bind (fd, (struct sockaddr *) &address, sizeof address) < 0)
    return -1;
  return coffer_fd_steal (&fd);
}

int
coffer_socket_connect (int folder, const char *name, int flags)
{
  struct sockaddr_un address;
  coffer_autoclose int fd
    = socket (AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0);

  if (fd < 0 || socket_address (&address, folder, name) < 0)
    return -1;
  while (connect (fd, (struct sockaddr *) &address, sizeof address) < 0)
    if (errno != EINTR)
      return -1;
  return coffer_fd_steal (&fd);
}
