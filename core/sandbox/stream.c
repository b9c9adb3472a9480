/* SPDX-License-Identifier: Apache-2.0 */
/* What a provider writes while somebody reads it: a part of a file, a folder as
 * tar, the changes below a folder.  The call runs on its thread; what is read
 * slowly holds up the provider, and nothing is kept but what a pipe holds. */

#include "config.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/json.h"
#include "sandbox/info.h"
#include "sandbox/request.h"
#include "sandbox/signals.h"
#include "sandbox/transfer.h"

#define LOOK_MS 2000
#define WATCH_NS (INT64_C (365) * 86400 * 1000000000)

struct sandbox_stream {
  struct transfer transfer;
  struct provider_call call;
  struct host *host;
  struct sandbox_record *record;
  char *sandbox, *path;
  int theirs;                   /* the provider's end, ours to close */
  int waits_long;               /* nothing may come for as long as it likes */
  int counted;                  /* it says how much it wrote */
  int over;                     /* the call was waited for, and went well */
  uint64_t taken;
  struct coffer_file_read_opts read_opts;
  struct coffer_file_list_opts list_opts;
  union {
    struct contract_args_file_read read;
    struct contract_args_archive_export export;
    struct contract_args_file_list list;
    struct contract_args_file_watch watch;
  } args;
};

void
sandbox_stream_free (struct sandbox_stream *stream)
{
  if (!stream)
    return;
  transfer_fini (&stream->transfer);
  coffer_fd_close (&stream->theirs);
  sandbox_record_free (stream->record);
  free (stream->sandbox);
  free (stream->path);
  free (stream);
}

static struct sandbox_stream *
stream_new (struct host *host, const char *id, const char *path,
            const char *capability, const struct provider_call *call,
            struct error **err)
{
  auto_sandbox_stream struct sandbox_stream *stream
    = calloc (1, sizeof *stream);

  if (!stream) {
    error_set (err, E_NO_MEMORY, 0, "a stream");
    return NULL;
  }
  stream->host = host;
  stream->transfer.pipe = stream->theirs = -1;
  stream->call = call ? *call : (struct provider_call){ .cancel_fd = -1 };
  stream->transfer.call = &stream->call;
  if (files_check_path (path, err) < 0
      || host_reach (host, id, &stream->record, &stream->transfer.provider,
                     err) < 0
      || claim_require (stream->transfer.provider, capability, err) < 0)
    return NULL;
  stream->transfer.sandbox = stream->sandbox = strdup (id);
  stream->transfer.path = stream->path = strdup (path);
  if (!stream->sandbox || !stream->path) {
    error_set (err, E_NO_MEMORY, 0, "a stream");
    return NULL;
  }
  signals_no_sigpipe ();
  if (transfer_pipe (&stream->transfer, 0, &stream->theirs, err) < 0)
    return NULL;
  return steal (stream);
}

int
sandbox_read (struct host *host, const char *id, const char *path,
              uint64_t offset, uint64_t length,
              const struct provider_call *call, struct sandbox_stream **out,
              struct error **err)
{
  auto_sandbox_stream struct sandbox_stream *stream
    = stream_new (host, id, path, "files", call, err);

  if (!stream)
    return -1;
  stream->counted = 1;
  stream->read_opts
    = (struct coffer_file_read_opts){ .size = sizeof stream->read_opts,
                                      .offset_bytes = offset,
                                      .length_bytes = length };
  stream->args.read = (struct contract_args_file_read){
    .sandbox = stream->sandbox, .path = stream->path, .out = stream->theirs,
    .opts = &stream->read_opts
  };
  if (transfer_begin (&stream->transfer, COFFER_OP_file_read,
                      &stream->args.read, err) < 0)
    return -1;
  *out = steal (stream);
  return 0;
}

int
sandbox_export (struct host *host, const char *id, const char *path,
                const struct provider_call *call, struct sandbox_stream **out,
                struct error **err)
{
  auto_sandbox_stream struct sandbox_stream *stream
    = stream_new (host, id, path, "archives", call, err);

  if (!stream)
    return -1;
  stream->args.export = (struct contract_args_archive_export){
    .sandbox = stream->sandbox, .path = stream->path, .out = stream->theirs
  };
  if (transfer_begin (&stream->transfer, COFFER_OP_archive_export,
                      &stream->args.export, err) < 0)
    return -1;
  *out = steal (stream);
  return 0;
}

/* ---- lines --------------------------------------------------------------- */

/* All of a line, on the call's thread: a reader that does not read holds up the
 * provider, which says itself what it lost meanwhile. */
static int
write_all (const struct sandbox_stream *stream, const char *line, size_t size)
{
  ssize_t n;

  while (size > 0) {
    if (coffer_wait_fd (stream->theirs, POLLOUT, stream->call.deadline_ns,
                        stream->transfer.async.cancel_fd) != 1)
      return -1;
    n = write (stream->theirs, line, size);
    if (n < 0 && errno != EAGAIN && errno != EINTR)
      return -1;
    line += n > 0 ? n : 0;
    size -= n > 0 ? (size_t) n : 0;
  }
  return 0;
}

static int
write_line (const struct sandbox_stream *stream, json_t *take_json)
{
  auto_json json_t *json = take_json;
  auto_free char *text = NULL;
  size_t n;

  json_name_encodings (json);
  text = json ? json_text (json) : NULL;
  if (!text)
    return -1;
  n = strlen (text);
  text[n] = '\n';               /* in the place of its NUL */
  return write_all (stream, text, n + 1);
}

