/* SPDX-License-Identifier: Apache-2.0 */
/* `coffer kit`: the table's options, handed to coffer-kit, which takes this
 * process's place.  The kit lies in libexec so that `coffer` stays small. */

#include <config.h>

#include "cli/commands.h"
#include "cli/kit.h"
#include "cli/libexec.h"

#define KIT_NAME "coffer-kit"

int
kit_open_program (const struct place *place, struct error **err)
{
  return libexec_open (place, KIT_NAME, err);
}

static int
kit_run (struct cli *cli, struct error **err)
{
  return libexec_run (cli, KIT_NAME, err);
}

static const struct cli_option kit_options[] = {
  { "list", 0, NULL, 0, "print the cases and what each proves" },
  { "only", 0, "GLOB", OPTION_REPEATED, "only cases whose id is like this" },
  { "seed", 0, "N", 0, "draw order and values from this number" },
  { "in-process", 0, NULL, 0, "without a worker, to debug; never conformant" },
  { "record", 0, NULL, 0, "keep the report with the installed provider" },
  { "compare", 0, NULL, 0, "name what changed between two reports" },
  { "junit", 0, "FILE", 0, "write a report for JUnit's readers too" },
  { NULL }
};

const struct cli_command kit_commands[] = {
  { "kit", "PROVIDER|MANIFEST|FOLDER|OLD NEW",
    "try whether a provider keeps the contract", kit_options, 0, 2, -1, 0,
    kit_run },
  { NULL }
};
