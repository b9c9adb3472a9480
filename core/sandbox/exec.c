/* SPDX-License-Identifier: Apache-2.0 */
/* Commands: what is asked is checked, the pipes or the terminal are made
 * here, the provider starts it, a thread waits for its end while the caller's
 * thread relays (exec-relay.c). */

#include "config.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/log.h"
#include "sandbox/exec.h"
#include "sandbox/info.h"
#include "sandbox/profile.h"
#include "sandbox/request.h"
#include "sandbox/signals.h"
#include "sandbox/terminal.h"

#define START_MS EXEC_START_MS
/* How long after its timeout a command may still be the provider's. */
#define BACKSTOP_MS 5000
/* Until a thread is made to wait for a command's end. */
#define BRIEF_MS 20
#define OUTPUT_PIPE_BYTES (256 << 10)
#define FACTS_MAX 128
#define ARGV_MAX_BYTES (8 << 20)

void
exec_result_fini (struct exec_result *result)
{
  char **p;

  free (result->exec);
  free (result->failure);
  for (p = result->limits_hit; p && *p; p++)
    free (*p);
  free (result->limits_hit);
  json_decref (result->facts);
  memset (result, 0, sizeof *result);
}

/* As a shell: not found is 127, found but not runnable 126. */
static int
failure_status (int code)
{
  switch (code) {
  case ENOENT:
    return 127;
  case EACCES: case EPERM: case ENOEXEC: case EISDIR: case ENOTDIR:
  case ELOOP: case ENAMETOOLONG: case ETXTBSY: case E2BIG: case EINVAL:
  case ELIBBAD:
    return 126;
  default:
    return 125;
  }
}

int
exec_exit_status (const struct exec_result *result)
{
  /* Over in time or not is about the command, whatever else went wrong. */
  if (result->timed_out && !result->failure_errno)
    return 124;
  if (result->failure || result->failure_errno)
    return failure_status (result->failure_errno);
  if (result->signal)
    return 128 + (result->signal & 127);
  return result->code & 255;
}

/* ---- what the provider emits --------------------------------------------- */

static int
copy_exit (struct exec_result *result, const struct coffer_exec_exit *exit)
{
  size_t count = 0, i;

  result->code = exit->code;
  result->signal = exit->signal;
  result->timed_out = exit->timed_out != 0;
  result->oom = exit->oom != 0;
  result->duration_us = exit->duration_us;
  result->cpu_us = exit->cpu_us;
  result->failure_errno = exit->failure_errno;
  if (exit->failure && !(result->failure = strdup (exit->failure)))
    return -1;
  while (exit->limits_hit && exit->limits_hit[count])
    count++;
  result->limits_hit = calloc (count + 1, sizeof *result->limits_hit);
  for (i = 0; result->limits_hit && i < count; i++)
    if (!(result->limits_hit[i] = strdup (exit->limits_hit[i])))
      return -1;
  return result->limits_hit ? 0 : -1;
}

/* Such as what it was not let do. */
static int
take_fact (struct exec_result *result, const struct coffer_fact *fact)
{
  if (!result->facts)
    result->facts = json_array ();
  if (json_array_size (result->facts) >= FACTS_MAX)
    return 0;
  return json_array_append_new (result->facts, fact_to_json (fact));
}

/* Of exec_wait, on its thread; the relay does not touch these fields. */
static int
sink_exit (void *data, const struct contract_record *type, void *record)
{
  struct exec_run *run = data;

  if (type->id == COFFER_REC_fact)
    return take_fact (run->result, record);
  if (type->id != COFFER_REC_exec_exit || run->result->limits_hit)
    return 0;
  return copy_exit (run->result, record);
}

/* ---- before it starts ---------------------------------------------------- */

int
sandbox_exec_check (const struct exec_request *request, struct error **err)
{
  size_t bytes = 0, i;

  if (!request->argv || !request->argv[0])
    return error_set (err, E_INVALID, 0, "argv: a command is missing");
  for (i = 0; request->argv[i]; i++) {
    bytes += strlen (request->argv[i]) + 1;
    if (bytes > ARGV_MAX_BYTES)
      return error_set (err, E_INVALID, 0, "argv: more than %d bytes",
                        ARGV_MAX_BYTES);
  }
  if (request->timeout_ms > REQUEST_TTL_MAX_MS)
    return error_set (err, E_INVALID, 0, "timeout: more than 366 days");
  if (request_check_env (request->env, "env", err) < 0
      || request_check_path (request->cwd, "cwd", err) < 0
      || request_check_user (request->user, "user", err) < 0)
    return -1;
  return 0;
}

