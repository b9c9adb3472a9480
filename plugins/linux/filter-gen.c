/* SPDX-License-Identifier: Apache-2.0 */
/* Runs while coffer is built: turns filter-table.h into the two seccomp
 * programs, as a C header on standard output.
 *
 *   filter-gen ARCH        ARCH as libseccomp names it: x86_64, aarch64
 *
 * libseccomp knows one answer for all that a program does not name, and has no
 * "otherwise" for one call.  So it compiles several programs of each profile,
 * one for each such answer, and filter-pack.c makes one of them: each call is
 * answered by the program that its row asks for. */

#include <errno.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <linux/filter.h>

#include "filter-pack.h"
#include "filter-table.h"

static uint32_t arch;

static void
fail (const char *what, int error)
{
  fprintf (stderr, "filter-gen: %s: %s\n", what, strerror (error));
  exit (1);
}

/* The number of a call on this machine, which libseccomp translates to the
 * target's; negative: it has none. */
static int
call_number (const char *name, int number)
{
  int found = seccomp_syscall_resolve_name (name);

  if (found == __NR_SCMP_ERROR)
    found = number;
  if (found == __NR_SCMP_ERROR)
    fail (name, ENOSYS);
  return found;
}

static scmp_filter_ctx
filter_new (uint32_t otherwise)
{
  scmp_filter_ctx filter = seccomp_init (otherwise);
  int r;

  if (filter == NULL)
    fail ("seccomp_init", ENOMEM);
  if (seccomp_arch_native () != arch) {
    r = seccomp_arch_remove (filter, SCMP_ARCH_NATIVE);
    if (r == 0)
      r = seccomp_arch_add (filter, arch);
    if (r < 0)
      fail ("architecture", -r);
  }
  r = seccomp_attr_set (filter, SCMP_FLTATR_ACT_BADARCH,
                        SCMP_ACT_KILL_PROCESS);
  if (r == 0)
    r = seccomp_attr_set (filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
  if (r < 0)
    fail ("attributes", -r);
  return filter;
}

static void
rule (scmp_filter_ctx filter, const char *name, int number, uint32_t action,
      unsigned n, const struct scmp_arg_cmp *args)
{
  int r;

  if (number < 0)
    return;
  r = seccomp_rule_add_exact_array (filter, action, number, n, args);
  /* For another architecture a call may be missing there, or so young that
   * libseccomp cannot translate it.  Without its rows it is ENOSYS. */
  if ((r == -EDOM || r == -EFAULT) && arch != seccomp_arch_native ())
    return;
  if (r < 0)
    fail (name, -r);
}

static void
compare_add (struct scmp_arg_cmp *args, unsigned *n, int arg, uint64_t mask,
             uint64_t value)
{
  if (arg < 0)
    return;
  args[*n] = mask ? SCMP_CMP64 ((unsigned) arg, SCMP_CMP_MASKED_EQ, mask, value)
                  : SCMP_CMP64 ((unsigned) arg, SCMP_CMP_EQ, value);
  (*n)++;
}

/* ---- the programs of a profile ------------------------------------------ */

struct row {
  const char *name;
  char action[2];               /* of general, of strict */
  int number;                   /* as libseccomp counts here; see call_number */
  long target;                  /* as the target counts; -1: it has none */
};

static struct row rows[] = {
#define X(call, general, strict, number)                                      \
  { #call, { FILTER_##general, FILTER_##strict }, number, -1 },
  FILTER_CALLS (X)
#undef X
};

#define ROWS (sizeof rows / sizeof rows[0])

static struct row *
row_find (const char *name)
{
  size_t i;

  for (i = 0; i < ROWS; i++)
    if (strcmp (rows[i].name, name) == 0)
      return &rows[i];
  fail (name, ENOENT);
  return NULL;
}

static void
rows_resolve (void)
{
  size_t i;
  int found;

  for (i = 0; i < ROWS; i++) {
    found = seccomp_syscall_resolve_name_arch (arch, rows[i].name);
    rows[i].target = found == __NR_SCMP_ERROR ? rows[i].number : found;
    rows[i].number = call_number (rows[i].name, rows[i].number);
  }
}

struct program {
  struct sock_filter code[BPF_MAXINSNS];
  size_t n;
};

/* What libseccomp compiled. */
static void
program_take (struct program *program, scmp_filter_ctx filter)
{
  int fd = memfd_create ("filter", MFD_CLOEXEC), r;
  ssize_t size;

  if (fd < 0)
    fail ("memfd_create", errno);
  r = seccomp_export_bpf (filter, fd);
  if (r < 0)
    fail ("seccomp_export_bpf", -r);
  size = pread (fd, program->code, sizeof program->code, 0);
  if (size <= 0 || (size_t) size % sizeof program->code[0] != 0)
    fail ("program", errno ? errno : EINVAL);
  close (fd);
  seccomp_release (filter);
  program->n = (size_t) size / sizeof program->code[0];
}

/* The rows that say without arguments what is answered. */
static void
plain_compile (struct program *program, int strict)
{
  scmp_filter_ctx filter = filter_new (SCMP_ACT_ERRNO (ENOSYS));
  size_t i;

  for (i = 0; i < ROWS; i++)
    switch (rows[i].action[strict]) {
    case 'A':
      rule (filter, rows[i].name, rows[i].number, SCMP_ACT_ALLOW, 0, NULL);
      break;
    case 'E':
      rule (filter, rows[i].name, rows[i].number, SCMP_ACT_ERRNO (EPERM), 0,
            NULL);
      break;
    case 'K':
      rule (filter, rows[i].name, rows[i].number, SCMP_ACT_KILL_PROCESS, 0,
            NULL);
      break;
    default:                    /* N is the default, C and F come below */
      break;
    }
  program_take (program, filter);
}

struct comparison {
  int arg;
  uint64_t mask, value;
};

/* A rule of one call, if its row has that action. */
static void
rule_compile (scmp_filter_ctx filter, int strict, char action,
              const char *name, uint32_t answer,
              const struct comparison comparisons[3])
{
  const struct row *row = row_find (name);
  struct scmp_arg_cmp args[3];
  unsigned n = 0;
  int i;

  if (row->action[strict] != action)
    return;
  for (i = 0; i < 3; i++)
    compare_add (args, &n, comparisons[i].arg, comparisons[i].mask,
                 comparisons[i].value);
  rule (filter, name, row->number, answer, n, args);
}

/* The calls that are allowed only so, all others being `otherwise`. */
static void
only_compile (struct program *program, int strict, char action, int otherwise)
{
  scmp_filter_ctx filter
    = filter_new (SCMP_ACT_ERRNO ((uint32_t) otherwise));

#define Y(call, a0, m0, v0, a1, m1, v1, a2, m2, v2)                           \
  {                                                                           \
    const struct comparison comparisons[3]                                    \
      = { { a0, m0, v0 }, { a1, m1, v1 }, { a2, m2, v2 } };                   \
    rule_compile (filter, strict, action, #call, SCMP_ACT_ALLOW,              \
                  comparisons);                                               \
  }
  if (strict) {
    FILTER_ALLOW_STRICT (Y)
  } else {
    FILTER_ALLOW_GENERAL (Y)
  }
#undef Y
  program_take (program, filter);
}

/* What is refused of calls that are allowed. */
static void
refuse_compile (struct program *program, int strict)
{
  scmp_filter_ctx filter = filter_new (SCMP_ACT_ALLOW);

#define Z(call, error, a0, m0, v0, a1, m1, v1)                                \
  {                                                                           \
    const struct comparison comparisons[3]                                    \
      = { { a0, m0, v0 }, { a1, m1, v1 }, { -1, 0, 0 } };                     \
    rule_compile (filter, strict, 'A', #call, SCMP_ACT_ERRNO (error),         \
                  comparisons);                                               \
  }
  FILTER_REFUSE (Z)
#undef Z
  program_take (program, filter);
}

/* ---- one program of them ------------------------------------------------ */

enum { PLAIN, ONLY, FAMILY, REFUSE, PROGRAMS };
static struct program programs[PROGRAMS];

static uint32_t target_arch;    /* AUDIT_ARCH_ of it */

static unsigned
answer_of (int which, uint32_t nr)
{
  return pack_answer (programs[which].code, programs[which].n, target_arch,
                      nr);
}

static unsigned
call_answer (uint32_t nr, int strict)
{
  char action = 'N';
  unsigned plain;
  size_t i;

  for (i = 0; i < ROWS; i++)
    if (rows[i].target >= 0 && (uint32_t) rows[i].target == nr)
      action = rows[i].action[strict];
  if (action == 'C')
    return answer_of (ONLY, nr);
  if (action == 'F')
    return answer_of (FAMILY, nr);
  plain = answer_of (PLAIN, nr);
  return pack_allows (plain) ? answer_of (REFUSE, nr) : plain;
}

static int
numbers_order (const void *a, const void *b)
{
  const uint32_t x = *(const uint32_t *) a, y = *(const uint32_t *) b;

  return x < y ? -1 : x > y;
}

/* Whatever a program compares a number with: between those it answers all
 * alike. */
static void
ranges_add (int strict)
{
  static uint32_t firsts[2 * PROGRAMS * BPF_MAXINSNS + 1];
  size_t n = 0, i;
  int p;

  firsts[n++] = 0;
  for (p = 0; p < PROGRAMS; p++)
    for (i = 0; i < programs[p].n; i++)
      if (BPF_CLASS (programs[p].code[i].code) == BPF_JMP) {
        firsts[n++] = programs[p].code[i].k;
        if (programs[p].code[i].k != UINT32_MAX)
          firsts[n++] = programs[p].code[i].k + 1;
      }
  qsort (firsts, n, sizeof firsts[0], numbers_order);
  for (i = 0; i < n; i++)
    if (i == 0 || firsts[i] != firsts[i - 1])
      pack_range (firsts[i], call_answer (firsts[i], strict));
}

/* Where the secret's halves stand, each in one instruction. */
static void
secret_print (const struct sock_filter *code, size_t n, const char *half,
              uint32_t value)
{
  size_t i, found = n;

  for (i = 0; i < n; i++)
    if (BPF_CLASS (code[i].code) == BPF_JMP && code[i].k == value) {
      if (found != n)
        fail ("the secret is there twice", EINVAL);
      found = i;
    }
  if (found == n)
    fail ("the secret is not there", EINVAL);
  printf ("#define FILTER_SECRET_%s %zu\n", half, found);
}

static void
profile_print (int strict, const char *name)
{
  static struct sock_filter code[BPF_MAXINSNS];
  size_t i, n;

  plain_compile (&programs[PLAIN], strict);
  only_compile (&programs[ONLY], strict, 'C', EPERM);
  only_compile (&programs[FAMILY], strict, 'F', EAFNOSUPPORT);
  refuse_compile (&programs[REFUSE], strict);
  ranges_add (strict);
  n = pack_finish (target_arch, code, BPF_MAXINSNS);
  /* The secret is put in where it is used. */
  printf ("static %sstruct sock_filter filter_%s[] = {\n",
          strict ? "" : "const ", name);
  for (i = 0; i < n; i++)
    printf ("  { 0x%x, %u, %u, 0x%xu },\n", code[i].code, code[i].jt,
            code[i].jf, code[i].k);
  printf ("};\n\n");
  if (strict) {
    secret_print (code, n, "LOW", (uint32_t) FILTER_SECRET);
    secret_print (code, n, "HIGH", (uint32_t) (FILTER_SECRET >> 32));
  }
}

int
main (int argc, char *argv[])
{
  arch = argc == 2 ? seccomp_arch_resolve_name (argv[1]) : 0;
  if (arch == 0) {
    fprintf (stderr, "usage: filter-gen ARCH\n");
    return 2;
  }
  target_arch = arch;           /* libseccomp's tokens are those of audit */
  rows_resolve ();
  printf ("/* Made by filter-gen from filter-table.h for %s. */\n\n", argv[1]);
  profile_print (0, "general");
  profile_print (1, "strict");
  return fflush (stdout) != 0 || ferror (stdout);
}
