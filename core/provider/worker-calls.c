/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of a worker: frames to the call they belong to, and the time that
 * a call may take. */

#include "config.h"

#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/json.h"
#include "base/log.h"
#include "provider/trace.h"
#include "provider/worker.h"

#define GRACE_NS (500 * NS_PER_MS)      /* from cancel to the kill */
#define LAST_LOOK_NS (100 * NS_PER_MS)  /* at what has come meanwhile */
#define LOOK_NS 50000           /* for an answer, before the first sleep */
#define EXIT_MS 300             /* to end after its channel did */
/* What may wait for one call while its thread is busy with what came before. */
#define QUEUE_BYTES (128 << 20)
#define QUEUE_FDS 64

void
pending_init (struct pending *pending, struct invoke *invoke,
              struct process *process)
{
  memset (pending, 0, sizeof *pending);
  pending->invoke = invoke;
  pending->process = process;
  pending->id = (int64_t) invoke->request;
  pending->tail = &pending->head;
  pending->wake_fd = -1;
}

void
pending_fini (struct pending *pending)
{
  struct frame *frame;

  while ((frame = pending->head)) {
    pending->head = frame->next;
    channel_message_fini (&frame->message);
    free (frame);
  }
  coffer_buffer_free (&pending->parts);
  coffer_fd_close (&pending->wake_fd);
}

static void
wake_locked (struct pending *pending)
{
  uint64_t one = 1;

  if (!pending->sleeping)
    return;
  pending->sleeping = 0;
  if (write (pending->wake_fd, &one, sizeof one) < 0)
    log_event (LOG_LEVEL_ERROR, "worker", "a call cannot be woken");
}

/* ---- frames of one call --------------------------------------------------- */

static void
handle_emit (struct pending *pending, struct channel_message *message)
{
  struct invoke *invoke = pending->invoke;
  auto_arena struct contract_arena *arena = contract_arena_new ();
  auto_error struct error *error = NULL;
  int64_t id = channel_integer (message->json, "record", 0);
  const struct contract_record *record
    = id > 0 && id <= UINT32_MAX
      ? contract_record_by_id (invoke->provider->contract, (uint32_t) id)
      : NULL;
  void *data;

  if (!record)
    invoke_fault (invoke, E_PROVIDER_PROTOCOL,
                  "it emitted a record that the contract does not have");
  else if (!arena
           || contract_decode_record (record,
                                      json_object_get (message->json,
                                                       "value"),
                                      &message->fds, arena, &data, &error)
                < 0)
    invoke_fault (invoke, E_PROVIDER_PROTOCOL,
                  "the record %s is malformed: %s", record->name,
                  error ? error_message (error) : "out of memory");
  else
    invoke_deliver (invoke, record, data);
}

static void
handle_log (struct pending *pending, struct channel_message *message)
{
  auto_free char *text = channel_bytes (message->json, "text");

  invoke_log (pending->invoke,
              (int32_t) channel_integer (message->json, "level",
                                         COFFER_LOG_INFO), text);
}

static void
handle_progress (struct pending *pending,
                 struct channel_message *message)
{
  auto_free char *what = channel_bytes (message->json, "what");
  uint64_t done = 0, total = 0;

  json_get_u64 (json_object_get (message->json, "done"), &done);
  json_get_u64 (json_object_get (message->json, "total"), &total);
  invoke_progress (pending->invoke, done, total, what);
}

/* A descriptor, or minus a code: what a module asked its host for. */
static void
answer_fd (struct pending *pending, int32_t answer)
{
  coffer_autoclose int fd = answer;
  struct contract_fds fds = { .fd = { fd }, .count = fd >= 0 };
  auto_json json_t *frame
    = json_pack ("{s:s, s:I, s:i}", "kind", "connected", "call",
                 (json_int_t) pending->id, "code",
                 answer >= 0 ? 0 : (int) -answer);

  trace_frame (pending->invoke->provider, "->", frame, fds.count);
  /* A worker that is gone is noticed by whoever reads next. */
  channel_send (pending->process->channel, frame, &fds,
                coffer_now_ns () + GRACE_NS, NULL);
}

static void
handle_connect (struct pending *pending,
                struct channel_message *message)
{
  auto_free char *target = channel_bytes (message->json, "target");

