/* SPDX-License-Identifier: Apache-2.0 */
/* What is tested: a registry entry by an id, or made of a folder that nobody
 * registered, and the private folders of this run. */

#include <config.h>

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/text.h"
#include "contract/contract.h"
#include "provider/integrity.h"
#include "runner.h"

/* ---- folders ------------------------------------------------------------- */

struct place *
place_within (const struct place *from, const char *folder)
{
  struct place *place = calloc (1, sizeof *place);

  if (!place)
    return NULL;
  place->shipped = strdup (from->shipped);
  place->libexec = strdup (from->libexec);
  place->installed = strdup (from->installed);
  place->config = strdup (from->config);
  place->state = text_printf ("%s/state", folder);
  place->runtime = text_printf ("%s/run", folder);
  place->home_override = from->home_override;
  if (place->shipped && place->libexec && place->installed && place->config
      && place->state && place->runtime)
    return place;
  place_free (place);
  return NULL;
}

/* ---- finding ------------------------------------------------------------- */

static int
is_path (const char *word)
{
  struct stat st;

  return strchr (word, '/') || strcmp (word, ".") == 0
         || (!text_is_id (word) && stat (word, &st) == 0);
}

static struct registry_entry *
entry_of (struct registry *registry, const char *id)
{
  size_t i;

  for (i = 0; i < registry->count; i++)
    if (strcmp (registry->entries[i].id, id) == 0)
      return &registry->entries[i];
  return NULL;
}

static int
find_path (struct subject *subject, const char *path, struct error **err)
{
  const char *end = strrchr (path, '.');
  struct stat st;

  if (stat (path, &st) == 0 && S_ISREG (st.st_mode)
      && (end == NULL || strcmp (end, ".yaml") != 0)) {
    error_set (err, E_INVALID, 0, "%s is neither a manifest nor a folder",
               path);
    error_hint (err, "name the sealed manifest, ID.yaml");
    return -1;
  }
  if (registry_load_folder (subject->place, path, &subject->registry, err) < 0)
    return -1;
  subject->entry = &subject->registry->entries[0];
  return 0;
}

/* An id that nobody has is told as registry_find tells it; one that the
 * operator disabled, or that is not checked yet, is for the kit to look at. */
static int
find_id (struct subject *subject, const char *id, struct error **err)
{
  const struct registry_entry *found;
  struct stat st;

  if (registry_load_one (subject->place, id, &subject->registry, err) < 0)
    return -1;
  subject->entry = entry_of (subject->registry, id);
  if (!subject->entry && stat (id, &st) == 0 && S_ISDIR (st.st_mode)) {
    registry_free (steal (subject->registry));
    return find_path (subject, id, err);
  }
  if (!subject->entry || subject->entry->state == PROVIDER_BROKEN)
    return registry_find (subject->registry, id, &found, err);
  if (subject->entry->state == PROVIDER_QUARANTINED) {
    auto_free char *dir = strdup (subject->entry->dir);

    registry_free (steal (subject->registry));
    if (!dir)
      return error_set (err, E_NO_MEMORY, 0, "out of memory");
    if (registry_load_folder (subject->place, dir, &subject->registry, err) < 0)
      return -1;
    subject->entry = &subject->registry->entries[0];
  }
  return 0;
}

static int
take_entry (struct subject *subject, struct error **err)
{
  struct registry_entry *entry = subject->entry;
  const struct manifest_module *module;
  char **config = NULL;

  if (entry->state == PROVIDER_BROKEN)
    return error_move (err, steal (entry->error));
  entry->state = PROVIDER_ENABLED;
  /* Whoever judges a provider cannot ask for the judgement first. */
  entry->require_conformance = 0;
  /* For debugging, whoever made it: the verdict is never conformant then. */
  if (subject->in_process)
    entry->trust = TRUST_PACKAGED;
  if (manifest_module (entry->manifest, &module, err) < 0
      || registry_resolve_config (entry, &config, &subject->secrets, err) < 0)
    return -1;
  yaml_free_texts (config);
  snprintf (subject->module_sha256, sizeof subject->module_sha256, "%s",
            module->sha256);
  return 0;
}

int
subject_find (const char *word, const struct place *place, int in_process,
              struct subject **out, struct error **err)
{
  auto_subject struct subject *subject = calloc (1, sizeof *subject);
  int r;

