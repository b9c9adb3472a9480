/* SPDX-License-Identifier: Apache-2.0 */
/* coffer: reads the command line, runs one command, prints what failed. */

#include <config.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <fcntl.h>

#include "base/log.h"
#include "cli/built-in.h"
#include "cli/cli.h"
#include "cli/output.h"
#include "cli/scope.h"
#include "provider/built-in.h"

/* A program started without standard descriptors would otherwise open a
 * file of its own as one of them and print into it. */
static int
fill_standard_descriptors (void)
{
  int fd;

  do
    fd = open ("/dev/null", O_RDWR | O_NOCTTY);
  while (fd >= 0 && fd <= STDERR_FILENO);
  if (fd < 0)
    return -1;
  close (fd);
  return 0;
}

static void
note_nothing (int number)
{
  (void) number;
}

/* A reader that went away and a file that may not grow are errors of write(2).
 * By a handler, as programs that are executed inherit what is ignored. */
static void
survive_writes (void)
{
  struct sigaction action = { .sa_handler = note_nothing,
                              .sa_flags = SA_RESTART };

  sigaction (SIGPIPE, &action, NULL);
  sigaction (SIGXFSZ, &action, NULL);
}

static int
print_help (const struct cli *cli, struct error **err)
{
  auto_free char *text = NULL;

  if (cli->json)
    return output_json (cli_table_json (), err);
  text = cli_help_text (cli->command, cli->group);
  if (!text)
    return error_set (err, E_NO_MEMORY, 0, "printing help");
  fputs (text, stdout);
  return output_finish (err);
}

/* What no daemon does for others. */
static int
refuse_host (const struct cli *cli, struct error **err)
{
  error_set (err, E_INVALID, 0, "coffer %s asks no daemon, and --host names "
             "one", cli->command->words);
  error_hint (err, "leave --host out: this command works here, directly");
  return -1;
}

static int
run_command (struct cli *cli, int argc, char **argv, struct error **err)
{
  if (cli_parse (cli, argc, (const char *const *) argv, err) < 0)
    return -1;
  if (cli->help)
    return print_help (cli, err);
  if (cli->version)
    return cli_find_command ("version")->run (cli, err);
  if (cli->host && !(cli->command->flags & COMMAND_DAEMON))
    return refuse_host (cli, err);
  log_configure (secure_getenv ("COFFER_LOG"));
  if (cli->verbose && !log_enabled (LOG_LEVEL_INFO, "cli"))
    log_set_level (LOG_LEVEL_INFO);
  return cli->command->run (cli, err);
}

int
main (int argc, char **argv)
{
  struct cli cli = { 0 };
  auto_error struct error *err = NULL;
  int status;

  if (fill_standard_descriptors () < 0) {
    dprintf (STDERR_FILENO, "coffer: E%d: open /dev/null: %s\n", E_IO,
             strerror (errno));
    return 125;
  }
  survive_writes ();
  cli_built_in ();
  status = run_command (&cli, argc, argv, &err);
  built_in_end ();
  if (status < 0 && output_unwanted (err)) {
    status = 128 + SIGPIPE;
  } else if (status < 0) {
    scope_run_again (&cli, argv, err);
    output_error (&cli, err);
    status = cli_failure_status (&cli, err);
  }
  cli_fini (&cli);
  return status;
}
