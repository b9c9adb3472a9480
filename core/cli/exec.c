/* SPDX-License-Identifier: Apache-2.0 */
/* One command in a sandbox: its streams, and what is said of its end.
 *
 * Without --json the command's bytes go straight to our own descriptors and
 * coffer adds a line on stderr only when the end needs explaining.  With
 * --json they are kept, head and tail, for the one document at the end. */

#include <config.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/host.h"
#include "cli/work.h"
#include "sandbox/capture.h"

#define DENIED_LINES 8

struct run {
  struct cli *cli;
  struct cli_exec *command;
  struct exec_request request;
  struct exec_streams streams;
  struct exec_result result;
  struct capture out, err;
};

/* ---- before ------------------------------------------------------------- */

static void
keep_output (void *data, int stream, const char *bytes, size_t size)
{
  struct run *run = data;

  capture_add (stream == STDERR_FILENO ? &run->err : &run->out, bytes, size);
}

static int
ask_terminal (struct run *run, struct error **err)
{
  struct winsize size;

  if (run->cli->json)
    return error_set (err, E_USAGE, 0,
                      "a terminal and --json do not go together");
  if (run->command->background)
    return error_set (err, E_USAGE, 0,
                      "a terminal and --background do not go together");
  if (!isatty (STDIN_FILENO)) {
    error_set (err, E_USAGE, 0,
               "%s needs a terminal on standard input, and there is none",
               run->command->terminal ? "a shell" : "--tty");
    if (run->command->terminal)
      error_hint (err, "coffer sandbox exec %s -c STRING needs none",
                  run->cli->args[0]);
    else
      error_hint (err, "leave --tty out; -i gives standard input as it is");
    return -1;
  }
  run->streams.tty = 1;
  run->streams.in = STDIN_FILENO;
  if (ioctl (STDIN_FILENO, TIOCGWINSZ, &size) == 0) {
    run->request.rows = size.ws_row;
    run->request.columns = size.ws_col;
  }
  return 0;
}

static int
prepare (struct run *run, struct error **err)
{
  const struct cli *cli = run->cli;
  const struct cli_exec *command = run->command;

  run->request.argv = command->argv;
  run->request.env = command->env;
  run->request.cwd = command->workdir;
  run->request.user = command->user;
  run->request.background = command->background;
  run->streams.in = cli_flag (cli, "interactive") ? STDIN_FILENO : -1;
  run->streams.out = STDOUT_FILENO;
  run->streams.err = STDERR_FILENO;
  if (cli->json) {
    run->streams.output = keep_output;
    run->streams.data = run;
  }
  if (cli_duration (cli, "timeout", PROFILE_TIMEOUT, &run->request.timeout_ms,
                    err) < 0)
    return -1;
  if (command->terminal || cli_flag (cli, "tty"))
    return ask_terminal (run, err);
  return 0;
}

/* ---- after: the next step ----------------------------------------------- */

/* Why it may have failed and what to do, or NULL. */
static char *
end_hint (const struct run *run, int status)
{
  const struct exec_result *result = &run->result;
  const char *const *argv = run->command->argv;
  const int absent = !result->failure || result->failure_errno == ENOENT
                     || result->failure_errno == ENOTDIR;
  auto_free char *outside = NULL;
  char *hint = NULL;

  if (status == 0 || result->timed_out || run->command->attach)
    return NULL;
  /* With --workdir it may have been the folder that is not there. */
  if (result->failure && result->failure_errno == ENOENT
      && !run->command->workdir)
    outside = hint_program (argv[0]);
  if (outside)
    return text_printf ("%s is here at %s, but there is no %s on PATH inside; "
                        "-v shows a folder inside", argv[0], outside, argv[0]);
  if (absent)
    hint = hint_argument (argv, run->command->shown);
  if (!hint && result->failure && !run->command->workdir)
    hint = hint_start (argv[0], result->failure_errno);
  if (!hint && result->failure)
    hint = strdup (result->failure_errno == EAGAIN
                     ? "as many processes as the sandbox may have are there; "
                       "--pids gives more, and so does ending some"
                     : error_lookup (E_EXEC_START)->todo);
  return hint;
}

/* ---- after: for people -------------------------------------------------- */

/* Under a line of ours as under every error, alone with our name. */
static void
say_hint (const struct run *run, const char *text)
{
  auto_free char *escaped = text_escape (text, strlen (text));

  if (!run->result.failure)
    output_note ("hint: %s", text);
  else if (escaped)
    fprintf (stderr, "  hint: %s\n", escaped);
}

