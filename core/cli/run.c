/* SPDX-License-Identifier: Apache-2.0 */
/* `coffer run`: one command in a sandbox that is gone when it ends. */

#include <config.h>

#include <string.h>

#include "base/json.h"
#include "cli/commands.h"
#include "cli/host.h"
#include "cli/run-python.h"
#include "cli/spec.h"
#include "provider/built-in.h"

static json_t *
report_new (const struct sandbox_record *record, json_t *applied)
{
  return json_pack ("{s:n, s:s, s:O?}", "sandbox", "provider",
                    record->provider, "applied", applied);
}

static int
run_inside (struct cli *cli, struct spec *spec, struct error **err)
{
  struct host *host;
  auto_sandbox_record struct sandbox_record *record = NULL;
  auto_json json_t *applied = NULL;
  struct cli_exec command = {
    .argv = cli->args, .workdir = spec->request.workdir,
    .user = spec->request.user, .shown = &spec->request
  };
  struct output_progress progress;
  struct provider_call call;
  int status;

  output_progress_begin (&progress, cli, "making the sandbox");
  if (cli_exec_check (cli, &command, err) < 0
      || cli_host (cli, HOST_IN_PROCESS | HOST_EPHEMERAL, &host,
                   err) < 0
      || cli_call (SANDBOX_CREATE_MS, &progress, &call, err) < 0
      || sandbox_create (host, &spec->request, &call, &record, &applied,
                         err) < 0) {
    output_progress_end (&progress);
    hint_user (spec->request.user, err);
    return -1;
  }
  output_progress_end (&progress);
  built_in_end ();              /* another provider made it, or a worker */
  cli_warn (cli, record->provider, applied);
  command.sandbox = record->id;
  if (cli->json)
    command.report = report_new (record, applied);
  status = cli_exec_run (cli, host, &command, err);
  json_decref (command.report);
  return status;
}

static int
run_run (struct cli *cli, struct error **err)
{
  auto_spec struct spec spec = { 0 };

  if (cli_value (cli, "python"))
    return run_python (cli, err);
  if (cli->n_args < 1) {
    error_set (err, E_USAGE, 0, "coffer run needs %s",
               cli->command->arguments);
    error_hint (err, "coffer run --help shows how it is used");
    return -1;
  }
  if (cli_value (cli, "artifacts"))
    return error_set (err, E_USAGE, 0, "--artifacts goes with --python");
  if (spec_read (cli, &spec, err) < 0
      || cli_duration (cli, "timeout", PROFILE_TIMEOUT,
                       &spec.request.asked_timeout_ms, err) < 0)
    return -1;
  spec.request.ephemeral = 1;
  spec.request.single_exec = 1;
  spec.request.no_facts = !cli->json;
  return run_inside (cli, &spec, err);
}

static const struct cli_option run_options[] = {
  SPEC_OPTIONS, COMMAND_OPTIONS, STREAM_OPTIONS, PYTHON_OPTIONS, { NULL }
};

const struct cli_command run_commands[] = {
  { "run", "-- COMMAND [ARGUMENT…]",
    "run a command in a new sandbox that ends with it", run_options, 0, -1, 0,
    COMMAND_RUNS, run_run },
  { NULL }
};
