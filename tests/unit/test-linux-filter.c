/* SPDX-License-Identifier: Apache-2.0 */
/* The compiled filters against their table: the programs of `general` and of
 * `strict` run in a simulator, over every number and the arguments that the
 * rows talk about, with and without bits that the kernel does not look at. */

#include "harness.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <seccomp.h>

#include "bpf-run.h"
#include "filter-table.h"

/* This machine's programs; in test-linux-filter-other those of another one. */
#ifdef FILTER_OTHER
#define FILTER_HEADER "filter-other.h"
#if defined __x86_64__
#define ARCH AUDIT_ARCH_AARCH64
#else
#define ARCH AUDIT_ARCH_X86_64
#endif
#else
#define FILTER_HEADER "init/filter.h"
#if defined __x86_64__
#define ARCH AUDIT_ARCH_X86_64
#else
#define ARCH AUDIT_ARCH_AARCH64
#endif
#endif

#include FILTER_HEADER

#define LENGTH(array) (sizeof (array) / sizeof (array)[0])

/* ---- the programs ------------------------------------------------------- */

static int strict;              /* which profile a test is about */
static const struct sock_filter *mutant;        /* in place of its program */
static int noticed;             /* that it answers otherwise than the table */

static const struct sock_filter *
program_of (int which, size_t *n)
{
  *n = which ? LENGTH (filter_strict) : LENGTH (filter_general);
  if (mutant != NULL)
    return mutant;
  return which ? filter_strict : filter_general;
}

static uint32_t
filter_run (uint32_t arch, uint32_t nr, const uint64_t args[6])
{
  struct seccomp_data data = { .nr = (int) nr, .arch = arch };
  const struct sock_filter *program;
  size_t n;

  memcpy (data.args, args, sizeof data.args);
  program = program_of (strict, &n);
  return program_run (program, n, &data);
}

/* ---- the table, read by itself ------------------------------------------ */

struct row {
  const char *name;
  char action[2];
  int number;
};

