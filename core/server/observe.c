/* SPDX-License-Identifier: Apache-2.0 */
/* One place from which all that is seen goes out.  See observe.h. */

#include <config.h>

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <coffer/fd.h>

#include "base/log.h"
#include "base/text.h"
#include "sandbox/execs.h"
#include "sandbox/host.h"
#include "server/audit.h"
#include "server/exchange.h"
#include "server/http.h"
#include "server/observe.h"
#include "server/refusals.h"
#include "server/runs.h"
#include "server/server.h"
#include "server/trace.h"

#define AUDIT_NAME "audit.log"
#define CLIENT_ID_MAX 128

struct observer {
  struct server *server;
  struct metrics *metrics;
  struct errors_ring *errors;
  struct trace *trace;          /* NULL: no spans */
  pthread_rwlock_t lock;        /* audit */
  struct audit *audit;          /* NULL: off */
  struct refusals *refusals;
};

/* ---- opening ------------------------------------------------------------- */

static int
audit_begin (const struct server *server, const struct observe_config *config,
             struct audit **out, struct error **err)
{
  auto_free char *own = text_printf ("%s/" AUDIT_NAME, server->place->state);

  *out = NULL;
  if (config->audit_off)
    return 0;
  if (own == NULL)
    return error_set (err, E_NO_MEMORY, 0, "out of memory");
  return audit_open (&(struct audit_options){
                       .path = config->audit_file ? config->audit_file : own,
                       .size = config->audit_size,
                       .keep = config->audit_keep }, out, err);
}

static int
trace_begin (struct observer *observer, const struct observe_config *config,
             struct error **err)
{
  json_t *settings;

  if (trace_settings (&config->otlp, secure_getenv, &settings, err) < 0)
    return -1;
  if (settings == NULL)
    return 0;
  if (trace_open (observer->server->place, settings, &observer->trace, err)
      < 0)
    return -1;
  return metrics_add_source (observer->metrics, trace_metrics,
                             observer->trace, err);
}

/* Sandboxes of all tenants, as the records have them. */
static void
sandboxes_write (struct observer *observer, struct metrics_page *page)
{
  static const char *const names[] = { "provider", "state", NULL };
  auto_record_list struct record_list list = { 0 };
  struct records *records = host_records (observer->server->host);
  size_t i, j;

  metrics_page_family (page, "coffer_sandboxes", "gauge",
                       "Sandboxes that there are, by the records.");
  if (records == NULL || records_list (records, RECORDS_ALL, &list, NULL) < 0)
    return;
  for (i = 0; i < list.count; i++) {
    struct sandbox_record *first = list.items[i];
    const char *values[] = { first->provider,
                             sandbox_state_name (first->state), NULL };
    size_t n = 0;

    for (j = 0; j < list.count; j++) {
      const struct sandbox_record *other = list.items[j];

      if (other->state != first->state
          || strcmp (other->provider, first->provider) != 0)
        continue;
      if (j < i)
        break;                  /* it was written before */
      n++;
    }
    if (n)
      metrics_page_value_2 (page, names, values, (double) n);
  }
}

static void
server_write (void *data, struct metrics_page *page)
{
  struct observer *observer = data;
  struct server *server = observer->server;
  unsigned running, waiting;

  if (server->connections) {
    metrics_page_family (page, "coffer_http_connections", "gauge",
                         "Connections that are open.");
    metrics_page_value (page, NULL, NULL,
                        (double) connections_count (server->connections));
    metrics_page_family (page, "coffer_http_requests_in_flight", "gauge",
                         "Requests that are being answered.");
    metrics_page_value (page, NULL, NULL,
                        (double) connections_working (server->connections));
  }
  metrics_page_family (page, "coffer_execs", "gauge",
                       "Commands in the background that run.");
  metrics_page_value (page, NULL, NULL, (double) execs_count (server->execs));
  if (server->runs) {
    runs_count (server->runs, &running, &waiting);
    metrics_page_family (page, "coffer_runs_running", "gauge",
                         "Runs that have a place.");
    metrics_page_value (page, NULL, NULL, running);
    metrics_page_family (page, "coffer_runs_waiting", "gauge",
                         "Runs that wait for a place.");
    metrics_page_value (page, NULL, NULL, waiting);
  }
  sandboxes_write (observer, page);
}

