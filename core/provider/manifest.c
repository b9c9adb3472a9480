/* SPDX-License-Identifier: Apache-2.0 */
/* The manifest as a whole: its top-level keys, opening it, and what is asked
 * of one that was read.  A manifest is as powerful as the program it names,
 * so nothing in it is guessed: what is not understood is refused. */

#include <config.h>

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/place.h"
#include "base/text.h"
#include "contract/contract.h"
#include "provider/manifest-read.h"

#define MAX_SUMMARY 200
#define MAX_KEYS 24

int
manifest_read_map (struct manifest_reader *reader,
                   const struct yaml_node *node, const char *what,
                   const struct manifest_key *keys, void *out,
                   struct error **err)
{
  const char *names[MAX_KEYS + 1] = { NULL };
  const struct manifest_key *k;
  size_t n = 0;

  for (k = keys; k->name && n < MAX_KEYS; k++)
    names[n++] = k->name;
  if (yaml_check_keys (&reader->source, node, names, err) < 0)
    return -1;
  for (k = keys; k->name; k++) {
    const struct yaml_node *value = yaml_get (node, k->name);

    if (value == NULL && k->required)
      return yaml_fail (&reader->source, node, err,
                        "%s: the key \"%s\" is missing", what, k->name);
    if (value
        && k->read (reader, value, k->name, (char *) out + k->offset, err) < 0)
      return -1;
  }
  return 0;
}

int
manifest_read_word (const struct yaml_source *source,
                    const struct yaml_node *node, const char *key,
                    const char *const *words, size_t *index,
                    struct error **err)
{
  auto_free char *word = NULL, *shown = NULL;
  const char *nearest;
  size_t i;

  if (yaml_text (source, node, key, &word, err) < 0)
    return -1;
  for (i = 0; words[i]; i++) {
    if (strcmp (words[i], word) == 0) {
      *index = i;
      return 0;
    }
  }
  shown = text_escape (word, strlen (word));
  nearest = text_nearest (word, words);
  if (nearest)
    return yaml_fail (source, node, err,
                      "%s: unknown word \"%s\": did you mean \"%s\"?", key,
                      shown ? shown : "?", nearest);
  return yaml_fail (source, node, err, "%s: unknown word \"%s\"", key,
                    shown ? shown : "?");
}

/* -- top-level values ------------------------------------------------------ */

static int
read_format (struct manifest_reader *reader, const struct yaml_node *node,
             const char *key, void *out, struct error **err)
{
  uint64_t version;

  (void) out;
  if (yaml_u64 (&reader->source, node, key, 0, UINT32_MAX, &version, err) < 0)
    return -1;
  if (version != MANIFEST_VERSION)
    return yaml_fail (&reader->source, node, err,
                      "manifest format %llu is not known here, only %d",
                      (unsigned long long) version, MANIFEST_VERSION);
  return 0;
}

static int
read_id (struct manifest_reader *reader, const struct yaml_node *node,
         const char *key, void *out, struct error **err)
{
  char **id = out;

  if (yaml_text (&reader->source, node, key, id, err) < 0)
    return -1;
  if (!text_is_id (*id))
    return yaml_fail (&reader->source, node, err,
                      "id must be a lower-case letter and then at most 31 "
                      "letters, digits or dashes");
  return 0;
}

static int
read_summary (struct manifest_reader *reader, const struct yaml_node *node,
              const char *key, void *out, struct error **err)
{
  char **summary = out;

  if (yaml_text (&reader->source, node, key, summary, err) < 0)
    return -1;
  if ((*summary)[0] == '\0' || strlen (*summary) > MAX_SUMMARY)
    return yaml_fail (&reader->source, node, err,
                      "%s must have 1 to %d bytes", key, MAX_SUMMARY);
  return 0;
}

static int
read_version (struct manifest_reader *reader, const struct yaml_node *node,
              const char *key, void *out, struct error **err)
{
  char **version = out;
  size_t n;

  if (yaml_text (&reader->source, node, key, version, err) < 0)
    return -1;
  n = strspn (*version, "0123456789abcdefghijklmnopqrstuvwxyz"
                        "ABCDEFGHIJKLMNOPQRSTUVWXYZ.+~-");
  if ((*version)[n] != '\0' || n > 40 || (*version)[0] < '0'
      || (*version)[0] > '9')
    return yaml_fail (&reader->source, node, err,
                      "version must begin with a digit and have at most 40 "
                      "letters, digits or .+~-");
  return 0;
}