static int
check_claims (const struct exec_run *run, struct error **err)
{
  const struct exec_streams *streams = run->streams;
  int background = run->request->background;

  if (exec_check_claims (run->provider,
                         (streams->in >= 0 || streams->channel)
                           && !background, streams->tty, background, err) < 0)
    return -1;
  if (run->request->warm && claim_require (run->provider, "exec.warm", err) < 0)
    return -1;
  if (streams->tty && background)
    return error_set (err, E_INVALID, 0,
                      "a command in the background has no terminal");
  return 0;
}

/* A pipe whose end `mine` is ours and does not block. */
static int
pipe_new (struct exec_run *run, int stream, int mine, struct error **err)
{
  int ends[2];

  if (pipe2 (ends, O_CLOEXEC) < 0)
    return error_set (err, E_IO, errno, "a pipe");
  run->ours[stream] = ends[mine];
  run->theirs[stream] = ends[!mine];
  if (fcntl (ends[mine], F_SETFL, O_NONBLOCK) < 0)
    return error_set (err, E_IO, errno, "a pipe");
  return 0;
}

static int
output_new (struct exec_run *run, int stream, int to, struct error **err)
{
  struct relay *relay = &run->relays[stream];

  if (to < 0 && !run->streams->output)
    return 0;
  if (pipe_new (run, stream, 0, err) < 0)
    return -1;
  /* Fewer turns for a command that writes much; no matter if refused. */
  fcntl (run->ours[stream], F_SETPIPE_SZ, OUTPUT_PIPE_BYTES);
  relay_init (relay, run->ours[stream], to, RELAY_SPLICE);
  if (run->streams->output) {
    relay->mode = RELAY_CALL;
    relay->output = run->streams->output;
    relay->data = run->streams->data;
    relay->stream = stream;
  }
  return 0;
}

static int
terminal_prepare (struct exec_run *run, struct error **err)
{
  const struct exec_request *request = run->request;
  uint32_t rows = request->rows, columns = request->columns;
  struct relay *out = &run->relays[EXEC_OUT];
  int slave;

  if (rows == 0 || columns == 0)
    terminal_size (run->streams->in, &rows, &columns);
  if (terminal_new (rows, columns, &run->ours[EXEC_OUT], &slave, err) < 0)
    return -1;
  run->theirs[EXEC_IN] = slave;
  if (run->streams->in >= 0)
    relay_init (&run->relays[EXEC_IN], run->streams->in, run->ours[EXEC_OUT],
                RELAY_COPY);
  relay_init (out, run->ours[EXEC_OUT], run->streams->out, RELAY_COPY);
  if (run->streams->output) {
    out->mode = RELAY_CALL;
    out->output = run->streams->output;
    out->data = run->streams->data;
    out->stream = EXEC_OUT;
  }
  return 0;
}

static int
streams_prepare (struct exec_run *run, struct error **err)
{
  const struct exec_streams *streams = run->streams;

  if (run->request->background)
    return 0;
  if (streams->tty)
    return terminal_prepare (run, err);
  if (streams->channel) {
    run->theirs[EXEC_IN] = coffer_fd_steal (streams->channel);
  } else if (streams->in >= 0) {
    if (pipe_new (run, EXEC_IN, 1, err) < 0)
      return -1;
    relay_init (&run->relays[EXEC_IN], streams->in, run->ours[EXEC_IN],
                RELAY_SPLICE);
  }
  if (output_new (run, EXEC_OUT, streams->out, err) < 0
      || output_new (run, EXEC_ERR, streams->err, err) < 0)
    return -1;
  return 0;
}

static int
start (struct exec_run *run, struct error **err)
{
  struct exec_request request = *run->request;
  int i, bad;

  if (run->streams->tty && (!request.rows || !request.columns))
    terminal_size (run->streams->in, &request.rows, &request.columns);
  bad = exec_start (run->provider, run->record, &request, run->theirs,
                    run->streams->tty, run->cancel_fd, &run->result->exec,
                    &run->over, err);
  /* The command has its own by now; ours would keep the pipes from ending. */
  for (i = 0; i < EXEC_STREAMS; i++)
    coffer_fd_close (&run->theirs[i]);
  return bad;
}

