/* SPDX-License-Identifier: Apache-2.0 */
/* core/base/text.c and number.c. */

#include <config.h>

#include "harness.h"

#include "base/text.h"

static void
check_escape (const char *bytes, size_t size, const char *wanted)
{
  char *text = text_escape (bytes, size);

  assert_string_equal (text, wanted);
  free (text);
}

static void
utf8_refuses_what_is_not_the_shortest_form (void **state)
{
  (void) state;
  assert_true (text_is_utf8 (VECTOR_BODY, strlen (VECTOR_BODY)));
  assert_true (text_is_utf8 ("\xf4\x8f\xbf\xbf", 4));
  assert_false (text_is_utf8 ("\xf4\x90\x80\x80", 4));
  assert_false (text_is_utf8 ("\xc0\x80", 2));
  assert_false (text_is_utf8 ("\xe0\x80\xaf", 3));
  assert_false (text_is_utf8 ("\xed\xa0\x80", 3));
  assert_false (text_is_utf8 ("\xe2\x98", 2));
  assert_false (text_is_utf8 ("a\x80", 2));
}

static void
escape_shows_what_would_act_on_a_terminal (void **state)
{
  (void) state;
  check_escape (VECTOR_NAME, strlen (VECTOR_NAME), VECTOR_NAME);
  check_escape (VECTOR_BODY, strlen (VECTOR_BODY), "café\\n☃\\n");
  check_escape ("\x1b[31m\t\x7f", 7, "\\x1b[31m\\t\\x7f");
  check_escape ("a\xff\0b", 4, "a\\xff\\x00b");
  check_escape ("\xe2\x80\xae" "x", 4, "\\u{202e}x");
  check_escape ("\xc2\x9b", 2, "\\u{9b}");
}

static void
nearest_finds_slips_and_not_strangers (void **state)
{
  static const char *const words[]
    = { "permissions", "provider", "exec", "id", NULL };

  (void) state;
  assert_string_equal (text_nearest ("permisions", words), "permissions");
  assert_string_equal (text_nearest ("provdier", words), "provider");
  assert_string_equal (text_nearest ("ixec", words), "exec");
  assert_null (text_nearest ("sandbox", words));
  assert_null (text_nearest ("", (const char *const[]){ NULL }));
}

static void
id_is_the_one_grammar (void **state)
{
  (void) state;
  assert_true (text_is_id ("linux"));
  assert_true (text_is_id ("e2b-eu-1"));
  assert_true (text_is_id ("a2345678901234567890123456789012"));
  assert_false (text_is_id ("a23456789012345678901234567890123"));
  assert_false (text_is_id (""));
  assert_false (text_is_id ("2e"));
  assert_false (text_is_id ("../x"));
  assert_false (text_is_id ("Linux"));
}

static void
sizes_take_suffixes_and_never_wrap (void **state)
{
  uint64_t n = 7;

  (void) state;
  assert_int_equal (text_parse_size ("512", &n), 0);
  assert_int_equal (n, 512);
  assert_int_equal (text_parse_size ("64MiB", &n), 0);
  assert_int_equal (n, 64 << 20);
  assert_int_equal (text_parse_size ("1.5G", &n), 0);
  assert_int_equal (n, 3ull << 29);
  n = 7;
  assert_int_equal (text_parse_size ("8388608T", &n), -1);
  assert_int_equal (text_parse_size ("18446744073709551616", &n), -1);
  assert_int_equal (text_parse_size ("9223372036854775808", &n), -1);
  assert_int_equal (text_parse_size ("17179869185G", &n), -1);
  assert_int_equal (text_parse_size ("-1", &n), -1);
  assert_int_equal (text_parse_size ("1.5", &n), -1);
  assert_int_equal (text_parse_size ("1 M", &n), -1);
  assert_int_equal (text_parse_size ("", &n), -1);
  assert_int_equal (text_parse_size ("0x10", &n), -1);
  assert_int_equal (n, 7);
}

