/* SPDX-License-Identifier: Apache-2.0 */
/* What coffer-tar keeps: the one folder that it was given, the archive and the
 * lines that it says.  Limits, no capability, no_new_privs, a Landlock domain
 * where the kernel has one that lets it rename (ABI 2), a list of system calls.
 * The ids are the sandbox user's from the beginning. */

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "confine.h"
#include "rights.h"

#define COUNT(array) (sizeof (array) / sizeof (array)[0])

#ifdef __has_feature
#if __has_feature (address_sanitizer) || __has_feature (thread_sanitizer)
#define SANITIZED               /* which takes more memory than there is */
#endif
#endif
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define SANITIZED
#endif

/* ---- rights --------------------------------------------------------------- */

static const struct rights_limit limits[] = {
  { RLIMIT_CORE, 0 },
  { RLIMIT_NOFILE, 1024 },
#ifndef SANITIZED
  { RLIMIT_DATA, 160 << 20 },
#endif
};

struct folder_rule {
  int fd;
  uint64_t access;
};

static int
folder_allow (int ruleset, const void *data)
{
  const struct folder_rule *rule = data;

  return landlock_allow (ruleset, rule->fd, rule->access);
}

/* The folder, and nothing else; no device or program is made or run.  What a
 * first ABI forbids, renaming from one folder to another, is the work here. */
static const char *
landlock_enter (int folder)
{
  const long abi = landlock_abi ();
  const struct landlock_shape shape = landlock_negotiate (abi, 1);
  const struct folder_rule rule
    = { folder, shape.handled.files
                  & ~(uint64_t) (LL_EXECUTE | LL_MAKE_CHAR | LL_MAKE_BLOCK) };

  return abi < 2 ? NULL : landlock_restrict (&shape, folder_allow, &rule);
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
static const char *
filter_enter (void)
{
  struct open_how how = { .flags = O_RDONLY | O_CLOEXEC };

  if (allow_install (&tar_calls) == -1)
    return "seccomp";
  if (syscall (SYS_openat2, -1, "", &how, sizeof how) == -1 && errno == ENOSYS
      && syscall (SYS_getppid) == -1 && errno == EPERM)
    return NULL;
  errno = EPERM;
  return "seccomp: read back";
}

const char *
tar_confine (int folder)
{
  const char *failed = limits_lower (limits, COUNT (limits));

  if (failed == NULL)
    failed = capabilities_drop ();
  if (failed == NULL)
    failed = landlock_enter (folder);
  return failed != NULL ? failed : filter_enter ();
}
