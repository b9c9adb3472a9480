/* SPDX-License-Identifier: Apache-2.0 */
/* The world of a sandbox: a root of its own in memory, the host's programs
 * read-only, an /etc that says nothing about the host.
 *
 * Every mount is made detached, gets its attributes, and is then put in place
 * below a descriptor of the new root, so that no name of the old root is ever
 * walked for a target.  A step that fails names itself and ends everything. */

#include "init.h"
#include "../etc-names.h"
#include "../root-names.h"

#define AT_FDCWD_ -100
#define AT_EMPTY_PATH_ 0x1000
#define AT_RECURSIVE_ 0x8000
#define O_PATH_ 010000000
#define O_CLOEXEC_ 02000000
#define O_DIRECTORY_ 00200000
#define O_WRONLY_ 1
#define O_CREAT_ 0100
#define O_EXCL_ 0200
#define OPEN_TREE_CLONE_ 1
#define MOVE_EMPTY_ 4
#define CONFIG_FLAG_ 0
#define CONFIG_STRING_ 1
#define CONFIG_CREATE_ 6
#define ATTR_RDONLY_ 1
#define ATTR_NOSUID_ 2
#define ATTR_NODEV_ 4
#define ATTR_NOEXEC_ 8
#define MS_PRIVATE_ 0x40000
#define MS_REC_ 0x4000
#define MNT_DETACH_ 2
#define S_IFMT_ 0170000
#define S_IFDIR_ 0040000
#define S_IFREG_ 0100000

#if defined __aarch64__
#undef O_DIRECTORY_
#define O_DIRECTORY_ 040000
#endif

struct attributes {
  uint64_t set, clear, propagation, userns;
};

/* struct statx, as far as it is looked at. */
struct statx_ {
  uint32_t mask, blksize;
  uint64_t attributes;
  uint32_t nlink, uid, gid;
  uint16_t mode, pad;
  uint64_t ino, size, blocks, attributes_mask;
  uint64_t times[8];
  uint32_t rdev_major, rdev_minor, dev_major, dev_minor;
  uint64_t rest[14];
};

int host_pts = -1;
static int root = -1;           /* of the sandbox */
static int skeleton = -1;       /* that root, with its names made already */
static struct statx_ root_stat, data_stat;

int
setup_root (void)
{
  return root;
}

const char *
setup_empty (void)
{
  return skeleton < 0 ? 0 : "opt";
}

static void
stat_fd (const char *step, int fd, struct statx_ *out)
{
  must (step, SYS (statx, fd, "", AT_EMPTY_PATH_, 0x7ff, out));
}

static int
same_device (const struct statx_ *a, const struct statx_ *b)
{
  return a->dev_major == b->dev_major && a->dev_minor == b->dev_minor;
}

/* ---- mounts ------------------------------------------------------------- */

void
attributes_set (const char *step, int mount, uint64_t flags, int recursive)
{
  struct attributes attributes = { .set = LAYER_ATTRIBUTES (flags),
                                   .propagation = MS_PRIVATE_ };

  must (step,
        SYS (mount_setattr, mount, "",
             AT_EMPTY_PATH_ | (recursive ? AT_RECURSIVE_ : 0), &attributes,
             sizeof attributes));
}

void
mount_attach (const char *step, int mount, int dir, const char *name)
{
  must (step, SYS (move_mount, mount, "", dir, name, MOVE_EMPTY_));
}

/* A new file system; options are pairs of key and value (value NULL: a flag),
 * ended by NULL. */
int
filesystem_new (const char *step, const char *type, const char *const *options,
                uint64_t flags)
{
  int fs = (int) must (step, SYS (fsopen, type, 1)), mount;

  for (; *options != NULL; options += 2)
    must (step, SYS (fsconfig, fs, options[1] ? CONFIG_STRING_ : CONFIG_FLAG_,
                     options[0], options[1], 0));
  must (step, SYS (fsconfig, fs, CONFIG_CREATE_, 0, 0, 0));
  mount = (int) must (step, SYS (fsmount, fs, 1, flags));
  fd_close (fs);
  return mount;
}

static int
tmpfs_new (const char *step, uint64_t bytes, uint64_t inodes)
{
  char size[21], count[21];
  const char *options[] = { "size", text_number (size, bytes), "nr_inodes",
                            text_number (count, inodes), "mode", "0755",
                            NULL };

  return filesystem_new (step, "tmpfs", options, ATTR_NOSUID_ | ATTR_NODEV_);
}

