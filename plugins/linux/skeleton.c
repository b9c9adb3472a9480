/* SPDX-License-Identifier: Apache-2.0 */
/* The names in a root, made once for many sandboxes of root.
 *
 * Sixty names in a new file system are a tenth of what the kernel takes for a
 * sandbox, and taking them away again another part.  An instance that has made
 * sandboxes before has them in one file system that is read-only, in nobody's
 * tree, and each sandbox gets a mount of that.  It belongs to the machine's
 * root, who is nobody in any sandbox: whatever else fell, nothing could be
 * written there.
 *
 * What it has of the machine is how / and /etc look, and where certificates
 * are: when one of them changes it is made anew.  Sandboxes that have the old one keep it. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernel.h"
#include "root-names.h"
#include "spawn.h"

#define CONFIG_STRING_ 1
#define CONFIG_CREATE_ 6
#define ATTR_RDONLY_ 1
#define ATTR_NOSUID_ 2
#define ATTR_NODEV_ 4

void
root_stamp_take (struct root_stamp *out)
{
  static const char *const folders[STAMPED_FOLDERS]
    = { "/", "/etc", "/etc/ssl", "/etc/pki", "/etc/pki/tls" };
  struct stat st;
  size_t i;

  memset (out, 0, sizeof *out);
  for (i = 0; i < STAMPED_FOLDERS; i++)
    if (stat (folders[i], &st) == 0) {
      out->seconds[i] = st.st_mtim.tv_sec;
      out->ns[i] = st.st_mtim.tv_nsec;
    }
}

int
root_stamp_same (const struct root_stamp *a, const struct root_stamp *b)
{
  return memcmp (a, b, sizeof *a) == 0;
}

/* ---- names -------------------------------------------------------------- */

/* The umask is the whole process's, and other threads make files. */
static int
folder_make (int tree, const char *path)
{
  return mkdirat (tree, path, 0755) == -1
             || fchmodat (tree, path, 0755, 0) == -1
           ? -1 : 0;
}

static int
file_make (int tree, const char *path, const char *text)
{
  coffer_autoclose int fd
    = openat (tree, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);

  return fd < 0 || coffer_write_all (fd, text, strlen (text)) < 0
             || fchmod (fd, 0444) == -1
           ? -1 : 0;
}

/* A place for what is of the same kind outside; nothing where there is none. */
static int
place_make (int tree, const char *path)
{
  struct stat st;

  if (stat (path, &st) == -1)
    return errno == ENOENT || errno == ENOTDIR ? 0 : -1;
  return S_ISDIR (st.st_mode) ? folder_make (tree, path + 1)
                              : file_make (tree, path + 1, "");
}

/* Where programs are not all in /usr a root is made as it always was. */
static int
systems_make (int tree)
{
  char target[256];
  ssize_t n;
  size_t i;

  for (i = 0; i < sizeof root_systems / sizeof root_systems[0]; i++) {
    n = readlink (root_systems[i], target, sizeof target - 1);
    if (n == -1 && errno == ENOENT)
      continue;
    if (n == -1)
      return -1;
    target[n] = '\0';
    if ((strncmp (target, "usr/", 4) != 0 && strncmp (target, "/usr/", 5) != 0)
        || symlinkat (target, tree, root_systems[i] + 1) == -1)
      return -1;
  }
  return place_make (tree, "/usr");
}

static int
localtime_make (int tree)
{
  const char *zone = ROOT_ZONE;
  char target[256];
  ssize_t n = readlink ("/etc/localtime", target, sizeof target - 1);

  if (n > 0) {
    target[n] = '\0';
    if (strncmp (target, "/usr/share/zoneinfo/", 20) == 0
        || strncmp (target, "../usr/share/zoneinfo/", 22) == 0)
      zone = target;
  }
  return symlinkat (zone, tree, "etc/localtime");
}

static int
certificates_make (int tree)
{
  if (folder_make (tree, "etc/ssl") == -1
      || place_make (tree, "/etc/ssl/certs") == -1)
    return -1;
  if (access ("/etc/pki/ca-trust", F_OK) == -1)
    return 0;
  return folder_make (tree, "etc/pki") == -1
             || place_make (tree, "/etc/pki/ca-trust") == -1
             || folder_make (tree, "etc/pki/tls") == -1
             || place_make (tree, "/etc/pki/tls/certs") == -1
           ? -1 : 0;
}

/* With the lock held: the names in /etc are read. */
static int
etc_make (const struct linux_provider *self, int tree)
{
  const char *names = self->etc_names.data;
  char path[300];
  size_t at, i;

  if (folder_make (tree, "etc") == -1)
    return -1;
  for (i = 0; i < sizeof etc_files / sizeof etc_files[0]; i++)
    if (file_make (tree, etc_files[i].path, etc_files[i].text) == -1)
      return -1;
  for (at = 0; at < self->etc_names.size; at += strlen (names + at) + 1) {
    snprintf (path, sizeof path, "/etc/%s", names + at);
    if (place_make (tree, path) == -1)
      return -1;
  }
  return certificates_make (tree) == -1 ? -1 : localtime_make (tree);
}

