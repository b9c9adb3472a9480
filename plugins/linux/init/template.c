/* SPDX-License-Identifier: Apache-2.0 */
/* A root file system of somebody else's, in place of the host's programs: its
 * folders are shown one by one, read-only, and over a few files of its /etc lie
 * ours.  What a sandbox makes itself is never taken from it. */

#include "init.h"

#define AT_FDCWD_ -100
#define AT_NOFOLLOW_ 0x100
#define AT_RECURSIVE_ 0x8000
#define O_CLOEXEC_ 02000000
#define O_WRONLY_ 1
#define O_CREAT_ 0100
#define O_EXCL_ 0200
#define ATTR_RDONLY_ 1
#define ATTR_NOSUID_ 2
#define ATTR_NODEV_ 4
#define MNT_DETACH_ 2
#define AT_REMOVEDIR_ 0x200
#if defined __aarch64__
#define O_DIRECTORY_ 040000
#else
#define O_DIRECTORY_ 00200000
#endif

#define FOLDERS_MAX 64
#define NAME_MAX_ 255
#define WHOLE ".template"
#define ATTRIBUTES (ATTR_RDONLY_ | ATTR_NOSUID_ | ATTR_NODEV_)

static char shown[FOLDERS_MAX][NAME_MAX_ + 2];  /* "/NAME" */
static unsigned n_shown;
static int present;

const char *
template_folder (unsigned i)
{
  return i < n_shown ? shown[i] : NULL;
}

static int
ours (const char *name)
{
  static const char *const names[]
    = { ".", "..", "proc", "sys", "dev", "tmp", "run", "workspace",
        "lost+found", WHOLE };
  size_t i;

  for (i = 0; i < sizeof names / sizeof names[0]; i++)
    if (text_equal (name, names[i]))
      return 1;
  return 0;
}

static void
folder_show (const char *name, const char *from)
{
  int root = setup_root (), tree;
  long r;

  if (n_shown == FOLDERS_MAX)
    setup_fail ("template: more than 64 folders at the top", -E2BIG_);
  tree = tree_clone (root, from, AT_NOFOLLOW_ | AT_RECURSIVE_);
  must ("template: folder", tree);
  r = SYS (mkdirat, root, name, 0755);
  if (r != -EEXIST_)
    must ("template: folder", r);
  attributes_set ("template: attributes", tree, ATTRIBUTES, 1);
  mount_attach ("template: attach", tree, root, name);
  fd_close (tree);
  text_join (shown[n_shown++], sizeof shown[0], "/", name, NULL);
}

/* Links of the top are made anew, as they are: here they lead nowhere but into
 * this root.  Anything else at the top is left out. */
static void
entry_show (const char *name)
{
  char from[NAME_MAX_ + sizeof WHOLE + 2], target[4096];
  int root = setup_root (), dir;
  long n;

  if (ours (name))
    return;
  text_join (from, sizeof from, WHOLE "/", name, NULL);
  n = SYS (readlinkat, root, from, target, sizeof target - 1);
  if (n > 0) {
    target[n] = '\0';
    SYS (unlinkat, root, name, AT_REMOVEDIR_);  /* an empty one of ours */
    must ("template: link", SYS (symlinkat, target, root, name));
    return;
  }
  dir = (int) SYS (openat, root, from, O_DIRECTORY_ | O_CLOEXEC_);
  if (dir < 0)
    return;
  fd_close (dir);
  folder_show (name, from);
}

static void
entries_show (void)
{
  static char entries[32768];
  int dir = (int) must ("template", SYS (openat, setup_root (), WHOLE,
                                         O_DIRECTORY_ | O_CLOEXEC_));
  uint16_t length;
  long n, at;

  while ((n = must ("template", SYS (getdents64, dir, entries,
                                     sizeof entries))) > 0)
    for (at = 0; at < n; at += length) {
      memcpy (&length, entries + at + 16, sizeof length);
      entry_show (entries + at + 19);
    }
  fd_close (dir);
}

void
template_show (const struct plan *plan)
{
  const char *at = (const char *) plan->packet->header
                   + sizeof *plan->packet->header + plan->body.size;
  struct init_mount mount = { 0, 0, 0, 0 };
  const char *source;
  int root = setup_root (), tree;

  if (plan->body.mounts > 0)
    memcpy (&mount, at, sizeof mount);
  if (!(mount.flags & MOUNT_ROOT)
      || plan->first_mount_fd >= plan->packet->n_fds)
    setup_fail ("template", -EPROTO_);
  tree = plan->packet->fds[plan->first_mount_fd];
  source = packet_string (plan->packet, mount.source);
  if (!(mount.flags & MOUNT_DETACHED))
    tree = source_find (source ? source : "", tree);
  attributes_set ("template: attributes", tree, ATTRIBUTES, 1);
  must ("template", SYS (mkdirat, root, WHOLE, 0700));
  mount_attach ("template: attach", tree, root, WHOLE);
  fd_close (tree);
  entries_show ();
  must ("template", SYS (fchdir, root));
  must ("template: detach", SYS (umount2, WHOLE, MNT_DETACH_));
  must ("template", SYS (unlinkat, root, WHOLE, AT_REMOVEDIR_));
  present = 1;
}

/* Only over what is there: the tree was made ready for it when it was added. */
static void
file_cover (const char *path, const char *text)
{
  static const char cover[] = ".cover";
  const size_t size = strlen (text);
  int root = setup_root (), fd, tree;

  if (SYS (faccessat, root, path, 0) < 0)
    return;
  fd = (int) must (path, SYS (openat, root, cover,
                              O_WRONLY_ | O_CREAT_ | O_EXCL_ | O_CLOEXEC_,
                              0444));
  if (must (path, SYS (write, fd, text, size)) != (long) size)
    setup_fail (path, -ENOSPC_);
  fd_close (fd);
  tree = (int) must (path, tree_clone (root, cover, 0));
  attributes_set (path, tree, ATTRIBUTES, 0);
  mount_attach (path, tree, root, path);
  fd_close (tree);
  must (path, SYS (unlinkat, root, cover, 0));
}

int
template_cover (const char *path, const char *text)
{
  if (!present)
    return 0;
  /* What it has to say of its own kinds of files stands. */
  if (!text_equal (path, "etc/mime.types"))
    file_cover (path, text);
  return 1;
}

void
template_finish (void)
{
  int root = setup_root (), dir, tree;

  dir = (int) SYS (openat, root, "var/tmp", O_DIRECTORY_ | O_CLOEXEC_);
  if (dir < 0)
    return;
  fd_close (dir);
  /* Where /var is none of its, var/tmp is our own link to it already. */
  if (SYS (faccessat, root, "var/tmp", 2) == 0)
    return;
  tree = (int) must ("var/tmp", tree_clone (root, "tmp", 0));
  mount_attach ("var/tmp", tree, root, "var/tmp");
  fd_close (tree);
}

void
template_facts (struct facts *facts)
{
  uint64_t fs[16];
  unsigned i;

  for (i = 0; i < n_shown; i++) {
    memset (fs, 0, sizeof fs);
    must ("statfs", SYS (statfs, shown[i], fs));
    if ((fs[10] & 7) != 7)      /* ro, nosuid, nodev */
      setup_fail ("template: read back", -EPERM_);
  }
  fact_add (facts, "template", "ok", "read-only, nosuid, nodev", "statfs", "");
}
