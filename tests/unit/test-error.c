/* SPDX-License-Identifier: Apache-2.0 */
/* core/base/error.c, json.c, sha256.c and log.c. */

#include <config.h>

#include "harness.h"

#include <errno.h>
#include <fcntl.h>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/sha256.h"
#include "base/text.h"

static void
table_is_sorted_and_every_row_is_whole (void **state)
{
  static const int statuses[] = { 1, 2, 3, 4, 5 };
  const struct error_info *rows;
  size_t count;

  (void) state;
  rows = error_table (&count);
  assert_true (count > 40);
  for (size_t i = 0; i < count; i++) {
    int known = 0;

    for (size_t j = 0; j < sizeof statuses / sizeof *statuses; j++)
      known |= rows[i].exit_status == statuses[j];
    assert_true (known);
    assert_true (i == 0 || rows[i - 1].number < rows[i].number);
    assert_true (rows[i].number >= 1000 && rows[i].number <= 9999);
    assert_true (rows[i].http_status >= 400 && rows[i].http_status < 600);
    assert_true (*rows[i].meaning && *rows[i].todo);
    assert_ptr_equal (error_lookup (rows[i].number), &rows[i]);
  }
  assert_null (error_lookup (0));
}

static void
error_keeps_number_reason_and_context (void **state)
{
  auto_error struct error *err = NULL;

  (void) state;
  assert_int_equal (error_set (&err, E_IO, ENOENT, "open %s", "a\nb"), -1);
  assert_int_equal (error_wrap (&err, "manifest %s", "x"), -1);
  assert_int_equal (err->number, E_IO);
  assert_int_equal (err->sys_errno, ENOENT);
  assert_string_equal (error_message (err),
                       "manifest x: open a b: No such file or directory");
  assert_string_equal (error_next_step (err), error_lookup (E_IO)->todo);
  error_hint (&err, "do %d", 1);
  assert_string_equal (error_next_step (err), "do 1");
}

static void
the_tables_hint_names_whose_it_is (void **state)
{
  auto_error struct error *err = NULL;

  (void) state;
  error_set (&err, E_CAPABILITY, 0, "x");
  error_hint_id (&err, "linux");
  assert_string_equal (error_next_step (err), "coffer provider info linux "
                       "lists what the provider claims");
  error_set (&err, E_USAGE, 0, "x");
  error_hint_id (&err, "linux");
  assert_string_equal (error_next_step (err), error_lookup (E_USAGE)->todo);
  error_hint_id (NULL, "linux");
}

static void
a_long_message_is_shortened_in_its_middle (void **state)
{
  auto_error struct error *err = NULL;
  enum { LONG = 100000 };
  char *text = malloc (2 * LONG + 1);
  const char *message;
  size_t i;

  (void) state;
  assert_non_null (text);
  for (i = 0; i < LONG; i++)
    memcpy (text + 2 * i, "é", 2);
  text[2 * LONG] = '\0';
  for (i = 0; i < 2; i++) {
    error_set (&err, E_INVALID, 0, "a %s is not a size", text + i);
    message = error_message (err);
    assert_in_range (strlen (message), 4096, 8192);
    assert_int_equal (strncmp (message, "a ", 2), 0);
    assert_non_null (strstr (message, "…"));
    assert_string_equal (message + strlen (message) - 14, " is not a size");
  }
  error_set (&err, E_INVALID, 0, "a %s is not a size", text);
  assert_true (text_is_utf8 (error_message (err),
                             strlen (error_message (err))));
  free (text);
}

static void
error_of_nobody_is_only_its_return (void **state)
{
  (void) state;
  assert_int_equal (error_set (NULL, E_IO, 0, "x"), -1);
  assert_int_equal (error_wrap (NULL, "x"), -1);
  error_hint (NULL, "x");
  error_detail (NULL, "x", json_integer (1));
  assert_int_equal (error_move (NULL, NULL), -1);
}

static void
error_set_again_and_moved_frees_the_first (void **state)
{
  auto_error struct error *err = NULL;
  struct error *other = NULL;

  (void) state;
  error_set (&err, E_IO, 0, "first");
  error_set (&err, E_USAGE, 0, "second");
  assert_string_equal (error_message (err), "second");
  error_set (&other, E_BUSY, 0, "third");
  assert_int_equal (error_move (&err, other), -1);
  assert_int_equal (err->number, E_BUSY);
}

static void
error_as_json_survives_bytes_that_are_not_utf8 (void **state)
{
  auto_error struct error *err = NULL;
  auto_json json_t *json = NULL;
  json_t *inner;

  (void) state;
  error_set (&err, E_INTEGRITY, 0, "file \xff%s", VECTOR_NAME);
  error_detail (&err, "file", json_string ("x"));
  json = error_to_json (err);
  inner = json_object_get (json, "error");
  assert_string_equal (json_string_value (json_object_get (inner, "code")),
                       "E8006");
  assert_string_equal (json_string_value (json_object_get (inner, "message")),
                       "file \\xff" VECTOR_NAME);
  assert_string_equal (json_string_value (json_object_get (inner,
                                                           "retryable")),
                       "no");
  assert_string_equal (json_string_value (json_object_get (
                         json_object_get (inner, "details"), "file")), "x");
}

