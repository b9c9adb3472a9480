/* SPDX-License-Identifier: Apache-2.0 */
/* See place.h. */

#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/text.h"
#include "place.h"

static int
copy_file (const char *from, const char *to)
{
  coffer_autoclose int in = open (from, O_RDONLY | O_CLOEXEC);
  coffer_autoclose int out = open (to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                                   0644);
  uint64_t copied;

  return in < 0 || out < 0 ? -1
                           : coffer_copy (in, out, 0, INT64_MAX, -1, &copied);
}

int
bench_place_make (struct place *place, const char *folder, const char *name,
                  const char *module, const char *libexec, struct error **err)
{
  auto_free char *copy = text_printf ("%s/%s.so", folder, name);

  if (copy_file (module, copy) < 0)
    return error_set (err, E_IO, errno, "copy %s", module);
  place->shipped = strdup (folder);
  place->libexec = strdup (libexec);
  place->installed = text_printf ("%s/installed", folder);
  place->config = text_printf ("%s/config", folder);
  place->state = text_printf ("%s/state", folder);
  place->runtime = text_printf ("%s/run", folder);
  place->home_override = 1;
  return 0;
}

void
bench_place_unmake (const char *folder, const char *name)
{
  /* Before `name`, and after it; without it where there is no second. */
  static const struct {
    const char *before, *after;
  } below[] = {
    { "", ".so" }, { "", ".yaml" }, { "run/", "" }, { "run", NULL },
    { "state/provider-state/", "" }, { "state/provider-state", NULL },
    { "state", NULL }
  };

  for (size_t i = 0; i < sizeof below / sizeof below[0]; i++) {
    const char *after = below[i].after;
    auto_free char *path = text_printf ("%s/%s%s%s", folder, below[i].before,
                                        after ? name : "", after ? after : "");

    remove (path);
  }
  rmdir (folder);
}
