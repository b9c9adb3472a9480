/* SPDX-License-Identifier: Apache-2.0 */
/* The ELF gate: what a module is, read from its bytes before any of its code
 * can run.  Constructors run inside dlopen, so whatever must be known first is
 * read here, and read the way the dynamic linker will: by program headers and
 * addresses.  Section headers are not looked at; strip may drop them. */

#include <config.h>

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "base/yaml.h"
#include "contract/contract.h"
#include "provider/elf.h"

#if __SIZEOF_POINTER__ == 8
#define NATIVE_CLASS ELFCLASS64
#else
#define NATIVE_CLASS ELFCLASS32
#endif

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define NATIVE_DATA ELFDATA2LSB
#else
#define NATIVE_DATA ELFDATA2MSB
#endif

#if defined __x86_64__
#define NATIVE_MACHINE EM_X86_64
#elif defined __aarch64__
#define NATIVE_MACHINE EM_AARCH64
#elif defined __i386__
#define NATIVE_MACHINE EM_386
#elif defined __arm__
#define NATIVE_MACHINE EM_ARM
#elif defined __riscv
#define NATIVE_MACHINE EM_RISCV
#elif defined __powerpc64__
#define NATIVE_MACHINE EM_PPC64
#elif defined __s390x__
#define NATIVE_MACHINE EM_S390
#elif defined __loongarch__
#define NATIVE_MACHINE 258
#else
#error "this machine's ELF number is not known here"
#endif

#define MAX_NOTES (1 << 20)     /* bytes of one note segment */

int
elf_refuse (const struct elf_image *image, struct error **err,
            const char *fmt, ...)
{
  auto_free char *what = NULL;
  va_list ap;
  int r;

  va_start (ap, fmt);
  r = vasprintf (&what, fmt, ap);
  va_end (ap);
  if (r < 0) {
    what = NULL;
    return error_set (err, E_NO_MEMORY, 0, "%s", image->name);
  }
  return error_set (err, E_MODULE, 0, "%s: %s", image->name, what);
}

const unsigned char *
elf_file_at (const struct elf_image *image, uint64_t offset, uint64_t size)
{
  if (offset > image->size || size > image->size - offset)
    return NULL;
  return image->bytes + offset;
}

const unsigned char *
elf_image_at (const struct elf_image *image, uint64_t address, uint64_t size,
              uint64_t *room)
{
  size_t i;

  for (i = 0; i < image->n_loads; i++) {
    const ElfW (Phdr) *load = &image->loads[i];
    uint64_t within;

    if (address < load->p_vaddr)
      continue;
    within = address - load->p_vaddr;
    if (within > load->p_filesz || size > load->p_filesz - within)
      continue;
    if (room)
      *room = load->p_filesz - within;
    return image->bytes + load->p_offset + within;
  }
  return NULL;
}

const ElfW (Phdr) *
elf_segment_of (const struct elf_image *image, uint64_t address, uint64_t size)
{
  size_t i;

  for (i = 0; i < image->n_loads; i++) {
    const ElfW (Phdr) *load = &image->loads[i];

    if (address >= load->p_vaddr && address - load->p_vaddr <= load->p_memsz
        && size <= load->p_memsz - (address - load->p_vaddr))
      return load;
  }
  return NULL;
}

/* -- header ---------------------------------------------------------------- */

static int
check_ident (const struct elf_image *image, const unsigned char *ident,
             struct error **err)
{
  if (memcmp (ident, ELFMAG, SELFMAG) != 0)
    return elf_refuse (image, err, "not an ELF file");
  if (ident[EI_CLASS] != NATIVE_CLASS)
    return elf_refuse (image, err, "a %s-bit file on a %d-bit host",
                       ident[EI_CLASS] == ELFCLASS32 ? "32"
                       : ident[EI_CLASS] == ELFCLASS64 ? "64" : "?",
                       __SIZEOF_POINTER__ * 8);
  if (ident[EI_DATA] != NATIVE_DATA)
    return elf_refuse (image, err, "of another byte order than this host");
  if (ident[EI_VERSION] != EV_CURRENT
      || (ident[EI_OSABI] != ELFOSABI_SYSV && ident[EI_OSABI] != ELFOSABI_GNU))
    return elf_refuse (image, err,
                       "of an ELF version or system not known here");
  return 0;
}

static int
read_header (const struct elf_image *image, ElfW (Ehdr) *header,
             struct error **err)
{
  const unsigned char *bytes = elf_file_at (image, 0, sizeof *header);

  if (bytes == NULL)
    return elf_refuse (image, err, "too short to be an ELF file");
  memcpy (header, bytes, sizeof *header);
  if (check_ident (image, header->e_ident, err) < 0)
    return -1;
  if (header->e_machine != NATIVE_MACHINE)
    return elf_refuse (image, err, "built for another machine (ELF machine %u)",
                       header->e_machine);
  if (header->e_type != ET_DYN || header->e_version != EV_CURRENT)
    return elf_refuse (image, err, "not a shared object");
  if (header->e_phentsize != sizeof (ElfW (Phdr)) || header->e_phnum == 0
      || header->e_phnum > ELF_MAX_SEGMENTS)
    return elf_refuse (image, err, "unusual program headers");
  return 0;
}

