/* SPDX-License-Identifier: Apache-2.0 */
/* Ids: unique, in the order of their making, of one grammar; also across a
 * fork and between threads. */

#include "config.h"

#include "harness.h"

#include <pthread.h>
#include <sys/wait.h>

#include "sandbox/sandbox.h"

static void
test_a_million_are_unique_sorted_and_valid (void **state)
{
  char last[SANDBOX_ID_SIZE] = "", id[SANDBOX_ID_SIZE];
  int i;

  (void) state;
  for (i = 0; i < 1000000; i++) {
    assert_int_equal (sandbox_id_new (id, NULL), 0);
    if (!sandbox_id_valid (id))
      fail_msg ("not valid: %s", id);
    if (strcmp (last, id) >= 0)
      fail_msg ("%s does not sort after %s", id, last);
    memcpy (last, id, sizeof last);
  }
}

static void
test_the_time_is_in_it (void **state)
{
  char a[SANDBOX_ID_SIZE], b[SANDBOX_ID_SIZE];
  int tries = 0;

  (void) state;
  /* The sixth digit counts 262 s; its next turn may come in between. */
  do {
    assert_int_equal (sandbox_id_new (a, NULL), 0);
    usleep (50000);
    assert_int_equal (sandbox_id_new (b, NULL), 0);
  } while (memcmp (a, b, 9) != 0 && ++tries < 5);
  /* 48 bits of milliseconds are nine digits and three bits: the ninth digit
   * counts 8 ms. */
  assert_true (memcmp (a, b, 12) < 0);
  assert_memory_equal (a, b, 9);
}

static void
test_a_forked_child_makes_others (void **state)
{
  char ours[SANDBOX_ID_SIZE], theirs[SANDBOX_ID_SIZE] = "";
  int p[2], status;
  pid_t pid;

  (void) state;
  assert_int_equal (sandbox_id_new (ours, NULL), 0);
  assert_int_equal (pipe (p), 0);
  pid = fork ();
  if (pid == 0) {
    char id[SANDBOX_ID_SIZE];

    _exit (sandbox_id_new (id, NULL) < 0
           || write (p[1], id, sizeof id) != sizeof id);
  }
  assert_int_equal (sandbox_id_new (ours, NULL), 0);
  assert_int_equal (read (p[0], theirs, sizeof theirs), sizeof theirs);
  assert_int_equal (waitpid (pid, &status, 0), pid);
  close (p[0]);
  close (p[1]);
  assert_true (sandbox_id_valid (theirs));
  /* The random halves differ, not just a step of 32 bits. */
  assert_memory_not_equal (ours + 13, theirs + 13, 9);
}

#define PER_THREAD 20000

static void *
make_many (void *data)
{
  char (*ids)[SANDBOX_ID_SIZE] = data;
  int i;

  for (i = 0; i < PER_THREAD; i++)
    if (sandbox_id_new (ids[i], NULL) < 0)
      return NULL;
  return data;
}

static int
compare (const void *a, const void *b)
{
  return strcmp (a, b);
}

static void
test_threads_never_make_the_same (void **state)
{
  char (*ids)[SANDBOX_ID_SIZE] = calloc (4 * PER_THREAD, sizeof *ids);
  pthread_t threads[4];
  void *result;
  int i;

  (void) state;
  assert_non_null (ids);
  for (i = 0; i < 4; i++)
    assert_int_equal (pthread_create (&threads[i], NULL, make_many,
                                      ids + i * PER_THREAD), 0);
  for (i = 0; i < 4; i++) {
    pthread_join (threads[i], &result);
    assert_non_null (result);
  }
  qsort (ids, 4 * PER_THREAD, sizeof *ids, compare);
  for (i = 1; i < 4 * PER_THREAD; i++)
    assert_string_not_equal (ids[i - 1], ids[i]);
  free (ids);
}

static void
test_the_grammar_is_strict (void **state)
{
  static const char *const wrong[] = {
    "", "sb-", "sb-0123456789abcdefghjkmnpqr", "sb-0123456789abcdefghjkmnpqrst",
    "sb-0123456789abcdefghjkmnpqi", "SB-0123456789abcdefghjkmnpqrs",
    "sb-0123456789ABCDEFGHJKMNPQRS", "sb_0123456789abcdefghjkmnpqrs",
    "../../etc/passwd", "sb-../../../../../../etc/pa",
    "sb-0123456789abcdefghjkmnpqr/", "sb-0123456789abcdefghjkmnpqr\n",
  };
  size_t i;

  (void) state;
  assert_true (sandbox_id_valid ("sb-0123456789abcdefghjkmnpqrs"));
  assert_false (sandbox_id_valid (NULL));
  for (i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
    if (sandbox_id_valid (wrong[i]))
      fail_msg ("taken for an id: %s", wrong[i]);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_a_million_are_unique_sorted_and_valid),
    cmocka_unit_test (test_the_time_is_in_it),
    cmocka_unit_test (test_a_forked_child_makes_others),
    cmocka_unit_test (test_threads_never_make_the_same),
    cmocka_unit_test (test_the_grammar_is_strict),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
