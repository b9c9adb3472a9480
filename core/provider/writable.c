/* SPDX-License-Identifier: Apache-2.0 */
/* What `permissions.write` comes to on this machine: names without links, and
 * none of what coffer itself believes.  Who could write receipts, keys or the
 * operator's files would give itself every permission and every report. */

#include <config.h>

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <coffer/buffer.h>

#include "base/text.h"
#include "provider/writable.h"

static int
is_below (const char *path, const char *above)
{
  const size_t n = strlen (above);

  return strncmp (path, above, n) == 0
         && (path[n] == '\0' || path[n] == '/' || (n && above[n - 1] == '/'));
}

/* One of the two lies in the other. */
static int
meets (const char *path, const char *own)
{
  auto_free char *real = realpath (own, NULL);

  if (real == NULL)
    real = strdup (own);
  return real == NULL || is_below (path, real) || is_below (real, path);
}

static int
check (const struct registry_entry *entry, const struct place *place,
       const char *path, struct error **err)
{
  const char *const own[] = {
    place->installed, place->config, place->shipped, place->libexec,
    place->state, place->runtime, place_builtin_sysconf,
    place_builtin_localstate
  };
  size_t i;

  if (entry->trust == TRUST_PACKAGED)
    return 0;
  for (i = 0; i < sizeof own / sizeof own[0]; i++) {
    if (!meets (path, own[i]))
      continue;
    error_set (err, E_DENIED, 0, "provider %s asks to write %s, where coffer's"
               " own %s is", entry->id, path, own[i]);
    error_hint (err, "narrow permissions.write in providers.d/%s.yaml",
                entry->id);
    return -1;
  }
  return 0;
}

int
writable_resolve (const struct registry_entry *entry,
                  const struct place *place, struct coffer_strings *out,
                  struct error **err)
{
  char *const *path = entry->manifest->permissions.write;

  for (; path && *path; path++) {
    auto_free char *real = realpath (*path, NULL);

    /* What is not there, or not for us to see, grants nothing. */
    if (real == NULL && errno != ENOMEM)
      continue;
    if (real && check (entry, place, real, err) < 0)
      return -1;
    coffer_strings_add (out, real ? real : "");
    if (real == NULL || out->failed)
      return error_set (err, E_NO_MEMORY, 0, "provider %s", entry->id);
  }
  return 0;
}
