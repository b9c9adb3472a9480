/* SPDX-License-Identifier: Apache-2.0 */
/* /api/v1/box: for chat platforms, whose clients know replies as
 * {"code": 0, "msg": "ok", "data": …} and errors as {"code", "msg"}.  Errors have
 * `error` besides, as everywhere. */

#include <config.h>

#include <stdio.h>
#include <string.h>

#include <coffer/fd.h>

#include "server/box/exec.h"
#include "server/box/processes.h"
#include "server/box/sessions.h"
#include "server/server.h"

#define ERRORS_SHOWN 50
#define RECENT_NS (INT64_C (3600) * 1000000000)

typedef int inner (struct box *box, struct request *request, json_t **data,
                   struct error **err);

/* ---- envelopes ----------------------------------------------------------- */

static int
reply_error (struct request *request, struct error *take_error,
             struct error **err)
{
  auto_error struct error *error = take_error;
  const struct error_info *info = error_lookup (error->number);
  json_t *json = error_to_json (error);

  json_object_set_new (json, "code", json_integer (error->number));
  json_object_set_new (json, "msg", json_string (error_message (error)));
  observe_error (request, error);
  if (error->number == E_LIMIT)
    reply_header (request, "Retry-After", "1", NULL);
  return reply_json (request, info ? info->http_status : 500, json, err);
}

static int
reply_data (struct request *request, json_t *take_data, struct error **err)
{
  return reply_json (request, 200,
                     json_pack ("{s:i, s:s, s:o}", "code", 0, "msg", "ok",
                                "data", take_data), err);
}

static int
answer (struct request *request, inner *work, struct error **err)
{
  struct error *error = NULL;
  json_t *data = NULL;

  if (work (request->server->box, request, &data, &error) < 0)
    return reply_error (request, error, err);
  return reply_data (request, data, err);
}

/* ---- what there is ------------------------------------------------------- */

static json_t *
limits_json (const struct box *box)
{
  return json_pack ("{s:I, s:I}", "max_sessions",
                    (json_int_t) box->config.sessions,
                    "max_managed_processes",
                    (json_int_t) box->config.processes);
}

static json_t *
backend_json (struct box *box, struct error **err)
{
  auto_free char *id = NULL;
  json_t *readiness = NULL;

  if (box_backend (box, &id, &readiness, err) < 0)
    return json_pack ("{s:n, s:b}", "name", "available", 0);
  return json_pack ("{s:s, s:b, s:o}", "name", id, "available", 1,
                    "readiness", readiness);
}

static size_t
recent_errors (const struct request *request)
{
  return errors_ring_count (observe_errors (request->server),
                            request->caller.tenant,
                            coffer_realtime_ns () - RECENT_NS);
}

static int
status (struct box *box, struct request *request, json_t **data,
        struct error **err)
{
  const char *tenant = request->caller.tenant;
  auto_error struct error *why = NULL;
  json_t *backend = backend_json (box, &why);
  json_t *json = json_pack (
    "{s:b, s:b, s:b, s:o, s:I, s:I, s:f, s:o, s:I}", "available", why == NULL,
    "enabled", 1, "hidden", 0, "backend", backend, "active_sessions",
    (json_int_t) box_sessions_count (box, tenant), "managed_processes",
    (json_int_t) box_processes_count (box, tenant), "session_ttl_sec",
    (double) box->config.idle_ms / 1000, "limits", limits_json (box),
    "recent_error_count", (json_int_t) recent_errors (request));

  if (why)
    json_object_set_new (json, "connector_error",
                         json_string (error_message (why)));
  *data = json;
  return json ? 0 : error_set (err, E_NO_MEMORY, 0, "out of memory");
}

static int
sessions (struct box *box, struct request *request, json_t **data,
          struct error **err)
{
  (void) err;
  *data = box_sessions_json (box, request->caller.tenant);
  return 0;
}

/* The same ring as /api/v1/errors, by the names that these clients know. */
static int
errors (struct box *box, struct request *request, json_t **data,
        struct error **err)
{
  auto_json json_t *list = errors_ring_list (observe_errors (request->server),
                                             request->caller.tenant,
                                             ERRORS_SHOWN);
  json_t *item;
  size_t i;

  (void) box;
  json_array_foreach (list, i, item)
    json_object_set (item, "timestamp", json_object_get (item, "time"));
  *data = steal (list);
  return *data ? 0 : error_set (err, E_NO_MEMORY, 0, "out of memory");
}

/* ---- sessions ------------------------------------------------------------ */

static int
session_create (struct box *box, struct request *request, json_t **data,
                struct error **err)
{
  static const char *const besides[] = { "session_id", NULL };
  const char *id = json_string_value (json_object_get (request->body,
                                                       "session_id"));
  auto_json json_t *given = NULL;
  struct box_session *session;

  if (box_id_check ("session_id", id, err) < 0
      || box_spec_read (request->body, besides, &given, err) < 0
      || box_session_check (box, request, id, err) < 0
      || box_session_enter (box, request, id, given, &session, err) < 0)
    return -1;
  box_session_leave (box, session);
  return box_session_json (box, request->caller.tenant, id, data, err);
}

