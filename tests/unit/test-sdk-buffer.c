/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/lib/buffer.c: what is added is there, what failed stays failed. */

#define _GNU_SOURCE

#include "harness.h"

#include <errno.h>

#include <coffer/buffer.h>

static void
buffer_holds_any_bytes_and_ends_in_nul (void **state)
{
  coffer_autobuffer struct coffer_buffer b = {0};

  (void) state;
  coffer_buffer_add (&b, "a\0b", 3);
  coffer_buffer_add_string (&b, VECTOR_BODY);
  coffer_buffer_printf (&b, "%d-%s", 42, "x");
  assert_false (b.failed);
  assert_int_equal (b.size, 3 + strlen (VECTOR_BODY) + 4);
  assert_memory_equal (b.data, "a\0b" VECTOR_BODY "42-x", b.size + 1);
}

static void
buffer_grows_past_every_power_of_two (void **state)
{
  coffer_autobuffer struct coffer_buffer b = {0};

  (void) state;
  for (int i = 0; i < 100000; i++)
    coffer_buffer_add (&b, &(char) {(char) i}, 1);
  assert_false (b.failed);
  assert_int_equal (b.size, 100000);
  for (int i = 0; i < 100000; i++)
    if (b.data[i] != (char) i)
      fail_msg ("byte %d is wrong", i);
}

static void
buffer_failure_is_sticky_until_it_is_stolen (void **state)
{
  coffer_autobuffer struct coffer_buffer b = {0};

  (void) state;
  coffer_buffer_add_string (&b, "kept");
  coffer_buffer_add (&b, "x", SIZE_MAX - 2);
  assert_true (b.failed);
  coffer_buffer_add_string (&b, "more");
  assert_int_equal (b.size, 4);
  coffer_buffer_clear (&b);
  assert_true (b.failed);
  errno = 0;
  assert_null (coffer_buffer_steal (&b));
  assert_int_equal (errno, ENOMEM);
  assert_false (b.failed);
  coffer_buffer_add_string (&b, "again");
  assert_string_equal (b.data, "again");
}

static void
buffer_stolen_when_empty_is_an_empty_string (void **state)
{
  struct coffer_buffer b = {0};
  char *s;

  (void) state;
  s = coffer_buffer_steal (&b);
  assert_non_null (s);
  assert_string_equal (s, "");
  assert_null (b.data);
  free (s);
}

static void
strings_are_a_terminated_vector (void **state)
{
  coffer_autostrings struct coffer_strings v = {0};
  char want[16];

  (void) state;
  assert_non_null (coffer_strings_view (&v));
  assert_null (coffer_strings_view (&v)[0]);
  for (int i = 0; i < 100; i++)
    coffer_strings_printf (&v, "n%d", i);
  coffer_strings_add (&v, VECTOR_NAME);
  assert_false (v.failed);
  assert_int_equal (v.count, 101);
  for (int i = 0; i < 100; i++) {
    snprintf (want, sizeof want, "n%d", i);
    assert_string_equal (coffer_strings_view (&v)[i], want);
  }
  assert_string_equal (v.items[100], VECTOR_NAME);
  assert_null (v.items[101]);
}

static void
free_keeps_errno (void **state)
{
  struct coffer_buffer b = {0};
  struct coffer_strings v = {0};

  (void) state;
  coffer_buffer_add_string (&b, "x");
  coffer_strings_add (&v, "x");
  errno = EXDEV;
  coffer_buffer_free (&b);
  coffer_strings_free (&v);
  assert_int_equal (errno, EXDEV);
}

static void
escaped_text_keeps_what_is_safe_and_no_other (void **state)
{
  coffer_autobuffer struct coffer_buffer text = { 0 };
  uint32_t point = 0;

  (void) state;
  coffer_buffer_add_string (&text, "<");
  coffer_buffer_add_escaped (&text, VECTOR_BODY VECTOR_NAME, sizeof VECTOR_BODY
                             + sizeof VECTOR_NAME - 2);
  coffer_buffer_add_escaped (&text, "\0\x1b[0m\xe2\x80\xae\xff\xc0\x80", 11);
  coffer_buffer_add_escaped (&text, "", 0);
  assert_string_equal (text.data, "<café\\n☃\\n" VECTOR_NAME "\\x00\\x1b[0m"
                       "\\u{202e}\\xff\\xc0\\x80");
  assert_int_equal (coffer_utf8_decode ("☃", 3, &point), 3);
  assert_int_equal (point, 0x2603);
  assert_int_equal (coffer_utf8_decode ("☃", 2, &point), 0);
  assert_int_equal (coffer_utf8_decode ("\xed\xa0\x80", 3, &point), 0);
  assert_int_equal (coffer_utf8_decode ("", 0, &point), 0);
}

static void
strings_one_after_the_other_are_split_again (void **state)
{
  static const char *const v[] = {"a", "", VECTOR_NAME, "\xff", NULL};
  coffer_autobuffer struct coffer_buffer b = {0};
  const char *at, *end, **split;

  (void) state;
  assert_int_equal (coffer_buffer_add_vector (&b, NULL), 0);
  assert_int_equal (coffer_buffer_add_vector (&b, v), 4);
  coffer_buffer_add (&b, "cut", 3);     /* without its NUL */
  at = b.data;
  end = b.data + b.size;
  split = coffer_strings_split (&at, end, 3);
  assert_non_null (split);
  for (int i = 0; i < 3; i++)
    assert_string_equal (split[i], v[i]);
  assert_null (split[3]);
  free (split);
  assert_string_equal (coffer_strings_next (&at, end), "\xff");
  assert_null (coffer_strings_next (&at, end));
  assert_int_equal (end - at, 3);
}

/* No number that a peer writes costs more than its bytes. */
static void
counts_beyond_the_bytes_are_refused (void **state)
{
  const char bytes[] = "a\0b";
  const char *at = bytes, *end = bytes + sizeof bytes, **none;

  (void) state;
  assert_null (coffer_strings_split (&at, end, 3));
  assert_int_equal (errno, EPROTO);
  assert_null (coffer_strings_split (&at, end, SIZE_MAX));
  assert_int_equal (errno, EPROTO);
  assert_null (coffer_strings_split (&at, end, UINT32_MAX));
  assert_ptr_equal (at, bytes); /* moves on success only */
  none = coffer_strings_split (&at, at, 0);
  assert_non_null (none);
  assert_null (none[0]);
  free (none);
  assert_null (coffer_strings_next (&end, end));
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (escaped_text_keeps_what_is_safe_and_no_other),
    cmocka_unit_test (buffer_holds_any_bytes_and_ends_in_nul),
    cmocka_unit_test (buffer_grows_past_every_power_of_two),
    cmocka_unit_test (buffer_failure_is_sticky_until_it_is_stolen),
    cmocka_unit_test (buffer_stolen_when_empty_is_an_empty_string),
    cmocka_unit_test (strings_are_a_terminated_vector),
    cmocka_unit_test (free_keeps_errno),
    cmocka_unit_test (strings_one_after_the_other_are_split_again),
    cmocka_unit_test (counts_beyond_the_bytes_are_refused),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
