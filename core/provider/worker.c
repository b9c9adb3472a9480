/* SPDX-License-Identifier: Apache-2.0 */
/* A module in a process of its own: started when it is needed, ended with its
 * provider, started again when it died, and given a rest when it dies too
 * often. */

#include "config.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/log.h"
#include "provider/opening.h"
#include "provider/trace.h"
#include "provider/worker.h"

#define READY_NS (20000 * NS_PER_MS)
#define CLOSE_NS (2000 * NS_PER_MS)
#define EXIT_MS 1000
#define DEATHS_NS (60000 * NS_PER_MS)
#define REST_NS (30000 * NS_PER_MS)
#define BACK_OFF_NS (100 * NS_PER_MS)   /* then doubling */

/* ---- what the process prints ---------------------------------------------- */

static void
output_line_locked (struct provider *provider, struct worker *worker)
{
  struct invoke invoke = { .provider = provider };

  worker->line[worker->line_size] = '\0';
  if (worker->line_size > 0)
    invoke_log (&invoke, COFFER_LOG_INFO, worker->line);
  worker->line_size = 0;
}

void
worker_drain_output (struct provider *provider, struct process *process,
                     int last)
{
  struct worker *worker = worker_of (provider);
  char buffer[4096];
  ssize_t n = 0, i;
  int rounds;

  pthread_mutex_lock (&worker->output_lock);
  for (rounds = 0; rounds < 16; rounds++) {
    n = read (process->output, buffer, sizeof buffer);
    for (i = 0; i < n; i++) {
      if (buffer[i] == '\n' || worker->line_size == WORKER_MAX_LINE - 1)
        output_line_locked (provider, worker);
      if (buffer[i] != '\n')
        worker->line[worker->line_size++] = buffer[i] ? buffer[i] : ' ';
    }
    if (n <= 0)
      break;
  }
  process->output_ended |= n == 0;
  if (last)
    output_line_locked (provider, worker);
  pthread_mutex_unlock (&worker->output_lock);
}

/* ---- the end of a process ------------------------------------------------- */

static void
describe_end (const struct process_end *end, char *text, size_t size)
{
  if (end->stopped)
    snprintf (text, size, "it closed its channel and was stopped");
  else if (end->code == CLD_EXITED)
    snprintf (text, size, "exit code %d", end->status);
  else if (end->code == CLD_KILLED || end->code == CLD_DUMPED)
    snprintf (text, size, "signal %d (SIG%s)", end->status,
              sigabbrev_np (end->status) ? sigabbrev_np (end->status) : "?");
  else
    snprintf (text, size, "it is gone");
}

static struct error *
make_epitaph (struct provider *provider, const struct process_end *end,
              const struct error *reason)
{
  struct error *error = NULL;
  char how[64];

  if (reason) {
    error_set (&error, reason->number, 0, "%s: %s", provider->manifest->id,
               error_message (reason));
    return error;
  }
  describe_end (end, how, sizeof how);
  error_set (&error, E_PROVIDER_EXITED, 0, "%s: its worker ended: %s",
             provider->manifest->id, how);
  if (end->code == CLD_EXITED)
    error_detail (&error, "exit_code", json_integer (end->status));
  else if (end->code)
    error_detail (&error, "signal", json_integer (end->status));
  return error;
}

void
worker_last_words (struct error **err, json_t *take_log)
{
  size_t n = json_array_size (take_log);
  const char *last
    = n > 0 ? json_string_value (json_array_get (take_log, n - 1)) : NULL;
  struct error *longer = NULL;

  if (last && (*err)->number == E_PROVIDER_EXITED) {
    error_set (&longer, E_PROVIDER_EXITED, 0, "%s; the last it said: %.200s",
               error_message (*err), last);
    longer->details = steal ((*err)->details);
    error_free (*err);
    *err = longer;
  }
  error_detail (err, "log", take_log);
}

static void
unref_locked (struct worker *worker, struct process *process)
{
  (void) worker;
  if (--process->refs == 0)
    process_free (process);
}

void
worker_unref (struct worker *worker, struct process *process)
{
  pthread_mutex_lock (&worker->lock);
  unref_locked (worker, process);
  pthread_mutex_unlock (&worker->lock);
}

