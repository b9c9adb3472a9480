/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of the docker provider.  The engine starts the program inside, which
 * starts the command: what an engine can say of a command's end, of its time and of
 * what it started is too little, and differs between engines. */

#define _GNU_SOURCE

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <coffer/fd.h>
#include <coffer/files.h>
#include <coffer/process.h>
#include <coffer/spec.h>

#include "execs.h"

#define OPTION(opts, field) (COFFER_HAS (opts, field) ? (opts)->field : 0)
#define KEPT_BYTES (1 << 20)            /* of a stream, when nobody says */
#define KEPT_BYTES_MAX (8 << 20)

/* ---- starting --------------------------------------------------------------------- */

/* All commands of a sandbox are its one user's: what they leave behind in memory is
 * that one's, and so are the program inside and its sockets. */
static int32_t
check_start (struct coffer_call *call, const struct docker *docker,
             const char *const *argv, const char *cwd, int32_t in,
             const struct coffer_exec_start_opts *opts)
{
  static const char *const kept[] = {
    "timeout_ms", "tty", "background", "rows", "columns", "user",
    "output_cap_bytes", NULL,
  };
  int32_t code = coffer_exec_check (call, argv, cwd, in, opts, kept);

  return code == COFFER_OK && OPTION (opts, user)
         ? docker_check_user (call, docker, opts->user) : code;
}

static void
make_request (struct wire_request *request, struct coffer_buffer *block,
              const char *const *argv, const char *const *env,
              const char *cwd, const struct coffer_exec_start_opts *opts)
{
  const uint64_t cap = OPTION (opts, output_cap_bytes);

  stream_request (request, WIRE_RUN);
  coffer_buffer_add_vector (block,
                            (const char *const[]) {cwd ? cwd : "", NULL});
  request->argc = coffer_buffer_add_vector (block, argv);
  request->envc = coffer_buffer_add_vector (block, env);
  request->timeout_ms = OPTION (opts, timeout_ms);
  request->rows = OPTION (opts, rows);
  request->columns = OPTION (opts, columns);
  request->cap = cap == 0 ? KEPT_BYTES :
    cap < KEPT_BYTES_MAX ? cap : KEPT_BYTES_MAX;
  if (OPTION (opts, tty))
    request->flags |= WIRE_TTY;
  if (OPTION (opts, background))
    request->flags |= WIRE_BACKGROUND | WIRE_OUT | WIRE_ERR;
}

static int32_t
emit_info (struct coffer_call *call, const struct wire_info *info,
           const char *const *argv)
{
  char id[WIRE_ID_MAX];
  const struct coffer_exec_info record = {
    .size = sizeof record, .exec = id,
    .state = info->running ? "running" : "exited",
    .started_ns = info->started_ns,
    .background = (info->flags & WIRE_BACKGROUND) != 0, .argv = argv,
  };

  memcpy (id, info->id, sizeof id);
  id[sizeof id - 1] = '\0';
  if (!*id || id[strspn (id, "abcdefghijklmnopqrstuvwxyz0123456789")])
    return COFFER_OK;           /* somebody inside has written that */
  return coffer_emit_exec_info (call, &record);
}

int32_t
docker_exec_start (struct coffer_call *call, void *self, const char *sandbox,
                   const char *const *argv, const char *const *env,
                   const char *cwd, int32_t in, int32_t out, int32_t err,
                   const struct coffer_exec_start_opts *opts)
{
  struct docker *docker = self;
  coffer_autobuffer struct coffer_buffer block = {0};
  struct wire_request request;
  struct wire_info info;
  struct relay *relay;
  int32_t code = check_start (call, docker, argv, cwd, in, opts);

  if (code != COFFER_OK)
    return code;
  make_request (&request, &block, argv, env, cwd, opts);
  request.flags |= (in >= 0 ? WIRE_IN : 0) | (out >= 0 ? WIRE_OUT : 0)
                   | (err >= 0 ? WIRE_ERR : 0);
  relay = relay_new (docker, sandbox, in, out, err);
  if (!relay)
    return coffer_fail_errno (call, errno ? errno : ENOMEM, "the command");
  code = relay_start (call, docker, relay, &request, &block, &info);
  if (code == COFFER_OK) {
    memcpy (info.id, relay_id (relay), sizeof info.id);
    code = emit_info (call, &info, argv);
  }
  relay_release (relay);
  return code;
}

/* ---- the end of one ------------------------------------------------------------------ */

static void
describe_failure (const struct wire_end *end, char *text, size_t size)
{
  static const char *const stages[] = {
    "the command could not be started", "the command could not be set up",
    "the working folder", "the program",
  };
  uint32_t stage = end->failure_stage < 4 ? end->failure_stage : 0;
  const char *why = strerrordesc_np (end->failure_errno);

  snprintf (text, size, "%s: %s", stages[stage], why ? why : "unknown error");
}

