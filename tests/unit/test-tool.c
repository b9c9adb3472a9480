/* SPDX-License-Identifier: Apache-2.0 */
/* core/provider/tool.c: what another's program may take, and that nothing of it
 * stays with this process. */

#include <config.h>

#include "harness.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/text.h"
#include "provider/tool.h"

static int
shell (const char *command, struct coffer_buffer *said, struct error **err)
{
  const char *const argv[] = { "sh", "-c", command, NULL };
  const struct tool tool = {
    .argv = argv, .dir = -1, .out = -1, .file_bytes = 1 << 20,
    .data_bytes = UINT64_C (256) << 20, .cancel_fd = -1,
    .deadline_ns = coffer_now_ns () + INT64_C (20000000000)
  };

  return tool_run (&tool, "the shell", E_INVALID, said, err);
}

static void
limits_are_there_from_its_birth (void **state)
{
  coffer_autobuffer struct coffer_buffer said = { 0 };
  struct rlimit before[2], after[2];

  (void) state;
  getrlimit (RLIMIT_FSIZE, &before[0]);
  getrlimit (RLIMIT_DATA, &before[1]);
  assert_int_equal (shell ("ulimit -S -f; ulimit -H -f", &said, NULL), 0);
  assert_int_equal (strncmp (said.data, "2048\n", 5), 0);
  coffer_buffer_free (&said);
  said = (struct coffer_buffer){ 0 };
#ifndef COFFER_SANITIZERS
  assert_int_equal (shell ("ulimit -S -d", &said, NULL), 0);
  assert_int_equal (strncmp (said.data, "262144\n", 7), 0);
#endif
  getrlimit (RLIMIT_FSIZE, &after[0]);
  getrlimit (RLIMIT_DATA, &after[1]);
  assert_memory_equal (before, after, sizeof before);
}

static void
a_file_that_is_too_large_is_told (void **state)
{
  auto_error struct error *err = NULL;
  auto_free char *command
    = text_printf ("exec head -c 2000000 /dev/zero >%s/zeros",
                   (const char *) *state);
  auto_free char *path
    = text_printf ("%s/zeros", (const char *) *state);

  assert_int_equal (shell (command, NULL, &err), -1);
  assert_int_equal (err->number, E_LIMIT);
  assert_int_equal (unlink (path), 0);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (limits_are_there_from_its_birth),
    cmocka_unit_test (a_file_that_is_too_large_is_told),
  };

  return cmocka_run_group_tests (tests, harness_folder_new,
                                 harness_folder_free);
}
