/* SPDX-License-Identifier: Apache-2.0 */
/* Finding an operation by the name that a person typed. */

#include <config.h>

#include "cli/operation.h"

#include "base/text.h"

#define NAMES_MAX 256

int
operation_find (const struct contract *contract, const char *name,
                const struct contract_op **out, struct error **err)
{
  const char *names[NAMES_MAX + 1], *nearest;
  size_t i;

  *out = contract_op_by_name (contract, name);
  if (*out)
    return 0;
  for (i = 0; i < contract->n_ops && i < NAMES_MAX; i++)
    names[i] = contract->ops[i].name;
  names[i] = NULL;
  nearest = text_nearest (name, names);
  error_set (err, E_NOT_FOUND, 0, "no operation is called %s", name);
  error_hint (err, "%s%s%scoffer contract lists them all",
              nearest ? "did you mean " : "", nearest ? nearest : "",
              nearest ? "?  " : "");
  return -1;
}
