/* SPDX-License-Identifier: Apache-2.0 */
/* Lines become spans.  See queue.h. */

#include <config.h>

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/json.h"
#include "otlp.h"
#include "queue.h"

int
otlp_queue_init (struct otlp_queue *queue)
{
  queue->spans = json_array ();
  return queue->spans ? 0 : -1;
}

static void
line_take (struct otlp_queue *queue)
{
  auto_json json_t *span = NULL;

  if (json_array_size (queue->spans) < OTLP_QUEUE
      && json_parse (queue->line, queue->used, &span, NULL) == 0
      && json_is_object (span)
      && json_array_append (queue->spans, span) == 0) {
    if (json_array_size (queue->spans) == 1)
      queue->since_ns = coffer_now_ns ();
    return;
  }
  queue->dropped++;
  queue->changed = 1;
}

static void
bytes_take (struct otlp_queue *queue, const char *bytes, size_t size)
{
  size_t i;

  for (i = 0; i < size; i++) {
    if (bytes[i] == '\n') {
      if (queue->skip)
        queue->dropped++, queue->changed = 1;
      else
        line_take (queue);
      queue->used = 0;
      queue->skip = 0;
    } else if (queue->used < sizeof queue->line)
      queue->line[queue->used++] = bytes[i];
    else
      queue->skip = 1;
  }
}

void
otlp_queue_read (struct otlp_queue *queue, int fd)
{
  char bytes[65536];
  ssize_t n;

  while (!queue->ended) {
    n = read (fd, bytes, sizeof bytes);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0 && errno == EAGAIN)
      return;
    if (n <= 0)
      queue->ended = 1;
    else
      bytes_take (queue, bytes, (size_t) n);
  }
}

json_t *
otlp_queue_take (struct otlp_queue *queue, size_t most)
{
  json_t *batch = json_array (), *span;

  while (batch && json_array_size (batch) < most
         && (span = json_array_get (queue->spans, 0))) {
    if (json_array_append (batch, span) < 0)
      queue->dropped++, queue->changed = 1;
    json_array_remove (queue->spans, 0);
  }
  queue->since_ns = coffer_now_ns ();
  if (json_array_size (batch) == 0) {
    json_decref (batch);
    return NULL;
  }
  return batch;
}
