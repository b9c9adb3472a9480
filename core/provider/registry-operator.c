/* SPDX-License-Identifier: Apache-2.0 */
/* What the operator says: coffer.yaml, and providers.d/ID.yaml for one
 * provider.  They enable, configure, narrow and limit; a manifest is never
 * edited. */

#include <config.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/log.h"
#include "base/text.h"
#include "contract/contract.h"
#include "provider/registry-read.h"

int
operator_read (int dir, const char *name, const char *shown,
               struct yaml_node **out, struct error **err)
{
  auto_free char *bytes = NULL;
  size_t size = 0;

  if (dir < 0
      || (faccessat (dir, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0
          && (errno == ENOENT || errno == ENOTDIR)))
    return 0;
  if (place_read_trusted (dir, name, shown, YAML_MAX_BYTES, E_CONFIG, &bytes,
                          &size, err) < 0)
    return -1;
  if (yaml_is_blank (bytes, size))
    return 0;
  return yaml_read (bytes, size, shown, E_CONFIG, out, err) < 0 ? -1 : 1;
}

/* -- coffer.yaml ----------------------------------------------------------- */

static int
read_accept (const struct yaml_source *source, const struct yaml_node *node,
             char ***out, struct error **err)
{
  const char *const *known = contract_capabilities ();
  char **words = NULL;
  size_t i, j;

  if (yaml_texts (source, node, "accept", &words, err) < 0)
    return -1;
  for (i = 0; words[i]; i++) {
    for (j = 0; known[j] && strcmp (known[j], words[i]) != 0; j++)
      ;
    if (known[j] == NULL) {
      const char *nearest = text_nearest (words[i], known);

      yaml_fail (source, &node->items[i], err,
                 "accept: no such capability%s%s", nearest ? ", try " : "",
                 nearest ? nearest : "");
      yaml_free_texts (words);
      return -1;
    }
  }
  yaml_free_texts (*out);
  *out = words;
  return 0;
}

static int
read_default (const struct yaml_source *source, const struct yaml_node *node,
              char **out, struct error **err)
{
  auto_free char *id = NULL;

  if (yaml_text (source, node, "default_provider", &id, err) < 0)
    return -1;
  if (!text_is_id (id))
    return yaml_fail (source, node, err,
                      "default_provider must be a provider's id");
  free (*out);
  *out = steal (id);
  return 0;
}

static int
read_default_profile (const struct yaml_source *source,
                      const struct yaml_node *node, char **out,
                      struct error **err)
{
  auto_free char *name = NULL;

  if (yaml_text (source, node, "default_profile", &name, err) < 0)
    return -1;
  if (!text_is_id (name))
    return yaml_fail (source, node, err,
                      "default_profile must be a profile's name");
  free (*out);
  *out = steal (name);
  return 0;
}

const char *const operator_main_keys[] = {
  "default_provider", "default_profile", "accept", "require_conformance",
  "require_signature", "serve", NULL
};

static int
read_flag (const struct yaml_source *source, const struct yaml_node *root,
           const char *key, int *flag, struct error **err)
{
  const struct yaml_node *node = yaml_get (root, key);

  return node ? yaml_flag (source, node, key, flag, err) : 0;
}

static int
read_main (struct registry *registry, const struct registry_layer *layer,
           const char *shown, struct error **err)
{
  const struct yaml_source source = { shown, E_CONFIG };
  auto_yaml struct yaml_node *root = NULL;
  const struct yaml_node *node;
  int r = operator_read (layer->config, "coffer.yaml", shown, &root, err);

  if (r <= 0)
    return r;
  if (yaml_check_keys (&source, root, operator_main_keys, err) < 0)
    return -1;
  node = yaml_get (root, "default_provider");
  if (node) {
    if (read_default (&source, node, &registry->default_provider, err) < 0)
      return -1;
    registry->default_source = layer->source;
  }
  node = yaml_get (root, "default_profile");
  if (node
      && read_default_profile (&source, node, &registry->default_profile, err)
           < 0)
    return -1;
  if (read_flag (&source, root, "require_conformance",
                 &registry->require_conformance, err) < 0
      || read_flag (&source, root, "require_signature",
                    &registry->require_signature, err) < 0)
    return -1;
  node = yaml_get (root, "accept");
  return node ? read_accept (&source, node, &registry->accept, err) : 0;
}

int
operator_read_main (struct registry_reader *reader, struct error **err)
{
  size_t i;

  for (i = 0; i < reader->n_layers; i++) {
    const struct registry_layer *layer = &reader->layers[i];
    auto_free char *shown = text_printf ("%s/coffer.yaml", layer->config_path);

    if (shown == NULL)
      return error_set (err, E_NO_MEMORY, 0, "reading the configuration");
    if (read_main (reader->registry, layer, shown, err) < 0)
      return -1;
  }
  return 0;
}

/* -- providers.d/ID.yaml --------------------------------------------------- */

static int
apply_value (const struct yaml_source *source, const struct yaml_node *node,
             struct registry_entry *entry, const struct manifest_config *key,
             struct error **err)
{
  auto_free char *value = NULL;
  const char *wrong;

