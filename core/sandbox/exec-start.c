/* SPDX-License-Identifier: Apache-2.0 */
/* Having a command started: by exec.c, which relays its streams until its end,
 * and by who keeps them for longer than one call. */

#include "config.h"

#include <string.h>

#include <coffer/fd.h>

#include "sandbox/exec.h"
#include "sandbox/profile.h"
#include "sandbox/request.h"
#include "sandbox/signals.h"

int
exec_check_claims (const struct provider *provider, int has_stdin, int tty,
                   int background, struct error **err)
{
  const struct {
    const char *capability;
    int is_asked;
  } table[] = {
    { "exec", 1 },
    { "exec.stdin", has_stdin },
    { "exec.tty", tty },
    { "exec.background", background },
  };
  size_t i;

  for (i = 0; i < sizeof table / sizeof table[0]; i++)
    if (table[i].is_asked
        && claim_require (provider, table[i].capability, err) < 0)
      return -1;
  return 0;
}

struct started {
  char *exec;
  int over;
};

static int
sink_started (void *data, const struct contract_record *type, void *record)
{
  struct started *started = data;
  const struct coffer_exec_info *info = record;

  if (type->id != COFFER_REC_exec_info || started->exec || !info->exec)
    return 0;
  started->over = info->state && strcmp (info->state, "exited") == 0;
  started->exec = strdup (info->exec);
  return started->exec ? 0 : -1;
}

int
exec_start (struct provider *provider, const struct sandbox_record *record,
            const struct exec_request *request, const int fds[EXEC_STREAMS],
            int tty, int cancel_fd, char **exec, int *over, struct error **err)
{
  struct coffer_exec_start_opts opts = {
    .size = sizeof opts,
    .timeout_ms = request->timeout_ms,
    .tty = tty != 0,
    .background = request->background != 0,
    .rows = request->rows,
    .columns = request->columns,
    .user = request->user,
    .warm = request->warm,
  };
  struct provider_call call = call_in (EXEC_START_MS, cancel_fd);
  struct started started = { NULL, 0 };

  call.sink.record = sink_started;
  call.sink.data = &started;
  if (INVOKE (provider, &call, err, exec_start, .sandbox = record->id,
              .argv = request->argv, .env = request->env, .cwd = request->cwd,
              .in = fds[EXEC_IN], .out = tty ? fds[EXEC_IN] : fds[EXEC_OUT],
              .err = tty ? -1 : fds[EXEC_ERR], .opts = &opts) < 0) {
    free (started.exec);
    if (err && *err && (*err)->number == E_SANDBOX_STATE)
      error_hint (err, "coffer sandbox info %s shows its state; resume lets a "
                  "paused one go on", record->id);
    return -1;
  }
  if (!started.exec)
    return error_set (err, E_PROVIDER_FAILED, 0,
                      "%s: exec_start reported no command", record->provider);
  *exec = started.exec;
  *over = started.over;
  return 0;
}

/* ---- on streams that somebody else keeps -------------------------------- */

void
exec_begun_fini (struct exec_begun *begun)
{
  free (begun->exec);
  begun->exec = NULL;
}

int
sandbox_exec_begin (struct host *host, const char *id,
                    const struct exec_request *request, const int fds[3],
                    int tty, int unwatched, int cancel_fd,
                    struct exec_begun *out, struct error **err)
{
  auto_sandbox_record struct sandbox_record *record = NULL;
  struct exec_request resolved = *request;
  struct exec_begun begun = { 0 };

  signals_no_sigpipe ();
  resolved.background = 0;
  if (sandbox_exec_check (request, err) < 0
      || host_reach (host, id, &record, &begun.provider, err) < 0
      || profile_timeout (record->spec, request->timeout_ms, unwatched || tty,
                          &resolved.timeout_ms, err) < 0
      || exec_check_claims (begun.provider, fds[0] >= 0 && !tty, tty, 0, err)
           < 0
      || exec_start (begun.provider, record, &resolved, fds, tty, cancel_fd,
                     &begun.exec, &begun.over, err) < 0)
    return -1;
  begun.timeout_ms = resolved.timeout_ms;
  begun.started_ns = coffer_realtime_ns ();
  *out = begun;
  return 0;
}

int
sandbox_exec_end (struct provider *provider, const char *id, const char *exec,
                  int64_t deadline_ns, int cancel_fd,
                  struct exec_result *result, struct error **err)
{
  memset (result, 0, sizeof *result);
  result->code = -1;
  return exec_wait_until (provider, id, exec, deadline_ns, cancel_fd, result,
                          err);
}
