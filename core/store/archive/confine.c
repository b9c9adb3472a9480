/* SPDX-License-Identifier: Apache-2.0 */
/* The rights of coffer-archive: one folder by Landlock, few system calls by
 * seccomp, taken on before a byte of the archive is looked at. */

#include <config.h>

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <seccomp.h>

#include "archive.h"

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif

#define FS_WRITE_FILE (UINT64_C (1) << 1)
#define FS_READ_FILE (UINT64_C (1) << 2)
#define FS_READ_DIR (UINT64_C (1) << 3)
#define FS_REMOVE_FILE (UINT64_C (1) << 5)
#define FS_MAKE_DIR (UINT64_C (1) << 7)
#define FS_MAKE_REG (UINT64_C (1) << 8)
#define FS_MAKE_SYM (UINT64_C (1) << 12)
#define FS_REFER (UINT64_C (1) << 13)
#define FS_TRUNCATE (UINT64_C (1) << 14)
#define FS_ABI_1 (FS_REFER - 1)

#define RIGHTS_READ (FS_READ_FILE | FS_READ_DIR)
#define RIGHTS_WRITE                                                          \
  (RIGHTS_READ | FS_WRITE_FILE | FS_REMOVE_FILE | FS_MAKE_DIR | FS_MAKE_REG   \
   | FS_MAKE_SYM | FS_REFER | FS_TRUNCATE)

static int
landlock_enter (int writes, struct report *report)
{
  struct {
    uint64_t allowed;
    int32_t fd;
  } __attribute__ ((packed)) rule = { RIGHTS_READ, ARCHIVE_FOLDER_FD };
  long abi = syscall (SYS_landlock_create_ruleset, NULL, 0, 1);
  uint64_t handled = FS_ABI_1;
  long set, r;

  if (abi < 0 && (errno == ENOSYS || errno == EOPNOTSUPP))
    return 0;
  if (abi >= 2)
    handled |= FS_REFER;
  if (abi >= 3)
    handled |= FS_TRUNCATE;
  set = abi < 0 ? -1 : syscall (SYS_landlock_create_ruleset, &handled,
                                sizeof handled, 0);
  if (writes)
    rule.allowed = RIGHTS_WRITE;
  rule.allowed &= handled;
  r = set < 0 ? -1 : syscall (SYS_landlock_add_rule, set, 1, &rule, 0);
  if (r == 0)
    r = syscall (SYS_landlock_restrict_self, set, 0);
  if (set >= 0)
    close ((int) set);
  if (r != 0)
    return report_fail (report, NULL, "landlock: %s", strerror (errno));
  return (int) abi;
}

#ifndef COFFER_SANITIZERS
/* Those that this machine does not have are below 0. */
static int
calls_allow (scmp_filter_ctx filter, const int *calls, size_t n)
{
  size_t i;
  int r = 0;

  for (i = 0; r == 0 && i < n; i++)
    if (calls[i] >= 0)
      r = seccomp_rule_add (filter, SCMP_ACT_ALLOW, calls[i], 0);
  return r;
}

static int
filter_enter (int writes, struct report *report)
{
#define S(name) SCMP_SYS (name)
  static const int both[] = {
    S (read), S (write), S (readv), S (writev), S (pread64), S (close),
    S (lseek), S (fstat), S (newfstatat), S (statx), S (openat), S (openat2),
    S (getdents64), S (readlinkat), S (fcntl), S (munmap), S (mremap),
    S (madvise), S (brk), S (futex), S (rt_sigaction), S (rt_sigprocmask),
    S (rt_sigreturn), S (exit), S (exit_group), S (clock_gettime),
    S (gettimeofday), S (time), S (getrandom), S (getpid), S (gettid),
    S (getuid), S (geteuid), S (getgid), S (getegid), S (restart_syscall),
    S (sched_yield), S (tgkill), S (poll), S (ppoll)
  };
  static const int writing[] = {
    S (pwrite64), S (mkdirat), S (symlinkat), S (linkat), S (unlinkat),
    S (fchmod), S (ftruncate), S (utimensat), S (fsync), S (syncfs)
  };
#undef S
  const struct scmp_arg_cmp no_code
    = SCMP_CMP32 (2, SCMP_CMP_MASKED_EQ, PROT_EXEC, 0);
  scmp_filter_ctx filter = seccomp_init (SCMP_ACT_ERRNO (EPERM));
  int r = filter ? 0 : -ENOMEM;

  if (r == 0)
    r = calls_allow (filter, both, sizeof both / sizeof both[0]);
  if (r == 0 && writes)
    r = calls_allow (filter, writing, sizeof writing / sizeof writing[0]);
  if (r == 0)
    r = seccomp_rule_add (filter, SCMP_ACT_ALLOW, SCMP_SYS (mmap), 1, no_code);
  if (r == 0)
    r = seccomp_rule_add (filter, SCMP_ACT_ALLOW, SCMP_SYS (mprotect), 1,
                          no_code);
  if (r == 0)
    r = seccomp_load (filter);
  if (filter)
    seccomp_release (filter);
  if (r != 0)
    return report_fail (report, NULL, "seccomp: %s", strerror (-r));
  return 0;
}
#endif

int
confine (int writes, struct report *report)
{
  int abi;

  if (prctl (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    return report_fail (report, NULL, "no_new_privs: %s", strerror (errno));
  abi = landlock_enter (writes, report);
#ifndef COFFER_SANITIZERS
  if (abi >= 0 && filter_enter (writes, report) < 0)
    return -1;
#endif
  return abi;
}