  answer_fd (pending, invoke_connect (pending->invoke, target));
}

static void
handle_file (struct pending *pending, struct channel_message *message)
{
  auto_free char *name = channel_bytes (message->json, "name");

  answer_fd (pending, invoke_file (pending->invoke, name));
}

static void
handle_fault (struct pending *pending, struct channel_message *message)
{
  auto_free char *text = channel_bytes (message->json, "message");

  redact_text (pending->invoke->provider->redactor, text);
  invoke_fault (pending->invoke, E_PROVIDER_PROTOCOL, "%s",
                text ? text : "it broke the rules");
}

static void
handle_done (struct pending *pending, struct channel_message *message)
{
  struct invoke *invoke = pending->invoke;
  int64_t code = channel_integer (message->json, "code", -1);
  auto_free char *text = channel_bytes (message->json, "message");
  auto_free char *details = channel_bytes (message->json, "details");

  if (code < 0 || code > INT32_MAX)
    code = -1;
  if (text || details)
    invoke_fail (invoke, (int32_t) code,
                 (int32_t) channel_integer (message->json, "retryable",
                                            COFFER_RETRY_DEFAULT),
                 text, details);
  invoke_return (invoke, (int32_t) code);
  pending->done = 1;
}

static void
handle_part (struct pending *pending, struct channel_message *message)
{
  auto_free char *text = channel_bytes (message->json, "text");
  size_t size = text ? strlen (text) : 0;

  if (size > 0 && pending->parts.size + size <= CHANNEL_MAX_PAYLOAD)
    coffer_buffer_add (&pending->parts, text, size);
  else
    pending->broken = 1;
  pending->broken |= pending->parts.failed;
}

static void handle (struct pending *pending, struct channel_message *message,
                    int is_whole);

/* The text of the parts in the place of the frame that ends them. */
static void
handle_whole (struct pending *pending, struct channel_message *message)
{
  coffer_autobuffer struct coffer_buffer parts = pending->parts;
  json_t *json;

  memset (&pending->parts, 0, sizeof pending->parts);
  if (parts.size == 0 || json_parse (parts.data, parts.size, &json, NULL) < 0) {
    pending->broken = 1;
    return;
  }
  json_decref (message->json);
  message->json = json;
  handle (pending, message, 1);
}

static const struct {
  const char *kind;
  void (*handle) (struct pending *pending, struct channel_message *message);
  int of_parts;                 /* it may be whole, and long */
} kinds[] = {
  { "done", handle_done, 1 }, { "emit", handle_emit, 1 },
  { "log", handle_log, 1 }, { "progress", handle_progress, 1 },
  { "connect", handle_connect, 1 }, { "file", handle_file, 1 },
  { "fault", handle_fault, 1 }, { "part", handle_part, 0 },
  { "whole", handle_whole, 0 }
};

static void
handle (struct pending *pending, struct channel_message *message, int is_whole)
{
  const char *kind = channel_kind (message);
  size_t i, n = sizeof kinds / sizeof kinds[0];

  for (i = 0; kind && i < n && strcmp (kinds[i].kind, kind) != 0; i++)
    ;
  if (!kind || i == n || (is_whole && !kinds[i].of_parts)
      || channel_integer (message->json, "call", -1) != pending->id)
    pending->broken = 1;
  else
    kinds[i].handle (pending, message);
}

/* ---- reading -------------------------------------------------------------- */

/* To the call it belongs to.  -1: there is none, or it has too many. */
static int
route_locked (struct worker *worker, const struct process *process,
              const struct channel_message *take)
{
  int64_t id = channel_integer (take->json, "call", -1);
  struct pending *pending;
  struct frame *frame;

  for (pending = worker->calls;
       pending && (pending->id != id || pending->process != process);
       pending = pending->next)
    ;
  if (!pending || pending->queued >= QUEUE_BYTES
      || pending->queued_fds > QUEUE_FDS)
    return -1;
  frame = calloc (1, sizeof *frame);
  if (!frame)
    return -1;
  frame->message = *take;
  *pending->tail = frame;
  pending->tail = &frame->next;
  pending->queued += take->weight + sizeof *frame;
  pending->queued_fds += (size_t) take->fds.count;
  wake_locked (pending);
  return 0;
}

