/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration values and where they come from: a variable of the
 * environment that the manifest names, the operator's file, systemd's
 * credentials, the manifest's default, in this order.  Secrets stay where they
 * are until a provider is opened. */

#include <config.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <coffer/buffer.h>
#include <coffer/fd.h>

#include "base/log.h"
#include "base/text.h"
#include "provider/docker-client.h"
#include "provider/proxy.h"
#include "provider/registry-read.h"

#define MAX_SECRET (64 << 10)

static int
is_word (const char *s)
{
  size_t n = strspn (s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                        "0123456789._-");

  return n > 0 && n <= 128 && s[n] == '\0' && s[0] != '.';
}

int
config_is_reference (const char *value)
{
  if (strncmp (value, "env:", 4) == 0)
    return is_word (value + 4);
  if (strncmp (value, "credential:", 11) == 0)
    return is_word (value + 11);
  return strncmp (value, "file:", 5) == 0 && manifest_is_path (value + 5);
}

static struct registry_config *
find_config (const struct registry_entry *entry, const char *key)
{
  size_t i;

  for (i = 0; i < entry->n_config; i++) {
    if (strcmp (entry->config[i].key, key) == 0)
      return &entry->config[i];
  }
  return NULL;
}

/* Room for every key of the manifest is made at once. */
static struct registry_config *
new_config (struct registry_entry *entry, const struct manifest_config *key)
{
  struct registry_config *config;

  if (entry->config == NULL)
    entry->config = calloc (entry->manifest->n_config,
                            sizeof *entry->config);
  if (entry->config == NULL)
    return NULL;
  config = &entry->config[entry->n_config];
  config->key = strdup (key->key);
  if (config->key)
    entry->n_config++;
  return config->key ? config : NULL;
}

int
config_set (struct registry_entry *entry, const struct manifest_config *key,
            const char *value, const char *origin, struct error **err)
{
  struct registry_config *config = find_config (entry, key->key);

  if (config == NULL)
    config = new_config (entry, key);
  if (config == NULL)
    return error_set (err, E_NO_MEMORY, 0, "provider %s", entry->id);
  free (config->value);
  free (config->origin);
  /* A proxy may have a password in it; one that was written down has none. */
  config->secret = manifest_config_is_secret (key->type)
                   || (key->type == CONFIG_PROXY && value == NULL);
  config->value = value ? strdup (value) : NULL;
  config->origin = strdup (origin);
  if (config->origin == NULL || (value && config->value == NULL))
    return error_set (err, E_NO_MEMORY, 0, "provider %s", entry->id);
  return 0;
}

/* -- values that nobody had to write down ---------------------------------- */

/* secure_getenv: nothing under AT_SECURE. */
static const char *
variable (const char *name)
{
  const char *value = name ? secure_getenv (name) : NULL;

  return value && value[0] ? value : NULL;
}

/* Is there a credential PROVIDER.KEY? */
static int
has_credential (const char *name)
{
  const char *folder = variable ("CREDENTIALS_DIRECTORY");
  auto_free char *path = NULL;

  if (folder == NULL || folder[0] != '/')
    return 0;
  path = text_printf ("%s/%s", folder, name);
  return path && access (path, F_OK) == 0;
}

static int
set_from_env (struct registry_entry *entry, const struct manifest_config *key,
              const char *value, struct error **err)
{
  auto_free char *origin = text_printf ("env:%s", key->env);
  const char *wrong = manifest_check_value (key->type, value);

  if (origin == NULL)
    return error_set (err, E_NO_MEMORY, 0, "provider %s", entry->id);
  if (wrong)
    return error_set (err, E_CONFIG_VALUE, 0, "%s: %s (from the variable %s) "
                      "%s", entry->id, key->key, key->env, wrong);
  return config_set (entry, key,
                     manifest_config_is_secret (key->type)
                         || key->type == CONFIG_PROXY ? NULL : value, origin,
                     err);
}

/* -- from the docker command's configuration ------------------------------- */

