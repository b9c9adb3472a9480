/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a command line against the table.
 *
 * One pass from left to right.  Until the command's words are complete an
 * option may belong to any command; what it belongs to is settled when the
 * whole line is read.  That works because a name or letter takes an argument
 * in all commands or in none (a unit test holds the table to that). */

#include <config.h>

#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <coffer/buffer.h>

#include "base/text.h"

struct parser {
  struct cli *cli;
  int argc;
  const char *const *argv;
  int next;                     /* index of the argument to read */
  int raw;                      /* nothing is an option any more */
  struct error **err;
};

const struct cli_option cli_global_options[] = {
  { "json", 0, NULL, 0, "print JSON on stdout, errors included" },
  { "provider", 0, "ID", 0, "use this provider, not the configured one" },
  { "host", 0, "unix:PATH", 0,
    "ask the daemon at this socket, not the own one" },
  { "yes", 0, NULL, 0, "ask nothing: every question is answered with yes" },
  { "verbose", 0, NULL, 0, "say on stderr what is done" },
  { "color", 0, "WHEN", 0, "auto, always or never" },
  { "version", 0, NULL, 0, "print the version and exit" },
  { "help", 'h', NULL, 0, "print this and exit" },
  { NULL }
};

/* ---- looking up the table ----------------------------------------------- */

const struct cli_command *
cli_command_at (size_t index)
{
  const struct cli_table *table;
  const struct cli_command *command;

  for (table = cli_tables; table->commands; table++)
    for (command = table->commands; command->words; command++)
      if (index-- == 0)
        return command;
  return NULL;
}

const struct cli_command *
cli_find_command (const char *words)
{
  const struct cli_command *command;
  size_t i;

  for (i = 0; (command = cli_command_at (i)); i++)
    if (!strcmp (command->words, words))
      return command;
  return NULL;
}

int
cli_is_group (const char *word)
{
  const struct cli_command *command;
  size_t i, length = strlen (word);

  for (i = 0; (command = cli_command_at (i)); i++)
    if (!strncmp (command->words, word, length)
        && command->words[length] == ' ')
      return 1;
  return 0;
}

static const struct cli_option *
find_in (const struct cli_option *options, char letter, const char *name,
         size_t length)
{
  for (; options && options->name; options++) {
    if (letter && options->letter == letter)
      return options;
    if (!letter && strlen (options->name) == length
        && !memcmp (options->name, name, length))
      return options;
  }
  return NULL;
}

const struct cli_option *
cli_find_option (const struct cli_command *command, char letter,
                 const char *name, size_t length)
{
  const struct cli_option *found;
  const struct cli_command *any;
  size_t i;

  if (command
      && (found = find_in (command->options, letter, name, length)))
    return found;
  if ((found = find_in (cli_global_options, letter, name, length)))
    return found;
  if (!command)
    for (i = 0; (any = cli_command_at (i)); i++)
      if ((found = find_in (any->options, letter, name, length)))
        return found;
  return NULL;
}

/* ---- failing with the nearest name -------------------------------------- */

/* --memory is too far from --mem to be a slip, but begins like it. */
static const char *
same_beginning (const char *shown, const char *const *names)
{
  size_t length;

  for (; *names; names++) {
    length = strlen (*names);
    if (strlen (shown) < length)
      length = strlen (shown);
    if (length > strlen ("--x") && !strncmp (shown, *names, length))
      return *names;
  }
  return NULL;
}

static int
fail_option (struct parser *parser, const char *shown)
{
  const struct cli_command *command = parser->cli->command, *any;
  const struct cli_option *option;
  coffer_autostrings struct coffer_strings names = { 0 };
  const char *nearest;
  size_t i;

  for (option = cli_global_options; option->name; option++)
    coffer_strings_printf (&names, "--%s", option->name);
  for (i = 0; (any = command ? command : cli_command_at (i)); i++) {
    for (option = any->options; option && option->name; option++)
      coffer_strings_printf (&names, "--%s", option->name);
    if (command)
      break;
  }
  error_set (parser->err, E_USAGE, 0, "unknown option %s%s%s", shown,
             command ? " for coffer " : "", command ? command->words : "");
  nearest = shown[1] == '-'
            ? text_nearest (shown, coffer_strings_view (&names)) : NULL;
  if (!nearest && shown[1] == '-')
    nearest = same_beginning (shown, coffer_strings_view (&names));
  if (nearest)
    error_hint (parser->err, "did you mean %s?", nearest);
  else if (command)
    error_hint (parser->err, "coffer %s --help lists the options",
                command->words);
  return -1;
}

