/* SPDX-License-Identifier: Apache-2.0 */
/* The compiled filter against its table: both programs of profile `general`
 * run in a simulator, over every number and the arguments that the rows talk
 * about, with and without bits that the kernel does not look at. */

#include "harness.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <seccomp.h>

#include "filter-table.h"
#include "init/filter.h"

#if defined __x86_64__
#define ARCH AUDIT_ARCH_X86_64
#else
#define ARCH AUDIT_ARCH_AARCH64
#endif

#define LENGTH(array) (sizeof (array) / sizeof (array)[0])

/* ---- the simulator ------------------------------------------------------ */

static uint32_t
program_run (const struct sock_filter *program, size_t n,
             const struct seccomp_data *data)
{
  uint32_t a = 0, word;
  size_t pc;

  for (pc = 0; pc < n; pc++) {
    const struct sock_filter *i = &program[pc];

    switch (i->code) {
    case BPF_LD | BPF_W | BPF_ABS:
      assert_true (i->k % 4 == 0 && i->k < sizeof *data);
      memcpy (&word, (const char *) data + i->k, sizeof word);
      a = word;
      break;
    case BPF_ALU | BPF_AND | BPF_K:
      a &= i->k;
      break;
    case BPF_JMP | BPF_JA:
      pc += i->k;
      break;
    case BPF_JMP | BPF_JEQ | BPF_K:
      pc += a == i->k ? i->jt : i->jf;
      break;
    case BPF_JMP | BPF_JGT | BPF_K:
      pc += a > i->k ? i->jt : i->jf;
      break;
    case BPF_JMP | BPF_JGE | BPF_K:
      pc += a >= i->k ? i->jt : i->jf;
      break;
    case BPF_RET | BPF_K:
      return i->k;
    default:
      fail_msg ("instruction %zu: code %x", pc, i->code);
    }
  }
  fail_msg ("the program has no end");
  return 0;
}

/* Both, as the kernel joins them: the stricter action, of two errnos that of
 * the program installed last. */
static uint32_t
filter_run (uint32_t arch, int nr, const uint64_t args[6])
{
  struct seccomp_data data = { .nr = nr, .arch = arch };
  uint32_t allow, refuse;

  memcpy (data.args, args, sizeof data.args);
  allow = program_run (filter_allow, LENGTH (filter_allow), &data);
  refuse = program_run (filter_refuse, LENGTH (filter_refuse), &data);
  if ((int32_t) (refuse & SECCOMP_RET_ACTION_FULL)
        <= (int32_t) (allow & SECCOMP_RET_ACTION_FULL))
    return refuse;
  return allow;
}

/* ---- the table, read by itself ------------------------------------------ */

struct row {
  const char *name;
  char action;
  int number;
};

static const struct row rows[] = {
#define A 'A'
#define C 'C'
#define E 'E'
#define N 'N'
#define K 'K'
#define X(name, general, strict, number) { #name, general, number },
  FILTER_CALLS (X)
#undef X
#undef A
#undef C
#undef E
#undef N
#undef K
};

struct compare {
  int arg;
  uint64_t mask, value;
};

struct rule {
  const char *name;
  int error;                    /* 0: allowed */
  struct compare compares[3];
};

