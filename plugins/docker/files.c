/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a sandbox, by the program inside, as the sandbox's user.  An engine's
 * own archives would do it as root, and with paths that somebody inside can swap. */

#define _GNU_SOURCE

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <coffer/fd.h>
#include <coffer/files.h>

#include "stream.h"

#define OPTION(opts, field) (COFFER_HAS (opts, field) ? (opts)->field : 0)

struct work {
  struct coffer_call *call;
  int out;                      /* -1: none, or `take` has it */
  int (*take) (void *data, const char *bytes, size_t size);
  void *data;
  int32_t failed;
  int answered;                 /* it said how it went */
  uint64_t out_bytes, out_all;  /* of a file: that came, that are to come */
};

static int
is_over (const struct work *work)
{
  return work->answered && (work->failed != COFFER_OK
                            || work->out_bytes >= work->out_all)
           ? STREAM_DONE : 0;
}

static int
write_out (struct work *work, const char *bytes, size_t size)
{
  ssize_t n;

  for (; size > 0; bytes += n, size -= (size_t) n) {
    if (coffer_wait_fd (work->out, POLLOUT, work->call->deadline_ns,
                        work->call->cancel_fd) != 1)
      return coffer_fail_errno (work->call, errno, "the file's reader");
    n = write (work->out, bytes, size < PIPE_BUF ? size : PIPE_BUF);
    if (n < 0 && errno != EINTR && errno != EAGAIN)
      return coffer_fail_errno (work->call, errno, "the file's reader");
    if (n < 0)
      n = 0;
  }
  return 0;
}

static int
take_out (void *data, const char *bytes, size_t size)
{
  struct work *work = data;
  int r;

  work->out_bytes += size;
  r = work->take ? work->take (work->data, bytes, size)
                 : write_out (work, bytes, size);
  return r ? r : is_over (work);
}

static int32_t
emit_file (struct coffer_call *call, const char *bytes, size_t size)
{
  struct wire_file file;
  struct coffer_file_stat record = {.size = sizeof record};
  const char *at = bytes + sizeof file, *end = bytes + size;

  if (size <= sizeof file)
    return COFFER_OK;
  memcpy (&file, bytes, sizeof file);
  file.kind[sizeof file.kind - 1] = '\0';
  record.path = coffer_strings_next (&at, end);
  record.target = file.has_target ? coffer_strings_next (&at, end) : NULL;
  record.kind = file.kind;
  record.size_bytes = file.size_bytes;
  record.moved_bytes = file.moved_bytes;
  record.modified_ns = file.modified_ns;
  record.mode = file.mode;
  return record.path ? coffer_emit_file_stat (call, &record) : COFFER_OK;
}

static int32_t
emit_event (struct coffer_call *call, const char *bytes, size_t size)
{
  struct coffer_file_event record = {.size = sizeof record};
  const char *at = bytes, *end = bytes + size;

  record.kind = coffer_strings_next (&at, end);
  record.path = coffer_strings_next (&at, end);
  return record.path ? coffer_emit_file_event (call, &record) : COFFER_OK;
}

static void
take_warning (struct coffer_call *call, const char *bytes, size_t size)
{
  coffer_autobuffer struct coffer_buffer text = {0};

  coffer_buffer_add_escaped (&text, bytes, strnlen (bytes, size));
  if (!text.failed && text.size > 0)
    coffer_log (call, COFFER_LOG_WARNING, text.data);
}

static void
take_size (struct work *work, const char *bytes, size_t size, size_t offset)
{
  if ((work->out >= 0 || work->take)
      && size >= offset + sizeof work->out_all)
    memcpy (&work->out_all, bytes + offset, sizeof work->out_all);
}

static int
take_frame (void *data, uint32_t kind, const void *bytes, size_t size)
{
  struct work *work = data;

  if (kind == WIRE_FILE) {
    work->failed = emit_file (work->call, bytes, size);
    take_size (work, bytes, size, offsetof (struct wire_file, moved_bytes));
  } else if (kind == WIRE_OUT_ENDED)
    take_size (work, bytes, size, 0);
  else if (kind == WIRE_EVENT)
    work->failed = emit_event (work->call, bytes, size);
  else if (kind == WIRE_WARNING)
    take_warning (work->call, bytes, size);
  else if (kind == WIRE_FAILED)
    work->failed = stream_fail_frame (work->call, bytes, size);
  else if (kind == WIRE_DONE)
    work->answered = 1;
  if (work->failed != COFFER_OK)
    work->answered = 1;
  return is_over (work);
}

