/* SPDX-License-Identifier: Apache-2.0 */
/* One module with one thing wrong with it, chosen by a macro.  Whatever it is,
 * the module also has a constructor that ends the process and leaves a mark:
 * a test sees at once when code ran before the gate had judged it. */

#include <fcntl.h>
#include <stdlib.h>

#include <coffer/provider.h>

#ifdef BAD_MAJOR
#undef COFFER_CONTRACT_MAJOR
#define COFFER_CONTRACT_MAJOR 1
#endif
#ifdef BAD_MINOR
#undef COFFER_CONTRACT_MINOR
#define COFFER_CONTRACT_MINOR 77
#endif
#ifndef NEEDS
#define NEEDS 0
#endif

static int32_t
bad_probe (struct coffer_call *call, void *self,
           const struct coffer_probe_opts *opts)
{
  (void) call;
  (void) self;
  (void) opts;
  return COFFER_OK;
}

static const struct coffer_operations operations = {
  .size = sizeof operations, .probe = bad_probe
};

#ifdef NO_NOTE
__attribute__ ((visibility ("default"))) const struct coffer_operations *
coffer_provider_0 (void);
const struct coffer_operations *
coffer_provider_0 (void)
{
  return &operations;
}
#else
COFFER_PROVIDER (bad, COFFER_THREADS_SERIAL, NEEDS, operations)
#endif

#ifndef QUIET
__attribute__ ((constructor)) static void
run_too_early (void)
{
  const char *mark = getenv ("COFFER_TEST_MARK");

  if (mark)
    open (mark, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  abort ();
}
#endif

#ifdef TWO_NOTES
static const struct {
  uint32_t namesz, descsz, type;
  char owner[8];
  struct coffer_note note;
} second_note
  __attribute__ ((section (".note.coffer2"), used, aligned (4)
                  COFFER_UNPADDED_)) = {
    sizeof COFFER_NOTE_OWNER, sizeof (struct coffer_note), COFFER_NOTE_TYPE,
    COFFER_NOTE_OWNER,
    { COFFER_CONTRACT_MAJOR, COFFER_CONTRACT_MINOR, COFFER_CONTRACT_MINOR,
      COFFER_THREADS_SERIAL, 0, "bad" }
  };
#endif

#ifdef TWO_SYMBOLS
__attribute__ ((visibility ("default"))) int32_t bad_extra (void);
int32_t
bad_extra (void)
{
  return 1;
}
#endif

#ifdef DATA_SYMBOL
__attribute__ ((visibility ("default"))) extern const char *const bad_data;
const char *const bad_data = "x";
#endif

#ifdef STRANGE_LIBRARY
int32_t strange (void);
int32_t (*const bad_use) (void) = strange;
#endif

#ifdef LIBRARY
__attribute__ ((visibility ("default"))) int32_t strange (void);
int32_t
strange (void)
{
  return 7;
}
#endif

#if defined TEXT_RELOCATION && defined __x86_64__
/* An absolute address among the code. */
__asm__ (".pushsection .text\n.quad operations_of_bad\n.popsection\n"
         ".local operations_of_bad\n.set operations_of_bad, bad_probe\n");
#endif

#ifdef PROGRAM
int
main (void)
{
  return 0;
}
#endif
