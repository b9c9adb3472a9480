/* SPDX-License-Identifier: Apache-2.0 */
/* The first process of the next sandbox, made ahead.
 *
 * Most of what the kernel takes for a sandbox are its network namespace and
 * its mounts.  An instance that has made two sandboxes will make more: while
 * one is at work a thread makes the init of the next, in its namespaces, with
 * ids of its own, and has it prepare what a sandbox of the last one's shape
 * has before it has a plan.  It has seen nothing of any sandbox, and ends as
 * every init does when its connection does.
 *
 * It is begun as soon as the one before it has all that it needs of this
 * process, which then has nothing to do until that is ready: the two are made
 * beside each other.  With a single processor that would be the later for it,
 * and the next is begun when the sandbox is there.
 *
 * What it copied must still hold when it is taken: the mounts of this process,
 * the names in its root, its control groups, its rights.  Where anything
 * changed it is ended, and the sandbox gets an init made now. */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kernel.h"
#include "spawn.h"

/* Sandboxes that an instance makes before it makes an init ahead. */
#define CREATIONS_BEFORE 2
#define THREAD_STACK 131072

/* Its part is done without waiting for anybody. */
#define PREPARE_NS INT64_C (1000000000)

#define NO_SPARE \
  (struct spare) { .init = { .pidfd = -1, .control = -1, .proc = -1 }, \
                   .mounts = -1 }

int
spare_wanted (const char *const *config)
{
  for (; config != NULL && *config != NULL; config++)
    if (strcmp (*config, "spare=true") == 0)
      return 1;
  return 0;
}

void
spare_init (struct linux_provider *self, const char *const *config)
{
  pthread_condattr_t attr;

  self->spare = NO_SPARE;
  self->spare.wanted = spare_wanted (config);
  pthread_condattr_init (&attr);
  pthread_condattr_setclock (&attr, CLOCK_MONOTONIC);
  pthread_cond_init (&self->spare.wake, NULL);
  pthread_cond_init (&self->spare.made, &attr);
  pthread_condattr_destroy (&attr);
}

static ssize_t
cgroups_read (char *out, size_t size)
{
  coffer_autoclose int fd = open ("/proc/self/cgroup", O_RDONLY | O_CLOEXEC);

  return fd < 0 ? -1 : coffer_read_all (fd, out, size);
}

static void
spare_end (struct linux_provider *self, struct spare *spare)
{
  const idtype_t by_pidfd = (idtype_t) P_PIDFD;
  const int ours = spare->maker == getpid ();
  struct init_process *init = &spare->init;
  siginfo_t info;

  coffer_fd_close (&init->control);
  coffer_fd_close (&init->proc);
  coffer_fd_close (&spare->mounts);
  /* Of a process that was forked from its maker it is no child: there the
   * copies of the descriptors are closed, and nothing else. */
  if (init->pid > 0 && ours) {
    syscall (SYS_pidfd_send_signal, init->pidfd, SIGKILL, NULL, 0);
    waitid (by_pidfd, (id_t) init->pidfd, &info, WEXITED | WNOWAIT | __WALL);
  }
  if (ours)
    ids_give (self, &init->ids);
  if (init->pid > 0 && ours)
    waitid (by_pidfd, (id_t) init->pidfd, &info, WEXITED | __WALL);
  coffer_fd_close (&init->pidfd);
  *init = NO_SPARE.init;
}

static int
shape_same (const struct init_prepare *a, const struct init_prepare *b)
{
  return memcmp (a, b, sizeof *a) == 0;
}

/* Whether it is as if it were made now, which one is that was begun for this
 * very sandbox. */