static void
check_not_json (const char *text, const char *part)
{
  auto_error struct error *err = NULL;
  json_t *json = NULL;

  assert_int_equal (json_parse (text, strlen (text), &json, &err), -1);
  assert_null (json);
  assert_int_equal (err->number, E_INVALID);
  assert_non_null (strstr (error_message (err), part));
}

static void
json_parse_is_strict (void **state)
{
  auto_json json_t *json = NULL;
  auto_error struct error *err = NULL;
  char deep[80];

  (void) state;
  check_not_json ("{\"a\":1,\"a\":2}", "duplicate");
  check_not_json ("1 2", "end of file");
  check_not_json ("\"\\u0000\"", "\\u0000");
  check_not_json ("\"\xff\"", "unable to decode byte 0xff");
  memset (deep, '[', 33);
  memset (deep + 33, ']', 33);
  deep[66] = '\0';
  check_not_json (deep, "nested too deep");
  assert_int_equal (json_parse (deep + 1, 64, &json, &err), 0);
}

static void
json_bytes_and_numbers_are_exact (void **state)
{
  static const uint64_t numbers[] = { 0, 1ull << 53, (1ull << 53) + 1,
                                      UINT64_MAX };
  auto_json json_t *text = json_bytes (VECTOR_BODY, strlen (VECTOR_BODY));
  auto_json json_t *bytes = json_bytes ("\xff\0", 2);
  auto_json json_t *none = json_bytes (NULL, 0);

  (void) state;
  assert_string_equal (json_string_value (text), VECTOR_BODY);
  assert_string_equal (json_string_value (json_object_get (bytes, "b64")),
                       "/wA=");
  assert_true (json_is_null (none));
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    auto_json json_t *json = json_u64 (numbers[i]);
    uint64_t back;

    assert_int_equal (json_is_string (json), numbers[i] > 1ull << 53);
    assert_int_equal (json_get_u64 (json, &back), 0);
    assert_true (back == numbers[i]);
  }
}

static void
sha256_agrees_with_the_standard (void **state)
{
  char hex[SHA256_HEX_SIZE];
  SHA2_CTX context;

  (void) state;
  sha256_hex ("", 0, hex);
  assert_string_equal (hex, "e3b0c44298fc1c149afbf4c8996fb924"
                            "27ae41e4649b934ca495991b7852b855");
  sha256_begin (&context);
  sha256_add (&context, "a", 1);
  sha256_add (&context, "bc", 2);
  sha256_end (&context, hex);
  assert_string_equal (hex, "ba7816bf8f01cfea414140de5dae2223"
                            "b00361a396177a9cb410ff61f20015ad");
  assert_true (sha256_is_hex (hex));
  hex[0] = 'B';
  assert_false (sha256_is_hex (hex));
  assert_false (sha256_is_hex (hex + 1));
  assert_false (sha256_is_hex (NULL));
}

/* What log_event writes to stderr; the caller frees. */
static char *
logged (void)
{
  char path[] = "/tmp/coffer-unit-XXXXXX";
  int file = mkostemp (path, O_CLOEXEC);
  int saved = fcntl (STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
  char *text = calloc (1, 4096);

  unlink (path);
  dup2 (file, STDERR_FILENO);
  errno = EXDEV;
  log_event (LOG_LEVEL_WARNING, "worker", "said \x1b[0m%s", "a\nb");
  log_event (LOG_LEVEL_DEBUG, "worker", "quiet");
  log_event (LOG_LEVEL_DEBUG, "channel", "chatter");
  assert_int_equal (errno, EXDEV);
  dup2 (saved, STDERR_FILENO);
  assert_true (pread (file, text, 4095, 0) > 0);
  close (saved);
  close (file);
  return text;
}

static void
log_is_one_escaped_line_and_keeps_errno (void **state)
{
  char *text = logged ();

  (void) state;
  assert_string_equal (text, "coffer: warning: worker: said \\x1b[0ma\\nb\n");
  free (text);
  log_configure ("debug:channel,dispatch");
  text = logged ();
  assert_null (strstr (text, "quiet"));
  assert_non_null (strstr (text, "debug: channel: chatter"));
  free (text);
  log_configure ("warning");
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (table_is_sorted_and_every_row_is_whole),
    cmocka_unit_test (error_keeps_number_reason_and_context),
    cmocka_unit_test (the_tables_hint_names_whose_it_is),
    cmocka_unit_test (a_long_message_is_shortened_in_its_middle),
    cmocka_unit_test (error_of_nobody_is_only_its_return),
    cmocka_unit_test (error_set_again_and_moved_frees_the_first),
    cmocka_unit_test (error_as_json_survives_bytes_that_are_not_utf8),
    cmocka_unit_test (json_parse_is_strict),
    cmocka_unit_test (json_bytes_and_numbers_are_exact),
    cmocka_unit_test (sha256_agrees_with_the_standard),
    cmocka_unit_test (log_is_one_escaped_line_and_keeps_errno),
  };

  return cmocka_run_group_tests_name ("error", tests, NULL, NULL);
}
