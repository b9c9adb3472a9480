/* SPDX-License-Identifier: Apache-2.0 */
/* Sandboxes made ahead, for a process that runs one piece of code after another:
 * whoever is to have one need not wait for its making.
 *
 * Only for requests that name a profile and nothing else, of sandboxes for one
 * command that die with this process.  What is made ahead is as if it were made
 * now: when the profile has become another, it is ended.  A copy of an
 * interpreter may wait in each, for a few minutes at most: whoever has it begin is
 * the first to tell it anything.  How many are kept
 * follows how many are taken, up to a number; what nobody takes for a minute is
 * ended. */

#ifndef SANDBOX_READY_H
#define SANDBOX_READY_H

#include "sandbox/sandbox.h"

/* Begins to make ahead, at most so many at a time; again is nothing.  Ended by
 * host_close. */
int host_ready_begin (struct host *host, unsigned most, struct error **err);

/* sandbox_create, from what was made ahead where there is such a one. */
int ready_take (struct host *host, const struct sandbox_request *request,
                const struct provider_call *call, struct sandbox_record **out,
                json_t **applied, struct error **err);

/* In those that are made ahead for such a request a copy of what stands ready by
 * that handle waits from now on. */
void ready_warm (struct host *host, const struct sandbox_request *request,
                 const char *handle);

/* How many stand ready now. */
unsigned host_ready_count (struct host *host);

struct ready;
/* Ends its thread; what was made is the host's to end. */
void ready_free (struct ready *ready);

#endif /* SANDBOX_READY_H */