static void audit (void *data, json_t *line);

static int
observer_fill (struct observer *observer, const struct observe_config *config,
               struct error **err)
{
  struct server *server = observer->server;
  coffer_autoclose int state = place_open_dir (server->place->state, err);

  if (state < 0 || metrics_new (&observer->metrics, err) < 0
      || metrics_add_source (observer->metrics, metrics_process, NULL, err) < 0
      || metrics_add_source (observer->metrics, server_write, observer, err)
           < 0
      || metrics_add_source (observer->metrics, metrics_warm, server->host,
                             err) < 0
      || errors_ring_open (state, &observer->errors, err) < 0
      || audit_begin (server, config, &observer->audit, err) < 0
      || refusals_new (audit, observer, &observer->refusals, err) < 0)
    return -1;
  return trace_begin (observer, config, err);
}

static void
observer_free (struct observer *observer)
{
  if (observer == NULL)
    return;
  trace_close (observer->trace);
  refusals_free (observer->refusals);
  audit_free (observer->audit);
  errors_ring_free (observer->errors);
  metrics_free (observer->metrics);
  pthread_rwlock_destroy (&observer->lock);
  free (observer);
}

int
observe_open (struct server *server, const struct observe_config *config,
              struct error **err)
{
  struct observer *observer = calloc (1, sizeof *observer);

  if (observer == NULL)
    return error_set (err, E_NO_MEMORY, 0, "out of memory");
  pthread_rwlock_init (&observer->lock, NULL);
  observer->server = server;
  log_set_json (config->log_json);
  if (observer_fill (observer, config, err) < 0) {
    observer_free (observer);
    return -1;
  }
  server->observer = observer;
  return 0;
}

int
observe_reload (struct server *server, const struct observe_config *config,
                struct error **err)
{
  struct observer *observer = server->observer;
  struct audit *audit, *old;

  if (audit_begin (server, config, &audit, err) < 0)
    return -1;
  pthread_rwlock_wrlock (&observer->lock);
  old = observer->audit;
  observer->audit = audit;
  pthread_rwlock_unlock (&observer->lock);
  audit_free (old);
  log_set_json (config->log_json);
  return 0;
}

void
observe_close (struct server *server)
{
  observer_free (server->observer);
  server->observer = NULL;
}

struct metrics *
observe_metrics (struct server *server)
{
  return server->observer->metrics;
}

struct errors_ring *
observe_errors (struct server *server)
{
  return server->observer->errors;
}

/* ---- what lines have in common ------------------------------------------- */

/* The client's own id of a request, when it is a word that logs can bear. */
static const char *
client_id (const struct request *request)
{
  const char *id = request_header (request, "X-Request-Id");
  size_t i;

  if (id == NULL || *id == '\0')
    return NULL;
  for (i = 0; id[i]; i++)
    if (i == CLIENT_ID_MAX
        || (!isalnum ((unsigned char) id[i]) && !strchr ("-_.:/+=", id[i])))
      return NULL;
  return id;
}

static void
bytes_put (json_t *object, const char *key, const char *bytes)
{
  if (bytes && *bytes)
    json_object_set_new (object, key, json_bytes (bytes, strlen (bytes)));
}

static double
milliseconds (int64_t ns)
{
  return ns > 0 ? (double) (ns / 1000) / 1000 : 0;
}

static json_t *
line_new (const struct request *request, const char *event)
{
  json_t *line = json_pack ("{s:s, s:s}", "event", event, "request_id",
                            request->id);

  json_put_text (line, "client_request_id", client_id (request));
  bytes_put (line, "who", request->caller.name);
  bytes_put (line, "tenant", request->caller.tenant);
  return line;
}

