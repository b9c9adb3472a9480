/* SPDX-License-Identifier: Apache-2.0 */
/* A profile from the text of its file: keys that are known, values within
 * their range, and nothing that contradicts itself. */

#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/yaml.h"
#include "policy/bounds.h"
#include "policy/profile.h"

#define SUMMARY_MAX 120
#define LIST_MAX 256
#define MODULE_MAX 128

int
bounds_is_target (const char *text)
{
  const char *colon = strrchr (text, ':');
  uint64_t port;

  return colon && colon != text
         && text_parse_u64 (colon + 1, 1, 65535, &port) == 0
         && text[strcspn (text, " \t\n/@,")] == '\0';
}

/* ---- values ------------------------------------------------------------- */

static int
read_number (const struct yaml_source *source, const struct yaml_node *node,
             enum profile_field field, uint64_t *out, struct error **err)
{
  const struct profile_field_info *info = &profile_fields[field];
  auto_free char *text = NULL, *min = NULL, *max = NULL;
  int bad;

  if (yaml_text (source, node, info->key, &text, err) < 0)
    return -1;
  if (node->quoted)
    return yaml_fail (source, node, err, "%s must be written without quotes",
                      info->key);
  switch (info->kind) {
  case KIND_SIZE:
    bad = text_parse_size (text, out);
    break;
  case KIND_TIME:
    bad = text_parse_duration (text, out);
    break;
  case KIND_CPUS:
    bad = text_parse_millis (text, out);
    break;
  default:
    bad = text_parse_u64 (text, 0, UINT64_MAX, out);
  }
  if (bad == 0 && *out >= info->min && *out <= info->max)
    return 0;
  min = profile_format (field, info->min);
  max = profile_format (field, info->max);
  if (!min || !max)
    return error_set (err, E_NO_MEMORY, 0, "%s", source->name);
  return yaml_fail (source, node, err, "%s must be from %s to %s", info->key,
                    min, max);
}

/* A name that Python's `import` takes: identifiers in ASCII with dots between. */
static int
is_module (const char *word)
{
  static const char letters[] = "abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
  size_t n;

  if (strlen (word) > MODULE_MAX)
    return 0;
  for (; *word && (*word < '0' || *word > '9'); word += n + 1) {
    n = strspn (word, letters);
    if (n == 0 || (word[n] != '.' && word[n] != '\0'))
      return 0;
    if (word[n] == '\0')
      return 1;
  }
  return 0;
}

/* A list without choices: where to connect, or what to import. */
static int
check_free (const struct yaml_source *source, const struct yaml_node *node,
            const struct profile_field_info *info, const char *word,
            struct error **err)
{
  if (info == &profile_fields[PROFILE_ALLOW])
    return bounds_is_target (word)
             ? 0 : yaml_fail (source, node, err, "%s: not NAME:PORT",
                              info->key);
  return is_module (word)
           ? 0 : yaml_fail (source, node, err, "%s: not a module's name",
                            info->key);
}

static int
check_choice (const struct yaml_source *source, const struct yaml_node *node,
              const struct profile_field_info *info, const char *word,
              struct error **err)
{
  const char *nearest;
  size_t i;

  if (!info->choices)
    return check_free (source, node, info, word, err);
  for (i = 0; info->choices[i]; i++)
    if (strcmp (info->choices[i], word) == 0)
      return 0;
  nearest = text_nearest (word, info->choices);
  return yaml_fail (source, node, err, "%s: \"%s\" is not known here%s%s%s",
                    info->key, word, nearest ? ": did you mean \"" : "",
                    nearest ? nearest : "", nearest ? "\"?" : "");
}

static int
read_words (const struct yaml_source *source, const struct yaml_node *node,
            const struct profile_field_info *info, char ***out,
            struct error **err)
{
  size_t i;

  if (yaml_texts (source, node, info->key, out, err) < 0)
    return -1;
  if (node->count > LIST_MAX)
    return yaml_fail (source, node, err, "%s: more than %d entries",
                      info->key, LIST_MAX);
  for (i = 0; i < node->count; i++)
    if (check_choice (source, &node->items[i], info, (*out)[i], err) < 0)
      return -1;
  return 0;
}

static int
read_field (const struct yaml_source *source, const struct yaml_node *node,
            enum profile_field field, struct profile *profile,
            struct error **err)
{
  const struct profile_field_info *info = &profile_fields[field];

  if (info->kind == KIND_WORDS)
    return read_words (source, node, info, &profile->words[field], err);
  if (info->kind != KIND_WORD)
    return read_number (source, node, field, &profile->number[field], err);
  if (yaml_text (source, node, info->key, &profile->word[field], err) < 0)
    return -1;
  return check_choice (source, node, info, profile->word[field], err);
}

/* ---- max and locked ----------------------------------------------------- */

static int
is_number (enum profile_field field)
{
  return profile_fields[field].kind != KIND_WORD
         && profile_fields[field].kind != KIND_WORDS;
}

static int
read_most (const struct yaml_source *source, const struct yaml_node *node,
           struct profile *profile, struct error **err)
{
  const char *keys[PROFILE_FIELDS + 1] = { NULL };
  const struct yaml_node *value;
  size_t n = 0;
  int i;

  for (i = 0; i < PROFILE_FIELDS; i++)
    if (is_number (i))
      keys[n++] = profile_fields[i].key;
  if (yaml_check_keys (source, node, keys, err) < 0)
    return -1;
  for (i = 0; i < PROFILE_FIELDS; i++) {
    value = yaml_get (node, profile_fields[i].key);
    if (!value)
      continue;
    if (read_number (source, value, i, &profile->most[i], err) < 0)
      return -1;
    if (profile->number[i] > profile->most[i])
      return yaml_fail (source, value, err, "max: %s is below its default",
                        profile_fields[i].key);
  }
  return 0;
}

