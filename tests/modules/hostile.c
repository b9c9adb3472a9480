/* SPDX-License-Identifier: Apache-2.0 */
/* A provider that does what no provider should, on demand: the sandbox id of
 * sandbox_info is a word, or WORD:ARGUMENT, of the table at the end, of those that reach
 * for what is outside (hostile-reach.c) or those that are too much
 * (hostile-noise.c).  What a
 * word finds out it emits as a fact: name is the word, state "done" or
 * "refused", value the errno's name or what was found.
 *
 * Built several times: HOSTILE_THREADS serial or parallel, HOSTILE_BIRTH a
 * constructor that hangs or dies. */

#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
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
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <netinet/in.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include "hostile.h"

#ifndef HOSTILE_NAME
#define HOSTILE_NAME hostile
#endif
#ifndef HOSTILE_THREADS
#define HOSTILE_THREADS COFFER_THREADS_PARALLEL
#endif

/* volatile: what it points to is nobody's. */
static int *volatile nowhere;

#if defined HOSTILE_BIRTH_HANG
__attribute__ ((constructor)) static void
birth (void)
{
  for (;;)
    pause ();
}
#elif defined HOSTILE_BIRTH_ABORT
__attribute__ ((constructor)) static void
birth (void)
{
  static const char why[] = "constructor: no\n";

  if (write (2, why, sizeof why - 1) < 0)
    _exit (3);
  abort ();
}
#endif

int32_t
say (struct coffer_call *call, const char *name, const char *state,
     const char *value)
{
  struct coffer_fact fact = { .size = sizeof fact, .name = name,
                              .state = state, .value = value };

  return coffer_emit_fact (call, &fact);
}

/* What a system call came to. */
int32_t
report (struct coffer_call *call, const char *name, long result)
{
  return say (call, name, result < 0 ? "refused" : "done",
              result < 0 ? strerrorname_np (errno) : "");
}

void
wait_call (struct coffer_call *call, int ms)
{
  struct pollfd p = { .fd = call->cancel_fd, .events = POLLIN };

  poll (&p, 1, ms);
}

/* ---- words ---------------------------------------------------------------- */

static int32_t
do_ok (struct coffer_call *call, struct hostile *self, const char *arg)
{
  (void) self;
  return say (call, "ok", "done", arg);
}

static int32_t
do_sleep (struct coffer_call *call, struct hostile *self, const char *arg)
{
  (void) self;
  wait_call (call, atoi (arg));
  return say (call, "sleep", "done", "");
}

/* Ends at its deadline, or when it is cancelled, as it should. */
static int32_t
do_wait (struct coffer_call *call, struct hostile *self, const char *arg)
{
  struct pollfd p = { .fd = call->cancel_fd, .events = POLLIN };

  (void) self;
  (void) arg;
  if (poll (&p, 1, 30000) > 0)
    return coffer_fail (call, COFFER_CANCELLED, "the caller gave up");
  return COFFER_TIMEOUT;
}

/* Neither deadline nor cancel ends it. */
static int32_t
do_hang (struct coffer_call *call, struct hostile *self, const char *arg)
{
  (void) call;
  (void) self;
  (void) arg;
  for (;;)
    pause ();
  return COFFER_OK;
}

static int32_t
do_spin (struct coffer_call *call, struct hostile *self, const char *arg)
{
  volatile unsigned n = 0;

  (void) call;
  (void) self;
  (void) arg;
  for (;;)
    n++;
  return COFFER_OK;
}

static int32_t
do_crash (struct coffer_call *call, struct hostile *self, const char *arg)
{
  (void) self;
  coffer_log (call, COFFER_LOG_WARNING, "about to fall over");
  coffer_log (call, COFFER_LOG_WARNING, arg);
  return *nowhere;
}

static int32_t
do_abort (struct coffer_call *call, struct hostile *self, const char *arg)
{
  (void) call;
  (void) self;
  fprintf (stderr, "assertion of %s failed\n", arg);
  abort ();
}

static int32_t
do_exit (struct coffer_call *call, struct hostile *self, const char *arg)
{
  (void) call;
  (void) self;
  exit (atoi (arg));
}