static void
audit (void *data, json_t *line)
{
  struct observer *observer = data;
  int failed = 0;

  pthread_rwlock_rdlock (&observer->lock);
  if (observer->audit)
    failed = audit_write (observer->audit, line) < 0;
  pthread_rwlock_unlock (&observer->lock);
  if (failed)
    metrics_count (observer->metrics, METRICS_AUDIT_FAILURES, NULL, 1);
}

static const char *
route_path (const struct request *request)
{
  return request->route ? request->route->path : "none";
}

/* A method that no route has is nobody's label. */
static const char *
method_name (const struct request *request)
{
  static const char *const methods[] = { "GET", "HEAD", "POST", "PUT",
                                         "DELETE", "PATCH", "OPTIONS", NULL };

  return request->method && text_list_has (methods, request->method)
           ? request->method : "other";
}

/* ---- requests ------------------------------------------------------------ */

static void
request_count (struct observer *observer, const struct request *request,
               int status, uint64_t bytes, int64_t ns)
{
  char code[8];
  const char *labels[] = { method_name (request), route_path (request), code };

  snprintf (code, sizeof code, "%03d", status >= 0 && status < 1000 ? status
                                                                    : 0);
  metrics_count (observer->metrics, METRICS_HTTP_REQUESTS, labels, 1);
  metrics_count (observer->metrics, METRICS_HTTP_BYTES, labels, bytes);
  if (!request->route
      || !(request->route->flags & (ROUTE_LONG | ROUTE_UPGRADE)))
    metrics_time (observer->metrics, METRICS_HTTP_SECONDS, labels, ns);
}

/* Never what stands behind the path: a query may have secrets. */
static char *
path_shown (const struct request *request)
{
  const char *uri = exchange_of (request)->uri;

  return strndup (uri, strcspn (uri, "?"));
}

/* One that monitors ask all the time is chatter, while it is well. */
static void
request_log (const struct request *request, int status, uint64_t bytes,
             int64_t ns)
{
  const struct route *route = request->route;
  enum log_level level = LOG_LEVEL_INFO;
  auto_json json_t *line = NULL;
  auto_free char *text = NULL, *path = NULL;

  if (status < 400 && route
      && (route->right == RIGHT_NONE || strcmp (route->path, "/metrics") == 0)
      && strcmp (route->method, "GET") == 0)
    level = LOG_LEVEL_DEBUG;
  if (!log_enabled (level, "http"))
    return;
  path = path_shown (request);
  text = text_printf (
    "%s %s %s %s %s %d %llu %.3fms", request->id,
    request->caller.name ? request->caller.name : "-",
    request->caller.tenant ? request->caller.tenant : "-",
    method_name (request), path ? path : "", status,
    (unsigned long long) bytes, milliseconds (ns));
  if (log_is_json ()) {
    line = line_new (request, "request");
    json_object_set_new (line, "method", json_string (method_name (request)));
    bytes_put (line, "path", path);
    json_object_set_new (line, "route", json_string (route_path (request)));
    json_object_set_new (line, "status", json_integer (status));
    json_object_set_new (line, "bytes", json_u64 (bytes));
    json_object_set_new (line, "duration_ms", json_real (milliseconds (ns)));
  }
  log_fields (level, "http", text, line);
}

/* Which of the path's parts names what: {id} is a sandbox's below
 * /api/v1/sandboxes. */
static void
targets_put (json_t *line, const struct request *request)
{
  static const struct { const char *prefix, *names[2]; } table[] = {
    { "/api/v1/sandboxes/{", { "sandbox", NULL } },
    { "/api/v1/sandboxes/{id}/execs/{", { "sandbox", "exec" } },
    { "/api/v1/providers/{", { "provider", NULL } },
    { "/api/v1/kit/{", { "provider", NULL } },
    { "/api/v1/box/sessions/{", { "session", NULL } },
    { "/api/v1/box/sessions/{session}/processes/{", { "session", "process" } },
  };
  size_t i, j;

  for (i = 0; request->route && i < sizeof table / sizeof table[0]; i++)
    if (strncmp (request->route->path, table[i].prefix,
                 strlen (table[i].prefix)) == 0)
      for (j = 0; j < 2 && table[i].names[j]; j++)
        bytes_put (line, table[i].names[j], request->params[j]);
}

