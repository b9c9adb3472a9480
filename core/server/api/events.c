/* SPDX-License-Identifier: Apache-2.0 */
/* What commands in the background wrote: as events, from any number on and until
 * they end, and as the bytes of one stream.
 *
 * Lines and frames are written straight into what is sent. */

#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <coffer/fd.h>

#include "base/text.h"
#include "sandbox/execs.h"
#include "server/api/escape.h"
#include "server/api/frames.h"
#include "server/api/own.h"
#include "server/surfaces.h"

#define LINES_TYPE "application/x-ndjson"
#define HEAD_MAX 192

/* One event on its way: its head, its bytes, its tail. */
struct follower {
  struct exec_log *log;
  int cancel_fd;
  int frames, stays;
  uint64_t seq;                 /* the next to be fetched */
  char head[HEAD_MAX];
  size_t head_size, head_at;
  char *text;                   /* of an event that is not output */
  unsigned char bytes[EXEC_LOG_CHUNK];
  const unsigned char *body;    /* bytes, or text */
  size_t body_size, body_at;
  enum { BODY_PLAIN, BODY_ESCAPED, BODY_BASE64 } form;
  const char *tail;
  int ended;
};

static void
follower_free (void *data)
{
  struct follower *follower = data;

  exec_log_unref (follower->log);
  free (follower->text);
  free (follower);
}

/* ---- fetching one --------------------------------------------------------- */

static void
put_le (unsigned char *out, uint64_t value, int size)
{
  int i;

  for (i = 0; i < size; i++)
    out[i] = (unsigned char) (value >> (8 * i));
}

static void
frame_begin (struct follower *follower, const struct exec_event *event)
{
  unsigned char *head = (unsigned char *) follower->head;

  memset (head, 0, FRAME_HEAD_SIZE);
  put_le (head, follower->body_size, 4);
  head[4] = event->kind;
  head[5] = event->stream;
  put_le (head + 8, follower->seq, 8);
  put_le (head + 16, (uint64_t) event->time_ns, 8);
  follower->head_size = FRAME_HEAD_SIZE;
  follower->form = BODY_PLAIN;
  follower->tail = "";
}

static const char *
stream_name (const struct exec_event *event)
{
  return event->stream == 2 ? "stderr" : "stdout";
}

static int
output_fetch (struct follower *follower, const struct exec_event *event)
{
  int is_text;

  if (event->size > sizeof follower->bytes || event->stream < 1
      || event->stream > 2
      || exec_log_read (follower->log, event->stream - 1, follower->bytes,
                        event->size, event->offset) < 0)
    return -1;
  follower->body = follower->bytes;
  follower->body_size = event->size;
  if (follower->frames) {
    frame_begin (follower, event);
    return 0;
  }
  is_text = escape_is_text (follower->bytes, event->size);
  follower->form = is_text ? BODY_ESCAPED : BODY_BASE64;
  follower->head_size = (size_t) snprintf (
    follower->head, HEAD_MAX,
    "{\"seq\":%" PRIu64 ",\"event\":\"output\",\"stream\":\"%s\","
    "\"time_ns\":%" PRId64 ",\"encoding\":\"%s\",\"data\":\"",
    follower->seq, stream_name (event), event->time_ns,
    is_text ? "utf-8" : "base64");
  follower->tail = "\"}\n";
  return 0;
}

static int
dropped_fetch (struct follower *follower, const struct exec_event *event)
{
  if (follower->frames) {
    put_le (follower->bytes, event->offset, 8);
    follower->body = follower->bytes;
    follower->body_size = 8;
    frame_begin (follower, event);
    return 0;
  }
  follower->head_size = (size_t) snprintf (
    follower->head, HEAD_MAX,
    "{\"seq\":%" PRIu64 ",\"event\":\"dropped\",\"stream\":\"%s\","
    "\"time_ns\":%" PRId64 ",\"bytes\":%" PRIu64 "}\n", follower->seq,
    stream_name (event), event->time_ns, event->offset);
  return 0;
}

