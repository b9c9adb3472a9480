/* SPDX-License-Identifier: Apache-2.0 */
/* core/contract: the table as data, and calls by it. */

#include <config.h>

#include "harness.h"

#include "base/json.h"
#include "contract/args.h"
#include "contract-values.h"

static uint64_t seed;

/* ---- one real function for each operation -------------------------------
 * It keeps its arguments in seen.NAME and returns its own number.  The lists
 * of arguments become sequences (type, name)(type, name), which are walked
 * twice: for the parameters and for the assignments. */

#define SEQ_ARG(type, name, doc) (COFFER_TYPE_##type, name)
#define SEQ_RARG(type, record, name, doc) (COFFER_RTYPE_##type (record), name)
#define END_(...) __VA_ARGS__##_END
#define END(...) END_ (__VA_ARGS__)
#define PARAM_A(type, name) , type name PARAM_B
#define PARAM_B(type, name) , type name PARAM_A
#define PARAM_A_END
#define PARAM_B_END
#define STORE_A(type, name) seen.op.name = name; STORE_B
#define STORE_B(type, name) seen.op.name = name; STORE_A
#define STORE_A_END
#define STORE_B_END

#define NO_ARG(type, name, doc)
#define NO_RARG(type, record, name, doc)

/* Each operation has a struct of its own, reached as seen.op below. */
static struct coffer_call *seen_call;
static void *seen_self;

