/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes from one descriptor to another, a step at a time, for a poll loop.
 *
 * A relay waits for its source or, when the sink is full, for the sink, so
 * that a slow reader slows the writer and nothing spins.  splice where both
 * ends allow it, a buffer where not. */

#ifndef SANDBOX_RELAY_H
#define SANDBOX_RELAY_H

#include <poll.h>
#include <stddef.h>
#include <stdint.h>

enum relay_mode { RELAY_SPLICE, RELAY_COPY, RELAY_CALL };

enum relay_end {
  RELAY_OPEN,
  RELAY_SOURCE_ENDED,           /* end of file, or the source failed */
  RELAY_SINK_GONE               /* EPIPE, or the sink failed */
};

struct relay {
  int from, to;                 /* -1: not used; never closed here */
  enum relay_mode mode;
  enum relay_end end;
  int sink_errno;               /* of RELAY_SINK_GONE */
  int wait_sink;                /* the sink was full */
  uint64_t moved;
  char *buffer;                 /* COPY and CALL */
  size_t start, size;           /* what of it waits */
  void (*output) (void *data, int stream, const char *bytes, size_t size);
  void *data;
  int stream;
};

void relay_init (struct relay *relay, int from, int to, enum relay_mode mode);
void relay_fini (struct relay *relay);
static inline int
relay_active (const struct relay *relay)
{
  return relay->from >= 0 && relay->end == RELAY_OPEN;
}

/* Fills one pollfd (fd -1 when there is nothing to wait for) with what the
 * relay waits for; sink 1: a second one that tells when the sink goes away
 * while the source is waited for. */
void relay_poll (const struct relay *relay, struct pollfd *pollfd);
void relay_poll_sink (const struct relay *relay, struct pollfd *pollfd);

/* Moves what can be moved now, at most about 1 MiB.  -1: out of memory. */
int relay_step (struct relay *relay, const struct pollfd *pollfd);

/* Moves what the source holds at this moment and no more, waiting for the
 * sink as long as it takes or until cancel_fd is readable: for the rest of a
 * pipe that somebody still holds open. */
int relay_drain (struct relay *relay, int cancel_fd);

#endif /* SANDBOX_RELAY_H */
