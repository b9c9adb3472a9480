/* SPDX-License-Identifier: Apache-2.0 */
/* `coffer sandbox exec`, `attach` and `shell`. */

#include <config.h>

#include <string.h>

#include "cli/commands.h"
#include "cli/host.h"
#include "cli/spec.h"

/* bash where there is one. */
#define SHELL_STRING "command -v bash >/dev/null 2>&1 && exec bash; exec sh"

static int
run_in (struct cli *cli, struct cli_exec *command, struct error **err)
{
  coffer_autostrings struct coffer_strings env = { 0 };
  const char *workdir = cli_value (cli, "workdir");

  if (workdir && workdir[0] != '/')
    return error_set (err, E_INVALID, 0,
                      "--workdir %s is not an absolute path inside", workdir);
  if (cli_exec_check (cli, command, err) < 0 || spec_env (cli, &env, err) < 0)
    return -1;
  command->sandbox = cli->args[0];
  command->env = coffer_strings_view (&env);
  command->workdir = workdir;
  command->user = cli_value (cli, "user");
  return cli_exec_run (cli, NULL, command, err);
}

static int
exec_run (struct cli *cli, struct error **err)
{
  const char *string = cli_value (cli, "command");
  const char *shell[] = { "/bin/sh", "-c", string, NULL };
  struct cli_exec command = { .argv = shell };

  command.background = cli_flag (cli, "background");
  if (string && cli->n_args > 1)
    return error_set (err, E_USAGE, 0,
                      "--command and a command after the id do not go "
                      "together");
  if (!string && cli->n_args < 2) {
    error_set (err, E_USAGE, 0, "coffer sandbox exec needs a command");
    error_hint (err, "coffer sandbox exec %s -- ARGV…, or -c STRING for a "
                "shell", cli->args[0]);
    return -1;
  }
  if (!string)
    command.argv = cli->args + 1;
  return run_in (cli, &command, err);
}

static int
shell_run (struct cli *cli, struct error **err)
{
  static const char *const argv[] = { "/bin/sh", "-c", SHELL_STRING, NULL };
  struct cli_exec command = { .argv = argv, .terminal = 1 };

  return run_in (cli, &command, err);
}

/* What it has written so far, what it still writes, and how it ends. */
static int
attach_run (struct cli *cli, struct error **err)
{
  static const char *const nothing[] = { "", NULL };
  struct cli_exec command = { .argv = nothing, .sandbox = cli->args[0],
                              .attach = cli->args[1] };

  return cli_exec_run (cli, NULL, &command, err);
}

static const struct cli_option exec_options[] = {
  { "command", 'c', "STRING", 0, "a string for /bin/sh -c, in place of ARGV" },
  { "background", 'd', NULL, 0, "print the command's id and do not wait" },
  COMMAND_OPTIONS,
  STREAM_OPTIONS,
  { NULL }
};

static const struct cli_option shell_options[] = { COMMAND_OPTIONS, { NULL } };

const struct cli_command sandbox_exec_commands[] = {
  { "sandbox exec", "ID -- ARGV… | ID -c STRING",
    "run a command in a sandbox", exec_options, 1, -1, 1,
    COMMAND_RUNS | COMMAND_DAEMON,
    exec_run },
  { "sandbox attach", "ID COMMAND",
    "show what a command in the background writes", NULL, 2, 2,
    -1, COMMAND_RUNS | COMMAND_DAEMON, attach_run },
  { "sandbox shell", "ID", "open a shell on a terminal in a sandbox",
    shell_options, 1, 1, -1, COMMAND_RUNS, shell_run },
  { NULL }
};
