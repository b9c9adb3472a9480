/* SPDX-License-Identifier: Apache-2.0 */
/* /api/v1/sandboxes/{id}/execs: commands that are waited for, with the head and
 * the tail of what they wrote, and commands in the background, with a log. */

#include <config.h>

#include <stddef.h>
#include <string.h>

#include <coffer/fd.h>

#include "base/text.h"
#include "sandbox/exec-capture.h"
#include "sandbox/execs.h"
#include "server/api/fields.h"
#include "server/api/own.h"
#include "server/observe.h"
#include "server/surfaces.h"

/* ---- the body of one ------------------------------------------------------ */

struct exec_body {
  struct exec_request request;  /* borrows from what follows */
  struct coffer_strings argv, env;
  const char *command;
  char *workdir;
  int background, tty, attended;
  int keeps_input;
  char *input;
  size_t input_size;
};

static void
exec_body_fini (struct exec_body *body)
{
  coffer_strings_free (&body->argv);
  coffer_strings_free (&body->env);
  free (body->workdir);
  free (body->input);
}
#define auto_exec_body __attribute__ ((cleanup (exec_body_fini)))

/* true: a pipe that stays open; else its bytes. */
static int
read_stdin (const char *name, const json_t *value, void *out,
            struct error **err)
{
  struct exec_body *body = out;

  if (json_is_boolean (value)) {
    body->keeps_input = json_is_true (value);
    return 0;
  }
  return field_bytes (name, value, &body->input, &body->input_size, err);
}

#define AT(member) offsetof (struct exec_body, member)
static const struct field table[] = {
  { "argv", field_words, AT (argv) },
  { "command", field_text, AT (command) },
  { "env", field_pairs, AT (env) },
  { "workdir", field_path, AT (workdir) },
  { "user", field_text, AT (request.user) },
  { "timeout", field_duration, AT (request.timeout_ms) },
  { "timeout_ms", field_u64, AT (request.timeout_ms) },
  { "background", field_flag, AT (background) },
  { "tty", field_flag, AT (tty) },
  { "attended", field_flag, AT (attended) },
  { "rows", field_u32, AT (request.rows) },
  { "columns", field_u32, AT (request.columns) },
  { "stdin", read_stdin, 0 },
  { NULL, NULL, 0 }
};

static int
command_fill (struct exec_body *body, const json_t *json, struct error **err)
{
  if (json_object_get (json, "argv") && body->command)
    return field_fail ("command", err, "and argv do not go together");
  if (json_object_get (json, "timeout")
      && json_object_get (json, "timeout_ms"))
    return field_fail ("timeout", err, "is said twice, as timeout_ms too");
  if (body->command) {
    coffer_strings_add (&body->argv, "/bin/sh");
    coffer_strings_add (&body->argv, "-c");
    coffer_strings_add (&body->argv, body->command);
  }
  if (body->argv.failed)
    return error_set (err, E_NO_MEMORY, 0, "a command");
  if (body->argv.count == 0)
    return field_fail ("argv", err, "a command is needed: argv or command");
  body->request.argv = coffer_strings_view (&body->argv);
  body->request.env = body->env.count ? coffer_strings_view (&body->env)
                                      : NULL;
  body->request.cwd = body->workdir;
  return 0;
}

static int
check_streams (const struct exec_body *body, const json_t *json, int waits,
               struct error **err)
{
  if (waits && (body->tty || body->keeps_input))
    return field_fail (body->tty ? "tty" : "stdin", err,
                       "is for a command in the background");
  if (body->tty && json_object_get (json, "stdin"))
    return field_fail ("stdin", err, "of a command on a terminal is the "
                       "terminal");
  if (!body->tty && (json_object_get (json, "rows")
                     || json_object_get (json, "columns")))
    return field_fail ("rows", err, "and columns go with tty");
  return 0;
}

/* *waits: the reply is its end. */
static int
exec_body_read (const struct request *request, struct exec_body *body,
                int *waits, struct error **err)
{
  const char *query = request_query (request, "wait");

  body->background = -1;
  *waits = query && strcmp (query, "0") != 0;
  if (query && strcmp (query, "0") != 0 && strcmp (query, "1") != 0)
    return error_set (err, E_REQUEST, 0, "wait is 0 or 1");
  if (fields_read (request->body, table, body, err) < 0
      || command_fill (body, request->body, err) < 0)
    return -1;
  if (*waits && body->background == 1)
    return field_fail ("background", err, "and wait do not go together");
  *waits |= body->background == 0;
  return check_streams (body, request->body, *waits, err);
}

/* ---- starting one --------------------------------------------------------- */

static json_t *
waited_json (const char *id, struct exec_capture *capture)
{
  json_t *out = capture_json (&capture->out);
  json_t *err = capture_json (&capture->err);

  return json_pack ("{s:s, s:s, s:i, s:o, s:o, s:o}", "sandbox", id, "exec",
                    capture->result.exec, "status",
                    exec_exit_status (&capture->result), "exit",
                    exec_result_json (&capture->result), "stdout", out,
                    "stderr", err);
}

