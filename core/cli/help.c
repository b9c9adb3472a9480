/* SPDX-License-Identifier: Apache-2.0 */
/* Help, made from the table: for people, and as JSON for the completions and
 * the check of the manual. */

#include <config.h>

#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

#include <coffer/buffer.h>

#include "cli/output.h"

/* "-w, --workspace DIR[:rw]" */
static void
add_option_name (struct coffer_buffer *text, const struct cli_option *option)
{
  if (option->letter)
    coffer_buffer_printf (text, "-%c, ", option->letter);
  else
    coffer_buffer_add_string (text, "    ");
  coffer_buffer_printf (text, "--%s%s%s", option->name,
                        option->argument ? " " : "",
                        option->argument ? option->argument : "");
}

static void
add_row (struct coffer_buffer *text, const char *left, const char *right,
         size_t width)
{
  size_t used = output_width (left);

  coffer_buffer_printf (text, "  %s", left);
  if (used > width) {
    coffer_buffer_add_string (text, "\n  ");
    used = 0;
  }
  coffer_buffer_printf (text, "%*s  %s\n", (int) (width - used), "", right);
}

static void
add_options (struct coffer_buffer *text, const char *title,
             const struct cli_option *options)
{
  coffer_autobuffer struct coffer_buffer name = { 0 };

  if (!options || !options->name)
    return;
  coffer_buffer_printf (text, "\n%s:\n", title);
  for (; options->name; options++) {
    coffer_buffer_clear (&name);
    add_option_name (&name, options);
    if (!name.failed)
      add_row (text, name.data, options->help, 28);
  }
}

static void
add_command (struct coffer_buffer *text, const struct cli_command *command)
{
  coffer_buffer_printf (text, "usage: coffer %s%s%s%s\n\n%s\n", command->words,
                        command->options ? " [OPTION…]" : "",
                        *command->arguments ? " " : "", command->arguments,
                        command->summary);
  add_options (text, "options", command->options);
  add_options (text, "options of every command", cli_global_options);
}

static void
add_commands (struct coffer_buffer *text, const char *group)
{
  const struct cli_command *command;
  size_t i, length = group ? strlen (group) : 0;

  for (i = 0; (command = cli_command_at (i)); i++)
    if (!group
        || (!strncmp (command->words, group, length)
            && command->words[length] == ' '))
      add_row (text, command->words, command->summary, 20);
}

char *
cli_help_text (const struct cli_command *command, const char *group)
{
  struct coffer_buffer text = { 0 };

  if (command) {
    add_command (&text, command);
    return coffer_buffer_steal (&text);
  }
  coffer_buffer_printf (&text, "usage: coffer %s%sCOMMAND [OPTION…]\n\n",
                        group ? group : "", group ? " " : "");
  if (!group)
    coffer_buffer_add_string (
      &text, "Runs code that nobody trusts yet, in a sandbox:\n"
             "  coffer run -w . -- python3 script.py\n\n");
  coffer_buffer_add_string (&text, "commands:\n");
  add_commands (&text, group);
  add_options (&text, "options of every command", cli_global_options);
  coffer_buffer_add_string (
    &text, "\ncoffer COMMAND --help shows a command's own options; coffer(1) "
           "is the manual.\n");
  return coffer_buffer_steal (&text);
}

/* ---- as JSON ------------------------------------------------------------ */

static json_t *
options_json (const struct cli_option *options)
{
  json_t *array = json_array ();
  char letter[2] = "";

  for (; options && options->name; options++) {
    letter[0] = options->letter;
    json_array_append_new (
      array, json_pack ("{s:s, s:o, s:s?, s:b, s:s}", "name", options->name,
                        "letter", *letter ? json_string (letter) : json_null (),
                        "argument", options->argument, "repeated",
                        options->flags & OPTION_REPEATED, "help",
                        options->help));
  }
  return array;
}

json_t *
cli_table_json (void)
{
  const struct cli_command *command;
  json_t *commands = json_array ();
  size_t i;

  for (i = 0; (command = cli_command_at (i)); i++)
    json_array_append_new (
      commands,
      json_pack ("{s:s, s:s, s:s, s:o}", "words", command->words, "arguments",
                 command->arguments, "summary", command->summary, "options",
                 options_json (command->options)));
  return json_pack ("{s:o, s:o}", "commands", commands, "options",
                    options_json (cli_global_options));
}
