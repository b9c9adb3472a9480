/* SPDX-License-Identifier: Apache-2.0 */
/* Typed reading of a YAML tree: keys that are known, values of one type, and
 * errors that name the key and its place. */

#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/yaml.h"

int
yaml_check_keys (const struct yaml_source *source,
                 const struct yaml_node *node, const char *const *allowed,
                 struct error **err)
{
  size_t i, j;

  if (node->kind != YAML_MAP)
    return yaml_fail (source, node, err, "expected a map of keys and values");
  for (i = 0; i < node->count; i++) {
    auto_free char *shown = NULL;
    const char *nearest;

    for (j = 0; allowed[j]; j++) {
      if (strcmp (allowed[j], node->keys[i]) == 0)
        break;
    }
    if (allowed[j])
      continue;
    shown = text_escape (node->keys[i], strlen (node->keys[i]));
    nearest = text_nearest (node->keys[i], allowed);
    if (nearest)
      return yaml_fail (source, &node->key_marks[i], err,
                        "unknown key \"%s\": did you mean \"%s\"?",
                        shown ? shown : "?", nearest);
    return yaml_fail (source, &node->key_marks[i], err, "unknown key \"%s\"",
                      shown ? shown : "?");
  }
  return 0;
}

const struct yaml_node *
yaml_get (const struct yaml_node *map, const char *key)
{
  size_t i;

  if (map == NULL || map->kind != YAML_MAP)
    return NULL;
  for (i = 0; i < map->count; i++) {
    if (strcmp (map->keys[i], key) == 0)
      return &map->items[i];
  }
  return NULL;
}

/* A scalar that is there and fits on a line. */
static int
check_scalar (const struct yaml_source *source, const struct yaml_node *node,
              const char *key, struct error **err)
{
  const unsigned char *p;

  if (node->kind != YAML_SCALAR)
    return yaml_fail (source, node, err, "%s must be a single value", key);
  if (node->text[0] == '\0' && !node->quoted)
    return yaml_fail (source, node, err, "%s has no value", key);
  for (p = (const unsigned char *) node->text; *p; p++) {
    if (*p < 0x20 || *p == 0x7f)
      return yaml_fail (source, node, err,
                        "%s must be one line without control characters", key);
  }
  return 0;
}

int
yaml_text (const struct yaml_source *source, const struct yaml_node *node,
           const char *key, char **out, struct error **err)
{
  char *copy;

  if (check_scalar (source, node, key, err) < 0)
    return -1;
  copy = strdup (node->text);
  if (copy == NULL)
    return error_set (err, E_NO_MEMORY, 0, "%s", source->name);
  *out = copy;
  return 0;
}

/* Numbers, sizes and flags are written bare, so that "8" stays text. */
static int
check_bare (const struct yaml_source *source, const struct yaml_node *node,
            const char *key, struct error **err)
{
  if (check_scalar (source, node, key, err) < 0)
    return -1;
  if (node->quoted)
    return yaml_fail (source, node, err, "%s must be written without quotes",
                      key);
  return 0;
}

int
yaml_u64 (const struct yaml_source *source, const struct yaml_node *node,
          const char *key, uint64_t min, uint64_t max, uint64_t *out,
          struct error **err)
{
  if (check_bare (source, node, key, err) < 0)
    return -1;
  if (text_parse_u64 (node->text, min, max, out) < 0)
    return yaml_fail (source, node, err,
                      "%s must be a whole number from %llu to %llu", key,
                      (unsigned long long) min, (unsigned long long) max);
  return 0;
}

int
yaml_size (const struct yaml_source *source, const struct yaml_node *node,
           const char *key, uint64_t *bytes, struct error **err)
{
  if (check_bare (source, node, key, err) < 0)
    return -1;
  if (text_parse_size (node->text, bytes) < 0)
    return yaml_fail (source, node, err,
                      "%s must be a size such as 512, 64MiB or 1.5G", key);
  return 0;
}

int
yaml_flag (const struct yaml_source *source, const struct yaml_node *node,
           const char *key, int *out, struct error **err)
{
  if (check_bare (source, node, key, err) < 0)
    return -1;
  if (strcmp (node->text, "true") == 0)
    *out = 1;
  else if (strcmp (node->text, "false") == 0)
    *out = 0;
  else
    return yaml_fail (source, node, err, "%s must be true or false", key);
  return 0;
}

int
yaml_texts (const struct yaml_source *source, const struct yaml_node *node,
            const char *key, char ***out, struct error **err)
{
  char **texts;
  size_t i;

  if (node->kind != YAML_LIST)
    return yaml_fail (source, node, err, "%s must be a list", key);
  texts = calloc (node->count + 1, sizeof *texts);
  if (texts == NULL)
    return error_set (err, E_NO_MEMORY, 0, "%s", source->name);
  for (i = 0; i < node->count; i++) {
    if (yaml_text (source, &node->items[i], key, &texts[i], err) < 0) {
      yaml_free_texts (texts);
      return -1;
    }
  }
  *out = texts;
  return 0;
}

/* Wipes too: such a vector may hold secrets. */
void
yaml_free_texts (char **texts)
{
  size_t i;

  if (texts == NULL)
    return;
  for (i = 0; texts[i]; i++) {
    explicit_bzero (texts[i], strlen (texts[i]));
    free (texts[i]);
  }
  free (texts);
}
