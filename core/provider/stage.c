/* SPDX-License-Identifier: Apache-2.0 */
/* Staging folders.  Each is locked by whoever works in it, from before the
 * lock of all providers is given up: a hidden folder that nobody holds is one
 * whose maker was killed. */

#include <config.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <coffer/fd.h>
#include <coffer/path.h>

#include "base/log.h"
#include "base/text.h"
#include "provider/receipt.h"
#include "provider/stage.h"

#define STAGING ".staging-"
#define OLD ".old-"

/* -- what others left ------------------------------------------------------ */

/* An old one that lost its place to none: the exchange was not finished. */
static int
restore_old (int providers, const char *name)
{
  const char *id = name + strlen (OLD);

  return text_is_id (id)
         && renameat2 (providers, name, providers, id, RENAME_NOREPLACE) == 0;
}

static void
remove_left (int providers, const char *name)
{
  coffer_autoclose int held = openat (providers, name, O_RDONLY | O_DIRECTORY
                                      | O_NOFOLLOW | O_CLOEXEC);

  if (held < 0 || flock (held, LOCK_EX | LOCK_NB) < 0)
    return;
  if (coffer_remove_beneath (providers, name, 1, NULL) < 0 && errno != ENOENT)
    log_event (LOG_LEVEL_WARNING, "install", "%s is left: %s", name,
               strerror (errno));
}