  if (yaml_text (source, node, key->key, &value, err) < 0)
    return -1;
  if (manifest_config_is_secret (key->type)) {
    if (!config_is_reference (value))
      return yaml_fail (source, node, err,
                        "%s is a secret: give it by env:NAME, file:PATH or "
                        "credential:NAME", key->key);
    return config_set (entry, key, NULL, value, err);
  }
  if (key->type == CONFIG_PROXY && config_is_reference (value))
    return config_set (entry, key, NULL, value, err);
  wrong = manifest_check_value (key->type, value);
  if (!wrong && key->type == CONFIG_PROXY && strchr (value, '@'))
    wrong = "has a password in it: give it by env:NAME, file:PATH or "
            "credential:NAME";
  if (wrong)
    return yaml_fail (source, node, err, "%s %s", key->key, wrong);
  return config_set (entry, key, value, "config", err);
}

static int
apply_config (const struct yaml_source *source, const struct yaml_node *node,
              struct registry_entry *entry, struct error **err)
{
  const struct manifest *m = entry->manifest;
  const char *names[MANIFEST_MAX_CONFIG + 1] = { NULL };
  size_t i;

  for (i = 0; i < m->n_config; i++)
    names[i] = m->config[i].key;
  if (yaml_check_keys (source, node, names, err) < 0)
    return -1;
  for (i = 0; i < node->count; i++) {
    if (apply_value (source, &node->items[i], entry,
                     manifest_find_config (m, node->keys[i]), err) < 0)
      return -1;
  }
  return 0;
}

static int
apply_worker (const struct yaml_source *source, const struct yaml_node *node,
              struct registry_entry *entry, struct error **err)
{
  static const char *const keys[] = { "allow_degraded", NULL };
  const struct yaml_node *flag;

  if (yaml_check_keys (source, node, keys, err) < 0)
    return -1;
  flag = yaml_get (node, "allow_degraded");
  if (flag == NULL)
    return 0;
  return yaml_flag (source, flag, "allow_degraded", &entry->allow_degraded,
                    err);
}

/* Raises and lowers: what is given replaces the manifest's. */
static int
apply_limits (const struct yaml_source *source, const struct yaml_node *node,
              struct manifest_limits *limits, struct error **err)
{
  struct manifest_limits given = { 0 };

  if (manifest_read_limits (source, node, &given, err) < 0)
    return -1;
  if (given.memory_bytes)
    limits->memory_bytes = given.memory_bytes;
  if (given.files)
    limits->files = given.files;
  if (given.processes)
    limits->processes = given.processes;
  if (given.calls)
    limits->calls = given.calls;
  return 0;
}

const char *const operator_keys[] = {
  "enabled", "config", "permissions", "limits", "worker", "without", NULL
};

static int
apply_file (const struct yaml_source *source, const struct yaml_node *root,
            struct registry_entry *entry, struct error **err)
{
  const struct yaml_node *node;
  int enabled = entry->state != PROVIDER_DISABLED;

