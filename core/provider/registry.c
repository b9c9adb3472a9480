/* SPDX-License-Identifier: Apache-2.0 */
/* Which providers there are: shipped ones, a manifest each in one folder, and
 * installed ones, a folder each.  Whatever is wrong with one of them stays
 * with its entry. */

#include <config.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <coffer/buffer.h>
#include <coffer/fd.h>

#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "provider/registry-read.h"

#define MAX_PROVIDERS 512

const char *
registry_trust_name (enum registry_trust trust)
{
  static const char *const names[] = {
    [TRUST_PACKAGED] = "packaged", [TRUST_LOCAL] = "local",
    [TRUST_PINNED] = "pinned", [TRUST_SIGNED] = "signed",
    [TRUST_DROPPED] = "dropped"
  };

  return names[trust];
}

const char *
registry_state_name (enum registry_state state)
{
  static const char *const names[] = {
    [PROVIDER_ENABLED] = "enabled", [PROVIDER_DISABLED] = "disabled",
    [PROVIDER_QUARANTINED] = "quarantined", [PROVIDER_BROKEN] = "broken"
  };

  return names[state];
}

/* -- places ---------------------------------------------------------------- */

/* A folder that may be missing; *fd stays -1 then.  The system's folder that
 * this user may not read counts as missing too. */
static int
open_optional (const char *path, int ours, int *fd, struct error **err)
{
  struct error *error = NULL;

  *fd = place_open_trusted_dir (path, &error);
  if (*fd >= 0)
    return 0;
  if (error->number == E_NOT_FOUND
      || (!ours && error->sys_errno == EACCES)) {
    error_free (error);
    return 0;
  }
  return error_move (err, error);
}

/* Nothing is loaded from a folder that others can change, but what coffer
 * ships works on. */
static void
open_installed (struct registry_layer *layer, int ours)
{
  auto_error struct error *error = NULL;

  if (open_optional (layer->installed_path, ours, &layer->installed, &error)
      < 0)
    log_event (LOG_LEVEL_WARNING, "registry",
               "installed providers are left out: %s", error->message);
}

static int
add_layer (struct registry_reader *reader, const char *source,
           const char *config, const char *installed, struct error **err)
{
  struct registry_layer *layer = &reader->layers[reader->n_layers];
  const int ours = strcmp (config, reader->place->config) == 0;

  *layer = (struct registry_layer){ .source = source, .config = -1,
                                    .installed = -1 };
  reader->n_layers++;
  layer->config_path = strdup (config);
  layer->installed_path = strdup (installed);
  if (layer->config_path == NULL || layer->installed_path == NULL)
    return error_set (err, E_NO_MEMORY, 0, "reading the registry");
  if (open_optional (config, ours, &layer->config, err) < 0)
    return -1;
  open_installed (layer, ours);
  return 0;
}

static int
reader_init (struct registry_reader *reader, const struct place *place,
             struct error **err)
{
  auto_free char *installed = NULL;
  const int system = strcmp (place->config, place_builtin_sysconf) == 0;

  *reader = (struct registry_reader){ .place = place, .shipped = -1 };
  reader->registry = calloc (1, sizeof *reader->registry);
  installed = text_printf ("%s/providers", place_builtin_localstate);
  if (reader->registry == NULL || installed == NULL)
    return error_set (err, E_NO_MEMORY, 0, "reading the registry");
  reader->registry->place = place;
  if (open_optional (place->shipped, 1, &reader->shipped, err) < 0)
    return -1;
  if (!system && !place->home_override
      && add_layer (reader, "system", place_builtin_sysconf, installed, err)
           < 0)
    return -1;
  return add_layer (reader, system ? "system" : "user", place->config,
                    place->installed, err);
}

static void
reader_fini (struct registry_reader *reader)
{
  size_t i;

  for (i = 0; i < reader->n_layers; i++) {
    coffer_fd_close (&reader->layers[i].config);
    coffer_fd_close (&reader->layers[i].installed);
    free (reader->layers[i].config_path);
    free (reader->layers[i].installed_path);
  }
  coffer_fd_close (&reader->shipped);
  registry_free (reader->registry);
}

/* -- receipts -------------------------------------------------------------- */

