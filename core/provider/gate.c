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

int32_t
gate_enter (struct gate *gate, int waits, int64_t deadline_ns, int cancel_fd)
{
  int takes = gate->serial && !waits;
  int32_t code = COFFER_OK;

  pthread_mutex_lock (&gate->lock);
  gate->waiting++;
  while (code == COFFER_OK
         && ((takes && gate->held) || gate->running >= gate->limit))
    code = wait_locked (gate, deadline_ns, cancel_fd);
  gate->waiting--;
  if (code == COFFER_OK) {
    gate->running++;
    gate->held |= takes;
  }
  pthread_mutex_unlock (&gate->lock);
  return code;
}

void
gate_leave (struct gate *gate, int waits)
{
  pthread_mutex_lock (&gate->lock);
  gate->running--;
  if (gate->serial && !waits)
    gate->held = 0;
  if (gate->waiting > 0)
    pthread_cond_broadcast (&gate->changed);
  pthread_mutex_unlock (&gate->lock);
}
