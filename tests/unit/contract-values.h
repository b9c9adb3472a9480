/* SPDX-License-Identifier: Apache-2.0 */
/* Random values of any row of the contract's table, and their comparison.
 * The generator is a small one of our own, so that a printed seed gives the
 * same values everywhere. */

#ifndef UNIT_CONTRACT_VALUES_H
#define UNIT_CONTRACT_VALUES_H

#include "contract/codec.h"
#include "contract/values.h"

struct values_random {
  uint64_t state;
  int fds;                      /* descriptors that may still be used */
  struct contract_arena *arena;
};

__attribute__ ((unused)) static uint64_t
values_seed (void)
{
  const char *given = getenv ("COFFER_TEST_SEED");
  uint64_t seed = given != NULL ? strtoull (given, NULL, 0) : 0;

  if (seed == 0 && getentropy (&seed, sizeof seed) < 0)
    seed = 1;
  seed |= 1;
  print_message ("# COFFER_TEST_SEED=%llu\n", (unsigned long long) seed);
  return seed;
}

/* splitmix64 */
static uint64_t
values_next (struct values_random *random)
{
  uint64_t z = random->state += UINT64_C (0x9e3779b97f4a7c15);

  z = (z ^ (z >> 30)) * UINT64_C (0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C (0x94d049bb133111eb);
  return z ^ (z >> 31);
}

static uint64_t
values_below (struct values_random *random, uint64_t bound)
{
  return values_next (random) % bound;
}

static const void *
values_keep (struct values_random *random, const void *bytes, size_t size)
{
  char *kept = arena_alloc (random->arena, size + 1, NULL);

  assert_non_null (kept);
  memcpy (kept, bytes, size);
  return kept;
}

static const char *
values_text (struct values_random *random)
{
  static const char *const odd[] = {
    "", " ", "café\n☃\n", "/tmp/你好 世界/'q\".txt", "\x01\x1f\x7f", "\\u0000",
    "{\"b64\":\"AA==\"}", "null", "\xf4\x8f\xbf\xbf", "\xee\x80\x80",
    "-1", "18446744073709551615", "\"", "\\", "/../../etc/passwd"
  };
  char text[40];
  size_t size, i;

  if (values_below (random, 2) == 0)
    return odd[values_below (random, sizeof odd / sizeof odd[0])];
  size = values_below (random, sizeof text);
  for (i = 0; i < size; i++)
    text[i] = 1 + values_below (random, 127);
  return values_keep (random, text, size);
}

/* Bytes that are seldom UTF-8. */
static const char *
values_str (struct values_random *random)
{
  char bytes[40];
  size_t size, i;

  if (values_below (random, 2) == 0)
    return values_text (random);
  size = values_below (random, sizeof bytes);
  for (i = 0; i < size; i++)
    bytes[i] = 1 + values_below (random, 255);
  return values_keep (random, bytes, size);
}

static uint64_t
values_number (struct values_random *random)
{
  static const uint64_t edges[] = {
    0, 1, INT32_MAX, UINT64_C (0x80000000), UINT32_MAX, UINT64_C (1) << 53,
    (UINT64_C (1) << 53) + 1, INT64_MAX, UINT64_C (1) << 63, UINT64_MAX
  };

  if (values_below (random, 2) == 0)
    return edges[values_below (random, sizeof edges / sizeof edges[0])];
  return values_next (random) >> values_below (random, 64);
}

static double
values_real (struct values_random *random)
{
  static const double edges[] = {
    0, -0.0, 1, 0.1, 1e308, -1e308, 5e-324, 9007199254740993.0, 1.0 / 3
  };

  if (values_below (random, 2) == 0)
    return edges[values_below (random, sizeof edges / sizeof edges[0])];
  return (double) (int64_t) values_next (random)
         / (double) (1 + values_below (random, 1000));
}

static void *values_record (struct values_random *random,
                            const struct contract_record *record);

/* A vector of up to three strings (record NULL) or records. */
static const void *
values_vector (struct values_random *random,
               const struct contract_record *record)
{
  size_t count = values_below (random, 4), i;
  const void **vector
    = arena_alloc (random->arena, (count + 1) * sizeof *vector, NULL);

  assert_non_null (vector);
  for (i = 0; i < count; i++)
    vector[i] = record == NULL ? (const void *) values_str (random)
                               : values_record (random, record);
  return vector;
}

static void
values_fill (struct values_random *random, const struct contract_field *field,
             union contract_value *value)
{
  contract_value_default (field->type, value);
  switch (field->type) {
  case CONTRACT_STR:
    value->str = values_str (random);
    break;
  case CONTRACT_TEXT:
    value->str = values_text (random);
    break;
  case CONTRACT_STRV:
  case CONTRACT_RECV:
    value->rec = values_vector (random, field->record);
    break;
  case CONTRACT_REC:
    value->rec = values_record (random, field->record);
    break;
  case CONTRACT_F64:
    value->f64 = values_real (random);
    break;
  case CONTRACT_FLAG:
    value->u32 = values_below (random, 2);
    break;
  case CONTRACT_FD:
    if (random->fds > 0) {
      random->fds--;
      value->i32 = values_below (random, 1000);
    }
    break;
  case CONTRACT_I32:
  case CONTRACT_U32:
    value->u32 = values_number (random);
    break;
  case CONTRACT_I64:
  case CONTRACT_U64:
    value->u64 = values_number (random);
    break;
  }
}

static void *
values_record (struct values_random *random,
               const struct contract_record *record)
{
  char *data = arena_record (random->arena, record, NULL);
  union contract_value value;
  size_t i;

  assert_non_null (data);
  for (i = 0; i < record->n_fields; i++)
    if (values_below (random, 4) != 0) {
      values_fill (random, &record->fields[i], &value);
      contract_value_write (record->fields[i].type,
                            data + record->fields[i].offset, &value);
    }
  return data;
}

__attribute__ ((unused)) static void
values_args (struct values_random *random, const struct contract_op *op,
             union contract_value *values)
{
  size_t i;

  for (i = 0; i < op->n_args; i++)
    if (contract_argument_required (&op->args[i])
        || values_below (random, 4) != 0)
      values_fill (random, &op->args[i], &values[i]);
    else
      contract_value_default (op->args[i].type, &values[i]);
  values[op->n_args].rec
    = values_below (random, 4) ? values_record (random, op->opts) : NULL;
}

/* ---- comparison; an empty vector and NULL are the same ------------------ */

static int values_same_record (const struct contract_record *record,
                               const void *a, const void *b);

static int
values_same_vector (const struct contract_record *record,
                    const void *const *a, const void *const *b)
{
  size_t i;

  for (i = 0; a[i] != NULL && b[i] != NULL; i++)
    if (record == NULL ? strcmp (a[i], b[i]) != 0
                       : !values_same_record (record, a[i], b[i]))
      return 0;
  return a[i] == NULL && b[i] == NULL;
}

static int
values_same (const struct contract_field *field,
             const union contract_value *a, const union contract_value *b)
{
  if (contract_value_is_default (field->type, a)
      || contract_value_is_default (field->type, b))
    return contract_value_is_default (field->type, a)
           && contract_value_is_default (field->type, b);
  switch (field->type) {
  case CONTRACT_STR:
  case CONTRACT_TEXT:
    return strcmp (a->str, b->str) == 0;
  case CONTRACT_STRV:
  case CONTRACT_RECV:
    return values_same_vector (field->record, a->recv, b->recv);
  case CONTRACT_REC:
    return values_same_record (field->record, a->rec, b->rec);
  default:
    return memcmp (a, b, contract_type_size (field->type)) == 0;
  }
}

static int
values_same_record (const struct contract_record *record, const void *a,
                    const void *b)
{
  union contract_value left, right;
  size_t i;

  for (i = 0; i < record->n_fields; i++) {
    contract_field_read (&record->fields[i], a, &left);
    contract_field_read (&record->fields[i], b, &right);
    if (!values_same (&record->fields[i], &left, &right))
      return 0;
  }
  return 1;
}

/* NULL options and options of defaults are the same. */
__attribute__ ((unused)) static int
values_same_args (const struct contract_op *op,
                  const union contract_value *a,
                  const union contract_value *b)
{
  const uint32_t none[2] = { sizeof none, 0 };
  const void *left = a[op->n_args].rec, *right = b[op->n_args].rec;
  size_t i;

  for (i = 0; i < op->n_args; i++)
    if (!values_same (&op->args[i], &a[i], &b[i]))
      return 0;
  return values_same_record (op->opts, left ? left : none,
                             right ? right : none);
}

#endif /* UNIT_CONTRACT_VALUES_H */
