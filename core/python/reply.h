/* SPDX-License-Identifier: Apache-2.0 */
/* From what a run came to, to the document that is answered. */

#ifndef PYTHON_REPLY_H
#define PYTHON_REPLY_H

#include "python/channel.h"
#include "python/execute.h"
#include "python/kept.h"

struct outcome {
  const char *profile;
  const struct exec_result *exec;
  const struct frames *frames;
  const struct kept *out, *err;
  const json_t *applied;        /* of sandbox_create: its facts */
};

/* Fills `out`; E_EXEC_START when the runner has failed before its verdict. */
int reply_fill (const struct outcome *outcome, struct execute_result *out,
                struct error **err);

/* The layers that were read back as applied, of those of the sandbox. */
json_t *reply_layers (const json_t *facts);

#endif /* PYTHON_REPLY_H */
