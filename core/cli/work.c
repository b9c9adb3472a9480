/* SPDX-License-Identifier: Apache-2.0 */
/* Asking a daemon, or doing it here. */

#include <config.h>

#include "cli/work.h"

#include <string.h>

#include <coffer/fd.h>

#include "base/json.h"
#include "base/log.h"
#include "base/text.h"

/* A daemon bounds what it does by itself; this is for one that is stuck. */
#define DAEMON_PATIENCE_NS (INT64_C (15) * 60 * 1000000000)

/* ---- the daemon --------------------------------------------------------- */

static int
open_named (struct cli *cli, struct error **err)
{
  if (strncmp (cli->host, "unix:", 5) != 0) {
    error_set (err, E_INVALID, 0, "--host %s is not unix:PATH", cli->host);
    error_hint (err, "the socket of the system's daemon is "
                "unix:/run/coffer/serve.sock");
    return -1;
  }
  return client_open (cli->host + 5, &cli->daemon, err);
}

/* One that cannot be used is as none: the records are the same. */
static int
open_own (struct cli *cli, struct error **err)
{
  auto_error struct error *error = NULL;
  const struct place *place;

  if (cli_place (cli, &place, err) < 0)
    return -1;
  if (client_find (place, &cli->daemon, &error) < 0)
    log_event (LOG_LEVEL_WARNING, "cli", "the daemon is not asked: %s",
               error_message (error));
  return 0;
}

int
work_daemon (struct cli *cli, struct client **out, struct error **err)
{
  if (!cli->daemon_sought && cli->command->flags & COMMAND_DAEMON
      && (cli->host ? open_named (cli, err) : open_own (cli, err)) < 0)
    return -1;
  cli->daemon_sought = 1;
  *out = cli->daemon;
  return 0;
}

/* Bytes are printed from {"b64": …}, and leave both programs in the same
 * form. */
void
work_read_encodings (json_t *value)
{
  json_t *item, *data;
  const char *key;
  size_t i;

  json_array_foreach (value, i, item)
    work_read_encodings (item);
  if (!json_is_object (value))
    return;
  data = json_object_get (value, "data");
  item = json_object_get (value, "encoding");
  if (json_object_size (value) == 2 && json_is_string (data)
      && json_is_string (item)
      && strcmp (json_string_value (item), "base64") == 0) {
    json_incref (data);
    json_object_clear (value);
    json_object_set_new (value, "b64", data);
    return;
  }
  json_object_foreach (value, key, item)
    work_read_encodings (item);
}

int
work_ask (struct cli *cli, const char *method, char *take_target,
          const json_t *body, json_t **out, struct error **err)
{
  auto_free char *target = take_target;
  const struct client_request request = {
    .method = method, .target = target, .body = body,
    .deadline_ns = coffer_now_ns () + DAEMON_PATIENCE_NS,
    .cancel_fd = sandbox_signals_catch (err)
  };

  if (request.cancel_fd < 0
      || client_call (cli->daemon, &request, out, err) < 0)
    return -1;
  work_read_encodings (*out);
  return 0;
}

/* A reply that lacks what every such reply has. */
static int
strange (struct error **err)
{
  return error_set (err, E_CONNECT_FAILED, 0,
                    "the daemon's reply is not what was asked for");
}

static int
ask_object (struct cli *cli, const char *method, char *take_target,
            const json_t *body, json_t **out, struct error **err)
{
  auto_json json_t *reply = NULL;

  if (work_ask (cli, method, take_target, body, &reply, err) < 0)
    return -1;
  if (!json_is_object (reply))
    return strange (err);
  *out = steal (reply);
  return 0;
}

#define SANDBOX "/api/v1/sandboxes/%s"

/* ---- records ------------------------------------------------------------ */

/* All pages. */
static int
ask_list (struct cli *cli, json_t **out, struct error **err)
{
  auto_json json_t *all = json_array ();
  auto_free char *after = strdup ("");
  json_t *list;

  while (after) {
    auto_json json_t *page = NULL;
    char *target = *after
      ? client_target ("/api/v1/sandboxes?limit=500&after=%s", after)
      : client_target ("/api/v1/sandboxes?limit=500");

    if (ask_object (cli, "GET", target, NULL, &page, err) < 0)
      return -1;
    list = json_object_get (page, "sandboxes");
    if (!json_is_array (list))
      return strange (err);
    json_array_extend (all, list);
    free (after);
    after = NULL;
    if (json_is_string (json_object_get (page, "next")))
      after = strdup (json_string_value (json_object_get (page, "next")));
  }
  *out = steal (all);
  return 0;
}

int
work_list (struct cli *cli, json_t **out, struct error **err)
{
  struct provider_call call;
  struct client *daemon;
  struct host *host;

  if (work_daemon (cli, &daemon, err) < 0)
    return -1;
  if (daemon)
    return ask_list (cli, out, err);
  return cli_begin (cli, &host, &call, err) < 0
             || sandbox_list (host, out, err) < 0 ? -1 : 0;
}

int
work_info (struct cli *cli, const char *id, json_t **out, struct error **err)
{
  struct provider_call call;
  struct client *daemon;
  struct host *host;

  if (work_daemon (cli, &daemon, err) < 0)
    return -1;
  if (daemon)
    return ask_object (cli, "GET", client_target (SANDBOX, id), NULL, out,
                       err);
  return cli_begin (cli, &host, &call, err) < 0
             || sandbox_info (host, id, &call, out, err) < 0 ? -1 : 0;
}

/* A daemon knows what is recorded.  Of anything else every provider is asked
 * here, and one that is named does it without a record. */
