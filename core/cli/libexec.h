/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that are programs of libexec, which take this process's place. */

#ifndef CLI_LIBEXEC_H
#define CLI_LIBEXEC_H

#include "cli/cli.h"

/* The program of that name, checked, to be executed from this descriptor. */
int libexec_open (const struct place *place, const char *name,
                  struct error **err);
/* Executes it with the command's own options, which it knows under the same
 * names and without letters, those of every command that were given, and the
 * arguments behind "--".  Returns only when it could not. */
int libexec_run (struct cli *cli, const char *name, struct error **err);

#endif /* CLI_LIBEXEC_H */
