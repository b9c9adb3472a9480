/* SPDX-License-Identifier: Apache-2.0 */
/* The dynamic section of a module, as the dynamic linker will see it: what
 * would make it look elsewhere for libraries, change code pages, or offer more
 * than the one symbol is refused. */

#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/yaml.h"
#include "provider/elf.h"

#ifndef DT_RELR
#define DT_RELRSZ 35
#define DT_RELR 36
#define DT_RELRENT 37
#endif

/* Entries whose value is used here; each may occur once. */
enum slot {
  SLOT_STRTAB, SLOT_STRSZ, SLOT_SYMTAB, SLOT_SYMENT, SLOT_HASH, SLOT_GNU_HASH,
  SLOT_FLAGS, SLOT_FLAGS_1, SLOT_SONAME, SLOT_INIT, SLOT_FINI,
  SLOT_INIT_ARRAY, SLOT_INIT_ARRAYSZ, SLOT_FINI_ARRAY, SLOT_FINI_ARRAYSZ,
  SLOT_RELA, SLOT_RELASZ, SLOT_RELAENT, SLOT_REL, SLOT_RELSZ, SLOT_RELENT,
  SLOT_JMPREL, SLOT_PLTRELSZ, SLOT_PLTREL, SLOT_RELR, SLOT_RELRSZ,
  SLOT_RELRENT, N_SLOTS
};

static const struct {
  ElfW (Sxword) tag;
  enum slot slot;
} kept_tags[] = {
  { DT_STRTAB, SLOT_STRTAB }, { DT_STRSZ, SLOT_STRSZ },
  { DT_SYMTAB, SLOT_SYMTAB }, { DT_SYMENT, SLOT_SYMENT },
  { DT_HASH, SLOT_HASH }, { DT_GNU_HASH, SLOT_GNU_HASH },
  { DT_FLAGS, SLOT_FLAGS }, { DT_FLAGS_1, SLOT_FLAGS_1 },
  { DT_SONAME, SLOT_SONAME }, { DT_INIT, SLOT_INIT }, { DT_FINI, SLOT_FINI },
  { DT_INIT_ARRAY, SLOT_INIT_ARRAY }, { DT_INIT_ARRAYSZ, SLOT_INIT_ARRAYSZ },
  { DT_FINI_ARRAY, SLOT_FINI_ARRAY }, { DT_FINI_ARRAYSZ, SLOT_FINI_ARRAYSZ },
  { DT_RELA, SLOT_RELA }, { DT_RELASZ, SLOT_RELASZ },
  { DT_RELAENT, SLOT_RELAENT }, { DT_REL, SLOT_REL },
  { DT_RELSZ, SLOT_RELSZ }, { DT_RELENT, SLOT_RELENT },
  { DT_JMPREL, SLOT_JMPREL }, { DT_PLTRELSZ, SLOT_PLTRELSZ },
  { DT_PLTREL, SLOT_PLTREL }, { DT_RELR, SLOT_RELR },
  { DT_RELRSZ, SLOT_RELRSZ }, { DT_RELRENT, SLOT_RELRENT },
};

static const struct {
  ElfW (Sxword) tag;
  const char *why;
} refused_tags[] = {
  { DT_RPATH, "has an RPATH" },
  { DT_RUNPATH, "has a RUNPATH" },
  { DT_AUDIT, "names an audit library" },
  { DT_DEPAUDIT, "names an audit library" },
  { DT_AUXILIARY, "is a filter for another library" },
  { DT_FILTER, "is a filter for another library" },
  { DT_CONFIG, "names a configuration of the dynamic linker" },
  { DT_TEXTREL, "has text relocations" },
  { DT_PREINIT_ARRAY, "has functions that run before it is loaded" },
};

#define COUNT(array) (sizeof (array) / sizeof (array)[0])

struct dynamic {
  uint64_t value[N_SLOTS];
  unsigned char there[N_SLOTS];
  size_t n_needed;
  uint64_t needed[ELF_MAX_NEEDED];      /* offsets in the string table */
  const char *strings;
  uint64_t strings_size;
};

