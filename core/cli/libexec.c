/* SPDX-License-Identifier: Apache-2.0 */
/* A command's options handed on to its program.  See libexec.h. */

#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <coffer/buffer.h>
#include <coffer/fd.h>

#include "base/helper.h"
#include "cli/libexec.h"
#include "cli/output.h"

int
libexec_open (const struct place *place, const char *name, struct error **err)
{
  struct error *error = NULL;
  int fd = helper_program_open (place, name, &error);

  if (fd >= 0)
    return fd;
  if (error->number == E_IO)
    error_hint (&error, "is %s installed?  Packages may have it apart", name);
  return error_move (err, error);
}

static void
add_options (const struct cli *cli, struct coffer_strings *words)
{
  size_t i;

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

int
libexec_run (struct cli *cli, const char *name, struct error **err)
{
  coffer_autostrings struct coffer_strings words = { 0 };
  coffer_autoclose int program = -1;
  const struct place *place;
  int i;

  if (cli_place (cli, &place, err) < 0)
    return -1;
  coffer_strings_add (&words, name);
  add_options (cli, &words);
  coffer_strings_add (&words, "--");
  for (i = 0; i < cli->n_args; i++)
    coffer_strings_add (&words, cli->args[i]);
  if (words.failed)
    return error_set (err, E_NO_MEMORY, 0, "out of memory");
  program = libexec_open (place, name, err);
  if (program < 0)
    return -1;
  syscall (SYS_execveat, program, "", words.items, environ, AT_EMPTY_PATH);
  return error_set (err, E_IO, errno, "execute %s", name);
}