static int
ask_kill (struct cli *cli, const char *id, int *already_gone, int *unknown,
          struct error **err)
{
  auto_json json_t *reply = NULL;
  struct error *error = NULL;

  if (ask_object (cli, "DELETE", client_target (SANDBOX, id), NULL, &reply,
                  &error) == 0) {
    *already_gone = json_is_true (json_object_get (reply, "already_gone"));
    return 0;
  }
  *unknown = error->number == E_UNKNOWN_SANDBOX;
  if (!*unknown)
    return error_move (err, error);
  error_free (error);
  *already_gone = 1;
  return 0;
}

int
work_kill (struct cli *cli, const char *id, int *already_gone,
           struct error **err)
{
  struct provider_call call;
  struct client *daemon = NULL;
  struct host *host;
  int unknown = 0;

  if ((cli->host || !cli->provider) && work_daemon (cli, &daemon, err) < 0)
    return -1;
  if (daemon && ask_kill (cli, id, already_gone, &unknown, err) < 0)
    return -1;
  if (daemon && (cli->host || !unknown))
    return 0;
  return cli_begin (cli, &host, &call, err) < 0
             || sandbox_kill (host, cli->provider, id, &call, already_gone,
                              err) < 0 ? -1 : 0;
}

/* ---- life --------------------------------------------------------------- */

int
work_extend (struct cli *cli, const char *id, uint64_t ttl_ms, json_t **out,
             struct error **err)
{
  auto_json json_t *body = NULL;
  struct provider_call call;
  struct client *daemon;
  struct host *host;

  if (work_daemon (cli, &daemon, err) < 0)
    return -1;
  if (!daemon)
    return cli_begin (cli, &host, &call, err) < 0
               || sandbox_extend (host, id, ttl_ms, &call, out, err) < 0
             ? -1 : 0;
  body = json_pack ("{s:o}", "ttl_ms", json_u64 (ttl_ms));
  return ask_object (cli, "POST", client_target (SANDBOX "/extend", id), body,
                     out, err);
}

/* What one function does here and one request asks of a daemon. */
static int
do_or_ask (struct cli *cli, const char *id,
           int (*here) (struct host *, const char *,
                        const struct provider_call *, json_t **,
                        struct error **),
           const char *method, char *take_target, json_t **out,
           struct error **err)
{
  auto_free char *target = take_target;
  struct provider_call call;
  struct client *daemon;
  struct host *host;

  if (work_daemon (cli, &daemon, err) < 0)
    return -1;
  if (daemon)
    return ask_object (cli, method, steal (target), NULL, out, err);
  return cli_begin (cli, &host, &call, err) < 0
             || here (host, id, &call, out, err) < 0 ? -1 : 0;
}

int
work_pause (struct cli *cli, const char *id, json_t **out, struct error **err)
{
  return do_or_ask (cli, id, sandbox_pause, "POST",
                    client_target (SANDBOX "/pause", id), out, err);
}

int
work_resume (struct cli *cli, const char *id, json_t **out,
             struct error **err)
{
  return do_or_ask (cli, id, sandbox_resume, "POST",
                    client_target (SANDBOX "/resume", id), out, err);
}

int
work_metrics (struct cli *cli, const char *id, json_t **out,
              struct error **err)
{
  return do_or_ask (cli, id, sandbox_metrics, "GET",
                    client_target (SANDBOX "/metrics", id), out, err);
}

/* ---- commands that were started before ---------------------------------- */

/* What a daemon knows beyond what this process would is left out. */
static json_t *
exec_row (const json_t *exec)
{
  static const char *const keys[] = { "exec", "state", "started_ns",
                                      "background" };
  json_t *row = json_object (), *value;
  size_t i;

  for (i = 0; i < sizeof keys / sizeof *keys; i++)
    if ((value = json_object_get (exec, keys[i])))
      json_object_set (row, keys[i], value);
  return row;
}

static int
ask_execs (struct cli *cli, const char *id, json_t **out, struct error **err)
{
  auto_json json_t *reply = NULL, *rows = json_array ();
  json_t *list, *exec;
  size_t i;

  if (ask_object (cli, "GET", client_target (SANDBOX "/execs", id), NULL,
                  &reply, err) < 0)
    return -1;
  list = json_object_get (reply, "execs");
  if (!json_is_array (list))
    return strange (err);
  json_array_foreach (list, i, exec)
    json_array_append_new (rows, exec_row (exec));
  *out = steal (rows);
  return 0;
}

int
work_exec_list (struct cli *cli, const char *id, json_t **out,
                struct error **err)
{
  struct provider_call call;
  struct client *daemon;
  struct host *host;

  if (work_daemon (cli, &daemon, err) < 0)
    return -1;
  if (daemon)
    return ask_execs (cli, id, out, err);
  return cli_begin (cli, &host, &call, err) < 0
             || sandbox_exec_list (host, id, &call, out, err) < 0 ? -1 : 0;
}

int
work_exec_signal (struct cli *cli, const char *id, const char *exec,
                  int number, struct error **err)
{
  auto_json json_t *body = NULL, *reply = NULL;
  struct provider_call call;
  struct client *daemon;
  struct host *host;

  if (work_daemon (cli, &daemon, err) < 0)
    return -1;
  if (!daemon)
    return cli_begin (cli, &host, &call, err) < 0
               || sandbox_exec_signal (host, id, exec, number, &call, err) < 0
             ? -1 : 0;
  body = json_pack ("{s:i}", "signal", number);
  return work_ask (cli, "POST",
                   client_target (SANDBOX "/execs/%s/signal", id, exec), body,
                   &reply, err);
}