static int
take_entry (const struct elf_image *image, struct dynamic *d,
            const ElfW (Dyn) *entry, struct error **err)
{
  size_t i;

  for (i = 0; i < COUNT (refused_tags); i++) {
    if (entry->d_tag == refused_tags[i].tag)
      return elf_refuse (image, err, "%s", refused_tags[i].why);
  }
  if (entry->d_tag == DT_NEEDED) {
    if (d->n_needed == ELF_MAX_NEEDED)
      return elf_refuse (image, err, "needs more than %d libraries",
                         ELF_MAX_NEEDED);
    d->needed[d->n_needed++] = entry->d_un.d_val;
    return 0;
  }
  for (i = 0; i < COUNT (kept_tags); i++) {
    if (entry->d_tag != kept_tags[i].tag)
      continue;
    if (d->there[kept_tags[i].slot]++)
      return elf_refuse (image, err,
                         "its dynamic section says the same thing twice");
    d->value[kept_tags[i].slot] = entry->d_un.d_val;
  }
  return 0;
}

/* By address, as the linker does; the header's offset must say the same. */
static int
read_entries (const struct elf_image *image, struct dynamic *d,
              struct error **err)
{
  uint64_t room = 0, at;
  const unsigned char *bytes
    = elf_image_at (image, image->dynamic.p_vaddr, sizeof (ElfW (Dyn)), &room);

  if (bytes == NULL
      || bytes != elf_file_at (image, image->dynamic.p_offset,
                               sizeof (ElfW (Dyn))))
    return elf_refuse (image, err, "its dynamic section is not in a segment");
  for (at = 0; room - at >= sizeof (ElfW (Dyn)); at += sizeof (ElfW (Dyn))) {
    ElfW (Dyn) entry;

    memcpy (&entry, bytes + at, sizeof entry);
    if (entry.d_tag == DT_NULL)
      return 0;
    if (at / sizeof entry >= ELF_MAX_DYNAMIC)
      break;
    if (take_entry (image, d, &entry, err) < 0)
      return -1;
  }
  return elf_refuse (image, err, "its dynamic section has no end");
}

static int
check_flags (const struct elf_image *image, const struct dynamic *d,
             struct error **err)
{
  const uint64_t flags = DF_ORIGIN | DF_SYMBOLIC | DF_BIND_NOW | DF_STATIC_TLS;
  const uint64_t flags_1 = DF_1_NOW | DF_1_NODELETE;

  if (d->value[SLOT_FLAGS] & DF_TEXTREL)
    return elf_refuse (image, err, "has text relocations");
  if (d->value[SLOT_FLAGS] & ~flags)
    return elf_refuse (image, err, "has dynamic flags that are not allowed "
                       "(0x%llx)", (unsigned long long) d->value[SLOT_FLAGS]);
  if (d->value[SLOT_FLAGS_1] & ~flags_1)
    return elf_refuse (image, err, "has dynamic flags that are not allowed "
                       "(FLAGS_1 0x%llx)",
                       (unsigned long long) d->value[SLOT_FLAGS_1]);
  return 0;
}

/* -- strings --------------------------------------------------------------- */

static int
find_strings (const struct elf_image *image, struct dynamic *d,
              struct error **err)
{
  const uint64_t size = d->value[SLOT_STRSZ];
  const unsigned char *bytes
    = elf_image_at (image, d->value[SLOT_STRTAB], size, NULL);

  if (size == 0 || bytes == NULL || bytes[size - 1] != '\0')
    return elf_refuse (image, err, "its string table is malformed");
  d->strings = (const char *) bytes;
  d->strings_size = size;
  return 0;
}

/* The table ends in NUL, so every string in it ends. */
static const char *
string_at (const struct dynamic *d, uint64_t offset)
{
  return offset < d->strings_size ? d->strings + offset : NULL;
}

static int
is_bare_soname (const char *s)
{
  size_t n;

  if (s == NULL || s[0] == '\0' || s[0] == '.')
    return 0;
  n = strspn (s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                 "0123456789._+-");
  return s[n] == '\0' && n <= 128;
}

