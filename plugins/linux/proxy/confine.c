/* SPDX-License-Identifier: Apache-2.0 */
/* What a proxy keeps: its sockets, and the files that names are looked up in.
 *
 * Limits, no capabilities, no_new_privs, a Landlock domain (files of /etc for
 * reading; with ABI 4 only the ports of the list and DNS; with ABI 6 no
 * signals and no abstract sockets), a seccomp allow-list.  Then each is read
 * back from the kernel.  Lookups inherit all of it. */

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "allow.h"
#include "proxy.h"

#define COUNT(array) (sizeof (array) / sizeof (array)[0])

static const char *step;

static int
failed (const char *what)
{
  step = what;
  return -1;
}

/* ---- limits ---------------------------------------------------------------- */

static int
limits_set (void)
{
  static const struct {
    int which;
    rlim_t most;
  } limits[] = {
    { RLIMIT_CORE, 0 },         { RLIMIT_FSIZE, sizeof (struct denials) },
    { RLIMIT_DATA, 64 << 20 },  { RLIMIT_MEMLOCK, 0 },
    { RLIMIT_MSGQUEUE, 0 },     { RLIMIT_NICE, 0 },
    { RLIMIT_RTPRIO, 0 },       { RLIMIT_STACK, 1 << 20 },
    { RLIMIT_NOFILE, 2 * CONNECTIONS_MAX + LOOKUPS_MAX + 32 }
  };
  struct rlimit now;
  size_t i;

  for (i = 0; i < COUNT (limits); i++) {
    if (getrlimit (limits[i].which, &now) == -1)
      return failed ("getrlimit");
    if (now.rlim_max > limits[i].most)
      now.rlim_max = limits[i].most;
    now.rlim_cur = now.rlim_max;
    if (setrlimit (limits[i].which, &now) == -1)
      return failed ("setrlimit");
  }
  return 0;
}

