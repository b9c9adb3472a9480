/* SPDX-License-Identifier: Apache-2.0 */
/* The first process of the next sandbox, made ahead.
 *
 * Most of what the kernel takes for a sandbox is its network namespace.  An
 * instance that has made two sandboxes will make more: while one is at work a
 * thread makes the init of the next, in its namespaces, with no
 * ids yet and no plan, waiting for both.  It has seen nothing of any sandbox,
 * and ends as every init does when its connection does.
 *
 * What it copied must still hold when it is taken: the mounts of this process,
 * its control groups, its rights.  Where anything changed it is ended, and the
 * sandbox gets an init made now. */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kernel.h"
#include "spawn.h"

/* Sandboxes that an instance makes before it makes an init ahead. */
#define CREATIONS_BEFORE 2
#define THREAD_STACK 131072

#define NO_SPARE \
  (struct spare) { .init = { .pidfd = -1, .control = -1 }, .mounts = -1 }

void
spare_init (struct linux_provider *self, const char *const *config)
{
  pthread_condattr_t attr;

  self->spare = NO_SPARE;
  pthread_condattr_init (&attr);
  pthread_condattr_setclock (&attr, CLOCK_MONOTONIC);
  pthread_cond_init (&self->spare.wake, NULL);
  pthread_cond_init (&self->spare.made, &attr);
  pthread_condattr_destroy (&attr);
  for (; config != NULL && *config != NULL; config++)
    if (strcmp (*config, "spare=true") == 0)
      self->spare.wanted = 1;
}

static ssize_t
cgroups_read (char *out, size_t size)
{
  coffer_autoclose int fd = open ("/proc/self/cgroup", O_RDONLY | O_CLOEXEC);

  return fd < 0 ? -1 : coffer_read_all (fd, out, size);
}

static void
spare_end (struct spare *spare)
{
  siginfo_t info;

  coffer_fd_close (&spare->init.control);
  coffer_fd_close (&spare->mounts);
  /* Of a process that was forked from its maker it is no child: there the
   * copies of the descriptors are closed, and nothing else. */
  if (spare->init.pid > 0 && spare->maker == getpid ()) {
    syscall (SYS_pidfd_send_signal, spare->init.pidfd, SIGKILL, NULL, 0);
    waitid ((idtype_t) P_PIDFD, (id_t) spare->init.pidfd, &info, WEXITED | __WALL);
  }
  coffer_fd_close (&spare->init.pidfd);
  spare->init.pid = 0;
}

/* Whether it is as if it were made now. */
static int
spare_holds (const struct spare *spare, int privileged)
{
  struct pollfd fds[2] = { { .fd = spare->init.pidfd, .events = POLLIN },
                           { .fd = spare->mounts, .events = POLLPRI } };
  char now[sizeof spare->cgroups];
  ssize_t size;

  if (spare->maker != getpid () || spare->privileged != privileged
      || poll (fds, 2, 0) != 0)
    return 0;
  size = cgroups_read (now, sizeof now);
  return size >= 0 && size < (ssize_t) sizeof now
         && size == spare->cgroups_size
         && memcmp (now, spare->cgroups, (size_t) size) == 0;
}

/* One that is being made is there sooner than another; for one who waits, since
 * it is but one.  With the lock held. */
static void
spare_await (struct linux_provider *self, int64_t deadline_ns)
{
  struct spare *spare = &self->spare;
  const struct timespec until = { deadline_ns / 1000000000,
                                  deadline_ns % 1000000000 };
  int r = 0;

  if (!spare->busy || spare->awaited || spare->maker != getpid ())
    return;
  spare->awaited = 1;
  while (spare->busy && r == 0)
    r = pthread_cond_timedwait (&spare->made, &self->lock, &until);
  spare->awaited = 0;
}

