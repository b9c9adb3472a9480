/* SPDX-License-Identifier: Apache-2.0 */
/* Serving calls.
 *
 * Every thread that has nothing to do waits in recvmsg, the kernel wakes one
 * for each frame, and whoever gets a call runs it: nothing is handed over.
 * There is always one thread more than running calls, so that cancels, answers
 * of the broker and the end of the channel are seen whatever the module does.
 * When the channel ends, so does the process, at once.
 *
 * Two threads may hold a call and its cancel at the same time, and the second
 * be the faster: a cancel for a call that is not there yet is remembered.
 *
 * `lock` guards everything below it in struct server; it is never held while
 * the module runs or a frame is sent. */

#include "config.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/json.h"
#include "base/text.h"
#include "provider/worker/serve.h"

#define STACK_BYTES (1024 * 1024)
#define MAX_LOG_TEXT 4096
#define LOGS_A_SECOND 200
#define EARLY_CANCELS 64

struct job {
  struct coffer_call call;      /* first: what the module holds */
  struct server *server;
  int64_t id;
  const struct contract_op *op;
  void *opened;
  int faulted;
  int unwanted;                 /* lock: the host has heard enough */
  int32_t retryable;
  char *message, *details;
  int answered;                 /* lock: the broker's answer is there */
  int32_t answer;               /* lock */
  struct job *next;             /* lock */
};

struct server {
  int channel;
  int kill_group;
  unsigned max_threads;
  struct module *module;
  const struct serve_open *open;
  void *self;

  pthread_mutex_t lock;
  pthread_cond_t changed;       /* ready, or an answer of the broker */
  int ready;
  unsigned threads, readers;
  struct job *jobs;
  struct {
    int64_t id;
    int ended;
  } early[EARLY_CANCELS];       /* a ring */
  unsigned n_early;
  int64_t log_second;
  unsigned logs, logs_dropped;
};

static void *thread_main (void *data);

/* The whole group when this worker may start programs: they end with it. */
static void __attribute__ ((noreturn))
end_process (const struct server *server, int status)
{
  if (server->kill_group)
    kill (0, SIGKILL);
  _exit (status);
}

/* A host that does not read any more will never do so again.  -1: it is more
 * than a call carries. */
static int
send_frame (struct server *server, json_t *take_json,
            const struct contract_fds *fds)
{
  auto_error struct error *error = NULL;
  int result;

  if (!take_json)
    end_process (server, 70);
  result = channel_send_call (server->channel, take_json, fds, &error);
  if (result < 0 && error->number == E_IO)
    end_process (server, 0);
  json_decref (take_json);
  return result;
}

/* ---- the host table ------------------------------------------------------- */

static struct job *
job_of (struct coffer_call *call)
{
  return (struct job *) (void *) call;
}

static int32_t
job_fault (struct job *job, const char *what)
{
  job->faulted = 1;
  send_frame (job->server,
              json_pack ("{s:s, s:I, s:o}", "kind", "fault", "call",
                         (json_int_t) job->id, "message",
                         json_bytes (what, strlen (what))), NULL);
  return COFFER_INTERNAL;
}

static int
is_unwanted (struct job *job)
{
  int unwanted;

  pthread_mutex_lock (&job->server->lock);
  unwanted = job->unwanted;
  pthread_mutex_unlock (&job->server->lock);
  return unwanted;
}

static int32_t
host_emit (struct coffer_call *call, uint32_t id, const void *data)
{
  auto_error struct error *error = NULL;
  struct contract_fds fds = { .count = 0 };
  const struct contract_record *record;
  struct job *job = job_of (call);
  auto_free char *what = NULL;
  json_t *value = NULL;
  uint32_t size = 0;

  if (job->faulted)
    return COFFER_INTERNAL;
  if (is_unwanted (job))
    return COFFER_CANCELLED;
  record = contract_record_by_id (contract_builtin (), id);
  if (data)
    memcpy (&size, data, sizeof size);
  if (id == 0 || !record || size < 2 * sizeof size) {
    what = record ? text_printf ("the record %s says that its size is %u",
                                 record->name, size) : text_printf ("it emitted a record that the contract does not have "
                        "(%u)", id);
    return job_fault (job, what ? what : "");
  }
  if (contract_encode_record (record, data, &value, &fds, &error) < 0) {
    what = text_printf ("the record %s is malformed: %s", record->name,
                        error_message (error));
    return job_fault (job, what ? what : "");
  }
  if (send_frame (job->server,
                  json_pack ("{s:s, s:I, s:i, s:o}", "kind", "emit", "call",
                             (json_int_t) job->id, "record", (int) id,
                             "value", value), &fds) < 0)
    return job_fault (job, "a record is larger than a call carries");
  return COFFER_OK;
}

