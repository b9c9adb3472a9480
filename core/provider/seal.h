/* SPDX-License-Identifier: Apache-2.0 */
/* Sealing: writes the hashes of a provider's module and files into its
 * manifest.  Only the text of the hashes changes; comments, order and layout
 * stay.  A module that the ELF gate refuses cannot be sealed. */

#ifndef PROVIDER_SEAL_H
#define PROVIDER_SEAL_H

#include <stddef.h>

#include "base/error.h"

struct seal_report {
  char *id;
  char *output;                 /* where it was written */
  size_t modules, files;        /* hashed now */
  int changed;                  /* does it differ from what was there? */
};

/* manifest: its path.  dir: where module and files lie; NULL: beside the
 * manifest.  output: NULL: the manifest itself.  The new file appears whole
 * or not at all. */
int seal_manifest (const char *manifest, const char *dir, const char *output,
                   struct seal_report *report, struct error **err);
void seal_report_fini (struct seal_report *report);

#endif /* PROVIDER_SEAL_H */