static void
sweep_locked (int providers)
{
  int fd = openat (providers, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *stream = fd < 0 ? NULL : fdopendir (fd);
  struct dirent *item;

  if (stream == NULL) {
    coffer_fd_close (&fd);
    return;
  }
  while ((item = readdir (stream))) {
    if (strncmp (item->d_name, STAGING, strlen (STAGING)) == 0)
      remove_left (providers, item->d_name);
    else if (strncmp (item->d_name, OLD, strlen (OLD)) == 0
             && !restore_old (providers, item->d_name))
      remove_left (providers, item->d_name);
  }
  closedir (stream);
}

/* -- one of ours ----------------------------------------------------------- */

static int
make_locked (struct stage *stage, struct error **err)
{
  uint64_t random;

  if (getrandom (&random, sizeof random, 0) != sizeof random)
    return error_set (err, E_IO, errno, "random bytes");
  snprintf (stage->name, sizeof stage->name, STAGING "%016llx",
            (unsigned long long) random);
  stage->path = text_printf ("%s/%s", stage->place->installed, stage->name);
  if (stage->path == NULL || mkdirat (stage->providers, stage->name, 0700) < 0) {
    stage->name[0] = '\0';
    return error_set (err, E_IO, errno, "make a folder in %s",
                      stage->place->installed);
  }
  stage->dir = openat (stage->providers, stage->name, O_RDONLY | O_DIRECTORY
                       | O_NOFOLLOW | O_CLOEXEC);
  if (stage->dir < 0 || flock (stage->dir, LOCK_EX | LOCK_NB) < 0)
    return error_set (err, E_IO, errno, "hold %s", stage->path);
  return 0;
}

int
stage_begin (const struct place *place, struct stage *out, struct error **err)
{
  auto_stage struct stage stage
    = { .place = place, .providers = -1, .dir = -1 };
  coffer_autoclose int lock = -1;

  stage.providers = place_open_dir (place->installed, err);
  if (stage.providers < 0)
    return -1;
  lock = receipt_lock (stage.providers, err);
  if (lock < 0)
    return -1;
  sweep_locked (stage.providers);
  if (make_locked (&stage, err) < 0)
    return -1;
  *out = stage;
  stage = (struct stage){ .providers = -1, .dir = -1 };
  return 0;
}

void
stage_fini (struct stage *stage)
{
  if (stage->name[0]
      && coffer_remove_beneath (stage->providers, stage->name, 1, NULL) < 0
      && errno != ENOENT)
    log_event (LOG_LEVEL_WARNING, "install", "%s is left: %s", stage->path,
               strerror (errno));
  coffer_fd_close (&stage->dir);
  coffer_fd_close (&stage->providers);
  free (stage->path);
  stage->path = NULL;
  stage->name[0] = '\0';
}

int
stage_has (const struct stage *stage, const char *id)
{
  return faccessat (stage->providers, id, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

int
stage_folder (const struct stage *stage, const char *name, struct error **err)
{
  coffer_autoclose int fd = -1;

  if (mkdirat (stage->dir, name, 0700) < 0)
    return error_set (err, E_IO, errno, "make %s/%s", stage->path, name);
  fd = openat (stage->dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW
               | O_CLOEXEC);
  if (fd < 0 || fchmod (fd, 0755) < 0)
    return error_set (err, E_IO, errno, "open %s/%s", stage->path, name);
  return coffer_fd_steal (&fd);
}

/* -- taking the place ------------------------------------------------------ */

/* A file system without RENAME_EXCHANGE: for a moment there is none, and what
 * was there stands beside under a name that says whose place it had. */
static int
exchange_slowly (struct stage *stage, const char *id)
{
  auto_free char *old = text_printf (OLD "%s", id);

  if (old == NULL)
    return -1;
  if (renameat (stage->providers, id, stage->providers, old) < 0)
    return -1;
  if (renameat (stage->dir, id, stage->providers, id) < 0) {
    renameat (stage->providers, old, stage->providers, id);
    return -1;
  }
  return renameat (stage->providers, old, stage->dir, id);
}

static int
exchange (struct stage *stage, const char *id)
{
  if (renameat2 (stage->dir, id, stage->providers, id, RENAME_EXCHANGE) == 0)
    return 0;
  if (errno != EINVAL && errno != ENOSYS)
    return -1;
  return exchange_slowly (stage, id);
}

static int
place_new (struct stage *stage, const char *id)
{
  if (renameat2 (stage->dir, id, stage->providers, id, RENAME_NOREPLACE) == 0)
    return 0;
  if (errno != EINVAL && errno != ENOSYS)
    return -1;
  if (stage_has (stage, id)) {
    errno = EEXIST;
    return -1;
  }
  return renameat (stage->dir, id, stage->providers, id);
}

/* What is renamed must be on the disk before its new name is. */
static int
sync_new (const struct stage *stage, const char *id)
{
  coffer_autoclose int fd = openat (stage->dir, id, O_RDONLY | O_DIRECTORY
                                    | O_NOFOLLOW | O_CLOEXEC);

  return fd < 0 ? -1 : fsync (fd);
}

int
stage_commit (struct stage *stage, const char *id, int replace,
              struct error **err)
{
  coffer_autoclose int lock = receipt_lock (stage->providers, err);
  int r;

  if (lock < 0)
    return -1;
  if (sync_new (stage, id) < 0)
    return error_set (err, E_IO, errno, "write %s", id);
  r = replace && stage_has (stage, id) ? exchange (stage, id)
                                       : place_new (stage, id);
  if (r < 0 && errno == EEXIST)
    return error_set (err, E_ALREADY_INSTALLED, 0, "%s is installed already",
                      id);
  if (r < 0)
    return error_set (err, E_IO, errno, "put %s into its place", id);
  fsync (stage->providers);
  return 0;
}

int
stage_take (struct stage *stage, const char *id, struct error **err)
{
  coffer_autoclose int lock = receipt_lock (stage->providers, err);

  if (lock < 0)
    return -1;
  if (renameat (stage->providers, id, stage->dir, id) < 0)
    return error_set (err, errno == ENOENT ? E_UNKNOWN_PROVIDER : E_IO,
                      errno == ENOENT ? 0 : errno,
                      errno == ENOENT ? "%s is not installed"
                                      : "take %s away", id);
  fsync (stage->providers);
  return 0;
}
