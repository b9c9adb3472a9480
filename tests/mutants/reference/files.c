/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a sandbox: what lies in its workspace.  Whoever sends files through
 * the provider reaches the workspace and nothing else; an absolute path must
 * lie below the workspace's own. */

#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include <coffer/fd.h>
#include <coffer/files.h>
#include <coffer/path.h>

#include "files.h"

int32_t
place_find (struct coffer_call *call, const struct reference *self,
            const char *sandbox, struct place *place)
{
  const int two = place->other != NULL;
  char *workspace;

  place->folder = sandbox_open (self, sandbox);
  if (place->folder >= 0)
    place->root = coffer_open_beneath (place->folder, WORKSPACE, O_RDONLY
                                       | O_DIRECTORY, 0);
  if (place->root < 0)
    return fail_sandbox (call, errno);
  workspace = coffer_fd_path (place->root);
  if (!workspace)
    return fail_sandbox (call, errno);
  place->path = coffer_path_below (workspace, place->path);
  place->other = coffer_path_below (workspace, place->other);
  free (workspace);
  if (!place->path || (two && !place->other))
    return coffer_fail (call, COFFER_DENIED, "the path is not below the "
                        "workspace: give one that begins with no slash");
  return COFFER_OK;
}

void
place_fini (struct place *place)
{
  coffer_fd_close (&place->root);
  coffer_fd_close (&place->folder);
}

int32_t
reference_file_read (struct coffer_call *call, void *self,
                     const char *sandbox, const char *path, int32_t out,
                     const struct coffer_file_read_opts *opts)
{
  auto_place struct place place = PLACE (path, NULL);
  int32_t code = place_find (call, self, sandbox, &place);

  return code != COFFER_OK ? code :
    coffer_files_read (call, place.root, place.path, out, opts);
}

int32_t
reference_file_write (struct coffer_call *call, void *self,
                      const char *sandbox, const char *path, int32_t in,
                      const struct coffer_file_write_opts *opts)
{
  auto_place struct place place = PLACE (path, NULL);
  int32_t code = place_find (call, self, sandbox, &place);

  return code != COFFER_OK ? code :
    coffer_files_write (call, place.root, place.path, in, opts);
}

int32_t
reference_file_stat (struct coffer_call *call, void *self,
                     const char *sandbox, const char *path,
                     const struct coffer_file_stat_opts *opts)
{
  auto_place struct place place = PLACE (path, NULL);
  int32_t code = place_find (call, self, sandbox, &place);

  (void) opts;
  return code != COFFER_OK ? code :
    coffer_files_stat (call, place.root, place.path);
}

int32_t
reference_file_list (struct coffer_call *call, void *self,
                     const char *sandbox, const char *path,
                     const struct coffer_file_list_opts *opts)
{
  auto_place struct place place = PLACE (path, NULL);
  int32_t code = place_find (call, self, sandbox, &place);

  return code != COFFER_OK ? code :
    coffer_files_list (call, place.root, place.path, opts);
}

int32_t
reference_file_mkdir (struct coffer_call *call, void *self,
                      const char *sandbox, const char *path,
                      const struct coffer_file_mkdir_opts *opts)
{
  auto_place struct place place = PLACE (path, NULL);
  int32_t code = place_find (call, self, sandbox, &place);

  return code != COFFER_OK ? code :
    coffer_files_mkdir (call, place.root, place.path, opts);
}

int32_t
reference_file_remove (struct coffer_call *call, void *self,
                       const char *sandbox, const char *path,
                       const struct coffer_file_remove_opts *opts)
{
  auto_place struct place place = PLACE (path, NULL);
  int32_t code = place_find (call, self, sandbox, &place);

  return code != COFFER_OK ? code :
    coffer_files_remove (call, place.root, place.path, opts);
}

int32_t
reference_file_rename (struct coffer_call *call, void *self,
                       const char *sandbox, const char *from, const char *to,
                       const struct coffer_file_rename_opts *opts)
{
  auto_place struct place place = PLACE (from, to);
  int32_t code = place_find (call, self, sandbox, &place);

  (void) opts;
  return code != COFFER_OK ? code :
    coffer_files_rename (call, place.root, place.path, place.other);
}
