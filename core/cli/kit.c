/* SPDX-License-Identifier: Apache-2.0 */
/* `coffer kit`: the table's options, handed to coffer-kit, which takes this
 * process's place.  The kit lies in libexec so that `coffer` stays small. */

#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <coffer/buffer.h>
#include <coffer/fd.h>

#include "base/helper.h"
#include "cli/commands.h"
#include "cli/kit.h"
#include "cli/output.h"

#define KIT_NAME "coffer-kit"

int
kit_open_program (const struct place *place, struct error **err)
{
  struct error *error = NULL;
  int fd = helper_program_open (place, KIT_NAME, &error);

  if (fd >= 0)
    return fd;
  if (error->number == E_IO)
    error_hint (&error, "is the kit installed?  Packages may have it apart");
  return error_move (err, error);
}

/* The kit knows the same options, and no letters. */
static void
add_options (const struct cli *cli, struct coffer_strings *words)
{
  size_t i;

  coffer_strings_add (words, KIT_NAME);
  for (i = 0; i < cli->n_given; i++) {
    const struct cli_given *given = &cli->given[i];
    const struct cli_option *option = cli->command->options;

    while (option->name && option != given->option)
      option++;
    if (!option->name)
      continue;                 /* one of every command's */
    if (given->value)
      coffer_strings_printf (words, "--%s=%s", option->name, given->value);
    else
      coffer_strings_printf (words, "--%s", option->name);
  }
  if (cli->json)
    coffer_strings_add (words, "--json");
  if (cli->yes)
    coffer_strings_add (words, "--yes");
  if (cli->verbose)
    coffer_strings_add (words, "--verbose");
  if (output_colored (cli, stdout))
    coffer_strings_add (words, "--color");
}

static int
kit_run (struct cli *cli, struct error **err)
{
  coffer_autostrings struct coffer_strings words = { 0 };
  coffer_autoclose int program = -1;
  const struct place *place;
  int i;

  if (cli_place (cli, &place, err) < 0)
    return -1;
  add_options (cli, &words);
  coffer_strings_add (&words, "--");
  for (i = 0; i < cli->n_args; i++)
    coffer_strings_add (&words, cli->args[i]);
  if (words.failed)
    return error_set (err, E_NO_MEMORY, 0, "out of memory");
  program = kit_open_program (place, err);
  if (program < 0)
    return -1;
  syscall (SYS_execveat, program, "", words.items, environ, AT_EMPTY_PATH);
  return error_set (err, E_IO, errno, "execute " KIT_NAME);
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
