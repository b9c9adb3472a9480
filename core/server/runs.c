/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of runs.  See runs.h. */

#include <config.h>

#include "server/runs.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <coffer/fd.h>

/* A tenant that runs or waits, or a caller of one: how many places it has. */
struct account {
  struct account *next;
  struct account *tenant;       /* of a caller; NULL: it is one */
  unsigned running, waiting;    /* none of both: it is forgotten */
  uint64_t turn;                /* when it was last given a place */
  char name[];
};

struct waiter {
  struct waiter *next;
  struct account *account;
  int event;                    /* readable: it has a place */
  int granted;
};

struct runs_queue {
  pthread_mutex_t lock;         /* all below */
  struct shares *shares;
  unsigned parallel, most_waiting, running, waiting;
  uint64_t turns;
  struct account *accounts;
  struct waiter *first, **last;
};

int
runs_new (unsigned parallel, unsigned waiting, struct shares *shares,
          struct runs_queue **out, struct error **err)
{
  struct runs_queue *queue = calloc (1, sizeof *queue);

  if (!queue)
    return error_set (err, E_NO_MEMORY, 0, "the queue of runs");
  pthread_mutex_init (&queue->lock, NULL);
  queue->shares = shares;
  queue->parallel = parallel;
  queue->most_waiting = waiting;
  queue->last = &queue->first;
  *out = queue;
  return 0;
}

void
runs_free (struct runs_queue *queue)
{
  if (!queue)
    return;
  pthread_mutex_destroy (&queue->lock);
  free (queue);
}

/* ---- accounts ------------------------------------------------------------- */

static struct account *
account_find_locked (const struct runs_queue *queue,
                     const struct account *tenant, const char *name)
{
  struct account *account;

  for (account = queue->accounts; account; account = account->next)
    if (account->tenant == tenant && strcmp (account->name, name) == 0)
      return account;
  return NULL;
}

static struct account *
account_get_locked (struct runs_queue *queue, struct account *tenant,
                    const char *name)
{
  const size_t size = strlen (name) + 1;
  struct account *account = account_find_locked (queue, tenant, name);

  if (account)
    return account;
  account = calloc (1, sizeof *account + size);
  if (!account)
    return NULL;
  memcpy (account->name, name, size);
  account->tenant = tenant;
  account->next = queue->accounts;
  queue->accounts = account;
  return account;
}

static void
account_drop_locked (struct runs_queue *queue, struct account *account)
{
  struct account **p = &queue->accounts;

  if (account->running || account->waiting)
    return;
  while (*p != account)
    p = &(*p)->next;
  *p = account->next;
  free (account);
}

/* The caller first: what it has its tenant has too. */
static void
drop_both_locked (struct runs_queue *queue, struct account *caller)
{
  struct account *tenant = caller->tenant;

  account_drop_locked (queue, caller);
  account_drop_locked (queue, tenant);
}

static struct account *
account_of_locked (struct runs_queue *queue, const struct caller *caller)
{
  struct account *tenant = account_get_locked (queue, NULL, caller->tenant);
  struct account *account
    = tenant ? account_get_locked (queue, tenant, caller->name) : NULL;

  if (tenant && !account)
    account_drop_locked (queue, tenant);
  return account;
}

static void
run_locked (struct runs_queue *queue, struct account *account)
{
  account->turn = account->tenant->turn = ++queue->turns;
  account->running++;
  account->tenant->running++;
  queue->running++;
}

/* Whose turn is before another's. */
static int
is_before (const struct account *a, const struct account *b)
{
  return a->running != b->running ? a->running < b->running
                                  : a->turn < b->turn;
}

static int
waits_before (const struct account *a, const struct account *b)
{
  return a->tenant != b->tenant ? is_before (a->tenant, b->tenant)
                                : a != b && is_before (a, b);
}

/* ---- waiting ---------------------------------------------------------------- */

static void
unlink_locked (struct runs_queue *queue, struct waiter *waiter)
{
  struct waiter **p = &queue->first;

  while (*p != waiter)
    p = &(*p)->next;
  *p = waiter->next;
  if (queue->last == &waiter->next)
    queue->last = p;
  queue->waiting--;
  waiter->account->waiting--;
  waiter->account->tenant->waiting--;
  shares_give (queue->shares, SHARE_QUEUE, waiter->account->tenant->name, 1);
}