/* Not inlined: with a short literal gcc takes the bound for an overread. */
static char *__attribute__ ((noinline))
copy_bounded (const char *text, size_t bound)
{
  return text ? strndup (text, bound) : NULL;
}

static int32_t
host_fail (struct coffer_call *call, int32_t code, int32_t retryable,
           const char *message, const char *details)
{
  struct job *job = job_of (call);

  free (job->message);
  free (job->details);
  job->message = copy_bounded (message, MAX_LOG_TEXT);
  job->details = details && strlen (details) < CHANNEL_MAX_FRAME / 2
                 ? strdup (details) : NULL;
  job->retryable = retryable;
  return code;
}

/* The host counts as well; this keeps a flood off the channel. */
static int
log_passes (struct server *server)
{
  int64_t second = coffer_now_ns () / 1000000000;
  int passes;

  pthread_mutex_lock (&server->lock);
  if (second != server->log_second) {
    server->log_second = second;
    server->logs = 0;
  }
  passes = ++server->logs <= LOGS_A_SECOND + 1;
  pthread_mutex_unlock (&server->lock);
  return passes;
}

static void
host_log (struct coffer_call *call, int32_t level, const char *text)
{
  struct job *job = job_of (call);

  if (!text || !log_passes (job->server))
    return;
  send_frame (job->server,
              json_pack ("{s:s, s:I, s:i, s:o}", "kind", "log", "call",
                         (json_int_t) job->id, "level", (int) level, "text",
                         json_bytes (text, strnlen (text, MAX_LOG_TEXT))),
              NULL);
}

static void
host_progress (struct coffer_call *call, uint64_t done, uint64_t total,
               const char *what)
{
  struct job *job = job_of (call);

  send_frame (job->server,
              json_pack ("{s:s, s:I, s:o, s:o, s:o}", "kind", "progress",
                         "call", (json_int_t) job->id, "done",
                         json_u64 (done), "total", json_u64 (total), "what",
                         json_bytes (what ? what : "",
                                     what ? strnlen (what, 256) : 0)), NULL);
}

/* Asks the host for a descriptor. */
static int32_t
ask_fd (struct job *job, const char *kind, const char *key, const char *value)
{
  struct server *server = job->server;
  int32_t answer;

  if (!value || strnlen (value, 8192) == 8192)
    return -COFFER_INVALID;
  pthread_mutex_lock (&server->lock);
  job->answered = 0;
  pthread_mutex_unlock (&server->lock);
  send_frame (server, json_pack ("{s:s, s:I, s:o}", "kind", kind, "call",
                                 (json_int_t) job->id, key,
                                 json_bytes (value, strlen (value))), NULL);
  pthread_mutex_lock (&server->lock);
  while (!job->answered)
    pthread_cond_wait (&server->changed, &server->lock);
  answer = job->answer;
  pthread_mutex_unlock (&server->lock);
  return answer;
}

static int32_t
host_connect (struct coffer_call *call, const char *target)
{
  return ask_fd (job_of (call), "connect", "target", target);
}

static int32_t
host_file (struct coffer_call *call, const char *name)
{
  return ask_fd (job_of (call), "file", "name", name);
}

static int32_t
host_opened (struct coffer_call *call, void *self)
{
  job_of (call)->opened = self;
  return COFFER_OK;
}

static const struct coffer_host host_table = {
  .size = sizeof host_table, .emit = host_emit, .fail = host_fail,
  .log = host_log, .progress = host_progress, .connect = host_connect,
  .opened = host_opened, .file = host_file
};

/* ---- one call ------------------------------------------------------------- */

