/* SPDX-License-Identifier: Apache-2.0 */
/* `-w DIR|FILE[:rw]` and `-v SRC:DST[:ro]`. */

#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/text.h"
#include "cli/spec.h"

/* Absolute, and otherwise as written: what it leads to is found when it is
 * opened, once. */
static char *
absolute (const char *path)
{
  char cwd[PATH_MAX];

  if (path[0] == '/')
    return strdup (path);
  if (!getcwd (cwd, sizeof cwd))
    return NULL;
  if (!strcmp (path, "."))
    return strdup (cwd);
  return text_printf ("%s/%s", cwd, path);
}

static int
take_suffix (char *word, const char *suffix)
{
  size_t length = strlen (word), tail = strlen (suffix);

  if (length <= tail || strcmp (word + length - tail, suffix))
    return 0;
  word[length - tail] = 0;
  return 1;
}

/* The last ":/" of the word: everything before it is the source. */
static char *
find_target (char *word)
{
  char *at, *found = NULL;

  for (at = word; (at = strstr (at, ":/")); at += 2)
    found = at;
  return found;
}

/* A workspace in a file: one that is still empty, or that holds an ext4 file
 * system.  Its provider judges it; this only tells a slip of the pen. */
static int
is_image (const char *path, const struct stat *st)
{
  unsigned char magic[2] = { 0, 0 };
  coffer_autoclose int fd = -1;

  if (!S_ISREG (st->st_mode))
    return 0;
  if (st->st_size == 0)
    return 1;
  fd = open (path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0)
    return 0;
  /* Who makes or shows one has it locked, and until it is made it looks like
   * any other file. */
  if (flock (fd, LOCK_SH | LOCK_NB) == -1 && errno == EWOULDBLOCK)
    return 1;
  return pread (fd, magic, 2, 1080) == 2 && magic[0] == 0x53
         && magic[1] == 0xef;
}

/* DIR:wr is no file, but nearly DIR:rw. */
static void
hint_suffix (const char *shown, struct error **err)
{
  static const char *const ends[] = { ":rw", ":ro", NULL };
  const char *colon = strrchr (shown, ':'), *nearest;

  if (!colon || strlen (colon) > 4)
    return;
  nearest = !strcmp (colon, ":wr") || !strcmp (colon, ":w")
              || !strcmp (colon, ":RW") ? ends[0]
            : text_nearest (colon, ends);
  if (nearest)
    error_hint (err, "did you mean %.*s%s?", (int) (colon - shown), shown,
                nearest);
}

static int
check_source (const char *option, const char *shown,
              const struct sandbox_mount *mount, int folder_only,
              struct error **err)
{
  struct stat st;

  if (stat (mount->source, &st) < 0) {
    error_set (err, E_INVALID, errno, "%s%s", option, shown);
    hint_suffix (shown, err);
    return -1;
  }
  if (folder_only && !S_ISDIR (st.st_mode)
      && !is_image (mount->source, &st))
    return error_set (err, E_INVALID, 0,
                      "%s is not a folder, nor an ext4 image of one", shown);
  if (!S_ISDIR (st.st_mode) && !S_ISREG (st.st_mode))
    return error_set (err, E_INVALID, 0,
                      "%s%s is neither a folder nor a regular file", option,
                      shown);
  return 0;
}

int
mount_parse (const char *word, const char *fallback, int writable,
             struct sandbox_mount *out, struct error **err)
{
  auto_free char *copy = strdup (word);
  struct sandbox_mount mount = { .writable = writable };
  const char *target = fallback;
  char *colon;

  if (!copy)
    return error_set (err, E_NO_MEMORY, 0, "reading a mount");
  if (take_suffix (copy, ":rw"))
    mount.writable = 1;
  else if (take_suffix (copy, ":ro"))
    mount.writable = 0;
  if (!fallback) {
    colon = find_target (copy);
    if (!colon || colon == copy) {
      error_set (err, E_INVALID, 0, "--volume %s is not SRC:DST[:ro]", word);
      error_hint (err, "DST is an absolute path inside, such as /data");
      return -1;
    }
    *colon = 0;
    target = colon + 1;
  }
  if (!*copy)
    return error_set (err, E_INVALID, 0, "%s: the folder's name is empty",
                      word);
  mount.source = absolute (copy);
  mount.target = strdup (target);
  if (!mount.source || !mount.target) {
    mount_fini (&mount);
    return error_set (err, E_IO, errno, "%s", copy);
  }
  if (check_source (fallback ? "" : "--volume ", copy, &mount,
                    fallback != NULL, err) < 0) {
    mount_fini (&mount);
    return -1;
  }
  *out = mount;
  return 0;
}

void
mount_fini (struct sandbox_mount *mount)
{
  free (mount->source);
  free (mount->target);
  memset (mount, 0, sizeof *mount);
}
