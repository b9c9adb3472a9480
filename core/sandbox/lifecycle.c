/* SPDX-License-Identifier: Apache-2.0 */
/* Looking at sandboxes, giving them more time, and ending them. */

#include "config.h"

#include <string.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/log.h"
#include "sandbox/host.h"
#include "sandbox/info.h"
#include "sandbox/profile.h"
#include "sandbox/request.h"
#include "sandbox/runs.h"

/* The provider no longer has it: the row goes, and the caller is told. */
static int
gone (struct host *host, const struct sandbox_record *record,
      struct error **err)
{
  error_free (*err);
  *err = NULL;
  if (host_forget (host, record->id, err) < 0)
    return -1;
  error_set (err, E_UNKNOWN_SANDBOX, 0,
             "sandbox %s is gone: provider %s no longer has it", record->id,
             record->provider);
  return -1;
}

/* The record's part of what info prints; the rest is the provider's word. */
static void
add_record (json_t *info, const struct sandbox_record *record)
{
  auto_json json_t *spec = NULL;

  json_object_set_new (info, "id", json_string (record->id));
  json_object_set_new (info, "provider", json_string (record->provider));
  json_object_set_new (info, "tenant", json_string (record->tenant));
  json_object_set_new (info, "ephemeral",
                       json_boolean (record->owner_pid != 0));
  if (json_parse (record->spec, strlen (record->spec), &spec, NULL) == 0)
    json_object_set (info, "spec", spec);
}

/* Still there, and another process's? */
static int
run_lives (struct host *host, const struct sandbox_record *record)
{
  auto_sandbox_record struct sandbox_record *now = NULL;

  return run_is (record)
         && runs_find (host->place, record->id, &now, NULL) == 0 && now
         && now->owner_pid != getpid ();
}

int
sandbox_info (struct host *host, const char *id,
              const struct provider_call *call, json_t **out,
              struct error **err)
{
  auto_sandbox_record struct sandbox_record *record = NULL;
  auto_info_sink struct info_sink sink;
  struct provider_call inner;
  struct provider *provider;
  struct error *error = NULL;

  info_sink_init (&sink);
  inner = info_call (&sink, call);
  if (host_reach (host, id, &record, &provider, err) < 0)
    return -1;
  if (INVOKE (provider, &inner, &error, sandbox_info, .sandbox = id) < 0) {
    int unknown = error && error->number == E_UNKNOWN_SANDBOX;

    /* Of what its owner alone can reach, its record is all there is to say. */
    if (unknown && run_lives (host, record)) {
      error_free (error);
      *out = json_object ();
      json_object_set_new (*out, "state", json_string (
        sandbox_state_name (record->state)));
      json_object_set_new (*out, "created_ns",
                           json_integer (record->created_ns));
      add_record (*out, record);
      return 0;
    }
    error_move (err, error);
    return unknown && err ? gone (host, record, err) : -1;
  }
  if (json_array_size (sink.infos) != 1)
    return error_set (err, E_PROVIDER_FAILED, 0,
                      "%s: sandbox_info reported nothing", record->provider);
  *out = json_incref (json_array_get (sink.infos, 0));
  add_record (*out, record);
  return 0;
}

int
sandbox_extend (struct host *host, const char *id, uint64_t ttl_ms,
                const struct provider_call *call, json_t **out,
                struct error **err)
{
  auto_sandbox_record struct sandbox_record *record = NULL;
  auto_info_sink struct info_sink sink;
  struct provider_call inner;
  struct provider *provider;

  info_sink_init (&sink);
  inner = info_call (&sink, call);
  if (ttl_ms < 1000 || ttl_ms > REQUEST_TTL_MAX_MS)
    return error_set (err, E_SANDBOX_SPEC, 0,
                      "ttl: %llu ms is not between 1 second and 366 days",
                      (unsigned long long) ttl_ms);
  if (host_reach (host, id, &record, &provider, err) < 0)
    return -1;
  if (claim_require (provider, "ttl", err) < 0
      || profile_ttl (record->spec, ttl_ms, &ttl_ms, err) < 0)
    return -1;
  if (INVOKE (provider, &inner, err, sandbox_extend, .sandbox = id,
              .ttl_ms = ttl_ms) < 0)
    return -1;
  record->expires_ns = sink.expires_ns;
  if (!run_is (record) && host_records (host)
      && records_update (host_records (host), record, err) < 0)
    return -1;
  if (json_array_size (sink.infos) == 1)
    *out = json_incref (json_array_get (sink.infos, 0));
  else
    *out = json_object ();
  add_record (*out, record);
  return 0;
}

