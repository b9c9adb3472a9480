/* SPDX-License-Identifier: Apache-2.0 */
/* Runs while coffer is built: turns filter-table.h into the two seccomp
 * programs of profile `general`, as a C header on standard output.
 *
 *   filter-gen ARCH        ARCH as libseccomp names it: x86_64, aarch64
 *
 * Two programs, because libseccomp has no "otherwise" for one call: the first
 * is the list of what is allowed, the second answers with the right errno for
 * arguments that are refused.  The kernel takes the stricter of both answers
 * and, between two errnos, that of the program installed last. */

#include <errno.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <linux/filter.h>

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

/* Where the number of a call that is named a second time comes from. */
static int
row_number (const char *name)
{
#define A 0
#define C 0
#define E 0
#define N 0
#define X(call, general, strict, number)                                      \
  if (strcmp (name, #call) == 0)                                              \
    return call_number (name, number);
  FILTER_CALLS (X)
#undef X
  fail (name, ENOENT);
  return -1;
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

static void
row_add (scmp_filter_ctx filter, const char *name, char action, int number)
{
  switch (action) {
  case 'A':
    rule (filter, name, number, SCMP_ACT_ALLOW, 0, NULL);
    break;
  case 'E':
    rule (filter, name, number, SCMP_ACT_ERRNO (EPERM), 0, NULL);
    break;
  default:                      /* N is the default, C comes below */
    break;
  }
}

static scmp_filter_ctx
filter_allow (void)
{
  scmp_filter_ctx filter = filter_new (SCMP_ACT_ERRNO (ENOSYS));

#define X(call, general, strict, number)                                      \
  row_add (filter, #call, #general[0], call_number (#call, number));
  FILTER_CALLS (X)
#undef X
#define Y(call, a0, m0, v0, a1, m1, v1, a2, m2, v2)                           \
  {                                                                           \
    struct scmp_arg_cmp args[3];                                              \
    unsigned n = 0;                                                           \
    compare_add (args, &n, a0, m0, v0);                                       \
    compare_add (args, &n, a1, m1, v1);                                       \
    compare_add (args, &n, a2, m2, v2);                                       \
    rule (filter, #call, row_number (#call), SCMP_ACT_ALLOW, n, args);        \
  }
  FILTER_ALLOW (Y)
#undef Y
  return filter;
}

static void
families_refuse (scmp_filter_ctx filter, const char *name)
{
  const uint32_t action = SCMP_ACT_ERRNO (EAFNOSUPPORT);
  struct scmp_arg_cmp arg;
  uint64_t family;

  for (family = 0; family < FILTER_FAMILY_MAX; family++) {
    if (FILTER_FAMILY_KNOWN (family))
      continue;
    arg = SCMP_A0_64 (SCMP_CMP_MASKED_EQ, 0xffffffff, family);
    rule (filter, name, row_number (name), action, 1, &arg);
  }
  arg = SCMP_A0_64 (SCMP_CMP_GT, FILTER_FAMILY_MAX);
  rule (filter, name, row_number (name), action, 1, &arg);
}

static scmp_filter_ctx
filter_refuse (void)
{
  scmp_filter_ctx filter = filter_new (SCMP_ACT_ALLOW);

#define Z(call, error, a0, m0, v0, a1, m1, v1)                                \
  {                                                                           \
    struct scmp_arg_cmp args[2];                                              \
    unsigned n = 0;                                                           \
    compare_add (args, &n, a0, m0, v0);                                       \
    compare_add (args, &n, a1, m1, v1);                                       \
    rule (filter, #call, row_number (#call), SCMP_ACT_ERRNO (error), n,       \
          args);                                                              \
  }
  FILTER_REFUSE (Z)
#undef Z
  families_refuse (filter, "socket");
  families_refuse (filter, "socketpair");
  return filter;
}

static void
filter_print (scmp_filter_ctx filter, const char *name)
{
  static struct sock_filter program[BPF_MAXINSNS];
  int fd = memfd_create ("filter", MFD_CLOEXEC), r;
  ssize_t size;
  size_t i, n;

  if (fd < 0)
    fail ("memfd_create", errno);
  r = seccomp_export_bpf (filter, fd);
  if (r < 0)
    fail ("seccomp_export_bpf", -r);
  size = pread (fd, program, sizeof program, 0);
  if (size <= 0 || (size_t) size % sizeof program[0] != 0)
    fail ("program", errno ? errno : EINVAL);
  close (fd);
  n = (size_t) size / sizeof program[0];
  printf ("static const struct sock_filter filter_%s[] = {\n", name);
  for (i = 0; i < n; i++)
    printf ("  { 0x%x, %u, %u, 0x%xu },\n", program[i].code, program[i].jt,
            program[i].jf, program[i].k);
  printf ("};\n\n");
  seccomp_release (filter);
}

int
main (int argc, char *argv[])
{
  arch = argc == 2 ? seccomp_arch_resolve_name (argv[1]) : 0;
  if (arch == 0) {
    fprintf (stderr, "usage: filter-gen ARCH\n");
    return 2;
  }
  printf ("/* Made by filter-gen from filter-table.h for %s. */\n\n", argv[1]);
  filter_print (filter_allow (), "allow");
  filter_print (filter_refuse (), "refuse");
  return fflush (stdout) != 0 || ferror (stdout);
}
