/* SPDX-License-Identifier: Apache-2.0 */
/* The first process of the floor (bench-sandbox.c): the mounts that a sandbox
 * has, one program, and nothing else.  No filter, no Landlock, no limits, no
 * capability given up, nothing read back, no /etc written: what is left is
 * what the kernel takes for a sandbox of that shape.
 *
 *   floor-init UID MOUNT… -- PROGRAM [ARGUMENT…]
 *
 * Each MOUNT is a letter, a digit that holds its attributes and a path:
 *   b bind of the same path outside   D the file system for data
 *   p proc   t devpts   s itself      d a folder of it, named by a letter
 *   n /dev/null         e an empty folder
 * Descriptor 0: a byte comes when the ids are mapped.  3: a byte goes there
 * when the program has ended, and then this waits to be killed. */

#include "../../plugins/linux/init/init.h"

#define CLONE_ 1
#define CLOEXEC_ 02000000
#define EMPTY_ 0x1000
#define RECURSIVE_ 0x8000
#define FDCWD_ -100
#define VM_VFORK_CHLD_ (0x100 | 0x4000 | 17)

struct attributes {
  uint64_t set, clear, propagation, userns;
};

static int root, data;
static const char **program;

static long
need (long r)
{
  if (r < 0)
    init_exit_now (100);
  return r;
}

static int
filesystem (const char *type, const char *const *options, unsigned flags)
{
  int fs = (int) need (SYS (fsopen, type, 1)), mount;

  for (; *options != NULL; options += 2)
    need (SYS (fsconfig, fs, options[1] ? 1 : 0, options[0], options[1], 0));
  need (SYS (fsconfig, fs, 6, 0, 0, 0));
  mount = (int) need (SYS (fsmount, fs, 1, flags));
  fd_close (fs);
  return mount;
}

static void
attach (int tree, const char *path, unsigned flags, int is_folder)
{
  struct attributes attributes = { .set = flags, .propagation = 0x40000 };

  /* The place may be there: of proc, or a folder made for another. */
  if (is_folder)
    SYS (mkdirat, root, path, 0755);
  else
    SYS (mknodat, root, path, 0100444, 0);
  need (SYS (mount_setattr, tree, "", EMPTY_ | RECURSIVE_, &attributes,
             sizeof attributes));
  need (SYS (move_mount, tree, "", root, path, 4));
  fd_close (tree);
}

static int
is_folder (const char *path)
{
  int fd = (int) SYS (openat, FDCWD_, path, 010000000 | 0200000 | CLOEXEC_);

  fd_close (fd);
  return fd >= 0;
}

/* The file system of /tmp, /workspace and /dev/shm, and a folder of it. */
static void
data_make (const char *path, unsigned flags)
{
  static const char *const options[]
    = { "size", "1073741824", "nr_inodes", "65536", "mode", "0755", NULL };

  data = filesystem ("tmpfs", options, flags);
  need (SYS (move_mount, data, "", root, path + 1, 4));
}

static void
data_show (char letter, const char *path, unsigned flags)
{
  const char name[2] = { letter, '\0' };

  need (SYS (mkdirat, data, name, 01777));
  attach ((int) need (SYS (open_tree, data, name, CLONE_ | CLOEXEC_)),
          path + 1, flags, 1);
}

