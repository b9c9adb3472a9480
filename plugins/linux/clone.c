/* SPDX-License-Identifier: Apache-2.0 */
/* A child that runs in this process's memory while the calling thread waits. */

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "clone.h"

#define STACK_SIZE 65536

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
