/* SPDX-License-Identifier: Apache-2.0 */
/* Spans that wait in coffer-otlp, and what became of those that do not. */

#ifndef SERVER_OTLP_QUEUE_H
#define SERVER_OTLP_QUEUE_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#define OTLP_LINE_MAX 4096      /* one write of the daemon's */

struct otlp_queue {
  json_t *spans;                /* an array, the oldest first */
  int64_t since_ns;             /* when the oldest came */
  char line[OTLP_LINE_MAX];
  size_t used;                  /* of a line that is not whole yet */
  int skip;                     /* the rest of one that is too long */
  int ended;                    /* the daemon has closed its end */
  uint64_t exported, failed, dropped;
  int changed;                  /* since they were last told */
};

int otlp_queue_init (struct otlp_queue *queue);
/* Takes all that can be read from `fd` now, which does not block. */
void otlp_queue_read (struct otlp_queue *queue, int fd);
/* The first `most` as an array of their own, the caller's; NULL: none, or out
 * of memory. */
json_t *otlp_queue_take (struct otlp_queue *queue, size_t most);

#endif /* SERVER_OTLP_QUEUE_H */
