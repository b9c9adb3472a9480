/* SPDX-License-Identifier: Apache-2.0 */
/* Making a sandbox, by a daemon or here. */

#include <config.h>

#include <string.h>

#include "base/json.h"
#include "cli/work.h"

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
      || cli_call (0, progress, &call, err) < 0
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

int
work_create (struct cli *cli, const struct sandbox_request *request,
             struct output_progress *progress, json_t **out,
             struct error **err)
{
  auto_json json_t *body = NULL, *reply = NULL;
  struct client *daemon = NULL;

  if ((cli->host || !is_ours (request)) && work_daemon (cli, &daemon, err) < 0)
    return -1;
  if (!daemon)
    return create_here (cli, request, progress, out, err);
  body = create_body (request);
  if (work_ask (cli, "POST", client_target ("/api/v1/sandboxes"), body,
                &reply, err) < 0)
    return -1;
  if (!json_is_string (json_object_get (reply, "id")))
    return error_set (err, E_CONNECT_FAILED, 0,
                      "the daemon's reply names no sandbox");
  *out = steal (reply);
  return 0;
}
