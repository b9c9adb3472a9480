/* SPDX-License-Identifier: Apache-2.0 */
/* How commands ended.  A provider is asked by one thread at a time, about all of a
 * sandbox at once, and only as long as that takes: each call that waits is one
 * of those that a provider takes at a time.
 *
 * And what is left of earlier times: at the start, and every while. */

#include "config.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include <coffer/buffer.h>
#include <coffer/fd.h>

#include "base/log.h"
#include "sandbox/execs-private.h"

#define ASK_MS 10000
/* Between two looks: at what goes on with its streams open, and at what has
 * closed them. */
#define OPEN_MS 2000
#define THROUGH_MIN_MS 1
#define THROUGH_MAX_MS 1000
/* A provider that cannot be asked now. */
#define FAILED_MS 1000
#define SWEEP_MS 60000

/* ---- what a provider says ------------------------------------------------- */

struct survey {
  struct coffer_strings running, exited;
};

static void
survey_fini (struct survey *survey)
{
  coffer_strings_free (&survey->running);
  coffer_strings_free (&survey->exited);
}

static int
sink_survey (void *data, const struct contract_record *type, void *record)
{
  struct survey *survey = data;
  const struct coffer_exec_info *info = record;
  int exited;

  if (type->id != COFFER_REC_exec_info || !info->exec)
    return 0;
  exited = info->state && strcmp (info->state, "exited") == 0;
  coffer_strings_add (exited ? &survey->exited : &survey->running,
                      info->exec);
  return 0;
}

static int
has (const struct coffer_strings *strings, const char *word)
{
  size_t i;

  for (i = 0; i < strings->count; i++)
    if (strcmp (strings->items[i], word) == 0)
      return 1;
  return 0;
}

static void
settle (struct execs *execs, struct live_exec *live, json_t *take_facts)
{
  json_object_set_new (take_facts, "ended_ns",
                       json_integer (coffer_realtime_ns ()));
  pthread_mutex_lock (&execs->lock);
  if (!live->settled)
    live->facts = steal (take_facts);
  live->settled = 1;
  pthread_mutex_unlock (&execs->lock);
  json_decref (take_facts);
  pump_wake (execs);
}

static void
settle_lost (struct execs *execs, struct live_exec *live, const char *why)
{
  settle (execs, live, json_pack ("{s:s, s:n, s:n, s:s}", "state", "lost",
                                  "status", "exit", "reason", why));
}

static void
postpone (struct execs *execs, struct live_exec *live, int64_t least_ms)
{
  pthread_mutex_lock (&execs->lock);
  if (!live->through)
    live->pause_ms = OPEN_MS;
  else if (live->pause_ms == 0)
    live->pause_ms = THROUGH_MIN_MS;
  else if (live->pause_ms < THROUGH_MAX_MS)
    live->pause_ms *= 2;
  live->due_ns = deadline_in (live->pause_ms > least_ms ? live->pause_ms
                                                        : least_ms);
  pthread_mutex_unlock (&execs->lock);
}

/* ---- one command ---------------------------------------------------------- */

static void
end_ask (struct execs *execs, struct live_exec *live,
         struct provider *provider)
{
  struct exec_log *log = live->log;
  struct exec_result result;
  auto_error struct error *error = NULL;
  auto_json json_t *info = NULL;

  if (sandbox_exec_end (provider, log->sandbox, log->exec,
                        deadline_in (ASK_MS), -1, &result, &error) < 0) {
    if (error->number == E_EXEC_UNKNOWN
        || error->number == E_UNKNOWN_SANDBOX)
      settle_lost (execs, live, error_message (error));
    else
      postpone (execs, live, FAILED_MS);
  } else {
    info = exec_log_info (log);
    result.timeout_ms = (uint64_t) json_integer_value (
      json_object_get (info, "timeout_ms"));
    settle (execs, live, json_pack ("{s:s, s:i, s:o}", "state", "exited",
                                    "status", exec_exit_status (&result),
                                    "exit", exec_result_json (&result)));
  }
  exec_result_fini (&result);
}

static void
live_judge (struct execs *execs, struct live_exec *live,
            struct provider *provider, const struct survey *survey)
{
  const char *exec = live->log->exec;

  if (has (&survey->exited, exec))
    end_ask (execs, live, provider);
  else if (has (&survey->running, exec))
    postpone (execs, live, 0);
  else
    settle_lost (execs, live, "its provider does not know it any more");
}

