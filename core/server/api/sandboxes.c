/* SPDX-License-Identifier: Apache-2.0 */
/* /api/v1/sandboxes: made, listed, looked at, extended, paused, ended.  What is
 * printed is what `coffer sandbox ... --json` prints. */

#include <config.h>

#include <string.h>

#include <coffer/fd.h>

#include "base/text.h"
#include "sandbox/execs.h"
#include "server/api/create.h"
#include "server/api/own.h"
#include "server/api/idempotency.h"
#include "server/observe.h"
#include "server/surfaces.h"

#define LIST_LIMIT 100
#define LIST_MAX 1000
#define METADATA_MAX 16

/* ---- making --------------------------------------------------------------- */

json_t *
create_json (const struct sandbox_record *record, json_t *take_applied)
{
  return json_pack ("{s:s, s:s, s:s?, s:s, s:I, s:I, s:o?}", "id", record->id,
                    "provider", record->provider, "native_id",
                    record->native_id, "state",
                    sandbox_state_name (record->state), "created_ns",
                    (json_int_t) record->created_ns, "expires_ns",
                    (json_int_t) record->expires_ns, "applied", take_applied);
}

static int
created_reply (struct request *request, const char *id, json_t *take_body,
               struct error **err)
{
  auto_free char *place = text_printf ("/api/v1/sandboxes/%s", id);

  if (!place) {
    json_decref (take_body);
    return error_set (err, E_NO_MEMORY, 0, "a reply");
  }
  return reply_json (request, 201, take_body, err) < 0
             || reply_header (request, "Location", place, err) < 0
           ? -1 : 0;
}

/* What an earlier request of this key has made, before it could answer. */
static int
created_before (struct request *request, const char *id, struct error **err)
{
  struct provider_call call = request_call (request);
  static const char *const keys[] = { "provider", "native_id", "state",
                                      "created_ns", "expires_ns" };
  auto_json json_t *info = NULL;
  json_t *body, *value;
  size_t i;

  if (sandbox_info (request->server->host, id, &call, &info, err) < 0)
    return -1;
  body = json_pack ("{s:s}", "id", id);
  for (i = 0; i < sizeof keys / sizeof keys[0]; i++)
    if ((value = json_object_get (info, keys[i])))
      json_object_set (body, keys[i], value);
  json_object_set (body, "applied", info);
  return created_reply (request, id, body, err);
}

/* A request may name anything: only what could be a name is told to those who
 * watch. */
static const char *
name_of (const char *word)
{
  return word && text_is_id (word) ? word : NULL;
}

int
create_make (struct request *request, const struct sandbox_request *spec,
             const struct provider_sink *sink, struct sandbox_record **record,
             json_t **applied, struct error **err)
{
  struct provider_call call = request_call (request);
  struct observe_run run = { .kind = OBSERVE_CREATE,
                             .provider = name_of (spec->provider),
                             .profile = name_of (spec->profile),
                             .began_ns = coffer_now_ns () };
  int r;

  if (sink)
    call.sink = *sink;
  r = sandbox_create (request->server->host, spec, &call, record, applied,
                      err);
  if (r == 0) {
    run.provider = (*record)->provider;
    run.sandbox = (*record)->id;
  }
  run.verdict = r == 0 ? "ok" : observe_verdict (err ? *err : NULL);
  observe_run (request, &run);
  return r;
}

int
create_reply (struct request *request, const struct sandbox_record *record,
              json_t *take_applied, struct error **err)
{
  return created_reply (request, record->id,
                        create_json (record, take_applied), err);
}

/* A reply that is kept for a key is one that is there at once. */
static int
wants_lines (const struct request *request)
{
  const char *accept = request_header (request, "Accept");

  return accept && strstr (accept, "application/x-ndjson")
         && !request_header (request, "Idempotency-Key");
}

static int
create (struct request *request, struct error **err)
{
  auto_api_spec struct api_spec spec = { 0 };
  auto_sandbox_record struct sandbox_record *record = NULL;
  struct host *host = request->server->host;
  json_t *applied = NULL;
  int again = 0, gone;

  if (api_spec_read (request, &spec, err) < 0
      || idempotency_sandbox (request, &spec.request.id, &again, err) < 0)
    return -1;
  if (again)
    return created_before (request, spec.request.id, err);
  if (wants_lines (request))
    return create_follow (request, &spec, err);
  if (create_make (request, &spec.request, NULL, &record, &applied, err) < 0)
    return -1;
  if (create_reply (request, record, applied, err) == 0)
    return 0;
  /* Nobody is told of it: what is reported as failed is not there. */
  sandbox_kill (host, NULL, record->id, NULL, &gone, NULL);
  return -1;
}

/* ---- listing -------------------------------------------------------------- */

/* metadata=NAME=VALUE, as often as it is said.  One that is left out would show
 * more than was asked for. */
static int
metadata_wanted (const struct request *request, const char **out,
                 struct error **err)
{
  size_t n = 0;

  while (n < METADATA_MAX
         && (out[n] = request_query_nth (request, "metadata", n)))
    n++;
  out[n] = NULL;
  return n < METADATA_MAX || !request_query_nth (request, "metadata", n)
           ? 0 : error_set (err, E_REQUEST, 0, "metadata is there more than %d"
                            " times", METADATA_MAX);
}

