/* SPDX-License-Identifier: Apache-2.0 */
/* Who makes a sandbox, or clears one away, among the processes of this host: a
 * locked file in the provider's folder, which they share.  A container that
 * never ran and whose maker's lock is free was left by one that has ended. */

#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <coffer/fd.h>
#include <coffer/files.h>

#include "docker.h"

#define FILE_MAX (DOCKER_NAME_MAX + 8)
#define WAIT_NS 10000000

static void
file_name (const char *name, char file[FILE_MAX])
{
  snprintf (file, FILE_MAX, "%s.lock", name);
}

int
docker_is_name (const char *text)
{
  return *text != '\0' && *text != '.' && strlen (text) < DOCKER_NAME_MAX
         && strspn (text, "abcdefghijklmnopqrstuvwxyz0123456789_.-"
                    "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == strlen (text);
}

/* One that was removed since it was opened locks nobody out. */
int
docker_maker_try (const struct docker *docker, const char *name)
{
  char file[FILE_MAX];

  if (!docker_is_name (name)) {
    errno = EINVAL;
    return -1;
  }
  file_name (name, file);
  for (;;) {
    coffer_autoclose int fd = openat (docker->runtime, file,
                                      O_RDWR | O_CREAT | O_CLOEXEC
                                        | O_NOFOLLOW, 0600);
    struct stat st;

    if (fd < 0 || flock (fd, LOCK_EX | LOCK_NB) < 0 || fstat (fd, &st) < 0)
      return -1;
    if (st.st_nlink > 0)
      return coffer_fd_steal (&fd);
  }
}

int32_t
docker_maker_take (struct coffer_call *call, const struct docker *docker,
                   const char *name, int *lock)
{
  while ((*lock = docker_maker_try (docker, name)) < 0) {
    if (errno != EWOULDBLOCK)
      return coffer_fail_errno (call, errno, "the lock of a sandbox");
    if (call->deadline_ns <= coffer_now_ns ())
      return coffer_fail (call, COFFER_TIMEOUT, "another call makes this "
                          "sandbox, and was not done in time");
    if (coffer_wait_fd (call->cancel_fd, POLLIN,
                        coffer_now_ns () + WAIT_NS, -1) > 0)
      return coffer_fail (call, COFFER_CANCELLED, "waiting for a sandbox that "
                          "another call makes");
  }
  return COFFER_OK;
}

void
docker_maker_end (const struct docker *docker, const char *name, int *lock)
{
  char file[FILE_MAX];

  if (*lock < 0)
    return;
  file_name (name, file);
  unlinkat (docker->runtime, file, 0);
  coffer_fd_close (lock);
}
