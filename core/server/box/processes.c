/* SPDX-License-Identifier: Apache-2.0 */
/* Starting, showing and stopping processes; processes-attach.c has their
 * streams. */

#include <config.h>

#include <signal.h>
#include <string.h>

#include <coffer/buffer.h>
#include <coffer/fd.h>

#include "base/text.h"
#include "sandbox/host.h"
#include "server/box/exec.h"
#include "server/box/processes.h"
#include "server/box/sessions.h"
#include "server/observe.h"
#include "server/server.h"

#define WORKSPACE "/workspace"
#define KEPT_MAX 256            /* of a session, with those that have ended */
/* Of each: what is kept of a session must be read again (store.c), which has
 * its bounds. */
#define SPEC_MAX 65536          /* bytes of what is shown */
#define WORDS_MAX 768           /* arguments and variables */
#define STOP_MS 5000            /* between asking and ending */
#define STEP_MS 20
#define CALL_MS 20000

static int
bad (struct error **err, const char *field, const char *what)
{
  error_set (err, E_INVALID, 0, "%s: %s", field, what);
  error_detail (err, "field", json_string (field));
  return -1;
}

static void
process_free (struct box_process *process)
{
  json_decref (process->spec);
  free (process->id);
  free (process->exec);
  free (process);
}

void
box_processes_free (struct box_process *list)
{
  struct box_process *next;

  for (; list; list = next) {
    next = list->next;
    process_free (list);
  }
}

static struct box_process *
process_new (const char *id, const char *exec, const json_t *spec,
             int64_t started_ns)
{
  struct box_process *process = calloc (1, sizeof *process);

  if (process == NULL)
    return NULL;
  process->id = strdup (id);
  process->exec = strdup (exec);
  process->spec = json_deep_copy (spec);
  process->started_ns = started_ns;
  process->seen.seq = 1;
  if (process->id && process->exec && process->spec)
    return process;
  process_free (process);
  return NULL;
}

json_t *
box_processes_save (const struct box_process *list)
{
  json_t *out = json_array ();

  for (; list; list = list->next)
    json_array_append_new (out, json_pack ("{s:s, s:s, s:O, s:I}", "id",
                                           list->id, "exec", list->exec,
                                           "spec", list->spec, "started_ns",
                                           (json_int_t) list->started_ns));
  return out;
}

struct box_process *
box_processes_load (const json_t *json)
{
  struct box_process *list = NULL, **link = &list;
  const json_t *item;
  size_t i;

  json_array_foreach (json, i, item) {
    const char *id = json_string_value (json_object_get (item, "id"));
    const char *exec = json_string_value (json_object_get (item, "exec"));
    const json_t *spec = json_object_get (item, "spec");

    if (id && exec && json_is_object (spec)
        && (*link = process_new (id, exec, spec, json_integer_value (
                                   json_object_get (item, "started_ns")))))
      link = &(*link)->next;
  }
  return list;
}

struct box_process *
box_process_find_locked (const struct box_session *session, const char *id)
{
  struct box_process *process;

  for (process = session->processes; process; process = process->next)
    if (strcmp (process->id, id) == 0)
      return process;
  return NULL;
}

int
box_process_unknown (const char *id, struct error **err)
{
  error_set (err, E_EXEC_UNKNOWN, 0, "there is no process %s in this session",
             id);
  error_detail (err, "process_id", json_string (id));
  return -1;
}

/* ---- what they are ------------------------------------------------------- */

/* The log's facts of it; NULL: its log was cleared away, so that it is over. */
static json_t *
facts_of (struct box *box, const struct box_session *session,
          const struct box_process *process)
{
  auto_exec_log struct exec_log *log = NULL;

  if (exec_log_find (execs_logs (box->server->execs), session->sandbox,
                     process->exec, &log, NULL) < 0)
    return NULL;
  return exec_log_info (log);
}

static int
is_running (const json_t *facts)
{
  const char *state = json_string_value (json_object_get (facts, "state"));

  return state && strcmp (state, "running") == 0;
}

