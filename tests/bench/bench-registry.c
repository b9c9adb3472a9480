/* SPDX-License-Identifier: Apache-2.0 */
/* What every start of `coffer run` pays before a provider's code is loaded:
 * finding `linux` and reading its manifest, the sealed copy and hash of its
 * module, the ELF gate.
 *   bench-registry [LIMIT]     microseconds of the three that are too much; 1000
 * Prints "NAME VALUE" lines in microseconds; exits 1 when the limit is passed,
 * 2 when it cannot be measured. */

#include <config.h>

#include <stdio.h>
#include <stdlib.h>

#include <coffer/fd.h>

#include "provider/integrity.h"
#include "provider/registry.h"

#define RUNS 201

struct times {
  double find, copy, gate;
};

static double
since (int64_t *from)
{
  const int64_t now = coffer_now_ns ();
  const double us = (double) (now - *from) / 1e3;

  *from = now;
  return us;
}

static int
measure (struct times *times, struct error **err)
{
  auto_place struct place *place = NULL;
  auto_registry struct registry *registry = NULL;
  auto_elf_facts struct elf_facts *facts = NULL;
  coffer_autoclose int fd = -1;
  const struct manifest_module *module;
  const struct registry_entry *entry;
  int64_t clock = coffer_now_ns ();

  if (place_find (&place, err) < 0
      || registry_load_one (place, "linux", &registry, err) < 0
      || registry_find (registry, "linux", &entry, err) < 0
      || manifest_module (entry->manifest, &module, err) < 0)
    return -1;
  times->find = since (&clock);
  fd = integrity_open (entry->dir_fd, module->file, module->sha256, 0, err);
  if (fd < 0)
    return -1;
  times->copy = since (&clock);
  if (elf_gate (fd, module->file, &facts, err) < 0)
    return -1;
  times->gate = since (&clock);
  return 0;
}

static int
compare (const void *a, const void *b)
{
  const double x = *(const double *) a, y = *(const double *) b;

  return (x > y) - (x < y);
}

static double
median (double *values)
{
  qsort (values, RUNS, sizeof *values, compare);
  return values[RUNS / 2];
}

int
main (int argc, char **argv)
{
  static double find[RUNS], copy[RUNS], gate[RUNS];
  const double limit = argc > 1 ? strtod (argv[1], NULL) : 1000;
  double sum;
  size_t i;

  for (i = 0; i < RUNS; i++) {
    auto_error struct error *err = NULL;
    struct times times = { 0 };

    if (measure (&times, &err) < 0) {
      printf ("# %s\n", err->message);
      return 2;
    }
    find[i] = times.find;
    copy[i] = times.copy;
    gate[i] = times.gate;
  }
  sum = median (find) + median (copy) + median (gate);
  printf ("registry_find_us %.1f\n", median (find));
  printf ("registry_copy_and_hash_us %.1f\n", median (copy));
  printf ("registry_gate_us %.1f\n", median (gate));
  printf ("registry_sum_us %.1f\n", sum);
  return sum > limit;
}
