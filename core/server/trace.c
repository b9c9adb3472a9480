/* SPDX-License-Identifier: Apache-2.0 */
/* Feeding the exporter, and what it says.  See trace.h. */

#include <config.h>

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/helper.h"
#include "base/log.h"
#include "base/text.h"
#include "server/trace.h"

#define PROGRAM "coffer-otlp"
#define FEED_BYTES (1 << 20)
#define BACKOFF_FIRST_NS INT64_C (1000000000)
#define BACKOFF_MOST_NS INT64_C (60000000000)
#define STEADY_NS INT64_C (60000000000) /* after that it did not fail at once */
#define LAST_NS INT64_C (6000000000)    /* beyond OTLP_LAST_MS */
#define FAILURE_MAX 512

enum { EXPORTED, FAILED, DROPPED, N_SUMS };

struct trace {
  const struct place *place;
  pthread_mutex_t lock;         /* all below */
  json_t *settings;
  struct helper helper;
  int feed;                     /* -1: no exporter runs */
  int64_t started_ns, retry_at_ns, backoff_ns;
  char said[512];               /* what of its report is not taken yet */
  size_t n_said;
  uint64_t sums[N_SUMS];        /* of exporters that have ended, and what was
                                 * dropped here */
  uint64_t now[N_SUMS];         /* of this one */
  uint64_t fed;                 /* spans that it was given */
};

/* ---- the exporter -------------------------------------------------------- */

static int
feed_new (int ends[2], struct error **err)
{
  if (pipe2 (ends, O_CLOEXEC) < 0)
    return error_set (err, E_IO, errno, "a pipe for spans");
  fcntl (ends[1], F_SETPIPE_SZ, FEED_BYTES);    /* no matter if refused */
  fcntl (ends[1], F_SETFL, O_NONBLOCK);
  return 0;
}

static int
exporter_start_locked (struct trace *trace, struct error **err)
{
  auto_free char *text = json_text (trace->settings);
  coffer_autoclose int settings = -1, in = -1;
  struct helper_program program = { .name = PROGRAM, .out = -1,
                                    .number = E_IO };
  int ends[2];

  trace->started_ns = coffer_now_ns ();
  settings = text ? coffer_memfd_sealed ("otlp", text, strlen (text)) : -1;
  if (settings < 0)
    return error_set (err, E_IO, errno, "settings for spans");
  if (feed_new (ends, err) < 0)
    return -1;
  in = ends[0];
  trace->feed = ends[1];
  program.in = in;
  program.folder = settings;
  if (helper_start (trace->place, &program, &trace->helper, err) < 0) {
    coffer_fd_close (&trace->feed);
    helper_fini (&trace->helper);
    return -1;
  }
  fcntl (trace->helper.report, F_SETFL, O_NONBLOCK);
  return 0;
}

/* One line: three sums, or why it does not work. */
static void
line_take_locked (struct trace *trace, const char *line)
{
  unsigned long long sums[N_SUMS];
  auto_json json_t *json = NULL;
  const char *why;
  int i;

  if (sscanf (line, "%llu %llu %llu", &sums[0], &sums[1], &sums[2])
      == N_SUMS) {
    for (i = 0; i < N_SUMS; i++)
      trace->now[i] = sums[i];
    return;
  }
  if (json_parse (line, strlen (line), &json, NULL) < 0)
    return;
  why = json_string_value (json_object_get (json, "error"));
  if (why)
    log_event (LOG_LEVEL_WARNING, "otlp", PROGRAM ": %s", why);
}

/* What it has said; 1 at the end, which is its own. */
static int
report_take_locked (struct trace *trace)
{
  ssize_t n;
  char *end;

  for (;;) {
    n = read (trace->helper.report, trace->said + trace->n_said,
              sizeof trace->said - 1 - trace->n_said);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return 0;
    trace->n_said += (size_t) n;
    trace->said[trace->n_said] = '\0';
    while ((end = strchr (trace->said, '\n')) || (n == 0 && trace->n_said)
           || trace->n_said == sizeof trace->said - 1) {
      size_t used = end ? (size_t) (end - trace->said) + 1 : trace->n_said;

      if (end)
        *end = '\0';
      line_take_locked (trace, trace->said);
      trace->n_said -= used;
      memmove (trace->said, trace->said + used, trace->n_said + 1);
    }
    if (n == 0)
      return 1;
  }
}

/* It has gone: what it was given and did not tell of is lost. */
static void
exporter_lost_locked (struct trace *trace)
{
  const int64_t now = coffer_now_ns ();
  int i;

  report_take_locked (trace);
  coffer_fd_close (&trace->feed);
  helper_fini (&trace->helper);
  for (i = 0; i < N_SUMS; i++) {
    trace->sums[i] += trace->now[i];
    trace->fed -= trace->now[i] < trace->fed ? trace->now[i] : trace->fed;
  }
  trace->sums[DROPPED] += trace->fed;
  trace->fed = 0;
  memset (trace->now, 0, sizeof trace->now);
  trace->n_said = 0;
  if (now - trace->started_ns >= STEADY_NS)
    trace->backoff_ns = BACKOFF_FIRST_NS;
  trace->retry_at_ns = now + trace->backoff_ns;
  trace->backoff_ns *= 2;
  if (trace->backoff_ns > BACKOFF_MOST_NS)
    trace->backoff_ns = BACKOFF_MOST_NS;
  log_event (LOG_LEVEL_WARNING, "otlp", PROGRAM
             " has ended; spans are dropped until it is started again");
}

static int
exporter_ready_locked (struct trace *trace)
{
  auto_error struct error *error = NULL;

  if (trace->feed >= 0)
    return 1;
  if (coffer_now_ns () < trace->retry_at_ns)
    return 0;
  if (exporter_start_locked (trace, &error) == 0)
    return 1;
  log_event (LOG_LEVEL_WARNING, "otlp", "%s", error_message (error));
  trace->retry_at_ns = coffer_now_ns () + BACKOFF_MOST_NS;
  return 0;
}

