/* SPDX-License-Identifier: Apache-2.0 */
/* A module in this process: from a sealed memory file that was hashed and
 * passed the ELF gate to a vtable whose claims were compared.  Nothing is ever
 * unloaded; the descriptor stays open for as long, because glibc takes two
 * files of one name for the same object. */

#ifndef PROVIDER_LOADER_H
#define PROVIDER_LOADER_H

#include "contract/contract.h"
#include "provider/integrity.h"

/* What the manifest says of a module. */
struct module_claim {
  const char *file;             /* its stem is the module's name */
  uint16_t contract_major, contract_minor;
  int threads;                  /* enum coffer_threads */
  char *const *capabilities;    /* NULL-terminated */
};

struct module {
  int fd;
  void *handle;
  const struct coffer_provider *descriptor;
  const struct coffer_operations *operations;
  struct contract_calls *calls;
};

/* The note against the manifest and the contract of this host: before any
 * code of the module runs.  E_CONTRACT_VERSION, E_MODULE. */
int module_check (const struct contract *contract,
                  const struct coffer_note *note,
                  const struct module_claim *claim, struct error **err);

/* dlopen, one symbol, the descriptor against the note, the vtable against
 * what is claimed.  Takes the descriptor, and keeps it whatever happens once
 * dlopen has seen it. */
int module_load (const struct contract *contract, int take_fd,
                 const struct coffer_note *note,
                 const struct module_claim *claim, struct module **out,
                 struct error **err);
/* The same in a process that may not open files any more: `maps_fd` is
 * /proc/self/maps, opened before. */
int module_load_confined (const struct contract *contract, int take_fd,
                          int maps_fd, const struct coffer_note *note,
                          const struct module_claim *claim,
                          struct module **out, struct error **err);
/* What the program has in itself. */
int module_built_in (const struct contract *contract,
                     const struct coffer_provider *descriptor,
                     const struct module_claim *claim, struct module **out,
                     struct error **err);
/* Frees the bookkeeping; the code stays where it is. */
void module_free (struct module *module);
DEFINE_CLEANUP (struct module *, module_free, auto_module)
#define auto_module CLEANUP (auto_module)

#endif /* PROVIDER_LOADER_H */
