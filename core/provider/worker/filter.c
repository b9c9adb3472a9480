/* SPDX-License-Identifier: Apache-2.0 */
/* The seccomp filters of workers, by libseccomp.
 *
 * Strict: an allow-list.  What nobody named is ENOSYS, since libraries probe
 * for new calls and fall back; what is known and refused is EPERM.  There is
 * no socket, connect, bind, listen or accept: connections come through the
 * host's broker, connected.  A stream whose peer has gone could be connected
 * anew by sendto with MSG_FASTOPEN, so that flag is refused as well.
 *
 * Lenient: a deny-list, which every sandbox inherits, of what neither a
 * provider nor a sandbox has any business with. */

#include "config.h"

#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <termios.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "provider/worker/rights.h"

/* O_TMPFILE without the bit that it shares with O_DIRECTORY. */
#define MAKES_FILE (O_CREAT | (O_TMPFILE & ~O_DIRECTORY))
#define NAMESPACE_FLAGS 0x7E020080U
#define THREAD_FLAGS                                                          \
  (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD)

#define S(name) SCMP_SYS (name)

static const int allowed[] = {
  /* files */
  S (read), S (write), S (readv), S (writev), S (pread64), S (pwrite64),
  S (preadv), S (pwritev), S (preadv2), S (pwritev2), S (close), S (close_range), S (lseek), S (stat),
  S (fstat), S (lstat), S (newfstatat), S (statx), S (access), S (faccessat),
  S (faccessat2), S (readlink), S (readlinkat), S (getdents64), S (getcwd),
  S (chdir), S (fchdir), S (rmdir), S (unlink),
  S (unlinkat), S (rename), S (renameat), S (link),
  S (linkat), S (symlink), S (symlinkat), S (ftruncate), S (fallocate),
  S (fsync), S (fdatasync), S (fadvise64), S (flock), S (umask),
  S (statfs), S (fstatfs), S (copy_file_range), S (sendfile), S (splice),
  S (tee), S (dup), S (dup2), S (dup3), S (pipe), S (pipe2),
  /* waiting */
  S (poll), S (ppoll), S (select), S (pselect6), S (epoll_create1),
  S (epoll_ctl), S (epoll_wait), S (epoll_pwait), S (eventfd2),
  S (timerfd_create), S (timerfd_settime), S (timerfd_gettime),
  S (signalfd4), S (nanosleep), S (clock_nanosleep), S (futex),
  S (restart_syscall), S (pause),
  /* memory, threads, signals */
  S (munmap), S (mremap), S (mprotect), S (madvise), S (msync), S (brk),
  S (set_robust_list), S (get_robust_list), S (rseq), S (membarrier),
  S (set_tid_address), S (sched_yield), S (sched_getaffinity), S (getcpu),
  S (rt_sigaction), S (rt_sigprocmask), S (rt_sigreturn), S (rt_sigpending),
  S (rt_sigtimedwait), S (rt_sigsuspend), S (sigaltstack), S (exit),
  S (exit_group), S (arch_prctl),
  /* facts */
  S (getpid), S (gettid), S (getppid), S (getuid), S (geteuid), S (getgid),
  S (getegid), S (getresuid), S (getresgid), S (getgroups), S (getpgrp),
  S (getpgid), S (getsid), S (uname), S (sysinfo), S (times),
  S (getrusage), S (getrlimit), S (clock_gettime), S (clock_getres),
  S (gettimeofday), S (time), S (getrandom),
  /* streams that the host has connected */
  S (recvfrom), S (recvmsg), S (recvmmsg), S (shutdown), S (getsockname),
  S (getpeername), S (getsockopt)
};

static const int for_children[] = {
  S (fork), S (vfork), S (execve), S (execveat), S (wait4), S (waitid),
  S (pidfd_send_signal)
};

/* Known, and refused: clearer than ENOSYS.  No Landlock domain holds those
 * that change or watch a file by its name, and no limit what is in a file in
 * memory. */
static const int refused[] = {
  S (chmod), S (fchmodat), S (chown), S (fchown), S (lchown),
  S (fchownat), S (utime), S (utimes), S (futimesat), S (setxattr),
  S (lsetxattr), S (fsetxattr), S (removexattr), S (lremovexattr),
  S (fremovexattr), S (inotify_init), S (inotify_init1),
  S (inotify_add_watch), S (fanotify_init), S (fanotify_mark),
  S (socket), S (connect), S (bind), S (listen), S (accept), S (accept4),
  S (ptrace), S (process_vm_readv), S (process_vm_writev), S (mount),
  S (umount2), S (unshare), S (setns), S (pivot_root), S (chroot), S (bpf),
  S (perf_event_open), S (setsid), S (setpgid), S (setuid), S (setgid),
  S (setgroups), S (capset), S (truncate),
  S (memfd_create), S (setrlimit), S (tkill), S (rt_sigqueueinfo), S (rt_tgsigqueueinfo),
  S (open_by_handle_at), S (kexec_load), S (init_module),
  S (finit_module), S (delete_module), S (reboot), S (swapon), S (swapoff)
};

