/* SPDX-License-Identifier: Apache-2.0 */
/* What programs are told of providers, whoever asks: what is known of each,
 * and nothing that is not.  A key that nobody gave is not shown as if it had a
 * value. */

#include <config.h>

#include <string.h>

#include <coffer/provider.h>

#include "base/json.h"
#include "base/text.h"
#include "provider/conformance.h"
#include "provider/manifest.h"
#include "provider/registry.h"

/* -- one of them ----------------------------------------------------------- */

/* The manifest owns its strings; JSON only reads them. */
static void
put_texts (json_t *object, const char *key, char *const *texts)
{
  json_put_texts (object, key, (const char *const *) texts);
}

static json_t *
modules_json (const struct manifest *m)
{
  json_t *array = json_array ();
  size_t i;

  for (i = 0; i < m->n_modules; i++) {
    json_t *item = json_pack ("{s:s, s:s}", "arch", m->modules[i].arch,
                              "file", m->modules[i].file);

    if (m->modules[i].sha256[0])
      json_put_text (item, "sha256", m->modules[i].sha256);
    json_array_append_new (array, item);
  }
  return array;
}

static json_t *
files_json (const struct manifest *m)
{
  json_t *array = json_array ();
  size_t i;

  for (i = 0; i < m->n_files; i++) {
    json_t *item = json_pack ("{s:s}", "name", m->files[i].name);

    if (m->files[i].sha256[0])
      json_put_text (item, "sha256", m->files[i].sha256);
    json_array_append_new (array, item);
  }
  return array;
}

const struct registry_config *
registry_given (const struct registry_entry *entry, const char *key)
{
  size_t i;

  for (i = 0; i < entry->n_config; i++) {
    if (strcmp (entry->config[i].key, key) == 0)
      return &entry->config[i];
  }
  return NULL;
}

/* Of a secret only the place is shown. */
static json_t *
config_json (const struct registry_entry *entry)
{
  const struct manifest *m = entry->manifest;
  json_t *array = json_array ();
  size_t i;

  for (i = 0; i < m->n_config; i++) {
    const struct manifest_config *key = &m->config[i];
    const struct registry_config *value = registry_given (entry, key->key);
    json_t *item = json_pack ("{s:s, s:s, s:b}", "key", key->key, "type",
                              manifest_config_type_name (key->type),
                              "required", key->required);

    json_put_text (item, "env", key->env);
    if (key->from)
      json_put_text (item, "from", manifest_config_froms[key->from - 1]);
    json_put_text (item, "help", key->help);
    if (value && !value->secret)
      json_put_text (item, "value", value->value);
    if (value)
      json_put_text (item, "origin", value->origin);
    json_array_append_new (array, item);
  }
  return array;
}

static json_t *
permissions_json (const struct manifest_permissions *p)
{
  json_t *object = json_object ();

  put_texts (object, "connect", p->connect);
  put_texts (object, "read", p->read);
  put_texts (object, "write", p->write);
  if (p->exec_any)
    json_put_text (object, "exec", "any");
  else
    put_texts (object, "exec", p->exec);
  if (p->namespaces)
    json_object_set_new (object, "namespaces", json_true ());
  if (p->cgroup)
    json_object_set_new (object, "cgroup", json_true ());
  return object;
}

static json_t *
limits_json (const struct manifest_limits *limits)
{
  json_t *object = json_object ();

  json_put_u64 (object, "memory_bytes", limits->memory_bytes);
  json_put_u64 (object, "files", limits->files);
  json_put_u64 (object, "processes", limits->processes);
  json_put_u64 (object, "calls", limits->calls);
  return object;
}

static void
add_manifest (json_t *info, const struct registry_entry *entry)
{
  const struct manifest *m = entry->manifest;

  json_put_text (info, "summary", m->summary);
  json_put_text (info, "version", m->version);
  json_put_text (info, "license", m->license);
  json_put_text (info, "homepage", m->homepage);
  json_put_text (info, "manifest", m->path);
  json_put_text (info, "manifest_sha256", m->sha256);
  json_object_set_new (info, "module", modules_json (m));
  json_object_set_new (info, "files", files_json (m));
  json_object_set_new (info, "contract",
                       json_pack ("{s:i, s:i}", "major", m->contract_major,
                                  "minor", m->contract_minor));
  json_put_text (info, "threads", m->threads == COFFER_THREADS_PARALLEL
                             ? "parallel" : "serial");
  json_object_set_new (info, "capabilities",
                       json_texts ((const char *const *) m->capabilities));
  json_object_set_new (info, "never",
                       json_texts ((const char *const *) m->never));
  json_object_set_new (info, "isolation",
                       json_pack ("{s:s, s:b}", "kind", m->isolation_kind,
                                  "host_kernel_shared",
                                  m->host_kernel_shared));
  json_object_set_new (info, "config", config_json (entry));
  json_object_set_new (info, "permissions",
                       permissions_json (&m->permissions));
  json_object_set_new (info, "limits", limits_json (&m->limits));
}