/* The first command whose last word this is: exec is sandbox exec. */
static const char *
command_in_a_group (const char *word)
{
  const struct cli_command *command;
  const char *space;
  size_t i;

  for (i = 0; (command = cli_command_at (i)); i++)
    if ((space = strchr (command->words, ' ')) && !strcmp (space + 1, word))
      return command->words;
  return NULL;
}

static int
fail_command (struct parser *parser, const char *word)
{
  const char *group = parser->cli->group, *nearest, *words;
  size_t i, skip = group ? strlen (group) + 1 : 0;
  const struct cli_command *command;
  coffer_autostrings struct coffer_strings names = { 0 };

  for (i = 0; (command = cli_command_at (i)); i++) {
    words = command->words;
    if (group && (strncmp (words, group, skip - 1) || words[skip - 1] != ' '))
      continue;
    coffer_strings_printf (&names, "%.*s", (int) strcspn (words + skip, " "),
                           words + skip);
  }
  error_set (parser->err, E_USAGE, 0, "unknown command %s%s%s",
             group ? group : "", group ? " " : "", word);
  nearest = group ? NULL : command_in_a_group (word);
  if (!nearest)
    nearest = text_nearest (word, coffer_strings_view (&names));
  if (nearest)
    error_hint (parser->err, "did you mean coffer %s%s%s?",
                group ? group : "", group ? " " : "", nearest);
  else
    error_hint (parser->err, "coffer %s%s--help lists the commands",
                group ? group : "", group ? " " : "");
  return -1;
}

/* ---- options ------------------------------------------------------------ */

static int
add_given (struct parser *parser, const struct cli_option *option,
           const char *value)
{
  struct cli *cli = parser->cli;

  /* Room was made for argc of them, and letters in a cluster can be more. */
  struct cli_given *grown
    = realloc (cli->given, (cli->n_given + 1) * sizeof *grown);
  if (!grown)
    return error_set (parser->err, E_NO_MEMORY, 0, "reading the options");
  cli->given = grown;
  cli->given[cli->n_given++] = (struct cli_given){ option, value };
  /* What an error of the rest of the line is printed by. */
  if (!strcmp (option->name, "json"))
    cli->json = 1;
  else if (!strcmp (option->name, "color"))
    cli->color = !strcmp (value, "always") ? COLOR_ALWAYS
                 : !strcmp (value, "never") ? COLOR_NEVER : COLOR_AUTO;
  else if (!strcmp (option->name, "help"))
    cli->help = 1;
  return 0;
}

static int
take_value (struct parser *parser, const char *shown, const char **value)
{
  /* A value "--" is written --option=-- by whoever means it. */
  if (parser->next >= parser->argc
      || !strcmp (parser->argv[parser->next], "--"))
    return error_set (parser->err, E_USAGE, 0, "%s needs a value", shown);
  *value = parser->argv[parser->next++];
  return 0;
}

static int
parse_long (struct parser *parser, const char *arg)
{
  const char *name = arg + 2, *equals = strchr (name, '='), *value = NULL;
  size_t length = equals ? (size_t) (equals - name) : strlen (name);
  const struct cli_option *option;
  auto_free char *shown = text_printf ("--%.*s", (int) length, name);

  if (!shown)
    return error_set (parser->err, E_NO_MEMORY, 0, "reading the options");
  option = cli_find_option (parser->cli->command, 0, name, length);
  if (!option)
    return fail_option (parser, shown);
  if (!option->argument && equals)
    return error_set (parser->err, E_USAGE, 0, "%s takes no value", shown);
  if (equals)
    value = equals + 1;
  else if (option->argument && take_value (parser, shown, &value) < 0)
    return -1;
  return add_given (parser, option, value);
}

/* -it, -w DIR, -wDIR. */
static int
parse_letters (struct parser *parser, const char *arg)
{
  const struct cli_option *option;
  const char *letter, *value;
  char shown[3] = "-?";

  for (letter = arg + 1; *letter; letter++) {
    shown[1] = *letter;
    option = cli_find_option (parser->cli->command, *letter, NULL, 0);
    if (!option)
      return fail_option (parser, (unsigned char) *letter < 0x80 ? shown : arg);
    value = NULL;
    if (option->argument) {
      if (letter[1])
        value = letter + 1;
      else if (take_value (parser, shown, &value) < 0)
        return -1;
    }
    if (add_given (parser, option, value) < 0)
      return -1;
    if (option->argument)
      break;
  }
  return 0;
}

/* ---- words -------------------------------------------------------------- */