static void
run_seen (const struct request *request, const char *id, const char *exec,
          const char *provider, int64_t began_ns, const char *verdict)
{
  observe_run (request, &(struct observe_run){ .kind = OBSERVE_EXEC,
                                               .provider = provider,
                                               .sandbox = id, .exec = exec,
                                               .verdict = verdict,
                                               .began_ns = began_ns });
}

static const char *
verdict_of (const struct exec_result *result)
{
  return result->timed_out ? "timed_out"
         : exec_exit_status (result) == 0 ? "ok" : "failed";
}

static int
run_waited (struct request *request, const char *id,
            const struct exec_body *body, struct error **err)
{
  struct exec_capture capture = { .request = &body->request,
                                  .input = body->input,
                                  .input_size = body->input_size };
  int64_t began = coffer_now_ns ();
  int r;

  capture.out.hold = capture.err.hold = request_output (request);
  r = sandbox_exec_capture (request->server->host, id, &capture,
                            request->cancel_fd, err);
  run_seen (request, id, capture.result.exec, capture.provider, began,
            r < 0 ? observe_verdict (err ? *err : NULL)
                  : verdict_of (&capture.result));
  if (r == 0)
    r = reply_json (request, 200, waited_json (id, &capture), err);
  exec_result_fini (&capture.result);
  capture_fini (&capture.out);
  capture_fini (&capture.err);
  return r;
}

static int
run_background (struct request *request, const char *id,
                const struct exec_body *body, struct error **err)
{
  const struct execs_spec spec = {
    .request = &body->request, .tty = body->tty,
    .keeps_input = body->keeps_input, .attended = body->attended,
    .input = body->input,
    .input_size = body->input_size
  };
  auto_free char *place = NULL;
  int64_t began = coffer_now_ns ();
  json_t *info = NULL;
  int r = execs_begin (request->server->execs, id, &spec, request->cancel_fd,
                       &info, err);

  run_seen (request, id,
            json_string_value (json_object_get (info, "exec")),
            json_string_value (json_object_get (info, "provider")), began,
            r < 0 ? observe_verdict (err ? *err : NULL) : "started");
  if (r < 0)
    return -1;
  place = text_printf ("/api/v1/sandboxes/%s/execs/%s", id,
                       json_string_value (json_object_get (info, "exec")));
  return reply_json (request, 201, info, err) < 0
             || (place && reply_header (request, "Location", place, err) < 0)
           ? -1 : 0;
}

static int
start (struct request *request, struct error **err)
{
  auto_exec_body struct exec_body body = { 0 };
  const char *id;
  int waits;

  if (own_sandbox (request, &id, err) < 0
      || exec_body_read (request, &body, &waits, err) < 0)
    return -1;
  return waits ? run_waited (request, id, &body, err)
               : run_background (request, id, &body, err);
}

/* ---- which there are ------------------------------------------------------ */

static int
has_exec (const json_t *list, const json_t *wanted)
{
  json_t *item;
  size_t i;

  json_array_foreach (list, i, item)
    if (json_equal (json_object_get (item, "exec"),
                    json_object_get (wanted, "exec")))
      return 1;
  return 0;
}

/* Those with a log, and what else their provider knows. */
static int
all_execs (struct request *request, const char *id, json_t **out,
           struct error **err)
{
  struct provider_call call = request_call (request);
  auto_json json_t *known = NULL, *logged = NULL;
  json_t *item;
  size_t i;

  if (sandbox_exec_list (request->server->host, id, &call, &known, err) < 0
      || exec_logs_list (execs_logs (request->server->execs), id, &logged, err)
           < 0)
    return -1;
  json_array_foreach (known, i, item)
    if (!has_exec (logged, item)) {
      json_object_set_new (item, "sandbox", json_string (id));
      json_array_append (logged, item);
    }
  *out = steal (logged);
  return 0;
}

static int
list (struct request *request, struct error **err)
{
  json_t *execs = NULL;
  const char *id;

  if (own_sandbox (request, &id, err) < 0
      || all_execs (request, id, &execs, err) < 0)
    return -1;
  return reply_json (request, 200, json_pack ("{s:o}", "execs", execs), err);
}

static int
info (struct request *request, struct error **err)
{
  auto_exec_log struct exec_log *log = NULL;
  auto_error struct error *error = NULL;
  auto_json json_t *execs = NULL;
  const char *id;
  json_t *item;
  size_t i;

  if (own_sandbox (request, &id, err) < 0)
    return -1;
  if (exec_log_find (execs_logs (request->server->execs), id,
                     request->params[1], &log, &error) == 0)
    return reply_json (request, 200, exec_log_info (log), err);
  if (error->number != E_EXEC_UNKNOWN
      || all_execs (request, id, &execs, err) < 0)
    return error->number != E_EXEC_UNKNOWN ? error_move (err, steal (error))
                                           : -1;
  json_array_foreach (execs, i, item) {
    const char *exec = json_string_value (json_object_get (item, "exec"));

    if (exec && strcmp (exec, request->params[1]) == 0)
      return reply_json (request, 200, json_incref (item), err);
  }
  return error_set (err, E_EXEC_UNKNOWN, 0, "no command %.64s in %s",
                    request->params[1], id);
}

