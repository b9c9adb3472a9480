/* SPDX-License-Identifier: Apache-2.0 */
/* core/contract: arguments and records to JSON, back, and copied. */

#include <config.h>

#include "harness.h"

#include <math.h>

#include "base/json.h"
#include "contract/args.h"
#include "contract-values.h"

#define ROUNDS 200

static uint64_t seed;

/* ---- random values survive the way over the channel --------------------- */

/* Through text, as on the channel. */
static json_t *
reparse (json_t *take_json)
{
  auto_json json_t *json = take_json;
  auto_free char *text = json_text (json);
  json_t *again = NULL;

  assert_non_null (text);
  assert_int_equal (json_parse (text, strlen (text), &again, NULL), 0);
  return again;
}

static void
one_round_of_args (struct values_random *random,
                   const struct contract_op *op)
{
  union contract_value sent[CONTRACT_MAX_ARGS + 1];
  union contract_value got[CONTRACT_MAX_ARGS + 1];
  struct contract_fds fds = { .count = 0 };
  auto_arena struct contract_arena *arena = contract_arena_new ();
  auto_json json_t *json = NULL;

  random->arena = arena;
  random->fds = CONTRACT_MAX_FDS;
  values_args (random, op, sent);
  assert_int_equal (contract_encode_args (op, sent, &json, &fds, NULL), 0);
  json = reparse (steal (json));
  assert_int_equal (contract_decode_args (op, json, &fds, arena, got, NULL),
                    0);
  assert_true (values_same_args (op, sent, got));
}

static void
arguments_of_every_operation_round_trip (void **state)
{
  const struct contract *contract = contract_builtin ();
  struct values_random random = { .state = seed };

  (void) state;
  for (size_t i = 0; i < contract->n_ops; i++)
    for (unsigned long n = 0; n < harness_scaled (ROUNDS); n++)
      one_round_of_args (&random, &contract->ops[i]);
}

static void
one_round_of_record (struct values_random *random,
                     const struct contract_record *record)
{
  struct contract_fds fds = { .count = 0 };
  auto_arena struct contract_arena *arena = contract_arena_new ();
  auto_json json_t *json = NULL;
  void *sent, *got, *copy;

  random->arena = arena;
  random->fds = CONTRACT_MAX_FDS;
  sent = values_record (random, record);
  assert_int_equal (contract_encode_record (record, sent, &json, &fds, NULL),
                    0);
  json = reparse (steal (json));
  assert_int_equal (contract_decode_record (record, json, &fds, arena, &got,
                                            NULL), 0);
  assert_true (values_same_record (record, sent, got));
  assert_int_equal (contract_copy_record (record, sent, arena, &copy, NULL),
                    0);
  assert_true (values_same_record (record, sent, copy));
}

static void
every_record_round_trips_and_copies (void **state)
{
  const struct contract *contract = contract_builtin ();
  struct values_random random = { .state = seed };

  (void) state;
  for (unsigned long n = 0; n < harness_scaled (ROUNDS); n++) {
    for (size_t i = 0; i < contract->n_records; i++)
      one_round_of_record (&random, &contract->records[i]);
    for (size_t i = 0; i < contract->n_ops; i++)
      one_round_of_record (&random, contract->ops[i].opts);
  }
}

/* ---- one document at a time --------------------------------------------- */

/* Decodes; what the error says, or "" when there is none. */
static const char *
decode_record_says (const char *name, const char *text,
                    const struct contract_fds *fds)
{
  static char said[512];
  const struct contract *contract = contract_builtin ();
  auto_arena struct contract_arena *arena = contract_arena_new ();
  auto_error struct error *err = NULL;
  auto_json json_t *json = NULL;
  void *record;
  size_t i;

  for (i = 0; strcmp (contract->records[i].name, name) != 0; i++)
    assert_true (i + 1 < contract->n_records);
  if (json_parse (text, strlen (text), &json, &err) == 0
      && contract_decode_record (&contract->records[i], json, fds, arena,
                                 &record, &err) == 0)
    return "";
  assert_int_equal (err->number, E_INVALID);
  snprintf (said, sizeof said, "%s", err->message);
  return said;
}

