/* SPDX-License-Identifier: Apache-2.0 */
/* Words of a hostile module that reach for what is outside: files, sockets,
 * programs, other processes, its own limits, the folders that it shares with
 * the host. */

#define _GNU_SOURCE

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <net/ethernet.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hostile.h"

/* ---- files ---------------------------------------------------------------- */

/* What is in a file, by each way to it. */
static int32_t
do_steal (struct coffer_call *call, struct hostile *self, const char *arg)
{
  char text[256] = "";
  int fds[3], i;
  struct {
    uint64_t flags, mode, resolve;
  } how = { O_RDONLY, 0, 0 };

  fds[0] = open (arg, O_RDONLY | O_CLOEXEC);
  fds[1] = (int) syscall (SYS_openat2, AT_FDCWD, arg, &how, sizeof how);
  unlinkat (self->runtime_dir, "way", 0);
  fds[2] = -1;
  if (linkat (AT_FDCWD, arg, self->runtime_dir, "way", 0) == 0
      || symlinkat (arg, self->runtime_dir, "way") == 0)
    fds[2] = openat (self->runtime_dir, "way", O_RDONLY | O_CLOEXEC);
  for (i = 0; i < 3; i++) {
    if (fds[i] >= 0 && read (fds[i], text, sizeof text - 1) >= 0) {
      coffer_log (call, COFFER_LOG_WARNING, text);
      return say (call, "steal", "done", text);
    }
  }
  return report (call, "steal", -1);
}