static int
names_make (const struct linux_provider *self, int tree)
{
  size_t i;

  for (i = 0; i < sizeof root_folders / sizeof root_folders[0]; i++)
    if (folder_make (tree, root_folders[i]) == -1)
      return -1;
  for (i = 0; i < sizeof root_links / sizeof root_links[0]; i++)
    if (symlinkat (root_links[i].target, tree, root_links[i].path) == -1)
      return -1;
  for (i = 0; i < sizeof root_devices / sizeof root_devices[0]; i++)
    if (access (root_devices[i], F_OK) == 0
        && file_make (tree, root_devices[i] + 1, "") == -1)
      return -1;
  return systems_make (tree) == -1 ? -1 : etc_make (self, tree);
}

/* ---- the file system ---------------------------------------------------- */

static int
tmpfs_new (void)
{
  coffer_autoclose int fs = (int) syscall (SYS_fsopen, "tmpfs", 1);
  char bytes[16], inodes[16];

  snprintf (bytes, sizeof bytes, "%d", ROOT_BYTES);
  snprintf (inodes, sizeof inodes, "%d", ROOT_INODES);
  if (fs < 0
      || syscall (SYS_fsconfig, fs, CONFIG_STRING_, "size", bytes, 0) == -1
      || syscall (SYS_fsconfig, fs, CONFIG_STRING_, "nr_inodes", inodes, 0)
           == -1
      || syscall (SYS_fsconfig, fs, CONFIG_STRING_, "mode", "0755", 0) == -1
      || syscall (SYS_fsconfig, fs, CONFIG_CREATE_, NULL, NULL, 0) == -1)
    return -1;
  return (int) syscall (SYS_fsmount, fs, 1, ATTR_NOSUID_ | ATTR_NODEV_);
}

/* Read-only from here on, as are all mounts that are made of it. */
static int
tree_close (int tree)
{
  struct {
    uint64_t set, clear, propagation, userns;
  } attributes = { .set = ATTR_RDONLY_ };

  return (int) syscall (SYS_mount_setattr, tree, "", AT_EMPTY_PATH,
                        &attributes, sizeof attributes);
}

static int
tree_clone (int tree)
{
  return (int) syscall (SYS_open_tree, tree, "",
                        OPEN_TREE_CLONE_ | AT_EMPTY_PATH | O_CLOEXEC);
}

/* With the lock held. */
static int
skeleton_make (struct linux_provider *self)
{
  coffer_autoclose int tree = -1, probe = -1;
  struct root_stamp before, after;

  coffer_fd_close (&self->skeleton);
  root_stamp_take (&before);
  if (etc_names_renew (self) == -1)
    return -1;
  tree = tmpfs_new ();
  if (tree < 0 || names_make (self, tree) == -1 || tree_close (tree) == -1)
    return -1;
  /* Only kernels since 6.15 make a mount of one that is in no tree. */
  probe = tree_clone (tree);
  if (probe < 0)
    return -1;
  root_stamp_take (&after);
  if (!root_stamp_same (&before, &after))
    return -1;
  self->skeleton_stamp = before;
  self->skeleton = coffer_fd_steal (&tree);
  return 0;
}

int
skeleton_take (struct linux_provider *self)
{
  struct root_stamp now;
  int tree = -1;

  pthread_mutex_lock (&self->lock);
  root_stamp_take (&now);
  if (self->skeleton >= 0 && !root_stamp_same (&now, &self->skeleton_stamp))
    coffer_fd_close (&self->skeleton);
  /* One that could not be made is not tried again, unless it was in use. */
  if (self->skeleton < 0 && !self->skeleton_refused
      && skeleton_make (self) == -1)
    self->skeleton_refused = 1;
  if (self->skeleton >= 0)
    tree = tree_clone (self->skeleton);
  pthread_mutex_unlock (&self->lock);
  return tree;
}

/* ---- for whom ----------------------------------------------------------- */

/* What the caller shows finds its place without a name being made. */
static int
target_there (const char *target)
{
  return target != NULL
         && (strcmp (target, "/workspace") == 0
             || strncmp (target, "/workspace/", 11) == 0
             || strncmp (target, "/tmp/", 5) == 0);
}

int
skeleton_fits (const struct making *making)
{
  const struct coffer_sandbox_spec *spec = making->spec;
  struct linux_provider *self = making->self;
  int worth;
  size_t i;

  pthread_mutex_lock (&self->lock);
  worth = self->spare.creations > 0 && !self->skeleton_refused;
  pthread_mutex_unlock (&self->lock);
  if (!LAYERS_WHOLE || !worth || geteuid () != 0 || spec->root_writable
      || spec->template_name != NULL || making->network == NETWORK_HOST)
    return 0;
  for (i = 0; spec->mounts != NULL && spec->mounts[i] != NULL; i++)
    if (!target_there (spec->mounts[i]->target))
      return 0;
  return 1;
}