static int
check_libraries (const struct elf_image *image, const struct dynamic *d,
                 char ***out, struct error **err)
{
  char **needed = calloc (d->n_needed + 1, sizeof *needed);
  size_t i;

  if (needed == NULL)
    return error_set (err, E_NO_MEMORY, 0, "%s", image->name);
  *out = needed;
  for (i = 0; i < d->n_needed; i++) {
    const char *name = string_at (d, d->needed[i]);

    if (!is_bare_soname (name))
      return elf_refuse (image, err,
                         "needs a library by something else than a bare name");
    needed[i] = strdup (name);
    if (needed[i] == NULL)
      return error_set (err, E_NO_MEMORY, 0, "%s", image->name);
    if (elf_check_needed (image, name, err) < 0)
      return -1;
  }
  if (d->there[SLOT_SONAME]
      && !is_bare_soname (string_at (d, d->value[SLOT_SONAME])))
    return elf_refuse (image, err, "its SONAME is not a bare name");
  return 0;
}

/* -- symbols --------------------------------------------------------------- */

static uint32_t
u32_at (const unsigned char *bytes, uint64_t index)
{
  uint32_t value;

  memcpy (&value, bytes + index * 4, sizeof value);
  return value;
}

/* DT_HASH says how many symbols there are. */
static int
count_by_hash (const struct elf_image *image, uint64_t address,
               uint64_t *count, struct error **err)
{
  uint64_t room = 0;
  const unsigned char *table = elf_image_at (image, address, 8, &room);
  uint64_t buckets, chains;

  if (table == NULL)
    return elf_refuse (image, err, "its symbol hash lies outside the file");
  buckets = u32_at (table, 0);
  chains = u32_at (table, 1);
  if (buckets == 0 || chains > ELF_MAX_SYMBOLS
      || (2 + buckets + chains) * 4 > room)
    return elf_refuse (image, err, "its symbol hash is malformed");
  if (*count < chains)
    *count = chains;
  return 0;
}

struct gnu_hash {
  uint32_t n_buckets, first;
  const unsigned char *buckets, *chains;
  uint64_t n_chains;            /* that the segment has room for */
};

static int
find_gnu_hash (const struct elf_image *image, uint64_t address,
               struct gnu_hash *hash, struct error **err)
{
  uint64_t room = 0, bloom, used;
  const unsigned char *table = elf_image_at (image, address, 16, &room);

  if (table == NULL)
    return elf_refuse (image, err, "its symbol hash lies outside the file");
  hash->n_buckets = u32_at (table, 0);
  hash->first = u32_at (table, 1);
  bloom = u32_at (table, 2);
  used = 16 + bloom * sizeof (ElfW (Addr)) + (uint64_t) hash->n_buckets * 4;
  if (hash->n_buckets == 0 || bloom == 0 || (bloom & (bloom - 1)) != 0
      || u32_at (table, 3) > 63 || used > room)
    return elf_refuse (image, err, "its symbol hash is malformed");
  hash->buckets = table + 16 + bloom * sizeof (ElfW (Addr));
  hash->chains = table + used;
  hash->n_chains = (room - used) / 4;
  return 0;
}

/* DT_GNU_HASH does not say it: the highest index that a chain reaches. */
static int
count_by_gnu_hash (const struct elf_image *image, uint64_t address,
                   uint64_t *count, struct error **err)
{
  struct gnu_hash hash = { 0 };
  uint64_t steps = 0, index;
  uint32_t i;

  if (find_gnu_hash (image, address, &hash, err) < 0)
    return -1;
  for (i = 0; i < hash.n_buckets; i++) {
    index = u32_at (hash.buckets, i);
    if (index == 0)
      continue;
    for (;; index++) {
      if (index < hash.first || index - hash.first >= hash.n_chains
          || ++steps > ELF_MAX_SYMBOLS)
        return elf_refuse (image, err, "its symbol hash is malformed");
      if (*count < index + 1)
        *count = index + 1;
      if (u32_at (hash.chains, index - hash.first) & 1)
        break;
    }
  }
  return 0;
}

static int
count_symbols (const struct elf_image *image, const struct dynamic *d,
               uint64_t *count, struct error **err)
{
  *count = 0;
  if (!d->there[SLOT_HASH] && !d->there[SLOT_GNU_HASH])
    return elf_refuse (image, err, "has no symbol hash");
  if (d->there[SLOT_HASH]
      && count_by_hash (image, d->value[SLOT_HASH], count, err) < 0)
    return -1;
  if (d->there[SLOT_GNU_HASH]
      && count_by_gnu_hash (image, d->value[SLOT_GNU_HASH], count, err) < 0)
    return -1;
  return 0;
}

