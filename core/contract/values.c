/* SPDX-License-Identifier: Apache-2.0 */
/* Values in memory, read and written by the types of the table. */

#include <config.h>

#include <string.h>

#include "contract/args.h"
#include "contract/values.h"

size_t
contract_type_size (enum contract_type type)
{
  switch (type) {
  case CONTRACT_I32:
  case CONTRACT_U32:
  case CONTRACT_FLAG:
  case CONTRACT_FD:
    return 4;
  case CONTRACT_I64:
  case CONTRACT_U64:
  case CONTRACT_F64:
    return 8;
  case CONTRACT_STR:
  case CONTRACT_TEXT:
  case CONTRACT_STRV:
  case CONTRACT_REC:
  case CONTRACT_RECV:
    break;
  }
  return sizeof (void *);
}

/* Every member of the union starts where the union does, so that one copy of
 * the type's size serves them all. */
void
contract_value_read (enum contract_type type, const void *at,
                     union contract_value *value)
{
  memset (value, 0, sizeof *value);
  memcpy (value, at, contract_type_size (type));
}

void
contract_value_write (enum contract_type type, void *at,
                      const union contract_value *value)
{
  memcpy (at, value, contract_type_size (type));
}

void
contract_value_default (enum contract_type type, union contract_value *value)
{
  memset (value, 0, sizeof *value);
  if (type == CONTRACT_FD)
    value->i32 = -1;
}

int
contract_value_is_default (enum contract_type type,
                           const union contract_value *value)
{
  switch (type) {
  case CONTRACT_I32:
    return value->i32 == 0;
  case CONTRACT_U32:
  case CONTRACT_FLAG:
    return value->u32 == 0;
  case CONTRACT_FD:
    return value->i32 == -1;
  case CONTRACT_I64:
    return value->i64 == 0;
  case CONTRACT_U64:
    return value->u64 == 0;
  case CONTRACT_F64:            /* bits, not ==: -0.0 is not the default */
    return value->u64 == 0;
  case CONTRACT_STR:
  case CONTRACT_TEXT:
    return value->str == NULL;
  case CONTRACT_STRV:
    return value->strv == NULL || value->strv[0] == NULL;
  case CONTRACT_REC:
    return value->rec == NULL;
  case CONTRACT_RECV:
    return value->recv == NULL || value->recv[0] == NULL;
  }
  return 1;
}

static uint32_t
record_size (const void *record)
{
  uint32_t size;

  memcpy (&size, record, sizeof size);
  return size;
}

void
contract_field_read (const struct contract_field *field, const void *record,
                     union contract_value *value)
{
  if (field->offset + contract_type_size (field->type) > record_size (record))
    contract_value_default (field->type, value);
  else
    contract_value_read (field->type, (const char *) record + field->offset,
                         value);
}

int
contract_argument_required (const struct contract_field *argument)
{
  switch (argument->type) {
  case CONTRACT_STR:
  case CONTRACT_TEXT:
  case CONTRACT_REC:
    return !argument->optional;
  default:
    return 0;
  }
}

int
contract_value_is_later (const struct contract_field *field,
                         const union contract_value *value, uint16_t minor)
{
  size_t i;

  if (field->type == CONTRACT_REC)
    return contract_record_is_later (field->record, value->rec, minor);
  if (field->type == CONTRACT_RECV && value->recv != NULL)
    for (i = 0; value->recv[i] != NULL; i++)
      if (contract_record_is_later (field->record, value->recv[i], minor))
        return 1;
  return 0;
}

int
contract_record_is_later (const struct contract_record *record,
                          const void *data, uint16_t minor)
{
  union contract_value value;
  size_t i;

  if (data == NULL)
    return 0;
  for (i = 0; i < record->n_fields; i++) {
    const struct contract_field *field = &record->fields[i];

    contract_field_read (field, data, &value);
    if (field->since > minor
        && !contract_value_is_default (field->type, &value))
      return 1;
    if (contract_value_is_later (field, &value, minor))
      return 1;
  }
  return 0;
}

void
contract_args_values (const struct contract_op *op, const void *args,
                      union contract_value *values)
{
  size_t i;

  for (i = 0; i < op->n_args; i++)
    contract_value_read (op->args[i].type,
                         (const char *) args + op->args[i].offset,
                         &values[i]);
  contract_value_read (CONTRACT_REC, (const char *) args + op->opts_offset,
                       &values[op->n_args]);
}