static int
capabilities_drop (void)
{
  struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
  struct __user_cap_data_struct none[2];

  memset (none, 0, sizeof none);
  if (prctl (PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) == -1
      || syscall (SYS_capset, &header, none) == -1)
    return failed ("capset");
  if (prctl (PR_SET_DUMPABLE, 0, 0, 0, 0) == -1
      || prctl (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1)
    return failed ("no_new_privs");
  return 0;
}

/* ---- Landlock -------------------------------------------------------------- */

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif
#define LANDLOCK_READ (UINT64_C (1) << 2)
#define LANDLOCK_READ_DIR (UINT64_C (1) << 3)
#define LANDLOCK_BIND UINT64_C (1)
#define LANDLOCK_CONNECT UINT64_C (2)

struct landlock_ruleset {
  uint64_t files, net, scoped;
};

static struct landlock_ruleset
landlock_shape (long abi, size_t *size)
{
  struct landlock_ruleset shape = { 0x1fff, 0, 0 };

  *size = 8;
  if (abi >= 2)
    shape.files |= 0x2000;
  if (abi >= 3)
    shape.files |= 0x4000;
  if (abi >= 4) {
    shape.net = LANDLOCK_BIND | LANDLOCK_CONNECT;
    *size = 16;
  }
  if (abi >= 5)
    shape.files |= 0x8000;
  if (abi >= 6) {
    shape.scoped = 3;
    *size = 24;
  }
  return shape;
}

static int
landlock_path (int ruleset, const char *path)
{
  struct {
    uint64_t access;
    int32_t fd;
  } __attribute__ ((packed)) rule = { LANDLOCK_READ | LANDLOCK_READ_DIR, -1 };
  long r;

  rule.fd = open (path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (rule.fd < 0)
    return 0;                   /* what is not there needs no right */
  r = syscall (SYS_landlock_add_rule, ruleset, 1, &rule, 0);
  close (rule.fd);
  return r == -1 ? -1 : 0;
}

static int
landlock_port (int ruleset, uint64_t port)
{
  struct {
    uint64_t access, port;
  } rule = { LANDLOCK_CONNECT, port };

  return syscall (SYS_landlock_add_rule, ruleset, 2, &rule, 0) == -1 ? -1 : 0;
}

/* Folders and not files: they are replaced there by new ones. */
static int
landlock_rules (int ruleset, const struct policy *list, int ports)
{
  char *found = realpath ("/etc/resolv.conf", NULL), *slash;
  size_t i;
  int r = landlock_path (ruleset, "/etc");

  slash = found != NULL ? strrchr (found, '/') : NULL;
  if (r == 0 && slash != NULL && slash != found) {
    *slash = '\0';
    r = landlock_path (ruleset, found);
  }
  free (found);
  if (r == 0 && ports)
    r = landlock_port (ruleset, 53);
  for (i = 0; r == 0 && ports && i < list->count; i++)
    r = landlock_port (ruleset, list->entries[i].target.port);
  return r;
}

/* The ABI in force, 0: this kernel has none, -1. */
static long
landlock_enter (const struct policy *list)
{
  long abi = syscall (SYS_landlock_create_ruleset, NULL, 0, 1);
  struct landlock_ruleset ruleset;
  size_t size;
  long r;
  int fd;

  if (abi == -1 && (errno == ENOSYS || errno == EOPNOTSUPP))
    return 0;
  ruleset = landlock_shape (abi, &size);
  fd = (int) syscall (SYS_landlock_create_ruleset, &ruleset, size, 0);
  if (fd < 0)
    return failed ("landlock_create_ruleset");
  r = landlock_rules (fd, list, abi >= 4);
  if (r == 0)
    r = syscall (SYS_landlock_restrict_self, fd, 0);
  close (fd);
  return r == -1 ? failed ("landlock") : abi;
}

/* ---- seccomp --------------------------------------------------------------- */

static const int allowed[] = {
  /* what the loop does most */
  SYS_recvfrom, SYS_ppoll, SYS_read, SYS_write, SYS_close, SYS_clock_gettime,
  SYS_accept4, SYS_connect, SYS_shutdown, SYS_getsockopt, SYS_setsockopt,
  SYS_pwrite64,
  /* looking up */
  SYS_fstat, SYS_newfstatat, SYS_lseek, SYS_pread64, SYS_recvmsg,
  SYS_getsockname, SYS_getpeername, SYS_uname, SYS_getpid, SYS_gettid,
  SYS_getppid, SYS_getuid, SYS_geteuid, SYS_getgid, SYS_getegid,
  SYS_getrandom, SYS_gettimeofday, SYS_setitimer, SYS_pipe2, SYS_dup3,
  SYS_close_range, SYS_statx,
  /* memory, and the end */
  SYS_brk, SYS_munmap, SYS_mremap, SYS_madvise, SYS_futex,
  SYS_set_robust_list, SYS_rt_sigprocmask, SYS_rt_sigreturn,
  SYS_restart_syscall, SYS_clock_nanosleep, SYS_exit, SYS_exit_group,
#ifdef SYS_poll
  SYS_poll,
#endif
#ifdef SYS_dup2
  SYS_dup2,
#endif
#ifdef SYS_alarm
  SYS_alarm,
#endif
#ifdef SYS_time
  SYS_time,
#endif
#ifdef SYS_rseq
  SYS_rseq,
#endif
};

/* TCP, UDP and 0, but not what goes by another name past rules for them. */
#define PROTOCOLS (IPPROTO_TCP | IPPROTO_UDP)

static const struct allow_shape shapes[] = {
  { SYS_socket, 0, ~0u, AF_INET, ~(uint32_t) PROTOCOLS },
  { SYS_socket, 0, ~0u, AF_INET6, ~(uint32_t) PROTOCOLS },
  { SYS_sendto, 3, MSG_FASTOPEN, 0 },
  { SYS_sendmmsg, 3, MSG_FASTOPEN, 0 },
  { SYS_sendmsg, 2, MSG_FASTOPEN, 0 },
  { SYS_openat, 2, O_ACCMODE | O_CREAT | O_TRUNC | O_PATH, O_RDONLY },
  { SYS_mmap, 2, 4 /* PROT_EXEC */, 0 },
  { SYS_mprotect, 2, 4, 0 },
  { SYS_fcntl, 1, ~0u, F_GETFL },
  { SYS_fcntl, 1, ~0u, F_SETFL },
  { SYS_fcntl, 1, ~0u, F_GETFD },
  { SYS_fcntl, 1, ~0u, F_SETFD },
  { SYS_ioctl, 1, ~0u, 0x541b /* FIONREAD */ },
  { SYS_prctl, 0, ~0u, PR_SET_PDEATHSIG },
  /* A child: none of the sharing, no namespaces. */
  { SYS_clone, 0, ~(uint32_t) (0x01000000u | 0x00200000u),
    SIGCHLD },
};

/* A library that asks for more gets along without. */
static const int absent[] = { 435 /* clone3 */ };

static const struct allow_list list_of_calls = {
  allowed, shapes, absent, COUNT (allowed), COUNT (shapes), COUNT (absent)
};

static int
filter_install (void)
{
  return allow_install (&list_of_calls) == -1 ? failed ("seccomp") : 0;
}

/* ---- reading back ---------------------------------------------------------- */

static int
status_says (const char *status, const char *line)
{
  const char *at = strstr (status, line);

  return at != NULL && at > status && at[-1] == '\n'
         && at[strlen (line)] == '\n';
}

/* Through a descriptor from before: nothing of /proc is within reach now. */
static int
read_back (int status_fd, long abi)
{
  static const char *const lines[]
    = { "NoNewPrivs:\t1", "Seccomp:\t2", "CapInh:\t0000000000000000",
        "CapPrm:\t0000000000000000", "CapEff:\t0000000000000000",
        "CapAmb:\t0000000000000000" };
  char status[8192];
  ssize_t n = read (status_fd, status, sizeof status - 1);
  size_t i;
  int fd;

  if (n <= 0)
    return failed ("reading /proc/self/status");
  status[n] = '\0';
  errno = EPERM;
  for (i = 0; i < COUNT (lines); i++)
    if (!status_says (status, lines[i]))
      return failed (lines[i]);
  fd = open ("/proc/self/status", O_RDONLY | O_CLOEXEC);
  if (fd >= 0)
    close (fd);
  if (abi > 0 && fd >= 0)
    return failed ("landlock: read back");
  fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0)
    return failed ("seccomp: read back");
  return 0;
}

int
confine (const struct policy *list, char *line, size_t size)
{
  int status = open ("/proc/self/status", O_RDONLY | O_CLOEXEC), r;
  unsigned uid = geteuid ();
  long abi = -1;

  r = status < 0 ? failed ("/proc/self/status") : limits_set ();
  if (r == 0)
    r = capabilities_drop ();
  if (r == 0)
    abi = landlock_enter (list);
  if (r == 0 && abi >= 0)
    r = filter_install ();
  if (r == 0 && abi >= 0)
    r = read_back (status, abi);
  if (status >= 0)
    close (status);
  if (r == -1 || abi < 0) {
    snprintf (line, size, "%s", step);
    return -1;
  }
  if (abi == 0)
    snprintf (line, size, "uid %u, no capabilities, no_new_privs, seccomp; "
              "this kernel has no Landlock", uid);
  else
    snprintf (line, size, "uid %u, no capabilities, no_new_privs, seccomp, "
              "Landlock ABI %ld (%s)", uid, abi,
              abi >= 6 ? "files, ports, scopes" : abi >= 4 ? "files, ports"
                                                           : "files");
  return 0;
}
