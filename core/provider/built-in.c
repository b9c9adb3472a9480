/* SPDX-License-Identifier: Apache-2.0 */
/* Which provider the program has in itself, and whether it may stand for the
 * module that was shipped. */

#include <config.h>

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/text.h"
#include "provider/built-in.h"
#include "provider/integrity.h"
#include "provider/manifest.h"

/* Notes stand near the beginning, as the linker places them. */
#define HEAD 4096

static const struct built_in *known;

void
built_in_register (const struct built_in *built_in)
{
  known = built_in;
}

static size_t
span (const void *from, const void *to)
{
  return (size_t) ((const char *) to - (const char *) from);
}

/* Nothing is trusted that lies there: it only tells whether it is something
 * else, which somebody has put there to be used. */
static int
build_same (const struct built_in *built_in, int dir, const char *file)
{
  const size_t size = span (built_in->build, built_in->build_end);
  coffer_unfilled char head[HEAD];
  coffer_autoclose int fd = -1;
  ssize_t n;

  if (!manifest_is_file_name (file))
    return 0;
  fd = openat (dir, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  n = fd < 0 || place_check_trusted (fd, file, NULL) < 0
        ? -1 : pread (fd, head, sizeof head, 0);
  return n > 0 && size > 0
         && memmem (head, (size_t) n, built_in->build, size) != NULL;
}

const struct built_in *
built_in_for (const struct registry_entry *entry)
{
  const struct manifest_module *module;

  if (!known || entry->trust != TRUST_PACKAGED || entry->held_in_worker
      || strcmp (entry->id, known->id) != 0
      || manifest_module (entry->manifest, &module, NULL) < 0
      || !build_same (known, entry->dir_fd, module->file))
    return NULL;
  return known;
}

int
built_in_file (const struct built_in *built_in, struct error **err)
{
  return integrity_keep (built_in->file, built_in->bytes,
                         span (built_in->bytes, built_in->bytes_end), err);
}

void
built_in_end (void)
{
  if (known && known->end)
    known->end ();
}
