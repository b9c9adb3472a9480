/* SPDX-License-Identifier: Apache-2.0 */
/* The channel between the host and a worker: a SOCK_SEQPACKET pair, one JSON
 * object a frame, descriptors beside it.
 *
 * A frame has at most 64 KiB and 16 descriptors.  An object whose text is
 * longer goes to the worker in a sealed memory file, one descriptor more, and
 * the frame says {"payload":SIZE}; the receiver checks seals and size before it
 * reads.  A worker makes no memory files, which no limit of its own would
 * count: its long texts come in pieces, as many frames of kind "part", and
 * "whole" behind them, which has the descriptors.  A frame that was cut short, has too many descriptors or is not JSON ends
 * the conversation: E_PROVIDER_PROTOCOL.
 *
 * What goes over it, by "kind":
 *
 *   host to worker                          worker to host
 *   start    once, with all that follows    ready
 *   files    more helpers of start          refused  code, message, hint
 *   call     call, op, deadline, args       emit     call, record, value
 *   cancel   call, ended                    log      call, level, text
 *   connected call, code                    progress call, done, total, what
 *                                           connect  call, target
 *                                           file     call, name
 *                                           fault    call, message
 *                                           part     call, text
 *                                           whole    call
 *                                           done     call, code, retryable,
 *                                                    message, details
 */

#ifndef PROVIDER_CHANNEL_H
#define PROVIDER_CHANNEL_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/error.h"
#include "contract/contract.h"

#define CHANNEL_FD 3            /* of a worker, from birth */
#define CHANNEL_MAX_FRAME (64 * 1024)
#define CHANNEL_MAX_PAYLOAD (16 * 1024 * 1024)

struct channel_message {
  json_t *json;                 /* an object with a "kind" */
  struct contract_fds fds;      /* owned */
  size_t weight;                /* what it takes in memory, about */
};

void channel_message_fini (struct channel_message *message);

/* Sends one object.  The descriptors are borrowed.  deadline_ns 0: waits for
 * room as long as it takes.  Threads may send at once.  E_IO with EPIPE or
 * ECONNRESET when the other side is gone, ETIMEDOUT when it does not read;
 * E_LIMIT beyond CHANNEL_MAX_PAYLOAD. */
int channel_send (int channel, const json_t *json,
                  const struct contract_fds *fds, int64_t deadline_ns,
                  struct error **err);

/* The same, as a worker sends what belongs to a call: in pieces when it is
 * long.  Waits for room as long as it takes. */
int channel_send_call (int channel, const json_t *json,
                       const struct contract_fds *fds, struct error **err);

/* Receives one: 1, or 0 at the end of the conversation.  `wait`: block until
 * there is one, else -1 with errno EAGAIN and no error.  One thread at a
 * time. */
int channel_receive (int channel, int wait, struct channel_message *out,
                     struct error **err);

/* The part of it that looks at bytes; takes the descriptors whatever comes. */
int channel_decode (const char *bytes, size_t size, int *take_fds, int count,
                    struct channel_message *out, struct error **err);

/* Fields of a message: -1 or NULL when absent or of another type. */
const char *channel_kind (const struct channel_message *message);
int64_t channel_integer (const json_t *json, const char *key,
                         int64_t otherwise);
/* Bytes as json_bytes writes them; the caller frees. */
char *channel_bytes (const json_t *json, const char *key);
char **channel_byte_list (const json_t *json, const char *key);
void channel_free_list (char **list);
json_t *channel_from_list (char *const *list);

#endif /* PROVIDER_CHANNEL_H */