/* One frame, when poll has said that there is something. */
static void
read_frame (struct provider *provider, struct process *process)
{
  struct worker *worker = worker_of (provider);
  struct channel_message message;
  auto_error struct error *error = NULL;
  int got = channel_receive (process->channel, 0, &message, &error), known;

  if (got < 0 && !error)
    return;
  if (got <= 0) {
    worker_process_died (provider, process, error, error ? 0 : EXIT_MS);
    return;
  }
  trace_frame (provider, "<-", message.json, message.fds.count);
  pthread_mutex_lock (&worker->lock);
  known = route_locked (worker, process, &message);
  pthread_mutex_unlock (&worker->lock);
  if (known == 0)
    return;
  channel_message_fini (&message);
  error_set (&error, E_PROVIDER_PROTOCOL, 0,
             "its worker spoke of a call that nobody made, or too much");
  worker_process_died (provider, process, error, 0);
}

/* Somebody who sleeps reads from now on; whoever does not will see that nobody
 * does before it sleeps. */
static void
hand_over_locked (struct worker *worker, struct pending *reader)
{
  struct pending *pending;

  reader->reader = 0;
  worker->reading = 0;
  for (pending = worker->calls; pending && !pending->sleeping;
       pending = pending->next)
    ;
  if (pending)
    wake_locked (pending);
}

/* Milliseconds until the next thing that this call has to do. */
static int
time_left (const struct pending *pending)
{
  int64_t until = pending->kill_ns ? pending->kill_ns
                                   : pending->invoke->deadline_ns;
  int64_t left = (until - coffer_now_ns () + NS_PER_MS - 1) / NS_PER_MS;

  return left < 0 ? 0 : left > 60000 ? 60000 : (int) left;
}

/* A worker that does not answer is asked to stop, and then stopped.  But not
 * for being late when it is this process that had no processor: what has come
 * by then is looked at first. */
static void
check_time (struct provider *provider, struct pending *pending, int cancel)
{
  int64_t now = coffer_now_ns ();
  auto_error struct error *error = NULL;
  auto_json json_t *frame = NULL;

  if (pending->kill_ns && now >= pending->kill_ns && !pending->warned) {
    pending->warned = 1;
    pending->kill_ns = now + LAST_LOOK_NS;
  } else if (pending->kill_ns && now >= pending->kill_ns) {
    error_set (&error, E_PROVIDER_TIMEOUT, 0,
               "%s did not end in time, so that its worker was stopped",
               pending->invoke->op->name);
    worker_process_died (provider, pending->process, error, 0);
  } else if (!pending->kill_ns
             && (cancel || pending->invoke->ended
                 || now >= pending->invoke->deadline_ns)) {
    pending->kill_ns = now + GRACE_NS;
    frame = json_pack ("{s:s, s:I, s:i}", "kind", "cancel", "call",
                       (json_int_t) pending->id, "ended",
                       pending->invoke->ended != 0);
    trace_frame (provider, "->", frame, 0);
    channel_send (pending->process->channel, frame, NULL, now + GRACE_NS,
                  NULL);
  }
}

/* Most answers come sooner than a sleeper is woken.  So a call looks for its
 * own a moment long before it sleeps, once, and gives way to whoever else
 * wants the processor. */
static int
look_or_sleep (struct pending *pending, struct pollfd *p, nfds_t count)
{
  int64_t until = coffer_now_ns () + LOOK_NS;
  int n = 0;

  while (!pending->looked && (n = poll (p, count, 0)) == 0) {
    pending->looked = coffer_now_ns () >= until;
    sched_yield ();
  }
  pending->looked = 1;
  return n ? n : poll (p, count, time_left (pending));
}

static void
sleep_as_reader (struct provider *provider, struct pending *pending)
{
  struct process *process = pending->process;
  struct pollfd p[4] = {
    { .fd = process->channel, .events = POLLIN },
    { .fd = pending->kill_ns ? -1 : pending->invoke->cancel_fd,
      .events = POLLIN },
    { .fd = process->output_ended ? -1 : process->output, .events = POLLIN },
    { .fd = process->pidfd, .events = POLLIN }
  };

  if (look_or_sleep (pending, p, 4) < 0)
    return;
  if (p[2].revents)
    worker_drain_output (provider, process, 0);
  if (p[0].revents)
    read_frame (provider, process);
  else if (p[3].revents)        /* somebody else holds its end of the channel */
    worker_process_died (provider, process, NULL, 0);
  check_time (provider, pending, (p[1].revents & POLLIN) != 0);
}