static void
copy (json_t *to, const char *key, const json_t *from, const char *from_key)
{
  json_t *value = json_object_get (from, from_key);

  json_object_set_new (to, key, value ? json_incref (value) : json_null ());
}

static json_t *
process_json_locked (struct box *box, const struct box_session *session,
                     const struct box_process *process)
{
  auto_json json_t *facts = facts_of (box, session, process);
  json_t *json = json_deep_copy (process->spec);

  json_object_set_new (json, "session_id", json_string (session->id));
  json_object_set_new (json, "process_id", json_string (process->id));
  json_object_set_new (json, "status", json_string (is_running (facts)
                                                      ? "running"
                                                      : "exited"));
  json_object_set_new (json, "attached", json_boolean (process->attached));
  json_object_set_new (json, "started_at",
                       json_real ((double) (process->started_ns / 1000000)
                                  / 1000));
  copy (json, "exit_code", facts, "status");
  copy (json, "stdout", facts, "stdout");
  copy (json, "stderr", facts, "stderr");
  return json;
}

json_t *
box_processes_json (struct box *box, const struct box_session *session)
{
  json_t *json = json_object ();
  const struct box_process *process;

  for (process = session->processes; process; process = process->next)
    json_object_set_new (json, process->id,
                         process_json_locked (box, session, process));
  return json;
}

int
box_processes_running (struct box *box, const struct box_session *session)
{
  const struct box_process *process;
  int n = 0;

  for (process = session->processes; process; process = process->next) {
    auto_json json_t *facts = facts_of (box, session, process);

    n += is_running (facts);
  }
  return n;
}

int
box_process_info (struct box *box, const struct box_session *session,
                  const char *id, json_t **info, struct error **err)
{
  struct box_process *process;
  int r = 0;

  pthread_mutex_lock (&box->lock);
  process = box_process_find_locked (session, id);
  if (process)
    *info = process_json_locked (box, session, process);
  else
    r = box_process_unknown (id, err);
  pthread_mutex_unlock (&box->lock);
  return r;
}

/* ---- starting ------------------------------------------------------------ */

struct starting {
  const char *id, *cwd;
  struct coffer_strings argv, env;
  json_t *spec;
};

static void
starting_fini (struct starting *starting)
{
  coffer_strings_free (&starting->argv);
  coffer_strings_free (&starting->env);
  json_decref (starting->spec);
}
#define auto_starting __attribute__ ((cleanup (starting_fini)))

static int
fields_check (const json_t *body, struct error **err)
{
  static const char *const known[] = { "process_id", "command", "args", "env",
                                       "cwd", NULL };
  const char *key;
  json_t *value;

  json_object_foreach ((json_t *) body, key, value)
    if (!text_list_has (known, key))
      return bad (err, key, "nothing here has this field");
  return 0;
}

static int
arguments_read (const json_t *body, struct starting *out, struct error **err)
{
  const char *command = json_string_value (json_object_get (body, "command"));
  const json_t *args = json_object_get (body, "args"), *arg;
  size_t i;

  if (command == NULL || *command == '\0')
    return bad (err, "command", "a program is needed");
  if (args && !json_is_null (args) && !json_is_array (args))
    return bad (err, "args", "a list of texts is needed");
  coffer_strings_add (&out->argv, command);
  json_array_foreach (args, i, arg) {
    if (!json_is_string (arg))
      return bad (err, "args", "a list of texts is needed");
    coffer_strings_add (&out->argv, json_string_value (arg));
  }
  return out->argv.failed ? error_set (err, E_NO_MEMORY, 0, "out of memory")
                          : 0;
}

/* Of an environment only the names are ever shown. */
static json_t *
names_of (const json_t *env)
{
  json_t *list = json_array ();
  const char *name;
  json_t *value;

  json_object_foreach ((json_t *) env, name, value)
    json_array_append_new (list, json_string (name));
  return list;
}

