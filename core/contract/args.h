/* SPDX-License-Identifier: Apache-2.0 */
/* One struct an operation, with a member for each argument and for `opts`:
 * struct contract_args_exec_start { const char *sandbox; …; opts; }.  They let
 * the host call operations with named, typed arguments. */

#ifndef CONTRACT_ARGS_H
#define CONTRACT_ARGS_H

#include <coffer/provider.h>

#include "contract/contract.h"

#define CONTRACT_X_ARG(type, name, doc) COFFER_TYPE_##type name;
#define CONTRACT_X_RARG(type, record, name, doc)                              \
  COFFER_RTYPE_##type (record) name;
#define CONTRACT_X(id, name, since, capability, args, OPTS, doc)              \
  struct contract_args_##name {                                               \
    args const struct coffer_##name##_opts *opts;                             \
  };
COFFER_OPERATIONS (CONTRACT_X, CONTRACT_X_ARG, CONTRACT_X_RARG)
#undef CONTRACT_X
#undef CONTRACT_X_ARG
#undef CONTRACT_X_RARG

/* Reads such a struct into values[n_args + 1] by the table's offsets. */
void contract_args_values (const struct contract_op *op, const void *args,
                           union contract_value *values);

#endif /* CONTRACT_ARGS_H */
