/* SPDX-License-Identifier: Apache-2.0 */
/* The ELF gate over any bytes: it refuses with one line, or the module's note
 * and libraries are what a loader may rely on. */

#include <config.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "contract/contract.h"
#include "provider/integrity.h"

int LLVMFuzzerTestOneInput (const uint8_t *bytes, size_t size);

static void
must (int holds)
{
  if (!holds)
    abort ();
}

int
LLVMFuzzerTestOneInput (const uint8_t *bytes, size_t size)
{
  auto_elf_facts struct elf_facts *facts = NULL;
  auto_error struct error *err = NULL;
  char **needed;

  if (elf_gate_bytes (bytes, size, "m", contract_builtin (), &facts, &err)
      < 0) {
    must (err && facts == NULL && !strchr (error_message (err), '\n'));
    return 0;
  }
  must (err == NULL && memchr (facts->note.name, 0, COFFER_NAME_MAX) != NULL
        && facts->note.contract_major == COFFER_CONTRACT_MAJOR);
  for (needed = facts->needed; *needed; needed++)
    must (**needed && strchr (*needed, '/') == NULL);
  return 0;
}
