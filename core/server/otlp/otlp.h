/* SPDX-License-Identifier: Apache-2.0 */
/* coffer-otlp: spans of the daemon to a collector over OTLP/HTTP, in a process
 * of its own, which may read certificates and the resolver's files, speak to
 * the network, and do nothing else.
 *
 *   descriptor 0   spans, one JSON object a line, in OTLP's own JSON form
 *   descriptor 3   how to send them, one JSON object (trace.c writes it)
 *   descriptor 4   "EXPORTED FAILED DROPPED\n", sums since its start, after
 *                  each change; or {"error"} and status 1
 *
 * What comes while OTLP_QUEUE spans wait is dropped and counted.  At the end of
 * its input it sends what waits, for at most OTLP_LAST_MS. */

#ifndef SERVER_OTLP_H
#define SERVER_OTLP_H

#include <jansson.h>

#include <coffer/buffer.h>

#define OTLP_SETTINGS_FD 3
#define OTLP_REPORT_FD 4
#define OTLP_QUEUE 2048
#define OTLP_BATCH 512
#define OTLP_LAST_MS 4000

/* What all spans of one process have in common: attributes of the resource in
 * OTLP's JSON form, name and version of the scope. */
struct otlp_origin {
  const json_t *resource;
  const char *scope, *version;
};

/* One ExportTraceServiceRequest of an array of spans.  -1: out of memory, or a
 * span that is none. */
int otlp_protobuf (const struct otlp_origin *origin, const json_t *spans,
                   struct coffer_buffer *out);
int otlp_json (const struct otlp_origin *origin, const json_t *spans,
               struct coffer_buffer *out);

#endif /* SERVER_OTLP_H */
