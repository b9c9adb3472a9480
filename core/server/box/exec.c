/* SPDX-License-Identifier: Apache-2.0 */
/* One command in a session, which is made when there is none. */

#include <config.h>

#include <string.h>

#include <coffer/buffer.h>
#include <coffer/fd.h>

#include "base/text.h"
#include "sandbox/exec-capture.h"
#include "server/box/exec.h"
#include "server/box/output.h"
#include "server/observe.h"
#include "server/server.h"

#define WORKSPACE "/workspace"
#define TIMEOUT_SECONDS 30
#define TIMEOUT_MAX 3600
#define PREVIEW_LIMIT BOX_OUTPUT_LIMIT

/* What of the body is not of the spec. */
const char *const box_exec_fields[] = {
  "session_id", "cmd", "workdir", "timeout_sec", "env", "output_limit", NULL
};

struct box_exec {
  const char *session, *cmd, *workdir;
  uint64_t timeout_ms;
  size_t limit;
  struct coffer_strings env;
  struct exec_capture capture;
};

static void
box_exec_fini (struct box_exec *exec)
{
  coffer_strings_free (&exec->env);
  capture_fini (&exec->capture.out);
  capture_fini (&exec->capture.err);
  exec_result_fini (&exec->capture.result);
}
#define auto_box_exec __attribute__ ((cleanup (box_exec_fini)))

/* ---- reading ------------------------------------------------------------- */

static int
bad (struct error **err, const char *field, const char *what)
{
  error_set (err, E_INVALID, 0, "%s: %s", field, what);
  error_detail (err, "field", json_string (field));
  return -1;
}

int
box_env_read (const json_t *env, struct coffer_strings *out,
              struct error **err)
{
  const char *name;
  json_t *value;

  if (env && !json_is_null (env) && !json_is_object (env))
    return bad (err, "env", "an object of texts is needed");
  json_object_foreach ((json_t *) env, name, value) {
    if (!json_is_string (value) || *name == '\0' || strchr (name, '='))
      return bad (err, "env", "an object of texts is needed, whose names are "
                  "not empty and have no =");
    coffer_strings_printf (out, "%s=%s", name, json_string_value (value));
  }
  return out->failed ? error_set (err, E_NO_MEMORY, 0, "out of memory") : 0;
}

static int
times_read (const json_t *body, struct box_exec *out, struct error **err)
{
  const json_t *timeout = json_object_get (body, "timeout_sec");
  const json_t *limit = json_object_get (body, "output_limit");
  double seconds = TIMEOUT_SECONDS;

  if (timeout && !json_is_null (timeout)) {
    seconds = json_number_value (timeout);
    if (!json_is_number (timeout) || seconds < 0.001 || seconds > TIMEOUT_MAX)
      return bad (err, "timeout_sec", "a number above 0 is needed, at most "
                  "3600");
  }
  out->timeout_ms = (uint64_t) (seconds * 1000);
  out->limit = BOX_OUTPUT_LIMIT;
  if (limit && !json_is_null (limit)) {
    if (!json_is_integer (limit) || json_integer_value (limit) < 1
        || json_integer_value (limit) > BOX_OUTPUT_LIMIT_MAX)
      return bad (err, "output_limit", "a whole number from 1 to 1048576 is "
                  "needed");
    out->limit = (size_t) json_integer_value (limit);
  }
  return 0;
}

static int
exec_read (const json_t *body, struct box_exec *out, struct error **err)
{
  const json_t *workdir = json_object_get (body, "workdir");

  out->session = json_string_value (json_object_get (body, "session_id"));
  out->cmd = json_string_value (json_object_get (body, "cmd"));
  out->workdir = workdir && !json_is_null (workdir)
                   ? json_string_value (workdir) : WORKSPACE;
  if (box_id_check ("session_id", out->session, err) < 0)
    return -1;
  if (out->cmd == NULL || *out->cmd == '\0')
    return bad (err, "cmd", "a command is needed");
  if (out->workdir == NULL || *out->workdir != '/')
    return bad (err, "workdir", "an absolute path is needed");
  if (times_read (body, out, err) < 0)
    return -1;
  return box_env_read (json_object_get (body, "env"), &out->env, err);
}

/* ---- running ------------------------------------------------------------- */

/* A working folder that is not there is made, by who is going to work there. */
static int
run (struct box *box, struct request *request, struct box_session *session,
     struct box_exec *exec, struct error **err)
{
  static const char enter[]
    = "mkdir -p -- \"$1\" && cd -- \"$1\" && exec /bin/sh -lc \"$2\"";
  const int here = strcmp (exec->workdir, WORKSPACE) == 0;
  const char *const plain[] = { "/bin/sh", "-lc", exec->cmd, NULL };
  const char *const moved[] = { "/bin/sh", "-c", enter, "sh", exec->workdir,
                                exec->cmd, NULL };
  const struct exec_request ask = {
    .argv = here ? plain : moved, .env = coffer_strings_view (&exec->env),
    .cwd = WORKSPACE, .timeout_ms = exec->timeout_ms
  };

