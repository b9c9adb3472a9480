/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of each file of commands. */

#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "cli/cli.h"

extern const struct cli_command run_commands[];
extern const struct cli_command sandbox_commands[];
extern const struct cli_command sandbox_exec_commands[];
extern const struct cli_command sandbox_file_commands[];
extern const struct cli_command sandbox_life_commands[];
extern const struct cli_command sandbox_metrics_commands[];
extern const struct cli_command sandbox_port_commands[];
extern const struct cli_command sandbox_ps_commands[];
extern const struct cli_command call_commands[];
extern const struct cli_command contract_commands[];
extern const struct cli_command explain_commands[];
extern const struct cli_command help_commands[];
extern const struct cli_command profile_commands[];
extern const struct cli_command template_commands[];
extern const struct cli_command token_commands[];
extern const struct cli_command provider_commands[];
extern const struct cli_command provider_install_commands[];
extern const struct cli_command seal_commands[];
extern const struct cli_command kit_commands[];
extern const struct cli_command serve_commands[];

#endif /* CLI_COMMANDS_H */
