/* SPDX-License-Identifier: Apache-2.0 */
/* A workspace in a file: an ext4 image on a loop device, so that what a sandbox
 * writes lasts and can never be more than the file holds.
 *
 * Everything goes by descriptors: the image is mounted nowhere but in the
 * sandbox, and the device frees itself (LO_FLAGS_AUTOCLEAR) when that mount is
 * gone, whoever was killed.  The file is locked as long: the lock belongs to
 * the open file, and that to the device.  Only root's own file is taken, since
 * the kernel reads what is in it. */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/loop.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernel.h"
#include "spawn.h"

#ifndef LOOP_CONFIGURE
#define LOOP_CONFIGURE 0x4C0A
struct loop_config {
  __u32 fd;
  __u32 block_size;
  struct loop_info64 info;
  __u64 reserved[8];
};
#endif
#define FD_CLOEXEC_FLAG_ 1      /* of fsopen and fsmount */
#define CONFIG_STRING_ 1
#define CONFIG_CREATE_ 6
#define ATTR_RDONLY_ 1
#define ATTR_NOSUID_ 2
#define ATTR_NODEV_ 4
#define LOCK_NS 2000000000      /* that the last sandbox may take to be gone */
#define FORMAT_NS 60000000000
#define DEVICE_TRIES 16
#define MAGIC_AT 1080

static int32_t
image_refuse (struct making *making, const char *why)
{
  return fail_with (making->call, COFFER_INVALID, "mounts: the image: %s",
                    why);
}

/* ---- the file ----------------------------------------------------------- */

static int64_t
until (const struct making *making, int64_t ns)
{
  const int64_t then = coffer_now_ns () + ns;
  const int64_t deadline = making->call->deadline_ns;

  return deadline != 0 && deadline < then ? deadline : then;
}

static int
image_lock (struct making *making, int fd)
{
  const int64_t stop = until (making, LOCK_NS);

  while (flock (fd, LOCK_EX | LOCK_NB) == -1) {
    if (errno != EWOULDBLOCK || coffer_now_ns () >= stop)
      return -1;
    poll (NULL, 0, 10);
  }
  return 0;
}

static int32_t
image_open (struct making *making, const struct coffer_mount *mount, int *out)
{
  coffer_autoclose int fd = -1;
  char path[40];
  struct stat st;

  snprintf (path, sizeof path, "/proc/self/fd/%d", mount->source_fd);
  fd = open (path, (mount->writable ? O_RDWR : O_RDONLY) | O_CLOEXEC);
  if (fd < 0 || fstat (fd, &st) == -1)
    return coffer_fail_errno (making->call, errno, "mounts: the image");
  if (st.st_uid != 0 || (st.st_mode & 022) != 0)
    return image_refuse (making, "not a file of root that nobody else may "
                                 "write: chown root, chmod 600");
  if (image_lock (making, fd) == -1)
    return coffer_fail (making->call, COFFER_BUSY,
                        "mounts: the image is in use by another sandbox");
  *out = coffer_fd_steal (&fd);
  return COFFER_OK;
}

/* ---- a new file system -------------------------------------------------- */

/* Waits until the deadline, and no longer: the exit status, or -1. */
static int
child_wait (pid_t pid, int64_t until_ns)
{
  coffer_autoclose int pidfd = (int) syscall (SYS_pidfd_open, pid, 0);
  int status = 0;

  if (pidfd < 0 || coffer_wait_fd (pidfd, POLLIN, until_ns, -1) != 1)
    kill (pid, SIGKILL);        /* not yet waited for: still the same */
  while (waitpid (pid, &status, 0) == -1 && errno == EINTR)
    ;
  return WIFEXITED (status) ? WEXITSTATUS (status) : -1;
}

static int
format_run (struct making *making, int fd)
{
  static const char *const programs[] = { "/usr/sbin/mke2fs", "/sbin/mke2fs" };
  char inodes[24], options[64];
  char *const argv[]
    = { (char *) "mke2fs", (char *) "-q", (char *) "-F", (char *) "-t",
        (char *) "ext4", (char *) "-m", (char *) "0", (char *) "-E", options,
        making->spec->inodes ? (char *) "-N" : (char *) "/proc/self/fd/3",
        making->spec->inodes ? inodes : NULL, (char *) "/proc/self/fd/3",
        NULL };
  char *const envp[] = { (char *) "PATH=/usr/sbin:/sbin", NULL };
  posix_spawn_file_actions_t actions;
  int error = ENOENT, status = -1;
  size_t i;
  pid_t pid;

  snprintf (options, sizeof options, "root_owner=%d:%d,nodiscard",
            SANDBOX_UID, SANDBOX_UID);
  snprintf (inodes, sizeof inodes, "%" PRIu64, making->spec->inodes);
  if (posix_spawn_file_actions_init (&actions) != 0)
    return -1;
  posix_spawn_file_actions_addopen (&actions, 0, "/dev/null", O_RDWR, 0);
  posix_spawn_file_actions_adddup2 (&actions, 0, 1);
  posix_spawn_file_actions_adddup2 (&actions, 0, 2);
  posix_spawn_file_actions_adddup2 (&actions, fd, 3);
  for (i = 0; error == ENOENT && i < sizeof programs / sizeof *programs; i++)
    error = posix_spawn (&pid, programs[i], &actions, NULL, argv, envp);
  posix_spawn_file_actions_destroy (&actions);
  if (error == 0)
    status = child_wait (pid, until (making, FORMAT_NS));
  errno = error;
  return status;
}

