/* SPDX-License-Identifier: Apache-2.0 */
/* The commands that a sandbox has: `coffer sandbox ps|signal`. */

#include <config.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/work.h"

static void
add_exec (struct output_table *table, const json_t *item)
{
  auto_free char *exec = output_shown (json_object_get (item, "exec"));
  auto_free char *state = output_shown (json_object_get (item, "state"));
  const json_t *started = json_object_get (item, "started_ns");
  auto_free char *when
    = started ? text_format_time (json_integer_value (started)) : NULL;
  const char *cells[] = {
    exec, state, when ? when : "-",
    json_is_true (json_object_get (item, "background")) ? "background" : ""
  };

  output_table_row (table, cells);
}

static int
ps_run (struct cli *cli, struct error **err)
{
  static const char *const heads[] = { "COMMAND", "STATE", "STARTED",
                                       "OUTPUT" };
  auto_output_table struct output_table *table = NULL;
  auto_json json_t *list = NULL;
  json_t *item;
  size_t i;

  if (work_exec_list (cli, cli->args[0], &list, err) < 0)
    return -1;
  if (cli->json)
    return output_json (steal (list), err);
  table = output_table_new (4, heads);
  json_array_foreach (list, i, item)
    add_exec (table, item);
  return output_table_print (table, cli, err);
}

static int
signal_run (struct cli *cli, struct error **err)
{
  const char *word = cli->n_args > 2 ? cli->args[2] : "TERM";
  int number = exec_signal_number (word);

  if (number == 0) {
    error_set (err, E_INVALID, 0, "%s is no signal", word);
    error_hint (err, "write a number from 1 to 64, or a name such as TERM or "
                "KILL");
    return -1;
  }
  if (work_exec_signal (cli, cli->args[0], cli->args[1], number, err) < 0) {
    if (*err && (*err)->number == E_SANDBOX_STATE)
      error_hint (err, "coffer sandbox ps %s lists its commands and what "
                  "became of them", cli->args[0]);
    return -1;
  }
  if (cli->json)
    return output_json (json_pack ("{s:o, s:o, s:i}", "sandbox",
                                   json_bytes (cli->args[0],
                                               strlen (cli->args[0])),
                                   "exec",
                                   json_bytes (cli->args[1],
                                               strlen (cli->args[1])),
                                   "signal", number),
                        err);
  return 0;
}

const struct cli_command sandbox_ps_commands[] = {
  { "sandbox ps", "ID", "list the commands started in a sandbox", NULL, 1, 1,
    -1, COMMAND_DAEMON, ps_run },
  { "sandbox signal", "ID COMMAND [SIGNAL]",
    "send a command a signal, TERM unless said", NULL, 2, 3,
    -1, COMMAND_DAEMON, signal_run },
  { NULL }
};