static int
parse_word (struct parser *parser, const char *word)
{
  struct cli *cli = parser->cli;
  auto_free char *words = NULL;

  if (cli->command) {
    cli->args[cli->n_args++] = word;
    if (cli->command->rest_after >= 0
        && cli->n_args > cli->command->rest_after)
      parser->raw = 1;
    return 0;
  }
  words = cli->group ? text_printf ("%s %s", cli->group, word)
                     : text_printf ("%s", word);
  if (!words)
    return error_set (parser->err, E_NO_MEMORY, 0, "reading the command");
  cli->command = cli_find_command (words);
  if (cli->command)
    return 0;
  if (cli->group || !cli_is_group (word))
    return fail_command (parser, word);
  cli->group = word;
  return 0;
}

static int
parse_argument (struct parser *parser)
{
  const char *arg = parser->argv[parser->next++];

  if (parser->raw || arg[0] != '-' || !arg[1])
    return parse_word (parser, arg);
  if (!strcmp (arg, "--")) {
    parser->raw = 1;
    return 0;
  }
  return arg[1] == '-' ? parse_long (parser, arg)
                       : parse_letters (parser, arg);
}

/* ---- what the whole line must be ---------------------------------------- */

/* Options that stood before the command's name now have an owner. */
static int
settle_options (struct parser *parser)
{
  struct cli *cli = parser->cli;
  const struct cli_option *option;
  auto_free char *shown = NULL;
  size_t i, j;

  for (i = 0; i < cli->n_given; i++) {
    const char *name = cli->given[i].option->name;

    option = cli_find_option (cli->command, 0, name, strlen (name));
    if (!option) {
      shown = text_printf ("--%s", name);
      return fail_option (parser, shown ? shown : "--?");
    }
    cli->given[i].option = option;
    for (j = 0; j < i; j++)
      if (cli->given[j].option == option && option->argument
          && !(option->flags & OPTION_REPEATED))
        return error_set (parser->err, E_USAGE, 0, "--%s is given twice",
                          name);
  }
  return 0;
}

static int
settle_globals (struct parser *parser)
{
  struct cli *cli = parser->cli;
  const char *when = cli_value (cli, "color");

  cli->yes = cli_flag (cli, "yes");
  cli->verbose = cli_flag (cli, "verbose");
  cli->version = cli_flag (cli, "version");
  cli->provider = cli_value (cli, "provider");
  cli->host = cli_value (cli, "host");
  if (when && cli->color == COLOR_AUTO && strcmp (when, "auto"))
    return error_set (parser->err, E_USAGE, 0,
                      "--color is auto, always or never, not %s", when);
  return 0;
}

static int
settle_arguments (struct parser *parser)
{
  const struct cli *cli = parser->cli;
  const struct cli_command *command = cli->command;

  if (cli->n_args < command->least) {
    error_set (parser->err, E_USAGE, 0, "coffer %s needs %s", command->words,
               command->arguments);
    error_hint (parser->err, "coffer %s --help shows how it is used",
                command->words);
    return -1;
  }
  if (command->most >= 0 && cli->n_args > command->most) {
    error_set (parser->err, E_USAGE, 0, "coffer %s: unexpected argument %s",
               command->words, cli->args[command->most]);
    error_hint (parser->err, "coffer %s --help shows how it is used",
                command->words);
    return -1;
  }
  return 0;
}

int
cli_parse (struct cli *cli, int argc, const char *const *argv,
           struct error **err)
{
  struct parser parser = { cli, argc, argv, 1, 0, err };
  int i;

  cli->args = calloc ((size_t) argc + 1, sizeof *cli->args);
  if (!cli->args)
    return error_set (err, E_NO_MEMORY, 0, "reading the command line");
  while (parser.next < argc)
    if (parse_argument (&parser) < 0) {
      /* The error is printed as the rest of the line asks for. */
      for (i = parser.next; i < argc && strcmp (argv[i], "--"); i++)
        if (!strcmp (argv[i], "--json"))
          cli->json = 1;
      return -1;
    }
  if (settle_globals (&parser) < 0)
    return -1;
  if (cli->help || cli->version)
    return 0;
  if (!cli->command) {
    error_set (err, E_USAGE, 0, "a command is needed%s%s",
               cli->group ? " after coffer " : "",
               cli->group ? cli->group : "");
    error_hint (err, "coffer %s%s--help lists them",
                cli->group ? cli->group : "", cli->group ? " " : "");
    return -1;
  }
  return settle_options (&parser) < 0 ? -1 : settle_arguments (&parser);
}
