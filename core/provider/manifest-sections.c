/* SPDX-License-Identifier: Apache-2.0 */
/* The sections of a manifest that are lists and tables of their own: modules,
 * files, configuration, permissions, limits. */

#include <config.h>

#include <ctype.h>
#include <stddef.h>
#include <string.h>

#include "base/text.h"
#include "provider/manifest-read.h"

static int
read_file_name (struct manifest_reader *reader, const struct yaml_node *node,
                const char *key, void *out, struct error **err)
{
  char **name = out;

  if (yaml_text (&reader->source, node, key, name, err) < 0)
    return -1;
  if (!manifest_is_file_name (*name))
    return yaml_fail (&reader->source, node, err,
                      "%s must be a name in the manifest's folder: letters, "
                      "digits and ._+- and no leading dot", key);
  return 0;
}

/* "" is "not sealed". */
static int
read_sha256 (struct manifest_reader *reader, const struct yaml_node *node,
             const char *key, void *out, struct error **err)
{
  auto_free char *hex = NULL;

  if (yaml_text (&reader->source, node, key, &hex, err) < 0)
    return -1;
  if (hex[0] == '\0')
    return 0;
  if (!sha256_is_hex (hex))
    return yaml_fail (&reader->source, node, err,
                      "%s must be 64 lower-case hex digits, or \"\" before "
                      "`coffer seal`", key);
  memcpy (out, hex, SHA256_HEX_SIZE);
  return 0;
}

static int
read_arch (struct manifest_reader *reader, const struct yaml_node *node,
           const char *key, void *out, struct error **err)
{
  size_t i;

  if (manifest_read_word (&reader->source, node, key, manifest_archs, &i, err)
      < 0)
    return -1;
  return yaml_text (&reader->source, node, key, out, err);
}

static int
read_flag (struct manifest_reader *reader, const struct yaml_node *node,
           const char *key, void *out, struct error **err)
{
  return yaml_flag (&reader->source, node, key, out, err);
}

/* Memory for each item of a list, zeroed, whose count is within bounds. */
static int
check_list (struct manifest_reader *reader, const struct yaml_node *node,
            const char *key, size_t min, size_t max, size_t item_size,
            void **out, struct error **err)
{
  if (node->kind != YAML_LIST)
    return yaml_fail (&reader->source, node, err, "%s must be a list", key);
  if (node->count < min || node->count > max)
    return yaml_fail (&reader->source, node, err,
                      "%s must have %zu to %zu entries", key, min, max);
  *out = calloc (node->count + 1, item_size);
  if (*out == NULL)
    return error_set (err, E_NO_MEMORY, 0, "%s", reader->source.name);
  return 0;
}

/* -- module, files --------------------------------------------------------- */

const struct manifest_key manifest_module_keys[] = {
  { "arch", 1, read_arch, offsetof (struct manifest_module, arch) },
  { "file", 1, read_file_name, offsetof (struct manifest_module, file) },
  { "sha256", 0, read_sha256, offsetof (struct manifest_module, sha256) },
  { NULL }
};

int
manifest_read_modules (struct manifest_reader *reader,
                       const struct yaml_node *node, const char *key,
                       void *out, struct error **err)
{
  struct manifest *m = out;
  void *list;
  size_t i, j;

  if (check_list (reader, node, key, 1, MANIFEST_MAX_MODULES,
                  sizeof *m->modules, &list, err) < 0)
    return -1;
  m->modules = list;
  for (i = 0; i < node->count; i++) {
    m->n_modules++;
    if (manifest_read_map (reader, &node->items[i], key, manifest_module_keys,
                           &m->modules[i], err) < 0)
      return -1;
    for (j = 0; j < i; j++) {
      if (strcmp (m->modules[i].arch, m->modules[j].arch) == 0)
        return yaml_fail (&reader->source, &node->items[i], err,
                          "module: \"%s\" is given twice", m->modules[i].arch);
    }
  }
  return 0;
}

const struct manifest_key manifest_file_keys[] = {
  { "name", 1, read_file_name, offsetof (struct manifest_file, name) },
  { "sha256", 0, read_sha256, offsetof (struct manifest_file, sha256) },
  { "late", 0, read_flag, offsetof (struct manifest_file, late) },
  { NULL }
};

static int
is_taken (const struct manifest *m, const char *name, size_t n_files)
{
  size_t i;

  for (i = 0; i < n_files; i++) {
    if (strcmp (m->files[i].name, name) == 0)
      return 1;
  }
  for (i = 0; i < m->n_modules; i++) {
    if (strcmp (m->modules[i].file, name) == 0)
      return 1;
  }
  return 0;
}

int
manifest_read_files (struct manifest_reader *reader,
                     const struct yaml_node *node, const char *key, void *out,
                     struct error **err)
{
  struct manifest *m = out;
  void *list;
  size_t i;

  if (check_list (reader, node, key, 0, MANIFEST_MAX_FILES, sizeof *m->files,
                  &list, err) < 0)
    return -1;
  m->files = list;
  for (i = 0; i < node->count; i++) {
    m->n_files++;
    if (manifest_read_map (reader, &node->items[i], key, manifest_file_keys,
                           &m->files[i], err) < 0)
      return -1;
    if (is_taken (m, m->files[i].name, i))
      return yaml_fail (&reader->source, &node->items[i], err,
                        "files: \"%s\" is given twice", m->files[i].name);
  }
  return 0;
}

