/* SPDX-License-Identifier: Apache-2.0 */
/* A child that runs in this process's memory while the calling thread waits. */

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clone.h"

#ifdef __SANITIZE_THREAD__
/* The sanitizer takes who comes out of clone() for another process, and orders
 * nothing any more by the locks of a thread whose memory that one shares. */
extern int __clone (int (*function) (void *), void *stack, int flags,
                    void *data, ...);
#define clone __clone
#endif

#define STACK_SIZE 65536
#define CHILD_FDS_MAX 8
#define CHILD_ASIDE 16
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

enum { AT_NICE = 1, AT_TURN = 2, AT_DISK = 4, AT_END = 8 };

static const char end_path[] = "/proc/self/oom_score_adj";

/* Fifo, round robin and deadline go before all others' work. */
static int
turn_found (void)
{
  /* Not every C library has a function for it that asks. */
  const int policy = (int) syscall (SYS_sched_getscheduler, 0);

  if (policy < 0)
    return -1;
  return policy == SCHED_OTHER || policy == SCHED_BATCH || policy == SCHED_IDLE
           ? 0 : AT_TURN;
}

static int
nice_found (void)
{
  /* The call's own answer is 20 less the value. */
  long answer = syscall (SYS_getpriority, PRIO_PROCESS, 0);

  return answer < 0 ? -1 : answer > 20 ? AT_NICE : 0;
}

static int
disk_found (void)
{
  long priority = syscall (SYS_ioprio_get, IO_SELF, 0);

  if (priority < 0)
    return errno == ENOSYS ? 0 : -1;
  return IO_CLASS (priority) == IO_REALTIME ? AT_DISK : 0;
}

/* What the kernel spares when memory is short it would spare there too, and end
 * somebody else in its place. */
static int
end_found (void)
{
  char first = '0';
  int fd = open (end_path, O_RDONLY | O_CLOEXEC);
  ssize_t n = fd < 0 ? -1 : read (fd, &first, 1);

  if (fd >= 0)
    close (fd);
  return n != 1 ? -1 : first == '-' ? AT_END : 0;
}

int
precedence_found (void)
{
  const int all[] = { nice_found (), turn_found (), disk_found (),
                      end_found () };
  int found = 0;
  size_t i;

  for (i = 0; i < sizeof all / sizeof all[0]; i++) {
    if (all[i] == -1)
      return -1;
    found |= all[i];
  }
  return found;
}

static int
end_usual (void)
{
  int fd = (int) syscall (SYS_openat, AT_FDCWD, end_path,
                          O_WRONLY | O_CLOEXEC);
  long n = fd < 0 ? -1 : syscall (SYS_write, fd, "0", 1);

  if (fd >= 0)
    syscall (SYS_close, fd);
  return n == 1 ? 0 : -1;
}

int
precedence_drop (int found)
{
  struct sched_param none = { 0 };

  if (((found & AT_NICE)
       && syscall (SYS_setpriority, PRIO_PROCESS, 0, 0) == -1)
      || ((found & AT_TURN)
          && syscall (SYS_sched_setscheduler, 0, SCHED_OTHER, &none) == -1)
      || ((found & AT_DISK)
          && syscall (SYS_ioprio_set, IO_SELF, 0, 0) == -1))
    return -1;
  return found & AT_END ? end_usual () : 0;
}

/* ---- programs ----------------------------------------------------------- */

static int
aide_failed (struct aide *aide, const char *step)
{
  aide->error = errno;
  aide->step = step;
  return 127;
}

/* Out of the way of the numbers that they are going to have, then to these. */
static int
aide_descriptors (const struct aide *aide, int *program)
{
  int from[CHILD_FDS_MAX], i;

  for (i = 0; i < aide->n_fds; i++) {
    from[i] = (int) syscall (SYS_fcntl, aide->fds[i], F_DUPFD_CLOEXEC,
                             CHILD_ASIDE);
    if (from[i] < 0)
      return -1;
  }
  *program = (int) syscall (SYS_fcntl, aide->program, F_DUPFD_CLOEXEC,
                            CHILD_ASIDE);
  for (i = 0; i < aide->n_fds; i++)
    if (*program < 0 || syscall (SYS_dup3, from[i], i, 0) == -1)
      return -1;
  return (int) syscall (SYS_close_range, aide->n_fds, ~0u,
                        CLOSE_RANGE_CLOEXEC);
}

/* In this process's memory while the calling thread waits: system calls
 * only. */
static int
aide_main (void *data)
{
  static const char *const envp[] = { NULL };
  struct aide *aide = data;
  int program;

  if (precedence_drop (aide->precedence) == -1)
    return aide_failed (aide, "precedence");
  if (aide_descriptors (aide, &program) == -1)
    return aide_failed (aide, "descriptors");
  if (aide->privileged
      && (syscall (SYS_setgroups, 0, NULL) == -1
          || syscall (SYS_setresgid, aide->gid, aide->gid, aide->gid) == -1
          || syscall (SYS_setresuid, aide->uid, aide->uid, aide->uid)
               == -1))
    return aide_failed (aide, "user and group ids");
  syscall (SYS_execveat, program, "", aide->argv, envp, AT_EMPTY_PATH);
  return aide_failed (aide, aide->argv[0]);
}

pid_t
aide_start (struct aide *aide, int *pidfd)
{
  siginfo_t info;
  pid_t pid;

  aide->step = "precedence";
  aide->precedence = precedence_found ();
  if (aide->precedence == -1)
    return -1;
  aide->step = "a process";
  /* Its end is nobody's signal. */
  pid = clone_waited (aide_main, aide, CLONE_PIDFD, pidfd);
  if (pid < 0 || aide->error == 0)
    return pid;
  waitid ((idtype_t) P_PIDFD, (id_t) *pidfd, &info, WEXITED | __WALL);
  close (*pidfd);
  *pidfd = -1;
  errno = aide->error;
  return -1;
}
