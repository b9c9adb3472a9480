/* SPDX-License-Identifier: Apache-2.0 */
/* The service that runs Python code: POST /execute, GET /healthz, GET /profile.
 *
 * Its replies are older than this server's, and clients know them: code that is
 * refused is 400 with `violations`, a body that does not fit is 422 with
 * `detail`; an error of the code itself is a 200 that says so. */

#include <config.h>

#include <stdlib.h>
#include <string.h>

#include <coffer/fd.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/sha256.h"
#include "sandbox/ready.h"
#include "server/execute/body.h"
#include "server/http.h"
#include "server/observe.h"
#include "server/server.h"
#include "server/surfaces.h"

/* Clients of this service wait 35 s, whatever timeout they ask for. */
#define PATIENCE_MS 35000
/* What making the sandbox, ending it and the way take at most. */
#define MARGIN_MS 1500
#define ANSWER_MS 34000         /* by then it is given up */
#define READY_MOST 8            /* sandboxes made ahead */

static const char *
default_profile (const struct serve_config *config)
{
  const char *name = config->execute_profile ? config->execute_profile
                                             : secure_getenv ("SANDBOX_PROFILE");

  return name && *name ? name : EXECUTE_PROFILE;
}

/* ---- refusals ----------------------------------------------------------- */

static int
reply_detail (struct request *request, json_t *take_detail,
              struct error **err)
{
  return reply_json (request, 422, json_pack ("{s:o}", "detail", take_detail),
                     err);
}

/* What the engine finds wrong with the request is a body that does not fit. */
static int
reply_refused (struct request *request, struct error *take_error,
               struct error **err)
{
  auto_error struct error *error = take_error;
  const char *field = json_string_value (json_object_get (error->details,
                                                          "field"));

  if (error->number == E_NOT_FOUND)
    field = "profile";
  if (!field || (error->number != E_INVALID && error->number != E_PROFILE
                 && error->number != E_NOT_FOUND))
    return error_move (err, steal (error));
  return reply_detail (request,
                       json_pack ("[o]", execute_fault (
                         field, error_message (error), "value_error")),
                       err);
}

/* The interpreter of another service has the same path, and says so by its
 * headers. */
static int
is_for_another (const struct request *request)
{
  return request_header (request, "E2b-Sandbox-Id")
         || request_header (request, "E2b-Sandbox-Port");
}

/* Who waited in the queue until its client cannot be answered in time any more
 * is told to come again, rather than run for nobody. */
static int
check_patience (struct request *request, uint64_t timeout_ms,
                struct error **err)
{
  const int64_t waited = (coffer_now_ns () - request->began_ns) / 1000000;

  if (waited + (int64_t) timeout_ms + MARGIN_MS <= PATIENCE_MS)
    return 0;
  if (reply_header (request, "Retry-After", "1", err) < 0)
    return -1;
  return error_set (err, E_LIMIT, 0, "the queue was too long for a timeout of "
                    "%llu ms", (unsigned long long) timeout_ms);
}

/* ---- POST /execute ------------------------------------------------------ */

static const char *
verdict_of (const struct execute_result *result)
{
  if (result->rejected)
    return "rejected";
  if (json_is_true (json_object_get (result->document, "timed_out")))
    return "timed_out";
  return result->status == 0 ? "ok" : "failed";
}

/* For those who watch: the code is its hash. */
static void
observe (const struct request *request, const struct execute_body *body,
         const struct execute_result *result, const struct error *error,
         int64_t began)
{
  char hex[SHA256_HEX_SIZE];
  const struct observe_run run = {
    .kind = OBSERVE_EXECUTE, .provider = result->provider,
    .profile = body->request.profile, .sandbox = result->sandbox,
    .verdict = error ? observe_verdict (error) : verdict_of (result),
    .began_ns = began, .code_sha256 = hex
  };

  sha256_hex (body->request.code, body->request.code_size, hex);
  observe_run (request, &run);
}

