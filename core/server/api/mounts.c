/* SPDX-License-Identifier: Apache-2.0 */
/* Folders of the host in a request: only beneath the roots that the operator has
 * allowed, through no link that leads out of them, and with the rights of the
 * process that asks, where that is one of this machine. */

#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "server/api/spec.h"
#include "server/server.h"

#define GROUPS_MAX 128

/* ---- as who --------------------------------------------------------------- */

/* The thread's own: set by system calls, since those of libc change all. */
struct identity {
  int changed;
  uid_t uid;
  gid_t gid;
  int n_groups;
  gid_t groups[GROUPS_MAX];
};

static void
identity_restore (struct identity *identity)
{
  if (!identity->changed)
    return;
  setfsuid (identity->uid);
  setfsgid (identity->gid);
  /* Without them back this thread would be refused what is ours; it may not be
   * let go on with those of a caller either. */
  if (syscall (SYS_setgroups, identity->n_groups, identity->groups) < 0)
    abort ();
}
#define auto_identity __attribute__ ((cleanup (identity_restore)))

/* Who asks over the socket is another user only where this is root. */
static int
identity_take (const struct caller *caller, struct identity *identity,
               struct error **err)
{
  if (!caller->local || caller->uid == geteuid ())
    return 0;
  identity->n_groups = getgroups (GROUPS_MAX, identity->groups);
  if (identity->n_groups < 0
      || syscall (SYS_setgroups, 0, NULL) < 0)
    return error_set (err, E_DENIED, errno, "the folder could not be opened "
                      "with the caller's rights");
  identity->changed = 1;
  identity->uid = geteuid ();
  identity->gid = getegid ();
  setfsgid (caller->gid);
  setfsuid (caller->uid);
  if ((uid_t) setfsuid ((uid_t) -1) != caller->uid
      || (gid_t) setfsgid ((gid_t) -1) != caller->gid)
    return error_set (err, E_DENIED, 0, "the folder could not be opened with "
                      "the caller's rights");
  return 0;
}

/* ---- where ---------------------------------------------------------------- */

/* What follows the root in the path, "." when nothing does; NULL: it is not
 * beneath.  Both are absolute and without "..". */
static const char *
beneath (const char *root, const char *path)
{
  size_t n = strlen (root);

  while (n > 0 && root[n - 1] == '/')
    n--;
  if (strncmp (root, path, n) != 0 || (path[n] != '/' && path[n] != '\0'))
    return NULL;
  path += n;
  while (*path == '/')
    path++;
  return *path ? path : ".";
}

static int
open_beneath (const char *root, const char *rest)
{
  coffer_autoclose int dir = open (root, O_PATH | O_DIRECTORY | O_CLOEXEC);
  struct open_how how = { .flags = O_PATH | O_CLOEXEC,
                          .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS };

  return dir < 0 ? -1 : (int) syscall (SYS_openat2, dir, rest, &how,
                                       sizeof how);
}

static int
may_use (int fd, const struct stat *st, int writable)
{
  int mode = R_OK | (S_ISDIR (st->st_mode) ? X_OK : 0) | (writable ? W_OK : 0);

  return (int) syscall (SYS_faccessat2, fd, "", mode,
                        AT_EMPTY_PATH | AT_EACCESS);
}

static int
refuse (const char *source, struct error **err)
{
  error_set (err, E_DENIED, 0, "mounts: %s is beneath none of the folders that "
             "may be shown", source);
  error_hint (err, "the operator lists them in serve.allowed_roots of "
              "coffer.yaml");
  error_detail (err, "field", json_string ("mounts"));
  return -1;
}

static int
source_open (const struct request *request, char *const *roots,
             const char *source, int writable, struct error **err)
{
  auto_identity struct identity identity = { 0 };
  coffer_autoclose int fd = -1;
  const char *rest = NULL;
  struct stat st;

  for (; roots && *roots && !(rest = beneath (*roots, source)); roots++)
    ;
  if (!rest)
    return refuse (source, err);
  if (identity_take (&request->caller, &identity, err) < 0)
    return -1;
  fd = open_beneath (*roots, rest);
  if (fd < 0 && (errno == EXDEV || errno == ELOOP))
    return refuse (source, err);
  if (fd < 0 || fstat (fd, &st) < 0)
    return error_set (err, E_SANDBOX_SPEC, errno, "mounts: %s", source);
  if (!S_ISDIR (st.st_mode) && !S_ISREG (st.st_mode))
    return error_set (err, E_SANDBOX_SPEC, 0,
                      "mounts: %s is neither a folder nor a regular file",
                      source);
  if (may_use (fd, &st, writable) < 0)
    return error_set (err, E_DENIED, errno, "mounts: %s", source);
  return coffer_fd_steal (&fd);
}

/* "/srv/../etc" is beneath /srv by its letters alone. */
static int
has_dots (const char *path)
{
  const char *p;
  size_t n;

  for (p = path; *p; p += n) {
    p += strspn (p, "/");
    n = strcspn (p, "/");
    if (n == 2 && p[0] == '.' && p[1] == '.')
      return 1;
  }
  return 0;
}

int
api_mount_open (const struct request *request, const char *source,
                int writable, struct sandbox_mount *out, struct error **err)
{
  auto_serve_config struct serve_config *config
    = server_config_ref (request->server);
  char *name;
  int fd;

  if (source[0] != '/' || has_dots (source))
    return field_fail ("mounts", err, "a source is an absolute path without "
                       "\"..\"");
  fd = source_open (request, config->allowed_roots, source, writable, err);
  if (fd < 0)
    return -1;
  name = strdup (source);
  if (!name) {
    coffer_fd_close (&fd);
    return error_set (err, E_NO_MEMORY, 0, "the mounts");
  }
  *out = (struct sandbox_mount){ .source = name, .is_open = 1,
                                 .source_fd = fd };
  return 0;
}
