/* SPDX-License-Identifier: Apache-2.0 */
/* The ELF gate: modules of tests/modules, each with one thing wrong, and the
 * bytes of a good one changed here and there.  Had any code of them run, this
 * program would have been aborted by their constructor. */

#include <config.h>

#include "harness.h"

#include <fcntl.h>
#include <link.h>

#include <coffer/fd.h>

#include "contract/contract.h"
#include "provider/integrity.h"

static int
modules_dir (void)
{
  const char *build = getenv ("COFFER_BUILD");
  int dir = open (harness_path (build ? build : ".", "tests/modules"),
                  O_PATH | O_DIRECTORY | O_CLOEXEC);

  assert_true (dir >= 0);
  return dir;
}

static int
gate_module (const char *name, struct elf_facts **facts, struct error **err)
{
  coffer_autoclose int dir = modules_dir ();
  char hash[SHA256_HEX_SIZE];
  coffer_autoclose int fd = integrity_copy (dir, name, 0, 0, hash, err);

  if (fd < 0)
    return -1;
  return elf_gate (fd, name, facts, err);
}

static const struct {
  const char *module;
  int number;
  const char *message;
} bad_modules[] = {
  { "nonote.so", E_MODULE, "has no coffer note" },
  { "twonotes.so", E_MODULE, "has 2 coffer notes" },
  { "twosymbols.so", E_MODULE, "exports \"bad_extra\"" },
  { "datasymbol.so", E_MODULE, "exports \"bad_data\"" },
  { "major.so", E_CONTRACT_VERSION, "1." },
  { "minor.so", E_CONTRACT_VERSION, "0.77" },
  { "needs.so", E_CONTRACT_VERSION, "bits 0x80000000" },
  { "rpath.so", E_MODULE, "has an RPATH" },
  { "runpath.so", E_MODULE, "has a RUNPATH" },
  { "execstack.so", E_MODULE, "executable stack" },
  { "slash.so", E_MODULE, "something else than a bare name" },
  { "strange.so", E_MODULE, "library.so, which is in no system folder" },
  { "textrel.so", E_MODULE, "text relocations" },
  { "filter.so", E_MODULE, "is a filter" },
  { "program.so", E_MODULE, "a program, not a shared object" },
  { "library.so", E_MODULE, "exports \"strange\"" },
};

static void
each_bad_module_is_refused_for_its_own_fault (void **state)
{
  size_t i;

  (void) state;
  for (i = 0; i < sizeof bad_modules / sizeof bad_modules[0]; i++) {
    auto_error struct error *err = NULL;
    struct elf_facts *facts = NULL;

#if !defined __x86_64__
    if (strcmp (bad_modules[i].module, "textrel.so") == 0)
      continue;
#endif
    if (gate_module (bad_modules[i].module, &facts, &err) == 0) {
      print_error ("%s was accepted\n", bad_modules[i].module);
      fail ();
    }
    if (err->number != bad_modules[i].number
        || strstr (err->message, bad_modules[i].message) == NULL) {
      print_error ("%s: E%d %s\n", bad_modules[i].module, err->number,
                   err->message);
      fail ();
    }
    assert_null (facts);
  }
}

static void
a_good_module_passes_and_its_note_is_told (void **state)
{
  auto_elf_facts struct elf_facts *facts = NULL, *aborting = NULL;
  auto_error struct error *err = NULL;

  (void) state;
  assert_int_equal (gate_module ("good.so", &facts, &err), 0);
  assert_string_equal (facts->note.name, "bad");
  assert_int_equal (facts->note.contract_major, COFFER_CONTRACT_MAJOR);
  assert_int_equal (facts->note.contract_minor, COFFER_CONTRACT_MINOR);
  assert_int_equal (facts->note.threads, COFFER_THREADS_SERIAL);
  assert_non_null (facts->needed);
  assert_int_equal (gate_module ("abort.so", &aborting, &err), 0);
  assert_string_equal (aborting->needed[0], "libc.so.6");
  assert_null (aborting->needed[1]);
}

/* -- the bytes of the good module, changed --------------------------------- */

struct bytes {
  unsigned char *p;
  size_t size;
};

static void
bytes_free (struct bytes *b)
{
  free (b->p);
}
#define auto_bytes __attribute__ ((cleanup (bytes_free)))

static struct bytes
good_bytes (const char *name)
{
  coffer_autoclose int dir = modules_dir ();
  coffer_autoclose int fd = openat (dir, name, O_RDONLY | O_CLOEXEC);
  struct bytes b = { NULL, 0 };
  char *p = NULL;

  assert_true (fd >= 0);
  assert_int_equal (coffer_read_whole (fd, 16 << 20, &p, &b.size), 0);
  b.p = (unsigned char *) p;
  return b;
}

static int
gate_bytes (const struct bytes *b, struct error **err)
{
  auto_elf_facts struct elf_facts *facts = NULL;

  return elf_gate_bytes (b->p, b->size, "module", contract_builtin (), &facts,
                         err);
}

