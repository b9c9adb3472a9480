/* SPDX-License-Identifier: Apache-2.0 */
/* Templates: root file systems for sandboxes, kept below the state folder by
 * the digest of what is in them and shared read-only.
 *
 *   templates/DIGEST/root   the tree, as coffer-archive unpacked it
 *   templates/DIGEST/lock   held shared while a sandbox is made of it, and by
 *                           the owner of an ephemeral one until its end
 *   templates/NAME.json     {"name", "digest", "files", "bytes", …}
 *   templates/.new-RANDOM   one that is being added, held by its maker */

#ifndef STORE_TEMPLATE_H
#define STORE_TEMPLATE_H

#include "base/place.h"
#include "base/helper.h"

/* Unpacks a folder or an archive (path "-": standard input) under a name.
 * E_TEMPLATE_EXISTS, E_ARCHIVE.  The entry as template_list has it. */
int template_add (const struct place *place, const char *name,
                  const char *path, const struct helper_watch *watch,
                  json_t **out, struct error **err);

/* [{"name", "digest", "files", "bytes", "left_out", "stripped", "created_ns",
 * "source"}], sorted by name. */
int template_list (const struct place *place, json_t **out,
                   struct error **err);

struct template_use {
  char *digest;
  int root;                     /* O_PATH */
  int lock;                     /* held shared */
};
/* For a sandbox: E_NOT_FOUND names the nearest. */
int template_open (const struct place *place, const char *name,
                   struct template_use *out, struct error **err);
void template_use_fini (struct template_use *use);

/* Takes the name away, and the tree when no other name has it.  `in_use` is
 * asked while nobody can begin to use the tree: whose it is, or NULL; the
 * answer is freed.  E_BUSY. */
typedef int template_in_use (void *data, const char *digest, char **who,
                             struct error **err);
int template_remove (const struct place *place, const char *name,
                     template_in_use *in_use, void *data, struct error **err);

#endif /* STORE_TEMPLATE_H */