  exec->capture.request = &ask;
  exec->capture.out.hold = exec->capture.err.hold = request_output (request);
  return sandbox_exec_capture (box->server->host, session->sandbox,
                               &exec->capture, request->cancel_fd, err);
}

static void
exec_observe (const struct request *request,
              const struct box_session *session, const struct box_exec *exec,
              int64_t began, const struct error *error)
{
  char code[SHA256_HEX_SIZE];
  struct observe_run seen = {
    .kind = OBSERVE_EXEC, .provider = session->backend,
    .sandbox = session->sandbox, .exec = exec->capture.result.exec,
    .session = session->id, .began_ns = began, .code_sha256 = code,
    .verdict = "ok"
  };

  sha256_hex (exec->cmd, strlen (exec->cmd), code);
  if (error)
    seen.verdict = observe_verdict (error);
  else if (exec->capture.result.timed_out)
    seen.verdict = "timed_out";
  else if (exec_exit_status (&exec->capture.result) != 0)
    seen.verdict = "failed";
  observe_run (request, &seen);
}

/* ---- telling ------------------------------------------------------------- */

static json_t *
preview_of (const json_t *out, const json_t *err)
{
  coffer_autobuffer struct coffer_buffer text = { 0 };

  if (json_string_length (out))
    coffer_buffer_printf (&text, "stdout:\n%s", json_string_value (out));
  if (json_string_length (err))
    coffer_buffer_printf (&text, "%sstderr:\n%s", text.size ? "\n" : "",
                          json_string_value (err));
  return json_string (text.data ? text.data : "");
}

static json_t *
stderr_of (struct box_exec *exec, int *truncated)
{
  auto_free char *text = NULL;

  if (exec->capture.result.failure && exec->capture.err.total == 0)
    return json_string (exec->capture.result.failure);
  if (exec->capture.result.timed_out && exec->capture.err.total == 0) {
    text = text_printf ("Command timed out after %g seconds.",
                        (double) exec->timeout_ms / 1000);
    return json_string (text ? text : "");
  }
  return box_output (&exec->capture.err, exec->limit, truncated);
}

static json_t *
exec_json (const struct box_session *session, struct box_exec *exec)
{
  const struct exec_result *result = &exec->capture.result;
  const int status = exec_exit_status (result);
  int cut_out = 0, cut_err = 0;
  json_t *json = json_object ();
  json_t *out = box_output (&exec->capture.out, exec->limit, &cut_out);
  json_t *err = stderr_of (exec, &cut_err);

  json_object_set_new (json, "session_id", json_string (session->id));
  json_object_set_new (json, "backend", json_string (session->backend));
  json_object_set_new (json, "backend_name", json_string (session->backend));
  json_object_set_new (json, "status",
                       json_string (result->timed_out ? "timed_out"
                                                      : "completed"));
  json_object_set_new (json, "ok", json_boolean (status == 0));
  json_object_set_new (json, "exit_code", result->timed_out
                                            ? json_null ()
                                            : json_integer (status));
  json_object_set_new (json, "signal", result->signal
                                         ? json_integer (result->signal)
                                         : json_null ());
  json_object_set_new (json, "oom", json_boolean (result->oom));
  json_object_set_new (json, "preview", preview_of (out, err));
  json_object_set_new (json, "stdout", out);
  json_object_set_new (json, "stderr", err);
  json_object_set_new (json, "stdout_bytes", json_u64 (capture_bytes (&exec->capture.out)));
  json_object_set_new (json, "stderr_bytes", json_u64 (capture_bytes (&exec->capture.err)));
  json_object_set_new (json, "stdout_truncated", json_boolean (cut_out));
  json_object_set_new (json, "stderr_truncated", json_boolean (cut_err));
  json_object_set_new (json, "truncated", json_boolean (cut_out || cut_err));
  if (cut_out || cut_err)
    json_object_set_new (json, "truncated_by", json_string ("bytes"));
  json_object_set_new (json, "duration_ms",
                       json_integer ((json_int_t) result->duration_us / 1000));
  return json;
}

int
box_exec (struct box *box, struct request *request, json_t **out,
          struct error **err)
{
  auto_box_exec struct box_exec exec = { 0 };
  auto_json json_t *given = NULL;
  struct box_session *session;
  int tries, r;

  if (box_spec_read (request->body, box_exec_fields, &given, err) < 0
      || exec_read (request->body, &exec, err) < 0)
    return -1;
  for (tries = 0;; tries++) {
    struct error *error = NULL;
    int64_t began;

    if (box_session_enter (box, request, exec.session, given, &session, err)
        < 0)
      return -1;
    began = coffer_now_ns ();
    r = run (box, request, session, &exec, &error);
    exec_observe (request, session, &exec, began, error);
    if (r == 0)
      break;
    /* Its sandbox may have ended since: then there is a new one. */
    if (!box_session_lost (box, session, error) || exec.capture.result.exec
        || tries > 0)
      return error_move (err, error);
    error_free (error);
  }
  *out = exec_json (session, &exec);
  box_session_leave (box, session);
  return 0;
}
