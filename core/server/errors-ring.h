/* SPDX-License-Identifier: Apache-2.0 */
/* The errors of late: which, when, of whose request.  At most
 * ERRORS_RING_MAX are kept, and of one tenant ERRORS_RING_TENANT_MAX, so that
 * nobody's errors push out those of others.  They are in a file of the state
 * folder too, and there again after a restart.  Any thread. */

#ifndef SERVER_ERRORS_RING_H
#define SERVER_ERRORS_RING_H

#include "base/json.h"

#define ERRORS_RING_MAX 512
#define ERRORS_RING_TENANT_MAX 128
#define ERRORS_RING_FILE "errors.jsonl"

struct errors_ring;

/* `folder`: the state folder, borrowed for the call.  A file that cannot be
 * read is a warning, as errors are for people, and is begun anew; one that
 * cannot be written is one too, and errors are then kept in memory alone. */
int errors_ring_open (int folder, struct errors_ring **out,
                      struct error **err);
void errors_ring_free (struct errors_ring *ring);

void errors_ring_add (struct errors_ring *ring, const struct error *error,
                      const char *tenant, const char *request);

/* The latest first, at most `limit` of this tenant: [{"time", "type", "code",
 * "message", "tenant", "request_id"}]; NULL: out of memory. */
json_t *errors_ring_list (struct errors_ring *ring, const char *tenant,
                          size_t limit);
/* How many of them there are since that time (since the epoch). */
size_t errors_ring_count (struct errors_ring *ring, const char *tenant,
                          int64_t since_ns);

#endif /* SERVER_ERRORS_RING_H */
