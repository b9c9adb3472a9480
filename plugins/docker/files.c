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
#define PIECE (64 << 10)

struct work {
  struct coffer_call *call;
  int out;
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
take_out (void *data, const char *bytes, size_t size)
{
  struct work *work = data;
  ssize_t n;

  work->out_bytes += size;
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
  return is_over (work);
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

static int
take_frame (void *data, uint32_t kind, const void *bytes, size_t size)
{
  struct work *work = data;

  if (kind == WIRE_FILE) {
    work->failed = emit_file (work->call, bytes, size);
    if (work->out >= 0 && size > sizeof (struct wire_file))
      memcpy (&work->out_all, (const char *) bytes
                              + offsetof (struct wire_file, moved_bytes),
              sizeof work->out_all);
  }
  if (kind == WIRE_FAILED)
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

/* An empty path is no path; what else is wrong is found inside. */
static int32_t
work_do (struct coffer_call *call, struct docker *docker, const char *sandbox,
         struct wire_request *request, const char *path, const char *other,
         int out)
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
  if (code == COFFER_OK && !work.answered)
    code = stream_fail (call, &stream);
  return code != COFFER_OK ? code : work.failed;
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
  return work_do (call, self, sandbox, &request, path, NULL, out);
}

int32_t
docker_file_stat (struct coffer_call *call, void *self, const char *sandbox,
                  const char *path, const struct coffer_file_stat_opts *opts)
{
  struct wire_request request;

  (void) opts;
  stream_request (&request, WIRE_STAT);
  return work_do (call, self, sandbox, &request, path, NULL, -1);
}

int32_t
docker_file_list (struct coffer_call *call, void *self, const char *sandbox,
                  const char *path, const struct coffer_file_list_opts *opts)
{
  struct wire_request request;

  stream_request (&request, WIRE_LIST_FILES);
  request.depth = OPTION (opts, depth);
  return work_do (call, self, sandbox, &request, path, NULL, -1);
}

int32_t
docker_file_mkdir (struct coffer_call *call, void *self, const char *sandbox,
                   const char *path, const struct coffer_file_mkdir_opts *opts)
{
  struct wire_request request;

  stream_request (&request, WIRE_MKDIR);
  request.flags = OPTION (opts, parents) ? WIRE_PARENTS : 0;
  return work_do (call, self, sandbox, &request, path, NULL, -1);
}

int32_t
docker_file_remove (struct coffer_call *call, void *self, const char *sandbox,
                    const char *path,
                    const struct coffer_file_remove_opts *opts)
{
  struct wire_request request;

  stream_request (&request, WIRE_REMOVE);
  request.flags = OPTION (opts, recursive) ? WIRE_RECURSIVE : 0;
  return work_do (call, self, sandbox, &request, path, NULL, -1);
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
  return work_do (call, self, sandbox, &request, from, to, -1);
}

/* ---- writing ----------------------------------------------------------------------- */

static int32_t
send_bytes (struct coffer_call *call, int fd, const char *bytes, size_t size)
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
send_file (struct coffer_call *call, struct stream *stream, int in)
{
  struct pollfd fds[3] = {{in, POLLIN, 0}, {stream->fd, POLLIN, 0},
                          {call->cancel_fd, POLLIN, 0}};
  struct {
    uint32_t size;
    char bytes[PIECE];
  } *piece = malloc (sizeof *piece);
  int32_t code = COFFER_OK;
  ssize_t n = 1;

  if (!piece)
    return coffer_fail_errno (call, ENOMEM, "the file");
  while (code == COFFER_OK && n > 0) {
    if (poll (fds, 3, coffer_poll_ms (call->deadline_ns)) < 0 && errno != EINTR)
      break;
    if (fds[1].revents)
      break;
    if (fds[2].revents || call->deadline_ns <= coffer_now_ns ()) {
      code = coffer_fail_errno (call, fds[2].revents ? ECANCELED : ETIMEDOUT,
                                "the file");
    } else if (fds[0].revents) {
      n = read (in, piece->bytes, PIECE);
      if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
        n = 1;
        continue;
      }
      if (n < 0) {
        code = coffer_fail_errno (call, errno, "what is to be written");
        break;
      }
      piece->size = (uint32_t) n;
      code = send_bytes (call, stream->fd, (const char *) piece,
                         sizeof piece->size + (size_t) n);
    }
  }
  free (piece);
  return code;
}

int32_t
docker_file_write (struct coffer_call *call, void *self, const char *sandbox,
                   const char *path, int32_t in,
                   const struct coffer_file_write_opts *opts)
{
  struct work work = {.call = call, .out = -1, .failed = COFFER_OK};
  const struct stream_sink sink = {NULL, take_frame, &work};
  auto_stream struct stream stream = {.fd = -1};
  coffer_autobuffer struct coffer_buffer block = {0};
  struct wire_request request;
  int32_t code, sent;

  stream_request (&request, WIRE_WRITE);
  request.mode = OPTION (opts, mode);
  request.flags = (OPTION (opts, parents) ? WIRE_PARENTS : 0)
                  | (OPTION (opts, exclusive) ? WIRE_EXCLUSIVE : 0);
  add_paths (&block, path, NULL);
  code = stream_open (call, self, sandbox, &request, &block, &stream);
  if (code != COFFER_OK)
    return code;
  sent = send_file (call, &stream, in);
  if (sent != COFFER_OK && sent != COFFER_IO)
    return sent;
  code = stream_read_all (call, &stream, &sink);
  if (code == COFFER_OK && !work.answered)
    code = stream_fail (call, &stream);
  return code != COFFER_OK ? code : work.failed;
}
