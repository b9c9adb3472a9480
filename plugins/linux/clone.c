/* SPDX-License-Identifier: Apache-2.0 */
/* A child that runs in this process's memory while the calling thread waits. */

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clone.h"

#define STACK_SIZE 65536
#define IO_SELF 1               /* IOPRIO_WHO_PROCESS */
#define IO_CLASS(priority) ((priority) >> 13)
#define IO_REALTIME 1

pid_t
clone_waited (int (*function) (void *), void *data, int flags, int *pidfd)
{
  char *stack = malloc (STACK_SIZE);
  sigset_t all, old;
  pid_t pid;
  int saved;

  if (stack == NULL)
    return -1;
  /* No handler of this process's runs in the child. */
  sigfillset (&all);
  pthread_sigmask (SIG_SETMASK, &all, &old);
  pid = clone (function, stack + STACK_SIZE, CLONE_VM | CLONE_VFORK | flags,
               data, pidfd, NULL, NULL);
  saved = errno;
  pthread_sigmask (SIG_SETMASK, &old, NULL);
  free (stack);
  errno = saved;
  return pid;
}

/* ---- no precedence ------------------------------------------------------ */

/* Fifo, round robin and deadline go before all others' work. */
static int
turn_usual (void)
{
  struct sched_param none = { 0 };
  long policy = syscall (SYS_sched_getscheduler, 0);

  if (policy < 0)
    return -1;
  if (policy == SCHED_OTHER || policy == SCHED_BATCH || policy == SCHED_IDLE)
    return 0;
  return (int) syscall (SYS_sched_setscheduler, 0, SCHED_OTHER, &none);
}

static int
nice_usual (void)
{
  /* The call's own answer is 20 less the value. */
  long answer = syscall (SYS_getpriority, PRIO_PROCESS, 0);

  if (answer <= 20)
    return answer < 0 ? -1 : 0;
  return (int) syscall (SYS_setpriority, PRIO_PROCESS, 0, 0);
}

static int
disk_usual (void)
{
  long priority = syscall (SYS_ioprio_get, IO_SELF, 0);

  if (priority < 0 || IO_CLASS (priority) != IO_REALTIME)
    return priority < 0 && errno != ENOSYS ? -1 : 0;
  return (int) syscall (SYS_ioprio_set, IO_SELF, 0, 0);
}

/* What the kernel spares when memory is short it would spare there too, and end
 * somebody else in its place. */
static int
end_usual (void)
{
  static const char path[] = "/proc/self/oom_score_adj";
  char first = '0';
  int fd = (int) syscall (SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
  long n = fd < 0 ? -1 : syscall (SYS_read, fd, &first, 1);

  if (fd >= 0)
    syscall (SYS_close, fd);
  if (n != 1 || first != '-')
    return n == 1 ? 0 : -1;
  fd = (int) syscall (SYS_openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC);
  n = fd < 0 ? -1 : syscall (SYS_write, fd, "0", 1);
  if (fd >= 0)
    syscall (SYS_close, fd);
  return n == 1 ? 0 : -1;
}

int
precedence_drop (void)
{
  return nice_usual () == -1 || turn_usual () == -1 || disk_usual () == -1
           ? -1 : end_usual ();
}
