/* SPDX-License-Identifier: Apache-2.0 */
/* What coffer-tar keeps: the one folder that it was given, the archive and the
 * lines that it says.  Limits, no capability, no_new_privs, a Landlock domain
 * where the kernel has one that lets it rename (ABI 2), a list of system calls.
 * The ids are the sandbox user's from the beginning. */

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "confine.h"
#include "landlock.h"

#define COUNT(array) (sizeof (array) / sizeof (array)[0])

#ifdef __has_feature
#if __has_feature (address_sanitizer) || __has_feature (thread_sanitizer)
#define SANITIZED               /* which takes more memory than there is */
#endif
#endif
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define SANITIZED
#endif

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif

/* ---- rights --------------------------------------------------------------- */

static int
limits_set (void)
{
  static const struct {
    int which;
    rlim_t most;
  } limits[] = {
    { RLIMIT_CORE, 0 },
    { RLIMIT_NOFILE, 1024 },
#ifndef SANITIZED
    { RLIMIT_DATA, 160 << 20 },
#endif
  };
  struct rlimit now;
  size_t i;

  for (i = 0; i < COUNT (limits); i++) {
    if (getrlimit ((__rlimit_resource_t) limits[i].which, &now) == -1)
      return -1;
    if (now.rlim_max > limits[i].most)
      now.rlim_max = limits[i].most;
    now.rlim_cur = now.rlim_max;
    if (setrlimit ((__rlimit_resource_t) limits[i].which, &now) == -1)
      return -1;
  }
  return 0;
}

static int
capabilities_drop (void)
{
  struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
  struct __user_cap_data_struct none[2];

  memset (none, 0, sizeof none);
  return prctl (PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) == -1
           || syscall (SYS_capset, &header, none) == -1
           || prctl (PR_SET_DUMPABLE, 0, 0, 0, 0) == -1
           || prctl (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1
    ? -1 : 0;
}

/* The folder, and nothing else; no device or program is made or run.  What a
 * first ABI forbids, renaming from one folder to another, is the work here. */
static int
landlock_enter (int folder)
{
  const long abi = syscall (SYS_landlock_create_ruleset, NULL, 0, 1);
  const struct landlock_shape shape = landlock_negotiate (abi, 1);
  struct {
    uint64_t access;
    int32_t fd;
  } __attribute__ ((packed)) rule = { 0, folder };
  int fd, r;

  if (abi < 2)
    return 0;
  rule.access = shape.handled.files
                & ~(uint64_t) (LL_EXECUTE | LL_MAKE_CHAR | LL_MAKE_BLOCK);
  fd = (int) syscall (SYS_landlock_create_ruleset, &shape.handled, shape.size,
                      0);
  if (fd < 0)
    return -1;
  r = syscall (SYS_landlock_add_rule, fd, 1, &rule, 0) == -1
          || syscall (SYS_landlock_restrict_self, fd, 0) == -1
    ? -1 : 0;
  close (fd);
  return r;
}

/* ---- the filter ------------------------------------------------------------ */

static const int calls[] = {
  /* the archive, and what is said of it */
  SYS_read, SYS_write, SYS_close, SYS_ppoll, SYS_splice, SYS_lseek,
  SYS_clock_gettime,
  /* the folder: names below it, and what lies under them */
  SYS_newfstatat, SYS_fstat, SYS_statx, SYS_getdents64, SYS_readlinkat,
  SYS_faccessat, SYS_unlinkat, SYS_renameat, SYS_symlinkat,
  SYS_linkat, SYS_utimensat, SYS_fsync, SYS_getrandom,
  439 /* faccessat2 */,
  /* a write to nobody is no signal */
  SYS_rt_sigprocmask, SYS_rt_sigpending, SYS_rt_sigtimedwait,
  SYS_rt_sigreturn, SYS_restart_syscall,
  /* memory, and the end */
  SYS_brk, SYS_munmap, SYS_mremap, SYS_madvise, SYS_futex, SYS_getpid,
  SYS_gettid, SYS_exit, SYS_exit_group
};

#define SPECIAL (S_ISUID | S_ISGID | S_ISVTX)

/* No mode makes a file that runs as somebody else, no name that is given up
 * leaves a device, and no memory is code. */
static const struct allow_shape shapes[] = {
  { SYS_openat, 3, SPECIAL, 0, 0 },
  { SYS_mkdirat, 2, SPECIAL, 0, 0 },
  { SYS_fchmod, 1, SPECIAL, 0, 0 },
  { SYS_fchmodat, 2, SPECIAL, 0, 0 },
  { SYS_renameat2, 4, RENAME_WHITEOUT, 0, 0 },
  { SYS_mmap, 2, PROT_EXEC, 0, 0 },
  { SYS_mprotect, 2, PROT_EXEC, 0, 0 },
  { SYS_fcntl, 1, ~0u, F_GETFL, 0 },
  { SYS_fcntl, 1, ~0u, F_SETFL, 0 },
  { SYS_fcntl, 1, ~0u, F_GETFD, 0 },
  { SYS_fcntl, 1, ~0u, F_SETFD, 0 },
  { SYS_fcntl, 1, ~0u, F_DUPFD_CLOEXEC, 0 }
};

/* What openat2 is to do lies where no filter sees it; without it each folder on
 * the way is opened by itself. */
static const int absent[] = { SYS_openat2, 452 /* fchmodat2 */ };

const struct allow_list tar_calls = {
  calls, shapes, absent, COUNT (calls), COUNT (shapes), COUNT (absent)
};

/* Whether it is there is asked of the kernel. */
static int
filter_enter (void)
{
  struct open_how how = { .flags = O_RDONLY | O_CLOEXEC };

  if (allow_install (&tar_calls) == -1)
    return -1;
  if (syscall (SYS_openat2, -1, "", &how, sizeof how) == -1 && errno == ENOSYS
      && syscall (SYS_getppid) == -1 && errno == EPERM)
    return 0;
  errno = EPERM;
  return -1;
}

int
tar_confine (int folder)
{
  return limits_set () == -1 || capabilities_drop () == -1
             || landlock_enter (folder) == -1 || filter_enter () == -1
    ? -1 : 0;
}