static void
say_limits (const struct exec_result *result)
{
  char **limit;

  /* Two of them have a line of their own. */
  for (limit = result->limits_hit; limit && *limit; limit++)
    if ((!result->timed_out || strcmp (*limit, "timeout"))
        && (!result->oom || strcmp (*limit, "memory")))
      output_note ("a limit was reached: %s", *limit);
  if (result->oom)
    output_note ("killed: out of memory (--mem gives more)");
  if (result->signal == SIGSYS)
    output_note ("killed: the system call filter does not allow what it did");
}

/* What it was refused is no fault, but what people look for when it failed. */
static void
say_denied (const struct exec_result *result)
{
  size_t i, said = 0;
  json_t *fact;

  json_array_foreach (result->facts, i, fact) {
    const char *name = json_string_value (json_object_get (fact, "name"));
    const char *value = json_string_value (json_object_get (fact, "value"));

    if (!name || !value || strcmp (name, "network.denied"))
      continue;
    if (said++ < DENIED_LINES)
      output_note ("network: refused %s", value);
  }
  if (said > DENIED_LINES)
    output_note ("network: and %zu others (--json has them)",
                 said - DENIED_LINES);
}

static void
say_end (const struct run *run, int status)
{
  const struct exec_result *result = &run->result;
  const char *workdir = run->command->workdir;
  auto_free char *after = NULL, *hint = NULL;

  if (result->failure)
    output_note ("E%d: %s: %s%s%s%s", E_EXEC_START,
                 run->command->attach ? run->command->attach
                                      : run->command->argv[0],
                 result->failure, workdir ? " (in --workdir " : "",
                 workdir ? workdir : "", workdir ? ")" : "");
  if (result->timed_out) {
    after = text_format_duration (run->result.timeout_ms);
    output_note ("E%d: timed out after %s; it and all that it started were "
                 "killed", E_EXEC_TIMEOUT, after ? after : "its timeout");
  }
  say_limits (result);
  say_denied (result);
  hint = end_hint (run, status);
  if (hint)
    say_hint (run, hint);
}

/* ---- after: for programs ------------------------------------------------ */

static int
report_json (struct run *run, int status, struct error **err)
{
  json_t *report = run->command->report ? steal (run->command->report)
                                        : json_object ();
  auto_free char *hint = end_hint (run, status);

  json_object_set_new (report, "sandbox",
                       json_string (run->command->sandbox));
  if (run->result.exec)
    json_object_set_new (report, "exec", json_string (run->result.exec));
  if (run->command->background && !run->result.failure)
    return output_json (report, err);
  json_object_set_new (report, "status", json_integer (status));
  json_object_set_new (report, "exit", exec_result_json (&run->result));
  if (hint)
    json_object_set_new (report, "hint", json_string (hint));
  if (run->command->background)
    return output_json (report, err);
  if (json_object_set_new (report, "stdout", capture_json (&run->out)) < 0
      || json_object_set_new (report, "stderr", capture_json (&run->err)) < 0) {
    json_decref (report);
    return error_set (err, E_NO_MEMORY, 0, "keeping the command's output");
  }
  return output_json (report, err);
}

/* ---- all of it ---------------------------------------------------------- */

static int
move (struct run *run, struct host *host, int cancel, struct error **err)
{
  const struct cli_exec *command = run->command;

  if (command->attach)
    return work_attach (run->cli, command->sandbox, command->attach,
                        &run->streams, cancel, &run->result, err);
  if (host)
    return sandbox_exec (host, command->sandbox, &run->request, &run->streams,
                         cancel, &run->result, err);
  return work_exec (run->cli, command->sandbox, &run->request, &run->streams,
                    cancel, &run->result, err);
}

static int
run_it (struct run *run, struct host *host, struct error **err)
{
  int cancel = sandbox_signals_catch (err), status;

  if (cancel < 0)
    return -1;
  if (move (run, host, cancel, err) < 0)
    return -1;
  status = run->command->background && !run->result.failure
             ? 0 : exec_exit_status (&run->result);
  if (run->cli->json)
    return report_json (run, status, err) < 0 ? -1 : status;
  if (run->command->background && !run->result.failure) {
    printf ("%s\n", run->result.exec ? run->result.exec : "-");
    return output_finish (err) < 0 ? -1 : 0;
  }
  say_end (run, status);
  return status;
}

int
cli_exec_check (struct cli *cli, struct cli_exec *command,
                struct error **err)
{
  struct run run = { .cli = cli, .command = command };

  return prepare (&run, err) < 0
             || sandbox_exec_check (&run.request, err) < 0
           ? -1 : 0;
}

int
cli_exec_run (struct cli *cli, struct host *host,
              struct cli_exec *command, struct error **err)
{
  struct run run = { .cli = cli, .command = command };
  int status;

  status = prepare (&run, err) < 0 ? -1 : run_it (&run, host, err);
  if (status < 0)
    hint_user (command->user, err);
  exec_result_fini (&run.result);
  capture_fini (&run.out);
  capture_fini (&run.err);
  return status;
}