/* What a file system may not have, which programs go on without: ENOSYS is no
 * answer that they know. */
static const int unsupported[] = {
  S (getxattr), S (lgetxattr), S (fgetxattr), S (listxattr), S (llistxattr),
  S (flistxattr)
};

static const int lenient_refused[] = {
  S (kexec_load), S (kexec_file_load), S (init_module), S (finit_module),
  S (delete_module), S (reboot), S (swapon), S (swapoff), S (acct),
  S (settimeofday), S (clock_settime), S (adjtimex), S (quotactl),
  S (bpf), S (perf_event_open), S (open_by_handle_at), S (ioperm), S (iopl),
  S (syslog), S (vhangup), S (lookup_dcookie), S (uselib), S (nfsservctl)
};

/* Fallen back from, so that "there is none" is the right answer. */
static const int lenient_absent[] = {
  S (io_uring_setup), S (io_uring_enter), S (io_uring_register),
  S (userfaultfd), S (keyctl), S (add_key), S (request_key)
};

/* Names that the machine does not have are no error. */
static int
add_all (scmp_filter_ctx filter, uint32_t action, const int *calls, size_t n)
{
  size_t i;
  int result;

  for (i = 0; i < n; i++) {
    if (calls[i] < 0)
      continue;
    result = seccomp_rule_add (filter, action, calls[i], 0);
    if (result < 0)
      return result;
  }
  return 0;
}

#define ADD_ALL(filter, action, list)                                         \
  add_all (filter, action, list, sizeof list / sizeof list[0])

struct rule {
  int call;
  unsigned n;
  struct scmp_arg_cmp cmp[3];
};

static int
add_rules (scmp_filter_ctx filter, const struct rule *rules, size_t n)
{
  size_t i;
  int result;

  for (i = 0; i < n; i++) {
    if (rules[i].call < 0)
      continue;
    result = seccomp_rule_add_array (filter, SCMP_ACT_ALLOW, rules[i].call,
                                     rules[i].n, rules[i].cmp);
    if (result < 0)
      return result;
  }
  return 0;
}

#define IS(index, value)                                                      \
  { .arg = (index), .op = SCMP_CMP_EQ, .datum_a = (value) }
#define BITS(index, mask, value)                                              \
  { .arg = (index), .op = SCMP_CMP_MASKED_EQ, .datum_a = (mask),                \
    .datum_b = (value) }
#define RULE1(name, a) { S (name), 1, { a } }
#define RULE2(name, a, b) { S (name), 2, { a, b } }

/* Calls that are allowed in one shape only.  32-bit arguments are compared
 * whole, so that junk in the high half is refused. */
static int
add_shapes (scmp_filter_ctx filter)
{
  uint64_t self = (uint64_t) getpid ();
  const struct rule rules[] = {
    /* shared anonymous memory counts in no limit */
    RULE1 (mmap, BITS (3, MAP_SHARED | MAP_ANONYMOUS, 0)),
    RULE1 (mmap, BITS (3, MAP_SHARED | MAP_ANONYMOUS, MAP_SHARED)),
    RULE1 (mmap, BITS (3, MAP_SHARED | MAP_ANONYMOUS, MAP_ANONYMOUS)),
    /* New files run as nobody else.  openat2 has its mode where no filter
     * sees it, and is absent. */
    RULE1 (open, BITS (1, MAKES_FILE, 0)), RULE1 (open, BITS (2, 06000, 0)),
    RULE1 (openat, BITS (2, MAKES_FILE, 0)),
    RULE1 (openat, BITS (3, 06000, 0)), RULE1 (creat, BITS (1, 06000, 0)),
    RULE1 (mkdir, BITS (1, 06000, 0)), RULE1 (mkdirat, BITS (2, 06000, 0)),
    /* of nodes, pipes alone; what RENAME_WHITEOUT leaves is a device */
    RULE1 (renameat2, BITS (4, RENAME_WHITEOUT, 0)),
    RULE1 (mknod, BITS (1, S_IFMT | 06000, S_IFIFO)),
    RULE1 (mknodat, BITS (2, S_IFMT | 06000, S_IFIFO)),
    /* threads */
    RULE1 (clone, BITS (0, THREAD_FLAGS | NAMESPACE_FLAGS, THREAD_FLAGS)),
    /* abort and raise; kill of the own group ends what it has started */
    RULE1 (tgkill, IS (0, self)), RULE1 (kill, IS (0, self)),
    RULE1 (kill, IS (0, 0)),
    /* Times and modes of what is open; that may be only for reading, so
     * nothing is made writable by others, nor run as its owner. */
    RULE1 (utimensat, IS (1, 0)), RULE1 (fchmod, BITS (1, 07022, 0)),
    /* no owner who gets signals, no lease that others wait for, no pipe that
     * takes more of the user's share of the kernel's memory */
    RULE1 (fcntl, IS (1, F_DUPFD)), RULE1 (fcntl, IS (1, F_DUPFD_CLOEXEC)),
    RULE1 (fcntl, IS (1, F_GETFD)), RULE1 (fcntl, IS (1, F_SETFD)),
    RULE1 (fcntl, IS (1, F_GETFL)), RULE1 (fcntl, IS (1, F_SETFL)),
    RULE1 (fcntl, IS (1, F_GETLK)), RULE1 (fcntl, IS (1, F_SETLK)),
    RULE1 (fcntl, IS (1, F_SETLKW)), RULE1 (fcntl, IS (1, F_OFD_GETLK)),
    RULE1 (fcntl, IS (1, F_OFD_SETLK)), RULE1 (fcntl, IS (1, F_OFD_SETLKW)),
    RULE1 (fcntl, IS (1, F_GETPIPE_SZ)),
    RULE1 (fcntl, IS (1, F_GET_SEALS)), RULE1 (fcntl, IS (1, F_ADD_SEALS)),
    /* reading limits, not setting them */
    RULE1 (prlimit64, IS (2, 0)),
    /* nor a name that everybody can read */
    RULE1 (prctl, IS (0, PR_GET_NAME)),
    RULE1 (prctl, IS (0, PR_SET_VMA)), RULE1 (prctl, IS (0, PR_GET_DUMPABLE)),
    RULE1 (prctl, IS (0, PR_GET_NO_NEW_PRIVS)),
    RULE1 (ioctl, IS (1, TCGETS)), RULE1 (ioctl, IS (1, TCSETS)),
    RULE1 (ioctl, IS (1, FIONREAD)),
    RULE1 (ioctl, IS (1, FIONBIO)), RULE1 (ioctl, IS (1, FIOCLEX)),
    RULE1 (ioctl, IS (1, FIONCLEX)), RULE1 (ioctl, IS (1, TIOCGWINSZ)),
    RULE1 (ioctl, IS (1, TIOCSWINSZ)),
    /* streams only: a datagram socket of a pair can be sent anywhere */
    RULE2 (socketpair, IS (0, AF_UNIX), BITS (1, 0xf, SOCK_STREAM)),
    RULE2 (socketpair, IS (0, AF_UNIX), BITS (1, 0xf, SOCK_SEQPACKET)),
    RULE2 (sendto, BITS (3, MSG_FASTOPEN, 0), IS (4, 0)),
    RULE1 (sendmsg, BITS (2, MSG_FASTOPEN, 0)),
    RULE1 (sendmmsg, BITS (3, MSG_FASTOPEN, 0)),
    RULE1 (setsockopt, IS (1, SOL_SOCKET)), RULE1 (setsockopt, IS (1, 6))
  };

  return add_rules (filter, rules, sizeof rules / sizeof rules[0]);
}

