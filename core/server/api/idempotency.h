/* SPDX-License-Identifier: Apache-2.0 */
/* Idempotency-Key: a request that changes something may carry one, of its
 * client's choosing, and may then be sent again without being done again.  The
 * same key with the same request gets the reply of the first, for a day; with
 * another request it is refused, as it is while the first is at work.
 *
 * Keys are a tenant's.  There are so many at a time (serve.limits.keys), and when
 * there are more, of the tenant that has most the oldest is forgotten.  Only what was done is kept: a request that failed may be
 * sent again and is then tried again.  What makes a sandbox is kept on the disk
 * (STATE/idempotency/), and what it is going to be called before it is made, so
 * that also a daemon that is killed in between makes no second one. */

#ifndef SERVER_API_IDEMPOTENCY_H
#define SERVER_API_IDEMPOTENCY_H

#include "base/place.h"
#include "server/http.h"

struct idempotency;
struct idempotent;              /* a request of a key, at work */

/* most: that are kept on the disk now. */
int idempotency_open (const struct place *place, uint64_t most,
                      struct idempotency **out, struct error **err);
void idempotency_close (struct idempotency *idempotency);

/* Before a request is handled: 0, and *out is NULL for one without a key; 1 when
 * the reply is there already; -1. */
int idempotency_begin (struct request *request, struct idempotent **out,
                       struct error **err);
/* Afterwards; done: the reply is filled.  NULL: nothing. */
void idempotency_end (struct request *request, struct idempotent *take,
                      int done);

/* What a sandbox is to be called that this request makes: NULL without a key.
 * again: it was made by an earlier request, which could not answer any more. */
int idempotency_sandbox (struct request *request, const char **id, int *again,
                         struct error **err);

#endif /* SERVER_API_IDEMPOTENCY_H */
