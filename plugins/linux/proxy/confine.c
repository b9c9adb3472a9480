/* SPDX-License-Identifier: Apache-2.0 */
/* What a proxy keeps: its sockets, and the files that names are looked up in.
 *
 * Limits, no capabilities, no_new_privs, a Landlock domain (files of /etc for
 * reading; with ABI 4 only the ports of the list and DNS; with ABI 6 no
 * signals and no abstract sockets), a seccomp allow-list.  Then each is read
 * back from the kernel.  Lookups inherit all of it. */

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "allow.h"
#include "proxy.h"
#include "rights.h"

#define COUNT(array) (sizeof (array) / sizeof (array)[0])

/* ---- limits ---------------------------------------------------------------- */

static const struct rights_limit limits[] = {
  { RLIMIT_CORE, 0 },         { RLIMIT_FSIZE, sizeof (struct denials) },
  { RLIMIT_DATA, 64 << 20 },  { RLIMIT_MEMLOCK, 0 },
  { RLIMIT_MSGQUEUE, 0 },     { RLIMIT_NICE, 0 },
  { RLIMIT_RTPRIO, 0 },       { RLIMIT_STACK, 1 << 20 },
  { RLIMIT_NOFILE, 2 * CONNECTIONS_MAX + LOOKUPS_MAX + 32 }
};

/* ---- Landlock -------------------------------------------------------------- */

static int
folder_allow (int ruleset, const char *path)
{
  const int fd = open (path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  int r;

  if (fd < 0)
    return 0;                   /* what is not there needs no right */
  r = landlock_allow (ruleset, fd, LL_READ_FILE | LL_READ_DIR);
  close (fd);
  return r;
}

/* Folders and not files: they are replaced there by new ones. */
static int
folders_allow (int ruleset)
{
  char *found = realpath ("/etc/resolv.conf", NULL), *slash;
  int r = folder_allow (ruleset, "/etc");

  slash = found != NULL ? strrchr (found, '/') : NULL;
  if (r == 0 && slash != NULL && slash != found) {
    *slash = '\0';
    r = folder_allow (ruleset, found);
  }
  free (found);
  return r;
}

struct rules {
  const struct policy *list;
  int ports;                    /* this kernel has rules for them */
};

static int
rules_add (int ruleset, const void *data)
{
  const struct rules *rules = data;
  int r = folders_allow (ruleset);
  size_t i;

  if (r == 0 && rules->ports)
    r = landlock_allow_port (ruleset, 53);
  for (i = 0; r == 0 && rules->ports && i < rules->list->count; i++)
    r = landlock_allow_port (ruleset, rules->list->entries[i].target.port);
  return r;
}

/* The ABI in force, 0 where this kernel has none, is in *abi. */
static const char *
landlock_enter (const struct policy *list, long *abi)
{
  struct landlock_shape shape;
  struct rules rules = { list, 0 };

  *abi = landlock_abi ();
  if (*abi == 0)
    return NULL;
  shape = landlock_negotiate (*abi, 1);
  rules.ports = shape.handled.net != 0;
  return landlock_restrict (&shape, rules_add, &rules);
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

static const char *
filter_install (void)
{
  return allow_install (&list_of_calls) == -1 ? "seccomp" : NULL;
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
static const char *
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
    return "reading /proc/self/status";
  status[n] = '\0';
  errno = EPERM;
  for (i = 0; i < COUNT (lines); i++)
    if (!status_says (status, lines[i]))
      return lines[i];
  fd = open ("/proc/self/status", O_RDONLY | O_CLOEXEC);
  if (fd >= 0)
    close (fd);
  if (abi > 0 && fd >= 0)
    return "landlock: read back";
  fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0)
    return "seccomp: read back";
  return NULL;
}

int
confine (const struct policy *list, char *line, size_t size)
{
  int status = open ("/proc/self/status", O_RDONLY | O_CLOEXEC);
  unsigned uid = geteuid ();
  const char *failed;
  long abi = 0;

  failed = status < 0 ? "/proc/self/status"
                      : limits_lower (limits, COUNT (limits));
  if (failed == NULL)
    failed = capabilities_drop ();
  if (failed == NULL)
    failed = landlock_enter (list, &abi);
  if (failed == NULL)
    failed = filter_install ();
  if (failed == NULL)
    failed = read_back (status, abi);
  if (status >= 0)
    close (status);
  if (failed != NULL) {
    snprintf (line, size, "%s", failed);
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