/* ---- while it runs, and after -------------------------------------------- */

static int
check_output (const struct exec_run *run, struct error **err)
{
  static const char *const names[] = { "", "output", "error output" };
  int i;

  for (i = EXEC_OUT; i <= EXEC_ERR; i++)
    if (run->relays[i].end == RELAY_SINK_GONE
        && run->relays[i].sink_errno != EPIPE)
      return error_set (err, E_IO, run->relays[i].sink_errno,
                        "the command's %s could not be written", names[i]);
  return 0;
}

/* In a sandbox that lives on, what the command started may live on too. */
static int
interrupted (const struct exec_run *run, struct error **err)
{
  if (run->record->owner_pid != 0) {
    error_set (err, E_EXEC_CANCELLED, 0,
               "interrupted; it and all that it started were ended");
    error_hint (err, "what it wrote into folders that were shown stays");
    return -1;
  }
  error_set (err, E_EXEC_CANCELLED, 0, "interrupted; %s was ended",
             run->result->exec);
  error_hint (err, "coffer sandbox ps %s lists what runs on",
              run->record->id);
  return -1;
}

static int
outcome (struct exec_run *run, struct error *take_error, struct error **err)
{
  auto_error struct error *error = take_error;
  struct exec_result *result = run->result;

  result->out_bytes = run->relays[EXEC_OUT].moved;
  result->err_bytes = run->relays[EXEC_ERR].moved;
  if (run->cancelled)
    return interrupted (run, err);
  if (run->overdue) {
    result->timed_out = 1;
    return 0;
  }
  if (error)
    return error_move (err, steal (error));
  if (!result->limits_hit)
    return error_set (err, E_PROVIDER_FAILED, 0,
                      "%s: exec_wait did not report the command's end",
                      run->record->provider);
  return check_output (run, err);
}

int
exec_wait_begin (struct exec_run *run, struct error **err)
{
  const struct provider_sink sink = { .record = sink_exit, .data = run };

  if (!run->wait_at_ns)
    return 0;
  run->wait_at_ns = 0;
  return async_begin (&run->wait, run->provider, COFFER_OP_exec_wait,
                      &run->wait_args, &sink, run->wait_limit_ns, err);
}

void
exec_wait_here (struct exec_run *run)
{
  struct provider_call call = {
    .deadline_ns = run->backstop_ns ? run->backstop_ns : run->wait_limit_ns,
    .cancel_fd = run->cancel_fd,
    .sink = { .record = sink_exit, .data = run }
  };

  run->wait_at_ns = 0;
  run->finished = 1;
  if (provider_invoke_args (run->provider, COFFER_OP_exec_wait,
                            &run->wait_args, &call, &run->waited) == 0)
    return;
  if (run->cancel_fd >= 0 && coffer_wait_fd (run->cancel_fd, POLLIN, 1, -1)
                             == 1)
    run->cancelled = 1;
  else if (run->backstop_ns && coffer_now_ns () >= run->backstop_ns)
    run->overdue = 1;
  else
    return;
  exec_end (run);
}

int
exec_wait_until (struct provider *provider, const char *id, const char *exec,
                 int64_t deadline_ns, int cancel_fd,
                 struct exec_result *result, struct error **err)
{
  struct exec_run run = { .result = result };
  struct provider_call call = {
    .deadline_ns = deadline_ns,
    .cancel_fd = cancel_fd,
    .sink = { .record = sink_exit, .data = &run }
  };

  if (INVOKE (provider, &call, err, exec_wait, .sandbox = id, .exec = exec)
      < 0)
    return -1;
  if (!result->limits_hit)
    return error_set (err, E_PROVIDER_FAILED, 0,
                      "exec_wait did not report the command's end");
  if (!result->exec)
    result->exec = strdup (exec);
  return result->exec ? 0 : error_set (err, E_NO_MEMORY, 0, "a name");
}

int
exec_end_wait (struct provider *provider, const char *id, const char *exec,
               int cancel_fd, struct exec_result *result, struct error **err)
{
  return exec_wait_until (provider, id, exec,
                          deadline_in ((int64_t) REQUEST_TTL_MAX_MS),
                          cancel_fd, result, err);
}

