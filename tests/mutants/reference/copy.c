/* SPDX-License-Identifier: Apache-2.0 */
/* Copying a tree of files, by descriptor: no link is followed on the way. */

#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <coffer/fd.h>
#include <coffer/path.h>

#include "reference.h"

#define DEPTH_MAX 128

struct copy {
  struct coffer_call *call;
  int from, to;
  uint64_t bytes;
};

static int
copy_file (struct copy *copy, const char *path, const struct stat *st)
{
  coffer_autoclose int from = coffer_open_regular (copy->from, path, NULL);
  coffer_autoclose int to = -1;
  const struct timespec times[2] = {st->st_atim, st->st_mtim};
  uint64_t copied;

  if (from < 0)
    return errno == ENOENT ? 0 : -1;    /* removed meanwhile */
  to = coffer_open_beneath (copy->to, path, O_WRONLY | O_CREAT | O_EXCL, 0600);
  if (to < 0
      || coffer_copy (from, to, 0, copy->call->deadline_ns,
                      copy->call->cancel_fd, &copied) < 0
      || fchmod (to, st->st_mode & 0777) < 0 || futimens (to, times) < 0)
    return -1;
  copy->bytes += copied;
  return 0;
}

static int
copy_link (struct copy *copy, const char *path, int dir, const char *name)
{
  coffer_autoclose int parent = -1;
  char target[PATH_MAX];
  const char *last;
  ssize_t n = readlinkat (dir, name, target, sizeof target - 1);

  if (n < 0)
    return errno == ENOENT ? 0 : -1;
  target[n] = '\0';
  parent = coffer_open_parent (copy->to, path, 0, &last);
  return parent < 0 ? -1 : symlinkat (target, parent, last);
}

static int
copy_entry (void *data, const char *path, int dir, const char *name,
            const struct stat *st)
{
  struct copy *copy = data;

  if (S_ISDIR (st->st_mode))
    return coffer_mkdir_beneath (copy->to, path, (st->st_mode & 0777) | 0700,
                                 0);
  if (S_ISREG (st->st_mode))
    return copy_file (copy, path, st);
  return S_ISLNK (st->st_mode) ? copy_link (copy, path, dir, name) : 0;
}

int
tree_copy (struct coffer_call *call, int from, int to, uint64_t *bytes)
{
  struct copy copy = {.call = call, .from = from, .to = to};
  int r = coffer_walk (from, "/", DEPTH_MAX, copy_entry, &copy);

  *bytes = copy.bytes;
  return r;
}