static const char *
decode_args_says (uint32_t id, const char *text,
                  const struct contract_fds *fds)
{
  static char said[512];
  union contract_value values[CONTRACT_MAX_ARGS + 1];
  auto_arena struct contract_arena *arena = contract_arena_new ();
  auto_error struct error *err = NULL;
  auto_json json_t *json = NULL;

  if (json_parse (text, strlen (text), &json, &err) == 0
      && contract_decode_args (contract_op_by_id (contract_builtin (), id),
                               json, fds, arena, values, &err) == 0)
    return "";
  assert_int_equal (err->number, E_INVALID);
  snprintf (said, sizeof said, "%s", err->message);
  return said;
}

static void
integers_keep_to_their_type (void **state)
{
  (void) state;
#define REFUSED(record, text)                                                 \
  assert_string_not_equal (decode_record_says (record, text, NULL), "")
#define TAKEN(record, text)                                                   \
  assert_string_equal (decode_record_says (record, text, NULL), "")
  TAKEN ("exec_exit", "{\"code\":2147483647}");
  TAKEN ("exec_exit", "{\"code\":-2147483648}");
  REFUSED ("exec_exit", "{\"code\":2147483648}");
  REFUSED ("exec_exit", "{\"code\":-2147483649}");
  TAKEN ("exec_exit", "{\"killed\":4294967295}");
  REFUSED ("exec_exit", "{\"killed\":4294967296}");
  REFUSED ("exec_exit", "{\"killed\":-1}");
  TAKEN ("snapshot", "{\"size_bytes\":0}");
  TAKEN ("snapshot", "{\"size_bytes\":9223372036854775807}");
  TAKEN ("snapshot", "{\"size_bytes\":\"18446744073709551615\"}");
  REFUSED ("snapshot", "{\"size_bytes\":\"18446744073709551616\"}");
  REFUSED ("snapshot", "{\"size_bytes\":18446744073709551615}");
  REFUSED ("snapshot", "{\"size_bytes\":-1}");
  REFUSED ("snapshot", "{\"size_bytes\":\"-1\"}");
  REFUSED ("snapshot", "{\"size_bytes\":\"\"}");
  REFUSED ("snapshot", "{\"size_bytes\":\" 1\"}");
  REFUSED ("snapshot", "{\"size_bytes\":\"1\\u0000\"}");
  REFUSED ("snapshot", "{\"size_bytes\":1.0}");
  TAKEN ("snapshot", "{\"created_ns\":-9223372036854775808}");
  TAKEN ("snapshot", "{\"created_ns\":9223372036854775807}");
  REFUSED ("snapshot", "{\"created_ns\":9223372036854775808}");
  REFUSED ("snapshot", "{\"created_ns\":\"1\"}");
  REFUSED ("snapshot", "{\"created_ns\":1e3}");
  REFUSED ("exec_exit", "{\"code\":1" "000000000000000000000000000000000000"
                        "0000000000000000000000000000000000000000000000}");
  assert_string_equal (
    decode_record_says ("exec_exit", "{\"code\":2147483648}", NULL),
    "code: 2147483648 is out of range (-2147483648 to 2147483647)");
}