static int
size_check (const struct starting *starting, struct error **err)
{
  auto_free char *text = json_text (starting->spec);

  if (text == NULL)
    return error_set (err, E_NO_MEMORY, 0, "out of memory");
  if (starting->argv.count + starting->env.count > WORDS_MAX)
    return bad (err, "args", "more than 768 arguments and variables");
  return strlen (text) <= SPEC_MAX
           ? 0 : bad (err, "args", "more than 64 KiB with the command, the"
                      " folder and the names of variables");
}

static int
starting_read (const json_t *body, struct starting *out, struct error **err)
{
  const json_t *id = json_object_get (body, "process_id");
  const json_t *cwd = json_object_get (body, "cwd");
  const json_t *args = json_object_get (body, "args");
  json_t *env = json_object_get (body, "env");

  out->id = id && !json_is_null (id) ? json_string_value (id) : "default";
  out->cwd = cwd && !json_is_null (cwd) ? json_string_value (cwd) : WORKSPACE;
  if (fields_check (body, err) < 0
      || box_id_check ("process_id", out->id, err) < 0
      || arguments_read (body, out, err) < 0
      || box_env_read (env, &out->env, err) < 0)
    return -1;
  if (out->cwd == NULL || *out->cwd != '/')
    return bad (err, "cwd", "an absolute path is needed");
  out->spec = json_pack ("{s:O, s:o, s:s, s:o}", "command",
                         json_object_get (body, "command"), "args",
                         json_is_array (args) ? json_deep_copy (args)
                                              : json_array (),
                         "cwd", out->cwd, "env_keys", names_of (env));
  return out->spec ? size_check (out, err)
                   : error_set (err, E_NO_MEMORY, 0, "out of memory");
}

static int
count_check (struct box *box, const struct box_session *session,
             struct error **err)
{
  const size_t n = box_processes_count (box, session->tenant);

  if (n < box->config.processes)
    return 0;
  error_set (err, E_LIMIT, 0, "%zu processes run, which is as many as may", n);
  error_detail (err, "limit", json_string ("processes"));
  return -1;
}

/* The oldest that have ended make room. */
static void
forget_old_locked (struct box *box, struct box_session *session)
{
  struct box_process **link = &session->processes, *process;
  size_t n = 0;

  for (process = session->processes; process; process = process->next)
    n++;
  while (n > KEPT_MAX && (process = *link)) {
    auto_json json_t *facts = facts_of (box, session, process);

    if (is_running (facts) || process->attached)
      link = &process->next;
    else {
      *link = process->next;
      process_free (process);
      n--;
    }
  }
}

static void
process_drop (struct box *box, struct box_session *session, const char *exec)
{
  struct box_process **link, *process;

  pthread_mutex_lock (&box->lock);
  for (link = &session->processes; (process = *link); link = &process->next)
    if (strcmp (process->exec, exec) == 0) {
      *link = process->next;
      process_free (process);
      break;
    }
  box_store_write (box, session, NULL);
  pthread_mutex_unlock (&box->lock);
}

static int
process_add (struct box *box, struct box_session *session,
             const struct starting *starting, const char *exec,
             struct error **err)
{
  struct box_process *process = process_new (starting->id, exec,
                                             starting->spec,
                                             coffer_realtime_ns ());
  struct box_process **link = &session->processes;
  int r;

  if (process == NULL)
    return error_set (err, E_NO_MEMORY, 0, "out of memory");
  pthread_mutex_lock (&box->lock);
  if (box_process_find_locked (session, starting->id)) {
    r = error_set (err, E_BUSY, 0, "another request started process %s",
                   starting->id);
    process_free (process);
  } else {
    while (*link)
      link = &(*link)->next;
    *link = process;
    forget_old_locked (box, session);
    r = box_store_write (box, session, err);
  }
  pthread_mutex_unlock (&box->lock);
  return r;
}

/* What is reported as failed does not run on. */
static void
process_undo (struct box *box, struct box_session *session, const char *exec)
{
  struct provider_call call = call_in (CALL_MS, -1);

  sandbox_exec_signal (box->server->host, session->sandbox, exec, SIGKILL,
                       &call, NULL);
  process_drop (box, session, exec);
}