/* Takes the process out of service; 0 when another thread was first. */
static int
begin_end (struct worker *worker, struct process *process, int is_death)
{
  int first;

  pthread_mutex_lock (&worker->lock);
  first = !process->ending;
  process->ending = 1;
  if (worker->process == process)
    worker->process = NULL;
  if (first && is_death)
    worker->deaths[worker->n_deaths++ % WORKER_DEATHS] = coffer_now_ns ();
  pthread_mutex_unlock (&worker->lock);
  return first;
}

/* Every call of it learns why; the reference that begin_end took over from
 * the worker goes. */
static void
finish_end (struct worker *worker, struct process *process,
            struct error *take_epitaph)
{
  struct pending *pending;
  uint64_t one = 1;

  pthread_mutex_lock (&worker->lock);
  process->ended = 1;
  process->epitaph = take_epitaph;
  if (take_epitaph) {
    free (worker->last_end);
    worker->last_end = strdup (error_message (take_epitaph));
  }
  for (pending = worker->calls; pending; pending = pending->next) {
    if (pending->process != process)
      continue;
    pending->dead = 1;
    if (pending->sleeping && write (pending->wake_fd, &one, sizeof one) < 0)
      log_event (LOG_LEVEL_ERROR, "worker", "a call cannot be woken");
    pending->sleeping = 0;
  }
  pthread_cond_broadcast (&worker->ended);
  unref_locked (worker, process);
  pthread_mutex_unlock (&worker->lock);
}

void
worker_process_died (struct provider *provider, struct process *process,
                     struct error *reason, int grace_ms)
{
  struct worker *worker = worker_of (provider);
  struct process_end end;
  struct error *epitaph;

  if (!begin_end (worker, process, 1))
    return;
  process_end (process, grace_ms, &end);
  worker_drain_output (provider, process, 1);
  epitaph = make_epitaph (provider, &end, reason);
  if (epitaph)
    log_event (LOG_LEVEL_WARNING, "worker", "%s", epitaph->message);
  finish_end (worker, process, epitaph);
}

/* ---- one call ------------------------------------------------------------- */

static json_t *
call_json (struct pending *pending, struct contract_fds *fds,
           struct error **err)
{
  const struct invoke *invoke = pending->invoke;
  json_t *args = NULL;

  /* The worker has what `open` takes since its start. */
  if (invoke->op->id == COFFER_OP_open)
    args = json_object ();
  else if (contract_encode_args (invoke->op, invoke->values, &args, fds, err)
           < 0)
    return NULL;
  args = json_pack ("{s:s, s:I, s:s, s:I, s:o}", "kind", "call", "call",
                    (json_int_t) pending->id, "op", invoke->op->name,
                    "deadline", (json_int_t) invoke->deadline_ns, "args",
                    args);
  if (!args)
    error_set (err, E_NO_MEMORY, 0, "out of memory");
  return args;
}

static void
link_call (struct worker *worker, struct pending *pending)
{
  pthread_mutex_lock (&worker->lock);
  pending->process->refs++;
  pending->next = worker->calls;
  worker->calls = pending;
  pending->dead = pending->process->ended;
  pthread_mutex_unlock (&worker->lock);
}

static void
unlink_call (struct worker *worker, struct pending *pending)
{
  struct pending **at;

  pthread_mutex_lock (&worker->lock);
  for (at = &worker->calls; *at != pending; at = &(*at)->next)
    ;
  *at = pending->next;
  unref_locked (worker, pending->process);
  pthread_mutex_unlock (&worker->lock);
  pending_fini (pending);
}

/* 0: ran, to whatever end.  -1: the process was gone before it got the call,
 * which may be given to another. */
static int
call_process (struct provider *provider, struct process *process,
              struct invoke *invoke)
{
  struct worker *worker = worker_of (provider);
  struct contract_fds fds = { .count = 0 };
  struct error *error = NULL;
  struct pending pending;
  json_t *frame;
  int result = 0;

  pending_init (&pending, invoke, process);
  frame = call_json (&pending, &fds, &error);
  if (!frame) {
    outcome_fault (&invoke->outcome, error);
    return 0;
  }
  trace_frame (provider, "->", frame, fds.count);
  link_call (worker, &pending);
  if (channel_send (process->channel, frame, &fds, invoke->deadline_ns,
                    &error) == 0) {
    pending_run (provider, &pending);
  } else if (error->sys_errno == EPIPE || error->sys_errno == ECONNRESET) {
    error_free (error);
    worker_process_died (provider, process, NULL, EXIT_MS);
    result = -1;
  } else {
    if (error->number == E_IO)
      worker_process_died (provider, process, error, 0);
    outcome_fault (&invoke->outcome, error);
  }
  json_decref (frame);
  unlink_call (worker, &pending);
  return result;
}