/* -- segments -------------------------------------------------------------- */

/* Segments lie apart by whole pages, or a later one would replace bytes of an
 * earlier one when both are mapped, and what was checked would not be what is
 * there. */
static int
add_load (struct elf_image *image, const ElfW (Phdr) *load, struct error **err)
{
  const ElfW (Phdr) *last
    = image->n_loads ? &image->loads[image->n_loads - 1] : NULL;
  const uint64_t limit = UINT64_C (1) << (sizeof (ElfW (Addr)) * 8 - 2);
  const uint64_t mask = image->page - 1;

  if (load->p_filesz > load->p_memsz
      || elf_file_at (image, load->p_offset, load->p_filesz) == NULL
      || load->p_memsz > limit || load->p_vaddr > limit)
    return elf_refuse (image, err, "a segment lies outside the file");
  if (((load->p_vaddr ^ load->p_offset) & mask) != 0
      || (load->p_align & (load->p_align - 1)) != 0)
    return elf_refuse (image, err, "a segment is not aligned");
  if ((load->p_flags & PF_W) && (load->p_flags & PF_X))
    return elf_refuse (image, err, "a segment is writable and executable");
  if (last
      && (load->p_vaddr & ~mask)
           < ((last->p_vaddr + last->p_memsz + mask) & ~mask))
    return elf_refuse (image, err, "segments overlap or are out of order");
  image->loads[image->n_loads++] = *load;
  return 0;
}

struct seen {
  unsigned dynamic, stack;
};

static int
take_segment (struct elf_image *image, const ElfW (Phdr) *segment,
              struct seen *seen, struct error **err)
{
  switch (segment->p_type) {
  case PT_LOAD:
    return add_load (image, segment, err);
  case PT_DYNAMIC:
    image->dynamic = *segment;
    seen->dynamic++;
    return 0;
  case PT_INTERP:
    return elf_refuse (image, err, "a program, not a shared object");
  case PT_GNU_STACK:
    seen->stack++;
    if (segment->p_flags & PF_X)
      return elf_refuse (image, err, "wants an executable stack");
    return 0;
  default:
    return 0;
  }
}

static int
read_segments (struct elf_image *image, const ElfW (Ehdr) *header,
               ElfW (Phdr) *segments, struct error **err)
{
  const size_t size = header->e_phnum * sizeof *segments;
  const unsigned char *bytes = elf_file_at (image, header->e_phoff, size);
  struct seen seen = { 0, 0 };
  size_t i;

  if (bytes == NULL)
    return elf_refuse (image, err, "program headers lie outside the file");
  memcpy (segments, bytes, size);
  for (i = 0; i < header->e_phnum; i++) {
    if (take_segment (image, &segments[i], &seen, err) < 0)
      return -1;
  }
  if (seen.dynamic != 1)
    return elf_refuse (image, err, "must have one dynamic section, has %u",
                       seen.dynamic);
  if (seen.stack != 1)
    return elf_refuse (image, err,
                       "does not say that its stack is not executable");
  return 0;
}

/* -- the note -------------------------------------------------------------- */

static uint64_t
padded (uint64_t size, uint64_t align)
{
  return (size + align - 1) & ~(align - 1);
}

/* Notes of one segment: counts ours and keeps the last. */
static int
scan_notes (const struct elf_image *image, const ElfW (Phdr) *segment,
            struct coffer_note *note, unsigned *found, struct error **err)
{
  const uint64_t align = segment->p_align == 8 ? 8 : 4;
  uint64_t at = 0;
  const unsigned char *bytes
    = elf_file_at (image, segment->p_offset, segment->p_filesz);

  if (bytes == NULL || segment->p_filesz > MAX_NOTES)
    return elf_refuse (image, err, "a note lies outside the file or is huge");
  while (segment->p_filesz - at >= sizeof (ElfW (Nhdr))) {
    ElfW (Nhdr) head;
    uint64_t desc, end;

    memcpy (&head, bytes + at, sizeof head);
    desc = padded (at + sizeof head + head.n_namesz, align);
    end = desc + head.n_descsz;
    if (end > segment->p_filesz)
      return elf_refuse (image, err, "a note is cut off");
    if (head.n_type == COFFER_NOTE_TYPE
        && head.n_namesz == sizeof COFFER_NOTE_OWNER
        && memcmp (bytes + at + sizeof head, COFFER_NOTE_OWNER,
                   sizeof COFFER_NOTE_OWNER) == 0) {
      if (head.n_descsz < sizeof *note)
        return elf_refuse (image, err, "its coffer note is too short");
      memcpy (note, bytes + desc, sizeof *note);
      ++*found;
    }
    at = padded (end, align);
    if (at > segment->p_filesz)
      break;
  }
  return 0;
}

