/* SPDX-License-Identifier: Apache-2.0 */
/* `coffer serve`: the table's options, handed to coffer-serve, which takes this
 * process's place.  The daemon lies in libexec so that `coffer` stays small. */

#include <config.h>

#include "cli/commands.h"
#include "cli/libexec.h"

#define SERVE_NAME "coffer-serve"

static int
serve_run (struct cli *cli, struct error **err)
{
  return libexec_run (cli, SERVE_NAME, err);
}

static const struct cli_option serve_options[] = {
  { "listen", 0, "ADDRESS:PORT", OPTION_REPEATED,
    "serve HTTP there (127.0.0.1:8000), or none" },
  { "log", 0, "FORMAT", 0, "lines of the log as text (the default) or json" },
  { "socket", 0, "PATH", 0, "the unix socket" },
  { "routes", 0, NULL, 0, "print every path that is served, and exit" },
  { "anonymous", 0, "WHAT", 0,
    "execute: open what runs Python to anybody" },
  { "allow-host", 0, "NAME", OPTION_REPEATED, "a name that it is asked by" },
  { "check", 0, NULL, 0, "say whether the configuration is valid, and end" },
  { NULL }
};

const struct cli_command serve_commands[] = {
  { "serve", "", "serve sandboxes to programs over HTTP", serve_options, 0, 0,
    -1, 0, serve_run },
  { NULL }
};