static void
add_paths (struct coffer_buffer *block, const char *path, const char *other)
{
  coffer_buffer_add_vector (block, (const char *const[]) {path, other, NULL});
}

static int32_t
work_result (const struct work *work)
{
  if (work->failed == COFFER_OK && (work->out >= 0 || work->take)
      && work->out_bytes != work->out_all)
    return coffer_fail (work->call, COFFER_IO, "the engine's stream ended "
                        "before all of it had come");
  return work->failed;
}

/* The stream has ended: with the sandbox, by itself, or when all was said. */
static int32_t
work_end (struct work *work, struct docker *docker, const char *sandbox,
          const struct stream *stream)
{
  return work->answered ? work_result (work)
         : stream_fail_sandbox (work->call, docker, sandbox, stream);
}

int32_t
docker_work_on (struct coffer_call *call, struct stream *stream,
                int (*take) (void *data, const char *bytes, size_t size),
                void *data)
{
  struct work work = {.call = call, .out = -1, .take = take, .data = data,
                      .failed = COFFER_OK};
  const struct stream_sink sink = {take_out, take_frame, &work};
  int32_t code = stream_read_all (call, stream, &sink);

  return code != COFFER_OK ? code
         : work.answered ? work_result (&work) : stream_fail (call, stream);
}

/* An empty path is no path; what else is wrong is found inside. */
int32_t
docker_work (struct coffer_call *call, struct docker *docker,
             const char *sandbox, struct wire_request *request,
             const char *path, const char *other, int out)
{
  struct work work = {.call = call, .out = out, .failed = COFFER_OK};
  const struct stream_sink sink = {out >= 0 ? take_out : NULL, take_frame,
                                   &work};
  auto_stream struct stream stream = {.fd = -1};
  coffer_autobuffer struct coffer_buffer block = {0};
  int32_t code;

  add_paths (&block, path, other);
  code = stream_open (call, docker, sandbox, request, &block, &stream);
  if (code == COFFER_OK)
    code = stream_read_all (call, &stream, &sink);
  return code == COFFER_OK ? work_end (&work, docker, sandbox, &stream) : code;
}

int32_t
docker_file_read (struct coffer_call *call, void *self, const char *sandbox,
                  const char *path, int32_t out,
                  const struct coffer_file_read_opts *opts)
{
  struct wire_request request;

  stream_request (&request, WIRE_READ);
  request.offset = OPTION (opts, offset_bytes);
  request.length = OPTION (opts, length_bytes);
  return docker_work (call, self, sandbox, &request, path, NULL, out);
}

int32_t
docker_file_stat (struct coffer_call *call, void *self, const char *sandbox,
                  const char *path, const struct coffer_file_stat_opts *opts)
{
  struct wire_request request;

  (void) opts;
  stream_request (&request, WIRE_STAT);
  return docker_work (call, self, sandbox, &request, path, NULL, -1);
}

int32_t
docker_file_list (struct coffer_call *call, void *self, const char *sandbox,
                  const char *path, const struct coffer_file_list_opts *opts)
{
  struct wire_request request;

  stream_request (&request, WIRE_LIST_FILES);
  request.depth = OPTION (opts, depth);
  return docker_work (call, self, sandbox, &request, path, NULL, -1);
}

int32_t
docker_file_mkdir (struct coffer_call *call, void *self, const char *sandbox,
                   const char *path, const struct coffer_file_mkdir_opts *opts)
{
  struct wire_request request;

  stream_request (&request, WIRE_MKDIR);
  request.flags = OPTION (opts, parents) ? WIRE_PARENTS : 0;
  return docker_work (call, self, sandbox, &request, path, NULL, -1);
}

int32_t
docker_file_remove (struct coffer_call *call, void *self, const char *sandbox,
                    const char *path,
                    const struct coffer_file_remove_opts *opts)
{
  struct wire_request request;

  stream_request (&request, WIRE_REMOVE);
  request.flags = OPTION (opts, recursive) ? WIRE_RECURSIVE : 0;
  return docker_work (call, self, sandbox, &request, path, NULL, -1);
}

int32_t
docker_file_rename (struct coffer_call *call, void *self, const char *sandbox,
                    const char *from, const char *to,
                    const struct coffer_file_rename_opts *opts)
{
  struct wire_request request;

  (void) opts;
  if (!to)
    return coffer_fail (call, COFFER_INVALID, "no new name");
  stream_request (&request, WIRE_RENAME);
  return docker_work (call, self, sandbox, &request, from, to, -1);
}

/* ---- writing ----------------------------------------------------------------------- */