static int
is_said (const struct profile *profile, enum profile_field field)
{
  return profile->number[field] || profile->word[field]
         || profile->words[field];
}

static int
lock (const struct yaml_source *source, const struct yaml_node *node,
      const char *word, struct profile *profile, struct error **err)
{
  const char *keys[PROFILE_FIELDS + 1] = { NULL }, *nearest;
  int i;

  for (i = 0; i < PROFILE_FIELDS; i++) {
    keys[i] = profile_fields[i].key;
    if (strcmp (keys[i], word) != 0)
      continue;
    if (!is_said (profile, i))
      return yaml_fail (source, node, err,
                        "locked: %s has no value in this profile", word);
    profile->locked |= 1u << i;
    return 0;
  }
  nearest = text_nearest (word, keys);
  return yaml_fail (source, node, err, "locked: no such field \"%s\"%s%s%s",
                    word, nearest ? ": did you mean \"" : "",
                    nearest ? nearest : "", nearest ? "\"?" : "");
}

static int
read_locked (const struct yaml_source *source, const struct yaml_node *node,
             struct profile *profile, struct error **err)
{
  char **words = NULL;
  size_t i;
  int r = yaml_texts (source, node, "locked", &words, err);

  for (i = 0; r == 0 && words[i]; i++)
    r = lock (source, &node->items[i], words[i], profile, err);
  yaml_free_texts (words);
  return r;
}

/* ---- the whole ---------------------------------------------------------- */

static int
read_head (const struct yaml_source *source, const struct yaml_node *root,
           struct profile *profile, struct error **err)
{
  const struct yaml_node *node = yaml_get (root, "profile");
  uint64_t version;

  if (!node)
    return yaml_fail (source, root, err, "profile: 1 is missing");
  if (yaml_u64 (source, node, "profile", 1, 1, &version, err) < 0)
    return -1;
  node = yaml_get (root, "name");
  if (!node)
    return yaml_fail (source, root, err, "name is missing");
  if (yaml_text (source, node, "name", &profile->name, err) < 0)
    return -1;
  if (!text_is_id (profile->name))
    return yaml_fail (source, node, err, "name must be a letter and then "
                      "letters, digits and dashes, in lower case");
  node = yaml_get (root, "summary");
  if (!node)
    return yaml_fail (source, root, err, "summary is missing");
  if (yaml_text (source, node, "summary", &profile->summary, err) < 0)
    return -1;
  if (!*profile->summary || strlen (profile->summary) > SUMMARY_MAX)
    return yaml_fail (source, node, err, "summary must have 1 to %d bytes",
                      SUMMARY_MAX);
  return 0;
}

static int
check_keys (const struct yaml_source *source, const struct yaml_node *root,
            struct error **err)
{
  const char *keys[PROFILE_FIELDS + 6]
    = { "profile", "name", "summary", "max", "locked" };
  int i;

  for (i = 0; i < PROFILE_FIELDS; i++)
    keys[5 + i] = profile_fields[i].key;
  return yaml_check_keys (source, root, keys, err);
}

static int
check_network (const struct yaml_source *source, const struct yaml_node *root,
               const struct profile *profile, struct error **err)
{
  const char *network = profile->word[PROFILE_NETWORK];

  if (network && profile->words[PROFILE_NETWORKS]
      && !profile_lists (profile, PROFILE_NETWORKS, network))
    return yaml_fail (source, yaml_get (root, "network"), err,
                      "network: %s is not one of networks", network);
  if (network && strcmp (network, "host") == 0
      && !profile_lists (profile, PROFILE_NETWORKS, network))
    return yaml_fail (source, yaml_get (root, "network"), err,
                      "network: host must be one of networks as well");
  if (profile->words[PROFILE_ALLOW]
      && (!network || strcmp (network, "allow") != 0))
    return yaml_fail (source, yaml_get (root, "allow"), err,
                      "allow goes with network: allow");
  return 0;
}

int
profile_read (const char *bytes, size_t size, const char *shown,
              struct profile **out, struct error **err)
{
  const struct yaml_source source = { shown, E_CONFIG };
  auto_profile struct profile *profile = calloc (1, sizeof *profile);
  auto_yaml struct yaml_node *root = NULL;
  const struct yaml_node *node;
  int i;

  if (!profile)
    return error_set (err, E_NO_MEMORY, 0, "%s", shown);
  if (yaml_read (bytes, size, shown, E_CONFIG, &root, err) < 0
      || check_keys (&source, root, err) < 0
      || read_head (&source, root, profile, err) < 0)
    return -1;
  for (i = 0; i < PROFILE_FIELDS; i++) {
    node = yaml_get (root, profile_fields[i].key);
    if (node && read_field (&source, node, i, profile, err) < 0)
      return -1;
  }
  if (check_network (&source, root, profile, err) < 0)
    return -1;
  node = yaml_get (root, "max");
  if (node && read_most (&source, node, profile, err) < 0)
    return -1;
  node = yaml_get (root, "locked");
  if (node && read_locked (&source, node, profile, err) < 0)
    return -1;
  profile->source = strdup (shown);
  if (!profile->source)
    return error_set (err, E_NO_MEMORY, 0, "%s", shown);
  *out = steal (profile);
  return 0;
}