static const struct row rows[] = {
#define X(name, general, strict, number) \
  { #name, { FILTER_##general, FILTER_##strict }, number },
  FILTER_CALLS (X)
#undef X
};

struct compare {
  int arg;
  uint64_t mask, value;
};

struct rule {
  const char *name;
  int error;                    /* 0: allowed */
  struct compare compares[3];
  int nr;                       /* negative: not of this architecture */
};

#define Y(name, a0, m0, v0, a1, m1, v1, a2, m2, v2)                           \
  { #name, 0, { { a0, m0, v0 }, { a1, m1, v1 }, { a2, m2, v2 } }, -1 },
static struct rule allows_general[] = { FILTER_ALLOW_GENERAL (Y) };
static struct rule allows_strict[] = { FILTER_ALLOW_STRICT (Y) };
#undef Y

static const struct rule *
allows (size_t *n)
{
  *n = strict ? LENGTH (allows_strict) : LENGTH (allows_general);
  return strict ? allows_strict : allows_general;
}

static struct rule refusals[] = {
#define Z(name, error, a0, m0, v0, a1, m1, v1)                                \
  { #name, error, { { a0, m0, v0 }, { a1, m1, v1 }, { -1, 0, 0 } }, \
    -1 },
  FILTER_REFUSE (Z)
#undef Z
};

static int
number_of (const char *name, int number)
{
  int found = seccomp_syscall_resolve_name_arch (ARCH, name);

  if (found != __NR_SCMP_ERROR)
    return found;
#ifdef FILTER_OTHER
  /* Younger than libseccomp, which then has no rule of it for another
   * architecture than its own: ENOSYS. */
  return number == -1 ? -1 : -2;
#else
  return number;
#endif
}

static const struct row *
row_of (uint32_t nr)
{
  static const struct row *by_number[1024];
  static int filled;
  size_t i;

  for (i = 0; !filled && i < LENGTH (rows); i++) {
    int number = number_of (rows[i].name, rows[i].number);

    if (number >= 0) {
      assert_true (number < 1024);
      assert_null (by_number[number]);
      by_number[number] = &rows[i];
    }
  }
  filled = 1;
  return nr < 1024 ? by_number[nr] : NULL;
}

static void
rules_resolve (struct rule *rules, size_t n)
{
  size_t i, k;

  for (i = 0; i < n; i++)
    for (k = 0; k < LENGTH (rows); k++)
      if (strcmp (rows[k].name, rules[i].name) == 0)
        rules[i].nr = number_of (rows[k].name, rows[k].number);
}

static int
rule_matches (const struct rule *rule, uint32_t nr, const uint64_t args[6])
{
  int i;

  if (rule->nr < 0 || (uint32_t) rule->nr != nr)
    return 0;
  for (i = 0; i < 3; i++) {
    const struct compare *c = &rule->compares[i];

    if (c->arg >= 0
        && (c->mask ? args[c->arg] & c->mask : args[c->arg]) != c->value)
      return 0;
  }
  return 1;
}

static uint32_t
table_answer (uint32_t nr, const uint64_t args[6])
{
  const struct row *row = row_of (nr);
  const struct rule *only;
  size_t i, n;

  if (ARCH == AUDIT_ARCH_X86_64 && nr >= 0x40000000 && nr != UINT32_MAX)
    return SECCOMP_RET_KILL_PROCESS;
  switch (row == NULL ? 'N' : row->action[strict]) {
  case 'N':
    return SECCOMP_RET_ERRNO | ENOSYS;
  case 'E':
    return SECCOMP_RET_ERRNO | EPERM;
  case 'K':
    return SECCOMP_RET_KILL_PROCESS;
  case 'A':
    for (i = 0; i < LENGTH (refusals); i++)
      if (rule_matches (&refusals[i], nr, args))
        return SECCOMP_RET_ERRNO | (uint32_t) refusals[i].error;
    return SECCOMP_RET_ALLOW;
  default:
    only = allows (&n);
    for (i = 0; i < n; i++)
      if (rule_matches (&only[i], nr, args))
        return SECCOMP_RET_ALLOW;
    return SECCOMP_RET_ERRNO
           | (uint32_t) (row->action[strict] == 'F' ? EAFNOSUPPORT : EPERM);
  }
}

static void
check (uint32_t nr, const uint64_t args[6])
{
  uint32_t have, want;
  const struct row *row;

  if (noticed)
    return;
  have = filter_run (ARCH, nr, args);
  want = table_answer (nr, args);
  if (have == want)
    return;
  noticed = 1;
  if (mutant != NULL)
    return;
  row = row_of (nr);
  fail_msg ("%s: %s (%u) %llx %llx %llx %llx: %x instead of %x",
            strict ? "strict" : "general", row ? row->name : "?", nr,
            (unsigned long long) args[0], (unsigned long long) args[1],
            (unsigned long long) args[2], (unsigned long long) args[3], have,
            want);
}

/* ---- tests -------------------------------------------------------------- */

static void
numbers_check (void)
{
  static const uint32_t far[]
    = { 0x3fffffff, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff };
  const uint64_t none[6] = { 0 };
  uint64_t all[6], low[6], high[6];
  uint32_t nr;
  size_t i;

  for (i = 0; i < 6; i++) {
    all[i] = UINT64_MAX;
    low[i] = UINT32_MAX;
    high[i] = UINT64_MAX << 32;
  }
  for (nr = 0; nr < 2048 && !noticed; nr++) {
    check (nr, none);
    check (nr, all);
    check (nr, low);
    check (nr, high);
    check (0x40000000 | nr, none);
    check (0x40000000 | nr, all);
  }
  for (i = 0; i < LENGTH (far); i++)
    check (far[i], none);
  if (filter_run (AUDIT_ARCH_I386, 1, none) != SECCOMP_RET_KILL_PROCESS)
    noticed = 1;
}

static void
every_number (void **state)
{
  (void) state;
  for (strict = 0; strict < 2; strict++)
    numbers_check ();
  assert_int_equal (noticed, 0);
}

/* With each condition missed by one bit, low or high, then with one bit in
 * place of all. */
static void
bits_check (uint32_t nr, const uint64_t args[6])
{
  uint64_t changed[6];
  int i, bit;

  check (nr, args);
  for (i = 0; i < 6; i++)
    for (bit = 0; bit < 64; bit++) {
      memcpy (changed, args, sizeof changed);
      changed[i] ^= UINT64_C (1) << bit;
      check (nr, changed);
      changed[i] = UINT64_C (1) << bit;
      check (nr, changed);
    }
}

/* A rule with the arguments that it names, the others being nothing or all. */
static void
rule_check (const struct rule *rule)
{
  uint64_t none[6] = { 0 }, all[6];
  int i;

  if (rule->nr < 0)
    return;
  memset (all, 0xff, sizeof all);
  for (i = 0; i < 3; i++)
    if (rule->compares[i].arg >= 0)
      none[rule->compares[i].arg] = all[rule->compares[i].arg]
        = rule->compares[i].value;
  bits_check ((uint32_t) rule->nr, none);
  bits_check ((uint32_t) rule->nr, all);
}

static void
rules_check (void)
{
  const struct rule *only;
  size_t i, n;

  only = allows (&n);
  for (i = 0; i < n && !noticed; i++)
    rule_check (&only[i]);
  for (i = 0; i < LENGTH (refusals) && !noticed; i++)
    rule_check (&refusals[i]);
}

static void
every_rule (void **state)
{
  (void) state;
  for (strict = 0; strict < 2; strict++)
    rules_check ();
}

/* The other way round: whatever is changed in a program is noticed by the
 * above, so that nothing in it is there for nobody, and nothing of it could be
 * wrong without being seen. */
static int
mutant_made (struct sock_filter *copy, size_t i, int how)
{
  const uint8_t jt = copy[i].jt;

  if (copy[i].code == (BPF_JMP | BPF_JA))
    return 0;
  if (how == 0) {
    /* Between two searches for exceptions among what is otherwise alike the
     * border may lie one further. */
    if (BPF_OP (copy[i].code) == BPF_JGE
        && BPF_CLASS (copy[i].code) == BPF_JMP)
      return 0;
    copy[i].k ^= BPF_CLASS (copy[i].code) == BPF_LD ? 4 : 1;
    return 1;
  }
  copy[i].jt = copy[i].jf;
  copy[i].jf = jt;
  return BPF_CLASS (copy[i].code) == BPF_JMP;
}

static void
mutants_try (void)
{
  struct sock_filter copy[LENGTH (filter_general) + LENGTH (filter_strict)];
  size_t n, i;
  int how;

  for (how = 0; how < 2; how++)
    for (i = 0; program_of (strict, &n), i < n; i++) {
      memcpy (copy, program_of (strict, &n), n * sizeof copy[0]);
      if (!mutant_made (copy, i, how))
        continue;
      mutant = copy;
      rules_check ();
      numbers_check ();
      mutant = NULL;
      if (!noticed)
        fail_msg ("%s: instruction %zu may be anything",
                  strict ? "strict" : "general", i);
      noticed = 0;
    }
}

static void
every_instruction_matters (void **state)
{
  (void) state;
  for (strict = 0; strict < 2; strict++)
    mutants_try ();
}

static void
random_arguments (void **state)
{
  static const char *const names[]
    = { "clone", "unshare", "socket", "socketpair", "personality", "ioctl",
        "fcntl", "openat", "fchmodat", "mknodat", "prctl", "seccomp",
        "sched_setscheduler", "ioprio_set", "execve", "prlimit64" };
  unsigned long rounds = harness_scaled (20000), n;
  uint64_t args[6], seed = 88172645463325252u;
  size_t i;

  (void) state;
  for (n = 0; n < rounds; n++) {
    for (i = 0; i < 6; i++) {
      seed ^= seed << 13;
      seed ^= seed >> 7;
      seed ^= seed << 17;
      /* Small numbers, flags and anything. */
      args[i] = n % 3 == 0 ? seed % 64
                : n % 3 == 1 ? UINT64_C (1) << (seed % 64) : seed;
    }
    for (i = 0; i < LENGTH (names); i++)
      for (strict = 0; strict < 2; strict++)
        check ((uint32_t) number_of (names[i], -1), args);
  }
}

/* What the kernel sees of these are 32 bits: what it then refuses is refused
 * whatever stands above them. */
static void
high_bits_open_nothing (void **state)
{
  static const struct {
    const char *name;
    int arg;
    uint32_t value;
  } cases[] = {
    { "socket", 0, 40 }, { "socket", 0, 38 }, { "socket", 0, 17 },
    { "socketpair", 0, 2 }, { "ioctl", 1, 0x5412 }, { "ioctl", 1, 0x541c },
    { "clone", 0, 0x10000000 }, { "unshare", 0, 0x20000 },
    { "unshare", 0, 0x80 }, { "fcntl", 1, 1024 }, { "fcntl", 1, 1026 },
    { "prctl", 0, 35 }, { "fchmod", 1, 04755 }, { "fchmodat", 2, 02755 },
    { "mknodat", 2, 0020666 }, { "mkdirat", 2, 02700 },
    { "personality", 0, 0x40000 }, { "sched_setscheduler", 1, 1 },
    { "sched_setscheduler", 1, 0x40000002 }, { "ioprio_set", 2, 0x2004 },
  };
  uint64_t args[6];
  size_t i;
  int bit, nr;

  (void) state;
  for (strict = 0; strict < 2; strict++)
    for (i = 0; i < LENGTH (cases); i++) {
      nr = number_of (cases[i].name, -1);
      memset (args, 0, sizeof args);
      args[cases[i].arg] = cases[i].value;
      assert_int_not_equal (filter_run (ARCH, (uint32_t) nr, args),
                            SECCOMP_RET_ALLOW);
      for (bit = 32; bit < 64; bit++) {
        args[cases[i].arg] = cases[i].value | UINT64_C (1) << bit;
        assert_int_not_equal (filter_run (ARCH, (uint32_t) nr, args),
                              SECCOMP_RET_ALLOW);
      }
    }
}

static uint32_t
open_answer (uint64_t flags, uint64_t mode)
{
  const uint64_t args[6] = { 0, 0, flags, mode };

  return filter_run (ARCH, (uint32_t) number_of ("openat", -1), args);
}

/* Modes are looked at where a file may be made, and only there. */
static void
files_are_made_without_setuid_bits (void **state)
{
  static const uint64_t makes[] = { 0100, 0101, 0102, 020200000, 020000002 };
  uint64_t mode;
  size_t i;

  (void) state;
  for (strict = 0; strict < 2; strict++)
    for (mode = 0; mode < 010000; mode++) {
      assert_int_equal (open_answer (02, mode), SECCOMP_RET_ALLOW);
      for (i = 0; i < LENGTH (makes); i++) {
        const uint32_t want = mode & 06000 ? SECCOMP_RET_ERRNO | EPERM
                                           : SECCOMP_RET_ALLOW;

        assert_int_equal (open_answer (makes[i], mode), want);
        assert_int_equal (open_answer (makes[i] | UINT64_C (1) << 40,
                                       mode | UINT64_C (1) << 32),
                          want);
      }
    }
}

/* The interpreter's filter lets nobody start a program who does not know the
 * number that is put in for each command. */
static void
a_program_is_started_with_the_secret (void **state)
{
  struct sock_filter copy[LENGTH (filter_strict)];
  const uint64_t secret = UINT64_C (0x0123456789abcdef);
  struct seccomp_data data
    = { .nr = number_of ("execve", -1), .arch = ARCH };
  int bit;

  (void) state;
  memcpy (copy, filter_strict, sizeof copy);
  copy[FILTER_SECRET_LOW].k = (uint32_t) secret;
  copy[FILTER_SECRET_HIGH].k = (uint32_t) (secret >> 32);
  data.args[5] = secret;
  assert_int_equal (program_run (copy, LENGTH (copy), &data),
                    SECCOMP_RET_ALLOW);
  for (bit = 0; bit < 64; bit++) {
    data.args[5] = secret ^ UINT64_C (1) << bit;
    assert_int_equal (program_run (copy, LENGTH (copy), &data),
                      SECCOMP_RET_ERRNO | EPERM);
  }
  data.args[5] = FILTER_SECRET;
  assert_int_equal (program_run (copy, LENGTH (copy), &data),
                    SECCOMP_RET_ERRNO | EPERM);
}

/* Steps that the kernel takes, for each sandbox, to find out which numbers are
 * allowed whatever their arguments; and instructions that it compiles.  What
 * they cost is by far the most of what a filter costs. */
static void
programs_are_small (void **state)
{
  (void) state;
  assert_true (LENGTH (filter_general) <= 200);
  assert_true (LENGTH (filter_strict) <= 145);
}

static void
foreign_architectures_end_it (void **state)
{
  static const uint32_t others[]
    = { AUDIT_ARCH_I386, AUDIT_ARCH_ARM, AUDIT_ARCH_PPC64LE,
        AUDIT_ARCH_S390X, AUDIT_ARCH_RISCV64, 0, UINT32_MAX, ARCH ^ 1,
        ARCH & ~0x40000000u, ARCH & ~0x80000000u };
  const uint64_t none[6] = { 0 };
  uint32_t nr;
  size_t i;

  (void) state;
  for (strict = 0; strict < 2; strict++)
    for (i = 0; i < LENGTH (others); i++)
      for (nr = 0; nr < 512; nr++)
        assert_int_equal (filter_run (others[i], nr, none),
                          SECCOMP_RET_KILL_PROCESS);
}

/* Every name that a rule uses has a row, and every dangerous call of the list
 * is known to libseccomp or has a number of its own. */
static void
every_name_is_known (void **state)
{
  size_t i, k;

  (void) state;
  for (i = 0; i < LENGTH (rows); i++) {
    assert_int_not_equal (number_of (rows[i].name, rows[i].number), -1);
    for (k = i + 1; k < LENGTH (rows); k++)
      assert_string_not_equal (rows[i].name, rows[k].name);
  }
  for (i = 0; i < LENGTH (refusals); i++) {
    for (k = 0; k < LENGTH (rows); k++)
      if (strcmp (refusals[i].name, rows[k].name) == 0)
        break;
    assert_true (k < LENGTH (rows));
  }
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (every_number),
    cmocka_unit_test (every_rule),
    cmocka_unit_test (every_instruction_matters),
    cmocka_unit_test (random_arguments),
    cmocka_unit_test (high_bits_open_nothing),
    cmocka_unit_test (files_are_made_without_setuid_bits),
    cmocka_unit_test (a_program_is_started_with_the_secret),
    cmocka_unit_test (programs_are_small),
    cmocka_unit_test (foreign_architectures_end_it),
    cmocka_unit_test (every_name_is_known),
  };

  rules_resolve (allows_general, LENGTH (allows_general));
  rules_resolve (allows_strict, LENGTH (allows_strict));
  rules_resolve (refusals, LENGTH (refusals));
  return cmocka_run_group_tests_name ("linux: the system call filters", tests,
                                      NULL, NULL);
}
