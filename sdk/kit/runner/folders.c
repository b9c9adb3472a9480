/* SPDX-License-Identifier: Apache-2.0 */
/* The folders of a run: one for the provider's work, in the user's runtime
 * folder, and one in /tmp that every user reaches, where cases have theirs.
 * The run removes both, and after each case what that has left in the second.
 *
 * A run that is killed cannot.  So each folder is locked for as long as its run
 * lives, and whoever begins a run removes those of its user that nobody holds. */

#include <config.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <coffer/fd.h>
#include <coffer/path.h>

#include "base/text.h"
#include "runner.h"

#define OUTSIDE "/tmp"
#define OUTSIDE_PREFIX "coffer-kit."
#define OWN_PREFIX "kit."       /* which no provider's folder beside it has */
#define RANDOM_PART "XXXXXX"
#define MAX_TRIES 16

/* Entries of a folder that begin like that, each with its name; none of them
 * is followed. */
static void
each_entry (int folder, const char *prefix,
            void (*work) (int folder, const char *name))
{
  int fd = openat (folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *dir = fd < 0 ? NULL : fdopendir (fd);
  struct dirent *entry;

  if (!dir)
    coffer_fd_close (&fd);
  while (dir && (entry = readdir (dir)))
    if (strncmp (entry->d_name, prefix, strlen (prefix)) == 0
        && strcmp (entry->d_name, ".") != 0
        && strcmp (entry->d_name, "..") != 0)
      work (folder, entry->d_name);
  if (dir)
    closedir (dir);
}

static void
remove_entry (int folder, const char *name)
{
  coffer_remove_beneath (folder, name, 1, NULL);
}

/* ---- what others have left ----------------------------------------------- */

/* Of a run that is no more: nobody holds its lock, which its case holds as long
 * as that lives. */
static void
sweep_entry (int folder, const char *name)
{
  coffer_autoclose int fd = openat (folder, name, O_RDONLY | O_DIRECTORY
                                                  | O_NOFOLLOW | O_CLOEXEC);
  struct stat st;

  if (fd >= 0 && fstat (fd, &st) == 0 && st.st_uid == geteuid ()
      && flock (fd, LOCK_EX | LOCK_NB) == 0)
    remove_entry (folder, name);
}

/* ---- our own ------------------------------------------------------------- */

/* 1: it is ours, and held; 0: somebody has taken it for one that nobody holds,
 * as between its making and its lock nobody does. */
static int
hold (const char *path, int *out)
{
  coffer_autoclose int fd = open (path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW
                                        | O_CLOEXEC);
  struct stat here, there;

  if (fd < 0 || flock (fd, LOCK_EX | LOCK_NB) < 0)
    return 0;
  if (fstat (fd, &here) < 0 || lstat (path, &there) < 0
      || here.st_ino != there.st_ino || here.st_dev != there.st_dev)
    return 0;
  *out = coffer_fd_steal (&fd);
  return 1;
}

static int
make (const char *parent, const char *prefix, char **path, int *fd,
      struct error **err)
{
  int i;

  for (i = 0; i < MAX_TRIES; i++) {
    auto_free char *name = text_printf ("%s/%s" RANDOM_PART, parent, prefix);

    if (!name)
      return error_set (err, E_NO_MEMORY, 0, "out of memory");
    if (!mkdtemp (name))
      return error_set (err, E_IO, errno, "make a folder in %s", parent);
    if (hold (name, fd)) {
      *path = steal (name);
      return 0;
    }
  }
  return error_set (err, E_IO, EAGAIN, "hold a folder in %s", parent);
}

int
folders_begin (struct subject *subject, struct error **err)
{
  const char *runtime = subject->place->runtime;
  coffer_autoclose int own = place_open_dir (runtime, err), outside = -1;

  if (own < 0)
    return -1;
  outside = open (OUTSIDE, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (outside < 0)
    return error_set (err, E_IO, errno, "open " OUTSIDE);
  each_entry (own, OWN_PREFIX, sweep_entry);
  each_entry (outside, OUTSIDE_PREFIX, sweep_entry);
  if (make (runtime, OWN_PREFIX, &subject->folder, &subject->folder_fd, err)
        < 0
      || make (OUTSIDE, OUTSIDE_PREFIX, &subject->outside,
               &subject->outside_fd, err)
           < 0)
    return -1;
  /* Reached by users of sandboxes, and written to by none. */
  if (fchmod (subject->outside_fd, 0755) < 0)
    return error_set (err, E_IO, errno, "open a folder in " OUTSIDE);
  subject->own = place_within (subject->place, subject->folder);
  return subject->own ? 0 : error_set (err, E_NO_MEMORY, 0, "out of memory");
}

void
folders_empty (const struct subject *subject)
{
  each_entry (subject->outside_fd, "", remove_entry);
}

static void
end (char **path, int *fd)
{
  coffer_autoclose int parent = -1;
  char *name = *path ? strrchr (*path, '/') : NULL;

  if (name) {
    *name = '\0';
    parent = open (*path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    remove_entry (parent, name + 1);
  }
  free (steal (*path));
  coffer_fd_close (fd);
}

void
folders_end (struct subject *subject)
{
  end (&subject->folder, &subject->folder_fd);
  end (&subject->outside, &subject->outside_fd);
}

/* ---- for cases ----------------------------------------------------------- */

const char *
kit_folder (struct kit *kit)
{
  char *path = kit_text (kit, "%s/" RANDOM_PART, kit->subject->outside);

  if (!mkdtemp (path))
    kit_fail (kit, "the kit has no folder: %s: %s", path, strerror (errno));
  return path;
}