/* {"seq", "event", "time_ns", "state", "status", "exit"} */
static int
exited_fetch (struct follower *follower, const struct exec_event *event)
{
  static const char *const keys[] = { "state", "status", "exit", "reason" };
  auto_json json_t *info = exec_log_info (follower->log);
  auto_json json_t *line = json_pack (
    "{s:I, s:s, s:I}", "seq", (json_int_t) follower->seq, "event", "exited",
    "time_ns", (json_int_t) event->time_ns);
  json_t *value;
  size_t i;

  for (i = 0; i < sizeof keys / sizeof keys[0]; i++)
    if ((value = json_object_get (info, keys[i])))
      json_object_set (line, keys[i], value);
  free (follower->text);
  follower->text = json_text (line);
  if (!follower->text)
    return -1;
  follower->body = (const unsigned char *) follower->text;
  follower->body_size = strlen (follower->text);
  follower->form = BODY_PLAIN;
  follower->tail = "\n";
  if (follower->frames)
    frame_begin (follower, event);
  return 0;
}

/* 1: there is one to be written; 0: not now; -1: it is over, or broken. */
static int
fetch (struct follower *follower)
{
  struct exec_event event;
  int r = exec_log_event (follower->log, follower->seq, &event);

  if (r == 0)
    return 0;
  follower->ended = r < 0;
  if (r < 0)
    return -1;
  follower->head_size = follower->head_at = 0;
  follower->body_size = follower->body_at = 0;
  follower->tail = "";
  switch (event.kind) {
  case EXEC_EVENT_OUTPUT:
    r = output_fetch (follower, &event);
    break;
  case EXEC_EVENT_DROPPED:
    r = dropped_fetch (follower, &event);
    break;
  default:
    r = exited_fetch (follower, &event);
  }
  follower->seq++;
  return r < 0 ? -1 : 1;
}

/* ---- writing it ----------------------------------------------------------- */

static size_t
put (char *out, size_t room, const void *from, size_t size, size_t *at)
{
  size_t n = size - *at < room ? size - *at : room;

  memcpy (out, (const char *) from + *at, n);
  *at += n;
  return n;
}

static size_t
put_body (struct follower *follower, char *out, size_t room)
{
  const unsigned char *from = follower->body + follower->body_at;
  size_t size = follower->body_size - follower->body_at, used = 0, n;

  if (follower->form == BODY_PLAIN)
    return put (out, room, follower->body, follower->body_size,
                &follower->body_at);
  n = follower->form == BODY_ESCAPED
        ? escape_json (out, room, from, size, &used)
        : escape_base64 (out, room, from, size, &used);
  follower->body_at += used;
  return n;
}

static int
is_written (const struct follower *follower)
{
  return follower->head_at == follower->head_size
         && follower->body_at == follower->body_size && !*follower->tail;
}

/* What there is room for. */
static size_t
write_some (struct follower *follower, char *out, size_t room)
{
  size_t n = 0, tail_at = 0;

  if (follower->head_at < follower->head_size)
    n += put (out, room, follower->head, follower->head_size,
              &follower->head_at);
  if (follower->head_at == follower->head_size
      && follower->body_at < follower->body_size)
    n += put_body (follower, out + n, room - n);
  if (follower->body_at == follower->body_size && *follower->tail
      && follower->head_at == follower->head_size) {
    n += put (out + n, room - n, follower->tail, strlen (follower->tail),
              &tail_at);
    follower->tail += tail_at;
  }
  return n;
}

static ssize_t
follower_fill (void *data, char *out, size_t max)
{
  struct follower *follower = data;
  size_t n = 0, more;
  int r;

  for (;;) {
    if (!is_written (follower)) {
      more = write_some (follower, out + n, max - n);
      n += more;
      /* Not even room for one escape: the next buffer has. */
      if (more == 0 || n == max)
        return (ssize_t) n;
      continue;
    }
    r = follower->ended ? -1 : fetch (follower);
    if (r > 0)
      continue;
    if (n > 0 || r < 0)
      return n > 0 ? (ssize_t) n : follower->ended ? 0 : -1;
    if (!follower->stays)
      return 0;
    /* Who left is not told that this was the end. */
    if (!exec_log_wait (follower->log, follower->seq, follower->cancel_fd))
      return -1;
  }
}

/* ---- events --------------------------------------------------------------- */

static int
wants_frames (const struct request *request)
{
  const char *accept = request_header (request, "Accept");

  return accept && strstr (accept, FRAMES_TYPE);
}

static int
flag_off (const struct request *request, const char *name)
{
  const char *value = request_query (request, name);

  return value && strcmp (value, "0") == 0;
}

static int
log_find (struct request *request, struct exec_log **out, struct error **err)
{
  const char *id;

  return own_sandbox (request, &id, err) < 0
             || exec_log_find (execs_logs (request->server->execs), id,
                               request->params[1], out, err) < 0
           ? -1 : 0;
}