int
trace_open (const struct place *place, json_t *take_settings,
            struct trace **out, struct error **err)
{
  struct trace *trace = calloc (1, sizeof *trace);

  if (trace == NULL) {
    json_decref (take_settings);
    return error_set (err, E_NO_MEMORY, 0, "out of memory");
  }
  pthread_mutex_init (&trace->lock, NULL);
  trace->place = place;
  trace->settings = take_settings;
  trace->helper.report = -1;
  trace->feed = -1;
  trace->backoff_ns = BACKOFF_FIRST_NS;
  if (exporter_start_locked (trace, err) < 0) {
    trace_close (trace);
    return -1;
  }
  *out = trace;
  return 0;
}

void
trace_close (struct trace *trace)
{
  int64_t deadline = coffer_now_ns () + LAST_NS;

  if (trace == NULL)
    return;
  coffer_fd_close (&trace->feed);
  /* The end of its report is its own. */
  while (trace->helper.pid > 0
         && coffer_wait_fd (trace->helper.report, POLLIN, deadline, -1) == 1
         && report_take_locked (trace) == 0)
    ;
  helper_fini (&trace->helper);
  json_decref (trace->settings);
  pthread_mutex_destroy (&trace->lock);
  free (trace);
}

/* ---- spans --------------------------------------------------------------- */

void
trace_text (json_t *attributes, const char *key, const char *value)
{
  json_t *text = value && *value ? json_string (value) : NULL;

  if (text)
    json_array_append_new (attributes,
                           json_pack ("{s:s, s:{s:o}}", "key", key, "value",
                                      "stringValue", text));
}

void
trace_number (json_t *attributes, const char *key, int64_t value)
{
  auto_free char *text = text_printf ("%lld", (long long) value);

  if (text)
    json_array_append_new (attributes,
                           json_pack ("{s:s, s:{s:s}}", "key", key, "value",
                                      "intValue", text));
}

static void
time_put (json_t *span, const char *key, int64_t monotonic_ns)
{
  const int64_t ns = coffer_realtime_ns () - (coffer_now_ns () - monotonic_ns);
  auto_free char *text = text_printf ("%lld", (long long) ns);

  json_object_set_new (span, key, json_string (text ? text : "0"));
}

static void
ids_put (json_t *json, const struct trace_span *span)
{
  const struct trace_context *context = span->context;
  const char *parent = context->parent;
  char own[SPAN_ID_SIZE];
  uint8_t raw[8];

  json_object_set_new (json, "traceId", json_string (context->trace));
  memcpy (own, context->span, sizeof own);
  if (span->kind != TRACE_SERVER) {
    if (getrandom (raw, sizeof raw, 0) == sizeof raw)
      text_hex (raw, sizeof raw, own);
    parent = context->span;
  }
  json_object_set_new (json, "spanId", json_string (own));
  if (*parent)
    json_object_set_new (json, "parentSpanId", json_string (parent));
}

/* A line with its newline; the caller frees.  NULL: out of memory. */
static char *
span_line (const struct trace_span *span)
{
  auto_json json_t *json = json_object ();
  auto_free char *failure = NULL, *text = NULL;

  ids_put (json, span);
  json_object_set_new (json, "name", json_string (span->name));
  json_object_set_new (json, "kind", json_integer (span->kind));
  time_put (json, "startTimeUnixNano", span->began_ns);
  time_put (json, "endTimeUnixNano", span->ended_ns);
  json_object_set (json, "attributes", span->attributes);
  if (span->failure) {
    failure = text_escape (span->failure,
                           strnlen (span->failure, FAILURE_MAX));
    json_object_set_new (json, "status",
                         json_pack ("{s:i, s:s}", "code", 2, "message",
                                    failure ? failure : ""));
  }
  text = json_text (json);
  return text ? text_printf ("%s\n", text) : NULL;
}

void
trace_send (struct trace *trace, const struct trace_span *span)
{
  auto_free char *line = NULL;
  size_t size;
  ssize_t n = -1;

  if (!span->context->sampled)
    return;
  line = span_line (span);
  size = line ? strlen (line) : 0;
  pthread_mutex_lock (&trace->lock);
  if (size > 0 && size <= PIPE_BUF && exporter_ready_locked (trace)) {
    n = write (trace->feed, line, size);
    if (n < 0 && errno == EPIPE)
      exporter_lost_locked (trace);
  }
  if (n < 0)
    trace->sums[DROPPED]++;
  else
    trace->fed++;
  pthread_mutex_unlock (&trace->lock);
}

void
trace_metrics (void *data, struct metrics_page *page)
{
  static const char *const names[] = { "exported", "failed", "dropped" };
  struct trace *trace = data;
  uint64_t sums[N_SUMS];
  int up, i;

  pthread_mutex_lock (&trace->lock);
  if (trace->feed >= 0 && report_take_locked (trace) == 1)
    exporter_lost_locked (trace);
  up = trace->feed >= 0;
  for (i = 0; i < N_SUMS; i++)
    sums[i] = trace->sums[i] + trace->now[i];
  pthread_mutex_unlock (&trace->lock);
  metrics_page_family (page, "coffer_otlp_spans_total", "counter",
                       "Spans, by what became of them.");
  for (i = 0; i < N_SUMS; i++)
    metrics_page_value (page, "outcome", names[i], (double) sums[i]);
  metrics_page_family (page, "coffer_otlp_exporter_up", "gauge",
                       "Whether the process that sends spans runs.");
  metrics_page_value (page, NULL, NULL, up);
}
