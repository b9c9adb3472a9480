/* SPDX-License-Identifier: Apache-2.0 */
/* core/cli/call-values.c, call-streams.c: the words of `coffer call`. */

#include <config.h>

#include "harness.h"

#include <fcntl.h>

#include "base/json.h"
#include "cli/call.h"

/* The arguments as compact JSON, or the error's message. */
static const char *
words_give (const char *op, const char *const *words)
{
  static char text[1024];
  const struct contract_op *row
    = contract_op_by_name (contract_builtin (), op);
  auto_error struct error *err = NULL;
  auto_json json_t *json = NULL;
  auto_free char *dumped = NULL;
  struct call_streams streams;

  assert_non_null (row);
  call_streams_init (&streams);
  if (call_values (row, words, &streams, &json, &err) < 0) {
    snprintf (text, sizeof text, "%s", error_message (err));
  } else {
    dumped = json_text (json);
    snprintf (text, sizeof text, "%s", dumped);
  }
  call_streams_fini (&streams);
  return text;
}

#define GIVE(op, json, ...)                                                   \
  assert_string_equal (words_give (op, (const char *[]){ __VA_ARGS__, NULL }), \
                       json)

static void
values_take_the_type_of_the_table (void **state)
{
  (void) state;
  GIVE ("sandbox_info", "{\"sandbox\":\"12\"}", "sandbox=12");
  GIVE ("sandbox_info", "{\"sandbox\":\"a=b\"}", "sandbox=a=b");
  GIVE ("sandbox_info", "{\"sandbox\":\"\"}", "sandbox=");
  GIVE ("sandbox_info", "{\"sandbox\":{\"b64\":\"/w==\"}}", "sandbox=\xff");
  GIVE ("exec_signal", "{\"signal\":-9}", "signal=-9");
  GIVE ("exec_signal", "signal: wants an integer", "signal=9x");
  GIVE ("exec_signal", "signal: wants an integer", "signal=");
  GIVE ("exec_signal", "signal: wants an integer",
        "signal=99999999999999999999");
  GIVE ("port_dial", "{\"port\":80}", "port=80");
  GIVE ("port_dial", "port: wants a non-negative integer", "port=-80");
  GIVE ("port_dial", "port: wants a non-negative integer", "port=1k");
  GIVE ("snapshot_create", "name: wants UTF-8", "name=\xff");
  GIVE ("exec_start", "{\"opts\":{\"tty\":true}}", "opts.tty=1");
  GIVE ("exec_start", "{\"opts\":{\"tty\":false}}", "opts.tty=no");
  GIVE ("exec_start", "opts.tty: wants 1 or 0", "opts.tty=2");
}

static void
units_in_a_name_allow_suffixes (void **state)
{
  (void) state;
  GIVE ("sandbox_extend", "{\"ttl_ms\":1500}", "ttl_ms=1500");
  GIVE ("sandbox_extend", "{\"ttl_ms\":90000}", "ttl_ms=90s");
  GIVE ("sandbox_extend", "{\"ttl_ms\":\"18446744073709551615\"}",
        "ttl_ms=18446744073709551615");
  GIVE ("sandbox_extend", "ttl_ms: wants a non-negative integer",
        "ttl_ms=18446744073709551616");
  GIVE ("file_read", "{\"opts\":{\"offset_bytes\":65536}}",
        "opts.offset_bytes=64KiB");
}

static void
vectors_grow_and_records_are_set_by_field (void **state)
{
  (void) state;
  GIVE ("exec_start", "{\"argv\":[\"a\",\"b=c\",\"\"]}", "argv=a",
        "argv=b=c", "argv=");
  GIVE ("sandbox_create",
        "{\"spec\":{\"pids\":3,\"env\":[\"A=1\",\"B=2\"]}}", "spec.pids=3",
        "spec.env=A=1", "spec.env=B=2");
  GIVE ("sandbox_create", "{\"spec\":{\"pids\":3}}", "spec={\"pids\":3}");
  GIVE ("sandbox_create",
        "{\"spec\":{\"mounts\":[{\"target\":\"/a\"},{\"target\":\"/b\"}]}}",
        "spec.mounts={\"target\":\"/a\"}",
        "spec.mounts=[{\"target\":\"/b\"}]");
  GIVE ("exec_start", "{\"opts\":{\"rows\":1}}", "opts={\"rows\":1}");
  GIVE ("sandbox_create", "spec.pids: given twice", "spec.pids=1",
        "spec.pids=2");
  GIVE ("sandbox_info", "sandbox.x: sandbox has no fields", "sandbox.x=1");
}

