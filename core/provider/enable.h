/* SPDX-License-Identifier: Apache-2.0 */
/* Letting a provider be used. */

#ifndef PROVIDER_ENABLE_H
#define PROVIDER_ENABLE_H

#include "provider/registry.h"

/* Has the kit try a provider and record what came of it: what counts is what it
 * recorded.  -1: it was not tried. */
typedef int provider_judge (void *data, const char *id, struct error **err);

/* What was dropped in by hand is checked and gets a receipt, what has not shown
 * that it keeps the contract is tried (judge NULL: E_NOT_CONFORMANT), and then
 * the operator's file says that it is meant.  One that does not pass is as it
 * was before. */
int provider_enable (const struct place *place, const char *id,
                     provider_judge *judge, void *data, int *changed,
                     struct error **err);

#endif /* PROVIDER_ENABLE_H */