/* Programs that the manifest names.  Signals to them are held in by the
 * Landlock domain; where it cannot, only the own group is within reach. */
static int
add_children (scmp_filter_ctx filter, int landlock_abi)
{
  const struct rule processes[] = {
    /* CLONE_PARENT would make children of the host's of them. */
    RULE1 (clone, BITS (0, CLONE_THREAD | CLONE_PARENT | NAMESPACE_FLAGS, 0))
  };
  static const int signals[] = { S (kill), S (tgkill), S (pidfd_open) };
  int result = ADD_ALL (filter, SCMP_ACT_ALLOW, for_children);

  if (result == 0)
    result = add_rules (filter, processes, 1);
  if (result == 0 && landlock_abi >= 6)
    result = ADD_ALL (filter, SCMP_ACT_ALLOW, signals);
  return result;
}

static int
fill_strict (scmp_filter_ctx filter, const struct rights *rights,
             int landlock_abi)
{
  int result = ADD_ALL (filter, SCMP_ACT_ALLOW, allowed);

  if (result == 0)
    result = add_shapes (filter);
  if (result == 0 && rights->exec && rights->exec[0])
    result = add_children (filter, landlock_abi);
  if (result == 0)
    result = ADD_ALL (filter, SCMP_ACT_ERRNO (EPERM), refused);
  if (result == 0)
    result = ADD_ALL (filter, SCMP_ACT_ERRNO (EOPNOTSUPP), unsupported);
  return result;
}

static int
fill_lenient (scmp_filter_ctx filter)
{
  int result = ADD_ALL (filter, SCMP_ACT_ERRNO (EPERM), lenient_refused);

  if (result == 0)
    result = ADD_ALL (filter, SCMP_ACT_ERRNO (ENOSYS), lenient_absent);
  return result;
}

int
filter_apply (const struct rights *rights, int landlock_abi,
              struct error **err)
{
  scmp_filter_ctx filter
    = seccomp_init (rights->strict ? SCMP_ACT_ERRNO (ENOSYS)
                                   : SCMP_ACT_ALLOW);
  int result;

  if (!filter)
    return error_set (err, E_NO_MEMORY, 0, "out of memory");
  /* A tree instead of a chain: the kernel runs it once for each call when it
   * is installed. */
  seccomp_attr_set (filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
  result = rights->strict ? fill_strict (filter, rights, landlock_abi)
                          : fill_lenient (filter);
  if (result == 0)
    result = seccomp_load (filter);
  seccomp_release (filter);
  if (result < 0)
    return error_set (err, E_PERMISSION, -result, "seccomp filter");
  return 0;
}
