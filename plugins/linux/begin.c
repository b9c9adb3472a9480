/* SPDX-License-Identifier: Apache-2.0 */
/* An instance that was begun before it is opened.
 *
 * Of the time until a command runs most is the kernel's, which makes
 * namespaces and mounts, and on a second processor its init can do much of that
 * while the host still reads its configuration and the manifest.  What begins is
 * this program's own init in namespaces of its own: it has seen nothing of any
 * sandbox, runs nothing, and ends when its connection does. */

#include <fcntl.h>
#include <sys/stat.h>

#include "begin.h"
#include "spawn.h"

static struct linux_provider *begun;

const struct coffer_provider *COFFER_ENTRY (void);

const struct coffer_provider *
coffer_linux_entry (void)
{
  return COFFER_ENTRY ();
}

void
coffer_linux_begin (int init, int runtime_dir)
{
  int own = fcntl (init, F_DUPFD_CLOEXEC, 3);

  if (begun != NULL || own < 0) {
    coffer_fd_close (&own);
    return;
  }
  begun = provider_new (own, runtime_dir, NULL);
  if (begun != NULL && spare_begin (begun) == -1)
    coffer_linux_end ();
}

void
coffer_linux_end (void)
{
  struct linux_provider *self = begun;

  begun = NULL;
  if (self != NULL)
    provider_free (self);
}

static int
folder_same (int a, int b)
{
  struct stat x, y;

  return a >= 0 && b >= 0 && fstat (a, &x) == 0 && fstat (b, &y) == 0
         && x.st_ino == y.st_ino && x.st_dev == y.st_dev;
}

struct linux_provider *
begun_take (int runtime_dir, const char *const *config)
{
  struct linux_provider *self = begun;

  if (self == NULL)
    return NULL;
  if (!folder_same (self->runtime, runtime_dir)) {
    coffer_linux_end ();
    return NULL;
  }
  begun = NULL;
  self->spare.wanted = spare_wanted (config);
  return self;
}
