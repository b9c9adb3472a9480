/* SPDX-License-Identifier: Apache-2.0 */
/* See reply.h.  What the supervisor says of the end stands by itself; what came
 * over the channel fills `result`, `error` and `artifacts`, and nothing else
 * but that memory was short. */

#include <config.h>

#include <string.h>

#include "base/text.h"
#include "python/reply.h"

#define REJECTED "Code validation failed"
#define RUNNER_FAILED 125       /* exit status of the runner itself */
#define SAID_MAX 300

/* ---- layers ------------------------------------------------------------- */

static int
fact_is_ok (const json_t *facts, const char *name, const char *value)
{
  const json_t *fact;
  size_t i;

  json_array_foreach (facts, i, fact) {
    const char *of = json_string_value (json_object_get (fact, "name"));
    const char *state = json_string_value (json_object_get (fact, "state"));
    const char *is = json_string_value (json_object_get (fact, "value"));

    if (of && state && strcmp (of, name) == 0)
      return strcmp (state, "ok") == 0
             && (!value || (is && strcmp (is, value) == 0));
  }
  return 0;
}

json_t *
reply_layers (const json_t *facts)
{
  static const char *const namespaces[]
    = { "namespace.user", "namespace.mount", "namespace.pid", "namespace.net",
        "namespace.ipc", "namespace.uts", "namespace.cgroup" };
  json_t *layers = json_array ();
  size_t i, n = sizeof namespaces / sizeof namespaces[0];

  if (fact_is_ok (facts, "landlock", NULL))
    json_array_append_new (layers, json_string ("landlock"));
  if (fact_is_ok (facts, "seccomp", NULL)
      && fact_is_ok (facts, "seccomp.profile", "strict"))
    json_array_append_new (layers, json_string ("seccomp"));
  for (i = 0; i < n && fact_is_ok (facts, namespaces[i], NULL); i++)
    ;
  if (i == n)
    json_array_append_new (layers, json_string ("namespaces"));
  else if (fact_is_ok (facts, "container", NULL))
    json_array_append_new (layers, json_string ("container"));
  return layers;
}

/* Those of the runner, which are said before the code runs, come first. */
static json_t *
layers_json (const struct outcome *outcome)
{
  json_t *said = json_object_get (outcome->frames->verdict, "layers");
  json_t *layers = json_array ();
  auto_json json_t *rest
    = reply_layers (json_object_get (outcome->applied, "facts"));

  json_array_extend (layers, said);
  json_array_extend (layers, rest);
  return layers;
}

/* ---- the end ------------------------------------------------------------ */

static char *
end_text (const struct exec_result *exec)
{
  auto_free char *after = NULL;

  if (exec->timed_out) {
    after = text_format_duration (exec->timeout_ms);
    return text_printf ("timed out after %s", after ? after : "its timeout");
  }
  if (exec->oom)
    return strdup ("killed: out of memory");
  if (exec->signal)
    return text_printf ("killed by signal %d (%s)", exec->signal,
                        strsignal (exec->signal));
  return NULL;
}

static json_t *
error_json (const struct outcome *outcome, const char *end)
{
  const struct frames *frames = outcome->frames;

  if (end)
    return json_string (end);
  if (frames->malformed && !frames->told)
    return json_string ("what the code came to could not be read: its channel "
                        "was written to by something else");
  return frames->told
           ? json_incref (json_object_get (frames->told, "error"))
           : json_null ();
}

static int
memory_was_short (const struct outcome *outcome)
{
  return outcome->exec->oom
         || json_is_true (json_object_get (outcome->frames->told, "memory"));
}

static json_t *
limits_json (const struct outcome *outcome)
{
  char *const *limit = outcome->exec->limits_hit;
  json_t *limits = json_array ();
  int memory = 0;

  for (; limit && *limit; limit++) {
    memory |= strcmp (*limit, "memory") == 0;
    json_array_append_new (limits, json_string (*limit));
  }
  if (!memory && memory_was_short (outcome))
    json_array_append_new (limits, json_string ("memory"));
  return limits;
}