static int
session_show (struct box *box, struct request *request, json_t **data,
              struct error **err)
{
  return box_session_json (box, request->caller.tenant, request->params[0],
                           data, err);
}

static int
session_delete (struct box *box, struct request *request, json_t **data,
                struct error **err)
{
  if (box_session_close (box, request, request->params[0], err) < 0)
    return -1;
  *data = json_pack ("{s:s}", "deleted", request->params[0]);
  return 0;
}

/* ---- processes ----------------------------------------------------------- */

static int
process_start (struct box *box, struct request *request, json_t **data,
               struct error **err)
{
  struct box_session *session;
  int r;

  if (box_session_find (box, request, request->params[0], &session, err) < 0)
    return -1;
  r = box_process_start (box, request, session, data, err);
  box_session_leave (box, session);
  return r;
}

static int
process_show (struct box *box, struct request *request, json_t **data,
              struct error **err)
{
  struct box_session *session;
  int r;

  if (box_session_find (box, request, request->params[0], &session, err) < 0)
    return -1;
  r = box_process_info (box, session, request->params[1], data, err);
  box_session_leave (box, session);
  return r;
}

static int
process_stop (struct box *box, struct request *request, json_t **data,
              struct error **err)
{
  struct box_session *session;
  int r;

  if (box_session_find (box, request, request->params[0], &session, err) < 0)
    return -1;
  r = box_process_stop (box, request, session, request->params[1], err);
  box_session_leave (box, session);
  *data = r < 0 ? NULL : json_pack ("{s:s}", "stopped", request->params[1]);
  return r;
}

static int
process_input (struct box *box, struct request *request, json_t **data,
               struct error **err)
{
  struct box_session *session;
  int r;

  if (box_session_find (box, request, request->params[0], &session, err) < 0)
    return -1;
  r = box_process_input (box, request, session, request->params[1], err);
  box_session_leave (box, session);
  *data = r < 0 ? NULL : json_pack ("{s:b}", "written", 1);
  return r;
}

static int
process_attach (struct request *request, struct error **err)
{
  struct box *box = request->server->box;
  struct error *error = NULL;
  struct box_session *session;

  if (box_session_find (box, request, request->params[0], &session, &error)
        == 0
      && box_process_attach (box, request, session, request->params[1],
                             &error) == 0)
    return 0;
  return reply_error (request, error, err);
}

static int
process_log (struct request *request, struct error **err)
{
  struct box *box = request->server->box;
  struct error *error = NULL;
  struct box_session *session;
  int r;

  if (box_session_find (box, request, request->params[0], &session, &error)
      < 0)
    return reply_error (request, error, err);
  r = box_process_log (box, request, session, request->params[1], &error);
  box_session_leave (box, session);
  return r < 0 ? reply_error (request, error, err) : 0;
}

/* ---- the table ----------------------------------------------------------- */

#define ANSWERS(X)                                                            \
  X (status) X (sessions) X (errors) X (box_exec) X (session_create)          \
  X (session_show) X (session_delete) X (process_start) X (process_show)      \
  X (process_stop) X (process_input)
#define X(name)                                                               \
  static int name##_route (struct request *request, struct error **err)      \
  {                                                                           \
    return answer (request, name, err);                                       \
  }
ANSWERS (X)
#undef X

#define BOX "/api/v1/box"
#define SESSION BOX "/sessions/{session}"
#define PROCESS SESSION "/processes/{process}"

const struct route box_routes[] = {
  { "GET", BOX "/status", RIGHT_VIEW, 0, "getBoxStatus", status_route },
  { "GET", BOX "/sessions", RIGHT_VIEW, 0, "listBoxSessions", sessions_route },
  { "GET", BOX "/errors", RIGHT_VIEW, 0, "listBoxErrors", errors_route },
  { "POST", BOX "/exec", RIGHT_RUN, ROUTE_JSON | ROUTE_MUTATES | ROUTE_LONG,
    "boxExec", box_exec_route },
  { "POST", BOX "/sessions", RIGHT_RUN, ROUTE_JSON | ROUTE_MUTATES,
    "createBoxSession", session_create_route },
  { "GET", SESSION, RIGHT_VIEW, 0, "getBoxSession", session_show_route },
  { "DELETE", SESSION, RIGHT_RUN, ROUTE_MUTATES, "deleteBoxSession",
    session_delete_route },
  { "POST", SESSION "/processes", RIGHT_RUN, ROUTE_JSON | ROUTE_MUTATES,
    "startBoxProcess", process_start_route },
  { "GET", PROCESS, RIGHT_VIEW, 0, "getBoxProcess", process_show_route },
  { "DELETE", PROCESS, RIGHT_RUN, ROUTE_MUTATES, "stopBoxProcess",
    process_stop_route },
  { "GET", PROCESS "/attach", RIGHT_RUN, ROUTE_LONG | ROUTE_UPGRADE,
    "attachBoxProcess", process_attach },
  { "POST", PROCESS "/stdin", RIGHT_RUN, ROUTE_TEXT, "writeBoxProcess",
    process_input_route },
  { "GET", PROCESS "/log", RIGHT_RUN, 0, "getBoxProcessLog", process_log },
  { NULL }
};
