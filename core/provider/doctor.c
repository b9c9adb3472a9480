/* SPDX-License-Identifier: Apache-2.0 */
/* What is wrong with a provider on this machine: the checks of its files, then
 * the provider itself, started in its worker and asked what it found. */

#include <config.h>

#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "provider/doctor.h"
#include "provider/provider.h"

/* A right that the kernel cannot enforce fails the start; so this step is said
 * to have failed by that code, and the handshake not to have been reached. */
static void
add_start_failure (json_t *checks, const struct error *error)
{
  if (error->number == E_PERMISSION)
    json_array_append_new (checks, registry_check_failed ("permissions", error));
  else
    json_array_append_new (checks, registry_check_failed ("handshake", error));
}

static void
add_started (json_t *checks, const struct registry_entry *entry,
             const struct provider *provider)
{
  auto_free char *detail = NULL;
  const int pid = provider_worker_pid (provider);

  json_array_append_new (
    checks, registry_check_new ("permissions", 1,
                                entry->allow_degraded
                                ? "in force, as far as this kernel can "
                                  "(worker.allow_degraded)"
                                : "in force", NULL));
  if (pid > 0)
    detail = text_printf ("opened in its worker (process %d)", pid);
  else
    detail = strdup ("opened in this process");
  json_array_append_new (checks,
                         registry_check_new ("handshake", 1,
                                             detail ? detail : "opened",
                                             NULL));
}

/* A fact that takes nothing away is not a fault. */
static int
fact_is_bad (const json_t *fact)
{
  const char *state = json_string_value (json_object_get (fact, "state"));

  return state && strcmp (state, "failed") == 0;
}

static void
add_probe (json_t *checks, const json_t *facts)
{
  auto_free char *detail = NULL;
  size_t i, bad = 0, narrowed = 0;
  json_t *fact;

  json_array_foreach (facts, i, fact) {
    bad += (size_t) fact_is_bad (fact);
    narrowed += json_array_size (json_object_get (fact, "narrows"));
  }
  detail = text_printf ("%zu facts, %zu failed, %zu capabilities not to be "
                        "had here", json_array_size (facts), bad, narrowed);
  json_array_append_new (checks,
                         registry_check_new ("probe", bad == 0,
                                             detail ? detail : "probed",
                                             "see the facts below"));
}

/* A call that a service answers only to whom it knows; nothing is made by it. */
static void
call_once (struct provider *provider, json_t *checks)
{
  auto_error struct error *error = NULL;

  if (INVOKE (provider, NULL, &error, sandbox_list, .opts = NULL) < 0)
    json_array_append_new (checks, registry_check_failed ("call", error));
  else
    json_array_append_new (
      checks, registry_check_new ("call", 1, "sandbox_list was answered",
                                  NULL));
}

static void
start (const struct registry_entry *entry, const struct place *place,
       int call, json_t *checks, json_t **facts)
{
  auto_error struct error *error = NULL;
  auto_provider struct provider *provider = NULL;
  struct registry_entry own = *entry;

  /* That it is not judged yet is told by a check of its own. */
  own.require_conformance = 0;
  if (provider_open (&own, place, PROVIDER_WORKER, &provider, &error) < 0) {
    add_start_failure (checks, error);
    return;
  }
  add_started (checks, entry, provider);
  if (provider_probe (provider, facts, &error) < 0)
    json_array_append_new (checks, registry_check_failed ("probe", error));
  else
    add_probe (checks, *facts);
  if (call)
    call_once (provider, checks);
}

int
provider_examine (const struct registry_entry *entry,
                  const struct place *place, int call, json_t **out,
                  struct error **err)
{
  auto_json json_t *checks = registry_check (entry, place, 0), *facts = NULL;

  if (!checks)
    return error_set (err, E_NO_MEMORY, 0, "checking %s", entry->id);
  if (registry_check_passed (checks) && entry->state == PROVIDER_ENABLED)
    start (entry, place, call, checks, &facts);
  if (entry->manifest && entry->state != PROVIDER_QUARANTINED)
    json_array_append_new (checks, registry_check_conformance (entry));
  *out = json_pack ("{s:s, s:b, s:O, s:O?}", "id", entry->id, "ok",
                    registry_check_passed (checks), "checks", checks, "facts",
                    facts);
  return *out ? 0 : error_set (err, E_NO_MEMORY, 0, "checking %s", entry->id);
}