static int
events (struct request *request, struct error **err)
{
  auto_exec_log struct exec_log *log = NULL;
  struct reply_stream stream = { .fill = follower_fill,
                                 .free = follower_free };
  struct follower *follower;
  uint64_t from = 1;

  if (log_find (request, &log, err) < 0
      || request_query_u64 (request, "from", 0, INT64_MAX, &from, err) < 0)
    return -1;
  follower = calloc (1, sizeof *follower);
  if (!follower)
    return error_set (err, E_NO_MEMORY, 0, "a reply");
  follower->log = steal (log);
  follower->cancel_fd = request->cancel_fd;
  follower->frames = wants_frames (request);
  follower->stays = !flag_off (request, "follow");
  follower->seq = from ? from : 1;
  follower->tail = "";
  stream.data = follower;
  return reply_stream (request, 200,
                       follower->frames ? FRAMES_TYPE : LINES_TYPE, &stream,
                       err);
}

/* ---- the bytes of one stream ---------------------------------------------- */

/* "bytes=A-B", "bytes=A-", "bytes=-N"; 0: none that is understood, 1: *from and
 * *size, -1: none of it is there. */
static int
range_read (const char *header, uint64_t whole, uint64_t *from, uint64_t *size)
{
  auto_free char *text = NULL;
  uint64_t first = 0, last = whole - 1;
  char *dash;

  if (!header || strncmp (header, "bytes=", 6) != 0 || strchr (header, ','))
    return 0;
  text = strdup (header + 6);
  dash = text ? strchr (text, '-') : NULL;
  if (!dash)
    return 0;
  *dash++ = '\0';
  if (*text && text_parse_u64 (text, 0, INT64_MAX, &first) < 0)
    return 0;
  if (*dash && text_parse_u64 (dash, 0, INT64_MAX, &last) < 0)
    return 0;
  if (!*text && !*dash)
    return 0;
  if (!*text) {                 /* the last so many */
    if (last == 0 || whole == 0)
      return -1;
    first = last < whole ? whole - last : 0;
    last = whole - 1;
  }
  if (*text && *dash && last < first)
    return 0;
  if (first >= whole)
    return -1;
  *from = first;
  *size = (last < whole ? last + 1 : whole) - first;
  return 1;
}

static int
not_there (struct request *request, uint64_t whole, struct error **err)
{
  char text[64];

  snprintf (text, sizeof text, "bytes */%" PRIu64, whole);
  return reply_bytes (request, 416, "text/plain", "", 0, err) < 0
             || reply_header (request, "Content-Range", text, err) < 0
           ? -1 : 0;
}

static int
bytes (struct request *request, int stream, struct error **err)
{
  auto_exec_log struct exec_log *log = NULL;
  auto_json json_t *info = NULL;
  uint64_t whole, from = 0, size;
  const json_t *counts;
  char text[96];
  int fd, part;

  if (log_find (request, &log, err) < 0)
    return -1;
  info = exec_log_info (log);
  counts = json_object_get (info, stream ? "stderr" : "stdout");
  whole = size = (uint64_t) json_integer_value (json_object_get (counts,
                                                                 "bytes"));
  part = range_read (request_header (request, "Range"), whole, &from, &size);
  if (part < 0)
    return not_there (request, whole, err);
  fd = exec_log_data_dup (log, stream);
  if (fd < 0)
    return error_set (err, E_IO, errno, "the log of %s", request->params[1]);
  if (reply_fd (request, part ? 206 : 200, "application/octet-stream", fd,
                from, size, err) < 0)
    return -1;
  snprintf (text, sizeof text, "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, from,
            from + size - 1, whole);
  if (part && reply_header (request, "Content-Range", text, err) < 0)
    return -1;
  return reply_header (request, "Accept-Ranges", "bytes", err);
}

static int
out_bytes (struct request *request, struct error **err)
{
  return bytes (request, 0, err);
}

static int
err_bytes (struct request *request, struct error **err)
{
  return bytes (request, 1, err);
}

#define EXEC "/api/v1/sandboxes/{id}/execs/{exec}"
const struct route api_event_routes[] = {
  { "GET", EXEC "/events", RIGHT_VIEW, ROUTE_LONG, "followExec", events },
  { "GET", EXEC "/stdout", RIGHT_VIEW, ROUTE_LONG, "getExecStdout",
    out_bytes },
  { "GET", EXEC "/stderr", RIGHT_VIEW, ROUTE_LONG, "getExecStderr",
    err_bytes },
  { NULL, NULL, 0, 0, NULL, NULL }
};
