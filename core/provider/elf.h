/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of the ELF gate.  All reading is by `image_at`, which
 * takes an address as the dynamic linker would and gives bytes of the file,
 * or by `file_at`, which takes an offset: both check the bounds. */

#ifndef PROVIDER_ELF_H
#define PROVIDER_ELF_H

#include <link.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "provider/integrity.h"

#define ELF_MAX_SEGMENTS 64
#define ELF_MAX_DYNAMIC 256
#define ELF_MAX_NEEDED 64
#define ELF_MAX_SYMBOLS (1 << 20)

struct elf_image {
  const char *name;             /* for messages */
  const unsigned char *bytes;
  size_t size;
  size_t page;
  size_t n_loads;
  ElfW (Phdr) loads[ELF_MAX_SEGMENTS];  /* PT_LOAD, ascending, apart */
  ElfW (Phdr) dynamic;
};

/* Always E_MODULE, -1. */
int elf_refuse (const struct elf_image *image, struct error **err,
                const char *fmt, ...) __attribute__ ((format (printf, 3, 4)));

/* `size` bytes at a file offset, or NULL. */
const unsigned char *elf_file_at (const struct elf_image *image,
                                  uint64_t offset, uint64_t size);
/* `size` bytes at an address that the file fills, or NULL.  room: how many
 * more the same segment has from there (may be NULL). */
const unsigned char *elf_image_at (const struct elf_image *image,
                                   uint64_t address, uint64_t size,
                                   uint64_t *room);
/* The segment that an address lies in, memory beyond the file's bytes
 * included, or NULL. */
const ElfW (Phdr) *elf_segment_of (const struct elf_image *image,
                                   uint64_t address, uint64_t size);

/* The dynamic section: libraries, flags, exported symbols, relocations. */
int elf_check_dynamic (const struct elf_image *image, const char *entry,
                       char ***needed, struct error **err);

/* A bare soname that a root-owned system folder has. */
int elf_check_needed (const struct elf_image *image, const char *soname,
                      struct error **err);

#endif /* PROVIDER_ELF_H */
