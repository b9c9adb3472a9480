/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a sandbox runs, and for how long: `coffer sandbox connect|extend|
 * pause|resume`. */

#include <config.h>

#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/host.h"
#include "cli/spec.h"
#include "cli/work.h"

/* "ID running, ends 2026-01-31 12:00:00" */
static int
print_life (struct cli *cli, json_t *take_info, struct error **err)
{
  auto_json json_t *info = take_info;
  auto_free char *state = output_shown (json_object_get (info, "state"));
  const json_int_t expires
    = json_integer_value (json_object_get (info, "expires_ns"));
  auto_free char *ends = expires ? text_format_time (expires) : NULL;

  if (cli->json)
    return output_json (steal (info), err);
  output_styled (cli, stdout, STYLE_PLAIN, cli->args[0]);
  printf (" %s%s%s\n", state ? state : "-", ends ? ", ends " : "",
          ends ? ends : "");
  return output_finish (err);
}

/* Is it there, does it run, and for how long: what a caller asks before it
 * goes on with a sandbox made earlier. */
static int
connect_run (struct cli *cli, struct error **err)
{
  const char *id = cli->args[0], *state;
  auto_json json_t *info = NULL;
  uint64_t ttl = 0;

  if (cli_duration (cli, "ttl", PROFILE_TTL, &ttl, err) < 0
      || work_info (cli, id, &info, err) < 0)
    return -1;
  state = json_string_value (json_object_get (info, "state"));
  if (!state || strcmp (state, "running")) {
    error_set (err, E_SANDBOX_STATE, 0, "%s is %s, not running", id,
               state ? state : "in no known state");
    error_hint_id (err, id);
    return -1;
  }
  if (ttl) {
    json_decref (steal (info));
    if (work_extend (cli, id, ttl, &info, err) < 0)
      return -1;
  }
  return print_life (cli, steal (info), err);
}

static int
extend_run (struct cli *cli, struct error **err)
{
  json_t *info = NULL;
  uint64_t ttl;

  if (text_parse_duration (cli->args[1], &ttl) < 0 || ttl == 0) {
    error_set (err, E_INVALID, 0, "%s is not a duration", cli->args[1]);
    error_hint (err, "write how long from now, such as 30m or 2h");
    return -1;
  }
  if (work_extend (cli, cli->args[0], ttl, &info, err) < 0)
    return -1;
  return print_life (cli, info, err);
}

static int
pause_run (struct cli *cli, struct error **err)
{
  json_t *info = NULL;

  if (work_pause (cli, cli->args[0], &info, err) < 0)
    return -1;
  return print_life (cli, info, err);
}

static int
resume_run (struct cli *cli, struct error **err)
{
  json_t *info = NULL;

  if (work_resume (cli, cli->args[0], &info, err) < 0)
    return -1;
  return print_life (cli, info, err);
}

static const struct cli_option connect_options[] = {
  { "ttl", 0, "TIME", 0, "let it live this long from now" }, { NULL }
};

const struct cli_command sandbox_life_commands[] = {
  { "sandbox connect", "ID", "check that a sandbox runs and can be used",
    connect_options, 1, 1, -1, COMMAND_DAEMON, connect_run },
  { "sandbox extend", "ID TIME", "let a sandbox live TIME from now", NULL, 2,
    2, -1, COMMAND_DAEMON, extend_run },
  { "sandbox pause", "ID", "stop all that runs in a sandbox for a while",
    NULL, 1, 1, -1, COMMAND_DAEMON, pause_run },
  { "sandbox resume", "ID", "let a paused sandbox go on", NULL, 1, 1, -1,
    COMMAND_DAEMON, resume_run },
  { NULL }
};