static void
other_types_are_refused_by_name (void **state)
{
  (void) state;
  TAKEN ("exec_exit", "{\"oom\":true}");
  TAKEN ("exec_exit", "{\"oom\":1}");
  TAKEN ("exec_exit", "{\"oom\":null}");
  REFUSED ("exec_exit", "{\"oom\":2}");
  REFUSED ("exec_exit", "{\"oom\":\"true\"}");
  TAKEN ("metric", "{\"value\":1}");
  TAKEN ("metric", "{\"value\":-1.5e300}");
  REFUSED ("metric", "{\"value\":1e999}");
  REFUSED ("metric", "{\"value\":NaN}");
  REFUSED ("metric", "{\"value\":\"1\"}");
  REFUSED ("metric", "{\"name\":1}");
  REFUSED ("metric", "{\"name\":{\"b64\":\"YQ==\"}}");
  REFUSED ("metric", "[]");
  REFUSED ("metric", "null");
  REFUSED ("metric", "\"metric\"");
  REFUSED ("fact", "{\"narrows\":\"exec\"}");
  REFUSED ("fact", "{\"narrows\":[null]}");
  REFUSED ("fact", "{\"narrows\":[[\"exec\"]]}");
  assert_string_equal (
    decode_record_says ("sandbox_spec",
                        "{\"mounts\":[{},{\"target\":[]}]}", NULL),
    "mounts[1].target: wants a string or {\"b64\": \"…\"}, not an array");
  assert_string_equal (
    decode_args_says (COFFER_OP_sandbox_create,
                      "{\"sandbox\":\"a\",\"spec\":{\"env\":[1]}}", NULL),
    "spec.env[0]: wants a string or {\"b64\": \"…\"}, not an integer");
}

static void
names_that_are_not_in_the_table_are_refused (void **state)
{
  auto_arena struct contract_arena *arena = contract_arena_new ();
  auto_error struct error *err = NULL;
  auto_json json_t *json = json_pack ("{s:i}", "klled", 1);
  void *record;

  (void) state;
  assert_int_equal (
    contract_decode_record (contract_record_by_id (contract_builtin (),
                                                   COFFER_REC_exec_exit),
                            json, NULL, arena, &record, &err), -1);
  assert_string_equal (err->message, "there is no field \"klled\"");
  assert_non_null (strstr (err->hint, "\"killed\""));
  REFUSED ("fact", "{\"size\":8}");
  REFUSED ("fact", "{\"reserved\":0}");
  REFUSED ("fact", "{\"\":0}");
  REFUSED ("fact", "{\"name\":\"a\",\"name\":\"b\"}");
  assert_string_equal (
    decode_args_says (COFFER_OP_close, "{\"\\u001b[31m\":1}", NULL),
    "there is no field \"\\x1b[31m\"");
  assert_string_not_equal (
    decode_args_says (COFFER_OP_close, "{\"opts\":{\"x\":1}}", NULL), "");
  assert_string_not_equal (decode_args_says (COFFER_OP_close, "[]", NULL), "");
}

static void
strings_carry_every_byte_but_nul (void **state)
{
  (void) state;
  TAKEN ("mount", "{\"source\":{\"b64\":\"/w==\"}}");
  TAKEN ("mount", "{\"source\":{\"b64\":\"\"}}");
  REFUSED ("mount", "{\"source\":{\"b64\":\"AA==\"}}");
  REFUSED ("mount", "{\"source\":{\"b64\":\"/w=\"}}");
  REFUSED ("mount", "{\"source\":{\"b64\":\"/w==\\u0000\"}}");
  REFUSED ("mount", "{\"source\":{\"b64\":1}}");
  REFUSED ("mount", "{\"source\":{}}");
  REFUSED ("mount", "{\"source\":{\"b64\":\"\",\"x\":1}}");
  REFUSED ("mount", "{\"source\":\"a\\u0000b\"}");
  REFUSED ("mount", "{\"source\":\"\\ud800\"}");
  REFUSED ("mount", "{\"source\":\"\\udc00\\ud800\"}");
  REFUSED ("mount", "{\"source\":\"\xff\"}");
  REFUSED ("mount", "{\"source\":\"\xc0\x80\"}");
  TAKEN ("mount", "{\"source\":\"\\ud83d\\ude00\"}");
}

