/* SPDX-License-Identifier: Apache-2.0 */
/* A connection to a port of a sandbox, made on a thread of its own: who has others
 * to serve meanwhile waits for nobody that does not answer. */

#ifndef SANDBOX_DIAL_H
#define SANDBOX_DIAL_H

#include "contract/args.h"
#include "sandbox/async.h"
#include "sandbox/host.h"

struct dial {
  struct async_call call;       /* call.done_fd: readable once there is an end */
  struct contract_args_port_dial args;
  int there;
};

/* `dial` must stay where it is, and `id` too, until dial_end. */
int dial_begin (struct dial *dial, struct host *host, const char *id,
                uint32_t port, int64_t deadline_ns, struct error **err);
/* Waits for it, and gives the connected descriptor. */
int dial_end (struct dial *dial, int *out, struct error **err);
/* Makes it end soon, without one; dial_end is still to be called. */
void dial_cancel (struct dial *dial);

#endif /* SANDBOX_DIAL_H */
