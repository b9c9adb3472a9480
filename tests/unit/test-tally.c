/* SPDX-License-Identifier: Apache-2.0 */
/* core/sandbox/tally.c: what is copied is counted and hashed whole and in its
 * order, whether a thread helps or not. */

#include <config.h>

#include "harness.h"

#include "sandbox/tally.h"

#define MIB (1 << 20)

/* No two chunks of it are the same. */
static char *
bytes_new (size_t size)
{
  uint32_t *words = malloc (size + sizeof *words), state = 1;
  size_t i;

  assert_non_null (words);
  for (i = 0; i <= size / sizeof *words; i++) {
    state = state * 1664525 + 1013904223;
    words[i] = state;
  }
  return (char *) words;
}

static void
copy_in (struct tally *tally, const char *bytes, size_t size, size_t piece)
{
  size_t done, part;
  const char *added;
  char *room;

  for (done = 0; done < size; done += part) {
    part = size - done < piece ? size - done : piece;
    room = tally_room (tally);
    assert_ptr_equal (tally_room (tally), room);
    memcpy (room, bytes + done, part);
    added = tally_add (tally, part);
    assert_memory_equal (added, bytes + done, part);
  }
}

static void
assert_hashed (const char *bytes, size_t size, size_t piece)
{
  auto_tally struct tally tally = { 0 };
  char hash[SHA256_HEX_SIZE];

  sha256_hex (bytes, size, hash);
  assert_int_equal (tally_begin (&tally, NULL), 0);
  copy_in (&tally, bytes, size, piece);
  tally_end (&tally);
  assert_int_equal (tally.size, size);
  assert_string_equal (tally.sha256, hash);
}

static void
short_and_long_copies_have_the_hash_of_their_bytes (void **state)
{
  static const size_t sizes[] = { 0, 1, TALLY_CHUNK, 4 * MIB - 1, 4 * MIB,
                                  4 * MIB + 1, 13 * MIB + 12345 };
  char *bytes = bytes_new (14 * MIB);
  size_t i;

  (void) state;
  for (i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    assert_hashed (bytes, sizes[i], TALLY_CHUNK);
    assert_hashed (bytes, sizes[i], 70001);
  }
  free (bytes);
}

static void
keep (void *data, const char *bytes, size_t size)
{
  char **at = data;

  memcpy (*at, bytes, size);
  *at += size;
}

static void
other_work_sees_all_bytes_in_their_order (void **state)
{
  const size_t size = 9 * MIB + 17;
  char *bytes = bytes_new (size), *kept = malloc (size), *at = kept;
  auto_tally struct tally tally = { 0 };

  (void) state;
  assert_non_null (kept);
  assert_int_equal (tally_begin_with (&tally, keep, &at, NULL), 0);
  copy_in (&tally, bytes, size, 100000);
  tally_end (&tally);
  assert_ptr_equal (at, kept + size);
  assert_memory_equal (kept, bytes, size);
  assert_string_equal (tally.sha256, "");
  free (kept);
  free (bytes);
}

static void
what_is_only_counted_has_no_hash (void **state)
{
  char *bytes = bytes_new (5 * MIB);
  auto_tally struct tally tally = { 0 };

  (void) state;
  assert_int_equal (tally_begin_with (&tally, NULL, NULL, NULL), 0);
  copy_in (&tally, bytes, 5 * MIB, TALLY_CHUNK);
  tally_end (&tally);
  assert_int_equal (tally.size, 5 * MIB);
  assert_string_equal (tally.sha256, "");
  free (bytes);
}

/* Given up at any moment, also with a buffer in hand: nothing is left (the
 * sanitizers see it). */
static void
what_is_given_up_ends_its_thread (void **state)
{
  char *bytes = bytes_new (6 * MIB);
  size_t size;

  (void) state;
  for (size = 0; size <= 6 * MIB; size += MIB) {
    auto_tally struct tally tally = { 0 };

    assert_int_equal (tally_begin (&tally, NULL), 0);
    copy_in (&tally, bytes, size, TALLY_CHUNK);
    if (size % (2 * MIB) == 0)
      tally_room (&tally);
  }
  free (bytes);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (short_and_long_copies_have_the_hash_of_their_bytes),
    cmocka_unit_test (other_work_sees_all_bytes_in_their_order),
    cmocka_unit_test (what_is_only_counted_has_no_hash),
    cmocka_unit_test (what_is_given_up_ends_its_thread),
  };

  return cmocka_run_group_tests_name ("tally", tests, NULL, NULL);
}
