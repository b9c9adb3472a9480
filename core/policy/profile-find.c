/* SPDX-License-Identifier: Apache-2.0 */
/* Where profiles come from: the user's folder, the system's, the program. */

#include <config.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <coffer/buffer.h>
#include <coffer/fd.h>

#include "base/json.h"
#include "base/text.h"
#include "base/yaml.h"
#include "policy/profile.h"

#define LAYERS_MAX 2

static const struct shipped {
  const char *name, *text;
} shipped[] = {
#include "shipped.h"
};
#define N_SHIPPED (sizeof shipped / sizeof shipped[0])

/* ---- folders ------------------------------------------------------------ */

/* The folder `profiles` of a configuration, -1 without an error: none. */
static int
folder_open (const char *config, char **shown, struct error **err)
{
  auto_error struct error *error = NULL;
  int fd;

  *shown = text_printf ("%s/profiles", config);
  if (!*shown)
    return error_set (err, E_NO_MEMORY, 0, "profiles");
  fd = place_open_trusted_dir (*shown, &error);
  if (fd < 0 && error->number != E_NOT_FOUND && error->sys_errno != EACCES)
    error_move (err, steal (error));
  return fd;
}

/* The one that wins comes first. */
static size_t
layers (const struct place *place, const char *out[LAYERS_MAX])
{
  size_t n = 0;

  if (!place->config)
    return 0;
  out[n++] = place->config;
  if (!place->home_override
      && strcmp (place->config, place_builtin_sysconf) != 0)
    out[n++] = place_builtin_sysconf;
  return n;
}

/* 1: read; 0: no such file in this folder. */
static int
layer_find (const char *config, const char *name, struct profile **out,
            struct error **err)
{
  auto_free char *folder = NULL, *file = NULL, *path = NULL, *bytes = NULL;
  struct error *error = NULL;
  coffer_autoclose int dir = folder_open (config, &folder, &error);
  size_t size = 0;

  if (dir < 0)
    return error ? error_move (err, error) : 0;
  file = text_printf ("%s.yaml", name);
  path = file ? text_printf ("%s/%s", folder, file) : NULL;
  if (!path)
    return error_set (err, E_NO_MEMORY, 0, "profile %s", name);
  if (faccessat (dir, file, F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
    return 0;
  if (place_read_trusted (dir, file, path, YAML_MAX_BYTES, E_CONFIG, &bytes,
                          &size, err) < 0
      || profile_read (bytes, size, path, out, err) < 0)
    return -1;
  if (strcmp ((*out)->name, name) == 0)
    return 1;
  error_set (err, E_CONFIG, 0, "%s: the name in it is %s: the file must be "
             "called %s.yaml", path, (*out)->name, (*out)->name);
  profile_free (*out);
  *out = NULL;
  return -1;
}

/* ---- all names ---------------------------------------------------------- */

static void
names_add (json_t *names, const char *name)
{
  if (!json_object_get (names, name))
    json_object_set_new (names, name, json_null ());
}

static int
names_of (const char *config, json_t *names, struct error **err)
{
  auto_free char *folder = NULL;
  struct error *error = NULL;
  coffer_autoclose int dir = folder_open (config, &folder, &error);
  int fd = dir < 0 ? -1 : openat (dir, ".", O_RDONLY | O_DIRECTORY
                                            | O_CLOEXEC);
  DIR *stream = fd < 0 ? NULL : fdopendir (fd);
  struct dirent *entry;

  if (!stream) {
    coffer_fd_close (&fd);
    return error ? error_move (err, error) : 0;
  }
  while ((entry = readdir (stream))) {
    size_t length = strlen (entry->d_name);

    if (length < 6 || strcmp (entry->d_name + length - 5, ".yaml") != 0)
      continue;
    entry->d_name[length - 5] = '\0';
    if (text_is_id (entry->d_name))
      names_add (names, entry->d_name);
  }
  closedir (stream);
  return 0;
}

/* An object with a key for each name. */
static json_t *
names_all (const struct place *place, struct error **err)
{
  const char *folders[LAYERS_MAX];
  size_t n = layers (place, folders), i;
  json_t *names = json_object ();

  for (i = 0; i < N_SHIPPED; i++)
    names_add (names, shipped[i].name);
  for (i = 0; i < n; i++)
    if (names_of (folders[i], names, err) < 0) {
      json_decref (names);
      return NULL;
    }
  return names;
}

/* ---- the two questions -------------------------------------------------- */

static int
fail_unknown (const struct place *place, const char *name, struct error **err)
{
  auto_json json_t *names = names_all (place, NULL);
  const char *candidates[256] = { NULL }, *key, *nearest;
  auto_free char *shown = text_escape (name, strlen (name));
  json_t *value;
  size_t n = 0;

  json_object_foreach (names, key, value)
    if (n < 255)
      candidates[n++] = key;
  nearest = text_nearest (name, candidates);
  error_set (err, E_NOT_FOUND, 0, "there is no profile %.64s on this host",
             shown ? shown : "?");
  if (nearest)
    error_hint (err, "did you mean %s? coffer profile list shows all",
                nearest);
  else
    error_hint (err, "coffer profile list shows the profiles there are");
  return -1;
}

int
profile_find (const struct place *place, const char *name,
              struct profile **out, struct error **err)
{
  const char *folders[LAYERS_MAX];
  size_t n = layers (place, folders), i;
  int r;

  if (!text_is_id (name))
    return fail_unknown (place, name, err);
  for (i = 0; i < n; i++) {
    r = layer_find (folders[i], name, out, err);
    if (r != 0)
      return r < 0 ? -1 : 0;
  }
  for (i = 0; i < N_SHIPPED; i++)
    if (strcmp (shipped[i].name, name) == 0)
      return profile_read (shipped[i].text, strlen (shipped[i].text),
                           "shipped", out, err);
  return fail_unknown (place, name, err);
}

static json_t *
list_row (const struct place *place, const char *name)
{
  auto_profile struct profile *profile = NULL;
  auto_error struct error *error = NULL;

  if (profile_find (place, name, &profile, &error) < 0)
    return json_pack ("{s:s, s:s}", "name", name, "error",
                      error_message (error));
  return json_pack ("{s:s, s:s, s:s}", "name", name, "source",
                    profile->source, "summary", profile->summary);
}

static int
compare_names (const void *a, const void *b)
{
  return strcmp (*(const char *const *) a, *(const char *const *) b);
}

int
profile_list (const struct place *place, json_t **out, struct error **err)
{
  auto_json json_t *names = names_all (place, err);
  auto_free const char **sorted = NULL;
  const char *key;
  json_t *value, *list;
  size_t n = 0, i;

  if (!names)
    return -1;
  sorted = calloc (json_object_size (names) + 1, sizeof *sorted);
  if (!sorted)
    return error_set (err, E_NO_MEMORY, 0, "profiles");
  json_object_foreach (names, key, value)
    sorted[n++] = key;
  qsort (sorted, n, sizeof *sorted, compare_names);
  list = json_array ();
  for (i = 0; i < n; i++)
    json_array_append_new (list, list_row (place, sorted[i]));
  *out = list;
  return 0;
}