/* 1: the value is set. */
static int
complete_host (struct registry_entry *entry,
               const struct manifest_config *key,
               struct docker_client *client, struct error **err)
{
  const char *wrong;
  int r = docker_client_read (find_config (entry, key->key) != NULL, client,
                              err);

  if (r < 0 || !client->host)
    return r;
  wrong = manifest_check_value (key->type, client->host);
  if (wrong)
    return error_set (err, E_CONFIG_VALUE, 0, "%s: %s (%s) %s", entry->id,
                      key->key, client->origin, wrong);
  return config_set (entry, key, client->host, client->origin, err) < 0 ? -1
                                                                        : 1;
}

/* Those that go with the engine that is named there, and with no other. */
static int
complete_certificate (struct registry_entry *entry,
                      const struct manifest_config *key,
                      const struct docker_client *client, struct error **err)
{
  const char *name = key->from == FROM_DOCKER_CA            ? "ca.pem"
                     : key->from == FROM_DOCKER_CERTIFICATE ? "cert.pem"
                                                            : "key.pem";
  auto_free char *origin = NULL;

  if (!client->certificates)
    return 0;
  origin = text_printf ("file:%s/%s", client->certificates, name);
  if (!origin)
    return error_set (err, E_NO_MEMORY, 0, "provider %s", entry->id);
  if (access (origin + 5, F_OK) < 0)
    return 0;
  return config_set (entry, key, NULL, origin, err) < 0 ? -1 : 1;
}

static int
is_auths (const struct manifest_config *key)
{
  return key->from == FROM_DOCKER_AUTHS || key->from == FROM_PODMAN_AUTHS;
}

static int
complete_auths (struct registry_entry *entry,
                const struct manifest_config *key, struct error **err)
{
  auto_free char *path
    = docker_client_auths_path (key->from == FROM_PODMAN_AUTHS);
  auto_free char *origin = path ? text_printf ("auths:%s", path) : NULL;

  if (!path)
    return 0;
  if (!origin)
    return error_set (err, E_NO_MEMORY, 0, "provider %s", entry->id);
  return config_set (entry, key, NULL, origin, err) < 0 ? -1 : 1;
}

/* Of these the place of the engine alone goes before the operator's word, when a
 * variable says it. */
static int
complete_from (struct registry_entry *entry,
               const struct manifest_config *key,
               struct docker_client *client, struct error **err)
{
  if (key->from == FROM_DOCKER_HOST)
    return complete_host (entry, key, client, err);
  if (key->from == FROM_NOWHERE || find_config (entry, key->key))
    return 0;
  return is_auths (key)
           ? complete_auths (entry, key, err)
           : complete_certificate (entry, key, client, err);
}

static int
complete_value (struct registry_entry *entry,
                const struct manifest_config *key,
                struct docker_client *client, struct error **err)
{
  const char *value = variable (key->env);
  auto_free char *credential = NULL;
  auto_free char *origin = NULL;
  int r = complete_from (entry, key, client, err);

  if (r != 0)
    return r < 0 ? -1 : 0;
  if (value)
    return set_from_env (entry, key, value, err);
  if (find_config (entry, key->key))
    return 0;
  if (manifest_config_is_secret (key->type)) {
    credential = text_printf ("%s.%s", entry->id, key->key);
    if (credential == NULL || !has_credential (credential))
      return 0;
    origin = text_printf ("credential:%s", credential);
    return config_set (entry, key, NULL, origin ? origin : "", err);
  }
  if (key->default_value)
    return config_set (entry, key, key->default_value, "default", err);
  return 0;
}

/* The usual variables, for the first url that the provider is given: what the
 * operator wrote goes before them. */
static int
complete_proxy (struct registry_entry *entry,
                const struct manifest_config *key, struct error **err)
{
  const struct manifest *m = entry->manifest;
  const struct registry_config *url = NULL;
  const char *variable_name, *wrong;
  auto_free char *origin = NULL;
  size_t i;

  for (i = 0; i < m->n_config && !url; i++)
    if (m->config[i].type == CONFIG_URL)
      url = find_config (entry, m->config[i].key);
  if (find_config (entry, key->key) || !url)
    return 0;
  variable_name = proxy_variable (url->value);
  if (!variable_name)
    return 0;
  wrong = manifest_check_value (key->type, variable (variable_name));
  if (wrong)
    return error_set (err, E_CONFIG_VALUE, 0, "%s: %s (from the variable %s) "
                      "%s", entry->id, key->key, variable_name, wrong);
  origin = text_printf ("env:%s", variable_name);
  return origin ? config_set (entry, key, NULL, origin, err)
                : error_set (err, E_NO_MEMORY, 0, "provider %s", entry->id);
}