static int
is_there (struct box *box, const struct box_session *session, const char *id)
{
  int there;

  pthread_mutex_lock (&box->lock);
  there = box_process_find_locked (session, id) != NULL;
  pthread_mutex_unlock (&box->lock);
  return there;
}

int
box_process_start (struct box *box, struct request *request,
                   struct box_session *session, json_t **info,
                   struct error **err)
{
  auto_starting struct starting starting = { 0 };
  auto_json json_t *begun = NULL;
  struct exec_request ask = { .background = 1 };
  struct execs_spec spec = { .request = &ask, .keeps_input = 1 };
  struct observe_run run = {
    .kind = OBSERVE_EXEC, .provider = session->backend,
    .sandbox = session->sandbox, .session = session->id,
    .began_ns = coffer_now_ns (), .verdict = "started"
  };
  const char *exec;

  if (starting_read (request->body, &starting, err) < 0)
    return -1;
  if (is_there (box, session, starting.id)
      && box_process_stop (box, request, session, starting.id, err) < 0)
    return -1;
  if (count_check (box, session, err) < 0)
    return -1;
  ask.argv = coffer_strings_view (&starting.argv);
  ask.env = coffer_strings_view (&starting.env);
  ask.cwd = starting.cwd;
  if (execs_begin (box->server->execs, session->sandbox, &spec,
                   request->cancel_fd, &begun, err) < 0)
    return -1;
  exec = json_string_value (json_object_get (begun, "exec"));
  run.exec = exec;
  observe_run (request, &run);
  if (process_add (box, session, &starting, exec ? exec : "", err) < 0) {
    process_undo (box, session, exec ? exec : "");
    return -1;
  }
  return box_process_info (box, session, starting.id, info, err);
}

/* ---- stopping ------------------------------------------------------------ */

static int
is_over (struct box *box, const struct box_session *session, const char *exec)
{
  const struct box_process process = { .exec = (char *) exec };
  auto_json json_t *facts = facts_of (box, session, &process);

  return !is_running (facts);
}

/* Until it has ended, or so long: 1 when it has. */
static int
over_wait (struct box *box, const struct request *request,
           const struct box_session *session, const char *exec, int64_t ms)
{
  const int64_t until = deadline_in (ms);
  int64_t now;

  while (!is_over (box, session, exec)) {
    now = coffer_now_ns ();
    if (now >= until)
      return 0;
    /* A client that has gone does not hinder the end. */
    coffer_wait_fd (-1, 0, now + STEP_MS * 1000000, -1);
    (void) request;
  }
  return 1;
}

static char *
exec_of (struct box *box, const struct box_session *session, const char *id)
{
  struct box_process *process;
  char *exec = NULL;

  pthread_mutex_lock (&box->lock);
  process = box_process_find_locked (session, id);
  if (process)
    exec = strdup (process->exec);
  pthread_mutex_unlock (&box->lock);
  return exec;
}

/* Its input ends, then it is asked, then it is ended. */
int
box_process_stop (struct box *box, struct request *request,
                  struct box_session *session, const char *id,
                  struct error **err)
{
  static const int signals[] = { SIGTERM, SIGKILL };
  auto_free char *exec = exec_of (box, session, id);
  struct provider_call call = call_in (CALL_MS, -1);
  size_t i;

  if (exec == NULL)
    return box_process_unknown (id, err);
  if (!is_over (box, session, exec))
    execs_close_input (box->server->execs, session->sandbox, exec, &call,
                       NULL);
  for (i = 0; i < 2 && !is_over (box, session, exec); i++) {
    sandbox_exec_signal (box->server->host, session->sandbox, exec,
                         signals[i], &call, NULL);
    over_wait (box, request, session, exec, STOP_MS);
  }
  if (!is_over (box, session, exec))
    return error_set (err, E_BUSY, 0, "process %s did not end", id);
  process_drop (box, session, exec);
  return 0;
}