static void
send_done (struct job *job, int32_t code)
{
  json_t *frame = json_pack ("{s:s, s:I, s:i, s:i}", "kind", "done", "call",
                             (json_int_t) job->id, "code", (int) code,
                             "retryable", (int) job->retryable);

  if (job->message)
    json_object_set_new (frame, "message",
                         json_bytes (job->message, strlen (job->message)));
  if (job->details)
    json_object_set_new (frame, "details",
                         json_bytes (job->details, strlen (job->details)));
  send_frame (job->server, frame, NULL);
}

static int32_t
invoke (struct job *job, const union contract_value *values)
{
  struct server *server = job->server;
  int32_t code = contract_invoke (server->module->calls, job->op,
                                  server->module->operations, &job->call,
                                  server->self, values);

  if (job->op->id == COFFER_OP_open && code == COFFER_OK) {
    if (!job->opened) {
      host_fail (&job->call, COFFER_INTERNAL, COFFER_RETRY_NO,
                 "open succeeded but gave no instance", NULL);
      return COFFER_INTERNAL;
    }
    server->self = job->opened;
  }
  return code;
}

/* What the module keeps of its configuration it has copied. */
static void
wipe_texts (char *const *texts)
{
  for (; texts && *texts; texts++)
    explicit_bzero (*texts, strlen (*texts));
}

static int32_t
decode_and_invoke (struct job *job, const struct channel_message *message)
{
  auto_arena struct contract_arena *arena = contract_arena_new ();
  auto_error struct error *error = NULL;
  union contract_value values[CONTRACT_MAX_ARGS + 1];
  const struct serve_open *open = job->server->open;
  int32_t code;

  if (job->op->id == COFFER_OP_open) {
    values[0].strv = (const char *const *) open->config;
    values[1].rec = &open->opts;
    code = invoke (job, values);
    wipe_texts (open->config);
    return code;
  }
  if (!arena
      || contract_decode_args (job->op,
                               json_object_get (message->json, "args"),
                               &message->fds, arena, values, &error) < 0)
    return host_fail (&job->call, COFFER_INVALID, COFFER_RETRY_NO,
                      error ? error_message (error) : "out of memory", NULL);
  return invoke (job, values);
}

static void
cancel_locked (struct job *job, int ended)
{
  uint64_t one = 1;

  job->unwanted = ended;
  if (write (job->call.cancel_fd, &one, sizeof one) < 0)
    job->unwanted = 1;          /* at least this */
}

/* Returns whether nobody reads any more, now that this thread runs a call. */
static int
job_link (struct job *job)
{
  struct server *server = job->server;
  unsigned i;
  int alone;

  pthread_mutex_lock (&server->lock);
  job->next = server->jobs;
  server->jobs = job;
  for (i = 0; i < EARLY_CANCELS; i++)
    if (server->early[i].id == job->id)
      cancel_locked (job, server->early[i].ended);
  alone = --server->readers == 0 && server->threads < server->max_threads;
  server->threads += alone;
  server->readers += alone;
  pthread_mutex_unlock (&server->lock);
  return alone;
}

static void
job_unlink (struct job *job)
{
  struct server *server = job->server;
  struct job **at;

  pthread_mutex_lock (&server->lock);
  for (at = &server->jobs; *at != job; at = &(*at)->next)
    ;
  *at = job->next;
  server->readers++;
  pthread_mutex_unlock (&server->lock);
}

static void
wait_ready (struct server *server)
{
  pthread_mutex_lock (&server->lock);
  while (!server->ready)
    pthread_cond_wait (&server->changed, &server->lock);
  pthread_mutex_unlock (&server->lock);
}

static void
run_job (struct job *job, struct channel_message *message)
{
  int32_t code;

  wait_ready (job->server);
  code = decode_and_invoke (job, message);
  job_unlink (job);
  /* Nothing of a call is open any more when the host hears that it is over. */
  close (job->call.cancel_fd);
  channel_message_fini (message);
  send_done (job, code);
  free (job->message);
  free (job->details);
}

/* ---- reading -------------------------------------------------------------- */

