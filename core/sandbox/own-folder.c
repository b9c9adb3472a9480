/* SPDX-License-Identifier: Apache-2.0 */
/* What no sandbox is shown.  The runtime folder: its sockets lead to other
 * sandboxes, and its locks hold up whoever makes one, however read-only it is.
 * And what is no file but the kernel itself, such as /proc and /sys: there are
 * the caller's other processes, and what they may use.
 *
 * Judged by what the folders are, not by their names: from one of them up to
 * the root, whether the other is on the way. */

#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "sandbox/own-folder.h"

#define DEPTH_MAX 4096

static int
same (const struct stat *a, const struct stat *b)
{
  return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Whether `folder` is `outer` or lies below it: 1, 0, or -1 with errno. */
static int
lies_in (int folder, const struct stat *outer)
{
  coffer_autoclose int at = fcntl (folder, F_DUPFD_CLOEXEC, 3);
  struct stat here, above;
  int i, up;

  if (at < 0 || fstat (at, &here) < 0)
    return -1;
  for (i = 0; i < DEPTH_MAX; i++) {
    if (same (&here, outer))
      return 1;
    up = openat (at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
    coffer_fd_close (&at);
    at = up;
    if (at < 0 || fstat (at, &above) < 0)
      return -1;
    if (same (&here, &above))
      return 0;
    here = above;
  }
  errno = ELOOP;
  return -1;
}

/* What is not there yet will be made in a folder that is. */
static int
nearest_open (const char *path)
{
  char part[4096];
  size_t i;
  int fd;

  for (i = 0; path[i] && i + 1 < sizeof part; i++)
    part[i] = path[i];
  for (;;) {
    part[i] = '\0';
    fd = open (i > 0 ? part : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 || errno != ENOENT || i == 0)
      return fd;
    while (i > 0 && part[i - 1] != '/')
      i--;
    if (i > 0)
      i--;
  }
}

int
own_folder_spared (const struct place *place, int source, const char *shown,
                   struct error **err)
{
  coffer_autoclose int runtime = nearest_open (place->runtime);
  struct stat outer, inner;
  int r;

  if (runtime < 0 || fstat (source, &outer) < 0
      || fstat (runtime, &inner) < 0)
    return error_set (err, E_SANDBOX_SPEC, errno, "mounts: %s", shown);
  if (!S_ISDIR (outer.st_mode))
    return 0;
  r = lies_in (runtime, &outer);
  if (r == 0 && faccessat (AT_FDCWD, place->runtime, F_OK, 0) == 0)
    r = lies_in (source, &inner);
  if (r == 0)
    return 0;
  if (r < 0)
    return error_set (err, E_SANDBOX_SPEC, errno, "mounts: %s", shown);
  error_set (err, E_SANDBOX_SPEC, 0,
             "mounts: %s would show %s, which leads to other sandboxes",
             shown, place->runtime);
  error_hint (err, "show a smaller folder%s",
              place->home_override ? ", or set COFFER_HOME to one elsewhere"
              : geteuid () != 0 ? ", or set XDG_RUNTIME_DIR to one elsewhere"
                                : "");
  return -1;
}

/* By statfs(2). */
static int
is_kernels (int fd)
{
  static const unsigned long types[] = {
    0x9fa0,                     /* proc */
    0x62656572,                 /* sysfs */
    0x27e0eb, 0x63677270,       /* control groups */
    0x64626720, 0x74726163,     /* debugfs, tracefs */
    0x73636673, 0xf97cff8c,     /* securityfs, selinuxfs */
    0xcafe4a11, 0x6e736673,     /* bpf, namespaces */
    0x62656570, 0x1cd1,         /* configfs, devpts */
    0xde5e81e4, 0x6165676c,     /* efivarfs, pstore */
    0x65735543, 0x42494e4d,     /* fusectl, binfmt_misc */
    0x07655821, 0x19800202      /* resctrl, mqueue */
  };
  struct statfs fs;
  size_t i;

  if (fstatfs (fd, &fs) < 0)
    return -1;
  for (i = 0; i < sizeof types / sizeof types[0]; i++)
    if (((unsigned long) fs.f_type & 0xffffffff) == types[i])
      return 1;
  return 0;
}

int
kernel_spared (int source, const char *shown, struct error **err)
{
  switch (is_kernels (source)) {
  case 0:
    return 0;
  case 1:
    error_set (err, E_SANDBOX_SPEC, 0,
               "mounts: %s is the kernel's, which no sandbox is shown", shown);
    error_hint (err, "a sandbox has a /proc of its own");
    return -1;
  default:
    return error_set (err, E_SANDBOX_SPEC, errno, "mounts: %s", shown);
  }
}
