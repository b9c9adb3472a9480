/* SPDX-License-Identifier: Apache-2.0 */
/* What a daemon counts, as Prometheus reads it (text format 0.0.4).
 *
 * Two kinds of families.  Those of the table below are counted here while the
 * daemon runs: their labels' values come from routes, error codes and ids of
 * providers, and beyond METRICS_MAX_SERIES of them all further ones share the
 * value "other".  What somebody else knows at any time (connections, zygotes) a
 * source writes onto the page when one is asked for.  Any thread. */

#ifndef SERVER_METRICS_H
#define SERVER_METRICS_H

#include <stdint.h>

#include <coffer/buffer.h>

#include "base/error.h"

#define METRICS_MAX_SERIES 1000         /* of one family */
#define METRICS_MAX_LABELS 3
#define METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* X (NAME, name, kind, help, labels…) */
#define METRICS_FAMILIES(X)                                                   \
  X (HTTP_REQUESTS, "coffer_http_requests_total", COUNTER,                    \
     "Requests that were answered, or cut off.", "method", "route", "status") \
  X (HTTP_SECONDS, "coffer_http_request_duration_seconds", HISTOGRAM,         \
     "From a request's headers to the end of its reply; not of streams.",     \
     "method", "route")                                                       \
  X (HTTP_BYTES, "coffer_http_response_size_bytes_total", COUNTER,            \
     "Bytes of bodies that were sent.", "method", "route")                    \
  X (RUNS, "coffer_runs_total", COUNTER,                                      \
     "Sandboxes that were made and commands that were run, by verdict.",      \
     "kind", "provider", "verdict")                                           \
  X (CREATE_SECONDS, "coffer_sandbox_create_duration_seconds", HISTOGRAM,     \
     "Until a sandbox was there.", "provider")                                \
  X (EXEC_SECONDS, "coffer_exec_duration_seconds", HISTOGRAM,                 \
     "From the start of a command to its end.", "provider")                   \
  X (EXECUTE_SECONDS, "coffer_execute_duration_seconds", HISTOGRAM,           \
     "Of code that was posted, all in all.", "profile")                       \
  X (ERRORS, "coffer_errors_total", COUNTER,                                  \
     "Requests that failed, by code.", "code")                                \
  X (AUDIT_FAILURES, "coffer_audit_write_failures_total", COUNTER,            \
     "Lines that could not be written to the audit log.", NULL)

enum metrics_family {
#define X(id, ...) METRICS_##id,
  METRICS_FAMILIES (X)
#undef X
    METRICS_N_FAMILIES
};

struct metrics;

int metrics_new (struct metrics **out, struct error **err);
void metrics_free (struct metrics *metrics);

/* Adds to a counter; `labels` has a value for each of the family's, and NULL
 * stands for "".  The same for what took so long, in a histogram. */
void metrics_count (struct metrics *metrics, enum metrics_family family,
                    const char *const *labels, uint64_t by);
void metrics_time (struct metrics *metrics, enum metrics_family family,
                   const char *const *labels, int64_t ns);

/* One page while it is written. */
struct metrics_page;
typedef void metrics_source (void *data, struct metrics_page *page);
/* `source` is called for each page until the metrics are freed. */
int metrics_add_source (struct metrics *metrics, metrics_source *source,
                        void *data, struct error **err);
/* A source's family, and then its values; `label` NULL: it has none.  Values of
 * labels must be of a set that is bounded. */
void metrics_page_family (struct metrics_page *page, const char *name,
                          const char *type, const char *help);
void metrics_page_value (struct metrics_page *page, const char *label,
                         const char *label_value, double value);
void metrics_page_value_2 (struct metrics_page *page, const char *const *names,
                           const char *const *values, double value);

/* The whole page: -1 when memory is out. */
int metrics_write (struct metrics *metrics, struct coffer_buffer *out);

/* This process, by the names that every client library gives: a source. */
void metrics_process (void *data, struct metrics_page *page);

/* Interpreters that stand ready: a source, of a host. */
void metrics_warm (void *host, struct metrics_page *page);

#endif /* SERVER_METRICS_H */