/* ---- starting ------------------------------------------------------------- */

/* How long the next start has to wait.  -1: the breaker is open. */
static int64_t
back_off (struct worker *worker)
{
  int64_t now = coffer_now_ns (), last = 0, wait;
  unsigned i, recent = 0;

  pthread_mutex_lock (&worker->lock);
  for (i = 0; i < WORKER_DEATHS && i < worker->n_deaths; i++) {
    recent += now - worker->deaths[i] < DEATHS_NS;
    if (worker->deaths[i] > last)
      last = worker->deaths[i];
  }
  pthread_mutex_unlock (&worker->lock);
  if (recent >= WORKER_DEATHS)
    return now - last < REST_NS ? -1 : 0;
  if (recent < 2)
    return 0;
  wait = last + (BACK_OFF_NS << (recent - 2)) - now;
  return wait > 0 ? wait : 0;
}

static int
wait_back_off (struct provider *provider, const struct invoke *invoke,
               struct error **err)
{
  struct worker *worker = worker_of (provider);
  int64_t wait = back_off (worker);

  if (wait < 0
      || (wait > 0 && coffer_now_ns () + wait >= invoke->deadline_ns)) {
    error_set (err, E_PROVIDER_BREAKER, 0,
               "%s: its worker died too often and rests for a while",
               provider->manifest->id);
    error_hint_id (err, provider->manifest->id);
    pthread_mutex_lock (&worker->lock);
    if (worker->last_end)
      error_detail (err, "last", json_string (worker->last_end));
    pthread_mutex_unlock (&worker->lock);
    return -1;
  }
  if (wait > 0 && invoke->cancel_fd >= 0)
    coffer_wait_fd (invoke->cancel_fd, POLLIN, coffer_now_ns () + wait, -1);
  else if (wait > 0)
    nanosleep (&(struct timespec){ wait / 1000000000, wait % 1000000000 },
               NULL);
  return 0;
}

static int
refusal (const struct channel_message *message,
         const struct redactor *redactor, struct error **err)
{
  int64_t code = channel_integer (message->json, "code", E_INTERNAL);
  char *text = channel_bytes (message->json, "message");
  char *hint = channel_bytes (message->json, "hint");

  if (!error_lookup ((int) code))
    code = E_INTERNAL;
  /* A constructor may have written this frame, and have read the start. */
  redact_text (redactor, text);
  redact_text (redactor, hint);
  error_set (err, (int) code, 0, "%.2000s", text ? text
                                                 : "the worker refused");
  if (hint)
    error_hint (err, "%.2000s", hint);
  free (text);
  free (hint);
  return -1;
}

/* The first answer, which comes to nobody else: others wait for start_lock. */
static int
await_ready (const struct provider *provider, struct process *process,
             int64_t deadline_ns, struct error **err)
{
  struct channel_message message;
  int result, ready = coffer_wait_fd (process->channel, POLLIN, deadline_ns,
                                      -1);

  if (ready <= 0)
    return error_set (err, E_PROVIDER_TIMEOUT, 0,
                      "its worker was not ready in time");
  result = channel_receive (process->channel, 1, &message, err);
  if (result < 0)
    return -1;
  if (result == 0)
    return error_set (err, E_PROVIDER_EXITED, 0,
                      "its worker ended while it loaded the module");
  trace_frame (provider, "<-", message.json, message.fds.count);
  if (strcmp (channel_kind (&message), "ready") == 0)
    result = 0;
  else if (strcmp (channel_kind (&message), "refused") == 0)
    result = refusal (&message, provider->redactor, err);
  else
    result = error_set (err, E_PROVIDER_PROTOCOL, 0,
                        "its worker began with another frame than it should");
  channel_message_fini (&message);
  return result;
}