static int
sink_line (void *data, const struct contract_record *type, void *record)
{
  const struct coffer_file_event *event = record;
  json_t *json;

  if (type->id == COFFER_REC_file_stat)
    return write_line (data, stat_to_json (record));
  if (type->id != COFFER_REC_file_event)
    return 0;
  json = json_object ();
  json_put_text (json, "path", event->path);
  json_put_text (json, "kind", event->kind);
  return write_line (data, json);
}

/* A call whose records are lines. */
static int
lines_begin (struct sandbox_stream *stream, uint32_t op, const void *args,
             struct error **err)
{
  const struct provider_sink sink = { .record = sink_line, .data = stream };

  if (fcntl (stream->theirs, F_SETFL, O_NONBLOCK) < 0)
    return error_set (err, E_IO, errno, "a pipe");
  stream->waits_long = 1;
  if (!stream->call.deadline_ns)
    stream->call.deadline_ns = coffer_now_ns () + WATCH_NS;
  return async_begin (&stream->transfer.async, stream->transfer.provider, op,
                      args, &sink, stream->call.deadline_ns, err);
}

int
sandbox_list_lines (struct host *host, const char *id, const char *path,
                    uint32_t depth, const struct provider_call *call,
                    struct sandbox_stream **out, struct error **err)
{
  auto_sandbox_stream struct sandbox_stream *stream
    = stream_new (host, id, path, "files", call, err);

  if (!stream)
    return -1;
  stream->list_opts
    = (struct coffer_file_list_opts){ .size = sizeof stream->list_opts,
                                      .depth = depth };
  stream->args.list = (struct contract_args_file_list){
    .sandbox = stream->sandbox, .path = stream->path,
    .opts = &stream->list_opts
  };
  if (lines_begin (stream, COFFER_OP_file_list, &stream->args.list, err) < 0)
    return -1;
  *out = steal (stream);
  return 0;
}

int
sandbox_watch (struct host *host, const char *id, const char *path,
               const struct provider_call *call, struct sandbox_stream **out,
               struct error **err)
{
  auto_sandbox_stream struct sandbox_stream *stream
    = stream_new (host, id, path, "files.watch", call, err);

  if (!stream)
    return -1;
  stream->args.watch = (struct contract_args_file_watch){
    .sandbox = stream->sandbox, .path = stream->path
  };
  if (lines_begin (stream, COFFER_OP_file_watch, &stream->args.watch, err) < 0)
    return -1;
  *out = steal (stream);
  return 0;
}

/* ---- reading ------------------------------------------------------------- */

/* The call has returned; what it wrote was read. */
static int
stream_end (struct sandbox_stream *stream, struct error **err)
{
  struct transfer *transfer = &stream->transfer;

  if (async_end (&transfer->async, err) < 0)
    return -1;
  if (stream->counted && transfer->stat
      && transfer->reported != stream->taken)
    return error_set (err, E_FILE_MISMATCH, 0,
                      "%s: the provider read %llu bytes and gave %llu",
                      stream->path,
                      (unsigned long long) transfer->reported,
                      (unsigned long long) stream->taken);
  stream->over = 1;
  return 0;
}

/* A provider that watches a folder need not see that its sandbox was ended. */
static int
still_there (const struct sandbox_stream *stream, struct error **err)
{
  auto_sandbox_record struct sandbox_record *record = NULL;

  return host_find (stream->host, stream->sandbox, &record, err);
}

/* As transfer_wait, without its bound on a pause. */
static int
wait_long (const struct sandbox_stream *stream, struct error **err)
{
  int n;

  struct pollfd fds[3] = {
    { .fd = stream->transfer.pipe, .events = POLLIN },
    { .fd = stream->transfer.async.done_fd, .events = POLLIN },
    { .fd = stream->call.cancel_fd, .events = POLLIN }
  };

  while ((n = poll (fds, 3, LOOK_MS)) <= 0) {
    if (n < 0 && errno != EINTR)
      return error_set (err, E_IO, errno, "poll");
    if (n == 0 && still_there (stream, err) < 0)
      return -1;
  }
  if (fds[2].revents)
    return error_set (err, E_EXEC_CANCELLED, 0, "%s: cancelled",
                      stream->path);
  return fds[0].revents != 0;
}

/* Whether bytes lie in it that came before its call returned. */
static int
pipe_holds (int fd)
{
  struct pollfd look = { .fd = fd, .events = POLLIN };

  return poll (&look, 1, 0) > 0 && look.revents & POLLIN;
}

int
sandbox_stream_ready (struct sandbox_stream *stream, struct error **err)
{
  const struct transfer *transfer = &stream->transfer;
  int ready;

  if (stream->over)
    return 0;
  ready = stream->waits_long
            ? wait_long (stream, err)
            : transfer_wait (transfer, transfer->pipe, POLLIN, err);
  if (ready < 0)
    return -1;
  if (ready > 0 || pipe_holds (transfer->pipe))
    return 1;
  return stream_end (stream, err);
}

int
sandbox_stream_take (struct sandbox_stream *stream, char *out, size_t max,
                     size_t *n, struct error **err)
{
  ssize_t got;
  int ready;

  for (;;) {
    ready = sandbox_stream_ready (stream, err);
    if (ready <= 0)
      return ready;
    got = read (stream->transfer.pipe, out, max);
    if (got > 0)
      break;
    if (got == 0 || (errno != EAGAIN && errno != EINTR))
      return error_set (err, E_IO, got < 0 ? errno : EPIPE, "a pipe");
  }
  stream->taken += (uint64_t) got;
  *n = (size_t) got;
  return 1;
}
