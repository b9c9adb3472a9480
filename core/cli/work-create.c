/* SPDX-License-Identifier: Apache-2.0 */
/* Making a sandbox, by a daemon or here. */

#include <config.h>

#include <string.h>

#include <coffer/fd.h>

#include "base/json.h"
#include "cli/work.h"

/* Beyond what the daemon gives it: for one that is stuck. */
#define PATIENCE_NS ((SANDBOX_CREATE_MS + INT64_C (60000)) * 1000000)

/* ---- here --------------------------------------------------------------- */

static int
create_here (struct cli *cli, const struct sandbox_request *request,
             struct output_progress *progress, json_t **out,
             struct error **err)
{
  auto_sandbox_record struct sandbox_record *record = NULL;
  auto_json json_t *applied = NULL;
  struct provider_call call;
  struct host *host;

  if (cli_host (cli, 0, &host, err) < 0
      || cli_call (SANDBOX_CREATE_MS, progress, &call, err) < 0
      || sandbox_create (host, request, &call, &record, &applied, err) < 0)
    return -1;
  *out = json_pack ("{s:s, s:s, s:s?, s:s, s:I, s:I, s:O?}", "id", record->id,
                    "provider", record->provider, "native_id",
                    record->native_id, "state",
                    sandbox_state_name (record->state), "created_ns",
                    (json_int_t) record->created_ns, "expires_ns",
                    (json_int_t) record->expires_ns, "applied", applied);
  return *out ? 0 : error_set (err, E_NO_MEMORY, 0, "the new sandbox");
}

/* ---- by a daemon -------------------------------------------------------- */

static void
put_mounts (json_t *object, const struct sandbox_request *request)
{
  json_t *array = json_array ();
  size_t i;

  for (i = 0; i < request->n_mounts; i++)
    json_array_append_new (
      array, json_pack ("{s:o, s:s, s:b}", "source",
                        json_bytes (request->mounts[i].source,
                                    strlen (request->mounts[i].source)),
                        "target", request->mounts[i].target, "writable",
                        request->mounts[i].writable));
  if (json_array_size (array))
    json_object_set_new (object, "mounts", array);
  else
    json_decref (array);
}

static json_t *
create_body (const struct sandbox_request *request)
{
  json_t *body = json_object ();

  json_put_text (body, "provider", request->provider);
  json_put_text (body, "template", request->template_name);
  json_put_text (body, "image", request->image);
  json_put_text (body, "profile", request->profile);
  json_put_text (body, "workdir", request->workdir);
  json_put_text (body, "user", request->user);
  json_put_text (body, "network", request->network);
  json_put_texts (body, "allow", request->allow);
  json_put_texts (body, "accept", request->accept);
  json_put_u64 (body, "memory_bytes", request->memory_bytes);
  json_put_u64 (body, "disk_bytes", request->disk_bytes);
  json_put_u64 (body, "inodes", request->inodes);
  json_put_u64 (body, "pids", request->pids);
  json_put_u64 (body, "cpu_millis", request->cpu_millis);
  json_put_u64 (body, "ttl_ms", request->ttl_ms);
  json_put_texts (body, "env", request->env);
  json_put_texts (body, "metadata", request->metadata);
  json_put_texts (body, "ports", request->ports);
  put_mounts (body, request);
  return body;
}

/* What a daemon refuses to its clients, but is our own right: to show what we
 * may read, and to run without a sandbox. */
static int
is_ours (const struct sandbox_request *request)
{
  return request->n_mounts > 0
         || (request->provider && strcmp (request->provider, "host") == 0);
}

/* What the daemon says of how far it is: 1, and *out, once it is there. */
static int
take_event (json_t *event, struct output_progress *progress, json_t **out,
            struct error **err)
{
  const char *kind = json_string_value (json_object_get (event, "event"));
  const json_t *what = json_object_get (event, "what");

  if (kind && strcmp (kind, "created") == 0) {
    *out = json_incref (json_object_get (event, "sandbox"));
    return 1;
  }
  if (kind && strcmp (kind, "failed") == 0
      && client_error (json_object_get (event, "error"), err) < 0)
    return -1;
  output_progress_update (
    progress, (uint64_t) json_integer_value (json_object_get (event, "done")),
    (uint64_t) json_integer_value (json_object_get (event, "total")),
    json_string_value (what));
  return 0;
}

static int
follow (struct client_reply *reply, struct output_progress *progress,
        json_t **out, struct error **err)
{
  coffer_autobuffer struct coffer_buffer lines = { 0 };
  int r = 0;

  while (r == 0) {
    auto_json json_t *event = NULL;

    if (client_line (reply, &lines, &event, err) < 0)
      return -1;
    if (!event)
      return error_set (err, E_CONNECT_FAILED, 0,
                        "the daemon's reply ended without a sandbox");
    r = take_event (event, progress, out, err);
  }
  return r < 0 ? -1 : 0;
}

static int
create_there (struct client *daemon, const struct sandbox_request *sandbox,
              struct output_progress *progress, json_t **out,
              struct error **err)
{
  auto_client_reply struct client_reply reply = { .fd = -1 };
  auto_free char *target = client_target ("/api/v1/sandboxes");
  auto_json json_t *body = create_body (sandbox);
  const struct client_request request = {
    .method = "POST", .target = target, .body = body,
    .accept = "application/x-ndjson, application/json",
    .deadline_ns = coffer_now_ns () + PATIENCE_NS,
    .cancel_fd = sandbox_signals_catch (err)
  };
  int r;

  if (request.cancel_fd < 0
      || client_begin (daemon, &request, &reply, err) < 0)
    return -1;
  r = strcmp (reply.type, "application/x-ndjson") == 0
        ? follow (&reply, progress, out, err)
        : client_json (&reply, out, err);
  if (r == 0)
    work_read_encodings (*out);
  return r;
}

int
work_create (struct cli *cli, const struct sandbox_request *request,
             struct output_progress *progress, json_t **out,
             struct error **err)
{
  auto_json json_t *reply = NULL;
  struct client *daemon = NULL;

  if ((cli->host || !is_ours (request)) && work_daemon (cli, &daemon, err) < 0)
    return -1;
  if (!daemon)
    return create_here (cli, request, progress, out, err);
  if (create_there (daemon, request, progress, &reply, err) < 0)
    return -1;
  if (!json_is_string (json_object_get (reply, "id")))
    return error_set (err, E_CONNECT_FAILED, 0,
                      "the daemon's reply names no sandbox");
  *out = steal (reply);
  return 0;
}