static int
read_license (struct manifest_reader *reader, const struct yaml_node *node,
              const char *key, void *out, struct error **err)
{
  char **license = out;
  size_t n;

  if (yaml_text (&reader->source, node, key, license, err) < 0)
    return -1;
  n = strspn (*license, "0123456789abcdefghijklmnopqrstuvwxyz"
                        "ABCDEFGHIJKLMNOPQRSTUVWXYZ.+-() :");
  if ((*license)[n] != '\0' || n == 0 || n > 120)
    return yaml_fail (&reader->source, node, err,
                      "license must be an SPDX expression such as Apache-2.0");
  return 0;
}

static int
read_homepage (struct manifest_reader *reader, const struct yaml_node *node,
               const char *key, void *out, struct error **err)
{
  char **homepage = out;
  const char *wrong;

  if (yaml_text (&reader->source, node, key, homepage, err) < 0)
    return -1;
  wrong = strncasecmp (*homepage, "http", 4) != 0
          ? "must be an http or https URL without a name or password in it"
          : manifest_check_value (CONFIG_URL, *homepage);
  if (wrong)
    return yaml_fail (&reader->source, node, err, "%s %s", key, wrong);
  return 0;
}

static int
read_u16 (struct manifest_reader *reader, const struct yaml_node *node,
          const char *key, void *out, struct error **err)
{
  uint64_t n;

  if (yaml_u64 (&reader->source, node, key, 0, UINT16_MAX, &n, err) < 0)
    return -1;
  *(uint16_t *) out = (uint16_t) n;
  return 0;
}

static int
read_flag (struct manifest_reader *reader, const struct yaml_node *node,
           const char *key, void *out, struct error **err)
{
  return yaml_flag (&reader->source, node, key, out, err);
}

#define AT(member) offsetof (struct manifest, member)

static const struct manifest_key contract_keys[] = {
  { "major", 1, read_u16, AT (contract_major) },
  { "minor", 1, read_u16, AT (contract_minor) },
  { NULL }
};

static int
read_contract (struct manifest_reader *reader, const struct yaml_node *node,
               const char *key, void *out, struct error **err)
{
  return manifest_read_map (reader, node, key, contract_keys, out, err);
}

static int
read_threads (struct manifest_reader *reader, const struct yaml_node *node,
              const char *key, void *out, struct error **err)
{
  static const char *const words[] = {
    [COFFER_THREADS_SERIAL] = "serial", [COFFER_THREADS_PARALLEL] = "parallel",
    NULL
  };
  size_t i;

  if (manifest_read_word (&reader->source, node, key, words, &i, err) < 0)
    return -1;
  *(int *) out = (int) i;
  return 0;
}

/* "exec.stdin" is nothing without "exec". */
static const char *
missing_parent (char *const *claims, const char *word)
{
  const char *const *known;
  const char *dot = strchr (word, '.');
  size_t i;

  if (dot == NULL)
    return NULL;
  for (known = contract_capabilities (); *known; known++) {
    if (strncmp (*known, word, (size_t) (dot - word)) == 0
        && (*known)[dot - word] == '\0')
      break;
  }
  for (i = 0; *known && claims[i]; i++) {
    if (strcmp (claims[i], *known) == 0)
      return NULL;
  }
  return *known;
}

/* A list of words of a closed vocabulary, each once. */
static int
read_words (struct manifest_reader *reader, const struct yaml_node *node,
            const char *key, const char *const *known, char ***out,
            struct error **err)
{
  size_t i, j, index;
  char **words;

  if (yaml_texts (&reader->source, node, key, out, err) < 0)
    return -1;
  words = *out;
  for (i = 0; words[i]; i++) {
    const struct yaml_node *item = &node->items[i];

    if (manifest_read_word (&reader->source, item, key, known, &index, err)
        < 0)
      return -1;
    for (j = 0; j < i; j++) {
      if (strcmp (words[i], words[j]) == 0)
        return yaml_fail (&reader->source, item, err,
                          "%s: \"%s\" is given twice", key, words[i]);
    }
  }
  return 0;
}

