/* SPDX-License-Identifier: Apache-2.0 */
/* Counting what is refused too often.  See refusals.h. */

#include <config.h>

#include "server/refusals.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <coffer/fd.h>

#include "server/audit.h"

#define WINDOW_NS (INT64_C (10) * 1000000000)
#define LINES_MAX 16            /* of one kind in that time */
/* Callers and kinds that are told apart; the others are one. */
#define KINDS_MAX 64
#define STACK_SIZE (256 << 10)

static const char *const parts[] = { "event", "who", "tenant", "status",
                                     "verdict" };
#define N_PARTS (sizeof parts / sizeof parts[0])

struct kind {
  struct kind *next;
  json_t *what;                 /* the parts of its lines; {}: of all others */
  int64_t until_ns;             /* the end of its ten seconds */
  int64_t since_ns;             /* of the first that was counted, since the
                                 * epoch */
  unsigned lines;
  uint64_t counted;
};

struct refusals {
  void (*write) (void *data, json_t *line);
  void *data;
  pthread_mutex_t lock;         /* all below */
  pthread_cond_t changed;
  struct kind *kinds;
  size_t count;
  int ending;
  pthread_t thread;
};

/* ---- kinds ---------------------------------------------------------------- */

static int
is_of (const struct kind *kind, const json_t *line)
{
  size_t i;

  for (i = 0; i < N_PARTS; i++) {
    const json_t *a = json_object_get (kind->what, parts[i]);
    const json_t *b = json_object_get (line, parts[i]);

    if (a != b && !(a && b && json_equal (a, b)))
      return 0;
  }
  return 1;
}

static struct kind *
kind_new_locked (struct refusals *refusals, const json_t *line)
{
  struct kind *kind = calloc (1, sizeof *kind);
  size_t i;

  if (kind)
    kind->what = json_object ();
  if (!kind || !kind->what) {
    free (kind);
    return NULL;
  }
  /* Copies: the line goes on to be written, and goes away, without our lock. */
  for (i = 0; line && i < N_PARTS; i++)
    if (json_object_get (line, parts[i]))
      json_object_set_new (kind->what, parts[i],
                           json_deep_copy (json_object_get (line, parts[i])));
  kind->until_ns = coffer_now_ns () + WINDOW_NS;
  kind->next = refusals->kinds;
  refusals->kinds = kind;
  refusals->count++;
  pthread_cond_signal (&refusals->changed);
  return kind;
}

/* NULL: no memory. */
static struct kind *
kind_get_locked (struct refusals *refusals, const json_t *line)
{
  struct kind *kind, *others = NULL;

  for (kind = refusals->kinds; kind; kind = kind->next)
    if (is_of (kind, line))
      return kind;
    else if (json_object_size (kind->what) == 0)
      others = kind;
  if (refusals->count < KINDS_MAX)
    return kind_new_locked (refusals, line);
  return others ? others : kind_new_locked (refusals, NULL);
}

static void
kind_free (struct kind *kind)
{
  json_decref (kind->what);
  free (kind);
}

int
refusals_note (struct refusals *refusals, const json_t *line)
{
  struct kind *kind;
  int writes;

  pthread_mutex_lock (&refusals->lock);
  kind = kind_get_locked (refusals, line);
  writes = !kind || kind->lines < LINES_MAX;
  if (kind && writes)
    kind->lines++;
  else if (kind && kind->counted++ == 0)
    kind->since_ns = coffer_realtime_ns ();
  pthread_mutex_unlock (&refusals->lock);
  return writes;
}

/* ---- the thread ----------------------------------------------------------- */

static void
tell (struct refusals *refusals, const struct kind *kind)
{
  auto_json json_t *line = json_copy (kind->what);
  char since[AUDIT_TIME_SIZE];

  if (!line || kind->counted == 0)
    return;
  if (!json_object_get (line, "event"))
    json_object_set_new (line, "event", json_string ("refused"));
  audit_time (kind->since_ns, since);
  json_object_set_new (line, "since", json_string (since));
  json_object_set_new (line, "count", json_u64 (kind->counted));
  refusals->write (refusals->data, line);
}

/* Takes the first whose time is over, or with `all` any; *next: when the next
 * one's is. */
static struct kind *
over_take_locked (struct refusals *refusals, int all, int64_t *next)
{
  const int64_t now = coffer_now_ns ();
  struct kind **p, *kind;

  *next = INT64_MAX;
  for (p = &refusals->kinds; (kind = *p); p = &kind->next) {
    if (all || kind->until_ns <= now) {
      *p = kind->next;
      refusals->count--;
      return kind;
    }
    if (kind->until_ns < *next)
      *next = kind->until_ns;
  }
  return NULL;
}

static void
wait_locked (struct refusals *refusals, int64_t until)
{
  const struct timespec at = { until / 1000000000, until % 1000000000 };

  if (until == INT64_MAX)
    pthread_cond_wait (&refusals->changed, &refusals->lock);
  else
    pthread_cond_timedwait (&refusals->changed, &refusals->lock, &at);
}

static void *
run (void *data)
{
  struct refusals *refusals = data;
  struct kind *kind;
  int64_t next;

  pthread_mutex_lock (&refusals->lock);
  for (;;) {
    kind = over_take_locked (refusals, refusals->ending, &next);
    if (!kind && refusals->ending)
      break;
    if (!kind) {
      wait_locked (refusals, next);
      continue;
    }
    pthread_mutex_unlock (&refusals->lock);
    tell (refusals, kind);
    kind_free (kind);
    pthread_mutex_lock (&refusals->lock);
  }
  pthread_mutex_unlock (&refusals->lock);
  return NULL;
}

static int
thread_start (struct refusals *refusals, struct error **err)
{
  pthread_condattr_t clock;
  pthread_attr_t attr;
  int failed;

  pthread_condattr_init (&clock);
  pthread_condattr_setclock (&clock, CLOCK_MONOTONIC);
  pthread_cond_init (&refusals->changed, &clock);
  pthread_condattr_destroy (&clock);
  pthread_attr_init (&attr);
  pthread_attr_setstacksize (&attr, STACK_SIZE);
  failed = pthread_create (&refusals->thread, &attr, run, refusals);
  pthread_attr_destroy (&attr);
  return failed ? error_set (err, E_IO, failed, "a thread") : 0;
}

int
refusals_new (void (*write) (void *data, json_t *line), void *data,
              struct refusals **out, struct error **err)
{
  struct refusals *refusals = calloc (1, sizeof *refusals);

  if (!refusals)
    return error_set (err, E_NO_MEMORY, 0, "the audit log");
  refusals->write = write;
  refusals->data = data;
  pthread_mutex_init (&refusals->lock, NULL);
  if (thread_start (refusals, err) < 0) {
    free (refusals);
    return -1;
  }
  *out = refusals;
  return 0;
}

void
refusals_free (struct refusals *refusals)
{
  if (!refusals)
    return;
  pthread_mutex_lock (&refusals->lock);
  refusals->ending = 1;
  pthread_cond_signal (&refusals->changed);
  pthread_mutex_unlock (&refusals->lock);
  pthread_join (refusals->thread, NULL);
  pthread_cond_destroy (&refusals->changed);
  pthread_mutex_destroy (&refusals->lock);
  free (refusals);
}
