/* SPDX-License-Identifier: Apache-2.0 */
/* What is not whole yet, beside where it belongs, in a file or folder .coffer-….
 *
 * Who makes one holds a lock on it for as long as it works.  One that nobody holds
 * was left by somebody that was killed: it is in no archive, and whoever next walks
 * over it takes it away.  Where there are no locks it stays. */

#define _GNU_SOURCE

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <coffer/fd.h>
#include <coffer/path.h>

#include "internal.h"

#define BEGIN ".coffer-"
#define DIGITS 16

int
path_hold (int fd)
{
  struct stat st;

  if (flock (fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
    return -1;
  if (fstat (fd, &st) < 0 || st.st_nlink > 0)
    return 0;
  errno = EWOULDBLOCK;          /* it was taken for left before it was held */
  return -1;
}

static int
is_temporary (const char *name, size_t size)
{
  return size == strlen (BEGIN) + DIGITS
         && memcmp (name, BEGIN, strlen (BEGIN)) == 0
         && strspn (name + strlen (BEGIN), "0123456789abcdef") >= DIGITS;
}

int
path_has_temporary (const char *path, mode_t mode)
{
  size_t size;

  for (; *path; path += size + (path[size] == '/')) {
    size = strcspn (path, "/");
    if (is_temporary (path, size)
        && (path[size] == '/' || S_ISREG (mode) || S_ISDIR (mode)))
      return 1;
  }
  return 0;
}

static int
is_named (int dir, const char *name, int fd)
{
  struct stat named, held;

  return fstat (fd, &held) == 0
         && fstatat (dir, name, &named, AT_SYMLINK_NOFOLLOW) == 0
         && named.st_dev == held.st_dev && named.st_ino == held.st_ino;
}

int
path_sweep_one (struct coffer_call *call, int dir, const char *name,
                mode_t mode)
{
  coffer_autoclose int fd = -1;

  if (!is_temporary (name, strlen (name))
      || !(S_ISREG (mode) || S_ISDIR (mode)))
    return 0;
  fd = openat (dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  return fd >= 0 && flock (fd, LOCK_EX | LOCK_NB) == 0
         && is_named (dir, name, fd)
         && path_remove (dir, name, 1, call->deadline_ns, call->cancel_fd,
                         NULL) == 0;
}

void
path_sweep (struct coffer_call *call, int folder)
{
  int fd = openat (folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *stream = fd < 0 ? NULL : fdopendir (fd);
  struct dirent *entry;
  struct stat st;

  if (!stream)
    coffer_fd_close (&fd);
  while (stream && (entry = readdir (stream)))
    if (is_temporary (entry->d_name, strlen (entry->d_name))
        && fstatat (fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
      path_sweep_one (call, fd, entry->d_name, st.st_mode);
  if (stream)
    closedir (stream);
}