/* Makes or changes a file, by each way. */
static int32_t
do_plant (struct coffer_call *call, struct hostile *self, const char *arg)
{
  int fd = open (arg, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  long result = fd;

  if (fd < 0)
    result = mknod (arg, S_IFREG | 0600, 0);
  if (result < 0)
    result = mkdir (arg, 0700);
  if (result < 0)
    result = symlink ("/", arg);
  if (result < 0)
    result = renameat (self->runtime_dir, "way", AT_FDCWD, arg);
  if (result < 0)
    result = truncate (arg, 0);
  if (fd >= 0 && write (fd, "planted\n", 8) < 0)
    result = -1;
  return report (call, "plant", result);
}

/* Names, links, modes and sizes for whoever looks into its folders. */
static int32_t
do_litter (struct coffer_call *call, struct hostile *self, const char *arg)
{
  static const char *const names[] = {
    "a\nb", "\x1b]0;title\x07", "..\\..", "-rf", "\xff\xfe", "$(id)", " ",
    ".coffer-1", "lock", "state.db"
  };
  char longest[256], text[32];
  int i, fd, made = 0, dir;

  memset (longest, 'n', 255);
  longest[255] = '\0';
  umask (0);
  for (i = 0; i < 2; i++) {
    dir = i ? self->state_dir : self->runtime_dir;
    for (size_t j = 0; j < sizeof names / sizeof names[0]; j++) {
      fd = openat (dir, names[j], O_RDWR | O_CREAT | O_CLOEXEC, 0666);
      made += fd >= 0;
      if (fd >= 0 && ftruncate (fd, (off_t) 1 << 40) < 0)
        made--;
      close (fd);
    }
    made += openat (dir, longest, O_RDWR | O_CREAT | O_CLOEXEC, 0600) >= 0;
    made += symlinkat (arg, dir, "link") == 0;
    made += symlinkat ("/", dir, "root") == 0;
    made += symlinkat ("loop", dir, "loop") == 0;
    /* To be run as whoever owns them. */
    openat (dir, "set", O_RDWR | O_CREAT, 06777);
    mkdirat (dir, "sets", 06777);
    fd = openat (dir, "later", O_RDWR | O_CREAT, 0777);
    fchmod (fd, 06777);
    syscall (SYS_fchmodat, dir, "later", 06777);
    syscall (SYS_creat, "/proc/self/cwd/set", 06777);
    syscall (SYS_mknodat, dir, "device", S_IFCHR | 0666, 0x103);
    renameat2 (dir, "later", dir, "renamed", RENAME_WHITEOUT);
    fd = dir;
    for (int depth = 0; depth < 100 && fd >= 0; depth++) {
      mkdirat (fd, "d", 0700);
      fd = openat (fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
  }
  snprintf (text, sizeof text, "%d", made);
  return say (call, "litter", "done", text);
}

/* ---- sockets -------------------------------------------------------------- */

/* The system calls themselves: connect() is the worker's own in a module. */
static int
reach_inet (int family, int type, int port)
{
  struct sockaddr_in four = { .sin_family = AF_INET,
                              .sin_port = htons ((uint16_t) port),
                              .sin_addr.s_addr = htonl (INADDR_LOOPBACK) };
  struct sockaddr_in6 six = { .sin6_family = AF_INET6,
                              .sin6_port = htons ((uint16_t) port),
                              .sin6_addr = IN6ADDR_LOOPBACK_INIT };
  const struct sockaddr *to = family == AF_INET ? (struct sockaddr *) &four
                                                : (struct sockaddr *) &six;
  socklen_t size = family == AF_INET ? sizeof four : sizeof six;
  int fd = socket (family, type, 0), pair[2];

  if (fd < 0 && socketpair (AF_UNIX, SOCK_STREAM, 0, pair) == 0)
    fd = pair[0];               /* which is none, and must not become one */
  if (fd < 0 || syscall (SYS_connect, fd, to, size) < 0)
    return sendto (fd, "x", 1, MSG_NOSIGNAL | MSG_FASTOPEN, to, size) < 0
           ? -1 : fd;
  return write (fd, "x", 1) < 0 ? -1 : fd;
}

static int
reach_unix (const char *name)
{
  struct sockaddr_un to = { .sun_family = AF_UNIX };
  struct iovec iov = { (void *) "x", 1 };
  struct msghdr message = { .msg_name = &to, .msg_namelen = sizeof to,
                            .msg_iov = &iov, .msg_iovlen = 1 };
  int fd = socket (AF_UNIX, SOCK_STREAM, 0), pair[2];

  strncpy (to.sun_path, name, sizeof to.sun_path - 1);
  if (*name == '@')
    to.sun_path[0] = '\0';
  if (fd >= 0 && syscall (SYS_connect, fd, &to, sizeof to) == 0)
    return fd;
  if (socketpair (AF_UNIX, SOCK_DGRAM, 0, pair) < 0
      && socketpair (AF_UNIX, SOCK_SEQPACKET, 0, pair) < 0)
    return -1;
  close (pair[1]);
  return (int) sendmsg (pair[0], &message, MSG_NOSIGNAL);
}

static int32_t
do_dial (struct coffer_call *call, struct hostile *self, const char *arg)
{
  const char *where = strchr (arg, ':');
  int port = where ? atoi (where + 1) : 0, fd = -1;

  (void) self;
  if (strncmp (arg, "inet:", 5) == 0)
    fd = reach_inet (AF_INET, SOCK_STREAM, port);
  else if (strncmp (arg, "inet6:", 6) == 0)
    fd = reach_inet (AF_INET6, SOCK_STREAM, port);
  else if (strncmp (arg, "udp:", 4) == 0)
    fd = reach_inet (AF_INET, SOCK_DGRAM, port);
  else if (strncmp (arg, "unix:", 5) == 0)
    fd = reach_unix (where + 1);
  else if (strcmp (arg, "packet") == 0)
    fd = socket (AF_PACKET, SOCK_RAW, htons (ETH_P_ALL));
  else if (strcmp (arg, "raw") == 0)
    fd = socket (AF_INET, SOCK_RAW, IPPROTO_ICMP);
  else if (strcmp (arg, "netlink") == 0)
    fd = socket (AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
  else if (strcmp (arg, "vsock") == 0)
    fd = socket (AF_VSOCK, SOCK_STREAM, 0);
  else if (strcmp (arg, "alg") == 0)
    fd = socket (AF_ALG, SOCK_SEQPACKET, 0);
  return report (call, "dial", fd);
}

/* ---- programs and processes ----------------------------------------------- */

/* Has a shell make a file, in each way that there is to run one. */
static int32_t
do_shell (struct coffer_call *call, struct hostile *self, const char *arg)
{
  char script[512];
  char *argv[] = { (char *) "sh", (char *) "-c", script, NULL };
  char *envp[] = { NULL };
  volatile int fd, tries;

  snprintf (script, sizeof script, "#!/bin/sh\n: >'%s'\n", arg);
  fd = openat (self->runtime_dir, "script", O_RDWR | O_CREAT, 0700);
  if (fd >= 0 && write (fd, script, strlen (script)) < 0)
    close (fd);
  for (tries = 0; tries < 2; tries++) {
    pid_t pid = tries == 0 ? fork () : vfork ();
    if (pid == 0) {
      execve ("/bin/sh", argv, envp);
      syscall (SYS_execveat, fd, "", argv, envp, AT_EMPTY_PATH);
      _exit (1);
    }
    if (pid > 0)
      waitpid (pid, NULL, 0);
  }
  execve ("/bin/sh", argv, envp);
  syscall (SYS_execveat, fd, "", argv, envp, AT_EMPTY_PATH);
  return report (call, "shell", -1);
}

/* The host's memory and descriptors; ARG is where a text of it lies. */
static int32_t
do_spy (struct coffer_call *call, struct hostile *self, const char *arg)
{
  uintptr_t address = (uintptr_t) strtoull (arg, NULL, 16);
  int host = getppid (), fd, pidfd;
  char text[64] = "", path[64];
  static char zeros[32];
  struct iovec here = { text, sizeof text - 1 },
               zero = { zeros, sizeof zeros },
               there = { (void *) address, sizeof text - 1 };

  (void) self;
  if (process_vm_readv (host, &here, 1, &there, 1, 0) > 0)
    say (call, "readv", "done", text);
  there.iov_len = sizeof zeros;
  if (process_vm_writev (host, &zero, 1, &there, 1, 0) > 0)
    say (call, "writev", "done", "");
  if (ptrace (PTRACE_SEIZE, host, 0, 0) == 0
      || ptrace (PTRACE_ATTACH, host, 0, 0) == 0)
    say (call, "ptrace", "done", "");
  snprintf (path, sizeof path, "/proc/%d/mem", host);
  fd = open (path, O_RDWR | O_CLOEXEC);
  if (fd >= 0 && pread (fd, text, sizeof text - 1, (off_t) address) > 0)
    say (call, "mem", "done", text);
  for (int i = 0; i < 20; i++) {
    snprintf (path, sizeof path, "/proc/%d/fd/%d", host, i);
    if (open (path, O_RDONLY | O_CLOEXEC) >= 0)
      say (call, "fd", "done", path);
  }
  snprintf (path, sizeof path, "/proc/%d/environ", host);
  if (open (path, O_RDONLY | O_CLOEXEC) >= 0)
    say (call, "environ", "done", path);
  pidfd = (int) syscall (434, host, 0);
  if (pidfd >= 0 && syscall (438, pidfd, 1, 0) >= 0)
    say (call, "getfd", "done", "");
  if (syscall (SYS_kcmp, host, getpid (), 0, 0, 0) >= 0)
    say (call, "kcmp", "done", "");
  return say (call, "spy", "refused", "");
}

/* SIGURG, which harms nobody, to the host, its group, all there are, and ARG. */
static int32_t
do_signals (struct coffer_call *call, struct hostile *self, const char *arg)
{
  int host = getppid (), victim = atoi (arg), pair[2], targets[5], i;
  siginfo_t info = { .si_signo = SIGURG, .si_code = SI_QUEUE };

  (void) self;
  targets[0] = host;
  targets[1] = -host;
  targets[2] = -getpgid (host);
  targets[3] = -1;
  targets[4] = victim;
  for (i = 0; i < 5; i++) {
    kill (targets[i], SIGURG);
    syscall (SYS_tkill, targets[i], SIGURG);
    syscall (SYS_tgkill, targets[i], targets[i], SIGURG);
    syscall (SYS_rt_sigqueueinfo, targets[i], SIGURG, &info);
    syscall (424, syscall (434, targets[i], 0), SIGURG, NULL, 0);
    if (socketpair (AF_UNIX, SOCK_STREAM, 0, pair) == 0) {
      fcntl (pair[0], F_SETOWN, targets[i]);
      fcntl (pair[0], F_SETSIG, SIGURG);
      fcntl (pair[0], F_SETFL, O_ASYNC);
      close (pair[1]);
      close (pair[0]);
    }
  }
  return say (call, "signals", "done", "");
}

static int32_t
do_raise (struct coffer_call *call, struct hostile *self, const char *arg)
{
  (void) self;
  kill (getpid (), atoi (arg));
  wait_call (call, 5000);
  return say (call, "raise", "done", "");
}

/* A child that leaves everything behind, its own child, and theirs. */
static int32_t
do_daemon (struct coffer_call *call, struct hostile *self, const char *arg)
{
  pid_t pid = fork ();

  (void) self;
  (void) arg;
  if (pid == 0) {
    setsid ();
    setpgid (0, 0);
    if (fork () > 0)
      _exit (0);
    setsid ();
    for (int i = 0; i < 1024; i++)
      close (i);
    for (;;)
      pause ();
  }
  if (pid > 0)
    waitpid (pid, NULL, 0);
  return report (call, "daemon", pid);
}

/* A child of the host's. */
static int32_t
do_foster (struct coffer_call *call, struct hostile *self, const char *arg)
{
  long pid = syscall (SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);

  (void) self;
  (void) arg;
  if (pid == 0)
    _exit (0);
  return report (call, "foster", pid);
}

/* A child that keeps the channel open when this process is gone. */
static int32_t
do_heir (struct coffer_call *call, struct hostile *self, const char *arg)
{
  pid_t pid = fork ();

  (void) self;
  (void) arg;
  if (pid == 0)
    for (;;)
      pause ();
  if (pid < 0)
    return report (call, "heir", -1);
  _exit (7);
}

static int32_t
do_forks (struct coffer_call *call, struct hostile *self, const char *arg)
{
  int i, n = atoi (arg);
  char text[32];

  (void) self;
  for (i = 0; i < n; i++) {
    pid_t pid = fork ();
    if (pid == 0)
      for (;;)
        pause ();
    if (pid < 0)
      break;
  }
  snprintf (text, sizeof text, "%d", i);
  say (call, "forks", "done", text);
  wait_call (call, 200);
  return COFFER_OK;
}

static void
stop_here (int number)
{
  sigset_t all;

  (void) number;
  sigfillset (&all);
  sigprocmask (SIG_SETMASK, &all, NULL);
  for (;;)
    pause ();
}

/* Every other thread goes to sleep in a handler, whatever it waited for. */
static int32_t
do_stop_threads (struct coffer_call *call, struct hostile *self,
                 const char *arg)
{
  struct sigaction action = { .sa_handler = stop_here };
  int id, me = (int) gettid ();

  (void) call;
  (void) self;
  (void) arg;
  sigaction (SIGUSR1, &action, NULL);
  for (id = getpid (); id < getpid () + 200; id++)
    if (id != me)
      syscall (SYS_tgkill, getpid (), id, SIGUSR1);
  stop_here (0);
  return COFFER_OK;
}

/* ---- itself --------------------------------------------------------------- */

static int32_t
do_more (struct coffer_call *call, struct hostile *self, const char *arg)
{
  static const int limits[] = { RLIMIT_DATA, RLIMIT_NOFILE, RLIMIT_CORE,
                                RLIMIT_NPROC, RLIMIT_FSIZE };
  struct rlimit most = { RLIM_INFINITY, RLIM_INFINITY };
  int any = 0;

  (void) self;
  (void) arg;
  for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
    any |= setrlimit (limits[i], &most) == 0;
    any |= prlimit (0, limits[i], &most, NULL) == 0;
    any |= prlimit (getppid (), limits[i], &most, NULL) == 0;
  }
  any |= prctl (PR_SET_DUMPABLE, 1, 0, 0, 0) == 0;
  any |= prctl (PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0) == 0;
  return say (call, "more", any ? "done" : "refused", "");
}

/* Where everybody can read it; for as long as a look takes. */
static int32_t
do_title (struct coffer_call *call, struct hostile *self, const char *arg)
{
  const char *secret = self->secret ? self->secret : "nothing";
  int fd = open ("/proc/self/comm", O_WRONLY);

  (void) arg;
  prctl (PR_SET_NAME, secret, 0, 0, 0);
  pthread_setname_np (pthread_self (), secret);
  if (fd >= 0 && write (fd, secret, strlen (secret)) < 0)
    close (fd);
  strncpy (program_invocation_name, secret, strlen (program_invocation_name));
  wait_call (call, 200);
  return say (call, "title", "done", "");
}

const struct word reach_words[] = {
  { "steal", do_steal }, { "plant", do_plant }, { "litter", do_litter },
  { "dial", do_dial }, { "shell", do_shell }, { "spy", do_spy },
  { "signals", do_signals }, { "raise", do_raise }, { "daemon", do_daemon },
  { "foster", do_foster }, { "heir", do_heir }, { "forks", do_forks },
  { "stop_threads", do_stop_threads }, { "more", do_more },
  { "title", do_title }, { NULL, NULL }
};