/* ---- while it runs -------------------------------------------------------- */

static int
input (struct request *request, struct error **err)
{
  uint64_t written = 0;
  const char *id;

  if (own_sandbox (request, &id, err) < 0
      || execs_write (request->server->execs, id, request->params[1],
                      request->body_fd, request->cancel_fd, &written, err) < 0)
    return -1;
  if (!request_body_complete (request))
    return error_set (err, E_REQUEST, 0, "the body was cut short after %llu "
                      "bytes, which the command has",
                      (unsigned long long) written);
  return reply_json (request, 200,
                     json_pack ("{s:s, s:s, s:I}", "sandbox", id, "exec",
                                request->params[1], "bytes",
                                (json_int_t) written), err);
}

static json_t *
named (const char *id, const struct request *request)
{
  return json_pack ("{s:s, s:s}", "sandbox", id, "exec", request->params[1]);
}

static int
close_input (struct request *request, struct error **err)
{
  struct provider_call call = request_call (request);
  const char *id;

  if (own_sandbox (request, &id, err) < 0
      || fields_none (request->body, err) < 0
      || execs_close_input (request->server->execs, id, request->params[1],
                            &call, err) < 0)
    return -1;
  return reply_json (request, 200, named (id, request), err);
}

static int
read_signal (const char *name, const json_t *value, void *out,
             struct error **err)
{
  int number = json_is_integer (value)
                 ? (int) json_integer_value (value)
                 : json_is_string (value)
                     ? exec_signal_number (json_string_value (value)) : 0;

  if (number < 1 || number > 64
      || (json_is_integer (value) && json_integer_value (value) != number))
    return field_fail (name, err, "must be a number from 1 to 64, or a name"
                       " such as TERM");
  *(int *) out = number;
  return 0;
}

static int
send_signal (struct request *request, struct error **err)
{
  static const struct field fields[] = { { "signal", read_signal, 0 },
                                         { NULL, NULL, 0 } };
  struct provider_call call = request_call (request);
  int number = 0;
  const char *id;
  json_t *body;

  if (own_sandbox (request, &id, err) < 0
      || fields_read (request->body, fields, &number, err) < 0)
    return -1;
  if (number == 0)
    return field_fail ("signal", err, "is needed");
  if (sandbox_exec_signal (request->server->host, id, request->params[1],
                           number, &call, err) < 0)
    return -1;
  body = named (id, request);
  json_object_set_new (body, "signal", json_integer (number));
  return reply_json (request, 200, body, err);
}

struct size_body {
  uint32_t rows, columns;
};

static int
resize (struct request *request, struct error **err)
{
  static const struct field fields[] = {
    { "rows", field_u32, offsetof (struct size_body, rows) },
    { "columns", field_u32, offsetof (struct size_body, columns) },
    { NULL, NULL, 0 }
  };
  struct provider_call call = request_call (request);
  struct size_body size = { 0, 0 };
  const char *id;
  json_t *body;

  if (own_sandbox (request, &id, err) < 0
      || fields_read (request->body, fields, &size, err) < 0
      || execs_resize (request->server->execs, id, request->params[1],
                       size.rows, size.columns, &call, err) < 0)
    return -1;
  body = named (id, request);
  json_object_set_new (body, "rows", json_integer (size.rows));
  json_object_set_new (body, "columns", json_integer (size.columns));
  return reply_json (request, 200, body, err);
}

#define EXECS "/api/v1/sandboxes/{id}/execs"
#define EXEC EXECS "/{exec}"
const struct route api_exec_routes[] = {
  { "POST", EXECS, RIGHT_RUN, ROUTE_JSON | ROUTE_MUTATES | ROUTE_LONG,
    "startExec", start },
  { "GET", EXECS, RIGHT_VIEW, 0, "listExecs", list },
  { "GET", EXEC, RIGHT_VIEW, 0, "getExec", info },
  { "POST", EXEC "/stdin", RIGHT_RUN,
    ROUTE_STREAM | ROUTE_MUTATES | ROUTE_LONG, "writeExecStdin", input },
  { "POST", EXEC "/stdin/close", RIGHT_RUN, ROUTE_JSON | ROUTE_MUTATES,
    "closeExecStdin", close_input },
  { "POST", EXEC "/signal", RIGHT_RUN, ROUTE_JSON | ROUTE_MUTATES,
    "signalExec", send_signal },
  { "POST", EXEC "/resize", RIGHT_RUN, ROUTE_JSON | ROUTE_MUTATES,
    "resizeExec", resize },
  { NULL, NULL, 0, 0, NULL, NULL }
};