static int32_t
do_code (struct coffer_call *call, struct hostile *self, const char *arg)
{
  (void) call;
  (void) self;
  return atoi (arg);
}

static int32_t
do_fail (struct coffer_call *call, struct hostile *self, const char *arg)
{
  (void) self;
  return coffer_fail_with (call, atoi (arg), COFFER_RETRY_YES, "as asked",
                           "{\"seen\":[1,2]}");
}

static int32_t
do_unknown_record (struct coffer_call *call, struct hostile *self,
                   const char *arg)
{
  struct coffer_fact fact = { .size = sizeof fact };

  (void) self;
  (void) arg;
  call->host->emit (call, 4711, &fact);
  return COFFER_OK;
}

static int32_t
do_bad_text (struct coffer_call *call, struct hostile *self, const char *arg)
{
  (void) self;
  (void) arg;
  say (call, "bad\xff\xfe", "done", "");
  return COFFER_OK;
}

/* A record that says it is shorter than its head. */
static int32_t
do_short_record (struct coffer_call *call, struct hostile *self,
                 const char *arg)
{
  struct coffer_fact fact = { .size = 4 };

  (void) self;
  (void) arg;
  coffer_emit_fact (call, &fact);
  return COFFER_OK;
}

static int32_t
do_emits (struct coffer_call *call, struct hostile *self, const char *arg)
{
  int i, n = atoi (arg);
  int32_t code = COFFER_OK;

  (void) self;
  for (i = 0; i < n && code == COFFER_OK; i++)
    code = say (call, "one", "done", "of many");
  return code;
}

/* One record of about ARG bytes: more than a frame holds. */
static int32_t
do_large (struct coffer_call *call, struct hostile *self, const char *arg)
{
  size_t size = strtoul (arg, NULL, 10);
  char *text = malloc (size + 1);
  int32_t code;

  (void) self;
  if (!text)
    return COFFER_LIMIT;
  memset (text, 'x', size);
  text[size] = '\0';
  code = say (call, "large", "done", text);
  free (text);
  return code;
}

static int32_t
do_log (struct coffer_call *call, struct hostile *self, const char *arg)
{
  (void) self;
  coffer_log (call, COFFER_LOG_WARNING, arg);
  return COFFER_OK;
}

static int32_t
do_flood (struct coffer_call *call, struct hostile *self, const char *arg)
{
  int i, n = atoi (arg);

  (void) self;
  for (i = 0; i < n; i++)
    coffer_log (call, COFFER_LOG_INFO, "flood");
  return say (call, "flood", "done", "");
}

static int32_t
do_print (struct coffer_call *call, struct hostile *self, const char *arg)
{
  int i, n = atoi (arg);

  (void) self;
  for (i = 0; i < n; i++)
    fprintf (stdout, "line %d on stdout\n", i);
  fflush (stdout);
  return say (call, "print", "done", "");
}

static int32_t
do_progress (struct coffer_call *call, struct hostile *self, const char *arg)
{
  (void) self;
  coffer_progress (call, 1, 2, arg);
  return COFFER_OK;
}

static int32_t
do_secret (struct coffer_call *call, struct hostile *self, const char *arg)
{
  char text[1024];

  (void) arg;
  snprintf (text, sizeof text, "the key is %s indeed", self->secret);
  coffer_log (call, COFFER_LOG_WARNING, text);
  fprintf (stderr, "%s\n", text);
  say (call, "secret", "done", text);
  snprintf (text, sizeof text, "{\"key\":\"%s\"}", self->secret);
  return coffer_fail_with (call, COFFER_INTERNAL, COFFER_RETRY_NO,
                           self->secret, text);
}

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

/* ---- the channel ---------------------------------------------------------- */

static int32_t
do_garbage (struct coffer_call *call, struct hostile *self, const char *arg)
{
  (void) self;
  if (send (CHANNEL, arg, strlen (arg), 0) < 0)
    return COFFER_IO;
  wait_call (call, 5000);
  return COFFER_OK;
}

