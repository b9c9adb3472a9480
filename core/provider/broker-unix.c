/* SPDX-License-Identifier: Apache-2.0 */
/* The way to a unix socket that the manifest names.
 *
 * The host connects with all that its user may do, so a path must not lead
 * where its provider wants: links are followed like everywhere, /var/run is
 * one, but not those below a folder that the provider may write. */

#include "config.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/text.h"
#include "provider/broker.h"

#define MAX_LINKS 20

struct walk {
  const char *shown;
  char *const *writable;        /* the manifest's permissions.write */
  int dir;
  int is_writable;              /* dir is one of these or below one */
  char *rest;
  unsigned links;
};

static int
walk_fail (const struct walk *walk, int code, struct error **err)
{
  return error_set (err, E_CONNECT_FAILED, code, "connect unix:%s",
                    walk->shown);
}

static int
is_granted (const struct walk *walk, const struct stat *st)
{
  char *const *path;
  struct stat granted;

  for (path = walk->writable; path && *path; path++)
    if (stat (*path, &granted) == 0 && granted.st_dev == st->st_dev
        && granted.st_ino == st->st_ino)
      return 1;
  return 0;
}

static int
walk_root (struct walk *walk, struct error **err)
{
  int fd = open ("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

  if (fd < 0)
    return walk_fail (walk, errno, err);
  coffer_fd_close (&walk->dir);
  walk->dir = fd;
  walk->is_writable = 0;
  return 0;
}

/* Upwards out of a writable folder it counts as writable still. */
static int
walk_link (struct walk *walk, int fd, const char *rest, struct error **err)
{
  char target[PATH_MAX];
  ssize_t n = readlinkat (fd, "", target, sizeof target - 1);
  char *joined;

  if (walk->is_writable)
    return error_set (err, E_CONNECT_DENIED, 0,
                      "unix:%s leads through a link that the provider may "
                      "have made", walk->shown);
  if (n < 0 || ++walk->links > MAX_LINKS)
    return walk_fail (walk, n < 0 ? errno : ELOOP, err);
  target[n] = '\0';
  joined = text_printf ("%s/%s", target, rest);
  if (!joined)
    return error_set (err, E_NO_MEMORY, 0, "out of memory");
  free (walk->rest);
  walk->rest = joined;
  return target[0] == '/' ? walk_root (walk, err) : 0;
}

/* One component.  The socket's descriptor once it is reached, 0 before. */
static int
walk_step (struct walk *walk, struct error **err)
{
  char *name = walk->rest + strspn (walk->rest, "/");
  size_t length = strcspn (name, "/");
  char *rest = name + length + strspn (name + length, "/");
  coffer_autoclose int fd = -1;
  struct stat st;

  name[length] = '\0';
  fd = openat (walk->dir, *name ? name : ".",
               O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0 || fstat (fd, &st) < 0)
    return walk_fail (walk, errno, err);
  if (S_ISLNK (st.st_mode))
    return walk_link (walk, fd, rest, err);
  if (S_ISSOCK (st.st_mode) && !*rest)
    return coffer_fd_steal (&fd);
  if (!S_ISDIR (st.st_mode) || !*rest)
    return walk_fail (walk, S_ISDIR (st.st_mode) ? EISDIR
                            : *rest ? ENOTDIR : ENOTSOCK, err);
  walk->is_writable |= is_granted (walk, &st);
  coffer_fd_close (&walk->dir);
  walk->dir = coffer_fd_steal (&fd);
  memmove (walk->rest, rest, strlen (rest) + 1);
  return 0;
}

int
broker_open_socket (const char *path, char *const *writable,
                    struct error **err)
{
  struct walk walk = { .shown = path, .writable = writable, .dir = -1,
                       .rest = strdup (path) };
  int result = walk.rest ? walk_root (&walk, err)
                         : error_set (err, E_NO_MEMORY, 0, "out of memory");

  while (result == 0)
    result = walk_step (&walk, err);
  coffer_fd_close (&walk.dir);
  free (walk.rest);
  return result;
}