static void
mount_one (const char *what)
{
  static const char *const none[] = { NULL };
  static const char *const pts[] = { "newinstance", NULL, "ptmxmode", "0666",
                                     "mode", "0620", "max", "256", NULL };
  const unsigned flags = (unsigned) (what[1] - '0');
  const char *path = what + 2;
  int tree;

  switch (what[0]) {
  case 'b':
    tree = (int) need (SYS (open_tree, FDCWD_, path,
                            CLONE_ | CLOEXEC_ | RECURSIVE_));
    attach (tree, path + 1, flags, is_folder (path));
    return;
  case 'D':
    data_make (path, flags);
    return;
  case 'd':
    data_show (path[0], path + 1, flags);
    return;
  case 'p':
    attach (filesystem ("proc", none, flags), path + 1, flags, 1);
    return;
  case 't':
    attach (filesystem ("devpts", pts, flags), path + 1, flags, 1);
    return;
  case 's':
    tree = (int) need (SYS (open_tree, root, path + 1, CLONE_ | CLOEXEC_));
    attach (tree, path + 1, flags, 1);
    return;
  case 'n':
    tree = (int) need (SYS (open_tree, root, "dev/null", CLONE_ | CLOEXEC_));
    attach (tree, path + 1, flags, 0);
    return;
  default:
    SYS (mkdirat, root, "empty", 0555);
    tree = (int) need (SYS (open_tree, root, "empty", CLONE_ | CLOEXEC_));
    attach (tree, path + 1, flags, 1);
  }
}

static void
root_make (void)
{
  static const char *const options[]
    = { "size", "4194304", "nr_inodes", "4096", "mode", "0755", NULL };
  static const char *const folders[]
    = { "proc", "dev", "dev/pts", "dev/shm", "tmp", "workspace", "etc",
        "etc/ssl" };
  static const char *const links[] = { "bin", "sbin", "lib", "lib64" };
  static const char *const targets[]
    = { "usr/bin", "usr/sbin", "usr/lib", "usr/lib64" };
  size_t i;

  need (SYS (mount, 0, "/", 0, 0x44000, 0));
  root = filesystem ("tmpfs", options, 6);
  need (SYS (move_mount, root, "", FDCWD_, "/", 4));
  for (i = 0; i < sizeof folders / sizeof folders[0]; i++)
    need (SYS (mkdirat, root, folders[i], 0755));
  for (i = 0; i < sizeof links / sizeof links[0]; i++)
    need (SYS (symlinkat, targets[i], root, links[i]));
}

static void
root_enter (void)
{
  struct attributes attributes = { .set = 1 };

  need (SYS (fchdir, root));
  need (SYS (pivot_root, ".", "."));
  need (SYS (umount2, ".", 2));
  need (SYS (chdir, "/"));
  need (SYS (mount_setattr, FDCWD_, "/", 0, &attributes, sizeof attributes));
}

static int
child (void *argv)
{
  static const char *const env[] = { NULL };

  (void) argv;
  SYS (execve, program[0], program, env);
  return 127;
}

static unsigned
number (const char *text)
{
  unsigned value = 0;

  for (; *text != '\0'; text++)
    value = value * 10 + (unsigned) (*text - '0');
  return value;
}

NORETURN void floor_main (const char **argv);

void
floor_main (const char **argv)
{
  static char stack[16384] __attribute__ ((aligned (16)));
  const unsigned uid = number (argv[1]);
  int status = 0;
  char byte;
  size_t i;

  if (SYS (read, 0, &byte, 1) != 1)
    init_exit_now (101);
  need (SYS (setresgid, uid, uid, uid));
  need (SYS (setresuid, uid, uid, uid));
  root_make ();
  for (i = 2; argv[i][0] != '-'; i++)
    mount_one (argv[i]);
  program = argv + i + 1;
  root_enter ();
  need (sys_clone_run (VM_VFORK_CHLD_, stack + sizeof stack, child, 0));
  SYS (wait4, -1, &status, 0x40000000, 0);
  byte = (char) (status != 0);
  SYS (write, 3, &byte, 1);
  for (;;)
    SYS (ppoll, 0, 0, 0, 0, 8);
}

#if defined __x86_64__
__asm__ (".globl _start\n_start:\n\txor %ebp, %ebp\n\tlea 8(%rsp), %rdi\n\t"
         "and $-16, %rsp\n\tcall floor_main\n\thlt\n");
#else
__asm__ (".globl _start\n_start:\n\tmov x29, #0\n\tmov x30, #0\n\t"
         "add x0, sp, #8\n\tb floor_main\n");
#endif