static int32_t
emit_end (struct coffer_call *call, const char *exec,
          const struct wire_end *end)
{
  const char *limits[4] = {NULL};
  struct coffer_exec_exit record = {
    .size = sizeof record, .exec = exec, .code = end->code,
    .signal = end->signal, .duration_us = end->duration_us,
    .cpu_us = end->cpu_us, .killed = end->killed, .limits_hit = limits,
    .timed_out = (end->flags & WIRE_TIMED_OUT) != 0,
    /* A shell says what ended its command by its own code. */
    .oom = end->flags & WIRE_OOM
           && (end->signal == SIGKILL || end->code == 128 + SIGKILL),
    .failure_errno = end->failure_errno,
  };
  char failure[128];
  size_t n = 0;

  if (end->flags & WIRE_OOM)
    limits[n++] = "memory";
  if (end->flags & WIRE_PIDS)
    limits[n++] = "pids";
  if (record.timed_out)
    limits[n++] = "timeout";
  if (end->failure_errno) {
    describe_failure (end, failure, sizeof failure);
    record.failure = failure;
  }
  return coffer_emit_exec_exit (call, &record);
}

/* Asked inside: of a command of another worker, or one whose stream is lost. */
struct asked {
  struct coffer_call *call;
  struct wire_end end;
  int has_end, answered;
  int32_t failed;
};

static int
answer_frame (void *data, uint32_t kind, const void *bytes, size_t size)
{
  struct asked *asked = data;

  if (kind == WIRE_ENDED && size == sizeof asked->end) {
    memcpy (&asked->end, bytes, size);
    asked->has_end = 1;
  } else if (kind == WIRE_FAILED) {
    asked->failed = stream_fail_frame (asked->call, bytes, size);
  } else if (kind == WIRE_INFO && size == sizeof asked->end.info) {
    memcpy (&asked->end.info, bytes, size);
    asked->failed = emit_info (asked->call, &asked->end.info, NULL);
  }
  if (kind == WIRE_DONE || asked->failed != COFFER_OK)
    asked->answered = 1;
  return asked->answered ? STREAM_DONE : 0;
}

static int
id_is_good (const char *exec)
{
  size_t length = strlen (exec);

  return length > 1 && length < WIRE_ID_MAX && exec[0] == 'x'
         && strspn (exec + 1, "0123456789abcdef") == length - 1;
}

static int32_t
fail_unknown (struct coffer_call *call, struct docker *docker,
              const char *sandbox)
{
  auto_sandbox struct docker_sandbox found = {.id = ""};
  int32_t code = docker_sandbox_find (call, docker, sandbox, &found);

  return code != COFFER_OK ? code : coffer_fail (call, COFFER_NOT_FOUND,
                                                 "no such command");
}

static int32_t
ask (struct coffer_call *call, struct docker *docker, const char *sandbox,
     const char *exec, struct wire_request *request, struct asked *asked)
{
  const struct stream_sink sink = {NULL, answer_frame, asked};
  auto_stream struct stream stream = {.fd = -1};
  int32_t code;

  asked->call = call;
  if (exec && !id_is_good (exec))
    return fail_unknown (call, docker, sandbox);
  snprintf (request->id, sizeof request->id, "%s", exec ? exec : "");
  code = stream_open (call, docker, sandbox, request, NULL, &stream);
  if (code == COFFER_OK)
    code = stream_read_all (call, &stream, &sink);
  if (code == COFFER_OK && !asked->answered)
    code = stream_fail_sandbox (call, docker, sandbox, &stream);
  return code != COFFER_OK ? code : asked->failed;
}

static int32_t
wait_inside (struct coffer_call *call, struct docker *docker,
             const char *sandbox, const char *exec)
{
  struct asked asked = {.failed = COFFER_OK};
  struct wire_request request;
  int32_t code;

  stream_request (&request, WIRE_WAIT);
  code = ask (call, docker, sandbox, exec, &request, &asked);
  if (code != COFFER_OK)
    return code;
  if (!asked.has_end)
    return coffer_fail (call, COFFER_UNAVAILABLE, "the engine's stream ended "
                        "before the command; asking again may work");
  return emit_end (call, exec, &asked.end);
}

/* What kept the command's time was stopped or ended from inside: then nothing of
 * this user's is left to run on in the sandbox. */
static int32_t
end_all (struct coffer_call *call, struct docker *docker, const char *sandbox,
         const char *exec)
{
  const struct wire_end end = {.code = -1, .signal = SIGKILL,
                               .flags = WIRE_TIMED_OUT};
  struct asked asked = {.failed = COFFER_OK};
  struct wire_request request;
  int32_t code;

  stream_request (&request, WIRE_SWEEP);
  code = ask (call, docker, sandbox, NULL, &request, &asked);
  if (code != COFFER_OK)
    return code;
  coffer_log (call, COFFER_LOG_WARNING, "a command withstood its timeout: all "
              "commands of its sandbox were ended");
  return emit_end (call, exec, &end);
}

