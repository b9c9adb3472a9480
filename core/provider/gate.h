/* SPDX-License-Identifier: Apache-2.0 */
/* How many calls of one provider run at once: one of a serial module (those
 * that only wait do not count), and never more than limits.calls. */

#ifndef PROVIDER_GATE_H
#define PROVIDER_GATE_H

#include <pthread.h>
#include <stdint.h>

struct gate {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  uint64_t limit, running;
  int serial;                   /* the module is */
  int held;                     /* a serial call runs */
  uint64_t waiting;
};

int gate_init (struct gate *gate, int serial, uint64_t limit);
void gate_fini (struct gate *gate);

/* `waits`: an operation that never holds the serial lock.  COFFER_OK,
 * COFFER_TIMEOUT or COFFER_CANCELLED. */
int32_t gate_enter (struct gate *gate, int waits, int64_t deadline_ns,
                    int cancel_fd);
void gate_leave (struct gate *gate, int waits);

#endif /* PROVIDER_GATE_H */
