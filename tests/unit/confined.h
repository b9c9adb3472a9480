/* SPDX-License-Identifier: Apache-2.0 */
/* What a program that somebody has taken over may try, whichever it is: each is
 * 1 when it worked. */

#ifndef UNIT_CONFINED_H
#define UNIT_CONFINED_H

#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

struct attempt {
  const char *what;
  int (*attempt) (void);
  int may;                      /* 1: it must work; 2: see the table */
};

/* In a process of its own, confined first unless that is NULL.  0: it did not
 * work, 1: it did; 2 and more: not to be told. */
static inline int
attempt_status (const struct attempt *attempt, int (*confine_self) (void))
{
  int status;
  pid_t pid = fork ();

  assert_true (pid >= 0);
  if (pid == 0) {
    alarm (20);
    umask (0);
    if (confine_self && confine_self () != 0)
      _exit (99);
    _exit (attempt->attempt ());
  }
  assert_int_equal (waitpid (pid, &status, 0), pid);
  return WIFEXITED (status) ? WEXITSTATUS (status) : 200;
}

/* One of a table, which ends with one that has no name. */
static inline const struct attempt *
attempt_find (const struct attempt *attempt, const char *what)
{
  for (; attempt->what; attempt++)
    if (strcmp (attempt->what, what) == 0)
      return attempt;
  fail_msg ("no attempt is called %s", what);
  return NULL;
}

static inline int
opens (const char *path, int flags)
{
  int fd = open (path, flags | O_CLOEXEC, 0600);

  if (fd < 0)
    return 0;
  close (fd);
  return 1;
}

static inline int
has_socket (int domain, int type, int protocol)
{
  int fd = socket (domain, type, protocol);

  if (fd < 0)
    return 0;
  close (fd);
  return 1;
}

static inline int
unix_socket (void)
{
  return has_socket (AF_UNIX, SOCK_STREAM, 0);
}

static inline int
netlink (void)
{
  return has_socket (AF_NETLINK, SOCK_RAW, 0);
}

static inline int
packet (void)
{
  return has_socket (AF_PACKET, SOCK_RAW, 0);
}

static inline int
vsock (void)
{
  return has_socket (40, SOCK_STREAM, 0);
}

static inline int
pair (void)
{
  int ends[2];

  return socketpair (AF_UNIX, SOCK_STREAM, 0, ends) == 0;
}

static inline int
execute (void)
{
  char *const argv[] = { (char *) "sh", NULL };

  execve ("/bin/sh", argv, NULL);
  return 0;                     /* else the status is not ours */
}

static inline int
code (int protection, int change)
{
  void *memory = mmap (NULL, 4096, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                       0);

  if (memory == MAP_FAILED)
    return 0;
  return change < 0 || mprotect (memory, 4096, change) == 0;
}

static inline int
code_new (void)
{
  return code (PROT_READ | PROT_EXEC, -1);
}

static inline int
code_made (void)
{
  return code (PROT_READ | PROT_WRITE, PROT_READ | PROT_EXEC);
}

static inline int
signal_parent (void)
{
  return kill (getppid (), 0) == 0;
}

static inline int
trace_parent (void)
{
  return ptrace (PTRACE_ATTACH, getppid (), 0, 0) == 0;
}

static inline int
read_parent (void)
{
  static char there;
  char byte;
  struct iovec to = { &byte, 1 }, from = { &there, 1 };

  return syscall (SYS_process_vm_readv, getppid (), &to, 1, &from, 1, 0) == 1;
}

static inline int
limit_parent (void)
{
  struct rlimit limit = { 0, 0 };

  return prlimit (getppid (), RLIMIT_CORE, &limit, NULL) == 0;
}

static inline int
namespaces (void)
{
  return unshare (CLONE_NEWUSER) == 0;
}

static inline int
mounts (void)
{
  return mount ("none", "/mnt", "tmpfs", 0, NULL) == 0;
}

static inline int
memory_file (void)
{
  return syscall (SYS_memfd_create, "x", 0) >= 0;
}

static inline int
thread (void)
{
  return syscall (SYS_clone, CLONE_THREAD | CLONE_VM | CLONE_SIGHAND, 0, 0, 0,
                  0) == 0;
}

static inline int
parent_of_parent (void)
{
  return syscall (SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0) >= 0;
}

static inline int
terminal (void)
{
  return ioctl (0, TIOCSTI, "x") == 0;
}

static inline int
dump (void)
{
  return prctl (PR_SET_DUMPABLE, 1, 0, 0, 0) == 0;
}

static inline int
ring (void)
{
  return syscall (SYS_io_uring_setup, 1, NULL) >= 0 || errno == EFAULT;
}

static inline int
child (void)
{
  pid_t pid = fork ();

  if (pid == 0)
    _exit (0);
  return pid > 0;
}

#endif /* UNIT_CONFINED_H */
