/* SPDX-License-Identifier: Apache-2.0 */
/* What commands that touch sandboxes share: the opened host, the call that
 * SIGINT ends, and a command run with its streams and its report. */

#ifndef CLI_HOST_H
#define CLI_HOST_H

#include "cli/cli.h"
#include "cli/output.h"
#include "sandbox/sandbox.h"

/* The host, opened on first use and closed by cli_fini. */
int cli_host (struct cli *cli, unsigned flags, struct host **out,
              struct error **err);

/* A call with a deadline from now (0: the default), ended by SIGINT and the
 * like, that draws `progress` (may be NULL). */
int cli_call (uint64_t timeout_ms, struct output_progress *progress,
              struct provider_call *out, struct error **err);

/* Both, for a command that works on records. */
int cli_begin (struct cli *cli, struct host **host, struct provider_call *call,
               struct error **err);

/* Says on stderr what a sandbox is not, and what it lacks. */
void cli_warn (const struct cli *cli, const char *provider,
               const json_t *applied);

/* One command in a sandbox. */
struct cli_exec {
  const char *sandbox;
  const char *const *argv, *const *env;
  const char *workdir, *user;
  int background;
  const char *attach;           /* instead of argv: one that was started */
  int terminal;                 /* as with -t, whatever the options say */
  /* For hints: what is shown inside; NULL: nothing of the caller's is. */
  const struct sandbox_request *shown;
  /* For the report of `run`: taken. */
  json_t *report;
};

/* Everything that can be refused before anything is made. */
int cli_exec_check (struct cli *cli, struct cli_exec *command,
                    struct error **err);
/* Runs it with the streams that the options ask for, reports, and returns the
 * exit status (or -1).  host NULL: by a daemon when there is one. */
int cli_exec_run (struct cli *cli, struct host *host,
                  struct cli_exec *command, struct error **err);

/* A line, or NULL: an argument that exists here and not inside.  The caller
 * frees. */
char *hint_argument (const char *const *argv,
                     const struct sandbox_request *shown);
/* Where the program is on this machine's PATH, or NULL. */
char *hint_program (const char *name);

/* Of a user who is not inside. */
void hint_user (const char *user, struct error **err);

/* Of a program that could not be started with that errno: what to do with the
 * file that it is here, or NULL. */
char *hint_start (const char *name, int failure);

#endif /* CLI_HOST_H */