static void
sleep_as_follower (struct provider *provider, struct pending *pending)
{
  struct pollfd p[2] = {
    { .fd = pending->wake_fd, .events = POLLIN },
    { .fd = pending->kill_ns ? -1 : pending->invoke->cancel_fd,
      .events = POLLIN }
  };
  uint64_t count;

  if (poll (p, 2, time_left (pending)) < 0)
    return;
  if ((p[0].revents & POLLIN)
      && read (pending->wake_fd, &count, sizeof count) < 0)
    return;
  check_time (provider, pending, (p[1].revents & POLLIN) != 0);
}

static void
handle_frame (struct provider *provider, struct pending *pending,
              struct frame *frame)
{
  auto_error struct error *error = NULL;

  handle (pending, &frame->message, 0);
  if (pending->broken) {
    error_set (&error, E_PROVIDER_PROTOCOL, 0,
               "its worker sent a frame of no known kind, or too long a text");
    worker_process_died (provider, pending->process, error, 0);
  }
  channel_message_fini (&frame->message);
  free (frame);
  if (!pending->done)
    check_time (provider, pending, 0);
}

/* What a call is told whose process ended. */
static void
fail_dead (struct provider *provider, struct pending *pending)
{
  struct worker *worker = worker_of (provider);
  const struct error *epitaph;
  struct error *error = NULL;

  pthread_mutex_lock (&worker->lock);
  epitaph = pending->process->epitaph;
  error_set (&error, epitaph ? epitaph->number : E_PROVIDER_EXITED, 0, "%s",
             epitaph ? error_message (epitaph) : "its worker is gone");
  if (error && epitaph && epitaph->details)
    error->details = json_deep_copy (epitaph->details);
  pthread_mutex_unlock (&worker->lock);
  worker_last_words (&error, journal_since (&provider->journal,
                                            pending->invoke->first_line));
  outcome_fault (&pending->invoke->outcome, error);
  pending->done = 1;
}

static struct frame *
take_frame_locked (struct pending *pending)
{
  struct frame *frame = pending->head;

  pending->head = frame->next;
  pending->queued -= frame->message.weight + sizeof *frame;
  pending->queued_fds -= (size_t) frame->message.fds.count;
  if (!pending->head)
    pending->tail = &pending->head;
  return frame;
}

/* One step of a call: a frame of its own, or a wait for one. */
static void
step (struct provider *provider, struct pending *pending)
{
  struct worker *worker = worker_of (provider);
  struct frame *frame = NULL;
  int dead;

  pthread_mutex_lock (&worker->lock);
  if (pending->reader && (pending->head || pending->process->ending))
    hand_over_locked (worker, pending);
  while (pending->process->ending && !pending->dead && !pending->head)
    pthread_cond_wait (&worker->ended, &worker->lock);
  dead = pending->dead;
  if (pending->head) {
    frame = take_frame_locked (pending);
  } else if (!dead && !pending->reader) {
    pending->reader = !worker->reading;
    worker->reading = 1;
    if (!pending->reader && pending->wake_fd < 0)
      pending->wake_fd = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
    pending->sleeping = !pending->reader && pending->wake_fd >= 0;
  }
  pthread_mutex_unlock (&worker->lock);

  if (frame)
    handle_frame (provider, pending, frame);
  else if (dead)
    fail_dead (provider, pending);
  else if (pending->reader)
    sleep_as_reader (provider, pending);
  else
    sleep_as_follower (provider, pending);
}

void
pending_run (struct provider *provider, struct pending *pending)
{
  struct worker *worker = worker_of (provider);

  while (!pending->done)
    step (provider, pending);
  if (!pending->reader)
    return;
  pthread_mutex_lock (&worker->lock);
  hand_over_locked (worker, pending);
  pthread_mutex_unlock (&worker->lock);
}
