/* SPDX-License-Identifier: Apache-2.0 */
/* What a hostile program would try, one attempt a name.  It runs inside a
 * sandbox, put there by test-linux-confined.c:
 *
 *   linux-payload NAME [ARGUMENT]
 *
 * Exit 0: the attempt was refused as it must be.  Otherwise a line on standard
 * output says what happened.  The test judges by what it sees from outside
 * wherever there is something to see. */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static int failures;

/* The call must fail, with that errno (0: any). */
static void
refused (const char *what, long ret, int expected)
{
  int error = errno;

  if (ret != -1) {
    printf ("%s: allowed (%ld)\n", what, ret);
    failures++;
  } else if (expected != 0 && error != expected) {
    printf ("%s: %s instead of %s\n", what, strerror (error),
            strerror (expected));
    failures++;
  }
}

static void
allowed (const char *what, long ret)
{
  if (ret == -1) {
    printf ("%s: %s\n", what, strerror (errno));
    failures++;
  }
}

#define REFUSED(expected, ...) refused (#__VA_ARGS__, __VA_ARGS__, expected)
#define ALLOWED(...) allowed (#__VA_ARGS__, __VA_ARGS__)

static const long high = 1L << 32;      /* beyond what the kernel looks at */

static void
try_sockets (void)
{
  static const int families[] = { 0, 3, 4, 9, 15, 17, 21, 29, 30, 31, 38, 40,
                                  42, 43, 44, 45, 1000, -1 };
  size_t i;

  for (i = 0; i < sizeof families / sizeof families[0]; i++) {
    REFUSED (EAFNOSUPPORT, syscall (SYS_socket, families[i], SOCK_STREAM, 0));
    REFUSED (EAFNOSUPPORT,
             syscall (SYS_socket, (long) families[i] | high, SOCK_DGRAM, 0));
  }
  REFUSED (0, syscall (SYS_socket, AF_UNIX | high, SOCK_STREAM, 0));
  REFUSED (0, socket (AF_INET, SOCK_RAW, IPPROTO_ICMP));
  REFUSED (0, socket (AF_INET, SOCK_DGRAM, IPPROTO_ICMP));
  REFUSED (0, socket (AF_INET, SOCK_STREAM, 262));
  REFUSED (0, socket (AF_INET, SOCK_STREAM, IPPROTO_SCTP));
  REFUSED (0, socket (AF_NETLINK, SOCK_RAW, 9));
  ALLOWED (socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  /* A kernel may be built without it. */
  if (access ("/proc/net/if_inet6", F_OK) == 0)
    ALLOWED (socket (AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK, IPPROTO_UDP));
  ALLOWED (socket (AF_UNIX, SOCK_STREAM, 0));
  ALLOWED (socket (AF_NETLINK, SOCK_RAW, 0));
}

static void
try_namespaces (void)
{
  static const long flags[] = { CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWPID,
                                CLONE_NEWNET, CLONE_NEWIPC, CLONE_NEWUTS,
                                0x02000000 /* NEWCGROUP */,
                                CLONE_NEWUSER | CLONE_NEWNS };
  char args[88] = { 0 };
  size_t i;

  for (i = 0; i < sizeof flags / sizeof flags[0]; i++) {
    REFUSED (EPERM, syscall (SYS_unshare, flags[i]));
    REFUSED (EPERM, syscall (SYS_unshare, flags[i] | high));
    REFUSED (EPERM, syscall (SYS_clone, flags[i] | SIGCHLD, 0, 0, 0, 0));
    REFUSED (EPERM,
             syscall (SYS_clone, flags[i] | high | SIGCHLD, 0, 0, 0, 0));
  }
  REFUSED (EPERM, syscall (SYS_unshare, 0x80 /* NEWTIME */));
  REFUSED (ENOSYS, syscall (SYS_clone3, args, sizeof args));
  REFUSED (EPERM, setns (0, 0));
}

static void
try_mounts (void)
{
  REFUSED (EPERM, mount ("none", "/tmp", "tmpfs", 0, NULL));
  REFUSED (EPERM, mount (NULL, "/usr", NULL, MS_REMOUNT | MS_BIND, NULL));
  REFUSED (EPERM, umount2 ("/proc/sys", MNT_DETACH));
  REFUSED (EPERM, chroot ("/tmp"));
  REFUSED (EPERM, syscall (SYS_pivot_root, ".", "."));
  REFUSED (EPERM, syscall (428 /* open_tree */, -100, "/usr", 1));
  REFUSED (EPERM, syscall (430 /* fsopen */, "tmpfs", 0));
  REFUSED (EPERM, syscall (442 /* mount_setattr */, -100, "/usr", 0, NULL, 0));
  REFUSED (EPERM, syscall (SYS_open_by_handle_at, -100, NULL, 0));
}

static void
try_setuid_bits (void)
{
  int fd = open ("/tmp/plain", O_CREAT | O_RDWR, 0755);

  ALLOWED (fd);
  REFUSED (EPERM, fchmod (fd, 04755));
  REFUSED (EPERM, fchmod (fd, 02755));
  REFUSED (EPERM, syscall (SYS_fchmod, fd, 04755 | high));
  REFUSED (EPERM, fchmodat (AT_FDCWD, "/tmp/plain", 06755, 0));
  REFUSED (EPERM, syscall (452 /* fchmodat2 */, AT_FDCWD, "/tmp/plain",
                           04755, 0));
  REFUSED (EPERM, open ("/tmp/set", O_CREAT | O_RDWR, 04755));
  REFUSED (EPERM, open ("/tmp", O_TMPFILE | O_RDWR, 04755));
  REFUSED (EPERM, mkdirat (AT_FDCWD, "/tmp/setdir", 02755));
  REFUSED (EPERM, mknodat (AT_FDCWD, "/tmp/setnod", S_IFREG | 04755, 0));
  REFUSED (EPERM, mknodat (AT_FDCWD, "/tmp/null", S_IFCHR | 0666, 0x103));
  REFUSED (EPERM, mknodat (AT_FDCWD, "/tmp/white", S_IFCHR, 0));
  REFUSED (ENOSYS, syscall (437 /* openat2 */, AT_FDCWD, "/tmp", NULL, 0));
#ifdef SYS_chmod
  REFUSED (EPERM, syscall (SYS_chmod, "/tmp/plain", 04755));
  REFUSED (EPERM, syscall (SYS_creat, "/tmp/set", 04755));
  REFUSED (EPERM, syscall (SYS_open, "/tmp/set", O_CREAT | O_RDWR, 02755));
  REFUSED (EPERM, syscall (SYS_mkdir, "/tmp/setdir", 04755));
  REFUSED (EPERM, syscall (SYS_mknod, "/tmp/setnod", S_IFREG | 04755, 0));
#endif
  ALLOWED (fchmod (fd, 0700));
  ALLOWED (mkdir ("/tmp/sticky", 01777));
  ALLOWED (open ("/tmp/plain", O_RDONLY, 04755));
}

static void
try_kernel (void)
{
  char bytes[256] = { 0 };

  REFUSED (ENOSYS, syscall (SYS_keyctl, 1, NULL));
  REFUSED (ENOSYS, syscall (SYS_add_key, "user", "x", "y", 1, -3));
  REFUSED (ENOSYS, syscall (425 /* io_uring_setup */, 8, bytes));
  REFUSED (EPERM, syscall (SYS_bpf, 0, bytes, sizeof bytes));
  REFUSED (EPERM, syscall (SYS_perf_event_open, bytes, 0, -1, -1, 0));
  REFUSED (EPERM, syscall (SYS_userfaultfd, 1));
  REFUSED (EPERM, syscall (SYS_kcmp, getpid (), getpid (), 0, 0, 0));
  REFUSED (EPERM, syscall (447 /* memfd_secret */, 0));
  REFUSED (EPERM, syscall (438 /* pidfd_getfd */, 0, 0, 0));
  REFUSED (EPERM, syscall (SYS_process_vm_readv, 1, NULL, 0, NULL, 0, 0));
  REFUSED (EPERM, personality (ADDR_NO_RANDOMIZE));
  REFUSED (EPERM, personality (READ_IMPLIES_EXEC));
  ALLOWED (personality (0xffffffff));
  REFUSED (EPERM, syscall (SYS_seccomp, 1, 8 /* NEW_LISTENER */, bytes));
  REFUSED (EPERM, prctl (PR_SET_MM, 1, 0, 0, 0));
  REFUSED (EPERM, syscall (SYS_syslog, 3, bytes, sizeof bytes));
  REFUSED (EPERM, fcntl (0, F_SETLEASE, F_RDLCK));
  REFUSED (ENOSYS, syscall (1023));
  REFUSED (ENOSYS, syscall (-1));
}

static void
try_terminal (void)
{
  char c = 'x';

  REFUSED (EPERM, ioctl (0, TIOCSTI, &c));
  REFUSED (EPERM, syscall (SYS_ioctl, 0, TIOCSTI | high, &c));
  REFUSED (EPERM, syscall (SYS_ioctl, 0, TIOCLINUX | high, &c));
}

static void
try_init (void)
{
  const struct rlimit some = { 64, 64 };
  struct rlimit limit = { 0, 0 };
  struct sched_param idle = { 0 };
  unsigned char cpus[8] = { 1 };
  int i;

  REFUSED (EPERM, ptrace (PTRACE_ATTACH, 1, NULL, NULL));
  REFUSED (0, open ("/proc/1/mem", O_RDWR));
  REFUSED (0, open ("/proc/1/environ", O_RDONLY));
  REFUSED (0, open ("/proc/1/maps", O_RDONLY));
  REFUSED (0, open ("/proc/1/fd/0", O_RDWR));
  REFUSED (0, open ("/proc/1/root/etc/passwd", O_RDONLY));
  kill (1, SIGKILL);
  kill (1, SIGSTOP);
  ALLOWED (kill (1, 0));
  for (i = 0; i < 2; i++) {
    const long target = i == 0 ? 1 : getppid (), bits = i == 0 ? 0 : high;

    REFUSED (0, syscall (SYS_prlimit64, target, RLIMIT_NOFILE, &limit, NULL));
    REFUSED (0, syscall (SYS_prlimit64, target, RLIMIT_CPU, &limit, NULL));
    REFUSED (0, syscall (SYS_prlimit64, target | high, RLIMIT_NOFILE, &limit,
                         NULL));
    REFUSED (EPERM, syscall (SYS_sched_setscheduler, 1 | bits, 5, &idle));
    REFUSED (EPERM, syscall (SYS_sched_setparam, 1 | bits, &idle));
    REFUSED (EPERM, syscall (SYS_sched_setaffinity, 1 | bits, 8, cpus));
    REFUSED (EPERM, syscall (SYS_setpriority, 0 | bits, 1 | bits, 19));
    REFUSED (EPERM, syscall (SYS_setpriority, 2 | bits, 0, 19));
    REFUSED (EPERM, syscall (SYS_setpriority, 2 | bits, getuid (), 19));
    REFUSED (EPERM, syscall (SYS_ioprio_set, 1 | bits, 1 | bits, 0x6000));
    REFUSED (EPERM, syscall (SYS_ioprio_set, 3 | bits, getuid (), 0x6000));
  }
  /* Of itself a program may have less. */
  ALLOWED (setrlimit (RLIMIT_NOFILE, &some));
  ALLOWED (syscall (SYS_prlimit64, 1, RLIMIT_NOFILE, NULL, &limit));
  ALLOWED (setpriority (PRIO_PROCESS, 0, 19));
  ALLOWED (setpriority (PRIO_PROCESS, getpid (), 19));
}

static int proc_seen;

/* Of what describes the system, and not a process, nothing is written, and
 * what root keeps to itself is not read.  The kernel decides, at the opening. */
static int
try_proc_file (const char *path, const struct stat *st, int type,
               struct FTW *walk)
{
  int fd;

  (void) walk;
  if (type != FTW_F || !S_ISREG (st->st_mode)
      || (path[6] >= '0' && path[6] <= '9'))
    return 0;
  proc_seen++;
  fd = open (path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd >= 0)
    refused (path, fd, 0);
  if (!(st->st_mode & 0077)) {
    fd = open (path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    refused (path, fd, 0);
  }
  return 0;
}

static void
try_proc (void)
{
  static const char *const covered[]
    = { "/proc/keys", "/proc/key-users", "/proc/kallsyms" };
  char byte;
  size_t i;
  int fd;

  ALLOWED (nftw ("/proc", try_proc_file, 16, FTW_PHYS));
  ALLOWED (proc_seen > 100 ? 0 : -1);
  for (i = 0; i < sizeof covered / sizeof covered[0]; i++) {
    fd = open (covered[i], O_RDONLY | O_CLOEXEC);
    REFUSED (0, fd < 0 || read (fd, &byte, 1) == 0 ? (errno = EACCES, -1) : 0);
    close (fd);
  }
}

static void
try_system (void)
{
  static const char *const files[] = {
    "/proc/sys/kernel/core_pattern", "/proc/sys/fs/binfmt_misc/register",
    "/proc/sysrq-trigger", "/proc/sys/user/max_user_namespaces",
    "/usr/canary", "/etc/passwd", "/canary", "/dev/canary", "/dev/sda",
    "/dev/kmsg",
    "/dev/mem", "/sys/kernel/profiling"
  };
  struct rlimit limit = { 2, 2 };
  struct sched_param realtime = { 1 };
  size_t i;

  for (i = 0; i < sizeof files / sizeof files[0]; i++)
    refused (files[i], open (files[i], O_WRONLY | O_CREAT, 0644), 0);
  REFUSED (0, open ("/proc/kcore", O_RDONLY));
  REFUSED (0, rename ("/usr", "/tmp/usr"));
  REFUSED (0, link ("/usr/bin/env", "/tmp/env"));
  REFUSED (0, utimensat (AT_FDCWD, "/dev/null", NULL, 0));
  REFUSED (0, utimensat (AT_FDCWD, "/usr/bin/env", NULL, 0));
  REFUSED (EPERM, setrlimit (RLIMIT_CORE, &limit));
  REFUSED (EPERM, sched_setscheduler (0, SCHED_FIFO, &realtime));
  REFUSED (0, setpriority (PRIO_PROCESS, 0, -5));
  REFUSED (EPERM, sethostname ("x", 1));
  REFUSED (0, setuid (0));
  REFUSED (0, setgid (0));
  REFUSED (0, write (open ("/proc/self/uid_map", O_WRONLY), "0 0 1", 5));
  REFUSED (0, write (open ("/proc/self/setgroups", O_WRONLY), "allow", 5));
}

static void
try_descriptors (void)
{
  DIR *dir = opendir ("/proc/self/fd");
  struct dirent *entry;
  char target[256];
  int fd;

  ALLOWED (dir == NULL ? -1 : 0);
  while (dir != NULL && (entry = readdir (dir)) != NULL) {
    if (entry->d_name[0] == '.')
      continue;
    fd = atoi (entry->d_name);
    if (fd <= 2 || fd == dirfd (dir))
      continue;
    memset (target, 0, sizeof target);
    if (readlinkat (dirfd (dir), entry->d_name, target, sizeof target - 1) > 0)
      printf ("descriptor %d: %s\n", fd, target);
    failures++;
  }
}

/* Numbers of another architecture end the process. */
/* User-mode-linux has no 32-bit calls: it takes their instruction for a call
 * of its own, with the numbers that those have. */
static int
kernel_is_program (void)
{
  char text[512] = "";
  int fd = open ("/proc/cpuinfo", O_RDONLY | O_CLOEXEC);
  ssize_t n = fd < 0 ? -1 : read (fd, text, sizeof text - 1);

  close (fd);
  return n > 0 && strstr (text, "User Mode Linux") != NULL;
}

static void
try_foreign (void)
{
#if defined __x86_64__
  int status = 0, i;
  pid_t pid;

  for (i = kernel_is_program (); i < 2; i++) {
    pid = fork ();
    if (pid == 0) {
      long ret = 20;            /* getpid, as 32 bits count */

      if (i == 0)
        __asm__ volatile ("int $0x80" : "+a" (ret) : : "memory");
      else
        syscall (0x40000000 | SYS_getpid);
      _exit (0);
    }
    waitpid (pid, &status, 0);
    if (!WIFSIGNALED (status) || WTERMSIG (status) != SIGSYS) {
      printf ("foreign call %d: status %x\n", i, (unsigned) status);
      failures++;
    }
  }
#endif
}

/* A program of 32 bits, which is "exit (42)". */
static void
try_program (unsigned char machine, const char code[12])
{
  static const char path[] = "/tmp/foreign";
  static const char *const argv[] = { path, NULL }, *const envp[] = { NULL };
  char elf[96] = "\x7f" "ELF\1\1\1";
  int status = 0, fd = open (path, O_CREAT | O_TRUNC | O_WRONLY, 0700);
  pid_t pid;

  elf[16] = 2;                  /* a program */
  elf[18] = (char) machine;
  elf[20] = 1;
  memcpy (elf + 24, "\x54\x80\x04\x08\x34", 5);   /* entry, segments */
  elf[40] = 52;
  elf[42] = 32;
  elf[44] = 1;
  elf[52] = 1;                  /* loaded at 0x08048000 */
  memcpy (elf + 60, "\0\x80\x04\x08\0\x80\x04\x08\x60\0\0\0\x60", 13);
  elf[76] = 5;
  elf[81] = 0x10;
  memcpy (elf + 84, code, 12);
  ALLOWED (write (fd, elf, sizeof elf) == (ssize_t) sizeof elf ? 0 : -1);
  close (fd);
  pid = fork ();
  if (pid == 0) {
    syscall (SYS_execve, path, argv, envp);
    _exit (errno == ENOEXEC ? 1 : 2);
  }
  waitpid (pid, &status, 0);
  unlink (path);
  /* Not known to this kernel, or ended by its first call. */
  if ((WIFEXITED (status) && WEXITSTATUS (status) == 1)
      || (WIFSIGNALED (status) && WTERMSIG (status) == SIGSYS))
    return;
  printf ("program of machine %u: status %x\n", machine, (unsigned) status);
  failures++;
}

static void
try_programs (void)
{
#if defined __x86_64__
  /* mov $1, %eax; mov $42, %ebx; int $0x80 */
  try_program (3, "\xb8\1\0\0\0\xbb\x2a\0\0\0\xcd\x80");
  /* x32: mov $0x4000003c, %eax; push $42; pop %rdi; syscall */
  try_program (62, "\xb8\x3c\0\0\x40\x6a\x2a\x5f\x0f\x05\xf4\xf4");
#endif
}

/* ARGUMENT: a port and the name of an abstract socket, both listened on
 * outside. */
static void
try_network (const char *argument)
{
  static const char *const hosts[] = { "127.0.0.1", "169.254.169.254",
                                       "10.0.0.1", "8.8.8.8" };
  struct sockaddr_in in = { .sin_family = AF_INET };
  struct sockaddr_un un = { .sun_family = AF_UNIX };
  const char *name = strchr (argument, ' ');
  size_t i;
  int fd;

  in.sin_port = htons ((uint16_t) atoi (argument));
  for (i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
    inet_pton (AF_INET, hosts[i], &in.sin_addr);
    fd = socket (AF_INET, SOCK_STREAM, 0);
    refused (hosts[i], connect (fd, (struct sockaddr *) &in, sizeof in), 0);
    close (fd);
  }
  if (name == NULL)
    return;
  snprintf (un.sun_path + 1, sizeof un.sun_path - 1, "%s", name + 1);
  fd = socket (AF_UNIX, SOCK_STREAM, 0);
  REFUSED (0, connect (fd, (struct sockaddr *) &un,
                       (socklen_t) (sizeof (sa_family_t) + 1
                                    + strlen (name + 1))));
}

static void
try_read (const char *path)
{
  char text[256];
  int fd = open (path, O_RDONLY);
  ssize_t n = fd < 0 ? -1 : read (fd, text, sizeof text);

  if (n > 0) {
    printf ("%.*s", (int) n, text);
    failures++;
  }
}

/* More memory than the argument's bytes, touched. */
static void
try_memory (const char *bytes)
{
  size_t size = strtoull (bytes, NULL, 10), i;
  volatile char *at = malloc (size);

  for (i = 0; at != NULL && i < size; i += 4096)
    at[i] = 1;
  printf ("touched %zu\n", at ? size : 0);
}

/* How many processes of the argument's number there can be. */
static void
try_forks (const char *number)
{
  int wanted = atoi (number), n;
  pid_t pid = 1;

  for (n = 0; n < wanted && pid > 0; n++) {
    pid = fork ();
    if (pid == 0)
      for (;;)
        pause ();
  }
  printf ("%d\n", pid > 0 ? n : n - 1);
}

/* Forks and flees for ever: each new one is nobody's child. */
static void
try_bomb (void)
{
  for (;;)
    if (fork () == 0) {
      setsid ();
      if (fork () > 0)
        _exit (0);
    }
}

/* Lowers the limits that say which command it belongs to. */
static void
try_untag (void)
{
  const struct rlimit none = { 0, 0 };

  setrlimit (RLIMIT_LOCKS, &none);
  setrlimit (RLIMIT_RTTIME, &none);
  setrlimit (RLIMIT_RSS, &none);
  printf ("lowered\n");
  fflush (stdout);
  sleep (60);
}

/* Nobody may look into it. */
static void
try_undumpable (void)
{
  prctl (PR_SET_DUMPABLE, 0, 0, 0, 0);
  if (fork () == 0)
    setsid ();
  sleep (60);
}

/* Takes in what has no parent any more, and never looks after it. */
static void
try_orphanage (void)
{
  prctl (PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  if (fork () == 0) {
    if (fork () > 0)
      _exit (0);
    setsid ();
  }
  for (;;)
    sleep (60);
}

static int
thread_sleep (void *none)
{
  (void) none;
  sleep (60);
  return 0;
}

/* Its first thread has ended, and another goes on. */
static void
try_leaderless (void)
{
  static char stack[65536] __attribute__ ((aligned (16)));

  clone (thread_sleep, stack + sizeof stack,
         CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD
           | CLONE_SYSVSEM,
         NULL);
  syscall (SYS_exit, 0);
}

/* Stops every process that comes after it, as often as it can. */
static void
try_stopper (void)
{
  pid_t pid, self = getpid ();

  for (;;)
    for (pid = self + 1; pid < self + 64; pid++)
      kill (pid, SIGSTOP);
}

/* Answers one connection after another with what it reads, in capitals. */
static void
listen_on (int family, const char *port)
{
  struct sockaddr_in6 v6 = { .sin6_family = AF_INET6,
                             .sin6_port = htons ((uint16_t) atoi (port)),
                             .sin6_addr = IN6ADDR_LOOPBACK_INIT };
  struct sockaddr_in v4 = { .sin_family = AF_INET,
                            .sin_port = htons ((uint16_t) atoi (port)),
                            .sin_addr = { htonl (INADDR_LOOPBACK) } };
  int fd = socket (family, SOCK_STREAM, 0), peer;
  char bytes[4096];
  ssize_t n, i;

  if ((family == AF_INET ? bind (fd, (struct sockaddr *) &v4, sizeof v4)
                         : bind (fd, (struct sockaddr *) &v6, sizeof v6))
        != 0
      || listen (fd, 16) != 0) {
    printf ("%s\n", strerror (errno));
    exit (1);
  }
  printf ("listening\n");
  fflush (stdout);
  while ((peer = accept (fd, NULL, NULL)) >= 0) {
    while ((n = read (peer, bytes, sizeof bytes)) > 0) {
      for (i = 0; i < n; i++)
        if (bytes[i] >= 'a' && bytes[i] <= 'z')
          bytes[i] = (char) (bytes[i] - 'a' + 'A');
      if (write (peer, bytes, (size_t) n) != n)
        break;
    }
    close (peer);
  }
}

static void
try_listen4 (const char *port)
{
  listen_on (AF_INET, port);
}

static void
try_listen6 (const char *port)
{
  listen_on (AF_INET6, port);
}

/* Changes places all the time: of a folder and a link to another, of a file, a
 * link to another and a fifo. */
static void
try_swapper (void)
{
  int i;

  mkdir ("folder", 0755);
  mkdir ("/tmp/other", 0755);
  if (symlink ("/tmp/other", "elsewhere") != 0
      || symlink ("/etc/passwd", "link") != 0 || mkfifo ("fifo", 0644) != 0)
    exit (1);
  printf ("swapping\n");
  fflush (stdout);
  for (i = 0;; i++) {
    syscall (SYS_renameat2, AT_FDCWD, "folder", AT_FDCWD, "elsewhere", 2);
    syscall (SYS_renameat2, AT_FDCWD, "file", AT_FDCWD,
             i % 2 ? "link" : "fifo", 2);
  }
}

/* What an import or an export has in its hands becomes a link to a folder that
 * is outside, and back, for ever. */
static void
try_stager (const char *target)
{
  static const char *const below[] = { "", "/d" };
  const struct dirent *entry;
  char path[300];
  DIR *spot;
  size_t i;

  if (mkdir ("spot", 0755) != 0 || symlink (target, "away") != 0
      || chdir ("spot") != 0)
    exit (1);
  printf ("staging\n");
  fflush (stdout);
  for (;;) {
    spot = opendir (".");
    while (spot != NULL && (entry = readdir (spot)) != NULL) {
      if (strcmp (entry->d_name, ".") == 0 || strcmp (entry->d_name, "..") == 0)
        continue;
      for (i = 0; i < 4; i++) {
        snprintf (path, sizeof path, "%s%s", entry->d_name, below[i / 2]);
        syscall (SYS_renameat2, AT_FDCWD, path, AT_FDCWD, "../away", 2);
      }
    }
    closedir (spot);
  }
}

/* A folder in a folder, and so on. */
static void
try_deep (const char *levels)
{
  int n = atoi (levels), i;

  for (i = 0; i < n; i++)
    if (mkdir ("d", 0755) != 0 || chdir ("d") != 0)
      exit (1);
  close (open ("end", O_WRONLY | O_CREAT, 0644));
}

/* Counts in a file for ever, each step by a process of its own. */
static void
try_ticker (const char *path)
{
  int fd = open (path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0644);

  for (;;) {
    if (fork () == 0) {
      if (fork () == 0 && write (fd, ".", 1) != 1)
        _exit (1);
      _exit (0);
    }
    while (wait (NULL) > 0)
      ;
  }
}

/* How much there is of what others need, too. */
static void
try_counts (const char *none)
{
  const struct rlimit most = { 8192, 8192 };
  union sigval value = { 0 };
  int ptys = 0, instances = 0, signals = 0;
  sigset_t set;

  (void) none;
  setrlimit (RLIMIT_NOFILE, &most);
  while (ptys < 4000 && open ("/dev/ptmx", O_RDWR | O_NOCTTY) >= 0)
    ptys++;
  while (instances < 4000 && inotify_init1 (0) >= 0)
    instances++;
  sigemptyset (&set);
  sigaddset (&set, SIGRTMIN);
  sigprocmask (SIG_BLOCK, &set, NULL);
  while (signals < 200000 && sigqueue (getpid (), SIGRTMIN, value) == 0)
    signals++;
  printf ("ptys %d inotify %d signals %d\n", ptys, instances, signals);
}

/* "NUMBER ERRNO,…": each call, without arguments, must fail so. */
static void
try_calls (const char *list)
{
  char what[32], *end;
  long number;
  int expected;

  for (;; list = end + 1) {
    number = strtol (list, &end, 10);
    expected = (int) strtol (end, &end, 10);
    snprintf (what, sizeof what, "call %ld", number);
    refused (what, syscall (number, 0, 0, 0, 0, 0, 0), expected);
    if (*end != ',')
      return;
  }
}

/* What the guarded interpreter's filter leaves to native code. */
static void
try_strict (void)
{
  static const char *const argv[] = { "true", NULL }, *const envp[] = { NULL };
  int fd, pair[2];

  REFUSED (EPERM, syscall (SYS_execve, "/bin/true", argv, envp, 0, 0, 0));
  REFUSED (EPERM, syscall (SYS_execve, "/bin/true", argv, envp, 0, 0,
                           0x5eedc0de0ddba11cUL));
  REFUSED (EPERM, syscall (SYS_execve, "/bin/true", argv, envp, -1, -1, -1));
  REFUSED (EPERM, syscall (SYS_execveat, -100, "/bin/true", argv, envp, 0));
  REFUSED (EPERM, syscall (SYS_clone, SIGCHLD, 0, 0, 0, 0));
  REFUSED (EPERM, syscall (SYS_clone, SIGCHLD | CLONE_VM | CLONE_VFORK, 0, 0,
                           0, 0));
  REFUSED (EPERM, syscall (SYS_clone, CLONE_NEWUSER | CLONE_VM | CLONE_THREAD
                                        | CLONE_SIGHAND, 0, 0, 0, 0));
  REFUSED (ENOSYS, syscall (SYS_clone3, NULL, 0));
#ifdef SYS_fork
  REFUSED (EPERM, syscall (SYS_fork));
  REFUSED (EPERM, syscall (SYS_vfork));
#endif
  REFUSED (EPERM, socket (AF_UNIX, SOCK_STREAM, 0));
  REFUSED (EPERM, socketpair (AF_UNIX, SOCK_STREAM, 0, pair));
  REFUSED (EPERM, pipe (pair));
  REFUSED (EPERM, kill (getpid (), 0));
  REFUSED (EPERM, mkdir ("/tmp/folder", 02700));
  REFUSED (EPERM, link ("/etc/passwd", "/tmp/passwd"));
  REFUSED (EPERM, symlink ("/etc/passwd", "/tmp/passwd"));
  REFUSED (EPERM, rename ("/tmp/none", "/tmp/other"));
  REFUSED (EPERM, syscall (SYS_fchmodat, -100, "/tmp/none", 0600));
  REFUSED (EPERM, syscall (SYS_memfd_create, "x", 0));
  REFUSED (EPERM, prctl (PR_SET_DUMPABLE, 0, 0, 0, 0));
  REFUSED (EPERM, ioctl (0, TIOCSTI, "x"));
  REFUSED (EPERM, syscall (SYS_ioctl, 0, TIOCGWINSZ | high, pair));
  REFUSED (EPERM, open ("/tmp/set", O_CREAT | O_RDWR, 04755));
  REFUSED (ENOENT, open ("/proc/sys/kernel/core_pattern", O_RDONLY));
  REFUSED (ENOENT, open ("/proc/meminfo", O_RDONLY));
  REFUSED (ENOENT, open ("/proc/keys", O_RDONLY));
  ALLOWED (open ("/proc/self/status", O_RDONLY));
  fd = open ("/tmp/plain", O_CREAT | O_RDWR, 0600);
  ALLOWED (fd);
  ALLOWED (write (fd, "x", 1));
  ALLOWED (ftruncate (fd, 0));
  ALLOWED (unlink ("/tmp/plain"));
  ALLOWED (mkdir ("/tmp/folder", 0700));
  ALLOWED (rmdir ("/tmp/folder"));
  ALLOWED (fcntl (fd, F_GETFL));
  REFUSED (EPERM, fcntl (fd, F_SETLEASE, F_RDLCK));
  REFUSED (EPERM, fcntl (fd, F_DUPFD, 3));
}

static const struct {
  const char *name;
  void (*alone) (void);
  void (*with) (const char *argument);
} attempts[] = {
  { "sockets", try_sockets, NULL },
  { "namespaces", try_namespaces, NULL },
  { "mounts", try_mounts, NULL },
  { "setuid", try_setuid_bits, NULL },
  { "kernel", try_kernel, NULL },
  { "terminal", try_terminal, NULL },
  { "init", try_init, NULL },
  { "proc", try_proc, NULL },
  { "system", try_system, NULL },
  { "descriptors", try_descriptors, NULL },
  { "foreign", try_foreign, NULL },
  { "programs", try_programs, NULL },
  { "strict", try_strict, NULL },
  { "calls", NULL, try_calls },
  { "network", NULL, try_network },
  { "read", NULL, try_read },
  { "memory", NULL, try_memory },
  { "forks", NULL, try_forks },
  { "counts", NULL, try_counts },
  { "bomb", try_bomb, NULL },
  { "listen4", NULL, try_listen4 },
  { "listen6", NULL, try_listen6 },
  { "ticker", NULL, try_ticker },
  { "deep", NULL, try_deep },
  { "swapper", try_swapper, NULL },
  { "stager", NULL, try_stager },
  { "untag", try_untag, NULL },
  { "undumpable", try_undumpable, NULL },
  { "orphanage", try_orphanage, NULL },
  { "leaderless", try_leaderless, NULL },
  { "stopper", try_stopper, NULL },
};

int
main (int argc, char *argv[])
{
  size_t i;

  for (i = 0; i < sizeof attempts / sizeof attempts[0]; i++) {
    if (argc < 2 || strcmp (argv[1], attempts[i].name) != 0)
      continue;
    if (attempts[i].alone != NULL)
      attempts[i].alone ();
    else if (argc == 3)
      attempts[i].with (argv[2]);
    else
      return 3;
    return failures != 0;
  }
  return 3;
}
