/* SPDX-License-Identifier: Apache-2.0 */
/* `coffer run --python`. */

#ifndef CLI_RUN_PYTHON_H
#define CLI_RUN_PYTHON_H

#include "cli/cli.h"

#define PYTHON_OPTIONS                                                        \
  { "python", 0, "FILE", 0,                                                   \
    "run this Python code, guarded; - is stdin" }, \
  { "artifacts", 0, "DIR", 0,                                                 \
    "of --python: keep here what it wrote to ./out" }

/* Without a command; the exit status, or -1. */
int run_python (struct cli *cli, struct error **err);

#endif /* CLI_RUN_PYTHON_H */