/* -- config ---------------------------------------------------------------- */

static int
read_type (struct manifest_reader *reader, const struct yaml_node *node,
           const char *key, void *out, struct error **err)
{
  const char *words[CONFIG_PEM + 2] = { NULL };
  size_t i;

  for (i = 0; i <= CONFIG_PEM; i++)
    words[i] = manifest_config_type_name ((enum manifest_config_type) i);
  if (manifest_read_word (&reader->source, node, key, words, &i, err) < 0)
    return -1;
  *(enum manifest_config_type *) out = (enum manifest_config_type) i;
  return 0;
}

static int
read_env (struct manifest_reader *reader, const struct yaml_node *node,
          const char *key, void *out, struct error **err)
{
  char **env = out;
  size_t n;

  if (yaml_text (&reader->source, node, key, env, err) < 0)
    return -1;
  n = strspn (*env, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
  if ((*env)[n] != '\0' || n == 0 || n > 64 || isdigit ((unsigned char) **env))
    return yaml_fail (&reader->source, node, err,
                      "env must be a variable's name: capital letters, digits "
                      "and _");
  return 0;
}

static int
read_from (struct manifest_reader *reader, const struct yaml_node *node,
           const char *key, void *out, struct error **err)
{
  size_t i;

  if (manifest_read_word (&reader->source, node, key, manifest_config_froms,
                          &i, err) < 0)
    return -1;
  *(enum manifest_config_from *) out = (enum manifest_config_from) (i + 1);
  return 0;
}

static int
read_any_text (struct manifest_reader *reader, const struct yaml_node *node,
               const char *key, void *out, struct error **err)
{
  return yaml_text (&reader->source, node, key, out, err);
}

#define AT(member) offsetof (struct manifest_config, member)

const struct manifest_key manifest_config_keys[] = {
  { "type", 1, read_type, AT (type) },
  { "required", 0, read_flag, AT (required) },
  { "env", 0, read_env, AT (env) },
  { "from", 0, read_from, AT (from) },
  { "default", 0, read_any_text, AT (default_value) },
  { "help", 0, read_any_text, AT (help) },
  { NULL }
};

#undef AT

static int
is_config_key (const char *s)
{
  size_t n = strspn (s, "abcdefghijklmnopqrstuvwxyz0123456789_");

  return s[n] == '\0' && n <= 32 && s[0] >= 'a' && s[0] <= 'z';
}

static int
check_default (struct manifest_reader *reader, const struct yaml_node *node,
               const struct manifest_config *config, struct error **err)
{
  const struct yaml_node *at = yaml_get (node, "default");
  const char *wrong;

  if (config->default_value == NULL)
    return 0;
  if (manifest_config_is_secret (config->type))
    return yaml_fail (&reader->source, at, err,
                      "%s: a secret has no default", config->key);
  if (config->required)
    return yaml_fail (&reader->source, at, err,
                      "%s: a required value has no default", config->key);
  wrong = manifest_check_value (config->type, config->default_value);
  if (wrong)
    return yaml_fail (&reader->source, at, err, "%s: the default %s",
                      config->key, wrong);
  return 0;
}

int
manifest_read_config (struct manifest_reader *reader,
                      const struct yaml_node *node, const char *key,
                      void *out, struct error **err)
{
  struct manifest *m = out;
  size_t i;

  if (node->kind != YAML_MAP)
    return yaml_fail (&reader->source, node, err, "%s must be a map", key);
  if (node->count > MANIFEST_MAX_CONFIG)
    return yaml_fail (&reader->source, node, err,
                      "config must have at most %d values",
                      MANIFEST_MAX_CONFIG);
  m->config = calloc (node->count + 1, sizeof *m->config);
  if (m->config == NULL)
    return error_set (err, E_NO_MEMORY, 0, "%s", reader->source.name);
  for (i = 0; i < node->count; i++) {
    struct manifest_config *config = &m->config[i];

    if (!is_config_key (node->keys[i]))
      return yaml_fail (&reader->source, &node->key_marks[i], err,
                        "config: a key must be a lower-case letter and then "
                        "at most 31 letters, digits or _");
    m->n_config++;
    config->key = strdup (node->keys[i]);
    if (config->key == NULL)
      return error_set (err, E_NO_MEMORY, 0, "%s", reader->source.name);
    if (manifest_read_map (reader, &node->items[i], config->key,
                           manifest_config_keys, config, err) < 0
        || check_default (reader, &node->items[i], config, err) < 0)
      return -1;
  }
  return 0;
}

/* -- permissions ----------------------------------------------------------- */

/* A list of texts that all satisfy `is_good`, without repetition. */
static int
read_targets (struct manifest_reader *reader, const struct yaml_node *node,
              const char *key, char ***out, int (*is_good) (const char *),
              const char *must, struct error **err)
{
  char **texts;
  size_t i, j;

  if (node->kind == YAML_LIST && node->count > MANIFEST_MAX_PERMISSIONS)
    return yaml_fail (&reader->source, node, err,
                      "%s must have at most %d entries", key,
                      MANIFEST_MAX_PERMISSIONS);
  if (yaml_texts (&reader->source, node, key, out, err) < 0)
    return -1;
  texts = *out;
  for (i = 0; texts[i]; i++) {
    if (!is_good (texts[i]))
      return yaml_fail (&reader->source, &node->items[i], err, "%s must be %s",
                        key, must);
    for (j = 0; j < i; j++) {
      if (strcmp (texts[i], texts[j]) == 0)
        return yaml_fail (&reader->source, &node->items[i], err,
                          "%s: the same entry is given twice", key);
    }
  }
  return 0;
}

static int
read_connect (struct manifest_reader *reader, const struct yaml_node *node,
              const char *key, void *out, struct error **err)
{
  return read_targets (reader, node, key, out, manifest_is_target,
                       "config, NAME:PORT, *.NAME:PORT or unix:/PATH", err);
}

static int
read_paths (struct manifest_reader *reader, const struct yaml_node *node,
            const char *key, void *out, struct error **err)
{
  return read_targets (reader, node, key, out, manifest_is_path,
                       "an absolute path without \".\", \"..\" or empty parts",
                       err);
}

static int
is_path_below_root (const char *s)
{
  return manifest_is_path (s) && s[1] != '\0';
}

static int
read_narrow_paths (struct manifest_reader *reader,
                   const struct yaml_node *node, const char *key, void *out,
                   struct error **err)
{
  return read_targets (reader, node, key, out, is_path_below_root,
                       "an absolute path below / without \".\", \"..\" or "
                       "empty parts", err);
}

static int
read_exec (struct manifest_reader *reader, const struct yaml_node *node,
           const char *key, void *out, struct error **err)
{
  struct manifest_permissions *p = out;

  if (node->kind == YAML_SCALAR && strcmp (node->text, "any") == 0) {
    p->exec_any = 1;
    return 0;
  }
  if (node->kind != YAML_LIST)
    return yaml_fail (&reader->source, node, err,
                      "exec must be a list of paths, or the word any");
  return read_narrow_paths (reader, node, key, &p->exec, err);
}

#define AT(member) offsetof (struct manifest_permissions, member)

const struct manifest_key manifest_permission_keys[] = {
  { "connect", 0, read_connect, AT (connect) },
  { "read", 0, read_paths, AT (read) },
  { "write", 0, read_narrow_paths, AT (write) },
  { "exec", 0, read_exec, 0 },
  { "namespaces", 0, read_flag, AT (namespaces) },
  { "cgroup", 0, read_flag, AT (cgroup) },
  { NULL }
};

#undef AT

int
manifest_read_permissions (const struct yaml_source *source,
                           const struct yaml_node *node,
                           struct manifest_permissions *out,
                           struct error **err)
{
  struct manifest_reader reader = { *source, NULL };

  return manifest_read_map (&reader, node, "permissions",
                            manifest_permission_keys, out, err);
}

void
manifest_permissions_fini (struct manifest_permissions *permissions)
{
  yaml_free_texts (permissions->connect);
  yaml_free_texts (permissions->read);
  yaml_free_texts (permissions->write);
  yaml_free_texts (permissions->exec);
  memset (permissions, 0, sizeof *permissions);
}

/* -- limits ---------------------------------------------------------------- */

#define MEMORY_MIN (UINT64_C (16) << 20)
#define MEMORY_MAX (UINT64_C (1) << 40)

static int
read_memory (struct manifest_reader *reader, const struct yaml_node *node,
             const char *key, void *out, struct error **err)
{
  uint64_t *bytes = out;

  if (yaml_size (&reader->source, node, key, bytes, err) < 0)
    return -1;
  if (*bytes < MEMORY_MIN || *bytes > MEMORY_MAX)
    return yaml_fail (&reader->source, node, err,
                      "%s must be from 16MiB to 1TiB", key);
  return 0;
}

static int
read_files (struct manifest_reader *reader, const struct yaml_node *node,
            const char *key, void *out, struct error **err)
{
  return yaml_u64 (&reader->source, node, key, 32, 1 << 20, out, err);
}

static int
read_count (struct manifest_reader *reader, const struct yaml_node *node,
            const char *key, void *out, struct error **err)
{
  return yaml_u64 (&reader->source, node, key, 1, 1 << 16, out, err);
}

#define AT(member) offsetof (struct manifest_limits, member)

const struct manifest_key manifest_limit_keys[] = {
  { "memory", 0, read_memory, AT (memory_bytes) },
  { "files", 0, read_files, AT (files) },
  { "processes", 0, read_count, AT (processes) },
  { "calls", 0, read_count, AT (calls) },
  { NULL }
};

#undef AT

int
manifest_read_limits (const struct yaml_source *source,
                      const struct yaml_node *node,
                      struct manifest_limits *out, struct error **err)
{
  struct manifest_reader reader = { *source, NULL };

  return manifest_read_map (&reader, node, "limits", manifest_limit_keys, out,
                            err);
}
