/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to the program inside: a process of the engine's for each, whose
 * streams come in the engine's frames through a connection that has left HTTP. */

#define _GNU_SOURCE

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <coffer/fd.h>
#include <coffer/files.h>

#include "stream.h"

#define READ_SIZE (256 << 10)
#define WORDS_MAX 400
#define EXEC_ID_MAX 128

void
stream_request (struct wire_request *request, uint32_t op)
{
  memset (request, 0, sizeof *request);
  request->magic = WIRE_MAGIC;
  request->op = op;
  request->signal = -1;
}

void
stream_fini (struct stream *stream)
{
  coffer_fd_close (&stream->fd);
  coffer_buffer_free (&stream->control);
  coffer_buffer_free (&stream->words);
  free (stream->bytes);
  stream->bytes = NULL;
}

/* ---- opening ------------------------------------------------------------------ */

static int32_t
make_process (struct coffer_call *call, struct docker *docker,
              const char *sandbox, char id[EXEC_ID_MAX])
{
  coffer_autoreply struct coffer_http_reply reply = {0};
  char name[DOCKER_NAME_MAX];
  const char *text;
  json_t *body;
  int32_t code = docker_container_name (call, docker, sandbox, name);

  if (code != COFFER_OK)
    return code;
  body = json_pack ("{s:b s:b s:b s:b s:s s:s s:[s s]}", "AttachStdin", 1,
                    "AttachStdout", 1, "AttachStderr", 1, "Tty", 0,
                    "User", docker->config.user, "WorkingDir", "/",
                    "Cmd", INSIDE_PATH, "work");
  if (!body)
    return coffer_fail_errno (call, ENOMEM, "the command");
  code = docker_ask (call, docker, "POST", body, &reply, "/containers/%s/exec",
                     name);
  json_decref (body);
  if (code != COFFER_OK)
    return code;
  if (reply.status >= 300)
    return docker_fail_sandbox (call, docker, &reply, sandbox, "the command");
  text = json_string_value (json_object_get (reply.json, "Id"));
  if (!text || strlen (text) >= EXEC_ID_MAX
      || text[strspn (text, "0123456789abcdef")] || !*text)
    return coffer_fail (call, COFFER_IO, "the engine named no command");
  memcpy (id, text, strlen (text) + 1);
  return COFFER_OK;
}

static int32_t
start_process (struct coffer_call *call, struct docker *docker,
               const char *sandbox, const char *id, int *fd)
{
  coffer_autoreply struct coffer_http_reply reply = {0};
  coffer_autobuffer struct coffer_buffer path = {0};
  struct coffer_http_request request = {.method = "POST"};
  json_t *body = json_pack ("{s:b s:b}", "Detach", 0, "Tty", 0);
  int32_t code;

  docker_path (docker, &path, "/exec/%s/start", id);
  if (!body || path.failed) {
    json_decref (body);
    return coffer_fail_errno (call, ENOMEM, "the command");
  }
  request.path = path.data;
  request.json = body;
  code = coffer_http_upgrade (docker->http, call, "tcp", &request, &reply, fd);
  json_decref (body);
  if (code == COFFER_OK)
    return code;
  if (reply.status >= 300)
    return docker_fail_sandbox (call, docker, &reply, sandbox, "the command");
  return coffer_http_fail (call, &reply);
}

/* Small enough, or read at once: a request waits for nobody. */
static int32_t
send_request (struct coffer_call *call, struct stream *stream,
              struct wire_request *request, const struct coffer_buffer *block)
{
  size_t size = block ? block->size : 0, at = 0;
  ssize_t n;

  request->block = (uint32_t) size;
  n = send (stream->fd, request, sizeof *request, MSG_NOSIGNAL);
  if (n != sizeof *request)
    return coffer_fail_errno (call, n < 0 ? errno : EIO, "the engine");
  while (at < size) {
    n = send (stream->fd, block->data + at, size - at,
              MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) {
      at += (size_t) n;
      continue;
    }
    if (n < 0 && errno != EAGAIN && errno != EINTR)
      return coffer_fail_errno (call, errno, "the engine");
    if (coffer_wait_fd (stream->fd, POLLOUT, call->deadline_ns,
                        call->cancel_fd) != 1)
      return coffer_fail_errno (call, errno, "the engine");
  }
  return COFFER_OK;
}

/* A command and a connection have no end but their own. */
static void
set_time (const struct coffer_call *call, struct wire_request *request)
{
  const int64_t left_ns = call->deadline_ns - coffer_now_ns ();

  if (request->op != WIRE_RUN && request->op != WIRE_DIAL
      && request->timeout_ms == 0 && call->deadline_ns != INT64_MAX)
    request->timeout_ms = left_ns > 0 ? (uint64_t) left_ns / 1000000 + 1 : 1;
}

int32_t
stream_open (struct coffer_call *call, struct docker *docker,
             const char *sandbox, struct wire_request *request,
             const struct coffer_buffer *block, struct stream *out)
{
  char id[EXEC_ID_MAX];
  int32_t code;

  *out = (struct stream) {.fd = -1, .outer = {.format = coffer_frames_engine}};
  if (block && (block->failed || block->size > WIRE_BLOCK_MAX))
    return coffer_fail_errno (call, block->failed ? ENOMEM : E2BIG,
                              "the command's arguments");
  code = make_process (call, docker, sandbox, id);
  set_time (call, request);
  if (code == COFFER_OK)
    code = start_process (call, docker, sandbox, id, &out->fd);
  if (code == COFFER_OK)
    code = send_request (call, out, request, block);
  if (code != COFFER_OK)
    stream_fini (out);
  return code;
}

