/* SPDX-License-Identifier: Apache-2.0 */
/* From a file name to bytes that are known: copied into a sealed memory file,
 * hashed there, compared with the manifest.  What is loaded or executed later
 * is that memory file, so that a change of the file on disk changes nothing. */

#ifndef PROVIDER_INTEGRITY_H
#define PROVIDER_INTEGRITY_H

#include <stddef.h>
#include <stdint.h>

#include <coffer/provider.h>

#include "base/error.h"
#include "base/sha256.h"

#define INTEGRITY_MAX_BYTES (256 * 1024 * 1024)

/* Opens NAME (one component) in the trusted folder `dir`: regular, no link,
 * owner and mode as place_check_trusted wants, at most INTEGRITY_MAX_BYTES.
 * sha256 NULL or "": E_INTEGRITY, since an unsealed file is never loaded.
 * executable: the memory file may be given to execveat; mapping it executable,
 * as dlopen does, works without.
 * Returns the sealed memory file; E_INTEGRITY when the hash differs. */
int integrity_open (int dir, const char *name, const char *sha256,
                    int executable, struct error **err);

/* The same without a hash to compare with: writes the one of the copy.
 * owned: the owner-and-mode rule counts (seal does without). */
int integrity_copy (int dir, const char *name, int executable, int owned,
                    char out[SHA256_HEX_SIZE], struct error **err);

/* Bytes of the program itself as such a memory file, to be executed. */
int integrity_keep (const char *name, const void *bytes, size_t size,
                    struct error **err);

/* The hash alone, for verify: under the same rules, without the copy. */
int integrity_hash (int dir, const char *name, char out[SHA256_HEX_SIZE],
                    struct error **err);

/* The ELF gate: reads the sealed memory file and runs nothing.  Class,
 * machine, type, our note (exactly one), no RPATH or RUNPATH, no DT_AUDIT or
 * DT_DEPAUDIT, no executable stack, no text relocation, said or hidden, no
 * segment that is writable and executable, init functions in the code,
 * DT_NEEDED only bare sonames that resolve in root-owned folders, exactly one
 * exported symbol.  E_MODULE or E_CONTRACT_VERSION. */
struct elf_facts {
  struct coffer_note note;
  char **needed;                /* NULL-terminated */
};
int elf_gate (int fd, const char *shown_name, struct elf_facts **out,
              struct error **err);
/* The same for another contract than contract_builtin. */
struct contract;
int elf_gate_for (int fd, const char *shown_name,
                  const struct contract *contract, struct elf_facts **out,
                  struct error **err);
/* The same over bytes that cannot change. */
int elf_gate_bytes (const void *bytes, size_t size, const char *shown_name,
                    const struct contract *contract, struct elf_facts **out,
                    struct error **err);
void elf_facts_free (struct elf_facts *facts);
DEFINE_CLEANUP (struct elf_facts *, elf_facts_free, auto_elf_facts)
#define auto_elf_facts CLEANUP (auto_elf_facts)

#endif /* PROVIDER_INTEGRITY_H */