static void
refused (const struct bytes *b, const char *why)
{
  auto_error struct error *err = NULL;

  assert_int_equal (gate_bytes (b, &err), -1);
  if (strstr (err->message, why) == NULL) {
    print_error ("got: %s\nwant: %s\n", err->message, why);
    fail ();
  }
}

static ElfW (Ehdr) *
header (struct bytes *b)
{
  return (void *) b->p;
}

static ElfW (Phdr) *
segment (struct bytes *b, uint32_t type)
{
  ElfW (Phdr) *p = (void *) (b->p + header (b)->e_phoff);
  unsigned i;

  for (i = 0; i < header (b)->e_phnum; i++) {
    if (p[i].p_type == type)
      return &p[i];
  }
  fail ();
  return NULL;
}

static ElfW (Dyn) *
dynamic (struct bytes *b, ElfW (Sxword) tag)
{
  ElfW (Dyn) *d = (void *) (b->p + segment (b, PT_DYNAMIC)->p_offset);

  for (; d->d_tag != DT_NULL; d++) {
    if (d->d_tag == tag)
      return d;
  }
  return NULL;
}

/* Linkers write one or both. */
static void
drop_hashes (struct bytes *b)
{
  ElfW (Dyn) *entry;

  if ((entry = dynamic (b, DT_GNU_HASH)))
    entry->d_tag = DT_CHECKSUM;
  if ((entry = dynamic (b, DT_HASH)))
    entry->d_tag = DT_CHECKSUM;
}

#define CHANGED(statement, why)                                               \
  do {                                                                        \
    auto_bytes struct bytes b = good_bytes ("abort.so");                      \
    statement;                                                                \
    refused (&b, why);                                                        \
  } while (0)

static void
headers_of_another_kind_are_refused (void **state)
{
  (void) state;
  CHANGED (b.p[0] = 'X', "not an ELF file");
  CHANGED (b.p[EI_CLASS] ^= 3, "-bit file");
  CHANGED (b.p[EI_CLASS] = 7, "-bit file");
  CHANGED (b.p[EI_DATA] ^= 3, "byte order");
  CHANGED (b.p[EI_OSABI] = 9, "ELF version or system");
  CHANGED (header (&b)->e_machine = EM_SPARC, "another machine");
  CHANGED (header (&b)->e_type = ET_REL, "not a shared object");
  CHANGED (header (&b)->e_type = ET_EXEC, "not a shared object");
  CHANGED (header (&b)->e_phentsize++, "unusual program headers");
  CHANGED (header (&b)->e_phnum = 0, "unusual program headers");
  CHANGED (header (&b)->e_phnum = 0xffff, "unusual program headers");
  CHANGED (header (&b)->e_phoff = ~(ElfW (Off)) 0, "outside the file");
  CHANGED (header (&b)->e_phoff = b.size - 1, "outside the file");
}

static void
segments_that_the_linker_would_see_otherwise_are_refused (void **state)
{
  (void) state;
  CHANGED (segment (&b, PT_LOAD)->p_filesz = ~(ElfW (Xword)) 0,
           "lies outside the file");
  CHANGED (segment (&b, PT_LOAD)->p_offset = b.size + 4096,
           "lies outside the file");
  CHANGED (segment (&b, PT_LOAD)->p_vaddr += 1, "not aligned");
  CHANGED (segment (&b, PT_LOAD)->p_flags |= PF_W | PF_X,
           "writable and executable");
  CHANGED (segment (&b, PT_LOAD)->p_memsz = 1 << 20, "overlap");
  CHANGED (segment (&b, PT_LOAD)->p_vaddr = ~(ElfW (Addr)) 0xfff,
           "lies outside the file");
  CHANGED (segment (&b, PT_GNU_STACK)->p_type = PT_NULL,
           "does not say that its stack");
  CHANGED (segment (&b, PT_DYNAMIC)->p_type = PT_NULL, "dynamic section");
  CHANGED (segment (&b, PT_DYNAMIC)->p_offset -= sizeof (ElfW (Dyn)),
           "not in a segment");
  CHANGED (segment (&b, PT_DYNAMIC)->p_vaddr = 0x7ffffff0,
           "not in a segment");
  CHANGED (segment (&b, PT_NOTE)->p_filesz = ~(ElfW (Xword)) 0,
           "a note lies outside the file");
}

