/* SPDX-License-Identifier: Apache-2.0 */
/* A provider as its author hands it out: a folder with one sealed manifest and
 * what that names.  From there to a copy that has nothing else in it; nothing
 * of it is run. */

#ifndef PROVIDER_PACKAGE_H
#define PROVIDER_PACKAGE_H

#include "base/place.h"
#include "provider/manifest.h"
#include "provider/receipt.h"

struct package {
  int folder;                   /* where manifest and module lie */
  char *shown;                  /* that folder, for messages */
  char *bytes;                  /* the manifest's own */
  size_t size;
  struct manifest *manifest;
  /* For the next step of a tree that is not built or not sealed: can its
   * author's commands be run in `shown`? */
  int is_local;
};

/* Finds the one ID.yaml of a folder, or of the only folder in it.  `folder` is
 * borrowed.  An error leaves *out empty. */
int package_open (int folder, const char *shown, int is_local,
                  struct package *out, struct error **err);
void package_fini (struct package *package);
#define auto_package __attribute__ ((cleanup (package_fini)))

/* Copies the manifest, what it names, and the texts that go along (LICENSE*,
 * README*, ID.yaml.minisig, conformance.json and its signature) into the empty
 * folder `to`, each compared with its hash, and notes them in the receipt. */
int package_copy (const struct package *package, int to,
                  struct receipt *receipt, struct error **err);

/* All that the registry checks before it loads anything, of a copy that lies
 * at INSTALLED/ID; E_ALREADY_INSTALLED for an id that coffer ships. */
int package_check (const struct place *place, const char *installed,
                   const char *id, struct error **err);

/* Starts it in a worker and opens it, as whoever uses it first would; what the
 * operator has disabled, or not configured yet, is left alone. */
int package_try (const struct place *place, const char *installed,
                 const char *id, struct error **err);

#endif /* PROVIDER_PACKAGE_H */