  if (yaml_check_keys (source, root, operator_keys, err) < 0)
    return -1;
  node = yaml_get (root, "enabled");
  if (node && yaml_flag (source, node, "enabled", &enabled, err) < 0)
    return -1;
  entry->state = enabled ? PROVIDER_ENABLED : PROVIDER_DISABLED;
  node = yaml_get (root, "config");
  if (node && apply_config (source, node, entry, err) < 0)
    return -1;
  node = yaml_get (root, "permissions");
  if (node
      && permissions_narrow (source, node, &entry->manifest->permissions, err)
           < 0)
    return -1;
  node = yaml_get (root, "without");
  if (node && claims_narrow (source, node, entry, err) < 0)
    return -1;
  node = yaml_get (root, "limits");
  if (node && apply_limits (source, node, &entry->manifest->limits, err) < 0)
    return -1;
  if (node || yaml_get (root, "permissions"))
    entry->held_in_worker = 1;
  node = yaml_get (root, "worker");
  return node ? apply_worker (source, node, entry, err) : 0;
}

/* The folder providers.d must pass the same rule as the file. */
static int
open_providers_d (const struct registry_layer *layer, const char *shown,
                  struct error **err)
{
  int fd;

  if (layer->config < 0)
    return -1;
  fd = openat (layer->config, "providers.d",
               O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0 && errno != ENOENT)
    return error_set (err, E_UNSAFE_FILE, errno, "open %s", shown);
  if (fd >= 0 && place_check_trusted (fd, shown, err) < 0)
    coffer_fd_close (&fd);
  return fd;
}

static int
apply_layer (const struct registry_layer *layer, struct registry_entry *entry,
             struct error **err)
{
  auto_yaml struct yaml_node *root = NULL;
  auto_free char *folder = text_printf ("%s/providers.d", layer->config_path);
  auto_free char *name = text_printf ("%s.yaml", entry->id);
  auto_free char *shown = NULL;
  coffer_autoclose int dir = -1;
  struct yaml_source source = { NULL, E_CONFIG };
  struct error *unsafe = NULL;
  int r;

  shown = folder && name ? text_printf ("%s/%s", folder, name) : NULL;
  if (shown == NULL)
    return error_set (err, E_NO_MEMORY, 0, "provider %s", entry->id);
  dir = open_providers_d (layer, folder, &unsafe);
  if (unsafe)
    return error_move (err, unsafe);
  r = operator_read (dir, name, shown, &root, err);
  if (r <= 0)
    return r;
  source.name = shown;
  r = apply_file (&source, root, entry, err);
  free (entry->override_path);
  entry->override_path = steal (shown);
  return r;
}

int
operator_apply (const struct registry_reader *reader,
                struct registry_entry *entry, struct error **err)
{
  size_t i;

  for (i = 0; i < reader->n_layers; i++) {
    if (apply_layer (&reader->layers[i], entry, err) < 0)
      return -1;
  }
  return 0;
}

static int
speaks_of (const struct registry *registry, const char *name)
{
  size_t i, length;

  for (i = 0; i < registry->count; i++) {
    length = strlen (registry->entries[i].id);
    if (strncmp (name, registry->entries[i].id, length) == 0
        && strcmp (name + length, ".yaml") == 0)
      return 1;
  }
  return 0;
}

/* Neither hidden nor what an editor or a package manager put aside. */
static int
is_meant (const char *name)
{
  return name[0] != '.' && name[strlen (name) - 1] != '~'
         && strstr (name, ".dpkg-") == NULL && strstr (name, ".rpm") == NULL;
}

static void
warn_of_strays (const struct registry_reader *reader,
                const struct registry_layer *layer)
{
  struct dirent *item;
  DIR *stream;
  int fd = layer->config < 0 ? -1
             : openat (layer->config, "providers.d",
                       O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

  stream = fd < 0 ? NULL : fdopendir (fd);
  if (stream == NULL) {
    coffer_fd_close (&fd);
    return;
  }
  while ((item = readdir (stream)))
    if (is_meant (item->d_name) && !speaks_of (reader->registry, item->d_name))
      log_event (LOG_LEVEL_WARNING, "registry",
                 "%s/providers.d/%s is not read: it is called like no provider"
                 " (ID.yaml)", layer->config_path, item->d_name);
  closedir (stream);
}

void
operator_warn_of_strays (const struct registry_reader *reader)
{
  size_t i;

  for (i = 0; i < reader->n_layers; i++)
    warn_of_strays (reader, &reader->layers[i]);
}
