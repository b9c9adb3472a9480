/* SPDX-License-Identifier: Apache-2.0 */
/* What `enable`, `disable` and `default` write: one key of a file of the
 * operator's, in the folder of whoever calls, which is the system's for root
 * and the last word for everybody else. */

#include <config.h>

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/text.h"
#include "base/yaml.h"
#include "provider/registry-read.h"

/* The system's configuration is for everybody to read. */
static mode_t
folder_mode (const struct place *place)
{
  return strcmp (place->config, place_builtin_sysconf) == 0 ? 0755 : 0700;
}

static int
open_config (const struct place *place, struct error **err)
{
  struct error *error = NULL;
  int fd = place_open_trusted_dir (place->config, &error);

  if (fd >= 0)
    return fd;
  if (error->number != E_NOT_FOUND)
    return error_move (err, error);
  error_free (error);
  fd = place_open_dir (place->config, err);
  if (fd >= 0 && fchmod (fd, folder_mode (place)) < 0) {
    error_set (err, E_IO, errno, "make the folder %s", place->config);
    coffer_fd_close (&fd);
  }
  return fd;
}

static int
open_providers_d (const struct place *place, struct error **err)
{
  auto_free char *shown = text_printf ("%s/providers.d", place->config);
  coffer_autoclose int config = open_config (place, err);
  coffer_autoclose int fd = -1;

  if (config < 0 || shown == NULL)
    return shown ? -1 : error_set (err, E_NO_MEMORY, 0, "providers.d");
  if (mkdirat (config, "providers.d", folder_mode (place)) < 0
      && errno != EEXIST)
    return error_set (err, E_IO, errno, "make the folder %s", shown);
  fd = openat (config, "providers.d",
               O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0)
    return error_set (err, E_UNSAFE_FILE, errno, "open %s", shown);
  if (place_check_trusted (fd, shown, err) < 0)
    return -1;
  return coffer_fd_steal (&fd);
}

int
registry_set_enabled (const struct place *place, const char *id, int enabled,
                      int *changed, struct error **err)
{
  auto_free char *name = text_printf ("%s.yaml", id);
  auto_free char *shown
    = text_printf ("%s/providers.d/%s.yaml", place->config, id);
  const struct yaml_source source = { shown, E_CONFIG };
  coffer_autoclose int dir = -1;

  if (name == NULL || shown == NULL)
    return error_set (err, E_NO_MEMORY, 0, "provider %s", id);
  dir = open_providers_d (place, err);
  if (dir < 0)
    return -1;
  return yaml_edit_file (dir, name, &source, "enabled",
                         enabled ? "true" : "false", changed, err);
}

static int
edit_default (const struct place *place, const char *id, struct error **err)
{
  auto_free char *shown = text_printf ("%s/coffer.yaml", place->config);
  const struct yaml_source source = { shown, E_CONFIG };
  coffer_autoclose int dir = -1;
  int changed;

  if (shown == NULL)
    return error_set (err, E_NO_MEMORY, 0, "coffer.yaml");
  dir = open_config (place, err);
  if (dir < 0)
    return -1;
  return yaml_edit_file (dir, "coffer.yaml", &source, "default_provider", id,
                         &changed, err);
}

int
registry_set_default (const struct place *place, const char *id,
                      struct error **err)
{
  if (!text_is_id (id))
    return error_set (err, E_INVALID, 0, "not a provider's id: %s", id);
  return edit_default (place, id, err);
}

/* Only the names of files are looked at. */
static int
read_default (const struct place *place, char **now, struct error **err)
{
  auto_registry struct registry *registry = NULL;

  if (registry_load_one (place, NULL, &registry, err) < 0)
    return -1;
  free (*now);
  *now = steal (registry->default_provider);
  return 0;
}

int
registry_reset_default (const struct place *place, const char *id,
                        char **now, struct error **err)
{
  auto_free char *found = NULL;

  if (read_default (place, &found, err) < 0)
    return -1;
  if (strcmp (found, id) == 0
      && (edit_default (place, NULL, err) < 0
          || read_default (place, &found, err) < 0))
    return -1;
  /* The system's file names it too, and is not this user's to change. */
  if (strcmp (found, id) == 0
      && (edit_default (place, REGISTRY_BUILTIN_DEFAULT, err) < 0
          || read_default (place, &found, err) < 0))
    return -1;
  *now = steal (found);
  return 0;
}