static int
call_open (struct provider *provider, struct process *process,
           int64_t deadline_ns, struct error **err)
{
  struct invoke invoke = {
    .provider = provider, .cancel_fd = -1, .deadline_ns = deadline_ns,
    .op = contract_op_by_id (provider->contract, COFFER_OP_open),
    .request = atomic_fetch_add (&provider->requests, 1) + 1,
    .first_line = journal_mark (&provider->journal)
  };
  int result = call_process (provider, process, &invoke);

  if (result < 0)
    error_set (err, E_PROVIDER_EXITED, 0,
               "its worker ended before it was opened");
  else
    result = outcome_error (&invoke.outcome, provider->manifest, invoke.op,
                            err);
  outcome_fini (&invoke.outcome);
  return result;
}

/* A start that failed: with what it printed, and how it ended. */
static int
abandon (struct provider *provider, struct process *process,
         struct error **err)
{
  struct worker *worker = worker_of (provider);
  struct process_end end;
  char how[64];
  int died = (*err)->number == E_PROVIDER_EXITED;
  int counts = died || (*err)->number == E_PROVIDER_TIMEOUT
               || (*err)->number == E_PROVIDER_PROTOCOL;

  if (!begin_end (worker, process, counts))
    return -1;                  /* it died in `open`: told and reaped */
  process_end (process, died ? EXIT_MS : 0, &end);
  worker_drain_output (provider, process, 1);
  if (died) {
    describe_end (&end, how, sizeof how);
    error_wrap (err, "%s", how);
  }
  finish_end (worker, process, NULL);
  return -1;
}

static int
start_locked (struct provider *provider, int64_t deadline_ns,
              struct error **err)
{
  struct worker *worker = worker_of (provider);
  uint64_t mark = journal_mark (&provider->journal);
  struct process *process;
  struct error *error = NULL;

  if (process_start (provider, &process, err) < 0)
    return -1;
  pthread_mutex_lock (&worker->lock);
  worker->process = process;
  process->refs++;              /* this function's */
  pthread_mutex_unlock (&worker->lock);
  if (process->held) {
    deadline_ns = coffer_now_ns () + TRACE_HOLD_NS;
    log_event (LOG_LEVEL_WARNING, "worker",
               "%s: its worker waits for a debugger: gdb -p %d",
               provider->manifest->id, (int) process->pid);
  }
  if (await_ready (provider, process, deadline_ns, &error) < 0
      || call_open (provider, process, deadline_ns, &error) < 0) {
    abandon (provider, process, &error);
    if (!error->details || !json_object_get (error->details, "log"))
      worker_last_words (&error, journal_since (&provider->journal, mark));
    worker_unref (worker, process);
    return error_move (err, error);
  }
  worker_unref (worker, process);
  log_event (LOG_LEVEL_DEBUG, "worker", "%s: worker %d is ready",
             provider->manifest->id, (int) process->pid);
  return 0;
}

/* Somebody else's start may take longer than this call has; that is rare
 * enough for looking again and again. */
static int
lock_start (struct worker *worker, const struct invoke *invoke)
{
  while (pthread_mutex_trylock (&worker->start_lock) != 0) {
    if (coffer_now_ns () >= invoke->deadline_ns)
      return -1;
    nanosleep (&(struct timespec){ 0, 2 * NS_PER_MS }, NULL);
  }
  return 0;
}

/* A process that runs, with a reference for the caller. */
static int
take_process (struct provider *provider, const struct invoke *invoke,
              struct process **out, struct error **err)
{
  struct worker *worker = worker_of (provider);
  int64_t ready = coffer_now_ns () + READY_NS;
  int result = 0;

  if (invoke->deadline_ns < ready)
    ready = invoke->deadline_ns;
  if (lock_start (worker, invoke) < 0)
    return error_set (err, E_PROVIDER_TIMEOUT, 0,
                      "%s: its worker was not ready in time",
                      provider->manifest->id);
  pthread_mutex_lock (&worker->lock);
  *out = worker->process && !worker->process->ending ? worker->process : NULL;
  if (*out)
    (*out)->refs++;
  pthread_mutex_unlock (&worker->lock);
  if (!*out) {
    result = wait_back_off (provider, invoke, err);
    if (result == 0)
      result = start_locked (provider, ready, err);
    if (result == 0) {
      pthread_mutex_lock (&worker->lock);
      *out = worker->process;
      if (*out)
        (*out)->refs++;
      else
        result = error_set (err, E_PROVIDER_EXITED, 0,
                            "%s: its worker ends as soon as it is opened",
                            provider->manifest->id);
      pthread_mutex_unlock (&worker->lock);
    }
  }
  pthread_mutex_unlock (&worker->start_lock);
  return result;
}

