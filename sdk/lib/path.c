/* SPDX-License-Identifier: Apache-2.0 */
/* Paths below a folder: opening, making and naming.
 *
 * Every look-up is one openat2 with RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS,
 * so that the kernel refuses a link at the moment it walks over it; there is
 * no look first and open later.  Workers do not have that call, as no filter
 * sees its mode: there each component is one openat that follows nothing, from
 * a descriptor of the one before.  What changes a name (mkdir, rename, unlink)
 * acts on a descriptor of the parent and one plain component. */

#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <coffer/fd.h>
#include <coffer/path.h>

#include "internal.h"

int
path_normalise (const char *path, char out[PATH_LIMIT])
{
  size_t used = 0, length;

  if (*path == '\0' || strnlen (path, PATH_LIMIT) == PATH_LIMIT)
    goto invalid;
  for (; *path; path += length) {
    path += strspn (path, "/");
    length = strcspn (path, "/");
    if (length == 0 || (length == 1 && path[0] == '.'))
      continue;
    if (length == 2 && path[0] == '.' && path[1] == '.')
      goto invalid;
    if (used > 0)
      out[used++] = '/';
    memcpy (out + used, path, length);
    used += length;
  }
  out[used] = '\0';
  return 0;

invalid:
  errno = EINVAL;
  return -1;
}

/* A folder on the way.  A link is ENOTDIR to the kernel; one that is swapped
 * for a folder just when it is looked at has been there, and is a link. */
