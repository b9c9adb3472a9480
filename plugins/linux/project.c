/* SPDX-License-Identifier: Apache-2.0 */
/* A project quota for a folder of the host that a sandbox may write to, where
 * its file system keeps such quotas and this process may set them.
 *
 * All below the folder gets one project, what is there already included, and
 * new files inherit it; from inside nobody can change that.  The project and
 * its limit stay with the folder: the next sandbox finds them.  Projects that
 * an administrator gave are used as they are, and never given another limit. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/dqblk_xfs.h>
#include <linux/fs.h>
#include <linux/quota.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernel.h"
#include "spawn.h"

#define FIRST 0x60000000u       /* ours: so many, from here on */
#define COUNT 0x10000000u
#define TRIES 64
#define DEPTH_MAX 128
#define BLOCK 1024              /* that limits are counted in */

static int
quota (int fd, unsigned command, uint32_t id, void *data)
{
  return (int) syscall (SYS_quotactl_fd, fd, QCMD (command, PRJQUOTA), id,
                        data);
}

/* Kept, and over it nothing is written. */
static int
is_enforced (int fd)
{
  struct fs_quota_stat stat;

  memset (&stat, 0, sizeof stat);
  return quota (fd, Q_XGETQSTAT, 0, &stat) == 0
         && (stat.qs_flags & FS_QUOTA_PDQ_ENFD);
}

/* ---- the tree ----------------------------------------------------------- */

static int
project_put (int fd, uint32_t project)
{
  struct fsxattr attr;
  struct stat st;

  if (fstat (fd, &st) == -1 || ioctl (fd, FS_IOC_FSGETXATTR, &attr) == -1)
    return -1;
  if (attr.fsx_projid == project
      && (!S_ISDIR (st.st_mode) || (attr.fsx_xflags & FS_XFLAG_PROJINHERIT)))
    return 0;
  attr.fsx_projid = project;
  if (S_ISDIR (st.st_mode))
    attr.fsx_xflags |= FS_XFLAG_PROJINHERIT;
  return ioctl (fd, FS_IOC_FSSETXATTR, &attr);
}

static int tree_put (int dir, uint32_t project, dev_t device, int depth,
                     int64_t deadline_ns);

/* A folder or a file; a link or a pipe holds nothing. */
static int
entry_put (int dir, const char *name, uint32_t project, dev_t device,
           int depth, int64_t deadline_ns)
{
  coffer_autoclose int fd = -1;
  struct stat st;

  if (fstatat (dir, name, &st, AT_SYMLINK_NOFOLLOW) == -1)
    return errno == ENOENT ? 0 : -1;
  if (!S_ISDIR (st.st_mode) && !S_ISREG (st.st_mode))
    return 0;
  fd = openat (dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0 || fstat (fd, &st) == -1)
    return -1;
  if (st.st_dev != device) {
    errno = EXDEV;              /* another file system: no quota of this one */
    return -1;
  }
  return S_ISDIR (st.st_mode)
    ? tree_put (fd, project, device, depth + 1, deadline_ns)
    : project_put (fd, project);
}

/* The folder first: what is made meanwhile inherits. */
static int
tree_put (int dir, uint32_t project, dev_t device, int depth,
          int64_t deadline_ns)
{
  struct dirent *entry;
  int fd, r = 0;
  DIR *stream;

  if (depth > DEPTH_MAX || coffer_now_ns () > deadline_ns) {
    errno = depth > DEPTH_MAX ? ELOOP : ETIMEDOUT;
    return -1;
  }
  if (project_put (dir, project) == -1)
    return -1;
  fd = openat (dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  stream = fd < 0 ? NULL : fdopendir (fd);
  if (stream == NULL) {
    coffer_fd_close (&fd);
    return -1;
  }
  while (r == 0 && (entry = readdir (stream)) != NULL)
    if (strcmp (entry->d_name, ".") != 0 && strcmp (entry->d_name, "..") != 0)
      r = entry_put (dir, entry->d_name, project, device, depth, deadline_ns);
  closedir (stream);
  return r;
}

/* ---- the project -------------------------------------------------------- */

static int
is_ours (uint32_t project)
{
  return project >= FIRST && project - FIRST < COUNT;
}

/* One that nothing is counted for and that has no limit. */
static uint32_t
project_free (int fd, const struct stat *st)
{
  uint32_t id = (uint32_t) (st->st_ino * 2654435761u), i;
  struct if_dqblk limits;

  for (i = 0; i < TRIES; i++) {
    id = FIRST + (id + i) % COUNT;
    memset (&limits, 0, sizeof limits);
    if (quota (fd, Q_GETQUOTA, id, &limits) == -1)
      return errno == ENOENT || errno == ESRCH ? id : 0;
    if (limits.dqb_bhardlimit == 0 && limits.dqb_curspace == 0
        && limits.dqb_curinodes == 0)
      return id;
  }
  return 0;
}

static int
limits_hold (int fd, uint32_t project, uint64_t bytes, uint64_t inodes)
{
  struct if_dqblk limits;

  memset (&limits, 0, sizeof limits);
  return quota (fd, Q_GETQUOTA, project, &limits) == 0
         && limits.dqb_bhardlimit != 0
         && limits.dqb_bhardlimit <= bytes / BLOCK
         && (inodes == 0
             || (limits.dqb_ihardlimit != 0
                 && limits.dqb_ihardlimit <= inodes));
}

static int
limits_put (int fd, uint32_t project, uint64_t bytes, uint64_t inodes)
{
  struct if_dqblk limits;

  memset (&limits, 0, sizeof limits);
  limits.dqb_bhardlimit = limits.dqb_bsoftlimit = bytes / BLOCK;
  limits.dqb_ihardlimit = limits.dqb_isoftlimit = inodes;
  limits.dqb_valid = QIF_LIMITS;
  return quota (fd, Q_SETQUOTA, project, &limits) == 0
             && limits_hold (fd, project, bytes, inodes)
    ? 0 : -1;
}

int
project_cap (struct making *making, int source)
{
  const uint64_t bytes = making->spec->disk_bytes ? making->spec->disk_bytes
                                                  : DISK_DEFAULT;
  const uint64_t inodes = making->spec->inodes;
  const int64_t deadline = making->call->deadline_ns
    ? making->call->deadline_ns : INT64_MAX;
  coffer_autoclose int fd = -1;
  struct fsxattr attr;
  struct stat st;
  char path[40];

  snprintf (path, sizeof path, "/proc/self/fd/%d", source);
  fd = open (path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0 || fstat (fd, &st) == -1 || !is_enforced (fd)
      || flock (fd, LOCK_EX | LOCK_NB) == -1
      || ioctl (fd, FS_IOC_FSGETXATTR, &attr) == -1)
    return -1;
  if (attr.fsx_projid != 0 && !is_ours (attr.fsx_projid))
    return (attr.fsx_xflags & FS_XFLAG_PROJINHERIT)
           && limits_hold (fd, attr.fsx_projid, bytes, inodes) ? 0 : -1;
  if (attr.fsx_projid == 0)
    attr.fsx_projid = project_free (fd, &st);
  return attr.fsx_projid != 0
             && limits_put (fd, attr.fsx_projid, bytes, inodes) == 0
             && tree_put (fd, attr.fsx_projid, st.st_dev, 0, deadline) == 0
    ? 0 : -1;
}