/* A caller of the library may hold strings that no parser would make. */
static void
strings_made_in_memory_are_checked_too (void **state)
{
  const struct contract_record *fact
    = contract_record_by_id (contract_builtin (), COFFER_REC_fact);
  auto_arena struct contract_arena *arena = contract_arena_new ();
  auto_json json_t *nul = json_pack ("{s:o}", "name",
                                     json_stringn_nocheck ("a\0b", 3));
  auto_json json_t *bad = json_pack ("{s:o}", "name",
                                     json_stringn_nocheck ("\xff", 1));
  void *record;

  (void) state;
  assert_int_equal (contract_decode_record (fact, nul, NULL, arena, &record,
                                            NULL), -1);
  assert_int_equal (contract_decode_record (fact, bad, NULL, arena, &record,
                                            NULL), -1);
}

static void
descriptors_are_indexes_used_once (void **state)
{
  const struct contract_fds two = { { 40, 41 }, 2 };

  (void) state;
#define EXEC(rest) "{\"sandbox\":\"a\"" rest "}"
#define SAYS(text, fds) decode_args_says (COFFER_OP_exec_start, text, fds)
  assert_string_equal (SAYS (EXEC (",\"in\":0,\"out\":1"), &two), "");
  assert_string_equal (SAYS (EXEC (",\"in\":null"), NULL), "");
  assert_string_equal (SAYS (EXEC (",\"in\":1,\"err\":1"), &two),
                       "err: descriptor 1 is used twice");
  assert_string_equal (SAYS (EXEC (",\"in\":2"), &two),
                       "in: there is no descriptor 2");
  assert_string_equal (SAYS (EXEC (",\"in\":0"), NULL),
                       "in: there is no descriptor 0");
  assert_string_not_equal (SAYS (EXEC (",\"in\":-1"), &two), "");
  assert_string_not_equal (SAYS (EXEC (",\"in\":4294967296"), &two), "");
  assert_string_not_equal (SAYS (EXEC (",\"in\":0.0"), &two), "");
  assert_string_not_equal (SAYS (EXEC (",\"in\":\"0\""), &two), "");
  assert_string_not_equal (SAYS (EXEC (",\"in\":false"), &two), "");
}

static void
more_descriptors_than_a_frame_holds_are_refused (void **state)
{
  enum { COUNT = CONTRACT_MAX_FDS + 1 };
  const struct contract_op *op
    = contract_op_by_id (contract_builtin (), COFFER_OP_sandbox_create);
  struct coffer_mount mounts[COUNT];
  const struct coffer_mount *vector[COUNT + 1] = { NULL };
  struct coffer_sandbox_spec spec
    = { .size = sizeof spec, .lifeline = -1, .template_fd = -1,
        .mounts = vector };
  union contract_value values[3] = { { .str = "a" }, { .rec = &spec } };
  struct contract_fds fds = { .count = 0 };
  auto_error struct error *err = NULL;
  json_t *json = NULL;

  (void) state;
  for (size_t i = 0; i < COUNT; i++) {
    mounts[i] = (struct coffer_mount){ .size = sizeof mounts[i],
                                       .source_fd = 50 };
    vector[i] = &mounts[i];
  }
  assert_int_equal (contract_encode_args (op, values, &json, &fds, &err), -1);
  assert_string_equal (err->message,
                       "spec.mounts[16].source_fd: more than 16 descriptors");
  assert_null (json);
  mounts[16].source_fd = -1;
  fds.count = 0;
  assert_int_equal (contract_encode_args (op, values, &json, &fds, NULL), 0);
  assert_int_equal (fds.count, CONTRACT_MAX_FDS);
  json_decref (json);
}

/* ---- arguments ---------------------------------------------------------- */

