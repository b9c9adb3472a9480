/* SPDX-License-Identifier: Apache-2.0 */
/* What a coffer-tar that an archive has taken over can still do: each attempt in
 * a process that has confined itself as the program does, and its filter in a
 * simulator over every number. */

#include "harness.h"

#include <dirent.h>
#include <linux/audit.h>
#include <linux/openat2.h>
#include <poll.h>
#include <seccomp.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include "bpf-run.h"
#include "confine.h"
#include "confined.h"

#define SPECIAL (S_ISUID | S_ISGID | S_ISVTX)

#if defined __x86_64__
#define ARCH AUDIT_ARCH_X86_64
#else
#define ARCH AUDIT_ARCH_AARCH64
#endif

/* A folder with two: `given` is the one that is given, `canary` lies beside it. */
static char *top, canary[256], program[256];
static int folder = -1;

/* ---- attempts: 1 when it worked -------------------------------------------- */

static int
makes (const char *name, mode_t mode)
{
  int fd = openat (folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  int made = fd >= 0 && write (fd, "x", 1) == 1;

  close (fd);
  return made;
}

static int make_file (void) { return makes ("plain", 0640); }
static int make_setuid (void) { return makes ("setuid", 04755); }
static int make_sticky (void) { return makes ("sticky", 01755); }

static int
make_folder (void)
{
  return mkdirat (folder, "folder", 0750) == 0;
}

static int
make_setgid_folder (void)
{
  return mkdirat (folder, "setgid", 02755) == 0;
}

static int
make_link (void)
{
  return symlinkat ("../canary", folder, "link") == 0;
}

static int
rename_file (void)
{
  return make_file () && renameat (folder, "plain", folder, "other") == 0;
}

/* By the call that sdk/lib asks with, of what can be read at once, as its folder
 * always can. */
static int
see_given_up (void)
{
  struct pollfd cancel = { .fd = folder, .events = POLLIN };
  const struct timespec at_once = { 0 };

  return ppoll (&cancel, 1, &at_once, NULL) == 1;
}

static int
follow_link (void)
{
  int fd;

  if (!make_link ())
    return 0;
  fd = openat (folder, "link", O_RDONLY | O_CLOEXEC);
  return fd >= 0;
}

static int
set_mode (mode_t mode)
{
  int fd = openat (folder, "plain", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

  return fd >= 0 && fchmod (fd, mode) == 0;
}

static int set_plain_mode (void) { return set_mode (0751); }
static int set_setuid (void) { return set_mode (04751); }
/* The kernel looks at 16 bits of a mode, a filter at as many as it is asked. */
static int
set_setuid_high (void)
{
  int fd = openat (folder, "plain", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

  return fd >= 0 && syscall (SYS_fchmod, fd, 0x100000000 | 04751) == 0;
}

static int
set_setuid_newer (void)
{
  return make_file ()
         && syscall (452 /* fchmodat2 */, folder, "plain", 04751, 0) == 0;
}

static int
make_setuid_openat2 (void)
{
  struct open_how how = { .flags = O_WRONLY | O_CREAT | O_CLOEXEC,
                          .mode = 04755 };

  return syscall (SYS_openat2, folder, "setuid", &how, sizeof how) >= 0;
}

static int make_fifo (void) { return mknodat (folder, "f", S_IFIFO | 0600, 0)
                                     == 0; }
static int make_socket (void) { return mknodat (folder, "s", S_IFSOCK | 0600, 0)
                                       == 0; }
static int make_device (void) { return mknodat (folder, "d", S_IFCHR | 0600, 0)
                                       == 0; }

static int
leave_whiteout (void)
{
  return make_file ()
         && renameat2 (folder, "plain", folder, "other", RENAME_WHITEOUT) == 0;
}

static int
give_away (void)
{
  return make_file () && fchownat (folder, "plain", getuid (), getgid (), 0)
                         == 0;
}

static int
set_attribute (void)
{
  int fd = openat (folder, "plain", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

  return fd >= 0 && fsetxattr (fd, "user.coffer", "x", 1, 0) == 0;
}

static int read_canary (void) { return opens (canary, O_RDONLY); }
static int read_etc (void) { return opens ("/etc/hosts", O_RDONLY); }
static int read_proc (void) { return opens ("/proc/self/maps", O_RDONLY); }
static int write_canary (void) { return opens (canary, O_WRONLY); }
static int change_mode (void) { return chmod (canary, 0777) == 0; }
static int remove_canary (void) { return unlink (canary) == 0; }
static int inet (void) { return has_socket (AF_INET, SOCK_STREAM, 0); }
static int watch (void) { return inotify_init1 (IN_CLOEXEC) >= 0; }
static int enter (void) { return fchdir (folder) == 0; }
static int ask_keys (void) { return syscall (SYS_keyctl, 0, -3, 1) >= 0; }

/* What lies in its own folder may not run either. */
static int
execute_own (void)
{
  char *const argv[] = { program, NULL };

  execve (program, argv, NULL);
  return 0;                     /* else the status is not ours */
}

/* 2: where there is no Landlock it works. */
static const struct attempt attempts[] = {
  { "a file", make_file, 1 },
  { "a folder", make_folder, 1 },
  { "a link", make_link, 1 },
  { "another name", rename_file, 1 },
  { "a mode", set_plain_mode, 1 },
  { "seeing that it is given up", see_given_up, 1 },
  { "reading a file beside its folder", read_canary, 2 },
  { "reading /etc", read_etc, 2 },
  { "reading /proc", read_proc, 2 },
  { "writing a file beside its folder", write_canary, 2 },
  { "reading by a link", follow_link, 2 },
  { "a setuid file", make_setuid, 0 },
  { "a sticky file", make_sticky, 0 },
  { "a setgid folder", make_setgid_folder, 0 },
  { "a setuid bit", set_setuid, 0 },
  { "a setuid bit and high ones", set_setuid_high, 0 },
  { "a setuid bit by fchmodat2", set_setuid_newer, 0 },
  { "a setuid file by openat2", make_setuid_openat2, 0 },
  { "a fifo", make_fifo, 0 },
  { "a socket's file", make_socket, 0 },
  { "a device", make_device, 0 },
  { "a device by a new name", leave_whiteout, 0 },
  { "another owner", give_away, 0 },
  { "an attribute", set_attribute, 0 },
  { "changing a mode by its name", change_mode, 0 },
  { "removing a file by its name", remove_canary, 0 },
  { "entering its folder", enter, 0 },
  { "watching", watch, 0 },
  { "asking for keys", ask_keys, 0 },
  { "a unix socket", unix_socket, 0 },
  { "an inet socket", inet, 0 },
  { "a pair of sockets", pair, 0 },
  { "a netlink socket", netlink, 0 },
  { "a packet socket", packet, 0 },
  { "a vsock socket", vsock, 0 },
  { "executing", execute, 0 },
  { "executing a file of its folder", execute_own, 0 },
  { "new code", code_new, 0 },
  { "memory made code", code_made, 0 },
  { "signalling its parent", signal_parent, 0 },
  { "tracing its parent", trace_parent, 0 },
  { "reading its parent", read_parent, 0 },
  { "limiting its parent", limit_parent, 0 },
  { "a user namespace", namespaces, 0 },
  { "mounting", mounts, 0 },
  { "a memory file", memory_file, 0 },
  { "a child", child, 0 },
  { "a thread", thread, 0 },
  { "a child of its parent", parent_of_parent, 0 },
  { "typing into a terminal", terminal, 0 },
  { "being dumped", dump, 0 },
  { "an io_uring", ring, 0 },
  { NULL, NULL, 0 }
};

/* ---- what is seen outside -------------------------------------------------- */

static void
folder_clear (void)
{
  DIR *dir = fdopendir (openat (folder, ".", O_RDONLY | O_CLOEXEC));
  struct dirent *entry;

  assert_non_null (dir);
  while ((entry = readdir (dir)))
    if (entry->d_name[0] != '.' && strcmp (entry->d_name, "program") != 0
        && unlinkat (folder, entry->d_name, 0) == -1)
      unlinkat (folder, entry->d_name, AT_REMOVEDIR);
  closedir (dir);
}

/* Something that no archive may leave: bits of a mode, or a kind. */
static const char *
folder_wrong (void)
{
  DIR *dir = fdopendir (openat (folder, ".", O_RDONLY | O_CLOEXEC));
  const char *wrong = NULL;
  struct dirent *entry;
  struct stat st;

  assert_non_null (dir);
  while ((entry = readdir (dir))) {
    if (entry->d_name[0] == '.'
        || fstatat (folder, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == -1)
      continue;
    if (!S_ISLNK (st.st_mode) && st.st_mode & SPECIAL)
      wrong = "a special bit";
    if (!S_ISLNK (st.st_mode) && !S_ISREG (st.st_mode) && !S_ISDIR (st.st_mode))
      wrong = "a special file";
  }
  closedir (dir);
  return wrong;
}

static int
confine_self (void)
{
  return tar_confine (folder) == NULL ? 0 : -1;
}

/* ---- the tests ------------------------------------------------------------- */

static void
it_keeps_what_it_is_for_and_nothing_else (void **state)
{
  const int landlock = syscall (444 /* landlock_create_ruleset */, NULL, 0, 1)
                       >= 2;
  struct stat st;
  size_t i;
  int got, may;

  (void) state;
  for (i = 0; attempts[i].what; i++) {
    folder_clear ();
    got = attempt_status (&attempts[i], confine_self);
    may = attempts[i].may == 2 ? !landlock : attempts[i].may;
    if (got != may)
      fail_msg ("%s: %d", attempts[i].what, got);
    if (folder_wrong ())
      fail_msg ("%s: %s was left", attempts[i].what, folder_wrong ());
  }
  assert_int_equal (stat (canary, &st), 0);
  assert_int_equal (st.st_mode & 07777, 0644);
}

/* Else the test above proves nothing of them. */
static void
without_it_they_work (void **state)
{
  static const char *const names[]
    = { "reading a file beside its folder", "writing a file beside its folder",
        "reading by a link", "reading /etc", "reading /proc", "a setuid file",
        "a sticky file", "a setgid folder", "a setuid bit",
        "a setuid bit and high ones", "a fifo", "a socket's file",
        "a device by a new name", "another owner", "changing a mode by its name", "entering its folder",
        "watching", "a unix socket", "an inet socket", "a pair of sockets",
        "a netlink socket", "new code", "memory made code",
        "signalling its parent", "limiting its parent", "a memory file",
        "a child", "a child of its parent" };
  size_t i;

  (void) state;
  for (i = 0; i < sizeof names / sizeof names[0]; i++) {
    folder_clear ();
    if (attempt_status (attempt_find (attempts, names[i]), NULL) != 1)
      fail_msg ("%s does not work here anyway", names[i]);
  }
  folder_clear ();
  assert_int_equal (chmod (canary, 0644), 0);
}

/* All that may ever be allowed, whatever the arguments: to be changed here with
 * what it is for. */
static const char *const known[] = {
  "read", "write", "close", "ppoll", "splice", "lseek", "clock_gettime",
  "newfstatat", "fstat", "statx", "getdents64", "readlinkat", "faccessat",
  "faccessat2", "unlinkat", "renameat", "renameat2", "symlinkat", "linkat",
  "utimensat", "fsync", "getrandom", "rt_sigprocmask", "rt_sigpending",
  "rt_sigtimedwait", "rt_sigreturn", "restart_syscall", "brk", "munmap",
  "mremap", "madvise", "futex", "getpid", "gettid", "exit", "exit_group",
  "openat", "mkdirat", "fchmod", "fchmodat", "mmap", "mprotect", "fcntl"
};

static int
is_known (uint32_t number)
{
  size_t i;

  for (i = 0; i < sizeof known / sizeof known[0]; i++)
    if (seccomp_syscall_resolve_name (known[i]) == (int) number)
      return 1;
  return 0;
}

static uint32_t
filter_run (const struct allow_program *made, uint32_t arch, uint32_t number,
            uint64_t argument)
{
  struct seccomp_data data = { .nr = (int) number, .arch = arch };
  size_t i;

  for (i = 0; i < 6; i++)
    data.args[i] = argument;
  return program_run (made->code, made->size, &data);
}

static void
every_other_number_is_refused (void **state)
{
  static struct allow_program made;
  static const uint64_t arguments[] = { 0, 1, ~UINT64_C (0), UINT64_C (1) << 32,
                                        04755, 0100000 };
  uint32_t number, got;
  size_t k;

  (void) state;
  assert_int_equal (allow_make (&tar_calls, &made), 0);
  for (number = 0; number < 2048; number++)
    for (k = 0; k < sizeof arguments / sizeof arguments[0]; k++) {
      got = filter_run (&made, ARCH, number, arguments[k]);
      if (got == SECCOMP_RET_ALLOW ? !is_known (number)
          : got != (SECCOMP_RET_ERRNO | EPERM)
            && got != (SECCOMP_RET_ERRNO | ENOSYS))
        fail_msg ("number %u: %#x", number, got);
      got = filter_run (&made, ARCH, 0x40000000u | number, arguments[k]);
      if (got != (SECCOMP_RET_ERRNO | EPERM))
        fail_msg ("number %u of x32: %#x", number, got);
      got = filter_run (&made, ARCH ^ 1, number, arguments[k]);
      if (got != SECCOMP_RET_KILL_PROCESS)
        fail_msg ("number %u elsewhere: %#x", number, got);
    }
}

/* ---- where ----------------------------------------------------------------- */

static int
file_new (const char *path, mode_t mode)
{
  int fd = open (path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  int r = fd < 0 || write (fd, "#!/bin/sh\n", 10) != 10
                || fchmod (fd, mode) == -1 ? -1 : 0;

  close (fd);
  return r;
}

static int
prepare (void **state)
{
  char given[256];

  if (harness_folder_new ((void **) &top) < 0)
    return -1;
  *state = top;
  snprintf (canary, sizeof canary, "%s/canary", top);
  snprintf (given, sizeof given, "%s/given", top);
  snprintf (program, sizeof program, "%s/given/program", top);
  if (file_new (canary, 0644) == -1 || mkdir (given, 0755) == -1
      || file_new (program, 0755) == -1)
    return -1;
  folder = open (given, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return folder < 0 ? -1 : 0;
}

static int
clear (void **state)
{
  close (folder);
  return harness_folder_free (state);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (without_it_they_work),
    cmocka_unit_test (it_keeps_what_it_is_for_and_nothing_else),
    cmocka_unit_test (every_other_number_is_refused),
  };

  return cmocka_run_group_tests (tests, prepare, clear);
}