static void
add_reader (struct server *server)
{
  pthread_attr_t attributes;
  pthread_t thread;

  pthread_attr_init (&attributes);
  pthread_attr_setdetachstate (&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize (&attributes, STACK_BYTES);
  if (pthread_create (&thread, &attributes, thread_main, server) != 0)
    end_process (server, 71);
  pthread_attr_destroy (&attributes);
}

static struct job *
job_by_id_locked (struct server *server, int64_t id)
{
  struct job *job;

  for (job = server->jobs; job && job->id != id; job = job->next)
    ;
  return job;
}

/* A call that is not there has ended, or is not there yet. */
static void
handle_cancel (struct server *server, const json_t *json, int64_t id)
{
  int ended = (int) channel_integer (json, "ended", 0);
  unsigned slot;
  struct job *job;

  pthread_mutex_lock (&server->lock);
  job = job_by_id_locked (server, id);
  if (job) {
    cancel_locked (job, ended);
  } else {
    slot = server->n_early++ % EARLY_CANCELS;
    server->early[slot].id = id;
    server->early[slot].ended = ended;
  }
  pthread_mutex_unlock (&server->lock);
}

static void
handle_connected (struct server *server, struct channel_message *message)
{
  struct job *job;

  pthread_mutex_lock (&server->lock);
  job = job_by_id_locked (server,
                          channel_integer (message->json, "call", -1));
  if (job) {
    job->answered = 1;
    job->answer = -(int32_t) channel_integer (message->json, "code",
                                              COFFER_INTERNAL);
    if (message->fds.count == 1) {
      job->answer = message->fds.fd[0];
      message->fds.count = 0;
    }
    pthread_cond_broadcast (&server->changed);
  }
  pthread_mutex_unlock (&server->lock);
  channel_message_fini (message);
}

/* 1: a call, ready to run. */
static int
handle (struct server *server, struct channel_message *message,
        struct job *job)
{
  const char *kind = channel_kind (message);
  const char *name = json_string_value (json_object_get (message->json,
                                                         "op"));
  int64_t id = channel_integer (message->json, "call", -1);

  if (strcmp (kind, "call") == 0 && name && id > 0) {
    memset (job, 0, sizeof *job);
    job->server = server;
    job->id = id;
    job->retryable = COFFER_RETRY_DEFAULT;
    job->op = contract_op_by_name (contract_builtin (), name);
    job->call = (struct coffer_call){
      .size = sizeof job->call, .host = &host_table, .request = id,
      .deadline_ns = channel_integer (message->json, "deadline", 0),
      .cancel_fd = eventfd (0, EFD_CLOEXEC)
    };
    if (job->op && job->call.cancel_fd >= 0)
      return 1;
    coffer_fd_close (&job->call.cancel_fd);
    send_done (job, job->op ? COFFER_LIMIT : COFFER_UNSUPPORTED);
  } else if (strcmp (kind, "cancel") == 0) {
    handle_cancel (server, message->json, id);
  } else if (strcmp (kind, "connected") == 0) {
    handle_connected (server, message);
    return 0;
  }
  channel_message_fini (message);
  return 0;
}

void
server_run (struct server *server)
{
  struct channel_message message;
  struct job job;

  for (;;) {
    if (channel_receive (server->channel, 1, &message, NULL) <= 0)
      end_process (server, 0);
    if (!handle (server, &message, &job))
      continue;
    if (job_link (&job))
      add_reader (server);
    run_job (&job, &message);
  }
}

static void *
thread_main (void *data)
{
  server_run (data);
}

int
server_new (int channel, unsigned max_calls, int kill_group,
            struct server **out, struct error **err)
{
  struct server *server = calloc (1, sizeof *server);

  if (!server)
    return error_set (err, E_NO_MEMORY, 0, "out of memory");
  server->channel = channel;
  server->kill_group = kill_group;
  server->max_threads = max_calls + 1;
  server->threads = server->readers = 2;        /* this one, and a watcher */
  pthread_mutex_init (&server->lock, NULL);
  pthread_cond_init (&server->changed, NULL);
  add_reader (server);
  *out = server;
  return 0;
}

void
server_ready (struct server *server, struct module *module,
              const struct serve_open *open)
{
  pthread_mutex_lock (&server->lock);
  server->module = module;
  server->open = open;
  server->ready = 1;
  pthread_cond_broadcast (&server->changed);
  pthread_mutex_unlock (&server->lock);
}