int
tree_clone (int dir, const char *path, unsigned flags)
{
  return (int) SYS (open_tree, dir, path,
                    OPEN_TREE_CLONE_ | O_CLOEXEC_ | flags);
}

static void
dir_make (const char *path, unsigned mode)
{
  if (skeleton < 0)
    must (path, SYS (mkdirat, root, path, mode));
}

static void
link_make (const char *target, const char *path)
{
  if (skeleton < 0)
    must (path, SYS (symlinkat, target, root, path));
}

/* 0: it is not in the skeleton, having come when that was there already. */
static int
place_make (const char *path, int is_folder)
{
  long r = is_folder ? SYS (mkdirat, root, path, 0755)
                     : SYS (mknodat, root, path, S_IFREG_ | 0444, 0);

  if (skeleton < 0)
    must (path, r);
  else if (r != -EEXIST_)
    return 0;
  return 1;
}

/* Shows a path of the host, read-only, at the same place below the new root.
 * A path that the host does not have is left out; 1: it is there. */
static int
host_show (const char *path)
{
  struct statx_ st;
  int tree = tree_clone (AT_FDCWD_, path, AT_RECURSIVE_);

  if (tree == -ENOENT_ || tree == -ENOTDIR_)
    return 0;
  must (path, tree);
  stat_fd (path, tree, &st);
  if ((st.mode & S_IFMT_) != S_IFDIR_ && (st.mode & S_IFMT_) != S_IFREG_)
    setup_fail (path, -EINVAL_);
  if (!place_make (path + 1, (st.mode & S_IFMT_) == S_IFDIR_)) {
    fd_close (tree);
    return 0;
  }
  attributes_set (path, tree, ATTR_RDONLY_ | ATTR_NOSUID_ | ATTR_NODEV_, 1);
  mount_attach (path, tree, root, path + 1);
  fd_close (tree);
  return 1;
}

/* ---- the parts ---------------------------------------------------------- */

static void
root_make (const struct plan *plan)
{
  uint64_t bytes = ROOT_BYTES;

  if (plan->shape.flags & PLAN_ROOT_WRITABLE)
    bytes = plan->shape.disk_bytes;
  must ("mounts: private",
        SYS (mount, 0, "/", 0, MS_REC_ | MS_PRIVATE_, 0));
  root = skeleton >= 0 ? skeleton
                       : tmpfs_new ("root: tmpfs", bytes, ROOT_INODES);
  stat_fd ("root: stat", root, &root_stat);
  mount_attach ("root: attach", root, AT_FDCWD_, "/");
}

static void
system_show (void)
{
  char target[256];
  size_t i;
  long n;

  host_show ("/usr");
  for (i = 0; skeleton < 0 && i < sizeof root_systems / sizeof root_systems[0];
       i++) {
    n = SYS (readlinkat, AT_FDCWD_, root_systems[i], target,
             sizeof target - 1);
    if (n == -ENOENT_)
      continue;
    if (n == -EINVAL_) {
      host_show (root_systems[i]);
      continue;
    }
    must (root_systems[i], n);
    target[n] = '\0';
    if (text_starts (target, "usr/") || text_starts (target, "/usr/"))
      link_make (target, root_systems[i] + 1);
    else
      host_show (root_systems[i]);
  }
}

/* Workspace, /tmp and /dev/shm are folders of one file system, so that one cap
 * holds for all of them. */
static void
data_make (const struct plan *plan)
{
  static const char *const where[] = { "workspace", "tmp", "dev/shm" };
  static const char *const parts[] = { "tmp/w", "tmp/t", "tmp/s" };
  int data = tmpfs_new ("data: tmpfs",
                        LAYER_ON (DISK) ? plan->shape.disk_bytes : 0,
                        LAYER_ON (DISK) ? plan->shape.inodes : 0);
  int trees[3], i;

  stat_fd ("data: stat", data, &data_stat);
  must ("data: workspace", SYS (mkdirat, data, "w", 0755));
  must ("data: tmp", SYS (mkdirat, data, "t", 01777));
  must ("data: shm", SYS (mkdirat, data, "s", 01777));
  landlock_prepare (plan, data);
  mount_attach ("data: attach", data, root, "tmp");
  for (i = 0; i < 3; i++)
    trees[i] = (int) must ("data: clone", tree_clone (root, parts[i], 0));
  for (i = 0; i < 3; i++) {
    mount_attach (where[i], trees[i], root, where[i]);
    fd_close (trees[i]);
  }
  fd_close (data);
}