/* ---- reading --------------------------------------------------------------------- */

/* The program's frames, out of the bytes of its error stream. */
static int
take_control (struct stream *stream, const struct stream_sink *sink)
{
  struct coffer_buffer *control = &stream->control;
  struct wire_frame frame;
  size_t at = 0;
  int r = 0;

  while (r == 0 && control->size - at >= sizeof frame) {
    memcpy (&frame, control->data + at, sizeof frame);
    if (frame.size > WIRE_FRAME_MAX) {
      errno = EPROTO;
      return -1;
    }
    if (control->size - at - sizeof frame < frame.size)
      break;                    /* the rest of it has not come yet */
    stream->spoken++;
    r = sink->frame (sink->data, frame.kind,
                     control->data + at + sizeof frame, frame.size);
    at += sizeof frame + frame.size;
  }
  if (at > 0) {
    memmove (control->data, control->data + at, control->size - at);
    control->size -= at;
  }
  return r;
}

/* What an engine has to say before the program runs is in no frame of the
 * program's: its beginning is kept. */
static int
take_part (struct stream *stream, const struct stream_sink *sink,
           const struct coffer_frame_part *part)
{
  if (part->n == 0)
    return 0;
  if (part->head[0] == 2) {
    coffer_buffer_add (&stream->control, part->bytes, part->n);
    return stream->control.failed ? (errno = ENOMEM, -1)
                                  : take_control (stream, sink);
  }
  if (stream->spoken == 0 && stream->words.size < WORDS_MAX)
    coffer_buffer_add (&stream->words, part->bytes,
                       part->n < WORDS_MAX ? part->n : WORDS_MAX);
  return sink->out ? sink->out (sink->data, part->bytes, part->n) : 0;
}

int
stream_read (struct stream *stream, const struct stream_sink *sink)
{
  struct coffer_frame_part part;
  size_t used, at = 0;
  ssize_t n;
  const char *bytes;
  int more, r = 0;

  if (!stream->bytes && !(stream->bytes = malloc (READ_SIZE)))
    return -1;
  bytes = stream->bytes;
  n = read (stream->fd, stream->bytes, READ_SIZE);
  while (r == 0 && n > 0 && at < (size_t) n) {
    more = coffer_frames_read (&stream->outer, bytes + at, (size_t) n - at,
                               &used, &part);
    at += used;
    if (more < 0)
      r = -1;
    else if (more > 0)
      r = take_part (stream, sink, &part);
  }
  if (n < 0)
    return errno == EINTR || errno == EAGAIN ? 1 : -1;
  return n == 0 ? 0 : r ? r : 1;
}

int32_t
stream_read_all (struct coffer_call *call, struct stream *stream,
                 const struct stream_sink *sink)
{
  int r;

  for (;;) {
    if (coffer_wait_fd (stream->fd, POLLIN, call->deadline_ns,
                        call->cancel_fd) != 1)
      return coffer_fail_errno (call, errno, "the engine");
    r = stream_read (stream, sink);
    if (r == 0 || r == STREAM_DONE)
      return COFFER_OK;
    if (r < 0)
      return coffer_fail_errno (call, errno, "the engine's stream");
    if (r > 1)
      return r;
  }
}

int32_t
stream_fail (struct coffer_call *call, const struct stream *stream)
{
  coffer_autobuffer struct coffer_buffer text = {0};

  coffer_buffer_add_string (&text, "the program inside did not run");
  if (stream->words.size > 0) {
    coffer_buffer_add_string (&text, ": ");
    coffer_buffer_add_escaped (&text, stream->words.data, stream->words.size);
  }
  return coffer_fail (call, COFFER_UNAVAILABLE,
                      text.failed ? "the program inside" : text.data);
}

int32_t
stream_fail_sandbox (struct coffer_call *call, struct docker *docker,
                     const char *sandbox, const struct stream *stream)
{
  auto_sandbox struct docker_sandbox found = {0};
  int32_t code = docker_sandbox_find (call, docker, sandbox, &found);

  return code == COFFER_OK ? stream_fail (call, stream) : code;
}

int32_t
stream_fail_frame (struct coffer_call *call, const void *bytes, size_t size)
{
  const struct wire_failure *failure = bytes;
  coffer_autobuffer struct coffer_buffer text = {0};

  if (size <= sizeof *failure)
    return coffer_fail (call, COFFER_IO, "the program inside failed");
  coffer_buffer_add_escaped (&text, (const char *) bytes + sizeof *failure,
                             strnlen ((const char *) bytes + sizeof *failure,
                                      size - sizeof *failure));
  if (text.failed || failure->code <= COFFER_OK
      || failure->code > COFFER_INTERNAL)
    return coffer_fail (call, COFFER_IO, "the program inside failed");
  return coffer_fail (call, failure->code, text.data);
}

int32_t
stream_ask (struct coffer_call *call, struct docker *docker,
            const char *sandbox, struct wire_request *request,
            const struct coffer_buffer *block, const struct stream_sink *sink)
{
  auto_stream struct stream stream = {.fd = -1};
  int32_t code = stream_open (call, docker, sandbox, request, block, &stream);

  if (code == COFFER_OK)
    code = stream_read_all (call, &stream, sink);
  return code;
}
