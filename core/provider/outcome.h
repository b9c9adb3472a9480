/* SPDX-License-Identifier: Apache-2.0 */
/* How a call ended, as the module told it, and the public error it becomes. */

#ifndef PROVIDER_OUTCOME_H
#define PROVIDER_OUTCOME_H

#include <jansson.h>

#include "base/error.h"
#include "contract/contract.h"
#include "provider/manifest.h"

#define OUTCOME_MAX_MESSAGE 2048
#define OUTCOME_MAX_DETAILS (32 * 1024)

struct outcome {
  int32_t code;                 /* enum coffer_code, checked */
  int32_t returned;             /* the same as the module gave it */
  int32_t retryable;            /* enum coffer_retryable */
  char *message;
  json_t *details;              /* an object, or NULL */
  struct error *error;          /* a fault that the host saw: goes first */
};

void outcome_fini (struct outcome *outcome);

/* The first one wins: what follows is a consequence. */
void outcome_fault (struct outcome *outcome, struct error *take_error);

/* What a module gave to `fail`: bounded, made UTF-8, details parsed (what is
 * not a JSON object is dropped). */
void outcome_fail (struct outcome *outcome, int32_t code, int32_t retryable,
                   const char *message, const char *details);

/* -1 with the public error, unless the call went well. */
int outcome_error (struct outcome *outcome, const struct manifest *manifest,
                   const struct contract_op *op, struct error **err);

#endif /* PROVIDER_OUTCOME_H */