static void
what_must_be_given_is_asked_for (void **state)
{
  const struct contract_op *create
    = contract_op_by_id (contract_builtin (), COFFER_OP_sandbox_create);
  auto_arena struct contract_arena *arena = contract_arena_new ();
  auto_json json_t *json = json_pack ("{s:s}", "sandbox", "a");
  union contract_value values[3] = { { .str = "a" }, { .rec = NULL } };
  const struct coffer_sandbox_spec *spec;
  auto_error struct error *err = NULL;
  json_t *out = NULL;

  (void) state;
  assert_string_equal (decode_args_says (COFFER_OP_exec_start, "{}", NULL),
                       "sandbox: must be given");
  assert_string_equal (
    decode_args_says (COFFER_OP_exec_start, "{\"sandbox\":null}", NULL),
    "sandbox: must be given");
  assert_int_equal (contract_encode_args (create, values, &out, NULL, &err),
                    -1);
  assert_string_equal (err->message, "spec: must be given");
  assert_int_equal (contract_decode_args (create, json, NULL, arena, values,
                                          NULL), 0);
  spec = values[1].rec;
  assert_int_equal (spec->size, sizeof *spec);
  assert_int_equal (spec->lifeline, -1);
  assert_int_equal (spec->template_fd, -1);
  assert_null (spec->mounts);
  assert_null (values[2].rec);
}

static void
values_that_have_no_JSON_are_refused (void **state)
{
  const struct contract *contract = contract_builtin ();
  const struct contract_record *metric
    = contract_record_by_id (contract, COFFER_REC_metric);
  const struct contract_record *exit
    = contract_record_by_id (contract, COFFER_REC_exec_exit);
  const struct contract_record *stream
    = contract_record_by_id (contract, COFFER_REC_stream);
  const double numbers[] = { INFINITY, -INFINITY, NAN };
  struct coffer_exec_exit flag = { .size = sizeof flag, .oom = 2 };
  struct coffer_stream fd = { .size = sizeof fd, .fd = -2 };
  struct coffer_metric text = { .size = sizeof text, .name = "\xff" };
  auto_arena struct contract_arena *arena = contract_arena_new ();
  struct contract_fds fds = { .count = 0 };
  json_t *json;
  void *copy;

  (void) state;
#define NEITHER(record, data)                                                 \
  do {                                                                        \
    assert_int_equal (contract_encode_record (record, data, &json, &fds,      \
                                              NULL), -1);                     \
    assert_int_equal (contract_copy_record (record, data, arena, &copy,       \
                                            NULL), -1);                       \
  } while (0)
  for (size_t i = 0; i < 3; i++) {
    struct coffer_metric number = { .size = sizeof number,
                                    .value = numbers[i] };
    NEITHER (metric, &number);
  }
  NEITHER (exit, &flag);
  NEITHER (stream, &fd);
  NEITHER (metric, &text);
  fd.fd = 5;
  assert_int_equal (contract_encode_record (stream, &fd, &json, NULL, NULL),
                    -1);
}

static void
depth_is_bounded (void **state)
{
  enum { DEEP = 100000 };
  char *deep = malloc (DEEP + 1);
  /* A record that holds itself, which no table should have. */
  struct contract_field loop
    = { .name = "down", .type = CONTRACT_REC, .offset = 8 };
  const struct contract_record record
    = { .name = "loop", .size = 16, .n_fields = 1, .fields = &loop };
  struct { uint32_t size, reserved; const void *down; } link
    = { sizeof link, 0, &link };
  auto_arena struct contract_arena *arena = contract_arena_new ();
  auto_json json_t *json = json_object ();
  json_t *out = NULL;
  void *copy;

  (void) state;
  memset (deep, '[', DEEP);
  deep[DEEP] = '\0';
  assert_string_not_equal (decode_record_says ("fact", deep, NULL), "");
  free (deep);

  loop.record = &record;
  for (int i = 0; i < 9; i++)
    json = json_pack ("{s:o}", "down", steal (json));
  assert_int_equal (contract_decode_record (&record, json, NULL, arena, &copy,
                                            NULL), -1);
  assert_int_equal (contract_decode_record (
                      &record, json_object_get (json, "down"), NULL, arena,
                      &copy, NULL), 0);
  assert_int_equal (contract_encode_record (&record, &link, &out, NULL, NULL),
                    -1);
  assert_int_equal (contract_copy_record (&record, &link, arena, &copy, NULL),
                    -1);
}

