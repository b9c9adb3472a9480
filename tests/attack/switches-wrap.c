/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of the C library that fail instead of being made: the linker sends
 * those of the module through here (--wrap).  What only closes, frees or ends
 * is not among them.
 *
 * A test says which by an address in COFFER_TEST_FAULT_AT: where its struct
 * fault lies, in the same process. */

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "faults.h"

static struct fault *fault;

void
faults_read (void)
{
  const char *at = getenv ("COFFER_TEST_FAULT_AT");

  fault = at ? (struct fault *) (uintptr_t) strtoull (at, NULL, 0) : NULL;
}

static int
fails (const char *name)
{
  if (fault == NULL || fault->at == 0 || ++fault->calls != fault->at)
    return 0;
  fault->name = name;
  /* Memory that there is not is only ever that. */
  if (strstr (name, "alloc") != NULL || strcmp (name, "strdup") == 0)
    fault->error = ENOMEM;
  errno = fault->error;
  return 1;
}

#define WRAP(type, name, failed, params, args)                                \
  type __real_##name params;                                                  \
  type __wrap_##name params;                                                  \
  type __wrap_##name params                                                   \
  {                                                                           \
    return fails (#name) ? (failed) : __real_##name args;                     \
  }

WRAP (int, access, -1, (const char *p, int m), (p, m))
WRAP (int, bind, -1, (int s, const struct sockaddr *a, socklen_t n), (s, a, n))
WRAP (void *, calloc, NULL, (size_t n, size_t s), (n, s))
WRAP (int, chmod, -1, (const char *p, mode_t m), (p, m))
WRAP (int, connect, -1, (int s, const struct sockaddr *a, socklen_t n),
      (s, a, n))
WRAP (int, fchmod, -1, (int f, mode_t m), (f, m))
WRAP (int, fchown, -1, (int f, uid_t u, gid_t g), (f, u, g))
WRAP (DIR *, fdopendir, NULL, (int f), (f))
WRAP (int, flock, -1, (int f, int o), (f, o))
WRAP (FILE *, fopen, NULL, (const char *p, const char *m), (p, m))
WRAP (int, fstat, -1, (int f, struct stat *s), (f, s))
WRAP (int, fstatat, -1, (int d, const char *p, struct stat *s, int f),
      (d, p, s, f))
WRAP (int, fsync, -1, (int f), (f))
WRAP (int, linkat, -1,
      (int a, const char *p, int b, const char *q, int f), (a, p, b, q, f))
WRAP (int, listen, -1, (int s, int n), (s, n))
WRAP (void *, malloc, NULL, (size_t n), (n))
WRAP (int, mkdir, -1, (const char *p, mode_t m), (p, m))
WRAP (int, mkdirat, -1, (int d, const char *p, mode_t m), (d, p, m))
WRAP (int, poll, -1, (struct pollfd *p, nfds_t n, int t), (p, n, t))
WRAP (int, ppoll, -1,
      (struct pollfd *p, nfds_t n, const struct timespec *t,
       const sigset_t *s),
      (p, n, t, s))
WRAP (ssize_t, pread, -1, (int f, void *b, size_t n, off_t o), (f, b, n, o))
WRAP (ssize_t, pwrite, -1, (int f, const void *b, size_t n, off_t o),
      (f, b, n, o))
WRAP (ssize_t, read, -1, (int f, void *b, size_t n), (f, b, n))
WRAP (ssize_t, readlink, -1, (const char *p, char *b, size_t n), (p, b, n))
WRAP (ssize_t, readlinkat, -1, (int d, const char *p, char *b, size_t n),
      (d, p, b, n))
WRAP (void *, realloc, NULL, (void *p, size_t n), (p, n))
WRAP (ssize_t, recvmsg, -1, (int s, struct msghdr *m, int f), (s, m, f))
WRAP (int, renameat, -1, (int a, const char *p, int b, const char *q),
      (a, p, b, q))
WRAP (ssize_t, sendmsg, -1, (int s, const struct msghdr *m, int f), (s, m, f))
WRAP (int, socket, -1, (int d, int t, int p), (d, t, p))
WRAP (int, socketpair, -1, (int d, int t, int p, int s[2]), (d, t, p, s))
WRAP (char *, strdup, NULL, (const char *s), (s))
WRAP (int, symlinkat, -1, (const char *t, int d, const char *p), (t, d, p))
WRAP (ssize_t, write, -1, (int f, const void *b, size_t n), (f, b, n))

/* Those with arguments that may be there. */
int __real_open (const char *path, int flags, ...);
int __wrap_open (const char *path, int flags, ...);
int
__wrap_open (const char *path, int flags, ...)
{
  va_list ap;
  mode_t mode;

  va_start (ap, flags);
  mode = (mode_t) va_arg (ap, unsigned);
  va_end (ap);
  return fails ("open") ? -1 : __real_open (path, flags, mode);
}

int __real_openat (int dir, const char *path, int flags, ...);
int __wrap_openat (int dir, const char *path, int flags, ...);
int
__wrap_openat (int dir, const char *path, int flags, ...)
{
  va_list ap;
  mode_t mode;

  va_start (ap, flags);
  mode = (mode_t) va_arg (ap, unsigned);
  va_end (ap);
  return fails ("openat") ? -1 : __real_openat (dir, path, flags, mode);
}

int __real_fcntl (int fd, int command, ...);
int __wrap_fcntl (int fd, int command, ...);
int
__wrap_fcntl (int fd, int command, ...)
{
  va_list ap;
  long argument;

  va_start (ap, command);
  argument = va_arg (ap, long);
  va_end (ap);
  return fails ("fcntl") ? -1 : __real_fcntl (fd, command, argument);
}

/* Names for the calls that have none in the library. */
static const char *
call_name (long number)
{
  static char names[8][32];
  static unsigned next;
  char *name = names[next++ % 8];

  snprintf (name, sizeof names[0], "syscall %ld", number);
  return name;
}

long __real_syscall (long number, ...);
/* As the library's own does, it takes a sixth argument also where there is none,
 * from what its caller has on its stack. */
long __wrap_syscall (long number, ...) __attribute__ ((no_sanitize ("address")));
long
__wrap_syscall (long number, ...)
{
  long a[6];
  va_list ap;
  int i;

  va_start (ap, number);
  for (i = 0; i < 6; i++)
    a[i] = va_arg (ap, long);
  va_end (ap);
  if (number != SYS_exit_group && number != SYS_close && fails ("syscall")) {
    fault->name = call_name (number);
    return -1;
  }
  return __real_syscall (number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

int __real_clone (int (*f) (void *), void *stack, int flags, void *data, ...);
int __wrap_clone (int (*f) (void *), void *stack, int flags, void *data, ...);
int
__wrap_clone (int (*f) (void *), void *stack, int flags, void *data, ...)
{
  pid_t *pidfd;
  va_list ap;

  va_start (ap, data);
  pidfd = va_arg (ap, pid_t *);
  va_end (ap);
  return fails ("clone") ? -1
                         : __real_clone (f, stack, flags, data, pidfd, NULL,
                                         NULL);
}
