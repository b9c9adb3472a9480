/* SPDX-License-Identifier: Apache-2.0 */
/* The contract's codec: NAME of an operation or record, a newline, JSON.  What
 * decodes must encode, and come back the same, however often. */

#include <config.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "contract/contract.h"

int LLVMFuzzerTestOneInput (const uint8_t *bytes, size_t size);

static void
must (int holds)
{
  if (!holds)
    abort ();
}

/* All sixteen, so that every index that can be there is. */
static void
fds_fill (struct contract_fds *fds)
{
  fds->count = CONTRACT_MAX_FDS;
  for (int i = 0; i < CONTRACT_MAX_FDS; i++)
    fds->fd[i] = 1000 + i;
}

static json_t *
encoded_args (const struct contract_op *op,
              const union contract_value *values, struct contract_fds *fds)
{
  json_t *json = NULL;

  fds->count = 0;
  must (contract_encode_args (op, values, &json, fds, NULL) == 0);
  return json;
}

static void
try_args (const struct contract_op *op, const json_t *json)
{
  union contract_value values[CONTRACT_MAX_ARGS + 1];
  auto_arena struct contract_arena *arena = contract_arena_new ();
  auto_error struct error *err = NULL;
  auto_json json_t *first = NULL;
  auto_json json_t *second = NULL;
  struct contract_fds fds;

  fds_fill (&fds);
  if (contract_decode_args (op, json, &fds, arena, values, &err) < 0) {
    must (err && !strchr (error_message (err), '\n'));
    return;
  }
  must (!err);
  first = encoded_args (op, values, &fds);
  must (contract_decode_args (op, first, &fds, arena, values, NULL) == 0);
  second = encoded_args (op, values, &fds);
  must (json_equal (first, second));
}

static json_t *
encoded_record (const struct contract_record *record, const void *data,
                struct contract_fds *fds)
{
  json_t *json = NULL;

  fds->count = 0;
  must (contract_encode_record (record, data, &json, fds, NULL) == 0);
  return json;
}

static void
try_record (const struct contract_record *record, const json_t *json)
{
  auto_arena struct contract_arena *arena = contract_arena_new ();
  auto_error struct error *err = NULL;
  auto_json json_t *first = NULL;
  auto_json json_t *second = NULL;
  auto_json json_t *copied = NULL;
  struct contract_fds fds;
  void *data, *copy;

  fds_fill (&fds);
  if (contract_decode_record (record, json, &fds, arena, &data, &err) < 0) {
    must (err && !strchr (error_message (err), '\n'));
    return;
  }
  must (!err);
  must (contract_copy_record (record, data, arena, &copy, NULL) == 0);
  first = encoded_record (record, data, &fds);
  copied = encoded_record (record, copy, &fds);
  must (json_equal (first, copied));
  must (contract_decode_record (record, first, &fds, arena, &data, NULL)
        == 0);
  second = encoded_record (record, data, &fds);
  must (json_equal (first, second));
}

static int
is_name (const char *name, const char *bytes, size_t size)
{
  return strlen (name) == size && memcmp (name, bytes, size) == 0;
}

static void
try_named (const char *name, size_t size, const json_t *json)
{
  const struct contract *contract = contract_builtin ();

  for (size_t i = 0; i < contract->n_ops; i++)
    if (is_name (contract->ops[i].name, name, size))
      try_args (&contract->ops[i], json);
  for (size_t i = 0; i < contract->n_records; i++)
    if (is_name (contract->records[i].name, name, size))
      try_record (&contract->records[i], json);
}

int
LLVMFuzzerTestOneInput (const uint8_t *bytes, size_t size)
{
  const char *text = (const char *) bytes;
  const char *line = size > 0 ? memchr (text, '\n', size) : NULL;
  auto_json json_t *json = NULL;
  size_t head;

  if (line == NULL)
    return 0;
  head = line - text + 1;
  if (json_parse (text + head, size - head, &json, NULL) == 0)
    try_named (text, head - 1, json);
  return 0;
}
