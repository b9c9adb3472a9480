/* SPDX-License-Identifier: Apache-2.0 */
/* Major 0: only modules of the host's own minor pass the gate, whatever they
 * say they could live with. */

#include <config.h>

#include "harness.h"

#include <fcntl.h>

#include "contract/contract.h"
#include "provider/integrity.h"

static int
gate (const char *file, struct elf_facts **facts, struct error **err)
{
  char folder[4096], hash[SHA256_HEX_SIZE];
  int dir, fd, r;

  snprintf (folder, sizeof folder, "%s/tests/abi", getenv ("COFFER_BUILD"));
  dir = open (folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
  assert_true (dir >= 0);
  fd = integrity_copy (dir, file, 0, 0, hash, err);
  close (dir);
  assert_true (fd >= 0);
  r = elf_gate (fd, file, facts, err);
  close (fd);
  return r;
}

static void
the_own_minor_passes (void **state)
{
  auto_elf_facts struct elf_facts *facts = NULL;

  (void) state;
  assert_int_equal (gate ("witness-0-1.so", &facts, NULL), 0);
  assert_int_equal (facts->note.contract_major, 0);
  assert_int_equal (facts->note.contract_minor, 1);
  assert_string_equal (facts->note.name, "witness");
}

static void
another_minor_is_refused (const char *file, const char *says)
{
  auto_elf_facts struct elf_facts *facts = NULL;
  auto_error struct error *err = NULL;

  assert_int_equal (gate (file, &facts, &err), -1);
  assert_int_equal (err->number, E_CONTRACT_VERSION);
  assert_non_null (strstr (err->message, says));
  assert_null (getenv ("COFFER_TEST_WITNESS_RAN"));
}

static void
an_older_minor_is_refused (void **state)
{
  (void) state;
  another_minor_is_refused ("witness-0-0.so", "0.0");
}

static void
a_newer_minor_is_refused (void **state)
{
  (void) state;
  another_minor_is_refused ("witness-0-2.so", "0.2");
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (the_own_minor_passes),
    cmocka_unit_test (an_older_minor_is_refused),
    cmocka_unit_test (a_newer_minor_is_refused),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