static void
devices_make (void)
{
  static const char *const pts[] = { "newinstance", NULL, "ptmxmode", "0666",
                                     "mode", "0620", "max", "256", NULL };
  size_t i;
  int mount;

  /* Terminals of commands are of the host's /dev/pts: for Landlock's rules. */
  host_pts = (int) SYS (openat, AT_FDCWD_, "/dev/pts",
                        O_PATH_ | O_DIRECTORY_ | O_CLOEXEC_);
  for (i = 0; i < sizeof root_devices / sizeof root_devices[0]; i++) {
    const char *device = root_devices[i];

    mount = tree_clone (AT_FDCWD_, device, 0);
    if (mount == -ENOENT_ && text_equal (device, "/dev/tty"))
      continue;                 /* some containers have none */
    must (device, mount);
    if (!place_make (device + 1, 0))
      setup_fail (device, -ENOENT_);
    /* Read-only is about the node itself; writing to the device still works. */
    attributes_set (device, mount,
                    ATTR_RDONLY_ | ATTR_NOSUID_ | ATTR_NOEXEC_, 0);
    mount_attach (device, mount, root, device + 1);
    fd_close (mount);
  }
  mount = filesystem_new ("devpts", "devpts", pts,
                          ATTR_NOSUID_ | ATTR_NOEXEC_);
  mount_attach ("devpts", mount, root, "dev/pts");
  fd_close (mount);
}

/* ---- /etc --------------------------------------------------------------- */


static void
etc_write (const struct etc_file *file)
{
  size_t size = strlen (file->text);
  int fd = (int) must (file->path,
                       SYS (openat, root, file->path,
                            O_WRONLY_ | O_CREAT_ | O_EXCL_ | O_CLOEXEC_,
                            0444));

  if (must (file->path, SYS (write, fd, file->text, size)) != (long) size)
    setup_fail (file->path, -ENOSPC_);
  fd_close (fd);
}

static int
etc_wanted (const char *name)
{
  size_t i;

  for (i = 0; name[i] != '\0'; i++)
    if (name[i] == '/')
      return 0;
  for (i = 0; i < sizeof etc_names / sizeof etc_names[0]; i++)
    if (text_equal (name, etc_names[i]))
      return 1;
  for (i = 0; i < sizeof etc_prefixes / sizeof etc_prefixes[0]; i++)
    if (text_starts (name, etc_prefixes[i]))
      return 1;
  return 0;
}

static char names[ETC_NAMES_BYTES + 1];
static size_t names_size;

/* The message after the one that said what to prepare. */
static void
names_take (const struct plan *plan)
{
  names_size
    = (size_t) must ("names in /etc", names_receive (plan->control, names,
                                                     ETC_NAMES_BYTES));
  names[names_size] = '\0';
}

/* What the host's /etc has of the things that programs cannot do without. */
static void
etc_show (void)
{
  char path[300];
  size_t at;

  for (at = 0; at < names_size; at += strlen (names + at) + 1) {
    if (!etc_wanted (names + at))
      setup_fail ("/etc", -EPROTO_);
    host_show (text_join (path, sizeof path, "/etc/", names + at, NULL));
  }
}

static void
certificates_show (void)
{
  dir_make ("etc/ssl", 0755);
  host_show ("/etc/ssl/certs");
  if (SYS (faccessat, AT_FDCWD_, "/etc/pki/ca-trust", 0) == 0) {
    dir_make ("etc/pki", 0755);
    host_show ("/etc/pki/ca-trust");
    dir_make ("etc/pki/tls", 0755);
    host_show ("/etc/pki/tls/certs");
  }
}

static void
localtime_make (void)
{
  char target[256];
  const char *zone = ROOT_ZONE;
  long n = SYS (readlinkat, AT_FDCWD_, "/etc/localtime", target,
                sizeof target - 1);

  if (n > 0) {
    target[n] = '\0';
    if (text_starts (target, "/usr/share/zoneinfo/")
        || text_starts (target, "../usr/share/zoneinfo/"))
      zone = target;
  }
  link_make (zone, "etc/localtime");
}

/* In the machine's network its names are the machine's. */
static struct etc_file
etc_host (const struct etc_file *ours)
{
  static char text[65536];
  struct etc_file file = { ours->path, text };
  char path[64];
  int fd = (int) SYS (openat, AT_FDCWD_,
                      text_join (path, sizeof path, "/", ours->path, NULL),
                      O_CLOEXEC_);
  long n = fd < 0 ? fd : SYS (read, fd, text, sizeof text - 1);

  fd_close (fd);
  text[n > 0 ? n : 0] = '\0';
  return n > 0 ? file : *ours;
}