/* ---- kill ---------------------------------------------------------------- */

static int
kill_at (struct host *host, const char *provider_name, const char *id,
         const struct provider_call *call, int *already_gone,
         struct error **err)
{
  struct provider *provider;

  if (host_provider_of (host, provider_name, id, &provider, err) < 0
      || provider_kill (provider, id, call, already_gone, err) < 0)
    return -1;
  log_event (LOG_LEVEL_INFO, "sandbox", "%s: %s by %s", id,
             *already_gone ? "not known" : "killed", provider_name);
  return host_forget (host, id, err);
}

/* What only its owner reaches ends with its owner. */
static int
kill_run (struct host *host, const char *id, const struct provider_call *call,
          int *already_gone, struct error **err)
{
  auto_sandbox_record struct sandbox_record *record = NULL;
  int64_t deadline = call->deadline_ns ? call->deadline_ns
                                       : deadline_in (60000);
  int ended;

  if (!*already_gone || runs_find (host->place, id, &record, err) < 0)
    return *already_gone ? -1 : 0;
  if (!record || record->owner_pid == getpid ())
    return 0;
  ended = run_end_owner (host->place, id, deadline, err);
  if (ended > 0)
    *already_gone = 0;
  return ended < 0 ? -1 : 0;
}

/* No record knows it: every provider that was opened here before and can be now
 * is asked.  Others have made nothing from here. */
static int
kill_anywhere (struct host *host, const char *id,
               const struct provider_call *call, int *already_gone,
               struct error **err)
{
  auto_registry struct registry *registry = NULL;
  size_t i;

  *already_gone = 1;
  if (registry_load (host->place, &registry, err) < 0)
    return -1;
  for (i = 0; i < registry->count && *already_gone; i++) {
    const struct registry_entry *entry = &registry->entries[i];
    auto_error struct error *error = NULL;
    int gone_here = 1;

    if (entry->state != PROVIDER_ENABLED
        || !place_provider_used (host->place, entry->id))
      continue;
    if (kill_at (host, entry->id, id, call, &gone_here, &error) < 0)
      log_event (LOG_LEVEL_WARNING, "sandbox", "provider %s was not asked for"
                 " %s: %s", entry->id, id, error_message (error));
    else
      *already_gone = gone_here;
  }
  return 0;
}

/* Only its provider can end it, and that may have been taken away. */
static int
kill_recorded (struct host *host, const struct sandbox_record *record,
               const struct provider_call *call, int *already_gone,
               struct error **err)
{
  struct error *error = NULL;
  int orphan;

  if (kill_at (host, record->provider, record->id, call, already_gone, &error)
      == 0)
    return kill_run (host, record->id, call, already_gone, err);
  orphan = error->number == E_UNKNOWN_PROVIDER;
  error_move (err, error);
  if (orphan)
    error_hint (err, "install %s again, which made it and alone can end it",
                record->provider);
  return -1;
}

int
sandbox_kill (struct host *host, const char *provider, const char *id,
              const struct provider_call *call, int *already_gone,
              struct error **err)
{
  auto_sandbox_record struct sandbox_record *record = NULL;
  struct provider_call fallback = call_in (60000, -1);
  struct error *error = NULL;

  if (!call)
    call = &fallback;
  /* What is no id at all names nothing anywhere. */
  if (!sandbox_id_valid (id)) {
    *already_gone = 1;
    return 0;
  }
  if (provider) {
    if (kill_at (host, provider, id, call, already_gone, err) < 0)
      return -1;
    return kill_run (host, id, call, already_gone, err);
  }
  if (host_find (host, id, &record, &error) == 0)
    return kill_recorded (host, record, call, already_gone, err);
  if (!error || error->number != E_UNKNOWN_SANDBOX)
    return error_move (err, error);
  error_free (error);
  return kill_anywhere (host, id, call, already_gone, err);
}
