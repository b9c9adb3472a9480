/* SPDX-License-Identifier: Apache-2.0 */
/* Finding an operation by the name that a person typed. */

#ifndef CLI_OPERATION_H
#define CLI_OPERATION_H

#include "contract/contract.h"

/* E_NOT_FOUND, with the nearest name in the hint. */
int operation_find (const struct contract *contract, const char *name,
                    const struct contract_op **out, struct error **err);

#endif /* CLI_OPERATION_H */