static int
read_capabilities (struct manifest_reader *reader,
                   const struct yaml_node *node, const char *key, void *out,
                   struct error **err)
{
  char ***claims = out;
  const char *parent;
  size_t i;

  if (read_words (reader, node, key, contract_capabilities (), claims, err)
      < 0)
    return -1;
  for (i = 0; (*claims)[i]; i++) {
    parent = missing_parent (*claims, (*claims)[i]);
    if (parent)
      return yaml_fail (&reader->source, &node->items[i], err,
                        "%s: \"%s\" needs \"%s\" too", key, (*claims)[i],
                        parent);
  }
  return 0;
}

static int
read_never (struct manifest_reader *reader, const struct yaml_node *node,
            const char *key, void *out, struct error **err)
{
  return read_words (reader, node, key, contract_failures (), out, err);
}

/* Words for what stands between a sandbox and the host. */
const char *const manifest_isolation_kinds[] = {
  "none", "namespaces", "container", "vm", "remote-vm", NULL
};

static int
read_kind (struct manifest_reader *reader, const struct yaml_node *node,
           const char *key, void *out, struct error **err)
{
  char **kind = out;
  size_t i;

  if (manifest_read_word (&reader->source, node, key,
                          manifest_isolation_kinds, &i, err) < 0)
    return -1;
  return yaml_text (&reader->source, node, key, kind, err);
}

static const struct manifest_key isolation_keys[] = {
  { "kind", 1, read_kind, AT (isolation_kind) },
  { "host_kernel_shared", 1, read_flag, AT (host_kernel_shared) },
  { NULL }
};

static int
read_isolation (struct manifest_reader *reader, const struct yaml_node *node,
                const char *key, void *out, struct error **err)
{
  struct manifest *m = out;

  if (manifest_read_map (reader, node, key, isolation_keys, m, err) < 0)
    return -1;
  if (!m->host_kernel_shared
      && (strcmp (m->isolation_kind, "none") == 0
          || strcmp (m->isolation_kind, "namespaces") == 0))
    return yaml_fail (&reader->source, node, err,
                      "isolation of the kind \"%s\" shares the host's kernel",
                      m->isolation_kind);
  return 0;
}

static int
read_permissions (struct manifest_reader *reader, const struct yaml_node *node,
                  const char *key, void *out, struct error **err)
{
  (void) key;
  return manifest_read_permissions (&reader->source, node, out, err);
}

static int
read_limits (struct manifest_reader *reader, const struct yaml_node *node,
             const char *key, void *out, struct error **err)
{
  (void) key;
  return manifest_read_limits (&reader->source, node, out, err);
}

static const struct manifest_key top_keys[] = {
  { "manifest", 1, read_format, 0 },
  { "id", 1, read_id, AT (id) },
  { "summary", 1, read_summary, AT (summary) },
  { "version", 1, read_version, AT (version) },
  { "license", 1, read_license, AT (license) },
  { "homepage", 0, read_homepage, AT (homepage) },
  { "module", 1, manifest_read_modules, 0 },
  { "files", 0, manifest_read_files, 0 },
  { "contract", 1, read_contract, 0 },
  { "threads", 1, read_threads, AT (threads) },
  { "capabilities", 1, read_capabilities, AT (capabilities) },
  { "never", 0, read_never, AT (never) },
  { "isolation", 1, read_isolation, 0 },
  { "config", 0, manifest_read_config, 0 },
  { "permissions", 0, read_permissions, AT (permissions) },
  { "limits", 0, read_limits, AT (limits) },
  { NULL }
};

static const struct {
  const char *section;
  const struct manifest_key *keys;
} sections[] = {
  { "", top_keys },
  { "module", manifest_module_keys },
  { "files", manifest_file_keys },
  { "contract", contract_keys },
  { "isolation", isolation_keys },
  { "config", manifest_config_keys },
  { "permissions", manifest_permission_keys },
  { "limits", manifest_limit_keys },
};
#define N_SECTIONS (sizeof sections / sizeof sections[0])