static void
memory_is_bounded (void **state)
{
  const struct contract_record *fact
    = contract_record_by_id (contract_builtin (), COFFER_REC_fact);
  const size_t size = ARENA_MAX_BYTES;
  auto_free char *text = malloc (size + 1);
  auto_arena struct contract_arena *arena = contract_arena_new ();
  auto_error struct error *err = NULL;
  struct coffer_fact record = { .size = sizeof record, .value = text };
  void *copy;

  (void) state;
  memset (text, 'a', size);
  text[size] = '\0';
  assert_int_equal (contract_copy_record (fact, &record, arena, &copy, &err),
                    -1);
  assert_int_equal (err->number, E_LIMIT);
  record.value = text + size / 2;
  assert_int_equal (contract_copy_record (fact, &record, arena, &copy, NULL),
                    0);
}

/* ---- emitted records of other sizes ------------------------------------- */

static void
shorter_and_longer_records_are_copied (void **state)
{
  const struct contract *contract = contract_builtin ();
  const struct contract_record *mount
    = contract_record_by_id (contract, COFFER_REC_mount);
  struct { struct coffer_mount ours; uint64_t theirs; } longer
    = { { .size = sizeof longer, .source = "s", .target = "t",
          .source_fd = 7, .writable = 1 }, UINT64_MAX };
  auto_arena struct contract_arena *arena = contract_arena_new ();
  struct coffer_mount *copy;
  void *out;

  (void) state;
  assert_int_equal (contract_copy_record (mount, &longer, arena, &out, NULL),
                    0);
  copy = out;
  assert_int_equal (copy->size, sizeof *copy);
  assert_string_equal (copy->target, "t");
  assert_ptr_not_equal (copy->target, longer.ours.target);
  assert_int_equal (copy->source_fd, 7);

  longer.ours.size = offsetof (struct coffer_mount, source_fd);
  assert_int_equal (contract_copy_record (mount, &longer, arena, &out, NULL),
                    0);
  copy = out;
  assert_int_equal (copy->size, sizeof *copy);
  assert_string_equal (copy->target, "t");
  assert_int_equal (copy->source_fd, -1);       /* not 0: that is stdin */
  assert_int_equal (copy->writable, 0);

  /* A size that ends within a field does not reach it. */
  longer.ours.size = offsetof (struct coffer_mount, target) + 4;
  assert_int_equal (contract_copy_record (mount, &longer, arena, &out, NULL),
                    0);
  copy = out;
  assert_string_equal (copy->source, "s");
  assert_null (copy->target);

  longer.ours.size = 7;
  assert_int_equal (contract_copy_record (mount, &longer, arena, &out, NULL),
                    -1);
  assert_int_equal (contract_copy_record (mount, NULL, arena, &out, NULL),
                    -1);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (arguments_of_every_operation_round_trip),
    cmocka_unit_test (every_record_round_trips_and_copies),
    cmocka_unit_test (integers_keep_to_their_type),
    cmocka_unit_test (other_types_are_refused_by_name),
    cmocka_unit_test (names_that_are_not_in_the_table_are_refused),
    cmocka_unit_test (strings_carry_every_byte_but_nul),
    cmocka_unit_test (strings_made_in_memory_are_checked_too),
    cmocka_unit_test (descriptors_are_indexes_used_once),
    cmocka_unit_test (more_descriptors_than_a_frame_holds_are_refused),
    cmocka_unit_test (what_must_be_given_is_asked_for),
    cmocka_unit_test (values_that_have_no_JSON_are_refused),
    cmocka_unit_test (depth_is_bounded),
    cmocka_unit_test (memory_is_bounded),
    cmocka_unit_test (shorter_and_longer_records_are_copied),
  };

  seed = values_seed ();
  return cmocka_run_group_tests (tests, NULL, NULL);
}