static int32_t
do_oversized (struct coffer_call *call, struct hostile *self,
              const char *arg)
{
  static char bytes[100000];

  (void) self;
  (void) arg;
  memset (bytes, ' ', sizeof bytes);
  memcpy (bytes, "{\"kind\":\"log\"}", 14);
  if (send (CHANNEL, bytes, sizeof bytes, 0) < 0)
    return COFFER_IO;
  wait_call (call, 5000);
  return COFFER_OK;
}

/* ARG descriptors beside one frame. */
static int32_t
do_fd_storm (struct coffer_call *call, struct hostile *self, const char *arg)
{
  static const char text[] = "{\"kind\":\"log\",\"call\":1}";
  struct iovec iov = { (void *) text, sizeof text - 1 };
  char control[CMSG_SPACE (sizeof (int) * 200)];
  int i, n = atoi (arg), fds[200];
  struct msghdr header = { .msg_iov = &iov, .msg_iovlen = 1,
                           .msg_control = control,
                           .msg_controllen = CMSG_SPACE (sizeof (int) * n) };
  struct cmsghdr *cmsg = CMSG_FIRSTHDR (&header);

  (void) self;
  for (i = 0; i < n; i++)
    fds[i] = 0;
  cmsg->cmsg_level = SOL_SOCKET;
  cmsg->cmsg_type = SCM_RIGHTS;
  cmsg->cmsg_len = CMSG_LEN (sizeof (int) * n);
  memcpy (CMSG_DATA (cmsg), fds, sizeof (int) * n);
  if (sendmsg (CHANNEL, &header, 0) < 0)
    return COFFER_IO;
  wait_call (call, 5000);
  return COFFER_OK;
}

static int32_t
do_close_fds (struct coffer_call *call, struct hostile *self,
              const char *arg)
{
  (void) self;
  (void) arg;
  syscall (SYS_close_range, 0, ~0U, 0);
  wait_call (call, 5000);
  for (;;)
    pause ();
  return COFFER_OK;
}

static int32_t
do_close_output (struct coffer_call *call, struct hostile *self,
                 const char *arg)
{
  (void) self;
  (void) arg;
  close (1);
  close (2);
  wait_call (call, 300);
  return say (call, "close_output", "done", "");
}

/* Never reads what is sent to it: there is nobody to. */
static int32_t
do_stop_all (struct coffer_call *call, struct hostile *self, const char *arg)
{
  (void) call;
  (void) self;
  (void) arg;
  kill (0, SIGSTOP);
  for (;;)
    pause ();
  return COFFER_OK;
}

static const struct word words[] = {
  { "ok", do_ok }, { "sleep", do_sleep }, { "wait", do_wait },
  { "hang", do_hang }, { "spin", do_spin }, { "crash", do_crash },
  { "abort", do_abort }, { "exit", do_exit }, { "code", do_code },
  { "fail", do_fail }, { "unknown_record", do_unknown_record },
  { "bad_text", do_bad_text }, { "short_record", do_short_record },
  { "emits", do_emits }, { "large", do_large }, { "log", do_log },
  { "flood", do_flood }, { "print", do_print }, { "progress", do_progress },
  { "secret", do_secret }, { "open", do_open }, { "write", do_write },
  { "truncate", do_truncate }, { "change", do_change },
  { "runtime", do_runtime }, { "socket", do_socket }, { "pair", do_pair },
  { "connect", do_connect },
  { "reconnect", do_reconnect }, { "fork", do_fork },
  { "threads", do_threads }, { "eat", do_eat },
  { "descriptors", do_descriptors }, { "exec", do_exec },
  { "memfd_exec", do_memfd_exec }, { "ptrace", do_ptrace },
  { "kill", do_kill }, { "call", do_call }, { "limits", do_limits },
  { "namespace", do_namespace }, { "environment", do_environment },
  { "files", do_files }, { "file", do_file },
  { "garbage", do_garbage },
  { "oversized", do_oversized }, { "fd_storm", do_fd_storm },
  { "close_fds", do_close_fds }, { "close_output", do_close_output },
  { "stop_all", do_stop_all }, { NULL, NULL }
};

/* ---- operations ----------------------------------------------------------- */