int32_t
docker_work_send (struct coffer_call *call, int fd, const char *bytes, size_t size)
{
  struct pollfd answer = {fd, POLLIN, 0};
  ssize_t n;

  while (size > 0) {
    n = send (fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) {
      bytes += n;
      size -= (size_t) n;
    } else if (n < 0 && errno != EAGAIN && errno != EINTR) {
      return COFFER_IO;         /* why is said by what it answered */
    } else if (coffer_wait_fd (fd, POLLOUT | POLLIN, call->deadline_ns,
                               call->cancel_fd) != 1) {
      return coffer_fail_errno (call, errno, "the file");
    } else if (poll (&answer, 1, 0) == 1 && answer.revents & POLLIN) {
      return COFFER_IO;         /* nobody reads the rest any more */
    }
  }
  return COFFER_OK;
}

/* In pieces, each with its size, and 0 at the end: an end of the stream alone is a
 * worker or an engine that is gone, and no end of a file.  What is answered before
 * all was sent is a failure, and there is no need of the rest. */
static int32_t
send_file (struct coffer_call *call, struct stream *stream, int in,
           int *unread)
{
  struct pollfd fds[3] = {{in, POLLIN, 0}, {stream->fd, POLLIN, 0},
                          {call->cancel_fd, POLLIN, 0}};
  struct {
    uint32_t size;
    char bytes[WIRE_PIECE_MAX];
  } *piece = malloc (sizeof *piece);
  int32_t code = COFFER_OK;
  ssize_t n = 1;

  if (!piece)
    return coffer_fail_errno (call, ENOMEM, "the file");
  while (code == COFFER_OK && n > 0) {
    if (poll (fds, 3, coffer_poll_ms (call->deadline_ns)) < 0) {
      if (errno != EINTR)
        break;
      fds[0].revents = fds[1].revents = fds[2].revents = 0;
    }
    if (fds[1].revents)
      break;
    if (fds[2].revents || call->deadline_ns <= coffer_now_ns ()) {
      code = coffer_fail_errno (call, fds[2].revents ? ECANCELED : ETIMEDOUT,
                                "the file");
    } else if (fds[0].revents) {
      n = read (in, piece->bytes, sizeof piece->bytes);
      if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
        n = 1;
        continue;
      }
      if (n < 0) {
        *unread = 1;
        code = coffer_fail_errno (call, errno, "what is to be written");
        break;
      }
      piece->size = (uint32_t) n;
      code = docker_work_send (call, stream->fd, (const char *) piece,
                         sizeof piece->size + (size_t) n);
    }
  }
  free (piece);
  return code;
}

/* Gives up, and waits for what was made inside to be taken away. */
static void
take_back (struct coffer_call *call, struct stream *stream,
           const struct stream_sink *sink)
{
  struct docker_hush hush;

  docker_hush_undo (call, &hush, call->deadline_ns);
  shutdown (stream->fd, SHUT_WR);
  stream_read_all (call, stream, sink);
  docker_unhush (call, &hush);
}

int32_t
docker_work_in (struct coffer_call *call, struct docker *docker,
                const char *sandbox, struct wire_request *request,
                const char *path, int in)
{
  struct work work = {.call = call, .out = -1, .failed = COFFER_OK};
  const struct stream_sink sink = {NULL, take_frame, &work};
  auto_stream struct stream stream = {.fd = -1};
  coffer_autobuffer struct coffer_buffer block = {0};
  int32_t code, sent;
  int unread = 0;

  add_paths (&block, path, NULL);
  code = stream_open (call, docker, sandbox, request, &block, &stream);
  if (code != COFFER_OK)
    return code;
  sent = send_file (call, &stream, in, &unread);
  /* What could not be sent was refused inside, which says why. */
  if (sent != COFFER_OK && (sent != COFFER_IO || unread)) {
    take_back (call, &stream, &sink);
    return sent;
  }
  code = stream_read_all (call, &stream, &sink);
  return code == COFFER_OK ? work_end (&work, docker, sandbox, &stream) : code;
}

int32_t
docker_file_write (struct coffer_call *call, void *self, const char *sandbox,
                   const char *path, int32_t in,
                   const struct coffer_file_write_opts *opts)
{
  struct wire_request request;

  stream_request (&request, WIRE_WRITE);
  request.mode = OPTION (opts, mode);
  request.flags = (OPTION (opts, parents) ? WIRE_PARENTS : 0)
                  | (OPTION (opts, exclusive) ? WIRE_EXCLUSIVE : 0);
  return docker_work_in (call, self, sandbox, &request, path, in);
}
