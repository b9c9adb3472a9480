/* SPDX-License-Identifier: Apache-2.0 */
/* Calling an operation of a module by its row in the table.
 *
 * One libffi call interface for each operation, prepared once a module, for
 * the minor it was built for.  Signatures come from the compiled table and
 * from nowhere else: a wrong one is memory corruption.  ffi_call only; libffi
 * closures would leave a page that is writable and executable. */

#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "contract/args.h"
#include "contract/contract.h"
#include "contract/values.h"

#define FIXED_ARGS 2            /* call, self */

struct call_interface {
  ffi_cif cif;
  ffi_type *types[FIXED_ARGS + CONTRACT_MAX_ARGS + 1];
};

struct contract_calls {
  const struct contract *contract;
  uint16_t minor;
  struct call_interface interfaces[];   /* one for each of contract->ops */
};

static ffi_type *
type_as_ffi (enum contract_type type)
{
  switch (type) {
  case CONTRACT_I32:
  case CONTRACT_FD:
    return &ffi_type_sint32;
  case CONTRACT_I64:
    return &ffi_type_sint64;
  case CONTRACT_U32:
  case CONTRACT_FLAG:
    return &ffi_type_uint32;
  case CONTRACT_U64:
    return &ffi_type_uint64;
  case CONTRACT_F64:
    return &ffi_type_double;
  case CONTRACT_STR:
  case CONTRACT_TEXT:
  case CONTRACT_STRV:
  case CONTRACT_REC:
  case CONTRACT_RECV:
    break;
  }
  return &ffi_type_pointer;
}

static int
interface_prepare (struct call_interface *interface,
                   const struct contract_op *op, struct error **err)
{
  unsigned n = 0, i;

  interface->types[n++] = &ffi_type_pointer;
  interface->types[n++] = &ffi_type_pointer;
  for (i = 0; i < op->n_args; i++)
    interface->types[n++] = type_as_ffi (op->args[i].type);
  interface->types[n++] = &ffi_type_pointer;
  if (ffi_prep_cif (&interface->cif, FFI_DEFAULT_ABI, n, &ffi_type_sint32,
                    interface->types) != FFI_OK)
    return error_set (err, E_INTERNAL, 0,
                      "libffi refused the signature of %s", op->name);
  return 0;
}

int
contract_calls_new (const struct contract *contract, uint16_t minor,
                    struct contract_calls **out, struct error **err)
{
  auto_free struct contract_calls *calls = NULL;
  size_t i;

  calls = calloc (1, sizeof *calls
                       + contract->n_ops * sizeof calls->interfaces[0]);
  if (calls == NULL)
    return error_set (err, E_NO_MEMORY, 0, "call interfaces");
  calls->contract = contract;
  calls->minor = minor;
  for (i = 0; i < contract->n_ops; i++)
    if (contract->ops[i].since <= minor
        && interface_prepare (&calls->interfaces[i], &contract->ops[i], err)
             < 0)
      return -1;
  *out = steal (calls);
  return 0;
}

void
contract_calls_free (struct contract_calls *calls)
{
  free (calls);
}

typedef void (*function) (void);

/* The function in the operation's slot; NULL when the vtable is too short. */
static function
vtable_function (const struct coffer_operations *vtable, uint32_t slot)
{
  function found;

  if (vtable->size < slot + sizeof found)
    return NULL;
  memcpy (&found, (const char *) vtable + slot, sizeof found);
  return found;
}

/* Is there an argument that must not be NULL and is? */
static int
argument_missing (const struct contract_op *op,
                  const union contract_value *values)
{
  size_t i;

  for (i = 0; i < op->n_args; i++)
    if (contract_argument_required (&op->args[i]) && values[i].rec == NULL)
      return 1;
  return 0;
}

/* Does a record of the call say something that the module cannot know? */
static int
later_field_used (const struct contract_op *op,
                  const union contract_value *values, uint16_t minor)
{
  size_t i;

  for (i = 0; i < op->n_args; i++)
    if (contract_value_is_later (&op->args[i], &values[i], minor))
      return 1;
  return contract_record_is_later (op->opts, values[op->n_args].rec, minor);
}

int32_t
contract_invoke (const struct contract_calls *calls,
                 const struct contract_op *op,
                 const struct coffer_operations *vtable,
                 struct coffer_call *call, void *self,
                 const union contract_value *values)
{
  const struct contract *contract = calls->contract;
  size_t index = op - contract->ops, i;
  void *pointers[FIXED_ARGS + CONTRACT_MAX_ARGS + 1];
  ffi_arg result = 0;
  function called;

  if (op->since > calls->minor)
    return COFFER_UNSUPPORTED;
  called = vtable_function (vtable, op->slot);
  if (called == NULL)
    return COFFER_UNSUPPORTED;
  if (argument_missing (op, values))
    return COFFER_INVALID;
  if (calls->minor < contract->minor
      && later_field_used (op, values, calls->minor))
    return COFFER_UNSUPPORTED;

  pointers[0] = &call;
  pointers[1] = &self;
  for (i = 0; i <= op->n_args; i++)
    pointers[FIXED_ARGS + i] = (void *) &values[i];
  ffi_call ((ffi_cif *) &calls->interfaces[index].cif, called, &result,
            pointers);
  return (int32_t) result;
}
