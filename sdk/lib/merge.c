/* SPDX-License-Identifier: Apache-2.0 */
/* Moving a finished tree to where it belongs, over what is there.  Each step is
 * one rename and can be taken back by another: a folder or file that is new
 * moves, a file that replaces one changes places with it. */

#define _GNU_SOURCE

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <coffer/buffer.h>
#include <coffer/fd.h>
#include <coffer/path.h>

#include "internal.h"
#include "tar.h"

struct merge {
  struct coffer_call *call;
  int from, to;
  size_t seen;
  struct coffer_strings done;   /* paths, "+" moved or "=" changed places */
};

/* For a kernel that cannot exchange (gVisor's), by way of a third name: for a
 * moment there is none, and when it fails, what was there is put back. */
static int
exchange (int from_dir, int to_dir, const char *name)
{
  char aside[32];
  int keep;

  if (path_temporary (aside, sizeof aside) < 0
      || renameat (to_dir, name, from_dir, aside) < 0)
    return -1;
  if (renameat (from_dir, name, to_dir, name) == 0
      && renameat (from_dir, aside, from_dir, name) == 0)
    return 0;
  keep = errno;
  renameat (from_dir, aside, to_dir, name);
  errno = keep;
  return -1;
}

/* Both parents of a path, and its last component.  What is mounted elsewhere
 * the kernel would take down with the name. */
static int
move (const struct merge *merge, const char *path, int back, unsigned flags)
{
  int from = back ? merge->to : merge->from;
  int to = back ? merge->from : merge->to;
  coffer_autoclose int from_dir = -1, to_dir = -1;
  const char *name;

  from_dir = coffer_open_parent (from, path, 0, &name);
  if (from_dir >= 0)
    to_dir = coffer_open_parent (to, path, 0, &name);
  if (from_dir < 0 || to_dir < 0)
    return -1;
  if (path_is_mounted (from_dir, name) || path_is_mounted (to_dir, name)) {
    errno = EBUSY;
    return -1;
  }
  if (renameat2 (from_dir, name, to_dir, name, flags) == 0)
    return 0;
  if (errno == EINVAL && (flags & RENAME_EXCHANGE))
    return exchange (from_dir, to_dir, name);
  if (errno == EINVAL)
    errno = EOPNOTSUPP;
  return -1;
}

/* How much stays. */
static size_t
take_back (struct merge *merge)
{
  size_t left = 0;

  for (size_t i = merge->done.count; i-- > 0;)
    left += move (merge, merge->done.items[i] + 1, 1,
                  merge->done.items[i][0] == '=' ? RENAME_EXCHANGE
                                                 : RENAME_NOREPLACE) < 0;
  return left;
}

/* Noted first: what cannot be noted is not done. */
static int
move_noted (struct merge *merge, char kind, const char *path)
{
  char *last;

  coffer_strings_printf (&merge->done, "%c%s", kind, path);
  if (merge->done.failed) {
    errno = ENOMEM;
    return -1;
  }
  if (move (merge, path, 0, kind == '=' ? RENAME_EXCHANGE : RENAME_NOREPLACE)
      == 0)
    return 0;
  last = merge->done.items[merge->done.count - 1];
  merge->done.items[--merge->done.count] = NULL;
  free (last);
  return -1;
}

static int merge_folder (struct merge *merge, const char *path);

static int
stat_of (int root, const char *path, struct stat *st)
{
  coffer_autoclose int fd = coffer_open_beneath (root, path, O_PATH, 0);

  return fd < 0 ? -1 : fstat (fd, st);
}

static int
merge_entry (struct merge *merge, const char *path)
{
  struct stat old, new;

  if (path_check (merge->call->deadline_ns, merge->call->cancel_fd) < 0
      || stat_of (merge->from, path, &new) < 0)
    return -1;
  if (stat_of (merge->to, path, &old) < 0)
    return errno != ENOENT ? -1 : move_noted (merge, '+', path);
  if (S_ISDIR (new.st_mode) && S_ISDIR (old.st_mode))
    return merge_folder (merge, path);
  if (S_ISDIR (new.st_mode) || S_ISDIR (old.st_mode)) {
    errno = S_ISDIR (old.st_mode) ? EISDIR : ENOTDIR;
    return -1;
  }
  return move_noted (merge, '=', path);
}

/* The names first: the folder changes on the way.  Whoever may write there may
 * add to what was unpacked, but not without an end. */
static int
read_names (struct merge *merge, const char *path,
            struct coffer_strings *names)
{
  int fd = coffer_open_beneath (merge->from, path, O_RDONLY | O_DIRECTORY, 0);
  DIR *stream = fd < 0 ? NULL : fdopendir (fd);
  struct dirent *entry;

  if (!stream) {
    coffer_fd_close (&fd);
    return -1;
  }
  while (merge->seen <= TAR_ENTRIES_MAX && (entry = readdir (stream)))
    if (strcmp (entry->d_name, ".") != 0 && strcmp (entry->d_name, "..") != 0) {
      coffer_strings_printf (names, "%s/%s", path, entry->d_name);
      merge->seen++;
    }
  closedir (stream);
  if (!names->failed && merge->seen <= TAR_ENTRIES_MAX)
    return 0;
  errno = names->failed ? ENOMEM : EFBIG;
  return -1;
}

static int
merge_folder (struct merge *merge, const char *path)
{
  coffer_autostrings struct coffer_strings names = {0};

  if (path_depth (path) > TAR_DEPTH_MAX + 1) {  /* nothing that was unpacked */
    errno = EFBIG;
    return -1;
  }
  if (read_names (merge, path, &names) < 0)
    return -1;
  for (size_t i = 0; i < names.count; i++)
    if (merge_entry (merge, names.items[i]) < 0)
      return -1;
  return 0;
}

int
tree_merge (struct coffer_call *call, int from, int to, size_t *left)
{
  struct merge merge = {.call = call, .from = from, .to = to};
  int r = merge_folder (&merge, "."), keep = errno;

  if (r < 0)
    *left = take_back (&merge);
  coffer_strings_free (&merge.done);
  errno = keep;
  return r;
}