/* Gives free places away. */
static void
grant_locked (struct runs_queue *queue)
{
  const uint64_t one = 1;

  while (queue->first && queue->running < queue->parallel) {
    struct waiter *w, *best = queue->first;

    for (w = best->next; w; w = w->next)
      if (waits_before (w->account, best->account))
        best = w;
    unlink_locked (queue, best);
    best->granted = 1;
    run_locked (queue, best->account);
    while (write (best->event, &one, sizeof one) < 0 && errno == EINTR)
      ;
  }
}

void
runs_resize (struct runs_queue *queue, unsigned parallel, unsigned waiting)
{
  pthread_mutex_lock (&queue->lock);
  queue->parallel = parallel;
  queue->most_waiting = waiting;
  grant_locked (queue);
  pthread_mutex_unlock (&queue->lock);
}

static int
wait_locked (struct runs_queue *queue, struct waiter *waiter,
             const char *tenant, struct error **err)
{
  if (queue->waiting >= queue->most_waiting)
    return error_set (err, E_LIMIT, 0, "%u runs are at work, and %u wait",
                      queue->running, queue->waiting);
  if (shares_take (queue->shares, SHARE_QUEUE, tenant, 1, err) < 0)
    return -1;
  waiter->event = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (waiter->event >= 0)
    return 0;
  shares_give (queue->shares, SHARE_QUEUE, tenant, 1);
  return error_set (err, E_LIMIT, errno, "a place in the queue of runs");
}

/* 1: there is a place; 0: it waits; -1. */
static int
join_locked (struct runs_queue *queue, struct waiter *waiter,
             const struct caller *caller, struct error **err)
{
  struct account *account = account_of_locked (queue, caller);

  if (!account)
    return error_set (err, E_NO_MEMORY, 0, "the queue of runs");
  if (!queue->first && queue->running < queue->parallel) {
    run_locked (queue, account);
    return 1;
  }
  if (wait_locked (queue, waiter, caller->tenant, err) < 0) {
    drop_both_locked (queue, account);
    return -1;
  }
  waiter->account = account;
  account->waiting++;
  account->tenant->waiting++;
  queue->waiting++;
  *queue->last = waiter;
  queue->last = &waiter->next;
  return 0;
}

/* What was granted while it gave up is taken. */
static int
wait_end (struct runs_queue *queue, struct waiter *waiter, int why,
          struct error **err)
{
  int granted;

  pthread_mutex_lock (&queue->lock);
  granted = waiter->granted;
  if (!granted) {
    unlink_locked (queue, waiter);
    drop_both_locked (queue, waiter->account);
  }
  pthread_mutex_unlock (&queue->lock);
  coffer_fd_close (&waiter->event);
  if (granted)
    return 0;
  return why == ECANCELED
           ? error_set (err, E_EXEC_CANCELLED, 0, "cancelled while it waited"
                        " for its turn")
           : error_set (err, E_LIMIT, 0, "its turn did not come in time");
}

int
runs_enter (struct runs_queue *queue, const struct caller *caller,
            int64_t deadline_ns, int cancel_fd, struct error **err)
{
  struct waiter waiter = { .event = -1 };
  int joined;

  pthread_mutex_lock (&queue->lock);
  joined = join_locked (queue, &waiter, caller, err);
  pthread_mutex_unlock (&queue->lock);
  if (joined != 0)
    return joined < 0 ? -1 : 0;
  errno = 0;
  coffer_wait_fd (waiter.event, POLLIN, deadline_ns, cancel_fd);
  return wait_end (queue, &waiter, errno, err);
}

void
runs_leave (struct runs_queue *queue, const struct caller *caller)
{
  struct account *tenant, *account = NULL;

  pthread_mutex_lock (&queue->lock);
  tenant = account_find_locked (queue, NULL, caller->tenant);
  if (tenant)
    account = account_find_locked (queue, tenant, caller->name);
  if (account && account->running) {
    account->running--;
    tenant->running--;
    queue->running--;
    grant_locked (queue);
    drop_both_locked (queue, account);
  }
  pthread_mutex_unlock (&queue->lock);
}

void
runs_count (struct runs_queue *queue, unsigned *running, unsigned *waiting)
{
  pthread_mutex_lock (&queue->lock);
  *running = queue->running;
  *waiting = queue->waiting;
  pthread_mutex_unlock (&queue->lock);
}
