/* SPDX-License-Identifier: Apache-2.0 */
/* Files of the host provider: what lies in the sandbox's workspace.  Commands
 * reach all that the caller can; whoever sends files through the provider
 * reaches the workspace and nothing else.  An absolute path must lie below the
 * workspace's own. */

#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <coffer/fd.h>
#include <coffer/files.h>
#include <coffer/path.h>

#include "host.h"

/* The workspace of a sandbox, and a call's paths below it. */
struct place {
  int root;
  const char *path, *other;
};

static int32_t
place_find (struct coffer_call *call, const struct host *host,
            const char *sandbox, struct place *place)
{
  coffer_autoclose int folder = sandbox_open (host, sandbox);
  const int two = place->other != NULL;
  char *workspace;

  if (folder < 0)
    return fail_sandbox (call, errno, sandbox);
  place->root = coffer_open_beneath (folder, KEEPER_WORKSPACE,
                                     O_RDONLY | O_DIRECTORY, 0);
  if (place->root < 0)
    return fail_sandbox (call, errno, sandbox);
  workspace = coffer_fd_path (place->root);
  if (!workspace)
    return coffer_fail_errno (call, errno, "the workspace");
  place->path = coffer_path_below (workspace, place->path);
  place->other = coffer_path_below (workspace, place->other);
  free (workspace);
  if (!place->path || (two && !place->other))
    return coffer_fail (call, COFFER_DENIED, "the path is not below the "
                        "workspace: give one that begins with no slash");
  return COFFER_OK;
}

/* Finds the place, runs `call_expression` with it, closes it. */
#define IN_PLACE(first, second, call_expression)                              \
  struct place place = {.root = -1, .path = first, .other = second};          \
  int32_t code = place_find (call, self, sandbox, &place);                    \
                                                                              \
  (void) opts;                                                                \
  if (code == COFFER_OK)                                                      \
    code = call_expression;                                                   \
  coffer_fd_close (&place.root);                                              \
  return code

int32_t
host_file_read (struct coffer_call *call, void *self, const char *sandbox,
                const char *path, int32_t out,
                const struct coffer_file_read_opts *opts)
{
  IN_PLACE (path, NULL,
            coffer_files_read (call, place.root, place.path, out, opts));
}

int32_t
host_file_write (struct coffer_call *call, void *self, const char *sandbox,
                 const char *path, int32_t in,
                 const struct coffer_file_write_opts *opts)
{
  IN_PLACE (path, NULL,
            coffer_files_write (call, place.root, place.path, in, opts));
}

int32_t
host_file_stat (struct coffer_call *call, void *self, const char *sandbox,
                const char *path, const struct coffer_file_stat_opts *opts)
{
  IN_PLACE (path, NULL, coffer_files_stat (call, place.root, place.path));
}

int32_t
host_file_list (struct coffer_call *call, void *self, const char *sandbox,
                const char *path, const struct coffer_file_list_opts *opts)
{
  IN_PLACE (path, NULL,
            coffer_files_list (call, place.root, place.path, opts));
}

int32_t
host_file_mkdir (struct coffer_call *call, void *self, const char *sandbox,
                 const char *path, const struct coffer_file_mkdir_opts *opts)
{
  IN_PLACE (path, NULL,
            coffer_files_mkdir (call, place.root, place.path, opts));
}

int32_t
host_file_remove (struct coffer_call *call, void *self, const char *sandbox,
                  const char *path, const struct coffer_file_remove_opts *opts)
{
  IN_PLACE (path, NULL,
            coffer_files_remove (call, place.root, place.path, opts));
}

int32_t
host_file_rename (struct coffer_call *call, void *self, const char *sandbox,
                  const char *from, const char *to,
                  const struct coffer_file_rename_opts *opts)
{
  if (!to)
    return coffer_fail (call, COFFER_INVALID, "no new name");
  IN_PLACE (from, to, coffer_files_rename (call, place.root, place.path,
                                           place.other));
}

int32_t
host_archive_export (struct coffer_call *call, void *self,
                     const char *sandbox, const char *path, int32_t out,
                     const struct coffer_archive_export_opts *opts)
{
  IN_PLACE (path, NULL,
            coffer_files_export (call, place.root, place.path, out));
}

int32_t
host_archive_import (struct coffer_call *call, void *self,
                     const char *sandbox, const char *path, int32_t in,
                     const struct coffer_archive_import_opts *opts)
{
  IN_PLACE (path, NULL,
            coffer_files_import (call, place.root, place.path, in));
}

/* A killed sandbox's workspace is removed, which ends the watch. */
int32_t
host_file_watch (struct coffer_call *call, void *self, const char *sandbox,
                 const char *path, const struct coffer_file_watch_opts *opts)
{
  struct place place = {.root = -1, .path = path};
  int32_t code = place_find (call, self, sandbox, &place);
  coffer_autoclose int watch = -1;

  (void) opts;
  if (code == COFFER_OK) {
    watch = coffer_watch_open (place.root, place.path);
    if (watch < 0)
      code = coffer_fail_errno (call, errno, "the folder to watch");
  }
  coffer_fd_close (&place.root);
  return code == COFFER_OK ? coffer_files_watch (call, watch, -1) : code;
}
