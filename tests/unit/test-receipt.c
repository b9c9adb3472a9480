/* SPDX-License-Identifier: Apache-2.0 */
/* core/provider/receipt.c: what is written is read back, what is malformed is
 * refused, and writers take turns. */

#include <config.h>

#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>

#include <coffer/fd.h>

#include "base/json.h"
#include "base/text.h"
#include "provider/receipt.h"

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define OTHER "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"

#define WHOLE                                                                 \
  "{\"receipt\":1,\"id\":\"hello\",\"trust\":\"signed\",\"source\":{\"kind\":" \
  "\"git\",\"location\":\"https://example.org/你好 世界/'q\\\".git\","          \
  "\"ref\":\"v1\",\"commit\":\"4a5b\",\"subdir\":\"a/b\",\"sha256\":\"" HASH     \
  "\"},\"manifest_sha256\":\"" HASH "\",\"modules\":[{\"arch\":\"x86_64\","      \
  "\"file\":\"hello.so\",\"sha256\":\"" OTHER "\"}],\"files\":[{\"name\":"       \
  "\"data\",\"sha256\":\"" HASH "\"}],\"installed\":\"2026-11-30T04:05:06Z\","   \
  "\"signature\":{\"key_id\":\"RW1\",\"comment\":\"café ☃\"},"                  \
  "\"conformance\":{\"verdict\":\"conformant\",\"report\":"                      \
  "\"conformance.json\",\"report_sha256\":\"" HASH "\",\"manifest_sha256\":\""   \
  HASH "\",\"module_sha256\":\"" OTHER "\",\"kit\":\"0.1.0\",\"contract\":"      \
  "{\"major\":0,\"minor\":1},\"mode\":\"worker\",\"time\":"                      \
  "\"2026-11-30T04:05:07Z\"}}"