/* Most commands are through before a thread is made, and a thread costs as
 * much as starting them.  Only where giving up ends the sandbox: elsewhere a
 * command goes on being waited for after it was sent a signal. */
static int
wait_prepare (struct exec_run *run, struct error **err)
{
  const struct exec_request *request = run->request;
  int64_t limit = (int64_t) REQUEST_TTL_MAX_MS;
  int brief = run->record->owner_pid != 0 && !run->streams->tty
              && run->streams->in < 0;

  if (request->timeout_ms) {
    run->backstop_ns = deadline_in ((int64_t) request->timeout_ms
                                    + BACKSTOP_MS);
    limit = (int64_t) request->timeout_ms + 4 * BACKSTOP_MS;
  }
  run->wait_args.sandbox = run->record->id;
  run->wait_args.exec = run->result->exec;
  run->wait_limit_ns = deadline_in (limit);
  run->wait_at_ns = deadline_in (BRIEF_MS);
  return brief ? 0 : exec_wait_begin (run, err);
}

static int
wait_and_relay (struct exec_run *run, struct error **err)
{
  struct error *error = NULL, *waited = NULL;

  if (wait_prepare (run, err) < 0)
    return -1;
  if (run->streams->tty)
    terminal_raw (run->streams->in, &error);
  if (!error)
    exec_relay (run, &error);
  if (run->streams->tty)
    terminal_restore ();
  if (error && !run->finished) {
    exec_end (run);
    async_cancel (&run->wait);
  }
  async_end (&run->wait, &waited);
  if (!waited)
    waited = steal (run->waited);
  if (error) {
    error_free (waited);
    return error_move (err, error);
  }
  return outcome (run, waited, err);
}

/* Nobody waits for a command in the background; but one that was over at once
 * may never have started, which only who started it is there to hear. */
static int
background_started (struct exec_run *run, struct error **err)
{
  struct provider_call call = call_in (START_MS, run->cancel_fd);

  if (!run->over)
    return 0;
  call.sink.record = sink_exit;
  call.sink.data = run;
  return INVOKE (run->provider, &call, err, exec_wait,
                 .sandbox = run->record->id, .exec = run->result->exec);
}

static void
run_fini (struct exec_run *run)
{
  int i;

  error_free (run->waited);
  for (i = 0; i < EXEC_STREAMS; i++) {
    relay_fini (&run->relays[i]);
    coffer_fd_close (&run->ours[i]);
    coffer_fd_close (&run->theirs[i]);
  }
}
#define auto_exec_run __attribute__ ((cleanup (run_fini)))

int
sandbox_exec (struct host *host, const char *id,
              const struct exec_request *request,
              const struct exec_streams *streams, int cancel_fd,
              struct exec_result *result, struct error **err)
{
  auto_sandbox_record struct sandbox_record *record = NULL;
  struct exec_request resolved = *request;
  auto_exec_run struct exec_run run = {
    .host = host, .request = &resolved, .streams = streams, .result = result,
    .cancel_fd = cancel_fd, .ours = { -1, -1, -1 }, .theirs = { -1, -1, -1 },
    .relays = { { .from = -1 }, { .from = -1 }, { .from = -1 } }
  };
  int64_t began;

  memset (result, 0, sizeof *result);
  result->code = -1;
  signals_no_sigpipe ();
  if (sandbox_exec_check (request, err) < 0
      || host_reach (host, id, &record, &run.provider, err) < 0
      || profile_timeout (record->spec, request->timeout_ms,
                          request->background || streams->tty,
                          &resolved.timeout_ms, err) < 0)
    return -1;
  result->timeout_ms = resolved.timeout_ms;
  run.record = record;
  if (check_claims (&run, err) < 0 || streams_prepare (&run, err) < 0
      || start (&run, err) < 0)
    return -1;
  /* Of what is run only the id: arguments hold secrets. */
  log_event (LOG_LEVEL_INFO, "exec", "%s %s: started%s", id, result->exec,
             request->background ? " in the background" : "");
  began = coffer_now_ns ();
  if (request->background)
    return background_started (&run, err);
  host_sweep_soon (host);
  if (wait_and_relay (&run, err) < 0)
    return -1;
  log_event (LOG_LEVEL_INFO, "exec", "%s %s: ended with status %d after "
             "%.1f ms", id, result->exec, exec_exit_status (result),
             (double) (coffer_now_ns () - began) / 1e6);
  return 0;
}
