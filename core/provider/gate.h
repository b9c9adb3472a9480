/* SPDX-License-Identifier: Apache-2.0 */
/* How many calls of one provider run at once: one of a serial module (those
 * that only wait do not count), and never more than limits.calls.
 *
 * What lasts as long as somebody else pleases leaves room for the rest, so that a
 * sandbox can be looked at and killed whatever others do: waiting for commands has
 * three quarters (of three or four calls one less), and with it what moves bytes,
 * connects or makes sandboxes seven eighths.  Calls that end when their caller has
 * had enough have half, and one more is refused at once: nobody can say how long it
 * would wait. */

#ifndef PROVIDER_GATE_H
#define PROVIDER_GATE_H

#include <pthread.h>
#include <stdint.h>

enum {                          /* kinds of calls; 0: brief */
  GATE_WAITS = 1,               /* for a command; never holds the serial lock */
  GATE_LONG = 2,                /* a peer, or a registry, may be slow */
  GATE_ENDLESS = 4              /* which waits too */
};

struct gate {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  uint64_t limit, running;
  uint64_t n_waits, n_long, n_endless;  /* of the running ones */
  int serial;                   /* the module is */
  int held;                     /* a serial call runs */
  uint64_t waiting;
};

int gate_init (struct gate *gate, int serial, uint64_t limit);
void gate_fini (struct gate *gate);

/* COFFER_OK, COFFER_TIMEOUT, COFFER_CANCELLED or, at once, COFFER_LIMIT. */
int32_t gate_enter (struct gate *gate, unsigned kind, int64_t deadline_ns,
                    int cancel_fd);
void gate_leave (struct gate *gate, unsigned kind);
/* How many endless calls may run at once. */
uint64_t gate_most_endless (const struct gate *gate);

#endif /* PROVIDER_GATE_H */