static int
check_note (const struct elf_image *image, const struct coffer_note *note,
            struct error **err)
{
  size_t i;

  if (memchr (note->name, 0, sizeof note->name) == NULL
      || note->name[0] < 'a' || note->name[0] > 'z')
    return elf_refuse (image, err, "the name in its coffer note is malformed");
  for (i = 0; note->name[i]; i++) {
    if (!strchr ("abcdefghijklmnopqrstuvwxyz0123456789_", note->name[i]))
      return elf_refuse (image, err,
                         "the name in its coffer note is malformed");
  }
  if (note->threads > COFFER_THREADS_PARALLEL)
    return elf_refuse (image, err,
                       "the thread model in its coffer note is not known");
  return 0;
}

static int
read_note (const struct elf_image *image, const ElfW (Phdr) *segments,
           size_t count, struct coffer_note *note, struct error **err)
{
  unsigned found = 0;
  size_t i;

  for (i = 0; i < count; i++) {
    if (segments[i].p_type == PT_NOTE
        && scan_notes (image, &segments[i], note, &found, err) < 0)
      return -1;
  }
  if (found == 0)
    return elf_refuse (image, err,
                       "has no coffer note: not a provider module");
  if (found > 1)
    return elf_refuse (image, err, "has %u coffer notes instead of one", found);
  return check_note (image, note, err);
}

static int
check_version (const struct elf_image *image, const struct contract *contract,
               const struct coffer_note *note, struct error **err)
{
  if (contract_check_version (contract, note->contract_major,
                              note->contract_minor, note->least_minor, err)
      < 0)
    return error_wrap (err, "%s", image->name);
  if (note->needs != 0)
    return error_set (err, E_CONTRACT_VERSION, 0,
                      "%s: needs features that this host does not have "
                      "(bits 0x%x)", image->name, note->needs);
  return 0;
}

/* -- the gate -------------------------------------------------------------- */

static int
gate (struct elf_image *image, const struct contract *contract,
      struct elf_facts *facts, struct error **err)
{
  ElfW (Phdr) segments[ELF_MAX_SEGMENTS];
  ElfW (Ehdr) header;
  char entry[32];

  if (read_header (image, &header, err) < 0
      || read_segments (image, &header, segments, err) < 0
      || read_note (image, segments, header.e_phnum, &facts->note, err) < 0
      || check_version (image, contract, &facts->note, err) < 0)
    return -1;
  snprintf (entry, sizeof entry, "coffer_provider_%u", contract->major);
  return elf_check_dynamic (image, entry, &facts->needed, err);
}

int
elf_gate_bytes (const void *bytes, size_t size, const char *shown_name,
                const struct contract *contract, struct elf_facts **out,
                struct error **err)
{
  struct elf_image image = { .name = shown_name, .bytes = bytes,
                             .size = size,
                             .page = (size_t) sysconf (_SC_PAGESIZE) };
  auto_elf_facts struct elf_facts *facts = calloc (1, sizeof *facts);

  if (facts == NULL)
    return error_set (err, E_NO_MEMORY, 0, "%s", shown_name);
  if (gate (&image, contract, facts, err) < 0)
    return -1;
  *out = steal (facts);
  return 0;
}

int
elf_gate (int fd, const char *shown_name, struct elf_facts **out,
          struct error **err)
{
  return elf_gate_for (fd, shown_name, contract_builtin (), out, err);
}

int
elf_gate_for (int fd, const char *shown_name, const struct contract *contract,
              struct elf_facts **out, struct error **err)
{
  const int need = F_SEAL_WRITE | F_SEAL_SHRINK;
  struct stat st;
  void *bytes;
  int r, seals = fcntl (fd, F_GET_SEALS);

  /* What may shrink under a mapping ends the process that reads it. */
  if (seals < 0 || (seals & need) != need)
    return error_set (err, E_INTERNAL, 0, "%s is not a sealed memory file",
                      shown_name);
  if (fstat (fd, &st) < 0)
    return error_set (err, E_IO, errno, "stat %s", shown_name);
  if (st.st_size <= 0 || st.st_size > INTEGRITY_MAX_BYTES)
    return error_set (err, E_MODULE, 0, "%s: not an ELF file", shown_name);
  bytes = mmap (NULL, (size_t) st.st_size, PROT_READ, MAP_SHARED, fd, 0);
  if (bytes == MAP_FAILED)
    return error_set (err, E_IO, errno, "map %s", shown_name);
  r = elf_gate_bytes (bytes, (size_t) st.st_size, shown_name,
                      contract, out, err);
  munmap (bytes, (size_t) st.st_size);
  return r;
}

void
elf_facts_free (struct elf_facts *facts)
{
  if (facts == NULL)
    return;
  yaml_free_texts (facts->needed);
  free (facts);
}
