/* SPDX-License-Identifier: Apache-2.0 */
/* /proc of a sandbox: processes, and of the system what programs read; the
 * counts of its user namespace are limited through it. */

#include "init.h"

#define AT_FDCWD_ -100
#define O_CLOEXEC_ 02000000
#define O_RDWR_ 2
#define ATTR_RDONLY_ 1
#define ATTR_NOSUID_ 2
#define ATTR_NODEV_ 4
#define ATTR_NOEXEC_ 8

/* Looked for first: a detached mount that finds no place makes the kernel wait
 * for all its processors when it is closed.  What belongs to root and lets
 * nobody else in needs no cover: the sandbox's ids are never root's, whatever
 * groups the caller has.  A mount more is made and taken down in each run. */
static void
proc_cover (const char *path, int from, const char *source)
{
  struct {
    uint32_t mask, blksize;
    uint64_t attributes;
    uint32_t nlink, uid, gid;
    uint16_t mode, pad;
    uint64_t rest[30];
  } st;
  long r = SYS (statx, setup_root (), path, 0, 0x7ff, &st);
  int tree;

  if (r == -ENOENT_)
    return;                     /* this kernel has no such file */
  must (path, r);
  if (st.uid != (uint32_t) SYS (getuid) && (st.mode & 0077) == 0)
    return;
  tree = (int) must (path, tree_clone (from, source, 0));
  mount_attach (path, tree, setup_root (), path);
  fd_close (tree);
}

static void
count_limit (const char *step, const char *path, const char *limit)
{
  int fd = (int) must (step, SYS (openat, setup_root (), path,
                                  O_RDWR_ | O_CLOEXEC_));
  const size_t size = strlen (limit);
  char back[8] = "";

  must (step, SYS (write, fd, limit, size));
  must (step, SYS (pread64, fd, back, sizeof back - 1, 0));
  if (!text_equal (back, limit))
    setup_fail (step, -EPERM_);
  fd_close (fd);
}

/* No nested user namespaces: besides the filter, the kernel's own limit.  What
 * is counted for the user outside as well is not all used up in here. */
static void
counts_limit (void)
{
  static const char inotify[] = "proc/sys/user/max_inotify_instances";

  count_limit ("userns limit", "proc/sys/user/max_user_namespaces", "0\n");
  if (SYS (faccessat, setup_root (), inotify, 0) != -ENOENT_)
    count_limit ("inotify limit", inotify, "64\n");
}

static int
proc_new (const char *const *options)
{
  return filesystem_new ("proc: mount", "proc", options,
                         ATTR_NOSUID_ | ATTR_NODEV_ | ATTR_NOEXEC_);
}

static const char *const none[] = { NULL };
static int made_ahead = -1;

int
proc_ahead (void)
{
  if (made_ahead < 0)
    made_ahead = proc_new (none);
  return made_ahead;
}

static void
proc_mount (const char *const *options)
{
  int mount = options == none ? proc_ahead () : proc_new (options);

  mount_attach ("proc: attach", mount, setup_root (), "proc");
  fd_close (mount);
}

void
proc_make (void)
{
  static const char *const processes[] = { "subset", "pid", NULL };
  /* All else belongs to root and can be written by nobody else. */
  static const char *const read_only[] = { "proc/sys", "proc/pressure" };
  static const char *const files[]
    = { "proc/kcore", "proc/keys", "proc/key-users", "proc/timer_list",
        "proc/latency_stats", "proc/sched_debug", "proc/kallsyms",
        "proc/kmsg" };
  static const char *const folders[]
    = { "proc/acpi", "proc/scsi", "proc/asound" };
  const char *empty;
  int tree;
  size_t i;

  if (LAYER_ON (PID))
    proc_mount (none);
  else {
    tree = (int) must ("proc: mount", tree_clone (AT_FDCWD_, "/proc", 0));
    mount_attach ("proc: attach", tree, setup_root (), "proc");
    fd_close (tree);
  }
  if (LAYER_ON (USERNS) && LAYER_ON (USER))
    counts_limit ();
  if (!LAYER_ON (MASKS))
    return;
  /* The interpreter needs nothing of the system: over what the limits were
   * written through lies one of processes alone, for good. */
  if (strict_mode && LAYER_ON (PID)) {
    proc_mount (processes);
    return;
  }
  for (i = 0; i < sizeof read_only / sizeof read_only[0]; i++) {
    tree = tree_clone (setup_root (), read_only[i], 0);
    if (tree == -ENOENT_)
      continue;
    must (read_only[i], tree);
    attributes_set (read_only[i], tree, ATTR_RDONLY_, 0);
    mount_attach (read_only[i], tree, setup_root (), read_only[i]);
    fd_close (tree);
  }
  for (i = 0; i < sizeof files / sizeof files[0]; i++)
    proc_cover (files[i], setup_root (), "dev/null");
  /* An empty folder that can no longer be filled: its name is gone, or its
   * file system is read-only for good. */
  empty = setup_empty ();
  if (empty == NULL)
    must ("proc: cover", SYS (mkdirat, setup_root (), ".nothing", 0555));
  for (i = 0; i < sizeof folders / sizeof folders[0]; i++)
    proc_cover (folders[i], setup_root (), empty ? empty : ".nothing");
  if (empty == NULL)
    must ("proc: cover", SYS (unlinkat, setup_root (), ".nothing", 0x200));
}
