/* SPDX-License-Identifier: Apache-2.0 */
/* The table of tables, in the order of `coffer --help`. */

#include <config.h>

#include "cli/commands.h"

const struct cli_table cli_tables[] = {
  { run_commands },
  { sandbox_commands },
  { sandbox_life_commands },
  { sandbox_exec_commands },
  { sandbox_file_commands },
  { sandbox_metrics_commands },
  { sandbox_ps_commands },
  { sandbox_port_commands },
  { template_commands },
  { profile_commands },
  { token_commands },
  { provider_commands },
  { provider_install_commands },
  { seal_commands },
  { kit_commands },
  { serve_commands },
  { call_commands },
  { contract_commands },
  { explain_commands },
  { help_commands },
  { NULL }
};
