/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of the entries of a folder; that of a sandbox that is killed goes with
 * it. */

#define _GNU_SOURCE

#include <errno.h>

#include <coffer/fd.h>
#include <coffer/files.h>

#include "files.h"

int32_t
reference_file_watch (struct coffer_call *call, void *self,
                      const char *sandbox, const char *path,
                      const struct coffer_file_watch_opts *opts)
{
  coffer_autoclose int watch = -1;
  auto_place struct place place = PLACE (path, NULL);
  int32_t code = place_find (call, self, sandbox, &place);

  (void) opts;
  if (code != COFFER_OK)
    return code;
  watch = coffer_watch_open (place.root, place.path);
  if (watch < 0)
    return coffer_fail_errno (call, errno, "the folder to watch");
  place_fini (&place);
  return coffer_files_watch (call, watch, -1);
}