static void
worker_call (struct provider *provider, struct invoke *invoke)
{
  struct error *error = NULL;
  struct process *process = NULL;
  int tries, result = -1;

  /* A worker that died since the last call takes nothing with it. */
  for (tries = 0; tries < 2 && result < 0; tries++) {
    if (take_process (provider, invoke, &process, &error) < 0) {
      outcome_fault (&invoke->outcome, error);
      return;
    }
    result = call_process (provider, process, invoke);
    worker_unref (worker_of (provider), process);
  }
  if (result < 0)
    invoke_fault (invoke, E_PROVIDER_EXITED, "its worker ends at once");
}

/* ---- life ----------------------------------------------------------------- */

static void
worker_free (struct provider *provider)
{
  struct worker *worker = worker_of (provider);

  free (worker->last_end);
  pthread_cond_destroy (&worker->ended);
  pthread_mutex_destroy (&worker->lock);
  pthread_mutex_destroy (&worker->output_lock);
  pthread_mutex_destroy (&worker->start_lock);
  free (worker);
  provider->state = NULL;
}

/* Asks the module to close, then ends the channel.  The reference is the
 * caller's. */
static void
process_close (struct provider *provider, struct process *process)
{
  struct worker *worker = worker_of (provider);
  union contract_value none[1] = { { .rec = NULL } };
  struct process_end end;
  struct invoke invoke = {
    .provider = provider, .values = none, .cancel_fd = -1,
    .deadline_ns = coffer_now_ns () + CLOSE_NS,
    .op = contract_op_by_id (provider->contract, COFFER_OP_close),
    .request = atomic_fetch_add (&provider->requests, 1) + 1,
    .first_line = journal_mark (&provider->journal)
  };

  call_process (provider, process, &invoke);
  outcome_fini (&invoke.outcome);
  if (begin_end (worker, process, 0)) {
    process_end (process, EXIT_MS, &end);
    worker_drain_output (provider, process, 1);
    finish_end (worker, process, NULL);
  }
  worker_unref (worker, process);
}

static void
worker_close (struct provider *provider)
{
  struct process *process = worker_of (provider)->process;

  if (process) {
    process->refs++;
    process_close (provider, process);
  }
  worker_free (provider);
}

/* lock is held: the worker's own reference is the only one. */
static int
is_idle_locked (const struct worker *worker)
{
  return worker->process && !worker->process->ending
         && worker->process->refs == 1;
}

static int
worker_is_idle (const struct provider *provider)
{
  struct worker *worker = worker_of (provider);
  int idle;

  pthread_mutex_lock (&worker->lock);
  idle = is_idle_locked (worker);
  pthread_mutex_unlock (&worker->lock);
  return idle;
}

static void
worker_rest (struct provider *provider)
{
  struct worker *worker = worker_of (provider);
  struct process *process = NULL;

  pthread_mutex_lock (&worker->lock);
  if (is_idle_locked (worker)) {
    process = steal (worker->process);
    process->refs++;
  }
  pthread_mutex_unlock (&worker->lock);
  if (process)
    process_close (provider, process);
}

static int
worker_pid (const struct provider *provider)
{
  struct worker *worker = worker_of (provider);
  int pid;

  pthread_mutex_lock (&worker->lock);
  pid = worker->process ? (int) worker->process->pid : 0;
  pthread_mutex_unlock (&worker->lock);
  return pid;
}

const struct backend backend_worker = {
  .call = worker_call, .close = worker_close, .pid = worker_pid,
  .is_idle = worker_is_idle, .rest = worker_rest
};

int
worker_start (struct provider *provider, struct error **err)
{
  struct worker *worker = calloc (1, sizeof *worker);
  int result;

  if (!worker)
    return error_set (err, E_NO_MEMORY, 0, "out of memory");
  pthread_mutex_init (&worker->start_lock, NULL);
  pthread_mutex_init (&worker->output_lock, NULL);
  pthread_mutex_init (&worker->lock, NULL);
  pthread_cond_init (&worker->ended, NULL);
  provider->state = worker;
  provider->backend = &backend_worker;
  pthread_mutex_lock (&worker->start_lock);
  result = start_locked (provider, coffer_now_ns () + READY_NS, err);
  pthread_mutex_unlock (&worker->start_lock);
  if (result < 0) {
    worker_free (provider);
    provider->backend = NULL;
  }
  return result;
}
