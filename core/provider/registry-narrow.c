/* SPDX-License-Identifier: Apache-2.0 */
/* Narrowing: the operator's permissions replace the manifest's, word by word,
 * and each entry must lie within what the manifest asks for; claims that the
 * operator does without are taken away. */

#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "provider/registry-read.h"

/* Is `path` the folder `above`, or below it? */
static int
is_below (const char *path, const char *above)
{
  size_t n = strlen (above);

  if (strcmp (above, "/") == 0)
    return 1;
  return strncmp (path, above, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

/* "*.example.org:443" covers "api.example.org:443" and "*.a.example.org:443".
 */
static int
is_within (const char *target, const char *wider)
{
  size_t n = strlen (target), tail;

  if (strcmp (target, wider) == 0)
    return 1;
  if (strncmp (wider, "*.", 2) != 0)
    return 0;
  tail = strlen (wider + 1);
  return n > tail && strcmp (target + n - tail, wider + 1) == 0;
}

static int
check_within (const struct yaml_source *source, const struct yaml_node *node,
              const char *word, char *const *given, char *const *have,
              int (*covers) (const char *, const char *), struct error **err)
{
  size_t i, j;

  for (i = 0; given[i]; i++) {
    for (j = 0; have && have[j] && !covers (given[i], have[j]); j++)
      ;
    if (have == NULL || have[j] == NULL)
      return yaml_fail (source, &node->items[i], err,
                        "%s: permissions are only narrowed here, and the "
                        "manifest does not ask for this one", word);
  }
  return 0;
}

struct word {
  const char *name;
  char ***given, ***have;
  int any;                      /* the manifest allows all */
  int (*covers) (const char *, const char *);
};

static int
narrow_word (const struct yaml_source *source, const struct yaml_node *map,
             const struct word *word, struct error **err)
{
  const struct yaml_node *node = yaml_get (map, word->name);
  char **old = *word->have;

  if (node == NULL || *word->given == NULL)
    return 0;
  if (!word->any
      && check_within (source, node, word->name, *word->given, old,
                       word->covers, err) < 0)
    return -1;
  *word->have = *word->given;
  *word->given = old;
  return 0;
}

static int
narrow_flag (const struct yaml_source *source, const struct yaml_node *map,
             const char *name, int given, int *have, struct error **err)
{
  const struct yaml_node *node = yaml_get (map, name);

  if (node == NULL)
    return 0;
  if (given && !*have)
    return yaml_fail (source, node, err,
                      "%s: permissions are only narrowed here, and the "
                      "manifest does not ask for it", name);
  *have = given;
  return 0;
}

static int
narrow_exec (const struct yaml_source *source, const struct yaml_node *map,
             struct manifest_permissions *given,
             struct manifest_permissions *have, struct error **err)
{
  const struct word word = { "exec", &given->exec, &have->exec,
                             have->exec_any, is_below };
  const struct yaml_node *node = yaml_get (map, "exec");

  if (node == NULL)
    return 0;
  if (given->exec_any && !have->exec_any)
    return yaml_fail (source, node, err,
                      "exec: permissions are only narrowed here, and the "
                      "manifest does not ask for any");
  if (given->exec_any)
    return 0;
  if (narrow_word (source, map, &word, err) < 0)
    return -1;
  have->exec_any = 0;
  return 0;
}

static int
narrow_all (const struct yaml_source *source, const struct yaml_node *map,
            struct manifest_permissions *given,
            struct manifest_permissions *have, struct error **err)
{
  const struct word words[] = {
    { "connect", &given->connect, &have->connect, 0, is_within },
    { "read", &given->read, &have->read, 0, is_below },
    { "write", &given->write, &have->write, 0, is_below },
  };
  size_t i;

  for (i = 0; i < sizeof words / sizeof words[0]; i++) {
    if (narrow_word (source, map, &words[i], err) < 0)
      return -1;
  }
  if (narrow_exec (source, map, given, have, err) < 0
      || narrow_flag (source, map, "namespaces", given->namespaces,
                      &have->namespaces, err) < 0)
    return -1;
  return narrow_flag (source, map, "cgroup", given->cgroup, &have->cgroup,
                      err);
}

int
permissions_narrow (const struct yaml_source *source,
                    const struct yaml_node *node,
                    struct manifest_permissions *permissions,
                    struct error **err)
{
  struct manifest_permissions given = { 0 };
  int r = manifest_read_permissions (source, node, &given, err);

  if (r == 0)
    r = narrow_all (source, node, &given, permissions, err);
  manifest_permissions_fini (&given);
  return r;
}

/* -- claims ---------------------------------------------------------------- */

/* `claim` is the word, or below it. */
static int
is_of (const char *claim, const char *word)
{
  size_t n = strlen (word);

  return strncmp (claim, word, n) == 0
         && (claim[n] == '\0' || claim[n] == '.');
}

static size_t
count_of (char *const *words)
{
  size_t n = 0;

  while (words && words[n])
    n++;
  return n;
}

/* From the claims to what is given up, in both their order. */
static void
give_up (char **claims, const char *word, char **without)
{
  size_t n = count_of (without), kept = 0, i;

  for (i = 0; claims[i]; i++)
    if (is_of (claims[i], word))
      without[n++] = claims[i];
    else
      claims[kept++] = claims[i];
  claims[kept] = NULL;
}

/* An outer file of the operator's may have given it up before. */
static int
is_given_up (char *const *without, const char *word)
{
  for (; without && *without; without++)
    if (strcmp (*without, word) == 0)
      return 1;
  return 0;
}

static int
check_claimed (const struct yaml_source *source, const struct yaml_node *node,
               const struct registry_entry *entry, const char *word,
               struct error **err)
{
  const char *const *claims
    = (const char *const *) entry->manifest->capabilities;
  const char *nearest;

  if (text_list_has (claims, word) || is_given_up (entry->without, word))
    return 0;
  nearest = text_nearest (word, claims);
  return yaml_fail (source, node, err, "without: the manifest does not claim "
                    "this%s%s", nearest ? ", try " : "",
                    nearest ? nearest : "");
}

int
claims_narrow (const struct yaml_source *source, const struct yaml_node *node,
               struct registry_entry *entry, struct error **err)
{
  char **claims = entry->manifest->capabilities, **words = NULL, **without;
  size_t i;
  int r = yaml_texts (source, node, "without", &words, err);

  without = r < 0 ? NULL
                  : reallocarray (entry->without, count_of (claims)
                                  + count_of (entry->without) + 1,
                                  sizeof *without);
  if (without) {
    if (!entry->without)
      without[0] = NULL;
    entry->without = without;
    memset (without + count_of (without), 0,
            (count_of (claims) + 1) * sizeof *without);
  } else if (r == 0)
    r = error_set (err, E_NO_MEMORY, 0, "provider %s", entry->id);
  for (i = 0; r == 0 && words[i]; i++) {
    r = check_claimed (source, &node->items[i], entry, words[i], err);
    if (r == 0)
      give_up (claims, words[i], entry->without);
  }
  yaml_free_texts (words);
  return r;
}