/* ---- one sandbox ---------------------------------------------------------- */

/* Those of the same sandbox that are not settled: references. */
static struct live_exec **
mates_take (struct execs *execs, const struct live_exec *of, size_t *count)
{
  struct live_exec **mates, *live;
  size_t n = 0;

  pthread_mutex_lock (&execs->lock);
  mates = reallocarray (NULL, execs->count + 1, sizeof *mates);
  for (live = execs->live; mates && live; live = live->next)
    if (!live->settled && strcmp (live->log->sandbox, of->log->sandbox) == 0) {
      live->refs++;
      mates[n++] = live;
    }
  pthread_mutex_unlock (&execs->lock);
  *count = n;
  return mates;
}

static int
survey_take (struct execs *execs, const struct live_exec *of,
             struct provider **provider, struct survey *survey,
             struct error **err)
{
  struct provider_call call = call_in (ASK_MS, -1);

  call.sink.record = sink_survey;
  call.sink.data = survey;
  if (host_provider_of (execs->options.host, of->provider, of->log->sandbox,
                        provider, err) < 0
      || INVOKE (*provider, &call, err, exec_list,
                 .sandbox = of->log->sandbox) < 0)
    return -1;
  return survey->running.failed || survey->exited.failed
           ? error_set (err, E_NO_MEMORY, 0, "the list of commands") : 0;
}

static void
sandbox_ask (struct execs *execs, const struct live_exec *of)
{
  __attribute__ ((cleanup (survey_fini))) struct survey survey = { 0 };
  auto_error struct error *error = NULL;
  struct provider *provider = NULL;
  auto_free struct live_exec **mates = NULL;
  size_t n = 0, i;

  /* First them: one that is started meanwhile is not in the list. */
  mates = mates_take (execs, of, &n);
  survey_take (execs, of, &provider, &survey, &error);
  for (i = 0; i < n; i++) {
    if (!error)
      live_judge (execs, mates[i], provider, &survey);
    else if (error->number == E_UNKNOWN_SANDBOX
             || error->number == E_UNKNOWN_PROVIDER)
      settle_lost (execs, mates[i], "its sandbox is gone");
    else
      postpone (execs, mates[i], FAILED_MS);
    live_unref (execs, mates[i]);
  }
}

/* ---- the thread ----------------------------------------------------------- */

static int
is_asked_locked (const struct execs *execs, const char *provider)
{
  size_t i;

  for (i = 0; i < ASKERS; i++)
    if (execs->asking[i] && strcmp (execs->asking[i], provider) == 0)
      return 1;
  return 0;
}

/* The one that is due first, of those whose provider nobody asks now; with a
 * reference when it is due now. */
static struct live_exec *
due_locked (struct execs *execs, int64_t *until)
{
  struct live_exec *live, *first = NULL;

  for (live = execs->live; live; live = live->next)
    if (!live->settled && (!first || live->due_ns < first->due_ns)
        && !is_asked_locked (execs, live->provider))
      first = live;
  *until = first ? first->due_ns : INT64_MAX;
  if (!first || first->due_ns > coffer_now_ns ())
    return NULL;
  first->refs++;
  return first;
}

static void
wait_locked (struct execs *execs, int64_t until)
{
  struct timespec at = { until / 1000000000, until % 1000000000 };

  if (until == INT64_MAX)
    pthread_cond_wait (&execs->changed, &execs->lock);
  else
    pthread_cond_timedwait (&execs->changed, &execs->lock, &at);
}

/* There are as many places as threads. */
static size_t
place_locked (const struct execs *execs)
{
  size_t i = 0;

  while (execs->asking[i])
    i++;
  return i;
}

void *
asker_run (void *data)
{
  struct execs *execs = data;
  struct live_exec *due;
  int64_t until;
  size_t place;

  pthread_mutex_lock (&execs->lock);
  while (!execs->stopping) {
    due = due_locked (execs, &until);
    if (!due) {
      wait_locked (execs, until);
      continue;
    }
    place = place_locked (execs);
    execs->asking[place] = due->provider;
    pthread_mutex_unlock (&execs->lock);
    sandbox_ask (execs, due);
    pthread_mutex_lock (&execs->lock);
    execs->asking[place] = NULL;
    /* Others of it may be due by now. */
    pthread_cond_broadcast (&execs->changed);
    pthread_mutex_unlock (&execs->lock);
    live_unref (execs, due);
    pthread_mutex_lock (&execs->lock);
  }
  pthread_mutex_unlock (&execs->lock);
  return NULL;
}

