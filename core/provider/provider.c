/* SPDX-License-Identifier: Apache-2.0 */
/* The life of an opened provider, and what is known of its capabilities. */

#include "config.h"

#include <string.h>

#include "base/log.h"
#include "provider/conformance.h"
#include "provider/dispatch.h"
#include "provider/opening.h"
#include "provider/signature.h"

#define DEFAULT_CALLS 32

static void
provider_free (struct provider *provider)
{
  json_decref (provider->facts);
  redactor_free (provider->redactor);
  opening_free (provider->opening);
  redact_tail_fini (&provider->kept);
  redact_tail_fini (&provider->shown);
  redact_tail_fini (&provider->logged);
  redact_tail_fini (&provider->printed);
  pthread_mutex_destroy (&provider->said_lock);
  pthread_mutex_destroy (&provider->probe_lock);
  gate_fini (&provider->gate);
  journal_fini (&provider->journal);
  free (provider->narrowed);
  free (provider);
}

static struct provider *
provider_new (const struct registry_entry *entry, const struct place *place)
{
  const struct manifest *manifest = entry->manifest;
  struct provider *provider = calloc (1, sizeof *provider);
  uint64_t calls = manifest->limits.calls;

  if (!provider)
    return NULL;
  provider->entry = entry;
  provider->manifest = manifest;
  provider->place = place;
  provider->contract = contract_builtin ();
  while (manifest->capabilities && manifest->capabilities[provider->n_claims])
    provider->n_claims++;
  provider->narrowed = calloc (provider->n_claims + 1,
                               sizeof provider->narrowed[0]);
  if (!provider->narrowed || journal_init (&provider->journal) < 0) {
    free (provider->narrowed);
    free (provider);
    return NULL;
  }
  gate_init (&provider->gate, manifest->threads == COFFER_THREADS_SERIAL,
             calls > 0 ? calls : DEFAULT_CALLS);
  pthread_mutex_init (&provider->probe_lock, NULL);
  pthread_mutex_init (&provider->said_lock, NULL);
  return provider;
}

/* Only coffer's own modules share the host's process. */
static int
check_mode (const struct registry_entry *entry, enum provider_mode mode,
            struct error **err)
{
  if (entry->state == PROVIDER_BROKEN || !entry->manifest)
    return error_set (err, E_UNKNOWN_PROVIDER, 0, "%s is broken: %s",
                      entry->id,
                      entry->error ? error_message (entry->error) : "no manifest");
  if (entry->state != PROVIDER_ENABLED)
    return error_set (err, E_PROVIDER_DISABLED, 0, "%s is %s", entry->id,
                      registry_state_name (entry->state));
  if (mode == PROVIDER_IN_PROCESS && entry->trust != TRUST_PACKAGED)
    return error_set (err, E_DENIED, 0,
                      "%s is not shipped with coffer, so it runs in a worker "
                      "only", entry->id);
  if (mode == PROVIDER_IN_PROCESS && entry->held_in_worker)
    return error_set (err, E_DENIED, 0,
                      "%s has permissions or limits of the operator's, which"
                      " only a worker is held by", entry->id);
  return 0;
}

int
provider_open (const struct registry_entry *entry, const struct place *place,
               enum provider_mode mode, struct provider **out,
               struct error **err)
{
  struct provider *provider;
  size_t skipped;
  int result;

  if (check_mode (entry, mode, err) < 0
      || signature_demand (entry, place, err) < 0
      || conformance_demand (entry, err) < 0)
    return -1;
  provider = provider_new (entry, place);
  if (!provider)
    return error_set (err, E_NO_MEMORY, 0, "out of memory");
  if (opening_new (entry, place, provider->contract,
                   mode == PROVIDER_IN_PROCESS ? built_in_for (entry) : NULL,
                   &provider->opening, err) < 0
      || redactor_new (provider->opening->secrets, &provider->redactor,
                       &skipped, err) < 0) {
    provider_free (provider);
    return error_wrap (err, "provider %s", entry->id);
  }
  yaml_free_texts (steal (provider->opening->secrets));
  if (skipped > 0)
    log_event (LOG_LEVEL_WARNING, "provider",
               "%s: %zu secrets have fewer than %d bytes and are not hidden "
               "in what it says", entry->id, skipped, REDACT_MIN_BYTES);
  result = mode == PROVIDER_IN_PROCESS ? in_process_start (provider, err)
                                       : worker_start (provider, err);
  if (result < 0) {
    provider_free (provider);
    return error_wrap (err, "provider %s", entry->id);
  }
  *out = provider;
  return 0;
}