  if (!subject)
    return error_set (err, E_NO_MEMORY, 0, "out of memory");
  subject->place = place;
  subject->folder_fd = subject->outside_fd = -1;
  subject->in_process = in_process;
  r = is_path (word) ? find_path (subject, word, err)
                     : find_id (subject, word, err);
  if (r < 0 || take_entry (subject, err) < 0
      || folders_begin (subject, err) < 0)
    return -1;
  *out = steal (subject);
  return 0;
}

void
subject_free (struct subject *subject)
{
  size_t i;

  if (!subject)
    return;
  for (i = 0; i < subject->n_narrowed; i++)
    free (subject->narrowed[i].reason);
  folders_end (subject);
  place_free (subject->own);
  yaml_free_texts (subject->secrets);
  json_decref (subject->facts);
  free (subject->fact_list);
  free (subject->narrowed);
  registry_free (subject->registry);
  free (subject);
}

/* ---- facts --------------------------------------------------------------- */

static const char *
fact_text (const json_t *fact, const char *key)
{
  return json_string_value (json_object_get (fact, key));
}

static int
add_narrowed (struct subject *subject, const json_t *fact, const char *word,
              struct error **err)
{
  const char *value = fact_text (fact, "value");
  const char *name = fact_text (fact, "name");
  struct narrowed *grown
    = reallocarray (subject->narrowed, subject->n_narrowed + 1, sizeof *grown);
  auto_free char *reason = text_printf (
    "%s is taken away by probe: %s%s%s", word, name ? name : "a fact",
    value ? ": " : "", value ? value : "");

  if (!grown || !reason)
    return error_set (err, E_NO_MEMORY, 0, "out of memory");
  subject->narrowed = grown;
  grown[subject->n_narrowed++] = (struct narrowed){ word, steal (reason) };
  return 0;
}

static int
take_fact (struct subject *subject, const json_t *fact, struct error **err)
{
  struct coffer_fact *out = &subject->fact_list[subject->n_facts++];
  json_t *words = json_object_get (fact, "narrows"), *word;
  size_t i;

  *out = (struct coffer_fact){ .size = sizeof *out,
                               .name = fact_text (fact, "name"),
                               .state = fact_text (fact, "state"),
                               .value = fact_text (fact, "value"),
                               .how = fact_text (fact, "how"),
                               .remedy = fact_text (fact, "remedy") };
  json_array_foreach (words, i, word)
    if (json_is_string (word)
        && add_narrowed (subject, fact, json_string_value (word), err) < 0)
      return -1;
  return 0;
}

int
subject_take_facts (struct subject *subject, const char *text,
                    struct error **err)
{
  json_t *fact;
  size_t i;

  if (json_parse (text, strlen (text), &subject->facts, err) < 0)
    return -1;
  subject->fact_list = calloc (json_array_size (subject->facts) + 1,
                               sizeof *subject->fact_list);
  if (!subject->fact_list)
    return error_set (err, E_NO_MEMORY, 0, "out of memory");
  json_array_foreach (subject->facts, i, fact)
    if (take_fact (subject, fact, err) < 0)
      return -1;
  return 0;
}

/* Two words for cases that need something to be configured. */
static int
has_config (const struct manifest *manifest, int secret)
{
  size_t i;

  for (i = 0; i < manifest->n_config; i++)
    if (!secret || manifest->config[i].type == CONFIG_SECRET)
      return 1;
  return 0;
}

int
subject_claims (const struct subject *subject, const char *word)
{
  if (strcmp (word, "config") == 0 || strcmp (word, "config.secret") == 0)
    return has_config (subject->entry->manifest, word[strlen ("config")]);
  return text_list_has (
    (const char *const *) subject->entry->manifest->capabilities, word);
}

int
subject_gives_up (const struct subject *subject, const char *word)
{
  return text_list_has ((const char *const *) subject->entry->without, word);
}

const char *
subject_narrowed (const struct subject *subject, const char *word)
{
  size_t i;

  for (i = 0; i < subject->n_narrowed; i++)
    if (strcmp (subject->narrowed[i].word, word) == 0)
      return subject->narrowed[i].reason;
  return NULL;
}
