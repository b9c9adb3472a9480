/* SPDX-License-Identifier: Apache-2.0 */
/* The provider under test, opened as the host opens it, as often as a case
 * wants it. */

#include <config.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/text.h"
#include "contract/contract.h"
#include "provider/dispatch.h"
#include "runner.h"

/* ---- configuration ------------------------------------------------------- */

static void
config_free (struct registry_config *config, size_t count)
{
  size_t i;

  for (i = 0; i < count; i++) {
    free (config[i].key);
    free (config[i].value);
    free (config[i].origin);
  }
  free (config);
}

/* KEY=VALUE instead of what was found; "KEY=" is the empty text. */
static int
config_replace (struct registry_entry *entry, const char *word)
{
  const char *equals = strchr (word, '=');
  const size_t length = equals ? (size_t) (equals - word) : 0;
  struct registry_config *one = NULL;
  size_t i;

  if (!equals)
    return -1;
  for (i = 0; i < entry->n_config && !one; i++)
    if (strncmp (entry->config[i].key, word, length) == 0
        && !entry->config[i].key[length])
      one = &entry->config[i];
  if (!one) {
    entry->config = reallocarray (entry->config, entry->n_config + 1,
                                  sizeof *entry->config);
    if (!entry->config)
      return -1;
    one = &entry->config[entry->n_config++];
    *one = (struct registry_config){ .key = strndup (word, length) };
  }
  free (one->value);
  free (one->origin);
  one->value = strdup (equals + 1);
  one->origin = strdup ("caller");
  one->secret = 0;              /* the value itself, not where it lies */
  return one->key && one->value && one->origin ? 0 : -1;
}

static int
config_copy (const struct registry_entry *from, struct registry_entry *to,
             const char *const *words)
{
  size_t i;

  to->config = calloc (from->n_config + 1, sizeof *to->config);
  to->n_config = to->config ? from->n_config : 0;
  for (i = 0; i < to->n_config; i++) {
    to->config[i].key = strdup (from->config[i].key);
    to->config[i].value
      = from->config[i].value ? strdup (from->config[i].value) : NULL;
    to->config[i].origin
      = from->config[i].origin ? strdup (from->config[i].origin) : NULL;
    to->config[i].secret = from->config[i].secret;
  }
  for (; to->config && words && *words; words++)
    if (config_replace (to, *words) < 0)
      return -1;
  return to->config ? 0 : -1;
}

/* ---- opening ------------------------------------------------------------- */

static int
instance_place (struct kit_instance *instance, struct error **err)
{
  const struct subject *subject = instance->kit->subject;

  instance->folder = text_printf ("%s/other-XXXXXX", subject->folder);
  if (!instance->folder || !mkdtemp (instance->folder)
      || !(instance->place = place_within (subject->place, instance->folder)))
    return error_set (err, E_IO, errno, "make a folder for another host");
  return 0;
}

/* What the provider says is judged as it says it. */
static int
show_secrets (struct provider *provider, struct error **err)
{
  size_t skipped;

  redactor_free (provider->redactor);
  provider->redactor = NULL;
  return redactor_new (NULL, &provider->redactor, &skipped, err);
}

static void
instance_free (struct kit_instance *instance)
{
  config_free (instance->entry.config, instance->entry.n_config);
  place_free (instance->place);
  free (instance->folder);
  free (instance);
}

static int
instance_start (struct kit_instance *instance, const char *const *config,
                int another_host, struct error **err)
{
  const struct subject *subject = instance->kit->subject;

  instance->entry = *subject->entry;
  instance->entry.config = NULL;
  instance->entry.n_config = 0;
  if (config_copy (subject->entry, &instance->entry, config) < 0)
    return error_set (err, E_NO_MEMORY, 0, "the configuration");
  if (another_host && instance_place (instance, err) < 0)
    return -1;
  if (provider_open (&instance->entry,
                     instance->place ? instance->place : subject->own,
                     subject->in_process ? PROVIDER_IN_PROCESS
                                         : PROVIDER_WORKER,
                     &instance->provider, err) < 0)
    return -1;
  return show_secrets (instance->provider, err);
}

struct kit_instance *
instance_open (struct kit *kit, const char *const *config, int another_host,
               struct error **err)
{
  struct kit_instance *instance = calloc (1, sizeof *instance);