static int
folder (void **state)
{
  int fd = open (*state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

  assert_true (fd >= 0);
  return fd;
}

static void
put (int dir, const char *text)
{
  coffer_autoclose int fd
    = openat (dir, RECEIPT_FILE, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
              0644);

  assert_int_equal (coffer_write_all (fd, text, strlen (text)),
                    strlen (text));
}

static void
what_is_written_is_read_back (void **state)
{
  coffer_autoclose int dir = folder (state);
  auto_receipt struct receipt *first = NULL, *second = NULL;
  auto_json json_t *a = NULL, *b = NULL;
  auto_free char *text = NULL;
  struct stat st;

  assert_int_equal (receipt_parse (WHOLE, strlen (WHOLE), &first, NULL), 0);
  assert_int_equal (receipt_write (dir, first, NULL), 0);
  assert_int_equal (receipt_read (dir, &second, NULL), 1);
  a = receipt_to_json (first);
  b = receipt_to_json (second);
  assert_true (json_equal (a, b));
  text = json_text (b);
  assert_string_equal (text, WHOLE);
  assert_int_equal (fstatat (dir, RECEIPT_FILE, &st, 0), 0);
  assert_int_equal (st.st_mode & 0777, 0644);
}

static void
one_by_hand_is_enough (void **state)
{
  coffer_autoclose int dir = folder (state);
  auto_receipt struct receipt *receipt = NULL;

  put (dir, "{\"trust\": \"local\", \"manifest_sha256\": \"" HASH "\"}");
  assert_int_equal (receipt_read (dir, &receipt, NULL), 1);
  assert_string_equal (receipt->trust, "local");
  assert_null (receipt->id);
  assert_null (receipt->source.kind);
  assert_null (receipt->conformance.verdict);
}

static void
none_is_no_failure (void **state)
{
  coffer_autoclose int dir = folder (state);
  auto_receipt struct receipt *receipt = NULL;
  auto_error struct error *err = NULL;

  unlinkat (dir, RECEIPT_FILE, 0);
  assert_int_equal (receipt_read (dir, &receipt, &err), 0);
  assert_null (receipt);
  assert_null (err);
}

static void
what_is_malformed_is_refused (void **state)
{
  static const char *const bad[] = {
    "", "[]", "1", "{\"trust\":\"local\"}",
    "{\"manifest_sha256\":\"" HASH "\"}",
    "{\"trust\":\"packaged\",\"manifest_sha256\":\"" HASH "\"}",
    "{\"trust\":\"local\",\"manifest_sha256\":\"xyz\"}",
    "{\"trust\":\"local\",\"trust\":\"signed\",\"manifest_sha256\":\"" HASH
    "\"}",
    "{\"receipt\":2,\"trust\":\"local\",\"manifest_sha256\":\"" HASH "\"}",
    "{\"receipt\":\"1\",\"trust\":\"local\",\"manifest_sha256\":\"" HASH "\"}",
    "{\"trust\":\"local\",\"manifest_sha256\":\"" HASH "\",\"id\":\"a\\nb\"}",
    "{\"trust\":\"local\",\"manifest_sha256\":\"" HASH "\",\"source\":{}}",
    "{\"trust\":\"local\",\"manifest_sha256\":\"" HASH
    "\",\"source\":{\"kind\":\"ftp\",\"location\":\"x\"}}",
    "{\"trust\":\"local\",\"manifest_sha256\":\"" HASH
    "\",\"files\":[{\"name\":\"../x\",\"sha256\":\"" HASH "\"}]}",
    "{\"trust\":\"local\",\"manifest_sha256\":\"" HASH "\",\"files\":[3]}",
    "{\"trust\":\"local\",\"manifest_sha256\":\"" HASH "\",\"modules\":{}}",
    "{\"trust\":\"local\",\"manifest_sha256\":\"" HASH
    "\",\"conformance\":{\"verdict\":\"splendid\"}}",
    "{\"trust\":\"local\",\"manifest_sha256\":\"" HASH
    "\",\"conformance\":{\"verdict\":\"failed\",\"contract\":{\"major\":-1}}}",
    "{\"trust\":\"local\",\"manifest_sha256\":\"" HASH
    "\",\"signature\":{\"comment\":\"no key\"}}",
  };
  coffer_autoclose int dir = folder (state);
  size_t i;

  for (i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    auto_receipt struct receipt *receipt = NULL;
    auto_error struct error *err = NULL;

    put (dir, bad[i]);
    if (receipt_read (dir, &receipt, &err) != -1)
      fail_msg ("it was taken: %s", bad[i]);
    assert_int_equal (err->number, E_INTEGRITY);
    assert_null (receipt);
    assert_int_equal (receipt_read (dir, &receipt, NULL), -1);
  }
}

static void
what_others_may_write_is_refused (void **state)
{
  coffer_autoclose int dir = folder (state);
  auto_receipt struct receipt *receipt = NULL;
  auto_error struct error *err = NULL;

  put (dir, WHOLE);
  assert_int_equal (fchmodat (dir, RECEIPT_FILE, 0666, 0), 0);
  assert_int_equal (receipt_read (dir, &receipt, &err), -1);
  assert_int_equal (err->number, E_UNSAFE_FILE);
  unlinkat (dir, RECEIPT_FILE, 0);
}

static void
conformance_changes_alone (void **state)
{
  const struct receipt_conformance found = {
    .verdict = (char *) "failed", .report = (char *) "conformance.json",
    .report_sha256 = OTHER, .kit = (char *) "0.2.0", .contract_minor = 7,
    .mode = (char *) "worker", .time = (char *) "2027-01-01T00:00:00Z"
  };
  coffer_autoclose int dir = folder (state);
  auto_receipt struct receipt *receipt = NULL;
  auto_error struct error *err = NULL;

  unlinkat (dir, RECEIPT_FILE, 0);
  assert_int_equal (receipt_set_conformance (dir, NULL, &found, &err), -1);
  assert_int_equal (err->number, E_NOT_FOUND);
  put (dir, WHOLE);
  assert_int_equal (receipt_set_conformance (dir, "{}", &found, NULL), 0);
  assert_int_equal (receipt_read (dir, &receipt, NULL), 1);
  assert_string_equal (receipt->conformance.verdict, "failed");
  assert_string_equal (receipt->conformance.report_sha256, OTHER);
  assert_int_equal (receipt->conformance.contract_minor, 7);
  assert_string_equal (receipt->source.ref, "v1");
  assert_string_equal (receipt->signature.comment, "café ☃");
}

/* The child holds the lock until it is let go: nobody gets it before. */
static void
writers_take_turns (void **state)
{
  coffer_autoclose int dir = folder (state), lock = -1;
  int ends[2];
  pid_t child;
  char byte;

  assert_int_equal (pipe2 (ends, O_CLOEXEC), 0);
  lock = receipt_lock (dir, NULL);
  assert_true (lock >= 0);
  child = fork ();
  assert_true (child >= 0);
  if (child == 0) {
    coffer_fd_close (&lock);
    lock = receipt_lock (dir, NULL);
    _exit (lock >= 0 && write (ends[1], "x", 1) == 1 ? 0 : 1);
  }
  assert_int_equal (coffer_wait_fd (ends[0], 1, coffer_now_ns () + 100000000,
                                    -1), 0);
  coffer_fd_close (&lock);
  assert_int_equal (read (ends[0], &byte, 1), 1);
  assert_int_equal (waitpid (child, NULL, 0), child);
  coffer_fd_close (&ends[0]);
  coffer_fd_close (&ends[1]);
}

static void
a_location_names_nobody (void **state)
{
  static const char *const pairs[][2] = {
    { "https://user:key@example.org/a@b?c", "https://example.org/a@b?c" },
    { "https://a@b@example.org", "https://example.org" },
    { "https://example.org/u@v", "https://example.org/u@v" },
    { "/tmp/a@b", "/tmp/a@b" },
    { "git+https://token@h:8443/x.git", "git+https://h:8443/x.git" },
  };
  size_t i;

  (void) state;
  for (i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
    auto_free char *found = receipt_location (pairs[i][0]);

    assert_string_equal (found, pairs[i][1]);
  }
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (what_is_written_is_read_back),
    cmocka_unit_test (one_by_hand_is_enough),
    cmocka_unit_test (none_is_no_failure),
    cmocka_unit_test (what_is_malformed_is_refused),
    cmocka_unit_test (what_others_may_write_is_refused),
    cmocka_unit_test (conformance_changes_alone),
    cmocka_unit_test (writers_take_turns),
    cmocka_unit_test (a_location_names_nobody),
  };

  return cmocka_run_group_tests (tests, harness_folder_new,
                                 harness_folder_free);
}
