/* SPDX-License-Identifier: Apache-2.0 */
/* Words of a hostile module that ask for what no manifest gave it, and tell what
 * came of it. */

#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "hostile.h"

static int32_t
do_open (struct coffer_call *call, struct hostile *self, const char *arg)
{
  int fd = open (arg, O_RDONLY | O_CLOEXEC);
  int32_t code;

  (void) self;
  code = report (call, "open", fd);
  if (fd >= 0)
    close (fd);
  return code;
}

static int32_t
do_write (struct coffer_call *call, struct hostile *self, const char *arg)
{
  int fd = open (arg, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  ssize_t n = -1;
  int32_t code;

  (void) self;
  if (fd >= 0)
    n = write (fd, "written\n", 8);
  code = report (call, "write", fd < 0 ? -1 : (long) n);
  if (fd >= 0)
    close (fd);
  return code;
}

static int32_t
do_truncate (struct coffer_call *call, struct hostile *self, const char *arg)
{
  (void) self;
  return report (call, "truncate", truncate (arg, 0));
}

/* What Landlock does not know of: "HOW:PATH". */
static int32_t
do_change (struct coffer_call *call, struct hostile *self, const char *arg)
{
  static const struct timespec epoch[2] = { { 1, 0 }, { 1, 0 } };
  const char *path = strchr (arg, ':');
  long result = -1;
  int fd;

  (void) self;
  if (!path)
    return COFFER_INVALID;
  path++;
  fd = open (path, O_RDONLY | O_CLOEXEC);
  errno = EINVAL;
  if (strncmp (arg, "chmod:", 6) == 0)
    result = chmod (path, 0777);
  else if (strncmp (arg, "fchmodat:", 9) == 0)
    result = fchmodat (AT_FDCWD, path, 0777, 0);
  else if (strncmp (arg, "fchmodat2:", 10) == 0)
    result = syscall (452, AT_FDCWD, path, 0777, 0);
  else if (strncmp (arg, "setuid:", 7) == 0)
    result = fchmod (fd, 04755);
  else if (strncmp (arg, "writable:", 9) == 0)
    result = fchmod (fd, 0666);
  else if (strncmp (arg, "private:", 8) == 0)
    result = fchmod (fd, 0600);
  else if (strncmp (arg, "chown:", 6) == 0)
    result = chown (path, geteuid (), getegid ());
  else if (strncmp (arg, "times:", 6) == 0)
    result = utimensat (AT_FDCWD, path, epoch, 0);
  else if (strncmp (arg, "setxattr:", 9) == 0)
    result = setxattr (path, "user.coffer", "x", 1, 0);
  else if (strncmp (arg, "watch:", 6) == 0)
    result = syscall (SYS_inotify_add_watch,
                      syscall (SYS_inotify_init1, 0), path, 0xfff);
  else if (strncmp (arg, "lease:", 6) == 0)
    result = fcntl (fd, F_SETLEASE, F_RDLCK);
  else if (strncmp (arg, "owner:", 6) == 0)
    result = fcntl (fd, F_SETOWN, getppid ());
  else if (strncmp (arg, "signal:", 7) == 0)
    result = fcntl (fd, F_SETSIG, SIGKILL);
  report (call, "change", result);
  if (fd >= 0)
    close (fd);
  return COFFER_OK;
}

static int32_t
do_runtime (struct coffer_call *call, struct hostile *self, const char *arg)
{
  int fd = openat (self->runtime_dir, arg, O_WRONLY | O_CREAT | O_CLOEXEC,
                   0600);
  int32_t code = report (call, "runtime", fd);

  if (fd >= 0)
    close (fd);
  return code;
}

static int32_t
do_socket (struct coffer_call *call, struct hostile *self, const char *arg)
{
  static const struct {
    const char *word;
    int family, type;
  } kinds[] = { { "inet", AF_INET, SOCK_STREAM },
                { "udp", AF_INET, SOCK_DGRAM },
                { "inet6", AF_INET6, SOCK_STREAM },
                { "unix", AF_UNIX, SOCK_STREAM },
                { "netlink", AF_NETLINK, SOCK_RAW },
                { "vsock", 40, SOCK_STREAM } };
  size_t i;

  (void) self;
  for (i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
    if (strcmp (kinds[i].word, arg) == 0)
      return report (call, "socket",
                     socket (kinds[i].family, kinds[i].type, 0));
  return COFFER_INVALID;
}

static int32_t
do_pair (struct coffer_call *call, struct hostile *self, const char *arg)
{
  int fds[2];

  (void) self;
  return report (call, "pair",
                 socketpair (AF_UNIX, strcmp (arg, "dgram") == 0
                                      ? SOCK_DGRAM : SOCK_STREAM, 0, fds));
}

/* Through the host, then a line each way. */
static int32_t
do_connect (struct coffer_call *call, struct hostile *self, const char *arg)
{
  char line[64] = "";
  int fd = coffer_connect (call, arg);
  int32_t code;

  (void) self;
  if (fd < 0) {
    snprintf (line, sizeof line, "code %d", -fd);
    return say (call, "connect", "refused", line);
  }
  if (write (fd, "hello\n", 6) < 0 || read (fd, line, sizeof line - 1) < 0)
    snprintf (line, sizeof line, "%s", strerrorname_np (errno));
  code = say (call, "connect", "done", line);
  close (fd);
  return code;
}

/* A connected stream whose peer has gone, connected to somewhere else. */
static int32_t
do_reconnect (struct coffer_call *call, struct hostile *self,
              const char *arg)
{
  struct sockaddr_in to = { .sin_family = AF_INET,
                            .sin_addr.s_addr = htonl (INADDR_LOOPBACK) };
  int fd = coffer_connect (call, self->url ? "config:api_url" : "");
  char byte;
  int32_t code;

  to.sin_port = htons ((uint16_t) atoi (arg));
  if (fd < 0)
    return COFFER_UNAVAILABLE;
  shutdown (fd, SHUT_WR);
  while (read (fd, &byte, 1) > 0)
    ;
  if (sendto (fd, "x", 1, MSG_FASTOPEN | MSG_NOSIGNAL,
              (struct sockaddr *) &to, sizeof to) >= 0)
    code = say (call, "reconnect", "done", "sendto");
  else if (connect (fd, (struct sockaddr *) &to, sizeof to) >= 0)
    code = say (call, "reconnect", "done", "connect");
  else
    code = report (call, "reconnect", -1);
  close (fd);
  return code;
}

static int32_t
do_fork (struct coffer_call *call, struct hostile *self, const char *arg)
{
  pid_t pid = fork ();
  int32_t code;

  (void) self;
  (void) arg;
  if (pid == 0)
    for (;;)
      pause ();
  code = report (call, "fork", pid);
  return code;
}

static void *
idle_thread (void *data)
{
  for (;;)
    pause ();
  return data;
}

/* Until the limit, or ARG of them. */
static int32_t
do_threads (struct coffer_call *call, struct hostile *self, const char *arg)
{
  int i, n = atoi (arg);
  pthread_attr_t attributes;
  pthread_t thread;
  char text[32];

  (void) self;
  pthread_attr_init (&attributes);
  pthread_attr_setstacksize (&attributes, 64 * 1024);
  for (i = 0; i < n; i++)
    if (pthread_create (&thread, &attributes, idle_thread, NULL) != 0)
      break;
  snprintf (text, sizeof text, "%d", i);
  return say (call, "threads", i == n ? "done" : "refused", text);
}

/* MiB that it got and touched. */
static int32_t
do_eat (struct coffer_call *call, struct hostile *self, const char *arg)
{
  int shared = strcmp (arg, "shared") == 0, mib;
  char text[32];
  void *p;

  (void) self;
  for (mib = 0; mib < 2048; mib++) {
    p = mmap (NULL, 1 << 20, PROT_READ | PROT_WRITE,
              MAP_ANONYMOUS | (shared ? MAP_SHARED : MAP_PRIVATE), -1, 0);
    if (p == MAP_FAILED)
      break;
    memset (p, 1, 1 << 20);
  }
  snprintf (text, sizeof text, "%d", mib);
  return say (call, "eat", mib == 2048 ? "done" : "refused", text);
}

static int32_t
do_descriptors (struct coffer_call *call, struct hostile *self,
                const char *arg)
{
  char text[32];
  int n;

  (void) self;
  (void) arg;
  for (n = 0; n < 100000; n++)
    if (dup (0) < 0)
      break;
  snprintf (text, sizeof text, "%d", n);
  return say (call, "descriptors", n == 100000 ? "done" : "refused", text);
}

static int32_t
do_exec (struct coffer_call *call, struct hostile *self, const char *arg)
{
  char *argv[] = { (char *) arg, NULL }, *envp[] = { NULL };
  int status = 0;
  pid_t pid = vfork ();

  (void) self;
  if (pid == 0) {
    execve (arg, argv, envp);
    _exit (errno);
  }
  if (pid < 0)
    return report (call, "exec", -1);
  waitpid (pid, &status, 0);
  errno = WIFEXITED (status) ? WEXITSTATUS (status) : EINTR;
  return errno ? report (call, "exec", -1) : say (call, "exec", "done", "0");
}

static int32_t
do_memfd_exec (struct coffer_call *call, struct hostile *self,
               const char *arg)
{
  (void) self;
  (void) arg;
  return report (call, "memfd_exec", syscall (SYS_memfd_create, "x", 0));
}

static int32_t
do_ptrace (struct coffer_call *call, struct hostile *self, const char *arg)
{
  (void) self;
  (void) arg;
  return report (call, "ptrace", ptrace (PTRACE_ATTACH, getppid (), 0, 0));
}

static int32_t
do_kill (struct coffer_call *call, struct hostile *self, const char *arg)
{
  (void) self;
  return report (call, "kill",
                 kill (strcmp (arg, "parent") == 0 ? getppid () : -1, 0));
}

static int32_t
do_call (struct coffer_call *call, struct hostile *self, const char *arg)
{
  static const struct {
    const char *word;
    long number;
  } calls[] = { { "unshare", SYS_unshare }, { "mount", SYS_mount },
                { "setsid", SYS_setsid }, { "bpf", SYS_bpf },
                { "io_uring_setup", SYS_io_uring_setup },
                { "userfaultfd", SYS_userfaultfd },
                { "keyctl", SYS_keyctl }, { "chroot", SYS_chroot },
                { "process_vm_readv", SYS_process_vm_readv },
                { "process_vm_writev", SYS_process_vm_writev },
                { "perf_event_open", SYS_perf_event_open },
                { "add_key", SYS_add_key },
                { "request_key", SYS_request_key },
                { "setns", SYS_setns }, { "personality", SYS_personality },
                { "sched_setaffinity", SYS_sched_setaffinity },
                { "setpriority", SYS_setpriority },
                { "timer_create", SYS_timer_create },
                { "shmget", SYS_shmget }, { "mq_open", SYS_mq_open },
                { "vmsplice", SYS_vmsplice }, { "quotactl", SYS_quotactl },
                { "io_uring_enter", SYS_io_uring_enter },
                { "pidfd_getfd", 438 }, { "process_madvise", 440 },
                { "mount_setattr", 442 }, { "landlock_add_rule", 445 },
                { "pidfd_open", 434 }, { "clone3", 435 },
                { "kexec_load", SYS_kexec_load } };
  size_t i;

  (void) self;
  for (i = 0; i < sizeof calls / sizeof calls[0]; i++)
    if (strcmp (calls[i].word, arg) == 0)
      return report (call, arg, syscall (calls[i].number, CLONE_NEWUSER, 0,
                                         0, 0, 0, 0));
  return COFFER_INVALID;
}

static int32_t
do_limits (struct coffer_call *call, struct hostile *self, const char *arg)
{
  struct rlimit more = { RLIM_INFINITY, RLIM_INFINITY };

  (void) self;
  (void) arg;
  return report (call, "limits", setrlimit (RLIMIT_DATA, &more));
}

static int32_t
do_namespace (struct coffer_call *call, struct hostile *self,
              const char *arg)
{
  int status = 0;
  pid_t pid;

  (void) self;
  (void) arg;
  pid = (pid_t) syscall (SYS_clone, CLONE_NEWUSER | CLONE_NEWNS | SIGCHLD, 0,
                         0, 0, 0);
  if (pid == 0)
    _exit (mount ("none", "/tmp", "tmpfs", 0, "") == 0 ? 0 : 1);
  if (pid < 0)
    return report (call, "namespace", -1);
  waitpid (pid, &status, 0);
  return say (call, "namespace", "done", status == 0 ? "mounted" : "?");
}

extern char **environ;

static int32_t
do_environment (struct coffer_call *call, struct hostile *self,
                const char *arg)
{
  char text[32];
  int n = 0, open_fds = 0, fd;

  (void) self;
  (void) arg;
  while (environ && environ[n])
    n++;
  snprintf (text, sizeof text, "%d", n);
  say (call, "environment", "done", text);
  for (fd = 0; fd < 64; fd++)
    open_fds += fcntl (fd, F_GETFD) >= 0;
  snprintf (text, sizeof text, "%d", open_fds);
  return say (call, "open", "done", text);
}

static int32_t
do_files (struct coffer_call *call, struct hostile *self, const char *arg)
{
  char text[128];

  (void) arg;
  snprintf (text, sizeof text, "%d %s %s", self->n_files,
            self->first_file ? self->first_file : "-", self->first_bytes);
  return say (call, "files", "done", text);
}

static int32_t
do_file (struct coffer_call *call, struct hostile *self, const char *arg)
{
  char text[64] = "";
  int fd = coffer_file (call, arg);
  int32_t code;

  (void) self;
  if (fd < 0) {
    snprintf (text, sizeof text, "code %d", -fd);
    return say (call, "file", "refused", text);
  }
  if (read (fd, text, sizeof text - 1) < 0 || write (fd, "x", 1) >= 0)
    snprintf (text, sizeof text, "not sealed");
  code = say (call, "file", "done", text);
  close (fd);
  return code;
}

const struct word rights_words[] = {
  { "open", do_open }, { "write", do_write }, { "truncate", do_truncate },
  { "change", do_change }, { "runtime", do_runtime }, { "socket", do_socket },
  { "pair", do_pair }, { "connect", do_connect },
  { "reconnect", do_reconnect }, { "fork", do_fork },
  { "threads", do_threads }, { "eat", do_eat },
  { "descriptors", do_descriptors }, { "exec", do_exec },
  { "memfd_exec", do_memfd_exec }, { "ptrace", do_ptrace },
  { "kill", do_kill }, { "call", do_call }, { "limits", do_limits },
  { "namespace", do_namespace }, { "environment", do_environment },
  { "files", do_files }, { "file", do_file }, { NULL, NULL }
};