static enum registry_trust
trust_of (const struct receipt *receipt)
{
  static const enum registry_trust from[]
    = { TRUST_LOCAL, TRUST_PINNED, TRUST_SIGNED };
  size_t i;

  for (i = 0; i < sizeof from / sizeof from[0]; i++)
    if (strcmp (receipt->trust, registry_trust_name (from[i])) == 0)
      return from[i];
  return TRUST_DROPPED;         /* receipt_read lets no other word pass */
}

/* 1: there is one, and it fits; 0: there is none. */
static int
read_receipt (struct registry_entry *entry, struct error **err)
{
  int r = receipt_read (entry->dir_fd, &entry->receipt, err);

  if (r < 0)
    return error_wrap (err, "%s", entry->dir);
  if (r == 0)
    return 0;
  entry->trust = trust_of (entry->receipt);
  if (strcmp (entry->receipt->manifest_sha256, entry->manifest->sha256) != 0
      || (entry->receipt->id && strcmp (entry->receipt->id, entry->id) != 0))
    return error_set (err, E_INTEGRITY, 0,
                      "%s is not the manifest that was installed",
                      entry->manifest->path);
  return 1;
}

/* -- one provider ---------------------------------------------------------- */

/* What reaches past any fence is for what coffer ships. */
static int
check_privilege (const struct registry_entry *entry, struct error **err)
{
  const struct manifest_permissions *p = &entry->manifest->permissions;

  if (entry->trust == TRUST_PACKAGED || (!p->namespaces && !p->exec_any))
    return 0;
  error_set (err, E_DENIED, 0,
             "%s asks for %s, which only providers shipped with coffer get",
             entry->id, p->namespaces ? "namespaces" : "exec: any");
  error_hint (err, "remove it from the manifest");
  return -1;
}

static int
load_manifest (struct registry_entry *entry, struct error **err)
{
  auto_free char *name = text_printf ("%s.yaml", entry->id);
  auto_free char *shown = text_printf ("%s/%s.yaml", entry->dir, entry->id);

  if (name == NULL || shown == NULL)
    return error_set (err, E_NO_MEMORY, 0, "provider %s", entry->id);
  if (manifest_load (entry->dir_fd, name, shown, &entry->manifest, err) < 0)
    return -1;
  if (strcmp (entry->manifest->id, entry->id) != 0)
    return error_set (err, E_MANIFEST, 0, "%s: the id in it is %s", shown,
                      entry->manifest->id);
  return 0;
}

static int
complete_entry (const struct registry_reader *reader,
                struct registry_entry *entry, struct error **err)
{
  if (check_privilege (entry, err) < 0
      || operator_apply (reader, entry, err) < 0)
    return -1;
  return config_complete (entry, err);
}

/* A failure becomes the entry's own. */
static void
load_entry (const struct registry_reader *reader, struct registry_entry *entry)
{
  struct error *error = NULL;
  int r;

  if (entry->error == NULL && load_manifest (entry, &error) == 0) {
    r = entry->trust != TRUST_DROPPED ? 1 : read_receipt (entry, &error);
    if (r == 0) {
      entry->state = PROVIDER_QUARANTINED;
      return;
    }
    if (r > 0 && complete_entry (reader, entry, &error) == 0)
      return;
  }
  if (entry->error == NULL)
    entry->error = error;
  entry->state = PROVIDER_BROKEN;
}

/* A new entry of the registry; its strings and descriptor are its own. */
static struct registry_entry *
add_entry (struct registry *registry, const char *id, char *take_dir,
           enum registry_trust trust, struct error **err)
{
  struct registry_entry *grown, *entry;
  char *own = strdup (id);

  grown = reallocarray (registry->entries, registry->count + 1,
                        sizeof *registry->entries);
  if (grown)
    registry->entries = grown;
  if (grown == NULL || own == NULL || take_dir == NULL) {
    free (own);
    free (take_dir);
    error_set (err, E_NO_MEMORY, 0, "reading the registry");
    return NULL;
  }
  entry = &registry->entries[registry->count++];
  *entry = (struct registry_entry){ .id = own, .trust = trust,
                                    .state = PROVIDER_ENABLED,
                                    .dir = take_dir, .dir_fd = -1 };
  if (trust != TRUST_PACKAGED) {
    entry->require_conformance = registry->require_conformance;
    entry->require_signature = registry->require_signature;
  }
  return entry;
}