int
config_complete (struct registry_entry *entry, struct error **err)
{
  const struct manifest *m = entry->manifest;
  auto_docker_client struct docker_client client = { NULL, NULL, 0, NULL };
  size_t i;

  for (i = 0; i < m->n_config; i++) {
    if (complete_value (entry, &m->config[i], &client, err) < 0)
      return -1;
  }
  for (i = 0; i < m->n_config; i++) {
    if (m->config[i].type == CONFIG_PROXY
        && complete_proxy (entry, &m->config[i], err) < 0)
      return -1;
  }
  return 0;
}

/* -- secrets --------------------------------------------------------------- */

/* A certificate is everybody's to see. */
static int
is_secret (enum manifest_config_type type, const char *value)
{
  return type != CONFIG_PEM || strstr (value, "PRIVATE KEY") != NULL;
}

/* The file's content without one newline at its end. */
static int
read_secret (const char *path, enum manifest_config_type type, char **out,
             struct error **err)
{
  coffer_autoclose int fd = -1;
  struct stat st;
  size_t size = 0;

  fd = open (path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0 || fstat (fd, &st) < 0)
    return error_set (err, E_CREDENTIALS_MISSING, errno, "open %s", path);
  if (!S_ISREG (st.st_mode))
    return error_set (err, E_UNSAFE_FILE, 0, "%s is not a regular file", path);
  if (place_check_trusted (fd, path, err) < 0)
    return -1;
  if (coffer_read_whole (fd, MAX_SECRET, out, &size) < 0)
    return error_set (err, E_CREDENTIALS_MISSING, errno, "read %s", path);
  if (*out && size > 0 && (*out)[size - 1] == '\n')
    (*out)[--size] = '\0';
  if (*out == NULL || size == 0 || strlen (*out) != size)
    return error_set (err, E_CREDENTIALS_MISSING, 0,
                      "%s holds no text", path);
  if (st.st_mode & S_IROTH && is_secret (type, *out))
    log_event (LOG_LEVEL_WARNING, "registry",
               "%s holds a secret and everybody may read it", path);
  return 0;
}

static int
read_variable (const char *name, char **out, struct error **err)
{
  const char *value = variable (name);

  if (value == NULL)
    return error_set (err, E_CREDENTIALS_MISSING, 0,
                      "the variable %s is not set", name);
  *out = strdup (value);
  return *out ? 0 : error_set (err, E_NO_MEMORY, 0, "read %s", name);
}

static int
read_credential (const char *name, enum manifest_config_type type, char **out,
                 struct error **err)
{
  const char *folder = variable ("CREDENTIALS_DIRECTORY");
  auto_free char *path = NULL;

  if (folder == NULL || folder[0] != '/') {
    error_set (err, E_CREDENTIALS_MISSING, 0,
               "there is no credential %s: CREDENTIALS_DIRECTORY is not set",
               name);
    error_hint (err, "systemd sets it for a unit with LoadCredential=");
    return -1;
  }
  path = text_printf ("%s/%s", folder, name);
  if (path == NULL)
    return error_set (err, E_NO_MEMORY, 0, "read %s", name);
  return read_secret (path, type, out, err);
}

/* Wiped before it is freed. */
static void
wipe (char **secret)
{
  if (*secret)
    explicit_bzero (*secret, strlen (*secret));
  free (*secret);
}

static int
fetch_secret (const struct registry_config *config,
              enum manifest_config_type type, char **out, struct error **err)
{
  __attribute__ ((cleanup (wipe))) char *value = NULL;
  const char *origin = config->origin, *wrong;
  int r;