static void
etc_make (const struct plan *plan)
{
  const int shared = (plan->shape.flags & PLAN_HOST_NETWORK) != 0;
  struct etc_file file;
  size_t i;

  for (i = 0; i < sizeof etc_files / sizeof etc_files[0]; i++) {
    file = etc_files[i];
    if (shared && (text_equal (file.path, "etc/hosts")
                   || text_equal (file.path, "etc/resolv.conf")))
      file = etc_host (&etc_files[i]);
    if (!template_cover (file.path, file.text))
      etc_write (&file);
  }
}

/* ---- the caller's mounts ------------------------------------------------ */

/* Opens the mount point below the new root without following any link, and
 * makes what is missing, but only in the sandbox's own file systems: nothing
 * is ever created in a folder of the host. */
static int
target_open (const char *target, int file)
{
  struct {
    uint64_t flags, mode, resolve;
  } how = { O_PATH_ | O_CLOEXEC_, 0, 0x10 | 0x04 | 0x02 };
  char name[256];
  struct statx_ st;
  int dir = (int) must ("mount point", SYS (openat, root, ".",
                                            O_PATH_ | O_CLOEXEC_));
  int last;
  size_t n;
  long next;

  while (*target == '/')
    target++;
  while (*target != '\0') {
    for (n = 0; target[n] != '\0' && target[n] != '/'; n++)
      if (n + 1 >= sizeof name)
        setup_fail ("mount point: name too long", -EINVAL_);
    memcpy (name, target, n);
    name[n] = '\0';
    for (target += n; *target == '/'; target++)
      ;
    last = *target == '\0';
    if (text_equal (name, ".."))
      setup_fail ("mount point", -EINVAL_);
    next = SYS (openat2, dir, name, &how, sizeof how);
    if (next == -ENOENT_) {
      stat_fd ("mount point", dir, &st);
      if (!same_device (&st, &root_stat) && !same_device (&st, &data_stat))
        setup_fail ("mount point: missing in a folder of the host", -ENOENT_);
      if (last && file)
        must ("mount point", SYS (mknodat, dir, name, S_IFREG_ | 0644, 0));
      else
        must ("mount point", SYS (mkdirat, dir, name, 0755));
      next = SYS (openat2, dir, name, &how, sizeof how);
    }
    must ("mount point", next);
    fd_close (dir);
    dir = (int) next;
  }
  return dir;
}

/* The mount of a pinned descriptor when its maker could not clone it: found
 * again by name, and refused when it is not the very same thing. */
int
source_find (const char *source, int pinned)
{
  struct statx_ want, have;
  int tree = tree_clone (AT_FDCWD_, source, AT_RECURSIVE_ | 0x100);

  must ("mount source", tree);
  stat_fd ("mount source", pinned, &want);
  stat_fd ("mount source", tree, &have);
  if (want.ino != have.ino || !same_device (&want, &have))
    setup_fail ("mount source: replaced meanwhile", -ESTALE_);
  return tree;
}

static void
mount_show (const struct plan *plan, const struct init_mount *mount, int fd)
{
  uint64_t flags = ATTR_NOSUID_ | ATTR_NODEV_;
  const char *target = packet_string (plan->packet, mount->target);
  const char *source = packet_string (plan->packet, mount->source);
  int tree = fd, point;

  if (target == NULL || source == NULL)
    setup_fail ("mount", -EPROTO_);
  if (!(mount->flags & MOUNT_DETACHED))
    tree = source_find (source, fd);
  if (!(mount->flags & MOUNT_WRITABLE))
    flags |= ATTR_RDONLY_;
  attributes_set ("mount attributes", tree, flags, 1);
  point = target_open (target, (mount->flags & MOUNT_FILE) != 0);
  must ("mount attach", SYS (move_mount, tree, "", point, "",
                             MOVE_EMPTY_ | 0x40 /* to: empty path */));
  fd_close (point);
  if (mount->flags & MOUNT_QUOTA)
    limits_watch (tree);
  fd_close (tree);
  if (tree != fd)
    fd_close (fd);
}

static void
mounts_show (const struct plan *plan)
{
  const char *at = (const char *) plan->packet->header
                   + sizeof *plan->packet->header + plan->body.size;
  struct init_mount mount;
  uint32_t i;

  for (i = 0; i < plan->body.mounts; i++) {
    if (plan->first_mount_fd + i >= plan->packet->n_fds)
      setup_fail ("mounts", -EPROTO_);
    memcpy (&mount, at + i * sizeof mount, sizeof mount);
    if (mount.flags & MOUNT_ROOT)
      continue;
    mount_show (plan, &mount, plan->packet->fds[plan->first_mount_fd + i]);
  }
}