static int
is_exported (const ElfW (Sym) *symbol)
{
  const unsigned binding = ELF64_ST_BIND (symbol->st_info);
  const unsigned visibility = ELF64_ST_VISIBILITY (symbol->st_other);

  return symbol->st_shndx != SHN_UNDEF && binding != STB_LOCAL
         && (visibility == STV_DEFAULT || visibility == STV_PROTECTED);
}

static int
check_entry (const struct elf_image *image, const ElfW (Sym) *symbol,
             const char *name, const char *entry, struct error **err)
{
  auto_free char *shown = NULL;
  const ElfW (Phdr) *segment;

  if (name == NULL || strcmp (name, entry) != 0) {
    shown = name ? text_escape (name, strnlen (name, 80)) : NULL;
    elf_refuse (image, err, "exports \"%s\": only %s may be exported",
                shown ? shown : "?", entry);
    error_hint (err, "compile with -fvisibility=hidden; C++ and coverage also "
                "need a version script: { global: %s; local: *; };", entry);
    return -1;
  }
  segment = elf_segment_of (image, symbol->st_value, 1);
  if (ELF64_ST_TYPE (symbol->st_info) != STT_FUNC || segment == NULL
      || !(segment->p_flags & PF_X)
      || elf_image_at (image, symbol->st_value, 1, NULL) == NULL)
    return elf_refuse (image, err, "%s is not a function", entry);
  return 0;
}

static int
check_symbols (const struct elf_image *image, const struct dynamic *d,
               const char *entry, struct error **err)
{
  const unsigned char *table;
  uint64_t count, i;
  unsigned exported = 0;
  ElfW (Sym) symbol;

  if (count_symbols (image, d, &count, err) < 0)
    return -1;
  table = elf_image_at (image, d->value[SLOT_SYMTAB], count * sizeof symbol,
                        NULL);
  if (!d->there[SLOT_SYMTAB] || table == NULL
      || d->value[SLOT_SYMENT] != sizeof symbol)
    return elf_refuse (image, err, "its symbol table is malformed");
  for (i = 1; i < count; i++) {
    memcpy (&symbol, table + i * sizeof symbol, sizeof symbol);
    if (!is_exported (&symbol))
      continue;
    if (check_entry (image, &symbol, string_at (d, symbol.st_name), entry, err)
        < 0)
      return -1;
    exported++;
  }
  if (exported != 1)
    return elf_refuse (image, err, "must export %s once, does so %u times",
                       entry, exported);
  return 0;
}

/* -- relocations ----------------------------------------------------------- */

/* What the linker would write to must be writable as it is mapped. */
static int
check_target (const struct elf_image *image, uint64_t address,
              struct error **err)
{
  const ElfW (Phdr) *segment
    = elf_segment_of (image, address, sizeof (ElfW (Addr)));

  if (segment == NULL)
    return elf_refuse (image, err, "a relocation points outside of it");
  if (!(segment->p_flags & PF_W))
    return elf_refuse (image, err, "has text relocations");
  return 0;
}

/* Entries of Rel and Rela begin alike. */
static int
check_table (const struct elf_image *image, uint64_t address, uint64_t size,
             size_t entry_size, struct error **err)
{
  const unsigned char *table = elf_image_at (image, address, size, NULL);
  ElfW (Rel) rel;
  uint64_t at;

  if (size == 0)
    return 0;
  if (table == NULL || size % entry_size != 0)
    return elf_refuse (image, err, "its relocations are malformed");
  for (at = 0; at < size; at += entry_size) {
    memcpy (&rel, table + at, sizeof rel);
#if __SIZEOF_POINTER__ == 8
    if (ELF64_R_TYPE (rel.r_info) == 0)
      continue;
#else
    if (ELF32_R_TYPE (rel.r_info) == 0)
      continue;
#endif
    if (check_target (image, rel.r_offset, err) < 0)
      return -1;
  }
  return 0;
}

/* Packed relative relocations: an even word is an address, an odd one a bitmap
 * of the words after it. */
static int
check_relr (const struct elf_image *image, uint64_t address, uint64_t size,
            struct error **err)
{
  const unsigned char *table = elf_image_at (image, address, size, NULL);
  const unsigned bits = sizeof (ElfW (Addr)) * 8 - 1;
  uint64_t at, where = 0;
  unsigned bit;