static const char *
status_verdict (int status)
{
  if (status < 100)
    return "cut_off";
  if (status < 400)
    return "ok";
  if (status == 401 || status == 403)
    return "denied";
  return status < 500 ? "refused" : "failed";
}

static int
is_audited (const struct request *request, int status)
{
  const struct route *route = request->route;

  return status == 401 || status == 403
         || (route && ((route->right & ~(unsigned) RIGHT_VIEW)
                       || (route->flags & (ROUTE_MUTATES | ROUTE_COSTS_RUN))));
}

static void
request_audit (struct observer *observer, const struct request *request,
               int status, int64_t ns)
{
  auto_json json_t *line = NULL;

  if (!is_audited (request, status))
    return;
  line = line_new (request, "request");
  json_object_set_new (line, "what",
                       json_string (request->route ? request->route->operation
                                                   : "none"));
  json_object_set_new (line, "method", json_string (method_name (request)));
  json_object_set_new (line, "route", json_string (route_path (request)));
  targets_put (line, request);
  json_object_set_new (line, "duration_ms", json_real (milliseconds (ns)));
  json_object_set_new (line, "status", json_integer (status));
  json_object_set_new (line, "verdict", json_string (status_verdict (status)));
  if (status < 400 || status >= 500
      || refusals_note (observer->refusals, line))
    audit (observer, line);
}

static void
request_trace (struct observer *observer, const struct request *request,
               int status, int64_t now)
{
  auto_json json_t *attributes = json_array ();
  auto_free char *name = text_printf ("%s %s", method_name (request),
                                      route_path (request));
  struct trace_context context;
  struct trace_span span = {
    .context = &context, .kind = TRACE_SERVER, .name = name,
    .began_ns = request->began_ns, .ended_ns = now, .attributes = attributes
  };
  char failure[32];

  trace_context_of (request->id, request_header (request, "traceparent"),
                    &context);
  trace_text (attributes, "http.request.method", method_name (request));
  trace_text (attributes, "http.route", route_path (request));
  trace_number (attributes, "http.response.status_code", status);
  trace_text (attributes, "coffer.request_id", request->id);
  trace_text (attributes, "coffer.tenant", request->caller.tenant);
  if (status < 100 || status >= 500) {
    snprintf (failure, sizeof failure, "%d", status);
    trace_text (attributes, "error.type", failure);
    span.failure = status_verdict (status);
  }
  if (name)
    trace_send (observer->trace, &span);
}

void
observe_request (const struct request *request, int status, uint64_t bytes)
{
  struct observer *observer = request->server->observer;
  const int64_t now = coffer_now_ns ();
  const int64_t ns = now - request->began_ns;

  if (observer == NULL)
    return;
  request_count (observer, request, status, bytes, ns);
  request_log (request, status, bytes, ns);
  request_audit (observer, request, status, ns);
  if (observer->trace)
    request_trace (observer, request, status, now);
}

/* ---- what was done ------------------------------------------------------- */

static const struct {
  const char *name, *span;
  enum metrics_family seconds;
} kinds[] = {
  [OBSERVE_CREATE] = { "create", "sandbox.create", METRICS_CREATE_SECONDS },
  [OBSERVE_EXEC] = { "exec", "sandbox.exec", METRICS_EXEC_SECONDS },
  [OBSERVE_EXECUTE] = { "execute", "execute", METRICS_EXECUTE_SECONDS },
};

/* Code that the guard rejects is none of that: it has run as far as that. */
static int
was_refused (const struct observe_run *run)
{
  return run->verdict && strcmp (run->verdict, "refused") == 0;
}

/* What was refused before there was a sandbox may have named any provider: no
 * series are made of that. */
