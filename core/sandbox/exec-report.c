/* SPDX-License-Identifier: Apache-2.0 */
/* How a command ended, as JSON. */

#include "config.h"

#include <string.h>

#include "base/json.h"
#include "sandbox/sandbox.h"

static json_t *
limits_json (char *const *limits)
{
  json_t *array = json_array ();

  for (; limits && *limits; limits++)
    json_array_append_new (array, json_string (*limits));
  return array;
}

json_t *
exec_result_json (const struct exec_result *result)
{
  json_t *failure = result->failure
                      ? json_encoded (result->failure,
                                      strlen (result->failure)) : NULL;
  json_t *text = failure ? json_incref (json_object_get (failure, "data"))
                         : json_null ();

  json_decref (failure);
  return json_pack (
    "{s:i, s:i, s:b, s:b, s:o, s:I, s:I, s:o, s:i, s:I, s:o}", "code",
    result->code, "signal", result->signal, "timed_out", result->timed_out,
    "oom", result->oom, "limits_hit", limits_json (result->limits_hit),
    "duration_us", (json_int_t) result->duration_us, "cpu_us",
    (json_int_t) result->cpu_us, "failure", text, "failure_errno",
    result->failure_errno, "timeout_ms", (json_int_t) result->timeout_ms,
    "facts", result->facts ? json_incref (result->facts) : json_array ());
}