static const struct rule allows[] = {
#define Y(name, a0, m0, v0, a1, m1, v1, a2, m2, v2)                           \
  { #name, 0, { { a0, m0, v0 }, { a1, m1, v1 }, { a2, m2, v2 } } },
  FILTER_ALLOW (Y)
#undef Y
};

static const struct rule refusals[] = {
#define Z(name, error, a0, m0, v0, a1, m1, v1)                                \
  { #name, error, { { a0, m0, v0 }, { a1, m1, v1 }, { -1, 0, 0 } } },
  FILTER_REFUSE (Z)
#undef Z
};

static int
number_of (const char *name, int number)
{
  int found = seccomp_syscall_resolve_name (name);

  return found == __NR_SCMP_ERROR ? number : found;
}

static const struct row *
row_of (int nr)
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
  return nr >= 0 && nr < 1024 ? by_number[nr] : NULL;
}

static int
rule_matches (const struct rule *rule, const char *name,
              const uint64_t args[6])
{
  int i;

  if (strcmp (rule->name, name) != 0)
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
family_answer (const char *name, uint64_t family)
{
  if (strcmp (name, "socket") != 0 && strcmp (name, "socketpair") != 0)
    return 0;
  if (family > FILTER_FAMILY_MAX
      || !FILTER_FAMILY_KNOWN (family & 0xffffffff))
    return SECCOMP_RET_ERRNO | EAFNOSUPPORT;
  return 0;
}

static uint32_t
table_answer (int nr, const uint64_t args[6])
{
  const struct row *row = row_of (nr);
  uint32_t answer;
  size_t i;

  if (row == NULL || row->action == 'N')
    return SECCOMP_RET_ERRNO | ENOSYS;
  if (row->action == 'E')
    return SECCOMP_RET_ERRNO | EPERM;
  answer = family_answer (row->name, args[0]);
  if (answer != 0)
    return answer;
  for (i = 0; i < LENGTH (refusals); i++)
    if (rule_matches (&refusals[i], row->name, args))
      return SECCOMP_RET_ERRNO | (uint32_t) refusals[i].error;
  if (row->action == 'A')
    return SECCOMP_RET_ALLOW;
  for (i = 0; i < LENGTH (allows); i++)
    if (rule_matches (&allows[i], row->name, args))
      return SECCOMP_RET_ALLOW;
  return SECCOMP_RET_ERRNO | ENOSYS;
}

static void
check (int nr, const uint64_t args[6])
{
  uint32_t have = filter_run (ARCH, nr, args), want = table_answer (nr, args);
  const struct row *row = row_of (nr);

  if (have != want)
    fail_msg ("%s (%d) %llx %llx %llx %llx: %x instead of %x",
              row ? row->name : "?", nr, (unsigned long long) args[0],
              (unsigned long long) args[1], (unsigned long long) args[2],
              (unsigned long long) args[3], have, want);
}

/* ---- tests -------------------------------------------------------------- */

static void
every_number (void **state)
{
  const uint64_t none[6] = { 0 };
  uint64_t all[6];
  int nr;

  (void) state;
  memset (all, 0xff, sizeof all);
  for (nr = 0; nr < 1024; nr++) {
    check (nr, none);
    check (nr, all);
  }
  check (0x3fffffff, none);
}

/* Every rule with arguments that it names, then with each of its conditions
 * missed by one bit, then with high bits set. */
static void
rule_check (const struct rule *rule)
{
  int nr = number_of (rule->name, -1), i, bit;
  uint64_t args[6] = { 0 }, changed[6];

  for (i = 0; nr < 0 && i < (int) LENGTH (rows); i++)
    if (strcmp (rows[i].name, rule->name) == 0)
      nr = rows[i].number;
  if (nr < 0)
    return;
  for (i = 0; i < 3; i++)
    if (rule->compares[i].arg >= 0)
      args[rule->compares[i].arg] = rule->compares[i].value;
  check (nr, args);
  for (i = 0; i < 4; i++)
    for (bit = 0; bit < 64; bit++) {
      memcpy (changed, args, sizeof changed);
      changed[i] ^= UINT64_C (1) << bit;
      check (nr, changed);
    }
}

static void
every_rule (void **state)
{
  size_t i;

  (void) state;
  for (i = 0; i < LENGTH (allows); i++)
    rule_check (&allows[i]);
  for (i = 0; i < LENGTH (refusals); i++)
    rule_check (&refusals[i]);
}

static void
random_arguments (void **state)
{
  static const char *const names[]
    = { "clone", "unshare", "socket", "socketpair", "personality", "ioctl",
        "fcntl", "openat", "fchmodat", "mknodat", "prctl", "seccomp",
        "sched_setscheduler", "ioprio_set" };
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
      check (number_of (names[i], -1), args);
  }
}

/* Whatever a rule allows or refuses, bits beyond the 32 never turn a refusal
 * into a permission. */
static void
high_bits_open_nothing (void **state)
{
  uint64_t args[6] = { 0 }, high[6];
  int nr, family, i;

  (void) state;
  for (family = 0; family < 64; family++)
    for (nr = 0; nr < 2; nr++) {
      int number = number_of (nr ? "socketpair" : "socket", -1);

      args[0] = (uint64_t) family;
      args[1] = 2;
      if (filter_run (ARCH, number, args) == SECCOMP_RET_ALLOW)
        continue;
      for (i = 32; i < 64; i++) {
        memcpy (high, args, sizeof high);
        high[0] |= UINT64_C (1) << i;
        assert_int_not_equal (filter_run (ARCH, number, high),
                              SECCOMP_RET_ALLOW);
      }
    }
}

static void
foreign_architectures_end_it (void **state)
{
  const uint64_t none[6] = { 0 };

  (void) state;
  assert_int_equal (filter_run (AUDIT_ARCH_I386, 20, none),
                    SECCOMP_RET_KILL_PROCESS);
  assert_int_equal (filter_run (AUDIT_ARCH_ARM, 20, none),
                    SECCOMP_RET_KILL_PROCESS);
  assert_int_equal (filter_run (0, 20, none), SECCOMP_RET_KILL_PROCESS);
#if defined __x86_64__
  assert_int_equal (filter_run (ARCH, 0x40000000, none),
                    SECCOMP_RET_KILL_PROCESS);
  assert_int_equal (filter_run (ARCH, 0x40000000 + 39, none),
                    SECCOMP_RET_KILL_PROCESS);
#endif
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
    cmocka_unit_test (random_arguments),
    cmocka_unit_test (high_bits_open_nothing),
    cmocka_unit_test (foreign_architectures_end_it),
    cmocka_unit_test (every_name_is_known),
  };

  return cmocka_run_group_tests_name ("linux: the system call filter", tests,
                                      NULL, NULL);
}