static void
dynamic_entries_that_lead_elsewhere_are_refused (void **state)
{
  (void) state;
  CHANGED (dynamic (&b, DT_FINI)->d_tag = DT_AUDIT, "audit");
  CHANGED (dynamic (&b, DT_FINI)->d_tag = DT_DEPAUDIT, "audit");
  CHANGED (dynamic (&b, DT_FINI)->d_tag = DT_CONFIG, "configuration");
  CHANGED (dynamic (&b, DT_FINI)->d_tag = DT_FILTER, "is a filter");
  CHANGED (dynamic (&b, DT_FINI)->d_tag = DT_PREINIT_ARRAY, "before it is");
  CHANGED (dynamic (&b, DT_FINI)->d_tag = DT_INIT, "twice");
  CHANGED (dynamic (&b, DT_INIT)->d_un.d_ptr
             = dynamic (&b, DT_INIT_ARRAY)->d_un.d_ptr, "not in its code");
  CHANGED (dynamic (&b, DT_INIT_ARRAYSZ)->d_un.d_val = 1 << 30, "malformed");
  CHANGED (dynamic (&b, DT_STRSZ)->d_un.d_val = ~(ElfW (Xword)) 0,
           "string table");
  CHANGED (dynamic (&b, DT_STRSZ)->d_un.d_val = 0, "string table");
  CHANGED (dynamic (&b, DT_NEEDED)->d_un.d_val = 1 << 30, "bare name");
  CHANGED (dynamic (&b, DT_SYMTAB)->d_un.d_ptr = ~(ElfW (Addr)) 0,
           "symbol table");
  CHANGED (dynamic (&b, DT_SYMENT)->d_un.d_val = 1, "symbol table");
  CHANGED (drop_hashes (&b), "no symbol hash");
  CHANGED (dynamic (&b, DT_GNU_HASH)->d_un.d_ptr
             = dynamic (&b, DT_STRTAB)->d_un.d_ptr, "symbol");
  CHANGED (dynamic (&b, DT_RELA)->d_un.d_ptr = 1 << 30, "relocations");
  CHANGED (dynamic (&b, DT_RELASZ)->d_un.d_val = 25, "relocations");
  CHANGED (dynamic (&b, DT_FLAGS_1)->d_un.d_val |= DF_1_INTERPOSE, "flags");
  CHANGED (dynamic (&b, DT_FLAGS_1)->d_un.d_val |= DF_1_GLOBAL, "flags");
}

/* A relocation of the code, without the linker's own confession. */
static void
hidden_text_relocations_are_found (void **state)
{
  auto_bytes struct bytes b = good_bytes ("abort.so");
  ElfW (Dyn) *rela = dynamic (&b, DT_RELA);
  ElfW (Rela) *first;

  (void) state;
  if (rela == NULL)
    skip_missing ("a machine whose relocations have addends");
  first = (void *) (b.p + rela->d_un.d_ptr);
  first->r_offset = header (&b)->e_phoff;
  refused (&b, "text relocations");
  first->r_offset = ~(ElfW (Addr)) 0;
  refused (&b, "points outside");
}

static void
a_file_cut_off_anywhere_is_refused (void **state)
{
  auto_bytes struct bytes b = good_bytes ("good.so");
  ElfW (Phdr) *p = (void *) (b.p + header (&b)->e_phoff);
  size_t end = 0, size;
  unsigned i;

  (void) state;
  for (i = 0; i < header (&b)->e_phnum; i++) {
    if (p[i].p_type == PT_LOAD && p[i].p_offset + p[i].p_filesz > end)
      end = p[i].p_offset + p[i].p_filesz;
  }
  for (size = 0; size < end; size += size < 1024 ? 1 : 7) {
    struct bytes cut = { malloc (size ? size : 1), size };
    auto_error struct error *err = NULL;
    int r;

    memcpy (cut.p, b.p, size);
    r = gate_bytes (&cut, &err);
    free (cut.p);
    assert_int_equal (r, -1);
    assert_non_null (err);
  }
}

/* Whatever a byte is changed to, the gate answers, and one answer only. */
static void
no_single_byte_makes_it_stumble (void **state)
{
  static const unsigned char values[] = { 0x00, 0x7f, 0x80, 0xff };
  auto_bytes struct bytes b = good_bytes ("good.so");
  size_t i, v;

  (void) state;
  for (i = 0; i < b.size; i++) {
    const unsigned char keep = b.p[i];

    for (v = 0; v < sizeof values; v++) {
      auto_error struct error *err = NULL;
      int r;

      b.p[i] = values[v];
      r = gate_bytes (&b, &err);
      assert_int_equal (r < 0, err != NULL);
    }
    b.p[i] = keep;
  }
  assert_int_equal (gate_bytes (&b, NULL), 0);
}

static void
only_sealed_memory_is_judged (void **state)
{
  coffer_autoclose int dir = modules_dir ();
  coffer_autoclose int fd = openat (dir, "good.so", O_RDONLY | O_CLOEXEC);
  auto_error struct error *err = NULL;
  struct elf_facts *facts = NULL;

  (void) state;
  assert_int_equal (elf_gate (fd, "good.so", &facts, &err), -1);
  assert_int_equal (err->number, E_INTERNAL);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (each_bad_module_is_refused_for_its_own_fault),
    cmocka_unit_test (a_good_module_passes_and_its_note_is_told),
    cmocka_unit_test (headers_of_another_kind_are_refused),
    cmocka_unit_test (segments_that_the_linker_would_see_otherwise_are_refused),
    cmocka_unit_test (dynamic_entries_that_lead_elsewhere_are_refused),
    cmocka_unit_test (hidden_text_relocations_are_found),
    cmocka_unit_test (a_file_cut_off_anywhere_is_refused),
    cmocka_unit_test (no_single_byte_makes_it_stumble),
    cmocka_unit_test (only_sealed_memory_is_judged),
  };

  return cmocka_run_group_tests_name ("elf", tests, NULL, NULL);
}