json_t *
registry_entry_json (const struct registry_entry *entry)
{
  json_t *info = json_pack ("{s:s, s:s, s:s}", "id", entry->id, "state",
                            registry_state_name (entry->state), "trust",
                            registry_trust_name (entry->trust));

  if (info == NULL)
    return NULL;
  if (entry->error)
    json_object_set_new (info, "error", error_to_json (entry->error));
  if (entry->manifest)
    add_manifest (info, entry);
  json_put_text (info, "operator_file", entry->override_path);
  if (entry->without)
    json_object_set_new (info, "without",
                         json_texts ((const char *const *) entry->without));
  if (entry->receipt)
    json_object_set_new (info, "receipt", receipt_to_json (entry->receipt));
  if (entry->allow_degraded)
    json_object_set_new (info, "allow_degraded", json_true ());
  return info;
}

/* -- all of them ----------------------------------------------------------- */

/* Enabled, and refused nevertheless until the kit has judged it. */
int
registry_needs_kit (const struct registry_entry *entry)
{
  return entry->state == PROVIDER_ENABLED
         && conformance_demand (entry, NULL) < 0;
}

static json_t *
list_item (const struct registry *registry, const struct registry_entry *entry)
{
  const struct manifest *m = entry->manifest;
  auto_free char *code = NULL;
  json_t *item = json_pack (
    "{s:s, s:s, s:s, s:b}", "id", entry->id, "state",
    registry_state_name (entry->state), "trust",
    registry_trust_name (entry->trust), "default",
    strcmp (entry->id, registry->default_provider) == 0);

  if (item && m) {
    json_object_set_new (item, "version", json_string (m->version));
    json_object_set_new (item, "kind", json_string (m->isolation_kind));
    json_object_set_new (item, "summary", json_string (m->summary));
  }
  if (item && entry->receipt)
    json_put_text (item, "conformance", entry->receipt->conformance.verdict);
  if (item)
    json_object_set_new (item, "needs_kit", json_boolean (registry_needs_kit (entry)));
  if (item && entry->error) {
    code = text_printf ("E%d", entry->error->number);
    json_object_set_new (item, "error",
                         json_pack ("{s:s?, s:s}", "code", code, "message",
                                    entry->error->message));
  }
  return item;
}

json_t *
registry_list_json (const struct registry *registry)
{
  json_t *providers = json_array ();
  size_t i;

  for (i = 0; i < registry->count; i++)
    json_array_append_new (providers,
                           list_item (registry, &registry->entries[i]));
  return json_pack ("{s:o, s:s, s:s}", "providers", providers,
                    "default_provider", registry->default_provider,
                    "default_source", registry->default_source);
}

json_t *
registry_default_json (const struct registry *registry)
{
  return json_pack ("{s:s, s:s}", "id", registry->default_provider, "source",
                    registry->default_source);
}

int
registry_state_json (const struct place *place, const char *id, int changed,
                     json_t **out, struct error **err)
{
  auto_registry struct registry *registry = NULL;
  const struct registry_entry *entry;

  if (registry_load_one (place, id, &registry, err) < 0)
    return -1;
  /* Another command may have taken it away meanwhile. */
  if (registry->count == 0)
    return registry_find (registry, id, &entry, err);
  entry = &registry->entries[0];
  *out = json_pack ("{s:s, s:s, s:s, s:b, s:s*}", "id", entry->id, "state",
                    registry_state_name (entry->state), "trust",
                    registry_trust_name (entry->trust), "changed", changed,
                    "operator_file", entry->override_path);
  return *out ? 0 : error_set (err, E_NO_MEMORY, 0, "provider %s", id);
}