static int
add_shipped (struct registry_reader *reader, const char *id,
             struct error **err)
{
  struct registry_entry *entry
    = add_entry (reader->registry, id, strdup (reader->place->shipped),
                 TRUST_PACKAGED, err);

  if (entry == NULL)
    return -1;
  entry->dir_fd = fcntl (reader->shipped, F_DUPFD_CLOEXEC, 3);
  if (entry->dir_fd < 0)
    return error_set (err, E_IO, errno, "open %s", entry->dir);
  load_entry (reader, entry);
  return 0;
}

static int
add_installed (struct registry_reader *reader,
               const struct registry_layer *layer, const char *id,
               struct error **err)
{
  struct registry_entry *entry
    = add_entry (reader->registry, id,
                 text_printf ("%s/%s", layer->installed_path, id),
                 TRUST_DROPPED, err);

  if (entry == NULL)
    return -1;
  entry->dir_fd = openat (layer->installed, id,
                          O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (entry->dir_fd < 0)
    error_set (&entry->error, E_UNSAFE_FILE, errno, "open %s", entry->dir);
  else
    place_check_trusted (entry->dir_fd, entry->dir, &entry->error);
  load_entry (reader, entry);
  return 0;
}

/* -- names ----------------------------------------------------------------- */

static int
is_known (const struct coffer_strings *ids, const char *id)
{
  size_t i;

  for (i = 0; i < ids->count; i++) {
    if (strcmp (ids->items[i], id) == 0)
      return 1;
  }
  return 0;
}

/* Adds the ids in a folder: names ending in `suffix`, or folders. */
static int
list_folder (int dir, const char *suffix, struct coffer_strings *ids,
             struct error **err)
{
  DIR *stream;
  struct dirent *item;
  int fd;

  if (dir < 0)
    return 0;
  fd = openat (dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  stream = fd < 0 ? NULL : fdopendir (fd);
  if (stream == NULL) {
    error_set (err, E_IO, errno, "list the providers");
    coffer_fd_close (&fd);
    return -1;
  }
  while ((item = readdir (stream)) && ids->count < MAX_PROVIDERS) {
    size_t length = strlen (item->d_name);
    const size_t tail = strlen (suffix);
    char id[64];

    if (length <= tail || length - tail >= sizeof id
        || strcmp (item->d_name + length - tail, suffix) != 0)
      continue;
    memcpy (id, item->d_name, length - tail);
    id[length - tail] = '\0';
    if (text_is_id (id) && !is_known (ids, id))
      coffer_strings_add (ids, id);
  }
  closedir (stream);
  if (ids->failed)
    return error_set (err, E_NO_MEMORY, 0, "list the providers");
  return 0;
}

static int
list_ids (const struct registry_reader *reader, struct coffer_strings *ids,
          struct error **err)
{
  size_t i;