/* ---- what is left of earlier times ---------------------------------------- */

static int
sandbox_is_gone (void *data, const char *sandbox)
{
  struct execs *execs = data;
  auto_sandbox_record struct sandbox_record *record = NULL;
  auto_error struct error *error = NULL;

  return host_find (execs->options.host, sandbox, &record, &error) < 0
         && error->number == E_UNKNOWN_SANDBOX;
}

void *
sweeper_run (void *data)
{
  struct execs *execs = data;
  int64_t next = deadline_in (SWEEP_MS);
  json_t *report;

  pthread_mutex_lock (&execs->lock);
  while (!execs->stopping) {
    if (coffer_now_ns () < next) {
      wait_locked (execs, next);
      continue;
    }
    pthread_mutex_unlock (&execs->lock);
    report = NULL;
    sandbox_prune (execs->options.host, &report, NULL);
    json_decref (report);
    exec_logs_sweep (execs->logs, sandbox_is_gone, execs);
    next = deadline_in (SWEEP_MS);
    pthread_mutex_lock (&execs->lock);
  }
  pthread_mutex_unlock (&execs->lock);
  return NULL;
}

/* Takes the log; with descriptors that were kept, or none. */
static void
adopt (struct execs *execs, struct exec_log *take_log, int fds[KEEPER_FDS])
{
  auto_exec_log struct exec_log *log = take_log;
  auto_json json_t *info = exec_log_info (log);
  const char *provider
    = json_string_value (json_object_get (info, "provider"));
  auto_error struct error *error = NULL;

  exec_log_recover (log);
  /* The facts were written, and the event was not. */
  if (!exec_log_over (log) && json_object_get (info, "ended_ns"))
    exec_log_end (log, json_object ());
  if (live_new (execs, exec_log_ref (log), provider ? provider : "", fds, 1,
                &error) < 0)
    log_event (LOG_LEVEL_WARNING, "exec", "%s %s: %s", log->sandbox,
               log->exec, error_message (error));
}

static void
adopt_kept (struct execs *execs, const struct keeper_message *message,
            int fds[KEEPER_FDS])
{
  struct exec_log *log;
  int i;

  /* The log opens its own, which go on at the same place. */
  coffer_fd_close (&fds[KEEPER_OUT_FILE]);
  coffer_fd_close (&fds[KEEPER_ERR_FILE]);
  coffer_fd_close (&fds[KEEPER_INDEX_FILE]);
  if (exec_log_find (execs->logs, message->sandbox, message->exec, &log, NULL)
      == 0) {
    log_event (LOG_LEVEL_INFO, "exec", "%s %s: goes on", message->sandbox,
               message->exec);
    adopt (execs, log, fds);
    return;
  }
  for (i = 0; i < KEEPER_FDS; i++)
    coffer_fd_close (&fds[i]);
}

/* Without an end, and not among those that were kept: it ended meanwhile. */
static void
adopt_unended (struct execs *execs, const char *sandbox)
{
  auto_json json_t *list = NULL;
  int none[KEEPER_FDS];
  json_t *info;
  size_t i;

  if (exec_logs_list (execs->logs, sandbox, &list, NULL) < 0)
    return;
  json_array_foreach (list, i, info) {
    const char *exec = json_string_value (json_object_get (info, "exec"));
    struct live_exec *live = exec ? live_find (execs, sandbox, exec) : NULL;
    struct exec_log *log;

    memset (none, -1, sizeof none);
    if (live)
      live_unref (execs, live);
    else if (exec
             && exec_log_find (execs->logs, sandbox, exec, &log, NULL) == 0) {
      if (exec_log_over (log))
        exec_log_unref (log);
      else
        adopt (execs, log, none);
    }
  }
}

static int
adopt_sandbox (void *data, const char *sandbox)
{
  if (sandbox_is_gone (data, sandbox))
    return 1;
  adopt_unended (data, sandbox);
  return 0;
}

void
execs_adopt (struct execs *execs)
{
  struct error *error = NULL;

  if (host_sweep (execs->options.host, &error) < 0)
    log_event (LOG_LEVEL_WARNING, "sandbox", "%s", error_message (error));
  error_free (error);
  keeper_list (execs, adopt_kept);
  exec_logs_sweep (execs->logs, adopt_sandbox, execs);
}