static void
durations_are_milliseconds (void **state)
{
  uint64_t n = 7;

  (void) state;
  assert_int_equal (text_parse_duration ("30", &n), 0);
  assert_int_equal (n, 30000);
  assert_int_equal (text_parse_duration ("500ms", &n), 0);
  assert_int_equal (n, 500);
  assert_int_equal (text_parse_duration ("1.5h", &n), 0);
  assert_int_equal (n, 5400000);
  assert_int_equal (text_parse_duration ("0.5ms", &n), -1);
  assert_int_equal (text_parse_duration ("9999999999999999d", &n), -1);
  assert_int_equal (text_parse_duration ("1h30m", &n), -1);
}

static void
numbers_keep_their_bounds (void **state)
{
  uint64_t n = 7;

  (void) state;
  assert_int_equal (text_parse_u64 ("18446744073709551615", 0, UINT64_MAX,
                                    &n), 0);
  assert_true (n == UINT64_MAX);
  assert_int_equal (text_parse_u64 ("18446744073709551616", 0, UINT64_MAX,
                                    &n), -1);
  assert_int_equal (text_parse_u64 ("4", 5, 9, &n), -1);
  assert_int_equal (text_parse_u64 ("10", 5, 9, &n), -1);
  assert_int_equal (text_parse_u64 ("+5", 5, 9, &n), -1);
  assert_true (n == UINT64_MAX);
}

static void
check_text (char *text, const char *wanted)
{
  assert_string_equal (text, wanted);
  free (text);
}

static void
tables_read_well (void **state)
{
  (void) state;
  check_text (text_format_size (0), "0 B");
  check_text (text_format_size (1023), "1023 B");
  check_text (text_format_size (64 << 20), "64.0 MiB");
  check_text (text_format_size ((1 << 20) - 1), "1.0 MiB");
  check_text (text_format_size (UINT64_MAX), "16.0 EiB");
  check_text (text_format_duration (0), "0s");
  check_text (text_format_duration (250), "250ms");
  check_text (text_format_duration (3780000), "1h 3m");
  check_text (text_format_duration (90061000), "1d 1h");
  setenv ("TZ", "UTC", 1);
  check_text (text_format_time (1769860800000000000), "2026-01-31 12:00:00");
}

static void
base64_goes_both_ways_and_has_one_form (void **state)
{
  static const char bytes[] = "\0\xff" VECTOR_BODY;

  (void) state;
  for (size_t n = 0; n <= sizeof bytes; n++) {
    char *text = text_base64_encode (bytes, n);
    char *back;
    size_t size;

    assert_int_equal (text_base64_decode (text, &back, &size), 0);
    assert_int_equal (size, n);
    assert_memory_equal (back, bytes, n);
    free (text);
    free (back);
  }
}

static void
base64_refuses_what_is_malformed (void **state)
{
  static const char *const bad[] = { "A", "AA", "AAA", "====", "A===", "AB==",
                                     "AAB=", "AA==AAAA", "A A=", "AAA\n",
                                     "AA=A", NULL };
  char *bytes;
  size_t size;

  (void) state;
  for (size_t i = 0; bad[i]; i++)
    assert_int_equal (text_base64_decode (bad[i], &bytes, &size), -1);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (utf8_refuses_what_is_not_the_shortest_form),
    cmocka_unit_test (escape_shows_what_would_act_on_a_terminal),
    cmocka_unit_test (nearest_finds_slips_and_not_strangers),
    cmocka_unit_test (id_is_the_one_grammar),
    cmocka_unit_test (sizes_take_suffixes_and_never_wrap),
    cmocka_unit_test (durations_are_milliseconds),
    cmocka_unit_test (numbers_keep_their_bounds),
    cmocka_unit_test (tables_read_well),
    cmocka_unit_test (base64_goes_both_ways_and_has_one_form),
    cmocka_unit_test (base64_refuses_what_is_malformed),
  };

  return cmocka_run_group_tests_name ("text", tests, NULL, NULL);
}
