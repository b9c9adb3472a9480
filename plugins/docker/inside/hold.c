/* SPDX-License-Identifier: Apache-2.0 */
/* The first process of a container: it reaps whatever loses its parent, and
 * ends, and all with it, when the sandbox's time is over or its lifeline reads
 * end of file.
 *
 * Signals of the first process's own namespace reach it only where it waits for
 * them, and only from its own user, which no command has.  SIGUSR1 carries a new
 * end as milliseconds of CLOCK_BOOTTIME, which containers share.
 *
 * Before anything else it is told what the sandbox has, looks at what it is
 * shown and confined by, and answers (told.c). */

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "inside.h"

#define MS_MAX INT64_C (0x7fffffffffff)

/* 0 is never.  -1: it is no number. */
static int64_t
read_ms (const char *text)
{
  char *end;
  long long ms;

  errno = 0;
  ms = strtoll (text, &end, 10);
  return errno == 0 && *text && !*end && ms >= 0 && ms <= MS_MAX ? ms : -1;
}

static int64_t
now_ms (void)
{
  struct timespec now;

  clock_gettime (CLOCK_BOOTTIME, &now);
  return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* An absolute one, so that time in which nothing ran counts as well. */
static int
set_end (int timer, int64_t end_ms)
{
  const struct itimerspec at = {
    .it_value = {.tv_sec = end_ms / 1000,
                 .tv_nsec = end_ms % 1000 * 1000000 + 1},
  };

  return timerfd_settime (timer, TFD_TIMER_ABSTIME, &at, NULL);
}

/* 1: the entrypoint is among what has ended. */
static int
reap (pid_t entrypoint)
{
  int has_ended = 0;
  pid_t pid;

  while ((pid = waitpid (-1, NULL, WNOHANG)) > 0)
    has_ended |= pid == entrypoint;
  return has_ended;
}

/* 1: it is to end.  Read from the signalfd, under gVisor it would have no value. */
static int
take_signal (const sigset_t *set, int timer)
{
  const struct timespec now = {0, 0};
  siginfo_t info;

  while (sigtimedwait (set, &info, &now) > 0) {
    if (info.si_signo == SIGUSR1 && info.si_code == SI_QUEUE
        && info.si_value.sival_ptr)
      set_end (timer, (int64_t) info.si_value.sival_ptr);
    else if (info.si_signo == SIGTERM)
      return 1;
  }
  return 0;
}

static void
block (sigset_t *set)
{
  sigemptyset (set);
  sigaddset (set, SIGCHLD);
  sigaddset (set, SIGTERM);
  sigaddset (set, SIGUSR1);
  sigprocmask (SIG_BLOCK, set, NULL);
}

/* hold MILLISECONDS told|lifeline [ENTRYPOINT…]: standard input tells what the
 * sandbox has, and is then its lifeline, or nothing.  The entrypoint's end is
 * that of the sandbox. */
int
inside_hold (int argc, char **argv)
{
  struct pollfd waits[3] = {{-1, POLLIN, 0}, {-1, POLLIN, 0}, {-1, POLLIN, 0}};
  int64_t ms = argc > 2 ? read_ms (argv[1]) : -1;
  pid_t entrypoint;
  char byte;
  sigset_t set;

  if (ms < 0)
    return INSIDE_USAGE;
  block (&set);
  waits[0].fd = signalfd (-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  waits[1].fd = timerfd_create (CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
  if (waits[0].fd < 0 || waits[1].fd < 0
      || (ms > 0 && set_end (waits[1].fd, now_ms () + ms) < 0)
      || inside_told (argv + 3, &entrypoint) < 0)
    return INSIDE_FAILED;
  waits[2].fd = strcmp (argv[2], "lifeline") == 0 ? 0 : -1;
  for (;;) {
    if (reap (entrypoint))
      return INSIDE_OK;
    if (poll (waits, 3, -1) < 0 && errno != EINTR)
      return INSIDE_FAILED;
    if (waits[0].revents && take_signal (&set, waits[1].fd))
      return INSIDE_OK;
    if (waits[1].revents)
      return INSIDE_OK;
    if (waits[2].revents && read (0, &byte, 1) <= 0)
      return INSIDE_OK;
  }
}

/* extend MILLISECONDS, from now. */
int
inside_extend (int argc, char **argv)
{
  int64_t ms = argc > 1 ? read_ms (argv[1]) : -1;

  if (ms <= 0)
    return INSIDE_USAGE;
  return sigqueue (1, SIGUSR1,
                   (union sigval) {.sival_ptr = (void *) (now_ms () + ms)})
         == 0 ? INSIDE_OK : INSIDE_FAILED;
}
