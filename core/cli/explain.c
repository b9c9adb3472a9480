/* SPDX-License-Identifier: Apache-2.0 */
/* `coffer explain`, `version` and `help`: what needs no sandbox. */

#include <config.h>

#include "cli/commands.h"

#include <stdlib.h>
#include <string.h>

#include <coffer/contract.h>

#include "base/text.h"
#include "cli/output.h"

/* ---- explain ------------------------------------------------------------ */

static const char *
retryable_name (enum error_retryable retryable)
{
  static const char *const names[] = { "no", "yes", "unknown" };

  return names[retryable];
}

static json_t *
info_json (const struct error_info *info)
{
  char code[16];

  snprintf (code, sizeof code, "E%d", info->number);
  return json_pack ("{s:s, s:s, s:s, s:i, s:i, s:s, s:s}", "code", code,
                    "name", info->name, "meaning", info->meaning,
                    "exit_status", info->exit_status, "http_status",
                    info->http_status, "retryable",
                    retryable_name (info->retryable), "hint", info->todo);
}

/* "E8006", "8006" or "INTEGRITY", in any case. */
static const struct error_info *
info_find (const char *word)
{
  size_t count, i;
  const struct error_info *table = error_table (&count);
  const char *digits = word + (word[0] == 'E' || word[0] == 'e');
  uint64_t number;

  if (text_parse_u64 (digits, 1, 9999, &number) == 0)
    return error_lookup ((int) number);
  for (i = 0; i < count; i++)
    if (!strcasecmp (table[i].name, word))
      return &table[i];
  return NULL;
}

static int
explain_one (struct cli *cli, const char *word, struct error **err)
{
  const struct error_info *info = info_find (word);

  if (!info)
    return error_set (err, E_UNKNOWN_CODE, 0, "no error code is called %s",
                      word);
  if (cli->json)
    return output_json (info_json (info), err);
  printf ("E%d: %s\n", info->number, info->meaning);
  printf ("  what to do   %s\n", info->todo);
  printf ("  exit status  %d (run and exec: 125)\n", info->exit_status);
  printf ("  HTTP status  %d\n", info->http_status);
  printf ("  try again?   %s\n", retryable_name (info->retryable));
  return output_finish (err);
}

static int
explain_all (struct cli *cli, struct error **err)
{
  static const char *const heads[] = { "CODE", "EXIT", "MEANING" };
  auto_output_table struct output_table *table = output_table_new (3, heads);
  size_t count, i;
  const struct error_info *infos = error_table (&count);
  json_t *array;
  char code[16], status[16];

  if (cli->json) {
    array = json_array ();
    for (i = 0; i < count; i++)
      json_array_append_new (array, info_json (&infos[i]));
    return output_json (array, err);
  }
  for (i = 0; i < count; i++) {
    const char *cells[] = { code, status, infos[i].meaning };

    snprintf (code, sizeof code, "E%d", infos[i].number);
    snprintf (status, sizeof status, "%d", infos[i].exit_status);
    output_table_row (table, cells);
  }
  return output_table_print (table, cli, err);
}

static int
explain_run (struct cli *cli, struct error **err)
{
  return cli->n_args ? explain_one (cli, cli->args[0], err)
                     : explain_all (cli, err);
}

/* ---- version ------------------------------------------------------------ */

#ifndef COFFER_SANITIZERS
#define COFFER_SANITIZERS NULL
#endif

static int
version_run (struct cli *cli, struct error **err)
{
  const char *sanitizers = COFFER_SANITIZERS;

  if (cli->json)
    return output_json (json_pack ("{s:s, s:{s:i, s:i}, s:s?}", "version",
                                   PACKAGE_VERSION, "contract", "major",
                                   COFFER_CONTRACT_MAJOR, "minor",
                                   COFFER_CONTRACT_MINOR, "sanitizers",
                                   sanitizers),
                        err);
  printf ("coffer %s (contract %d.%d)\n", PACKAGE_VERSION,
          COFFER_CONTRACT_MAJOR, COFFER_CONTRACT_MINOR);
  if (sanitizers)
    printf ("built with sanitizers (%s): limits are lifted, nothing here is "
            "evidence of isolation\n", sanitizers);
  return output_finish (err);
}

/* ---- help --------------------------------------------------------------- */

static int
help_run (struct cli *cli, struct error **err)
{
  auto_free char *words = NULL, *text = NULL;
  const struct cli_command *command = NULL;
  const char *group = NULL;

  if (cli->json)
    return output_json (cli_table_json (), err);
  if (cli->n_args) {
    words = text_printf ("%s%s%s", cli->args[0], cli->n_args > 1 ? " " : "",
                         cli->n_args > 1 ? cli->args[1] : "");
    if (!words)
      return error_set (err, E_NO_MEMORY, 0, "printing help");
    command = cli_find_command (words);
    if (!command && cli_is_group (words))
      group = words;
    if (!command && !group)
      return error_set (err, E_USAGE, 0, "unknown command %s", words);
  }
  text = cli_help_text (command, group);
  if (!text)
    return error_set (err, E_NO_MEMORY, 0, "printing help");
  fputs (text, stdout);
  return output_finish (err);
}

/* ---- the rows ----------------------------------------------------------- */

const struct cli_command explain_commands[] = {
  { "explain", "[CODE]", "say what an error code means and what to do", NULL,
    0, 1, -1, 0, explain_run },
  { NULL }
};

const struct cli_command help_commands[] = {
  { "version", "", "print the version of coffer and of its contract", NULL, 0,
    0, -1, 0, version_run },
  { "help", "[COMMAND]", "print help on a command, or on all", NULL, 0, 2, -1,
    0, help_run },
  { NULL }
};