static void
hang_in (const struct hostile *self, const char *what)
{
  while (self->hangs_in && strcmp (self->hangs_in, what) == 0)
    pause ();
}

static int32_t
hostile_open (struct coffer_call *call, const char *const *config,
              const struct coffer_open_opts *opts)
{
  struct hostile *self = calloc (1, sizeof *self);

  if (!self)
    return coffer_fail (call, COFFER_LIMIT, "no memory");
  self->runtime_dir = opts ? opts->runtime_dir : -1;
  self->state_dir = opts ? opts->state_dir : -1;
  self->kept = -1;
  for (; config && *config; config++) {
    if (strncmp (*config, "api_key=", 8) == 0)
      self->secret = strdup (*config + 8);
    if (strncmp (*config, "api_url=", 8) == 0)
      self->url = strdup (*config + 8);
    if (strcmp (*config, "mode=refuse") == 0)
      return coffer_fail (call, COFFER_UNAUTHENTICATED, "the key is wrong");
    if (strcmp (*config, "mode=crash") == 0)
      abort ();
    if (strncmp (*config, "mode=hang_", 10) == 0)
      self->hangs_in = strdup (*config + 10);
  }
  while (opts && opts->files && opts->files[self->n_files])
    self->n_files++;
  if (self->n_files > 0) {
    self->first_file = strdup (opts->files[0]->name);
    if (pread (opts->files[0]->fd, self->first_bytes,
               sizeof self->first_bytes - 1, 0) < 0)
      strcpy (self->first_bytes, "unreadable");
  }
  hang_in (self, "open");
  return coffer_opened (call, self);
}

static int32_t
op_open (struct coffer_call *call, void *self, const char *const *config,
         const struct coffer_open_opts *opts)
{
  (void) self;
  return hostile_open (call, config, opts);
}

static int32_t
op_close (struct coffer_call *call, void *self,
          const struct coffer_close_opts *opts)
{
  struct hostile *hostile = self;

  (void) call;
  (void) opts;
  hang_in (hostile, "close");
  free (hostile->hangs_in);
  free (hostile->secret);
  free (hostile->url);
  free ((char *) hostile->first_file);
  free (hostile);
  return COFFER_OK;
}

/* Narrows what it claims, and tries to widen. */
static int32_t
op_probe (struct coffer_call *call, void *self,
          const struct coffer_probe_opts *opts)
{
  static const char *const narrows[] = { "metrics", "snapshot", "nonsense",
                                         NULL };
  struct coffer_fact fact = { .size = sizeof fact, .name = "probe",
                              .state = "degraded", .value = "as built",
                              .how = "read", .narrows = narrows };

  (void) opts;
  hang_in (self, "probe");
  return coffer_emit_fact (call, &fact);
}

static int32_t
op_sandbox_create (struct coffer_call *call, void *self, const char *sandbox,
                   const struct coffer_sandbox_spec *spec,
                   const struct coffer_sandbox_create_opts *opts)
{
  (void) self;
  (void) sandbox;
  (void) spec;
  (void) opts;
  return coffer_fail (call, COFFER_UNAVAILABLE, "nothing is made here");
}

static int32_t
op_sandbox_info (struct coffer_call *call, void *self, const char *sandbox,
                 const struct coffer_sandbox_info_opts *opts)
{
  const struct word *const tables[] = { words, reach_words, noise_words };
  size_t i, size = strcspn (sandbox, ":");
  const char *arg = sandbox[size] ? sandbox + size + 1 : "";
  const struct word *word;

  (void) opts;
  for (i = 0; i < sizeof tables / sizeof tables[0]; i++)
    for (word = tables[i]; word->word; word++)
      if (strlen (word->word) == size
          && strncmp (word->word, sandbox, size) == 0)
        return word->run (call, self, arg);
  return coffer_fail (call, COFFER_NOT_FOUND, "no such word");
}

static int32_t
op_sandbox_list (struct coffer_call *call, void *self,
                 const struct coffer_sandbox_list_opts *opts)
{
  (void) call;
  (void) self;
  (void) opts;
  return COFFER_OK;
}