static json_t *
truncated_json (const struct outcome *outcome)
{
  const json_t *told = outcome->frames->told;
  const json_int_t skipped
    = json_integer_value (json_object_get (told, "skipped"));

  return json_pack ("{s:b, s:b, s:b, s:b}", "stdout",
                    outcome->out->used > KEPT_HEAD + KEPT_TAIL
                      || outcome->out->dropped > 0,
                    "stderr",
                    outcome->err->used > KEPT_HEAD + KEPT_TAIL
                      || outcome->err->dropped > 0,
                    "result", json_is_true (json_object_get (told, "cut")),
                    "artifacts", skipped > 0);
}

static json_t *
signal_json (const struct exec_result *exec)
{
  return exec->signal ? json_integer (exec->signal) : json_null ();
}

static json_t *
result_json (const struct frames *frames)
{
  json_t *result = json_object_get (frames->told, "result");

  return result ? json_incref (result) : json_null ();
}

/* In eighths, which a double has exactly and JSON prints as they are. */
static double
milliseconds (uint64_t us)
{
  return (double) (us / 125) / 8;
}

static int
fill_ran (const struct outcome *outcome, struct execute_result *out,
          struct error **err)
{
  const struct exec_result *exec = outcome->exec;
  const struct frames *frames = outcome->frames;
  auto_free char *end = end_text (exec);

  out->status = exec_exit_status (exec);
  out->document = json_pack (
    "{s:o, s:o, s:i, s:b, s:o, s:o, s:o, s:f, s:f, s:b, s:o, s:o, s:o, s:o,"
    " s:s}",
    "stdout", kept_json (outcome->out, NULL), "stderr",
    kept_json (outcome->err, end), "exit_code",
    out->status, "timed_out", exec->timed_out, "result", result_json (frames),
    "error", error_json (outcome, end), "truncated", truncated_json (outcome),
    "duration_ms", milliseconds (exec->duration_us), "cpu_ms",
    milliseconds (exec->cpu_us), "oom", memory_was_short (outcome), "signal",
    signal_json (exec), "limits_hit", limits_json (outcome), "layers_applied",
    layers_json (outcome), "artifacts",
    frames->artifacts ? json_incref (frames->artifacts) : json_array (),
    "profile", outcome->profile);
  return out->document ? 0 : error_set (err, E_NO_MEMORY, 0, "the reply");
}

/* ---- rejected, and worse ------------------------------------------------ */

static int
fill_rejected (json_t *take_violations, struct execute_result *out,
               struct error **err)
{
  out->rejected = 1;
  out->document = json_pack ("{s:s, s:o}", "error", REJECTED, "violations",
                             take_violations);
  return out->document ? 0 : error_set (err, E_NO_MEMORY, 0, "the reply");
}

/* Code that ends whoever looks at it is code that nobody can look at. */
static int
fill_unseen (const struct outcome *outcome, struct execute_result *out,
             struct error **err)
{
  auto_free char *end = end_text (outcome->exec);
  auto_free char *text
    = text_printf ("Line 1: the code could not be looked at: %s",
                   end ? end : "whatever looked at it ended");

  return fill_rejected (json_pack ("[s]", text ? text : "Line 1"), out, err);
}

static int
fail_runner (const struct outcome *outcome, struct error **err)
{
  const struct kept *said = outcome->err;
  size_t size = said->used < SAID_MAX ? said->used : SAID_MAX;
  auto_free char *text = NULL;

  while (size > 0 && said->bytes[size - 1] == '\n')
    size--;
  text = text_escape (said->bytes ? said->bytes : "", size);
  error_set (err, E_EXEC_START, 0, "the interpreter could not be started: %s",
             outcome->exec->failure ? outcome->exec->failure
             : text && *text ? text : "it ended without a word");
  error_hint (err, "python3 must be there inside, at /usr/bin/python3");
  return -1;
}

int
reply_fill (const struct outcome *outcome, struct execute_result *out,
            struct error **err)
{
  const struct exec_result *exec = outcome->exec;
  const json_t *verdict = outcome->frames->verdict;

  if (verdict && json_is_false (json_object_get (verdict, "accepted")))
    return fill_rejected (
      json_incref (json_object_get (verdict, "violations")), out, err);
  if (verdict || (exec->timed_out && !exec->failure))
    return fill_ran (outcome, out, err);
  if (!exec->failure && (exec->signal || exec->oom))
    return fill_unseen (outcome, out, err);
  return fail_runner (outcome, err);
}