int32_t
docker_exec_wait (struct coffer_call *call, void *self, const char *sandbox,
                  const char *exec, const struct coffer_exec_wait_opts *opts)
{
  struct docker *docker = self;
  struct relay *relay = relay_find (docker, sandbox, exec);
  struct wire_end end;
  int32_t code;
  int state;

  (void) opts;
  if (!relay)
    return wait_inside (call, docker, sandbox, exec);
  state = relay_wait (call, relay, &end);
  if (state < 0)
    code = coffer_fail_errno (call, errno, "the command");
  else if (state == RELAY_ENDED)
    code = emit_end (call, exec, &end);
  else if (state == RELAY_LATE)
    code = end_all (call, docker, sandbox, exec);
  else
    code = wait_inside (call, docker, sandbox, exec);
  relay_release (relay);
  return code;
}

/* ---- the others ------------------------------------------------------------------------- */

int32_t
docker_exec_list (struct coffer_call *call, void *self, const char *sandbox,
                  const struct coffer_exec_list_opts *opts)
{
  struct asked asked = {.failed = COFFER_OK};
  struct wire_request request;

  (void) opts;
  stream_request (&request, WIRE_LIST);
  return ask (call, self, sandbox, NULL, &request, &asked);
}

int32_t
docker_exec_signal (struct coffer_call *call, void *self, const char *sandbox,
                    const char *exec, int32_t number,
                    const struct coffer_exec_signal_opts *opts)
{
  struct asked asked = {.failed = COFFER_OK};
  struct wire_request request;

  (void) opts;
  if (number < 0 || number >= NSIG)
    return coffer_fail (call, COFFER_INVALID, "no such signal");
  stream_request (&request, WIRE_TELL);
  request.signal = number;
  return ask (call, self, sandbox, exec, &request, &asked);
}

int32_t
docker_exec_resize (struct coffer_call *call, void *self, const char *sandbox,
                    const char *exec, uint32_t rows, uint32_t columns,
                    const struct coffer_exec_resize_opts *opts)
{
  struct asked asked = {.failed = COFFER_OK};
  struct wire_request request;

  (void) opts;
  if (rows < 1 || rows > 4096 || columns < 1 || columns > 4096)
    return coffer_fail (call, COFFER_INVALID, "rows and columns are 1 to 4096");
  stream_request (&request, WIRE_TELL);
  request.rows = rows;
  request.columns = columns;
  return ask (call, self, sandbox, exec, &request, &asked);
}

/* Of a command of another worker there is no input to end: that worker has it. */
int32_t
docker_exec_stdin_close (struct coffer_call *call, void *self,
                         const char *sandbox, const char *exec,
                         const struct coffer_exec_stdin_close_opts *opts)
{
  struct relay *relay = relay_find (self, sandbox, exec);

  if (!relay)
    return docker_exec_signal (call, self, sandbox, exec, 0, NULL);
  (void) opts;
  relay_close_input (relay);
  relay_release (relay);
  return COFFER_OK;
}

/* ---- output that was kept ------------------------------------------------------------------ */

struct attached {
  struct coffer_call *call;
  int out, err;
  int32_t failed;
  int done;
  uint64_t out_bytes, out_all;
};

/* A reader that goes away has seen enough: that is an end, too. */
static int
attached_over (const struct attached *attached)
{
  return attached->failed != COFFER_OK
             || (attached->done && attached->out_bytes >= attached->out_all)
           ? STREAM_DONE : 0;
}

static int
attached_out (void *data, const char *bytes, size_t size)
{
  struct attached *attached = data;

  attached->out_bytes += size;
  if (attached->out >= 0 && coffer_write_all (attached->out, bytes, size) < 0)
    return STREAM_DONE;
  return attached_over (attached);
}

static int
attached_frame (void *data, uint32_t kind, const void *bytes, size_t size)
{
  struct attached *attached = data;

  if (kind == WIRE_FAILED)
    attached->failed = stream_fail_frame (attached->call, bytes, size);
  else if (kind == WIRE_OUT_ENDED && size == sizeof attached->out_all)
    memcpy (&attached->out_all, bytes, size);
  else if (kind == WIRE_DONE)
    attached->done = 1;
  else if (kind == WIRE_ERR_BYTES && attached->err >= 0
           && coffer_write_all (attached->err, bytes, size) < 0)
    return STREAM_DONE;
  return attached_over (attached);
}

int32_t
docker_exec_attach (struct coffer_call *call, void *self, const char *sandbox,
                    const char *exec, int32_t out, int32_t err,
                    const struct coffer_exec_attach_opts *opts)
{
  struct attached attached = {.call = call, .out = out, .err = err};
  const struct stream_sink sink = {attached_out, attached_frame, &attached};
  struct wire_request request;
  int32_t code;

  (void) opts;
  stream_request (&request, WIRE_ATTACH);
  if (!id_is_good (exec))
    return fail_unknown (call, self, sandbox);
  snprintf (request.id, sizeof request.id, "%s", exec);
  code = stream_ask (call, self, sandbox, &request, NULL, &sink);
  return code != COFFER_OK ? code : attached.failed;
}
