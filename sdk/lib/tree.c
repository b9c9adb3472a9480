/* SPDX-License-Identifier: Apache-2.0 */
/* Trees: walking one and removing one, when whoever made it is hostile.
 *
 * Both hold one descriptor a level and never climb by "..".  A tree may be
 * deeper than a process may hold descriptors, so removal brings what lies too
 * deep up to the top of the tree, under a name of its own, and goes on there:
 * the depth that is held stays bounded and so does the stack.  A folder is
 * entered only if it is on the same mount, whatever its device number. */

#define _GNU_SOURCE

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <coffer/buffer.h>
#include <coffer/fd.h>
#include <coffer/path.h>

#include "internal.h"

#define REMOVE_DEPTH 48         /* levels held before the rest is brought up */

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

int
path_check (int64_t deadline_ns, int cancel_fd)
{
  struct pollfd cancel = {.fd = cancel_fd, .events = POLLIN};
  const struct timespec at_once = {0};

  if (coffer_now_ns () >= deadline_ns) {
    errno = ETIMEDOUT;
    return -1;
  }
  /* As coffer_wait_fd does: no list of system calls has another. */
  if (cancel_fd >= 0 && ppoll (&cancel, 1, &at_once, NULL) > 0) {
    errno = ECANCELED;
    return -1;
  }
  return 0;
}

/* A kernel that numbers no mounts (gVisor's) has the devices to tell by. */
static int
same_mount (int a, int b)
{
  struct statx x, y;

  if (statx (a, "", AT_EMPTY_PATH, STATX_MNT_ID, &x) < 0
      || statx (b, "", AT_EMPTY_PATH, STATX_MNT_ID, &y) < 0)
    return 0;
  if (((x.stx_mask | y.stx_mask) & STATX_MNT_ID) == 0)
    return x.stx_dev_major == y.stx_dev_major
           && x.stx_dev_minor == y.stx_dev_minor;
  return x.stx_mask & y.stx_mask & STATX_MNT_ID
         && x.stx_mnt_id == y.stx_mnt_id;
}

/* Where there is no openat2: see path.c. */
static int
open_stepwise (int dir, const char *name, int flags)
{
  coffer_autoclose int fd = openat (dir, name, flags | O_DIRECTORY | O_CLOEXEC
                                               | O_NOFOLLOW);

  if (fd >= 0 && !same_mount (dir, fd)) {
    errno = EXDEV;
    return -1;
  }
  return coffer_fd_steal (&fd);
}

/* Opens folder `name` of `dir` on the same mount, following nothing. */
static int
open_folder (int dir, const char *name, int flags)
{
  struct open_how how = {
    .flags = (uint64_t) (unsigned) flags | O_DIRECTORY | O_CLOEXEC |
             O_NOFOLLOW,
    .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV,
  };
  long fd;

  do
    fd = syscall (SYS_openat2, dir, name, &how, sizeof how);
  while (fd < 0 && (errno == EINTR || errno == EAGAIN));
  if (fd < 0 && errno == ENOSYS)
    return open_stepwise (dir, name, flags);
  return (int) fd;
}

static DIR *
folder_stream (int fd)
{
  DIR *stream;

  if (fd < 0)
    return NULL;
  stream = fdopendir (fd);
  if (!stream)
    coffer_fd_close (&fd);
  return stream;
}

/* The next entry that is not "." or "..", or NULL with errno (0: the end). */
static struct dirent *
next_entry (DIR *stream)
{
  struct dirent *entry;

  do {
    errno = 0;
    entry = readdir (stream);
  } while (entry && (strcmp (entry->d_name, ".") == 0 ||
                     strcmp (entry->d_name, "..") == 0));
  return entry;
}

static void
close_stream (DIR **stream)
{
  int keep = errno;

  if (*stream)
    closedir (*stream);
  errno = keep;
}
#define autostream __attribute__ ((cleanup (close_stream)))

/* -- walking ---- */

struct walk {
  coffer_walk_entry *entry;
  void *data;
  struct coffer_buffer path;
};

static int walk_folder (struct walk *walk, int fd, uint32_t depth);

/* Goes into a folder if it can; one that cannot be entered has been reported
 * itself, and that is all there is to say about it. */
static int
walk_enter (struct walk *walk, int dir, const char *name, uint32_t depth)
{
  int fd = open_folder (dir, name, O_RDONLY);

  if (fd < 0)
    return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? -1 : 0;
  return walk_folder (walk, fd, depth);
}