  if (strncmp (origin, "env:", 4) == 0)
    r = read_variable (origin + 4, &value, err);
  else if (strncmp (origin, "file:", 5) == 0)
    r = read_secret (origin + 5, type, &value, err);
  else if (strncmp (origin, "auths:", 6) == 0)
    return docker_client_auths (origin + 6, out, err);
  else
    r = read_credential (origin + 11, type, &value, err);
  if (r < 0)
    return -1;
  wrong = manifest_check_value (type, value);
  if (wrong)
    return error_set (err, E_CONFIG_VALUE, 0, "the secret %s %s", config->key,
                      wrong);
  *out = steal (value);
  return 0;
}

/* -- for open -------------------------------------------------------------- */

static int
fail_missing (const struct registry_entry *entry,
              const struct manifest_config *key, struct error **err)
{
  error_set (err, manifest_config_is_secret (key->type)
                    ? E_CREDENTIALS_MISSING : E_CONFIG_VALUE, 0,
             "%s: the configuration lacks %s", entry->id, key->key);
  if (key->env)
    error_hint (err, "set %s, or %s in providers.d/%s.yaml", key->env,
                key->key, entry->id);
  else
    error_hint (err, "set %s in providers.d/%s.yaml", key->key, entry->id);
  return -1;
}

/* KEY=VALUE, of the room that is needed, and secrets. */
struct resolved {
  char **values;
  size_t n_values;
  struct coffer_strings secrets;
};

static void
resolved_fini (struct resolved *resolved)
{
  yaml_free_texts (resolved->values);
  yaml_free_texts (resolved->secrets.items);
}

static int
resolve_one (const struct registry_entry *entry,
             const struct manifest_config *key, struct resolved *resolved,
             struct error **err)
{
  const struct registry_config *config = find_config (entry, key->key);
  __attribute__ ((cleanup (wipe))) char *secret = NULL;
  const char *value;

  if (config == NULL)
    return key->required ? fail_missing (entry, key, err) : 0;
  if (config->secret && fetch_secret (config, key->type, &secret, err) < 0)
    return error_wrap (err, "%s: %s", entry->id, key->key);
  if (config->secret && !secret)
    return 0;                   /* a store with nothing in it */
  value = secret ? secret : config->value;
  resolved->values[resolved->n_values]
    = text_printf ("%s=%s", key->key, value ? value : "");
  if (resolved->values[resolved->n_values++] == NULL)
    return error_set (err, E_NO_MEMORY, 0, "provider %s", entry->id);
  if (secret)
    coffer_strings_add (&resolved->secrets, secret);
  if (secret && is_auths (key))
    docker_client_secrets (secret, &resolved->secrets);
  return resolved->secrets.failed
           ? error_set (err, E_NO_MEMORY, 0, "provider %s", entry->id) : 0;
}

int
registry_resolve_config (const struct registry_entry *entry, char ***out,
                         char ***secrets, struct error **err)
{
  __attribute__ ((cleanup (resolved_fini))) struct resolved resolved = { 0 };
  const struct manifest *m = entry->manifest;
  size_t i;

  resolved.values = calloc (m->n_config + 1, sizeof *resolved.values);
  if (resolved.values == NULL)
    return error_set (err, E_NO_MEMORY, 0, "provider %s", entry->id);
  for (i = 0; i < m->n_config; i++) {
    if (resolve_one (entry, &m->config[i], &resolved, err) < 0)
      return -1;
  }
  if (!resolved.secrets.items)
    resolved.secrets.items = calloc (1, sizeof *resolved.secrets.items);
  if (!resolved.secrets.items)
    return error_set (err, E_NO_MEMORY, 0, "provider %s", entry->id);
  *out = steal (resolved.values);
  *secrets = steal (resolved.secrets.items);
  return 0;
}

const char *
registry_auths_path (const struct registry_entry *entry, const char *key)
{
  const struct registry_config *config = find_config (entry, key);
  const int is_file
    = config && config->secret && strncmp (config->origin, "auths:", 6) == 0;

  return is_file ? config->origin + 6 : NULL;
}