static int
spare_holds (const struct spare *spare)
{
  struct root_stamp root;
  struct pollfd fds[2] = { { .fd = spare->init.pidfd, .events = POLLIN },
                           { .fd = spare->mounts, .events = POLLPRI } };
  char now[sizeof spare->cgroups];
  ssize_t size;

  if (spare->fresh)
    return spare->maker == getpid ();
  root_stamp_take (&root);
  if (spare->maker != getpid () || spare->uid != geteuid ()
      || spare->gid != getegid () || !root_stamp_same (&root, &spare->root)
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
spare_await (struct linux_provider *self, const struct init_prepare *shape,
             int64_t deadline_ns)
{
  struct spare *spare = &self->spare;
  const struct timespec until = { deadline_ns / 1000000000,
                                  deadline_ns % 1000000000 };
  int r = 0;

  if (!spare->busy || spare->awaited || spare->maker != getpid ()
      || !shape_same (shape, &spare->shape))
    return;
  spare->awaited = 1;
  while (spare->busy && r == 0)
    r = pthread_cond_timedwait (&spare->made, &self->lock, &until);
  spare->awaited = 0;
}

/* One that is to be begun in a control group was not, and one that has its ids
 * enters none by itself any more. */
static int
groups_own (const struct cgroup *group)
{
  size_t i;

  for (i = 0; i < CGROUP_OWN; i++)
    if (group->own[i] >= 0)
      return 1;
  return group->into >= 0;
}

/* One that was begun for the sandbox which comes now, when that is another: it
 * ends by itself without its connection, and is waited for at the end.  With the
 * lock held. */
static void
spare_dismiss (struct spare *spare)
{
  if (!spare->fresh)
    return;
  coffer_fd_close (&spare->init.control);
  spare->shape.size = 0;        /* which no sandbox's is */
  spare->fresh = 0;
}

int
spare_take (struct linux_provider *self, const struct making *making,
            struct init_process *out)
{
  const int own = groups_own (&making->cgroup);
  struct spare spare = NO_SPARE;
  struct init_prepare shape;

  shape_fill (making, &shape);
  pthread_mutex_lock (&self->lock);
  if (!own)
    spare_await (self, &shape, making->call->deadline_ns);
  if (own || self->spare.busy || self->spare.init.pid <= 0
      || !shape_same (&self->spare.shape, &shape))
    spare_dismiss (&self->spare);
  else {
    spare = self->spare;
    self->spare.init = NO_SPARE.init;
    self->spare.mounts = -1;
    self->spare.fresh = 0;
  }
  pthread_mutex_unlock (&self->lock);
  if (spare.init.pid <= 0)
    return 0;
  if (!spare_holds (&spare)) {
    spare_end (self, &spare);
    return 0;
  }
  coffer_fd_close (&spare.mounts);
  *out = spare.init;
  return 1;
}

static struct coffer_call
prepare_call (void)
{
  return (struct coffer_call){ .size = sizeof (struct coffer_call),
                               .cancel_fd = -1,
                               .deadline_ns = coffer_now_ns () + PREPARE_NS };
}

/* All that it needs before there is a plan. */
static int
spare_tell (struct linux_provider *self, struct spare *spare,
            const struct coffer_call *call)
{
  if (shape_send (self, &spare->init, &spare->shape, NULL, call) == -1
      || etc_send (self, spare->init.control, call) == -1)
    return -1;
  spare->init.named = 1;
  return 0;
}

static int
spare_start (struct linux_provider *self, struct spare *spare)
{
  const struct coffer_call call = prepare_call ();
  struct init_wanted wanted = { 0 };
  const char *text;

  spare->mounts = open ("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
  root_stamp_take (&spare->root);
  spare->uid = geteuid ();
  spare->gid = getegid ();
  spare->cgroups_size = cgroups_read (spare->cgroups, sizeof spare->cgroups);
  if (spare->mounts < 0
      || ids_take (self, &spare->init.ids, &text) == -1)
    return -1;
  wanted.ids = spare->init.ids;
  return init_start (self, &wanted, &spare->init, &text) == -1
           ? -1 : spare_tell (self, spare, &call);
}

/* Nobody else touches the spare while it is busy. */
static void
spare_make (struct linux_provider *self)
{
  spare_end (self, &self->spare);
  if (spare_start (self, &self->spare) == -1)
    spare_end (self, &self->spare);
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

/* More of them than such a set has room for are several. */
static int
processors_several (void)
{
  cpu_set_t all;

  return sched_getaffinity (0, sizeof all, &all) == -1 || CPU_COUNT (&all) > 1;
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
  if (code == 0) {
    self->spare.maker = getpid ();
    self->spare.threaded = 1;
    self->spare.beside = processors_several ();
  }
  return code == 0 ? 0 : -1;
}

/* One of another shape is kept until two sandboxes have had the same one.  With
 * the lock held. */
static int
spare_due (const struct spare *spare, const struct init_prepare *shape)
{
  return spare->wanted && spare->creations == CREATIONS_BEFORE && !spare->busy
         && (shape->flags & (PLAN_HOST_NETWORK | PLAN_TEMPLATE)) == 0
         && (spare->init.pid == 0
             || (!shape_same (shape, &spare->shape)
                 && shape_same (shape, &spare->asked)))
         && (spare->maker == 0 || spare->maker == getpid ());
}

/* With the lock held. */
static void
spare_order (struct linux_provider *self, const struct init_prepare *shape)
{
  struct spare *spare = &self->spare;

  if (!spare_due (spare, shape)
      || (!spare->threaded && thread_start (self) == -1))
    return;
  spare->shape = *shape;
  spare->busy = 1;
  pthread_cond_signal (&spare->wake);
}

void
spare_follow (struct linux_provider *self, const struct making *making)
{
  struct init_prepare shape;

  if (!making->prepared)
    return;
  shape_fill (making, &shape);
  pthread_mutex_lock (&self->lock);
  if (self->spare.beside)
    spare_order (self, &shape);
  pthread_mutex_unlock (&self->lock);
}

void
spare_refill (struct linux_provider *self, const struct making *making)
{
  struct spare *spare = &self->spare;
  struct init_prepare shape;

  shape_fill (making, &shape);
  pthread_mutex_lock (&self->lock);
  if (spare->creations < CREATIONS_BEFORE)
    spare->creations++;
  spare_order (self, &shape);
  spare->asked = shape;
  pthread_mutex_unlock (&self->lock);
}

void
spare_adopt (struct linux_provider *self, const struct init_process *take_init)
{
  static const struct coffer_sandbox_spec usual
    = { sizeof usual, .lifeline = -1, .template_fd = -1 };
  const struct making making = { .self = self, .spec = &usual };
  struct spare *spare = &self->spare;

  shape_fill (&making, &spare->shape);
  spare->maker = getpid ();
  spare->fresh = 1;
  spare->init = *take_init;
}

void
spare_fini (struct linux_provider *self)
{
  struct spare *spare = &self->spare;

  if (spare->threaded && spare->maker == getpid ()) {
    pthread_mutex_lock (&self->lock);
    spare->ending = 1;
    pthread_cond_signal (&spare->wake);
    pthread_mutex_unlock (&self->lock);
    pthread_join (spare->thread, NULL);
  }
  spare_end (self, spare);
  /* A copy of one that somebody waits for would wait for that one. */
  if (spare->maker == 0 || spare->maker == getpid ()) {
    pthread_cond_destroy (&spare->wake);
    pthread_cond_destroy (&spare->made);
  }
}