static int
walk_one (struct walk *walk, int dir, const char *name, uint32_t depth)
{
  size_t before = walk->path.size;
  struct stat st;
  int r;

  /* AT_NO_AUTOMOUNT is what it does anyway, and gVisor does not know that. */
  if (fstatat (dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
    return errno == ENOENT ? 0 : -1;
  if (before > 0)
    coffer_buffer_add (&walk->path, "/", 1);
  coffer_buffer_add_string (&walk->path, name);
  if (walk->path.failed) {
    errno = ENOMEM;
    return -1;
  }
  if (walk->path.size >= PATH_LIMIT) {
    errno = ENAMETOOLONG;
    return -1;
  }
  r = walk->entry (walk->data, walk->path.data, dir, name, &st);
  if (r == 0 && depth > 1 && S_ISDIR (st.st_mode))
    r = walk_enter (walk, dir, name, depth - 1);
  walk->path.size = before;
  walk->path.data[before] = '\0';
  return r;
}

/* Takes the descriptor. */
static int
walk_folder (struct walk *walk, int fd, uint32_t depth)
{
  autostream DIR *stream = folder_stream (fd);
  struct dirent *entry;
  int r;

  if (!stream)
    return -1;
  while ((entry = next_entry (stream))) {
    r = walk_one (walk, dirfd (stream), entry->d_name, depth);
    if (r != 0)
      return r;
  }
  return errno ? -1 : 0;
}

int
coffer_walk (int root, const char *path, uint32_t depth,
             coffer_walk_entry *entry, void *data)
{
  struct walk walk = {.entry = entry, .data = data};
  int fd, r;

  if (depth > WALK_DEPTH_MAX) {
    errno = EINVAL;
    return -1;
  }
  fd = coffer_open_beneath (root, path, O_RDONLY | O_DIRECTORY, 0);
  if (fd < 0)
    return -1;
  r = walk_folder (&walk, fd, depth > 0 ? depth : 1);
  coffer_buffer_free (&walk.path);
  return r;
}

/* -- removing ---- */

struct removal {
  int top;                      /* the folder that is removed */
  int brought_up;               /* folders were moved into it: look again */
  int first_errno;              /* why something stays */
  int stop;                     /* time is over */
  int64_t deadline_ns;
  int cancel_fd;
  uint64_t removed;
};

/* A folder of ours that we may not read: chmod by descriptor, as its name may
 * mean something else by now.  The path through /proc is for Linux < 6.6. */
static int
make_accessible (int dir, const char *name)
{
  coffer_autoclose int fd = open_folder (dir, name, O_PATH);
  char link[64];

  if (fd < 0)
    return -1;
  if (syscall (SYS_fchmodat2, fd, "", 0700, AT_EMPTY_PATH) == 0)
    return 0;
  snprintf (link, sizeof link, "/proc/self/fd/%d", fd);
  return chmod (link, 0700);
}

static int
open_for_removal (int dir, const char *name)
{
  int fd = open_folder (dir, name, O_RDONLY);

  if (fd < 0 && errno == EACCES && make_accessible (dir, name) == 0)
    fd = open_folder (dir, name, O_RDONLY);
  return fd;
}

/* Moves a folder that lies too deep to the top of the tree. */
static int
bring_up (struct removal *removal, int dir, const char *name)
{
  char place[32];
  uint64_t bits;

  if (getrandom (&bits, sizeof bits, 0) != sizeof bits)
    return -1;
  snprintf (place, sizeof place, ".coffer-%016llx", (unsigned long long) bits);
  if (renameat (dir, name, removal->top, place) < 0) {
    /* A folder must be writable to be moved: its ".." changes. */
    if (errno != EACCES || make_accessible (dir, name) < 0 ||
        renameat (dir, name, removal->top, place) < 0)
      return -1;
  }
  removal->brought_up = 1;
  return 0;
}

static void
removal_failed (struct removal *removal)
{
  if (removal->first_errno == 0)
    removal->first_errno = errno;
}

/* unlinkat that makes the folder writable once, if it is ours. */
static int
unlink_in (int dir, const char *name, int flags)
{
  if (unlinkat (dir, name, flags) == 0 || errno == ENOENT)
    return 0;
  if (errno != EACCES || fchmod (dir, 0700) < 0)
    return -1;
  return unlinkat (dir, name, flags);
}

static void remove_inside (struct removal *removal, int fd, unsigned level);

static void
remove_folder (struct removal *removal, int dir, const char *name,
               unsigned level)
{
  int fd;

  if (unlink_in (dir, name, AT_REMOVEDIR) == 0) {
    removal->removed++;
    return;
  }
  if (errno != ENOTEMPTY && errno != EEXIST) {
    if (errno == ENOTDIR)       /* a file that may not be removed */
      errno = EPERM;
    removal_failed (removal);
    return;
  }
  if (level >= REMOVE_DEPTH) {
    if (bring_up (removal, dir, name) < 0)
      removal_failed (removal);
    return;
  }
  fd = open_for_removal (dir, name);
  if (fd < 0) {
    removal_failed (removal);
    return;
  }
  remove_inside (removal, fd, level + 1);
  if (removal->stop)
    return;
  if (unlink_in (dir, name, AT_REMOVEDIR) == 0)
    removal->removed++;
  else
    removal_failed (removal);
}

/* What is mounted in another namespace than this process's is not in the way
 * of the kernel's: it takes it down with the name. */
int
path_is_mounted (int dir, const char *name)
{
  struct statx st;

  return statx (dir, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, 0, &st) == 0
         && (st.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

static void
remove_entry (struct removal *removal, int dir, const char *name,
              unsigned level)
{
  if (path_check (removal->deadline_ns, removal->cancel_fd) < 0) {
    removal_failed (removal);
    removal->stop = 1;
    return;
  }
  if (path_is_mounted (dir, name)) {
    errno = EBUSY;
    removal_failed (removal);
  } else if (unlink_in (dir, name, 0) == 0)
    removal->removed++;
  else if (errno == EISDIR || errno == EPERM)
    remove_folder (removal, dir, name, level);
  else
    removal_failed (removal);
}

/* Empties the folder; takes the descriptor. */
static void
remove_inside (struct removal *removal, int fd, unsigned level)
{
  autostream DIR *stream = folder_stream (fd);
  struct dirent *entry;

  if (!stream) {
    removal_failed (removal);
    return;
  }
  while (!removal->stop && (entry = next_entry (stream)))
    remove_entry (removal, dirfd (stream), entry->d_name, level);
}

/* Empties the top folder, as often as something was brought up into it. */
static int
remove_tree (struct removal *removal, int dir, const char *name)
{
  coffer_autoclose int top = open_for_removal (dir, name);
  int again;

  if (top < 0)
    return -1;
  removal->top = top;
  do {
    removal->brought_up = 0;
    again = open_folder (top, ".", O_RDONLY);
    if (again < 0)
      return -1;
    remove_inside (removal, again, 1);
  } while (removal->brought_up && !removal->stop);
  if (removal->first_errno) {
    errno = removal->first_errno;
    return -1;
  }
  return unlinkat (dir, name, AT_REMOVEDIR);
}

int
path_remove (int root, const char *path, int recursive, int64_t deadline_ns,
             int cancel_fd, uint64_t *removed)
{
  struct removal removal = {
    .top = -1, .deadline_ns = deadline_ns, .cancel_fd = cancel_fd,
  };
  coffer_autoclose int dir = -1;
  char normal[PATH_LIMIT];
  const char *name;
  int r;

  if (path_normalise (path, normal) < 0)
    return -1;
  if (*normal == '\0') {
    errno = EBUSY;              /* the folder itself is the caller's */
    return -1;
  }
  dir = coffer_open_parent (root, normal, 0, &name);
  if (dir < 0)
    return -1;
  if (path_is_mounted (dir, name)) {
    errno = EBUSY;
    return -1;
  }
  r = unlinkat (dir, name, 0);
  if (r < 0 && (errno == EISDIR || errno == EPERM)) {
    r = unlinkat (dir, name, AT_REMOVEDIR);
    if (r < 0 && recursive && (errno == ENOTEMPTY || errno == EEXIST))
      r = remove_tree (&removal, dir, name);
  }
  if (removed)
    *removed = removal.removed + (r == 0);
  return r;
}

int
coffer_remove_beneath (int root, const char *path, int recursive,
                       uint64_t *removed)
{
  return path_remove (root, path, recursive, INT64_MAX, -1, removed);
}