size_t
manifest_keys (const char *section, const char **keys, size_t room)
{
  const struct manifest_key *k;
  size_t i, n = 0;

  for (i = 0; i < N_SECTIONS; i++) {
    if (strcmp (sections[i].section, section) != 0)
      continue;
    for (k = sections[i].keys; k->name && n < room; k++)
      keys[n++] = k->name;
  }
  return n;
}

int
manifest_key_required (const char *section, const char *key)
{
  const struct manifest_key *k;
  size_t i;

  for (i = 0; i < N_SECTIONS; i++) {
    if (strcmp (sections[i].section, section) != 0)
      continue;
    for (k = sections[i].keys; k->name; k++) {
      if (strcmp (k->name, key) == 0)
        return k->required;
    }
  }
  return 0;
}

/* -- whole manifests ------------------------------------------------------- */

static int
parse_into (struct manifest *m, const char *bytes, size_t size,
            struct error **err)
{
  struct manifest_reader reader = { { m->path, E_MANIFEST }, m };
  auto_yaml struct yaml_node *root = NULL;

  if (yaml_read (bytes, size, m->path, E_MANIFEST, &root, err) < 0)
    return -1;
  /* The format first: a later one may know keys that we do not. */
  if (root->kind == YAML_MAP && yaml_get (root, "manifest")
      && read_format (&reader, yaml_get (root, "manifest"), "manifest", NULL,
                      err) < 0)
    return -1;
  return manifest_read_map (&reader, root, "manifest", top_keys, m, err);
}

int
manifest_parse (const char *bytes, size_t size, const char *path,
                struct manifest **out, struct error **err)
{
  auto_manifest struct manifest *m = calloc (1, sizeof *m);

  if (m)
    m->path = strdup (path);
  if (m == NULL || m->path == NULL)
    return error_set (err, E_NO_MEMORY, 0, "%s", path);
  if (parse_into (m, bytes, size, err) < 0)
    return -1;
  sha256_hex (bytes, size, m->sha256);
  *out = steal (m);
  return 0;
}

int
manifest_load (int dir, const char *name, const char *shown_path,
               struct manifest **out, struct error **err)
{
  auto_error struct error *error = NULL;
  auto_free char *bytes = NULL;
  size_t size = 0;

  if (place_read_trusted (dir, name, shown_path, YAML_MAX_BYTES, E_MANIFEST,
                          &bytes, &size, &error) < 0) {
    if (error && error->sys_errno == ENOENT)
      return error_set (err, E_NOT_FOUND, 0, "there is no manifest %s",
                        shown_path);
    return error_move (err, steal (error));
  }
  return manifest_parse (bytes, size, shown_path, out, err);
}

void
manifest_free (struct manifest *m)
{
  size_t i;

  if (m == NULL)
    return;
  for (i = 0; i < m->n_modules; i++) {
    free (m->modules[i].arch);
    free (m->modules[i].file);
  }
  for (i = 0; i < m->n_files; i++)
    free (m->files[i].name);
  for (i = 0; i < m->n_config; i++) {
    free (m->config[i].key);
    free (m->config[i].env);
    free (m->config[i].default_value);
    free (m->config[i].help);
  }
  free (m->modules);
  free (m->files);
  free (m->config);
  yaml_free_texts (m->capabilities);
  yaml_free_texts (m->never);
  manifest_permissions_fini (&m->permissions);
  free (m->isolation_kind);
  free (m->homepage);
  free (m->license);
  free (m->version);
  free (m->summary);
  free (m->id);
  free (m->path);
  free (m);
}

int
manifest_module (const struct manifest *m, const struct manifest_module **out,
                 struct error **err)
{
  size_t i;

  for (i = 0; i < m->n_modules; i++) {
    if (strcmp (m->modules[i].arch, manifest_machine ()) == 0) {
      *out = &m->modules[i];
      return 0;
    }
  }
  return error_set (err, E_MODULE, 0, "%s: no module for %s", m->path,
                    manifest_machine ());
}

const struct manifest_config *
manifest_find_config (const struct manifest *m, const char *key)
{
  size_t i;

  for (i = 0; i < m->n_config; i++) {
    if (strcmp (m->config[i].key, key) == 0)
      return &m->config[i];
  }
  return NULL;
}
