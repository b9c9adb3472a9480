/* SPDX-License-Identifier: Apache-2.0 */
/* The thread model's lock.  A waiter with a cancel descriptor looks at it
 * between short waits: contention is rare, and a condition cannot be polled. */

#include "config.h"

#include <poll.h>
#include <time.h>

#include <coffer/fd.h>
#include <coffer/provider.h>

#include "provider/gate.h"

#define SLICE_NS (20 * 1000 * 1000LL)

int
gate_init (struct gate *gate, int serial, uint64_t limit)
{
  pthread_condattr_t attributes;

  gate->serial = serial;
  gate->limit = limit;
  gate->running = gate->waiting = 0;
  gate->n_waits = gate->n_long = gate->n_endless = 0;
  gate->held = 0;
  if (pthread_mutex_init (&gate->lock, NULL) != 0)
    return -1;
  pthread_condattr_init (&attributes);
  pthread_condattr_setclock (&attributes, CLOCK_MONOTONIC);
  if (pthread_cond_init (&gate->changed, &attributes) != 0) {
    pthread_mutex_destroy (&gate->lock);
    return -1;
  }
  pthread_condattr_destroy (&attributes);
  return 0;
}

void
gate_fini (struct gate *gate)
{
  pthread_cond_destroy (&gate->changed);
  pthread_mutex_destroy (&gate->lock);
}

static int
is_cancelled (int cancel_fd)
{
  struct pollfd p = { .fd = cancel_fd, .events = POLLIN };

  return cancel_fd >= 0 && poll (&p, 1, 0) > 0;
}

static int32_t
wait_locked (struct gate *gate, int64_t deadline_ns, int cancel_fd)
{
  int64_t until = deadline_ns, now = coffer_now_ns ();
  struct timespec ts;

  if (now >= deadline_ns)
    return COFFER_TIMEOUT;
  if (is_cancelled (cancel_fd))
    return COFFER_CANCELLED;
  if (cancel_fd >= 0 && deadline_ns - now > SLICE_NS)
    until = now + SLICE_NS;
  ts.tv_sec = until / 1000000000;
  ts.tv_nsec = until % 1000000000;
  pthread_cond_timedwait (&gate->changed, &gate->lock, &ts);
  return COFFER_OK;
}

/* All but a part, and of few one; who has a single call has it for everything. */
static uint64_t
all_but (const struct gate *gate, uint64_t part)
{
  return gate->limit > 1 ? gate->limit - (gate->limit + part - 1) / part : 1;
}

uint64_t
gate_most_endless (const struct gate *gate)
{
  return all_but (gate, 2);
}

/* Of few calls both shares would be the same, and one who waits for commands
 * alone would leave nothing to what moves files. */
static uint64_t
most_waits (const struct gate *gate)
{
  const uint64_t waits = all_but (gate, 4);

  return waits > 1 && waits == all_but (gate, 8) ? waits - 1 : waits;
}

static int
is_crowded (const struct gate *gate, unsigned kind)
{
  return ((kind & GATE_WAITS) && gate->n_waits >= most_waits (gate))
         || ((kind & (GATE_WAITS | GATE_LONG))
             && gate->n_waits + gate->n_long >= all_but (gate, 8))
         || ((kind & GATE_ENDLESS)
             && gate->n_endless >= gate_most_endless (gate));
}

static int
is_full (const struct gate *gate, unsigned kind)
{
  return gate->running >= gate->limit
         || (gate->serial && !(kind & GATE_WAITS) && gate->held)
         || is_crowded (gate, kind);
}

/* One comes, or goes (-1). */
static void
count_locked (struct gate *gate, unsigned kind, int by)
{
  gate->running += (uint64_t) by;
  gate->n_waits += kind & GATE_WAITS ? (uint64_t) by : 0;
  gate->n_long += kind & GATE_LONG ? (uint64_t) by : 0;
  gate->n_endless += kind & GATE_ENDLESS ? (uint64_t) by : 0;
  if (gate->serial && !(kind & GATE_WAITS))
    gate->held = by > 0;
}

int32_t
gate_enter (struct gate *gate, unsigned kind, int64_t deadline_ns,
            int cancel_fd)
{
  int32_t code = COFFER_OK;

  pthread_mutex_lock (&gate->lock);
  gate->waiting++;
  while (code == COFFER_OK && is_full (gate, kind))
    code = (kind & GATE_ENDLESS) && is_crowded (gate, kind)
             ? COFFER_LIMIT : wait_locked (gate, deadline_ns, cancel_fd);
  gate->waiting--;
  if (code == COFFER_OK)
    count_locked (gate, kind, 1);
  pthread_mutex_unlock (&gate->lock);
  return code;
}

void
gate_leave (struct gate *gate, unsigned kind)
{
  pthread_mutex_lock (&gate->lock);
  count_locked (gate, kind, -1);
  if (gate->waiting > 0)
    pthread_cond_broadcast (&gate->changed);
  pthread_mutex_unlock (&gate->lock);
}
