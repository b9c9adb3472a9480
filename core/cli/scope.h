/* SPDX-License-Identifier: Apache-2.0 */
/* A run that needs a control group, once more where it has one. */

#ifndef CLI_SCOPE_H
#define CLI_SCOPE_H

#include "cli/cli.h"

/* When a run failed for want of a control group, and systemd may give it one:
 * runs it again in a scope of its own and does not return.  Once: a run that
 * was started so is not.  Returns when there is no way, or it failed. */
void scope_run_again (const struct cli *cli, char **argv,
                      const struct error *error);

#endif /* CLI_SCOPE_H */
