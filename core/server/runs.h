/* SPDX-License-Identifier: Apache-2.0 */
/* How many runs there are at once, and who waits for one.
 *
 * A run is something that takes a processor while it lasts.  When all places
 * are taken, callers wait in a queue that is fair between tenants, and between the
 * callers of each: the next place goes to the tenant that has the fewest, among
 * those to the one whose last was given longest ago, so that they take turns
 * whoever came first; and so it goes among its callers.  A tenant has its share
 * of the room to wait in (SHARE_QUEUE). */

#ifndef SERVER_RUNS_H
#define SERVER_RUNS_H

#include <stdint.h>

#include "base/error.h"
#include "policy/shares.h"
#include "server/auth.h"

struct runs_queue;

/* The shares are borrowed, or NULL. */
int runs_new (unsigned parallel, unsigned waiting, struct shares *shares,
              struct runs_queue **out, struct error **err);
void runs_free (struct runs_queue *queue);
/* From now on; those that run go on. */
void runs_resize (struct runs_queue *queue, unsigned parallel,
                  unsigned waiting);

/* Waits for a place for `caller`.  E_LIMIT (429) at once when the queue is full,
 * and at the deadline; E_EXEC_CANCELLED when cancel_fd is readable.  What gets
 * a place gives it back by runs_leave, with the same caller. */
int runs_enter (struct runs_queue *queue, const struct caller *caller,
                int64_t deadline_ns, int cancel_fd, struct error **err);
void runs_leave (struct runs_queue *queue, const struct caller *caller);

/* For metrics. */
void runs_count (struct runs_queue *queue, unsigned *running,
                 unsigned *waiting);

#endif /* SERVER_RUNS_H */