static int32_t
op_sandbox_kill (struct coffer_call *call, void *self, const char *sandbox,
                 const struct coffer_sandbox_kill_opts *opts)
{
  (void) call;
  (void) self;
  (void) sandbox;
  (void) opts;
  return COFFER_NOT_FOUND;
}

static int32_t
op_exec_start (struct coffer_call *call, void *self, const char *sandbox,
               const char *const *argv, const char *const *env,
               const char *cwd, int32_t in, int32_t out, int32_t err,
               const struct coffer_exec_start_opts *opts)
{
  struct coffer_exec_info info = { .size = sizeof info, .exec = "ex-1",
                                   .state = "running", .argv = argv };
  struct hostile *hostile = self;
  size_t i;

  (void) sandbox;
  (void) env;
  (void) cwd;
  (void) in;
  (void) err;
  (void) opts;
  for (i = 0; argv[i] && out >= 0; i++)
    if (write (out, argv[i], strlen (argv[i])) < 0
        || write (out, "\n", 1) < 0)
      return coffer_fail (call, COFFER_IO, "write");
  if (strcmp (argv[0], "keep") == 0)
    hostile->kept = dup (out);
  return coffer_emit_exec_info (call, &info);
}

/* Waits, which holds no lock of a serial module. */
static int32_t
op_exec_wait (struct coffer_call *call, void *self, const char *sandbox,
              const char *exec, const struct coffer_exec_wait_opts *opts)
{
  struct coffer_exec_exit ended = { .size = sizeof ended, .exec = exec };

  (void) self;
  (void) sandbox;
  (void) opts;
  wait_call (call, atoi (exec));
  return coffer_emit_exec_exit (call, &ended);
}

static int32_t
op_exec_list (struct coffer_call *call, void *self, const char *sandbox,
              const struct coffer_exec_list_opts *opts)
{
  (void) call;
  (void) self;
  (void) sandbox;
  (void) opts;
  return COFFER_OK;
}

static int32_t
op_metrics (struct coffer_call *call, void *self, const char *sandbox,
            const struct coffer_metrics_opts *opts)
{
  struct coffer_metric metric = { .size = sizeof metric, .name = "calls",
                                  .value = 0.5 };

  (void) self;
  (void) sandbox;
  (void) opts;
  return coffer_emit_metric (call, &metric);
}

/* A pipe's end with a line in it. */
static int32_t
op_port_dial (struct coffer_call *call, void *self, const char *sandbox,
              uint32_t port, const struct coffer_port_dial_opts *opts)
{
  struct coffer_stream stream = { .size = sizeof stream };
  int ends[2];
  int32_t code;

  (void) self;
  (void) sandbox;
  (void) port;
  (void) opts;
  if (pipe (ends) < 0)
    return COFFER_LIMIT;
  stream.fd = ends[0];
  code = write (ends[1], "dialled\n", 8) == 8
         ? coffer_emit_stream (call, &stream) : COFFER_IO;
  close (ends[0]);
  close (ends[1]);
  return code;
}

static int32_t
op_port_resolve (struct coffer_call *call, void *self, const char *sandbox,
                 uint32_t port, const struct coffer_port_resolve_opts *opts)
{
  (void) call;
  (void) self;
  (void) sandbox;
  (void) port;
  (void) opts;
  return COFFER_NOT_FOUND;
}

static const struct coffer_operations operations = {
  .size = sizeof operations, .open = op_open, .close = op_close,
  .probe = op_probe, .sandbox_create = op_sandbox_create,
  .sandbox_info = op_sandbox_info, .sandbox_list = op_sandbox_list,
  .sandbox_kill = op_sandbox_kill, .exec_start = op_exec_start,
  .exec_wait = op_exec_wait, .exec_list = op_exec_list,
  .metrics = op_metrics, .port_dial = op_port_dial,
  .port_resolve = op_port_resolve
};

#define HOSTILE_PROVIDER(name, threads, vtable)                               \
  COFFER_PROVIDER (name, threads, 0, vtable)
HOSTILE_PROVIDER (HOSTILE_NAME, HOSTILE_THREADS, operations)