/* Neither the code's time, which is its own, nor its client, who is there. */
static void
name_patience (const struct request *request, struct error **error)
{
  if ((*error)->number != E_EXEC_CANCELLED
      || coffer_now_ns () < request->deadline_ns)
    return;
  error_free (steal (*error));
  error_set (error, E_PROVIDER_TIMEOUT, 0,
             "what the code was to run in was not there in time");
}

/* 0 with the reply, whose status is 400 for code that was refused. */
static int
run_code (struct request *request, const struct execute_body *body,
          struct error **err)
{
  const int64_t began = coffer_now_ns ();
  struct execute_result result = { 0 };
  struct error *error = NULL;
  int r;

  /* Without it each is made when it is asked for. */
  if (!body->request.contained)
    host_ready_begin (request->server->host, READY_MOST, NULL);
  request_hasten (request, request->began_ns + ANSWER_MS * INT64_C (1000000));
  r = execute_run (request->server->host, &body->request, request->cancel_fd,
                   &result, &error);
  if (r < 0)
    name_patience (request, &error);
  observe (request, body, &result, error, began);
  if (r == 0)
    r = reply_json (request, result.rejected ? 400 : 200,
                    json_incref (result.document), err);
  else
    error_move (err, error);
  execute_result_fini (&result);
  return r;
}

static int
run_body (struct request *request, struct execute_body *body,
          struct error **err)
{
  auto_serve_config struct serve_config *config
    = server_config_ref (request->server);
  struct error *error = NULL;

  if (!body->request.profile)
    body->request.profile = default_profile (config);
  body->request.contained = config->execute_contained;
  body->request.tenant = request->caller.tenant;
  body->request.isolated = 1;
  if (execute_check (request->server->host, &body->request, &error) < 0)
    return reply_refused (request, error, err);
  if (check_patience (request, body->request.timeout_ms
                                 ? body->request.timeout_ms
                                 : EXECUTE_TIMEOUT_MS, err) < 0)
    return -1;
  return run_code (request, body, err);
}

static int
execute_post (struct request *request, struct error **err)
{
  struct execute_body body;
  json_t *detail = NULL;
  int r;

  if (is_for_another (request))
    return error_set (err, E_NOT_FOUND, 0, "the code interpreter of a sandbox "
                      "is not served here");
  r = execute_body_read (request->body, &body, &detail, err);
  if (r > 0)
    r = reply_detail (request, detail, err);
  else if (r == 0 && body.blank)
    r = reply_json (request, 400,
                    json_pack ("{s:s}", "error", "No code provided"), err);
  else if (r == 0)
    r = run_body (request, &body, err);
  execute_body_fini (&body);
  return r;
}

/* ---- GET /healthz, GET /profile ----------------------------------------- */

static int
healthz_get (struct request *request, struct error **err)
{
  return reply_json (request, 200, json_pack ("{s:s}", "status", "ok"), err);
}

static int
profile_get (struct request *request, struct error **err)
{
  auto_serve_config struct serve_config *config
    = server_config_ref (request->server);
  const char *name = request_query (request, "name");
  json_t *document = NULL;

  if (execute_describe (request->server->place,
                        name ? name : default_profile (config), &document, err)
        < 0)
    return -1;
  if (config->execute_contained)
    json_object_set_new (json_object_get (document, "scan_stages"), "post",
                         json_pack ("[s,s,s]", "landlock", "seccomp",
                                    "container"));
  return reply_json (request, 200, document, err);
}

const struct route execute_routes[] = {
  { "POST", "/execute", RIGHT_RUN,
    ROUTE_JSON | ROUTE_ANONYMOUS | ROUTE_COSTS_RUN, "execute", execute_post },
  { "GET", "/healthz", RIGHT_NONE, ROUTE_ANONYMOUS, "getHealth", healthz_get },
  { "GET", "/profile", RIGHT_VIEW, ROUTE_ANONYMOUS, "getExecuteProfile",
    profile_get },
  { NULL }
};