#define X(id, name, since, capability, args, OPTS, doc)                       \
  static struct { struct contract_args_##name op; } seen_##name;              \
  static int32_t fake_##name (struct coffer_call *call,                       \
                              void *self END (PARAM_A args),            \
                              const struct coffer_##name##_opts *opts)        \
  {                                                                           \
    __typeof__ (seen_##name) seen = { 0 };                                    \
                                                                              \
    seen_call = call;                                                         \
    seen_self = self;                                                         \
    END (STORE_A args)                                                  \
    seen.op.opts = opts;                                                      \
    seen_##name = seen;                                                       \
    return -(id);                                                             \
  }
COFFER_OPERATIONS (X, SEQ_ARG, SEQ_RARG)
#undef X

static const struct coffer_operations fakes = {
  .size = sizeof fakes,
#define X(id, name, since, capability, args, OPTS, doc) .name = fake_##name,
  COFFER_OPERATIONS (X, NO_ARG, NO_RARG)
#undef X
};

static const void *
seen_args (uint32_t id)
{
  switch (id) {
#define X(id, name, since, capability, args, OPTS, doc)                       \
  case id:                                                                    \
    return &seen_##name;
    COFFER_OPERATIONS (X, NO_ARG, NO_RARG)
#undef X
  }
  return NULL;
}

/* ---- calls -------------------------------------------------------------- */

static struct contract_calls *
calls_for (uint16_t minor)
{
  struct contract_calls *calls = NULL;

  assert_int_equal (contract_calls_new (contract_builtin (), minor, &calls,
                                        NULL), 0);
  return calls;
}

static void
one_call (const struct contract_calls *calls, const struct contract_op *op,
          struct values_random *random)
{
  union contract_value sent[CONTRACT_MAX_ARGS + 1];
  union contract_value got[CONTRACT_MAX_ARGS + 1];
  struct coffer_call *call = (void *) (uintptr_t) values_next (random);
  void *self = (void *) (uintptr_t) values_next (random);

  values_args (random, op, sent);
  assert_int_equal (contract_invoke (calls, op, &fakes, call, self, sent),
                    -(int32_t) op->id);
  assert_ptr_equal (seen_call, call);
  assert_ptr_equal (seen_self, self);
  contract_args_values (op, seen_args (op->id), got);
  for (size_t i = 0; i < op->n_args; i++)
    assert_memory_equal (&got[i], &sent[i],
                         contract_type_size (op->args[i].type));
  assert_ptr_equal (got[op->n_args].rec, sent[op->n_args].rec);
}

static void
every_operation_gets_exactly_its_arguments (void **state)
{
  const struct contract *contract = contract_builtin ();
  struct contract_calls *calls = calls_for (contract->minor);
  struct values_random random = { .state = seed };

  (void) state;
  for (size_t i = 0; i < contract->n_ops; i++)
    for (int n = 0; n < 20; n++) {
      auto_arena struct contract_arena *arena = contract_arena_new ();

      random.arena = arena;
      random.fds = 100;
      one_call (calls, &contract->ops[i], &random);
    }
  contract_calls_free (calls);
}

static void
what_a_module_does_not_have_is_unsupported (void **state)
{
  const struct contract *contract = contract_builtin ();
  const struct contract_op *op
    = contract_op_by_id (contract, COFFER_OP_sandbox_list);
  struct contract_calls *calls = calls_for (contract->minor);
  struct contract_calls *older = calls_for (contract->minor - 1);
  struct coffer_operations vtable = fakes;
  const union contract_value values[1] = { { .rec = NULL } };

  (void) state;
#define INVOKE_LIST(calls)                                                    \
  contract_invoke (calls, op, &vtable, NULL, NULL, values)
  assert_int_equal (INVOKE_LIST (calls), -12);
  assert_int_equal (INVOKE_LIST (older), COFFER_UNSUPPORTED);
  vtable.size = op->slot + sizeof (void *) - 1;
  assert_int_equal (INVOKE_LIST (calls), COFFER_UNSUPPORTED);
  vtable.size = op->slot + sizeof (void *);
  assert_int_equal (INVOKE_LIST (calls), -12);
  vtable.size = 0;
  assert_int_equal (INVOKE_LIST (calls), COFFER_UNSUPPORTED);
  vtable.size = sizeof vtable;
  vtable.sandbox_list = NULL;
  assert_int_equal (INVOKE_LIST (calls), COFFER_UNSUPPORTED);
  contract_calls_free (calls);
  contract_calls_free (older);
}

static void
null_where_a_value_must_be_is_invalid (void **state)
{
  const struct contract *contract = contract_builtin ();
  struct contract_calls *calls = calls_for (contract->minor);

  (void) state;
  for (size_t i = 0; i < contract->n_ops; i++) {
    const struct contract_op *op = &contract->ops[i];
    union contract_value values[CONTRACT_MAX_ARGS + 1];
    int required = 0;

    for (size_t n = 0; n < op->n_args; n++) {
      contract_value_default (op->args[n].type, &values[n]);
      required |= contract_argument_required (&op->args[n]);
    }
    values[op->n_args].rec = NULL;
    assert_int_equal (contract_invoke (calls, op, &fakes, NULL, NULL, values),
                      required ? COFFER_INVALID : -(int32_t) op->id);
  }
  contract_calls_free (calls);
}

/* ---- the table ---------------------------------------------------------- */

static void
field_names_are_unique (const struct contract_field *fields, size_t count)
{
  for (size_t i = 0; i < count; i++)
    for (size_t j = 0; j < i; j++)
      assert_string_not_equal (fields[i].name, fields[j].name);
}

static void
record_is_laid_out_by_the_rules (const struct contract_record *record)
{
  uint32_t end = 2 * sizeof (uint32_t);

  field_names_are_unique (record->fields, record->n_fields);
  for (size_t i = 0; i < record->n_fields; i++) {
    const struct contract_field *field = &record->fields[i];

    assert_true (field->offset >= end);
    assert_true (field->since >= record->since);
    assert_true (field->since <= COFFER_CONTRACT_MINOR);
    assert_true (*field->doc);
    end = field->offset + contract_type_size (field->type);
  }
  /* No padding at the end: see "Growth" in <coffer/contract.h>. */
  assert_int_equal (record->size, end);
}

static void
records_leave_no_room_behind_their_last_field (void **state)
{
  const struct contract *contract = contract_builtin ();

  (void) state;
  for (size_t i = 0; i < contract->n_records; i++) {
    record_is_laid_out_by_the_rules (&contract->records[i]);
    assert_true (contract->records[i].id > 0);
    assert_ptr_equal (contract_record_by_id (contract,
                                             contract->records[i].id),
                      &contract->records[i]);
  }
  for (size_t i = 0; i < contract->n_ops; i++)
    record_is_laid_out_by_the_rules (contract->ops[i].opts);
  assert_null (contract_record_by_id (contract, 0));
  assert_null (contract_record_by_id (contract, 9999));
}

static int
capability_is_known (const char *word)
{
  const char *const *words = contract_capabilities ();

  while (*words != NULL && strcmp (*words, word) != 0)
    words++;
  return *words != NULL;
}

static void
operations_are_whole_and_found (void **state)
{
  const struct contract *contract = contract_builtin ();
  uint32_t slot = offsetof (struct coffer_operations, open);

  (void) state;
  assert_true (contract->n_ops > 30);
  for (size_t i = 0; i < contract->n_ops; i++) {
    const struct contract_op *op = &contract->ops[i];

    assert_true (op->id > 0 && *op->doc);
    assert_true (op->since <= contract->minor);
    assert_int_equal (op->slot, slot);
    slot += sizeof (void *);
    assert_true (*op->capability == '\0'
                 || capability_is_known (op->capability));
    assert_ptr_equal (contract_op_by_id (contract, op->id), op);
    assert_ptr_equal (contract_op_by_name (contract, op->name), op);
    field_names_are_unique (op->args, op->n_args);
    for (size_t n = 0; n < op->n_args; n++)
      assert_string_not_equal (op->args[n].name, "opts");
  }
  assert_int_equal (slot, sizeof (struct coffer_operations));
  assert_null (contract_op_by_id (contract, 0));
  assert_null (contract_op_by_name (contract, ""));
  assert_null (contract_op_by_name (contract, "exec"));
}

static void
codes_are_the_closed_list (void **state)
{
  (void) state;
  for (int32_t code = 0; code <= COFFER_INTERNAL; code++) {
    assert_non_null (contract_code_name (code));
  }
  assert_null (contract_code_name (COFFER_INTERNAL + 1));
  assert_null (contract_code_name (-1));
  assert_string_equal (contract_code_name (COFFER_OK), "OK");
  assert_int_equal (contract_code_retryable (COFFER_BUSY), RETRY_YES);
  assert_int_equal (contract_code_retryable (COFFER_DENIED), RETRY_NO);
  assert_int_equal (contract_code_retryable (COFFER_IO), RETRY_UNKNOWN);
  assert_int_equal (contract_code_retryable (12345), RETRY_UNKNOWN);
}

static void
versions_fit_by_the_rules (void **state)
{
  static const struct {
    uint16_t host_major, host_minor, major, minor, least;
    int fits;
  } rows[] = {
    { 0, 1, 0, 1, 1, 1 }, { 0, 1, 0, 2, 1, 0 }, { 0, 1, 0, 0, 0, 0 },
    { 0, 2, 0, 1, 1, 0 }, { 0, 1, 1, 1, 1, 0 }, { 1, 0, 1, 0, 0, 1 },
    { 1, 0, 1, 1, 0, 1 }, { 1, 0, 1, 1, 1, 0 }, { 1, 1, 1, 0, 0, 1 },
    { 1, 1, 1, 1, 1, 1 }, { 1, 1, 2, 0, 0, 0 }, { 1, 5, 1, 3, 4, 0 },
    { 1, 9, 1, 65535, 9, 1 }, { 1, 9, 1, 65535, 65535, 0 },
  };

  (void) state;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    const struct contract host = { .major = rows[i].host_major,
                                   .minor = rows[i].host_minor };
    auto_error struct error *err = NULL;
    int r = contract_check_version (&host, rows[i].major, rows[i].minor,
                                    rows[i].least, &err);

    assert_int_equal (r, rows[i].fits ? 0 : -1);
    if (!rows[i].fits)
      assert_int_equal (err->number, E_CONTRACT_VERSION);
  }
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (every_operation_gets_exactly_its_arguments),
    cmocka_unit_test (what_a_module_does_not_have_is_unsupported),
    cmocka_unit_test (null_where_a_value_must_be_is_invalid),
    cmocka_unit_test (records_leave_no_room_behind_their_last_field),
    cmocka_unit_test (operations_are_whole_and_found),
    cmocka_unit_test (codes_are_the_closed_list),
    cmocka_unit_test (versions_fit_by_the_rules),
  };

  seed = values_seed ();
  return cmocka_run_group_tests (tests, NULL, NULL);
}
