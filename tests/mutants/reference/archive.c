/* SPDX-License-Identifier: Apache-2.0 */
/* Trees as archives. */

#define _GNU_SOURCE

#include <coffer/files.h>

#include "files.h"

int32_t
reference_archive_export (struct coffer_call *call, void *self,
                          const char *sandbox, const char *path, int32_t out,
                          const struct coffer_archive_export_opts *opts)
{
  auto_place struct place place = PLACE (path, NULL);
  int32_t code = place_find (call, self, sandbox, &place);

  (void) opts;
  return code != COFFER_OK ? code :
    coffer_files_export (call, place.root, place.path, out);
}

int32_t
reference_archive_import (struct coffer_call *call, void *self,
                          const char *sandbox, const char *path, int32_t in,
                          const struct coffer_archive_import_opts *opts)
{
  auto_place struct place place = PLACE (path, NULL);
  int32_t code = place_find (call, self, sandbox, &place);

  (void) opts;
  return code != COFFER_OK ? code :
    coffer_files_import (call, place.root, place.path, in);
}