static const char *
provider_label (const struct observe_run *run)
{
  return run->provider && (run->sandbox || !was_refused (run)) ? run->provider
                                                               : "none";
}

static void
run_count (struct observer *observer, const struct observe_run *run,
           int64_t ns)
{
  const char *provider = provider_label (run);
  const char *labels[] = { kinds[run->kind].name, provider,
                           run->verdict ? run->verdict : "none" };

  metrics_count (observer->metrics, METRICS_RUNS, labels, 1);
  labels[0] = provider;
  if (run->kind == OBSERVE_EXECUTE)
    labels[0] = run->profile ? run->profile : "none";
  metrics_time (observer->metrics, kinds[run->kind].seconds, labels, ns);
}

static void
run_trace (struct observer *observer, const struct request *request,
           const struct observe_run *run, int64_t ended)
{
  auto_json json_t *attributes = json_array ();
  struct trace_context context;
  struct trace_span span = {
    .context = &context, .kind = TRACE_INTERNAL,
    .name = kinds[run->kind].span, .began_ns = run->began_ns,
    .ended_ns = ended, .attributes = attributes
  };

  trace_context_of (request->id, request_header (request, "traceparent"),
                    &context);
  trace_text (attributes, "coffer.provider", run->provider);
  trace_text (attributes, "coffer.profile", run->profile);
  trace_text (attributes, "coffer.sandbox", run->sandbox);
  trace_text (attributes, "coffer.exec", run->exec);
  trace_text (attributes, "coffer.verdict", run->verdict);
  if (run->verdict && strcmp (run->verdict, "failed") == 0)
    span.failure = run->verdict;
  trace_send (observer->trace, &span);
}

void
observe_run (const struct request *request, const struct observe_run *run)
{
  struct observer *observer = request->server->observer;
  const int64_t ended = run->ended_ns ? run->ended_ns : coffer_now_ns ();
  auto_json json_t *line = NULL;

  if (observer == NULL)
    return;
  run_count (observer, run, ended - run->began_ns);
  line = line_new (request, kinds[run->kind].name);
  bytes_put (line, "provider", run->provider);
  bytes_put (line, "profile", run->profile);
  bytes_put (line, "session", run->session);
  bytes_put (line, "sandbox", run->sandbox);
  bytes_put (line, "exec", run->exec);
  json_put_text (line, "code_sha256", run->code_sha256);
  json_object_set_new (line, "duration_ms",
                       json_real (milliseconds (ended - run->began_ns)));
  json_put_text (line, "verdict", run->verdict);
  if (!was_refused (run) || refusals_note (observer->refusals, line))
    audit (observer, line);
  if (observer->trace)
    run_trace (observer, request, run, ended);
}

const char *
observe_verdict (const struct error *error)
{
  const struct error_info *info = error ? error_lookup (error->number) : NULL;

  if (error && error->number == E_EXEC_CANCELLED)
    return "cancelled";
  if (error && (error->number == E_EXEC_TIMEOUT
                || error->number == E_PROVIDER_TIMEOUT))
    return "timed_out";
  return info && info->http_status < 500 ? "refused" : "failed";
}

/* ---- errors -------------------------------------------------------------- */

/* What a client has done wrong by itself is no news for an operator: a path or
 * a body that is none, a missing right, something that is not there. */
static int
is_kept (const struct error_info *info)
{
  switch (info ? info->http_status : 500) {
  case 400: case 401: case 403: case 404: case 405: case 408: case 411:
  case 413: case 414: case 415: case 421: case 431: case 499:
    return 0;
  default:
    return 1;
  }
}

void
observe_error (const struct request *request, const struct error *error)
{
  struct observer *observer = request->server->observer;
  char code[16];
  const char *labels[] = { code };

  if (observer == NULL)
    return;
  snprintf (code, sizeof code, "E%04d", error->number);
  metrics_count (observer->metrics, METRICS_ERRORS, labels, 1);
  if (is_kept (error_lookup (error->number)))
    errors_ring_add (observer->errors, error, request->caller.tenant,
                     request->id);
}