  if (list_folder (reader->shipped, ".yaml", ids, err) < 0)
    return -1;
  for (i = 0; i < reader->n_layers; i++) {
    if (list_folder (reader->layers[i].installed, "", ids, err) < 0)
      return -1;
  }
  return 0;
}

/* -- the whole ------------------------------------------------------------- */

/* Also when that cannot be seen: opening it says why, and nothing else takes
 * its place. */
static int
exists_at (int dir, const char *name)
{
  return dir >= 0
         && (faccessat (dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0
             || (errno != ENOENT && errno != ENOTDIR));
}

/* What coffer ships is never replaced by what is installed under its id; of
 * what is installed, the user's own comes first.  1: found. */
static int
add_by_id (struct registry_reader *reader, const char *id, struct error **err)
{
  auto_free char *name = NULL;
  size_t i;

  if (!text_is_id (id))
    return 0;
  name = text_printf ("%s.yaml", id);
  if (name == NULL)
    return error_set (err, E_NO_MEMORY, 0, "provider %s", id);
  if (exists_at (reader->shipped, name))
    return add_shipped (reader, id, err) < 0 ? -1 : 1;
  for (i = reader->n_layers; i-- > 0;) {
    if (exists_at (reader->layers[i].installed, id))
      return add_installed (reader, &reader->layers[i], id, err) < 0 ? -1 : 1;
  }
  return 0;
}

static int
compare_entries (const void *a, const void *b)
{
  const struct registry_entry *x = a, *y = b;

  return strcmp (x->id, y->id);
}

static int
load_all (struct registry_reader *reader, struct error **err)
{
  coffer_autostrings struct coffer_strings ids = { 0 };
  struct registry *registry = reader->registry;
  size_t i;

  if (list_ids (reader, &ids, err) < 0)
    return -1;
  for (i = 0; i < ids.count; i++) {
    if (add_by_id (reader, ids.items[i], err) < 0)
      return -1;
  }
  if (registry->count)
    qsort (registry->entries, registry->count, sizeof *registry->entries,
           compare_entries);
  operator_warn_of_strays (reader);
  return 0;
}

static int
load (const struct place *place, int all, const char *id,
      struct registry **out, struct error **err)
{
  __attribute__ ((cleanup (reader_fini))) struct registry_reader reader;
  struct registry *registry;
  int r;

  if (reader_init (&reader, place, err) < 0)
    return -1;
  registry = reader.registry;
  registry->default_provider = strdup (REGISTRY_BUILTIN_DEFAULT);
  registry->default_source = "builtin";
  registry->require_conformance = 1;
  if (registry->default_provider == NULL)
    return error_set (err, E_NO_MEMORY, 0, "reading the registry");
  if (operator_read_main (&reader, err) < 0)
    return -1;
  if (all)
    r = load_all (&reader, err);
  else
    r = add_by_id (&reader, id ? id : registry->default_provider, err);
  if (r < 0)
    return -1;
  *out = steal (reader.registry);
  return 0;
}

int
registry_load (const struct place *place, struct registry **out,
               struct error **err)
{
  return load (place, 1, NULL, out, err);
}

int
registry_load_one (const struct place *place, const char *id,
                   struct registry **out, struct error **err)
{
  return load (place, 0, id, out, err);
}

/* -- one folder ------------------------------------------------------------- */

/* The id of the one manifest in a folder: of ID.yaml. */
static int
folder_id (int dir, const char *shown, char **id, struct error **err)
{
  coffer_autostrings struct coffer_strings ids = { 0 };

  if (list_folder (dir, ".yaml", &ids, err) < 0)
    return -1;
  if (ids.count != 1) {
    error_set (err, E_MANIFEST, 0, "%s holds %zu manifests ID.yaml, not one",
               shown, ids.count);
    error_hint (err, ids.count ? "name the manifest itself"
                               : "build the provider there, then `coffer seal`");
    return -1;
  }
  *id = strdup (ids.items[0]);
  return *id ? 0 : error_set (err, E_NO_MEMORY, 0, "reading %s", shown);
}

/* A folder, or a manifest in one: its folder, and its id. */
static int
split_path (const char *path, char **dir, char **id, struct error **err)
{
  auto_free char *whole = realpath (path, NULL);
  size_t size = whole ? strlen (whole) : 0;
  char *slash = whole ? strrchr (whole, '/') : NULL;

  if (!whole)
    return error_set (err, E_NOT_FOUND, errno, "open %s", path);
  if (size > 5 && strcmp (whole + size - 5, ".yaml") == 0) {
    whole[size - 5] = '\0';
    *slash = '\0';
    *id = strdup (slash + 1);
  }
  *dir = strdup (*whole ? whole : "/");
  return *dir ? 0 : error_set (err, E_NO_MEMORY, 0, "reading %s", path);
}

static int
load_folder (struct registry_reader *reader, const char *path,
             struct error **err)
{
  auto_free char *dir = NULL, *id = NULL;
  coffer_autoclose int fd = -1;
  struct registry_entry *entry;

  if (split_path (path, &dir, &id, err) < 0)
    return -1;
  fd = place_open_trusted_dir (dir, err);
  if (fd < 0 || (!id && folder_id (fd, dir, &id, err) < 0))
    return -1;
  if (!text_is_id (id))
    return error_set (err, E_MANIFEST, 0, "%s is not named after an id: "
                      "ID.yaml", path);
  entry = add_entry (reader->registry, id, strdup (dir), TRUST_LOCAL, err);
  if (entry == NULL)
    return -1;
  entry->dir_fd = coffer_fd_steal (&fd);
  load_entry (reader, entry);
  return 0;
}

int
registry_load_folder (const struct place *place, const char *path,
                      struct registry **out, struct error **err)
{
  __attribute__ ((cleanup (reader_fini))) struct registry_reader reader;

  if (reader_init (&reader, place, err) < 0
      || load_folder (&reader, path, err) < 0)
    return -1;
  *out = steal (reader.registry);
  return 0;
}

static void
entry_fini (struct registry_entry *entry)
{
  size_t i;

  for (i = 0; i < entry->n_config; i++) {
    free (entry->config[i].key);
    if (entry->config[i].value)
      explicit_bzero (entry->config[i].value, strlen (entry->config[i].value));
    free (entry->config[i].value);
    free (entry->config[i].origin);
  }
  free (entry->config);
  free (entry->override_path);
  yaml_free_texts (entry->without);
  manifest_free (entry->manifest);
  receipt_free (entry->receipt);
  error_free (entry->error);
  coffer_fd_close (&entry->dir_fd);
  free (entry->dir);
  free (entry->id);
}

void
registry_free (struct registry *registry)
{
  size_t i;

  if (registry == NULL)
    return;
  for (i = 0; i < registry->count; i++)
    entry_fini (&registry->entries[i]);
  free (registry->entries);
  free (registry->default_provider);
  free (registry->default_profile);
  yaml_free_texts (registry->accept);
  free (registry);
}

/* -- finding --------------------------------------------------------------- */

/* The nearest of all ids, also those that were not loaded. */
static int
fail_unknown (const struct registry *registry, const char *id,
              struct error **err)
{
  coffer_autostrings struct coffer_strings ids = { 0 };
  __attribute__ ((cleanup (reader_fini))) struct registry_reader reader;
  auto_free char *shown = text_escape (id, strlen (id));
  const char *nearest = NULL;

  if (reader_init (&reader, registry->place, NULL) == 0
      && list_ids (&reader, &ids, NULL) == 0)
    nearest = text_nearest (id, coffer_strings_view (&ids));
  error_set (err, E_UNKNOWN_PROVIDER, 0, "no provider is called \"%s\"",
             shown ? shown : "?");
  if (nearest)
    error_hint (err, "did you mean %s? coffer provider list shows them all",
                nearest);
  else if (reader.shipped < 0)
    error_hint (err, "%s is missing: is coffer installed as a whole?",
                registry->place->shipped);
  return -1;
}

/* The entry keeps its error; the caller gets a copy. */
static int
fail_broken (const struct registry_entry *entry, struct error **err)
{
  error_set (err, entry->error->number, 0, "provider %s: %s", entry->id,
             entry->error->message);
  if (entry->error->hint)
    error_hint (err, "%s", entry->error->hint);
  return -1;
}

static int
check_state (const struct registry_entry *entry, struct error **err)
{
  switch (entry->state) {
  case PROVIDER_ENABLED:
    return 0;
  case PROVIDER_BROKEN:
    return fail_broken (entry, err);
  case PROVIDER_DISABLED:
    error_set (err, E_PROVIDER_DISABLED, 0, "provider %s is disabled",
               entry->id);
    error_hint (err, "%s says `enabled: false`; coffer provider enable %s",
                entry->override_path, entry->id);
    return -1;
  default:
    error_set (err, E_PROVIDER_DISABLED, 0,
               "provider %s was put there by hand and is not checked yet",
               entry->id);
    error_hint (err, "coffer provider enable %s checks it and says that it is"
                " meant", entry->id);
    return -1;
  }
}

int
registry_find (const struct registry *registry, const char *id,
               const struct registry_entry **out, struct error **err)
{
  size_t i;

  for (i = 0; i < registry->count; i++) {
    if (strcmp (registry->entries[i].id, id) != 0)
      continue;
    if (check_state (&registry->entries[i], err) < 0)
      return -1;
    *out = &registry->entries[i];
    return 0;
  }
  return fail_unknown (registry, id, err);
}