  if (!instance) {
    error_set (err, E_NO_MEMORY, 0, "out of memory");
    return NULL;
  }
  instance->kit = kit;
  if (instance_start (instance, config, another_host, err) < 0) {
    provider_close (instance->provider);
    instance_free (instance);
    return NULL;
  }
  pthread_mutex_lock (&kit->lock);
  instance->next = kit->instances;
  kit->instances = instance;
  pthread_mutex_unlock (&kit->lock);
  return instance;
}

void
instance_close (struct kit_instance *instance)
{
  struct provider *provider = instance->provider;

  instance->provider = NULL;
  provider_close (provider);
}

/* ---- for cases ----------------------------------------------------------- */

struct kit_instance *
kit_first (struct kit *kit)
{
  auto_error struct error *error = NULL;

  if (!kit->first)
    kit->first = instance_open (kit, NULL, 0, &error);
  if (!kit->first) {
    const char *next = error_next_step (error);

    kit_fail (kit, "open: expected an instance, came %s%s%s",
              error_message (error), next ? "; next: " : "",
              next ? next : "");
  }
  return kit->first;
}

struct kit_instance *
kit_another (struct kit *kit)
{
  auto_error struct error *error = NULL;
  struct kit_instance *instance = instance_open (kit, NULL, 0, &error);

  if (!instance)
    kit_fail (kit, "open beside the first: expected an instance, came %s",
              error_message (error));
  return instance;
}

void
kit_close_instance (struct kit_instance *instance)
{
  if (instance->provider)
    instance_close (instance);
}

pid_t
kit_worker_pid (struct kit_instance *instance)
{
  return instance->provider ? provider_worker_pid (instance->provider) : 0;
}

void
kit_kill_worker (struct kit_instance *instance)
{
  struct kit *kit = instance->kit;
  const pid_t pid = kit_worker_pid (instance);
  coffer_autoclose int fd = -1;

  if (pid <= 0)
    kit_fail (kit, "there is no worker to end: it is not running any more");
  fd = (int) syscall (SYS_pidfd_open, pid, 0);
  if (fd < 0 || kill (pid, SIGKILL) < 0
      || coffer_wait_fd (fd, POLLIN, kit->deadline_ns, -1) <= 0)
    kit_fail (kit, "the worker %d cannot be ended: %s", (int) pid,
              strerror (errno));
}

int
kit_claims (struct kit *kit, const char *capability)
{
  return subject_claims (kit->subject, capability)
         && !subject_narrowed (kit->subject, capability);
}

int
kit_claims_in_manifest (struct kit *kit, const char *capability)
{
  return subject_claims (kit->subject, capability)
         || subject_gives_up (kit->subject, capability);
}

int
kit_says_never (struct kit *kit, int32_t code)
{
  const char *const name = contract_code_name (code);

  return name
         && text_list_has ((const char *const *) kit->subject->entry->manifest
                             ->never, name);
}

const char *
kit_isolation (struct kit *kit)
{
  const char *kind = kit->subject->entry->manifest->isolation_kind;

  return kind ? kind : "none";
}

int
kit_is_parallel (struct kit *kit)
{
  return kit->subject->entry->manifest->threads == COFFER_THREADS_PARALLEL;
}

uint32_t
kit_max_calls (struct kit *kit)
{
  const uint64_t calls = kit->subject->entry->manifest->limits.calls;

  return calls ? (uint32_t) calls : 32;
}

const struct coffer_fact *
kit_fact (struct kit *kit, size_t n)
{
  return n < kit->subject->n_facts ? &kit->subject->fact_list[n] : NULL;
}

const char *const *
kit_secrets (struct kit *kit)
{
  static const char *const none[] = { NULL };

  return kit->subject->secrets ? (const char *const *) kit->subject->secrets
                               : none;
}

const struct kit_config_key *
kit_config_key (struct kit *kit, size_t n)
{
  const struct registry_entry *entry = kit->subject->entry;
  const struct manifest_config *key;
  struct kit_config_key *out;
  size_t i;

  if (n >= entry->manifest->n_config)
    return NULL;
  key = &entry->manifest->config[n];
  out = kit_memory (kit, sizeof *out);
  *out = (struct kit_config_key){
    .key = key->key, .required = key->required,
    .type = manifest_config_type_name (key->type)
  };
  for (i = 0; i < entry->n_config; i++)
    if (strcmp (entry->config[i].key, key->key) == 0)
      out->value = entry->config[i].value;
  return out;
}
