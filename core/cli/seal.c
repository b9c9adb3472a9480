/* SPDX-License-Identifier: Apache-2.0 */
/* `coffer seal`. */

#include <config.h>

#include "cli/commands.h"

#include "cli/output.h"
#include "provider/seal.h"

static int
seal_print (struct cli *cli, const struct seal_report *report,
            struct error **err)
{
  if (cli->json)
    return output_json (json_pack ("{s:s, s:s, s:I, s:I, s:b}", "id",
                                   report->id, "manifest", report->output,
                                   "modules", (json_int_t) report->modules,
                                   "files", (json_int_t) report->files,
                                   "changed", report->changed), err);
  if (cli->verbose)
    output_note ("%s: hashed %zu module and %zu files into %s", report->id,
                 report->modules, report->files, report->output);
  return output_finish (err);
}

static int
seal_run (struct cli *cli, struct error **err)
{
  struct seal_report report;
  int r;

  if (seal_manifest (cli->args[0], cli_value (cli, "dir"),
                     cli_value (cli, "output"), &report, err) < 0)
    return -1;
  r = seal_print (cli, &report, err);
  seal_report_fini (&report);
  return r;
}

static const struct cli_option seal_options[] = {
  { "output", 0, "FILE", 0, "write there instead of into the manifest" },
  { "dir", 0, "DIR", 0, "where the module is; beside it unless said" },
  { NULL }
};

const struct cli_command seal_commands[] = {
  { "seal", "MANIFEST", "write a module's hashes into its manifest",
    seal_options, 1, 1, -1, 0, seal_run },
  { NULL }
};