  if (size == 0)
    return 0;
  if (table == NULL || size % sizeof (ElfW (Addr)) != 0)
    return elf_refuse (image, err, "its relocations are malformed");
  for (at = 0; at < size; at += sizeof (ElfW (Addr))) {
    ElfW (Addr) word;

    memcpy (&word, table + at, sizeof word);
    if ((word & 1) == 0) {
      if (check_target (image, word, err) < 0)
        return -1;
      where = word + sizeof word;
      continue;
    }
    for (bit = 0; bit < bits; bit++) {
      if (((word >> (bit + 1)) & 1)
          && check_target (image, where + bit * sizeof word, err) < 0)
        return -1;
    }
    where += bits * sizeof word;
  }
  return 0;
}

static int
check_relocations (const struct elf_image *image, const struct dynamic *d,
                   struct error **err)
{
  const size_t plt_entry = d->value[SLOT_PLTREL] == DT_RELA
                             ? sizeof (ElfW (Rela)) : sizeof (ElfW (Rel));

  if ((d->there[SLOT_RELAENT]
       && d->value[SLOT_RELAENT] != sizeof (ElfW (Rela)))
      || (d->there[SLOT_RELENT]
          && d->value[SLOT_RELENT] != sizeof (ElfW (Rel)))
      || (d->there[SLOT_RELRENT]
          && d->value[SLOT_RELRENT] != sizeof (ElfW (Addr)))
      || (d->there[SLOT_PLTREL] && d->value[SLOT_PLTREL] != DT_RELA
          && d->value[SLOT_PLTREL] != DT_REL))
    return elf_refuse (image, err, "its relocations are malformed");
  if (check_table (image, d->value[SLOT_RELA], d->value[SLOT_RELASZ],
                   sizeof (ElfW (Rela)), err) < 0
      || check_table (image, d->value[SLOT_REL], d->value[SLOT_RELSZ],
                      sizeof (ElfW (Rel)), err) < 0
      || check_table (image, d->value[SLOT_JMPREL], d->value[SLOT_PLTRELSZ],
                      plt_entry, err) < 0)
    return -1;
  return check_relr (image, d->value[SLOT_RELR], d->value[SLOT_RELRSZ], err);
}

/* -- functions at load and unload ------------------------------------------ */

static int
check_code (const struct elf_image *image, const struct dynamic *d,
            enum slot slot, struct error **err)
{
  const ElfW (Phdr) *segment;

  if (!d->there[slot] || d->value[slot] == 0)
    return 0;
  segment = elf_segment_of (image, d->value[slot], 1);
  if (segment == NULL || !(segment->p_flags & PF_X))
    return elf_refuse (image, err,
                       "its init or fini function is not in its code");
  return 0;
}

static int
check_array (const struct elf_image *image, const struct dynamic *d,
             enum slot array, enum slot size, struct error **err)
{
  if (!d->there[array] && !d->there[size])
    return 0;
  if (d->value[size] % sizeof (ElfW (Addr)) != 0
      || elf_image_at (image, d->value[array], d->value[size], NULL) == NULL)
    return elf_refuse (image, err,
                       "its list of init or fini functions is malformed");
  return 0;
}

static int
check_functions (const struct elf_image *image, const struct dynamic *d,
                 struct error **err)
{
  if (check_code (image, d, SLOT_INIT, err) < 0
      || check_code (image, d, SLOT_FINI, err) < 0
      || check_array (image, d, SLOT_INIT_ARRAY, SLOT_INIT_ARRAYSZ, err) < 0)
    return -1;
  return check_array (image, d, SLOT_FINI_ARRAY, SLOT_FINI_ARRAYSZ, err);
}

int
elf_check_dynamic (const struct elf_image *image, const char *entry,
                   char ***needed, struct error **err)
{
  struct dynamic d;

  memset (&d, 0, sizeof d);
  if (read_entries (image, &d, err) < 0 || check_flags (image, &d, err) < 0
      || find_strings (image, &d, err) < 0
      || check_symbols (image, &d, entry, err) < 0
      || check_relocations (image, &d, err) < 0
      || check_functions (image, &d, err) < 0)
    return -1;
  return check_libraries (image, &d, needed, err);
}