static int32_t
image_format (struct making *making, int fd)
{
  int status;

  if (making->spec->disk_bytes == 0)
    return image_refuse (making, "an empty file becomes one of the size that "
                                 "disk says, and none was said");
  if (ftruncate (fd, (off_t) making->spec->disk_bytes) == -1)
    return coffer_fail_errno (making->call, errno, "mounts: the image");
  status = format_run (making, fd);
  if (status == 0)
    return COFFER_OK;
  (void) !ftruncate (fd, 0);    /* as it was */
  if (status < 0 && errno == ENOENT)
    return coffer_fail_with (making->call, COFFER_UNAVAILABLE, COFFER_RETRY_NO,
                             "mounts: the image: there is no mke2fs to make "
                             "one; install e2fsprogs",
                             "{\"requirement\":\"quota.hard\"}");
  return fail_with (making->call, COFFER_INVALID,
                    "disk_bytes: mke2fs makes no image of %" PRIu64 " bytes",
                    making->spec->disk_bytes);
}

/* Never made anew over anything: a file is empty, or an image. */
static int32_t
image_check (struct making *making, int fd, int writable)
{
  const uint64_t most = making->spec->disk_bytes;
  unsigned char magic[2] = { 0, 0 };
  struct stat st;

  if (fstat (fd, &st) == -1)
    return coffer_fail_errno (making->call, errno, "mounts: the image");
  if (st.st_size == 0 && writable)
    return image_format (making, fd);
  if (pread (fd, magic, 2, MAGIC_AT) != 2 || magic[0] != 0x53
      || magic[1] != 0xef)
    return image_refuse (making, "neither empty nor an ext4 file system");
  if (most != 0 && (uint64_t) st.st_size > most)
    return fail_with (making->call, COFFER_INVALID,
                      "disk_bytes: the image has %lld bytes, more than %"
                      PRIu64, (long long) st.st_size, most);
  return COFFER_OK;
}

/* ---- device and mount --------------------------------------------------- */

static int
device_attach (int image, int writable)
{
  struct loop_config config = { .fd = (__u32) image };
  coffer_autoclose int control = open ("/dev/loop-control",
                                       O_RDWR | O_CLOEXEC);
  char path[40];
  int tries, number, fd;

  if (control < 0)
    return -1;
  config.info.lo_flags = LO_FLAGS_AUTOCLEAR
                         | (writable ? 0 : LO_FLAGS_READ_ONLY);
  snprintf ((char *) config.info.lo_file_name, LO_NAME_SIZE,
            "coffer workspace");
  for (tries = 0; tries < DEVICE_TRIES; tries++) {
    number = ioctl (control, LOOP_CTL_GET_FREE);
    if (number < 0)
      return -1;
    snprintf (path, sizeof path, "/dev/loop%d", number);
    fd = open (path, (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC);
    if (fd < 0)
      return -1;
    if (ioctl (fd, LOOP_CONFIGURE, &config) == 0)
      return fd;
    coffer_fd_close (&fd);
    if (errno != EBUSY)
      return -1;                /* not: somebody else was faster */
  }
  return -1;
}

static int
device_mount (int device, int writable)
{
  const unsigned attributes = ATTR_NOSUID_ | ATTR_NODEV_
                              | (writable ? 0 : ATTR_RDONLY_);
  coffer_autoclose int fs = -1;
  char path[40];

  snprintf (path, sizeof path, "/proc/self/fd/%d", device);
  fs = (int) syscall (SYS_fsopen, "ext4", FD_CLOEXEC_FLAG_);
  if (fs < 0
      || syscall (SYS_fsconfig, fs, CONFIG_STRING_, "source", path, 0) == -1
      /* Whatever the image says, its faults are no reason to panic. */
      || syscall (SYS_fsconfig, fs, CONFIG_STRING_, "errors", "remount-ro", 0)
           == -1
      || (!writable
          && syscall (SYS_fsconfig, fs, 0, "ro", NULL, 0) == -1)
      || syscall (SYS_fsconfig, fs, CONFIG_CREATE_, NULL, NULL, 0) == -1)
    return -1;
  return (int) syscall (SYS_fsmount, fs, FD_CLOEXEC_FLAG_, attributes);
}

int32_t
image_mount (struct making *making, const struct coffer_mount *mount,
             int *out)
{
  coffer_autoclose int image = -1, device = -1, tree = -1;
  int32_t code;

  if (!making->ids.privileged)
    return coffer_fail_with (making->call, COFFER_UNAVAILABLE, COFFER_RETRY_NO,
                             "mounts: a file as the workspace is an image, "
                             "and only root mounts one",
                             "{\"requirement\":\"quota.hard\"}");
  code = image_open (making, mount, &image);
  if (code == COFFER_OK)
    code = image_check (making, image, mount->writable != 0);
  if (code != COFFER_OK)
    return code;
  device = device_attach (image, mount->writable != 0);
  if (device < 0)
    return coffer_fail_with (making->call, COFFER_UNAVAILABLE, COFFER_RETRY_NO,
                             "mounts: the image: no loop device can be had; a "
                             "container needs /dev/loop-control and /dev/loop*",
                             "{\"requirement\":\"quota.hard\"}");
  tree = device_mount (device, mount->writable != 0);
  if (tree < 0)
    return coffer_fail_errno (making->call, errno,
                              "mounts: the image cannot be mounted");
  unlinkat (tree, "lost+found", AT_REMOVEDIR);
  code = mount_idmap (making, mount, tree);
  if (code == COFFER_OK)
    *out = coffer_fd_steal (&tree);
  return code;
}