static void
what_is_no_word_is_refused (void **state)
{
  (void) state;
  GIVE ("probe", "\"sandbox\" is not KEY=VALUE", "sandbox");
  GIVE ("probe", "\"=x\" is not KEY=VALUE", "=x");
  GIVE ("probe", "\"\" is not KEY=VALUE", "");
  /* Left for the decoder, which knows the nearest name. */
  GIVE ("sandbox_info", "{\"sandbx\":null}", "sandbx=1");
  GIVE ("exec_start", "{\"opts\":{\"row\":null}}", "opts.row=1");
  assert_non_null (strstr (words_give ("sandbox_create",
                                       (const char *[]){ "spec=x", NULL }),
                           "spec: not JSON: line 1"));
  GIVE ("sandbox_create",
        "spec.lifeline: a descriptor in a record cannot be given here",
        "spec.lifeline=/dev/null");
}

/* The operation is only ever given pipes, never the caller's file. */
static void
files_are_reached_through_pipes (void **state)
{
  const struct contract_op *op
    = contract_op_by_name (contract_builtin (), "exec_start");
  const char *dir = *state, *path = harness_path (dir, "in");
  char in[600], out[600], read_back[64] = "";
  struct call_streams streams;
  auto_json json_t *json = NULL;
  struct stat st;
  FILE *file = fopen (path, "w");

  assert_non_null (file);
  assert_true (fputs (VECTOR_BODY, file) >= 0);
  assert_int_equal (fclose (file), 0);
  snprintf (in, sizeof in, "in=%s", path);
  snprintf (out, sizeof out, "out=%s", harness_path (dir, "out"));
  call_streams_init (&streams);
  assert_int_equal (call_values (op, (const char *[]){ in, out, NULL },
                                 &streams, &json, NULL), 0);
  assert_int_equal (streams.fds.count, 2);
  for (int i = 0; i < 2; i++) {
    assert_int_equal (fstat (streams.fds.fd[i], &st), 0);
    assert_true (S_ISFIFO (st.st_mode));
  }
  assert_int_equal (call_streams_start (&streams, -1, NULL), 0);
  /* An operation that copies its input to its output. */
  for (ssize_t n; (n = read (streams.fds.fd[0], read_back, 64)) > 0;)
    assert_int_equal (write (streams.fds.fd[1], read_back, n), n);
  assert_int_equal (call_streams_finish (&streams, 0, NULL), 0);
  call_streams_fini (&streams);
  file = fopen (harness_path (dir, "out"), "r");
  assert_non_null (file);
  memset (read_back, 0, sizeof read_back);
  assert_true (fread (read_back, 1, sizeof read_back - 1, file) > 0);
  fclose (file);
  assert_string_equal (read_back, VECTOR_BODY);
}

static void
a_failed_call_waits_for_no_stream (void **state)
{
  const struct contract_op *op
    = contract_op_by_name (contract_builtin (), "exec_start");
  const char *dir = *state;
  struct call_streams streams;
  auto_json json_t *json = NULL;
  char in[600];

  /* A pipe without an end, as a terminal would be. */
  snprintf (in, sizeof in, "in=%s", harness_path (dir, "fifo"));
  assert_int_equal (mkfifo (in + 3, 0600), 0);
  int keep = open (in + 3, O_RDWR | O_CLOEXEC);
  assert_true (keep >= 0);
  call_streams_init (&streams);
  assert_int_equal (call_values (op, (const char *[]){ in, NULL }, &streams,
                                 &json, NULL), 0);
  assert_int_equal (call_streams_start (&streams, -1, NULL), 0);
  assert_int_equal (call_streams_finish (&streams, 1, NULL), 0);
  call_streams_fini (&streams);
  close (keep);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (values_take_the_type_of_the_table),
    cmocka_unit_test (units_in_a_name_allow_suffixes),
    cmocka_unit_test (vectors_grow_and_records_are_set_by_field),
    cmocka_unit_test (what_is_no_word_is_refused),
    cmocka_unit_test (files_are_reached_through_pipes),
    cmocka_unit_test (a_failed_call_waits_for_no_stream),
  };

  return cmocka_run_group_tests (tests, harness_folder_new,
                                 harness_folder_free);
}
