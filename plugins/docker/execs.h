/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that this worker relays. */

#ifndef DOCKER_EXECS_H
#define DOCKER_EXECS_H

#include "stream.h"

/* What keeps a command's time inside has so much longer before all that runs in
 * the sandbox is ended for it. */
#define RELAY_LATE_NS (INT64_C (15) * 1000000000)

struct relay;

enum relay_state {
  RELAY_NONE,                   /* never started */
  RELAY_RUNS, RELAY_ENDED,
  RELAY_LOST,                   /* its stream has ended without a word */
  RELAY_LATE                    /* its timeout is long over */
};

/* With copies of the descriptors; NULL with errno. */
struct relay *relay_new (struct docker *docker, const char *sandbox, int in,
                         int out, int err);
const char *relay_id (const struct relay *relay);
/* Starts the command of the request, fills its id in, and waits until it runs. */
int32_t relay_start (struct coffer_call *call, struct docker *docker,
                     struct relay *relay, struct wire_request *request,
                     const struct coffer_buffer *block, struct wire_info *info);
/* NULL: not of this worker.  What is found or new is released. */
struct relay *relay_find (struct docker *docker, const char *sandbox,
                          const char *id);
void relay_release (struct relay *relay);
/* enum relay_state, or -1 with errno ETIMEDOUT or ECANCELED. */
int relay_wait (struct coffer_call *call, struct relay *relay,
                struct wire_end *end);
/* What was given to it so far is all of its input. */
void relay_close_input (struct relay *relay);

#endif /* DOCKER_EXECS_H */