void
provider_close (struct provider *provider)
{
  if (!provider)
    return;
  if (provider->backend)
    provider->backend->close (provider);
  provider_free (provider);
}

int
provider_is_idle (const struct provider *provider)
{
  return provider->backend->is_idle && provider->backend->is_idle (provider);
}

void
provider_rest (struct provider *provider)
{
  if (provider->backend->rest)
    provider->backend->rest (provider);
}

/* ---- probe ---------------------------------------------------------------- */

struct probing {
  struct provider *provider;
  json_t *facts;
};

static void
narrow (struct provider *provider, const char *word, const char *fact)
{
  char **claims = provider->manifest->capabilities;
  size_t i;

  for (i = 0; i < provider->n_claims; i++)
    if (strcmp (claims[i], word) == 0) {
      atomic_store (&provider->narrowed[i], 1);
      return;
    }
  log_event (LOG_LEVEL_DEBUG, "dispatch",
             "%s: fact %s narrows %s, which it does not claim",
             provider->manifest->id, fact ? fact : "?", word);
}

static int
probe_record (void *data, const struct contract_record *type, void *record)
{
  struct probing *probing = data;
  const struct coffer_fact *fact = record;
  struct contract_fds fds = { .count = 0 };
  const char *const *word;
  json_t *json = NULL;

  if (type->id != COFFER_REC_fact)
    return 0;
  for (word = fact->narrows; word && *word; word++)
    narrow (probing->provider, *word, fact->name);
  if (contract_encode_record (type, record, &json, &fds, NULL) < 0)
    return 1;
  return json_array_append_new (probing->facts, json) < 0;
}

static int
run_probe_locked (struct provider *provider, struct error **err)
{
  union contract_value values[1] = { { .rec = NULL } };
  struct probing probing = { provider, json_array () };
  struct invoke invoke = {
    .op = contract_op_by_id (provider->contract, COFFER_OP_probe),
    .values = values, .cancel_fd = -1,
    .sink = { .record = probe_record, .data = &probing }
  };
  int result;

  if (!probing.facts)
    return error_set (err, E_NO_MEMORY, 0, "out of memory");
  invoke_run (provider, &invoke);
  result = outcome_error (&invoke.outcome, provider->manifest, invoke.op,
                          err);
  outcome_fini (&invoke.outcome);
  if (result == 0)
    provider->facts = probing.facts;
  else
    json_decref (probing.facts);
  return result;
}

int
provider_probe (struct provider *provider, json_t **facts,
                struct error **err)
{
  int result = 0;

  pthread_mutex_lock (&provider->probe_lock);
  if (!provider->facts)
    result = run_probe_locked (provider, err);
  if (result == 0 && facts)
    *facts = json_deep_copy (provider->facts);
  pthread_mutex_unlock (&provider->probe_lock);
  if (result == 0 && facts && !*facts)
    return error_set (err, E_NO_MEMORY, 0, "out of memory");
  return result;
}

int
provider_claims (const struct provider *provider, const char *capability)
{
  char **claims = provider->manifest->capabilities;
  size_t i;

  for (i = 0; i < provider->n_claims; i++)
    if (strcmp (claims[i], capability) == 0)
      return !atomic_load (&provider->narrowed[i]);
  return 0;
}

const char *
provider_id (const struct provider *provider)
{
  return provider->manifest->id;
}

const struct manifest *
provider_manifest (const struct provider *provider)
{
  return provider->manifest;
}

int
provider_worker_pid (const struct provider *provider)
{
  return provider->backend->pid (provider);
}
