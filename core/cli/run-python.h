/* SPDX-License-Identifier: Apache-2.0 */
/* `coffer run --python`. */

#ifndef CLI_RUN_PYTHON_H
#define CLI_RUN_PYTHON_H

#include "cli/cli.h"

#define PYTHON_OPTIONS                                                        \
  { "python", 0, "FILE", 0,                                                   \
    "run this Python code, - for standard input, in the guarded interpreter" }, \
  { "artifacts", 0, "DIR", 0,                                                 \
    "with --python: keep what the code wrote to ./out here" }

/* Without a command; the exit status, or -1. */
int run_python (struct cli *cli, struct error **err);

#endif /* CLI_RUN_PYTHON_H */