int
spare_take (struct linux_provider *self, const struct init_wanted *wanted,
            int64_t deadline_ns, struct init_process *out)
{
  struct spare spare = NO_SPARE;

  /* One that is to be begun in a control group was not. */
  if (wanted->host_network || (wanted->group && wanted->group->into >= 0))
    return 0;
  pthread_mutex_lock (&self->lock);
  spare_await (self, deadline_ns);
  if (!self->spare.busy && self->spare.init.pid > 0) {
    spare = self->spare;
    self->spare.init = NO_SPARE.init;
    self->spare.mounts = -1;
  }
  pthread_mutex_unlock (&self->lock);
  if (spare.init.pid <= 0)
    return 0;
  if (!spare_holds (&spare, wanted->privileged)) {
    spare_end (&spare);
    return 0;
  }
  coffer_fd_close (&spare.mounts);
  *out = spare.init;
  return 1;
}

/* Nobody else touches the spare while it is busy. */
static void
spare_make (struct linux_provider *self)
{
  struct spare *spare = &self->spare;
  const struct init_wanted wanted = { .privileged = spare->privileged };
  const char *step;

  spare->mounts = open ("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
  spare->cgroups_size = cgroups_read (spare->cgroups, sizeof spare->cgroups);
  if (spare->mounts < 0
      || init_start (self, &wanted, &spare->init, &step) == -1)
    spare_end (spare);
}

static void *
spare_thread (void *data)
{
  struct linux_provider *self = data;
  struct spare *spare = &self->spare;

  pthread_mutex_lock (&self->lock);
  for (;;) {
    while (!spare->busy && !spare->ending)
      pthread_cond_wait (&spare->wake, &self->lock);
    if (spare->ending)
      break;
    pthread_mutex_unlock (&self->lock);
    spare_make (self);
    pthread_mutex_lock (&self->lock);
    spare->busy = 0;
    pthread_cond_signal (&spare->made);
  }
  pthread_mutex_unlock (&self->lock);
  return NULL;
}

static int
thread_start (struct linux_provider *self)
{
  sigset_t all, old;
  pthread_attr_t attr;
  int code;

  if (pthread_attr_init (&attr) != 0)
    return -1;
  pthread_attr_setstacksize (&attr, THREAD_STACK);
  /* Signals of this process are for the host's own threads. */
  sigfillset (&all);
  pthread_sigmask (SIG_SETMASK, &all, &old);
  code = pthread_create (&self->spare.thread, &attr, spare_thread, self);
  pthread_sigmask (SIG_SETMASK, &old, NULL);
  pthread_attr_destroy (&attr);
  if (code == 0)
    self->spare.maker = getpid ();
  return code == 0 ? 0 : -1;
}

/* With the lock held. */
static int
spare_due (const struct spare *spare)
{
  return spare->wanted && spare->creations == CREATIONS_BEFORE && !spare->busy
         && spare->init.pid == 0
         && (spare->maker == 0 || spare->maker == getpid ());
}

void
spare_refill (struct linux_provider *self, int privileged)
{
  struct spare *spare = &self->spare;

  pthread_mutex_lock (&self->lock);
  if (spare->creations < CREATIONS_BEFORE)
    spare->creations++;
  if (spare_due (spare) && (spare->maker != 0 || thread_start (self) == 0)) {
    spare->privileged = privileged;
    spare->busy = 1;
    pthread_cond_signal (&spare->wake);
  }
  pthread_mutex_unlock (&self->lock);
}

void
spare_fini (struct linux_provider *self)
{
  struct spare *spare = &self->spare;

  if (spare->maker == getpid ()) {
    pthread_mutex_lock (&self->lock);
    spare->ending = 1;
    pthread_cond_signal (&spare->wake);
    pthread_mutex_unlock (&self->lock);
    pthread_join (spare->thread, NULL);
  }
  spare_end (spare);
  /* A copy of one that somebody waits for would wait for that one. */
  if (spare->maker == 0 || spare->maker == getpid ()) {
    pthread_cond_destroy (&spare->wake);
    pthread_cond_destroy (&spare->made);
  }
}
