/* SPDX-License-Identifier: Apache-2.0 */
/* Spans on their way to coffer-otlp, which sends them.
 *
 * Each is one write into a pipe, at once or not at all: a request never waits
 * for a collector.  What does not fit is dropped and counted.  An exporter that
 * has ended is started again at a later span, not more often than its back-off
 * allows.  SIGPIPE is ignored by whoever uses this.  Any thread. */

#ifndef SERVER_TRACE_H
#define SERVER_TRACE_H

#include "base/json.h"
#include "base/place.h"
#include "server/metrics.h"
#include "server/trace-context.h"

struct trace;

enum trace_kind { TRACE_INTERNAL = 1, TRACE_SERVER = 2 };

struct trace_span {
  const struct trace_context *context;
  enum trace_kind kind;         /* SERVER: the request; else a child of it */
  const char *name;
  int64_t began_ns, ended_ns;   /* CLOCK_MONOTONIC */
  json_t *attributes;           /* of trace_text and trace_number */
  const char *failure;          /* NULL: it went well */
};

/* Starts the exporter; `settings` are trace_settings'. */
int trace_open (const struct place *place, json_t *take_settings,
                struct trace **out, struct error **err);
/* Lets the exporter send what it has, for some seconds. */
void trace_close (struct trace *trace);

void trace_send (struct trace *trace, const struct trace_span *span);

/* Adds an attribute; a value that is NULL or "" is none. */
void trace_text (json_t *attributes, const char *key, const char *value);
void trace_number (json_t *attributes, const char *key, int64_t value);

/* How many spans were sent, failed and were dropped: a source, data is the
 * trace. */
void trace_metrics (void *data, struct metrics_page *page);

#endif /* SERVER_TRACE_H */