/* ---- all of it ---------------------------------------------------------- */

static void
ids_take (const struct plan *plan)
{
  const uint32_t uid = plan->shape.uid, gid = plan->shape.gid;

  if (!(plan->shape.flags & PLAN_PRIVILEGED))
    return;
  must ("setresgid", SYS (setresgid, gid, gid, gid));
  must ("setresuid", SYS (setresuid, uid, uid, uid));
}

/* After it no name of the old root leads anywhere.  An ordinary user's mounts
 * are found again by theirs, and a template is all of the root: there it comes
 * last. */
static void
root_enter (void)
{
  must ("root: enter", SYS (fchdir, root));
  must ("root: pivot", SYS (pivot_root, ".", "."));
  must ("root: chdir", SYS (chdir, "/"));
}

/* It lies over the new one, where no name but this one looks.  The kernel waits
 * there until each processor has been through, which one that makes a network
 * namespace puts off: whoever has one made has it first. */
static void
root_detach (void)
{
  if (LAYER_ON (DETACH))
    must ("root: detach the old one", SYS (umount2, ".", MNT_DETACH_));
}

static void
root_settle (const struct plan *plan)
{
  struct attributes attributes = { .set = ATTR_RDONLY_ };

  if (!(plan->shape.flags & PLAN_ROOT_WRITABLE))
    must ("root: read-only",
          SYS (mount_setattr, AT_FDCWD_, "/", 0, &attributes,
               sizeof attributes));
  fd_close (root);
}

static int
template_is (const struct plan *plan)
{
  return (plan->shape.flags & PLAN_TEMPLATE) != 0;
}

static int
root_entered_early (const struct plan *plan)
{
  return (plan->shape.flags & PLAN_PRIVILEGED) != 0 && !template_is (plan);
}

/* What no plan has a say in. */
static void
world_begin (const struct plan *plan)
{
  size_t i;

  skeleton = plan->skeleton;
  root_make (plan);
  for (i = 0; i < sizeof root_folders / sizeof root_folders[0]; i++)
    dir_make (root_folders[i], 0755);
  for (i = 0; i < sizeof root_links / sizeof root_links[0]; i++)
    link_make (root_links[i].target, root_links[i].path);
  if (!template_is (plan)) {
    system_show ();
    dir_make ("etc", 0755);
    if (skeleton < 0)
      etc_make (plan);
  }
  devices_make ();
  data_make (plan);
  proc_make ();
  if (network_late)
    network_begin_beside ();
  if (!template_is (plan)) {
    names_take (plan);
    etc_show ();
    certificates_show ();
    localtime_make ();
  }
  if (!root_entered_early (plan))
    return;
  root_enter ();
  if (!network_late)
    root_detach ();
}

static void
world_end (const struct plan *plan)
{
  if (template_is (plan)) {
    template_show (plan);
    etc_make (plan);
    template_finish ();
  }
  mounts_show (plan);
  if (!root_entered_early (plan))
    root_enter ();
  root_settle (plan);
}

static void
old_world_end (const struct plan *plan)
{
  if (network_late)
    network_join ();
  if (LAYER_ON (MOUNT) && (network_late || !root_entered_early (plan)))
    root_detach ();
}

void
setup_begin (const struct plan *plan)
{
  SYS (umask, 0);
  /* Only of a namespace of its own. */
  if (LAYER_ON (USER) && LAYER_ON (IPC) && LAYER_ON (PID) && LAYER_ON (MOUNT))
    limits_prepare (plan);
  if (LAYER_ON (USER))
    ids_take (plan);
  if (LAYER_ON (DUMPABLE))
    must ("prctl dumpable", SYS (prctl, 4, 0, 0, 0, 0));
  if (LAYER_ON (MOUNT))
    world_begin (plan);
  else if (!template_is (plan))
    names_take (plan);
  if (LAYERS_WHOLE)
    capabilities_bound ();
}

void
setup_end (const struct plan *plan)
{
  if (LAYER_ON (UTS))
    must ("hostname", SYS (sethostname, plan->hostname,
                           strlen (plan->hostname)));
  if (LAYER_ON (MOUNT))
    world_end (plan);
  SYS (umask, 022);
}

void
setup_last (const struct plan *plan)
{
  old_world_end (plan);
  if (LAYER_ON (NET))
    network_make (plan);
  LAYERS_IDS (plan);
}
