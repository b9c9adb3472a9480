/* SPDX-License-Identifier: Apache-2.0 */
/* Moving a finished tree to where it belongs, over what is there.  Each step is
 * one rename and can be taken back by another: a folder or file that is new
 * moves, a file that replaces one changes places with it. */

#define _GNU_SOURCE

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <coffer/buffer.h>
#include <coffer/fd.h>
#include <coffer/path.h>

#include "archive.h"

struct merge {
  int from, to;
  struct coffer_strings done;   /* paths, "+" moved or "=" changed places */
};

/* Both parents of a path, and its last component. */
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
  return renameat2 (from_dir, name, to_dir, name, flags);
}

static void
take_back (struct merge *merge)
{
  for (size_t i = merge->done.count; i-- > 0;)
    move (merge, merge->done.items[i] + 1, 1,
          merge->done.items[i][0] == '=' ? RENAME_EXCHANGE : RENAME_NOREPLACE);
}

static int
note (struct merge *merge, char kind, const char *path)
{
  coffer_strings_printf (&merge->done, "%c%s", kind, path);
  if (!merge->done.failed)
    return 0;
  errno = ENOMEM;
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

  if (stat_of (merge->from, path, &new) < 0)
    return -1;
  if (stat_of (merge->to, path, &old) < 0) {
    if (errno != ENOENT || move (merge, path, 0, RENAME_NOREPLACE) < 0)
      return -1;
    return note (merge, '+', path);
  }
  if (S_ISDIR (new.st_mode) && S_ISDIR (old.st_mode))
    return merge_folder (merge, path);
  if (S_ISDIR (new.st_mode) || S_ISDIR (old.st_mode)) {
    errno = S_ISDIR (old.st_mode) ? EISDIR : ENOTDIR;
    return -1;
  }
  if (move (merge, path, 0, RENAME_EXCHANGE) < 0)
    return -1;
  return note (merge, '=', path);
}

/* The names first: the folder changes on the way. */
static int
read_names (int root, const char *path, struct coffer_strings *names)
{
  int fd = coffer_open_beneath (root, path, O_RDONLY | O_DIRECTORY, 0);
  DIR *stream = fd < 0 ? NULL : fdopendir (fd);
  struct dirent *entry;

  if (!stream) {
    coffer_fd_close (&fd);
    return -1;
  }
  while ((entry = readdir (stream)))
    if (strcmp (entry->d_name, ".") != 0 && strcmp (entry->d_name, "..") != 0)
      coffer_strings_printf (names, "%s/%s", path, entry->d_name);
  closedir (stream);
  if (!names->failed)
    return 0;
  errno = ENOMEM;
  return -1;
}

/* No deeper than what was unpacked, which has a cap. */
static int
merge_folder (struct merge *merge, const char *path)
{
  coffer_autostrings struct coffer_strings names = {0};

  if (read_names (merge->from, path, &names) < 0)
    return -1;
  for (size_t i = 0; i < names.count; i++)
    if (merge_entry (merge, names.items[i]) < 0)
      return -1;
  return 0;
}

int
tree_merge (int from, int to)
{
  struct merge merge = {.from = from, .to = to};
  int r = merge_folder (&merge, "."), keep = errno;

  if (r < 0)
    take_back (&merge);
  coffer_strings_free (&merge.done);
  errno = keep;
  return r;
}