static int
list_check (const struct sandbox_filter *filter, struct error **err)
{
  size_t i;

  for (i = 0; filter->metadata && filter->metadata[i]; i++)
    if (filter->metadata[i][0] == '=' || !strchr (filter->metadata[i], '='))
      return error_set (err, E_REQUEST, 0, "metadata is NAME=VALUE");
  if (filter->after && !sandbox_id_valid (filter->after))
    return error_set (err, E_REQUEST, 0, "after is the id of a sandbox");
  return 0;
}

static int
list (struct request *request, struct error **err)
{
  const char *metadata[METADATA_MAX + 1] = { NULL };
  struct sandbox_filter filter = {
    .tenant = request->caller.tenant,
    .provider = request_query (request, "provider"),
    .state = request_query (request, "state"),
    .after = request_query (request, "after"),
    .metadata = metadata
  };
  auto_json json_t *rows = NULL;
  uint64_t limit = LIST_LIMIT;
  json_t *body, *last;
  int more;

  if (metadata_wanted (request, metadata, err) < 0
      || request_query_u64 (request, "limit", 1, LIST_MAX, &limit, err) < 0
      || list_check (&filter, err) < 0)
    return -1;
  filter.limit = limit;
  if (sandbox_select (request->server->host, &filter, &rows, &more, err) < 0)
    return -1;
  body = json_pack ("{s:O}", "sandboxes", rows);
  last = json_array_get (rows, json_array_size (rows) - 1);
  if (more && last)
    json_object_set (body, "next", json_object_get (last, "id"));
  return reply_json (request, 200, body, err);
}

/* ---- one ------------------------------------------------------------------ */

static int
info (struct request *request, struct error **err)
{
  struct provider_call call = request_call (request);
  json_t *body = NULL;
  const char *id;

  if (own_sandbox (request, &id, err) < 0
      || sandbox_info (request->server->host, id, &call, &body, err) < 0)
    return -1;
  return reply_json (request, 200, body, err);
}

struct extension {
  uint64_t ttl_ms;
};

static int
extend (struct request *request, struct error **err)
{
  static const struct field table[] = {
    { "ttl", field_duration, 0 }, { "ttl_ms", field_u64, 0 },
    { NULL, NULL, 0 }
  };
  struct provider_call call = request_call (request);
  struct extension extension = { 0 };
  json_t *body = NULL;
  const char *id;

  if (own_sandbox (request, &id, err) < 0
      || fields_read (request->body, table, &extension, err) < 0)
    return -1;
  if (json_object_size (request->body) != 1)
    return field_fail ("ttl", err, "says how long it lives from now: one of "
                       "ttl and ttl_ms");
  if (sandbox_extend (request->server->host, id, extension.ttl_ms, &call,
                      &body, err) < 0)
    return -1;
  return reply_json (request, 200, body, err);
}

static int
change (struct request *request,
        int (*how) (struct host *, const char *, const struct provider_call *,
                    json_t **, struct error **),
        struct error **err)
{
  struct provider_call call = request_call (request);
  json_t *body = NULL;
  const char *id;

  if (own_sandbox (request, &id, err) < 0
      || fields_none (request->body, err) < 0
      || how (request->server->host, id, &call, &body, err) < 0)
    return -1;
  return reply_json (request, 200, body, err);
}

static int
pause_it (struct request *request, struct error **err)
{
  return change (request, sandbox_pause, err);
}

static int
resume (struct request *request, struct error **err)
{
  return change (request, sandbox_resume, err);
}

static int
end (struct request *request, struct error **err)
{
  struct provider_call call = request_call (request);
  const char *id;
  int gone = 0;

  if (own_sandbox (request, &id, err) < 0
      || sandbox_kill (request->server->host, NULL, id, &call, &gone, err) < 0)
    return -1;
  execs_sandbox_gone (request->server->execs, id);
  return reply_json (request, 200,
                     json_pack ("{s:s, s:b}", "id", id, "already_gone", gone),
                     err);
}

#define SANDBOX "/api/v1/sandboxes/{id}"
const struct route api_sandbox_routes[] = {
  { "POST", "/api/v1/sandboxes", RIGHT_RUN, ROUTE_JSON | ROUTE_MUTATES,
    "createSandbox", create },
  { "GET", "/api/v1/sandboxes", RIGHT_VIEW, 0, "listSandboxes", list },
  { "GET", SANDBOX, RIGHT_VIEW, 0, "getSandbox", info },
  { "DELETE", SANDBOX, RIGHT_RUN, ROUTE_MUTATES, "deleteSandbox", end },
  { "POST", SANDBOX "/extend", RIGHT_RUN, ROUTE_JSON | ROUTE_MUTATES,
    "extendSandbox", extend },
  { "POST", SANDBOX "/pause", RIGHT_RUN, ROUTE_JSON | ROUTE_MUTATES,
    "pauseSandbox", pause_it },
  { "POST", SANDBOX "/resume", RIGHT_RUN, ROUTE_JSON | ROUTE_MUTATES,
    "resumeSandbox", resume },
  { NULL, NULL, 0, 0, NULL, NULL }
};