static int
open_step (int dir, const char *name)
{
  struct stat st;
  int fd = openat (dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

  if (fd >= 0 || errno != ENOTDIR)
    return fd;
  if (fstatat (dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
    errno = S_ISLNK (st.st_mode) || S_ISDIR (st.st_mode) ? ELOOP : ENOTDIR;
  return -1;
}

static int
open_stepwise (int root, const char *path, int flags, mode_t mode)
{
  coffer_autoclose int dir = -1;
  char part[PATH_LIMIT];
  const char *slash;
  int next, at = root;

  for (; (slash = strchr (path, '/')); path = slash + 1) {
    memcpy (part, path, (size_t) (slash - path));
    part[slash - path] = '\0';
    next = open_step (at, part);
    if (next < 0)
      return -1;
    coffer_fd_close (&dir);
    at = dir = next;
  }
  do
    next = openat (at, *path ? path : ".", flags | O_NOFOLLOW | O_CLOEXEC,
                   mode);
  while (next < 0 && errno == EINTR);
  return next;
}

static int
open_once (int root, const char *path, int flags, mode_t mode)
{
  struct open_how how = {
    .flags = (uint64_t) (unsigned) flags | O_CLOEXEC | O_NOFOLLOW,
    .mode = flags & O_CREAT ? mode & 07777 : 0,
    .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
  };
  long fd;

  do
    fd = syscall (SYS_openat2, root, *path ? path : ".", &how, sizeof how);
  while (fd < 0 && (errno == EINTR || errno == EAGAIN));
  if (fd < 0 && errno == ENOSYS)
    return open_stepwise (root, path, flags, (mode_t) how.mode);
  return (int) fd;
}

/* `path` is normal; "" is the root.  A link where a folder should be is
 * ENOTDIR to the kernel; to our callers it is a link. */
static int
open_normal (int root, const char *path, int flags, mode_t mode)
{
  int fd = open_once (root, path, flags, mode), link;
  struct stat st;

  if (fd >= 0 || errno != ENOTDIR || !(flags & O_DIRECTORY))
    return fd;
  link = open_once (root, path, O_PATH, 0);
  errno = link >= 0 && fstat (link, &st) == 0 && S_ISLNK (st.st_mode) ?
    ELOOP : ENOTDIR;
  coffer_fd_close (&link);
  return -1;
}

unsigned
path_depth (const char *path)
{
  unsigned depth = 1;

  for (; *path; path++)
    depth += *path == '/';
  return depth;
}

const char *
coffer_path_below (const char *folder, const char *path)
{
  const size_t size = strlen (folder);

  if (!path || path[0] != '/')
    return path;
  if (strncmp (path, folder, size) != 0
      || (path[size] != '/' && path[size] != '\0'))
    return NULL;
  return path[size] ? path + size : "/";
}

int
coffer_open_beneath (int root, const char *path, int flags, mode_t mode)
{
  coffer_autoclose int fd = -1;
  char normal[PATH_LIMIT];
  struct stat st;

  if (path_normalise (path, normal) < 0)
    return -1;
  if (flags & (O_PATH | O_DIRECTORY))
    return open_normal (root, normal, flags, mode);
  fd = open_normal (root, normal, flags | O_NONBLOCK | O_NOCTTY, mode);
  if (fd < 0)
    return -1;
  if (!(flags & O_NONBLOCK)) {
    if (fstat (fd, &st) < 0 ||
        (S_ISREG (st.st_mode) &&
         fcntl (fd, F_SETFL, flags & (O_APPEND | O_DIRECT | O_NOATIME)) < 0))
      return -1;
  }
  return coffer_fd_steal (&fd);
}

int
coffer_open_regular (int root, const char *path, struct stat *st)
{
  coffer_autoclose int fd = coffer_open_beneath (root, path, O_RDONLY, 0);
  struct stat own;

  if (!st)
    st = &own;
  if (fd < 0 || fstat (fd, st) < 0)
    return -1;
  if (!S_ISREG (st->st_mode)) {
    errno = S_ISDIR (st->st_mode) ? EISDIR : EINVAL;
    return -1;
  }
  return coffer_fd_steal (&fd);
}

/* Opens folder `name` of `dir`, making it when it is missing. */
static int
open_or_make (int dir, const char *name)
{
  int fd = open_normal (dir, name, O_PATH | O_DIRECTORY, 0);

  if (fd >= 0 || errno != ENOENT)
    return fd;
  if (mkdirat (dir, name, 0755) < 0 && errno != EEXIST)
    return -1;
  return open_normal (dir, name, O_PATH | O_DIRECTORY, 0);
}

/* Opens `path`, which is normal, making what is missing on the way. */
static int
open_making (int root, char *path)
{
  coffer_autoclose int dir = -1;
  char *slash, *at = path;
  int next;

  dir = open_normal (root, ".", O_PATH | O_DIRECTORY, 0);
  while (dir >= 0 && *at) {
    slash = strchrnul (at, '/');
    if (*slash)
      *slash++ = '\0';
    next = open_or_make (dir, at);
    coffer_fd_close (&dir);
    dir = next;
    at = slash;
  }
  return coffer_fd_steal (&dir);
}

/* The folder of the last component of `normal`, which is cut there; *name
 * points at the component. */
static int
open_parent_normal (int root, char *normal, int parents, char **name)
{
  char *slash = strrchr (normal, '/');

  if (*normal == '\0') {        /* the root has no name here */
    errno = EINVAL;
    return -1;
  }
  *name = slash ? slash + 1 : normal;
  if (!slash)
    return open_normal (root, ".", O_PATH | O_DIRECTORY, 0);
  *slash = '\0';
  if (!parents)
    return open_normal (root, normal, O_PATH | O_DIRECTORY, 0);
  return open_making (root, normal);
}

int
coffer_open_parent (int root, const char *path, int parents,
                    const char **name)
{
  char normal[PATH_LIMIT], *last;
  const char *slash;
  int dir;

  if (path_normalise (path, normal) < 0)
    return -1;
  slash = strrchr (path, '/');
  slash = slash ? slash + 1 : path;
  if (*slash == '\0' || strcmp (slash, ".") == 0) {
    errno = EINVAL;
    return -1;
  }
  dir = open_parent_normal (root, normal, parents, &last);
  if (dir >= 0)
    *name = slash;
  return dir;
}

int
coffer_mkdir_beneath (int root, const char *path, mode_t mode, int parents)
{
  coffer_autoclose int dir = -1, made = -1;
  char normal[PATH_LIMIT], *name;

  if (path_normalise (path, normal) < 0)
    return -1;
  if (*normal == '\0') {
    errno = EEXIST;
    return parents ? 0 : -1;
  }
  dir = open_parent_normal (root, normal, parents, &name);
  if (dir < 0)
    return -1;
  if (mkdirat (dir, name, mode) == 0)
    return 0;
  if (errno != EEXIST || !parents)
    return -1;
  made = open_normal (dir, name, O_PATH | O_DIRECTORY, 0);
  return made < 0 ? -1 : 0;
}

/* -- new files ---- */

int
path_temporary (char *out, size_t size)
{
  uint64_t bits;

  if (getrandom (&bits, sizeof bits, 0) != sizeof bits)
    return -1;
  snprintf (out, size, ".coffer-%016llx", (unsigned long long) bits);
  return 0;
}

/* What a new file would replace: nothing or a regular file. */
static int
check_replaceable (int dir, const char *name)
{
  struct stat st;

  if (fstatat (dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
    return errno == ENOENT ? 0 : -1;
  if (S_ISREG (st.st_mode))
    return 0;
  errno = S_ISDIR (st.st_mode) ? EISDIR : S_ISLNK (st.st_mode) ? ELOOP : EINVAL;
  return -1;
}

static int
new_file_open (struct coffer_new_file *file)
{
  int tries = 16;

  do {
    if (path_temporary (file->temporary, sizeof file->temporary) < 0)
      return -1;
    file->fd = openat (file->dir, file->temporary,
                       O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                       0600);
    if (file->fd >= 0 && path_hold (file->fd) < 0)
      coffer_fd_close (&file->fd);
  } while (file->fd < 0 && (errno == EEXIST || errno == EWOULDBLOCK)
           && --tries > 0);
  if (file->fd < 0)
    file->temporary[0] = '\0';
  return file->fd;
}

/* A worker may give nobody else the right to write: an option that its provider
 * cannot honour, whoever calls. */
static int
set_mode (int fd, mode_t mode)
{
  if (fchmod (fd, mode) == 0)
    return 0;
  if (errno == ENOSYS)
    errno = EOPNOTSUPP;
  return -1;
}

int
coffer_new_file_begin (struct coffer_new_file *file, int root,
                       const char *path, mode_t mode, int parents)
{
  char normal[PATH_LIMIT], *name;

  *file = (struct coffer_new_file) {.dir = -1, .fd = -1};
  if (path_normalise (path, normal) < 0)
    return -1;
  if (*normal == '\0') {
    errno = EISDIR;
    return -1;
  }
  name = strrchr (normal, '/');
  file->name = strdup (name ? name + 1 : normal);
  if (!file->name)
    return -1;
  file->dir = open_parent_normal (root, normal, parents, &name);
  /* The mode is set on the descriptor: the umask has no say in it. */
  if (file->dir < 0 || check_replaceable (file->dir, file->name) < 0 ||
      new_file_open (file) < 0 || set_mode (file->fd, mode & 07777) < 0) {
    coffer_new_file_abort (file);
    return -1;
  }
  return file->fd;
}

/* Gives the file its name and takes none that is there. */
static int
rename_exclusive (int dir, const char *from, const char *to)
{
  if (renameat2 (dir, from, dir, to, RENAME_NOREPLACE) == 0)
    return 0;
  if (errno != EINVAL && errno != ENOSYS)
    return -1;
  /* A file system without the flag: a link is never made over a name. */
  if (linkat (dir, from, dir, to, 0) < 0)
    return -1;
  return unlinkat (dir, from, 0);
}

/* fsync of a folder needs a descriptor that is not O_PATH. */
static int
sync_folder (int dir)
{
  coffer_autoclose int fd = openat (dir, ".", O_RDONLY | O_DIRECTORY |
                                    O_CLOEXEC);

  return fd < 0 ? -1 : fsync (fd);
}

int
coffer_new_file_commit (struct coffer_new_file *file, int sync, int exclusive)
{
  int r;

  if (!file->name || file->fd < 0) {
    errno = EINVAL;
    return -1;
  }
  if (sync && fsync (file->fd) < 0)
    return -1;
  if (exclusive)
    r = rename_exclusive (file->dir, file->temporary, file->name);
  else if (check_replaceable (file->dir, file->name) < 0)
    r = -1;
  else
    r = renameat (file->dir, file->temporary, file->dir, file->name);
  if (r < 0)
    return -1;
  file->temporary[0] = '\0';
  r = sync ? sync_folder (file->dir) : 0;
  coffer_new_file_abort (file);
  return r;
}

void
coffer_new_file_abort (struct coffer_new_file *file)
{
  int keep = errno;

  if (!file->name)              /* zeroed, committed, or never began */
    return;
  if (file->temporary[0] && file->dir >= 0)
    unlinkat (file->dir, file->temporary, 0);
  coffer_fd_close (&file->fd);
  coffer_fd_close (&file->dir);
  free (file->name);
  file->name = NULL;
  file->temporary[0] = '\0';
  errno = keep;
}
