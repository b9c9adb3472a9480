/* SPDX-License-Identifier: Apache-2.0 */
/* All that starting a provider needs, made once and kept for restarts: the
 * module and its helpers as sealed memory files, the configuration, the
 * private folders. */

#ifndef PROVIDER_OPENING_H
#define PROVIDER_OPENING_H

#include "provider/built-in.h"
#include "provider/loader.h"
#include "provider/registry.h"

struct opening {
  char **config;                /* KEY=VALUE */
  char **secrets;
  const struct built_in *built_in;      /* instead of a module, or NULL */
  int module_fd;                /* sealed, hashed, gated; -1 once taken */
  struct coffer_note note;
  struct module_claim claim;    /* borrows from the manifest */
  size_t n_files;
  struct coffer_file *files;
  const struct coffer_file **file_vector;
  int runtime_dir, state_dir;
  char host[33];
  struct coffer_open_opts opts;
};

/* With what stands for its module, or NULL. */
int opening_new (const struct registry_entry *entry,
                 const struct place *place, const struct contract *contract,
                 const struct built_in *built_in, struct opening **out,
                 struct error **err);
/* Wipes the secrets. */
void opening_free (struct opening *opening);
DEFINE_CLEANUP (struct opening *, opening_free, auto_opening)
#define auto_opening CLEANUP (auto_opening)

#endif /* PROVIDER_OPENING_H */
