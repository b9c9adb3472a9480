/* SPDX-License-Identifier: Apache-2.0 */
/* Replies: a head of bounded size, then a body of a known length or in chunks.
 * A reply that says neither is refused, as its end could not be told from a
 * connection that broke. */

#include <config.h>

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/json.h"
#include "base/text.h"
#include "client/private.h"

#define HEAD_LINES 64
#define LINE_BYTES 4096
#define JSON_BYTES (64u << 20)
#define LINES_BYTES (1u << 20)
#define STALL_NS (INT64_C (30) * 1000000000)

static int
broken (const char *what, struct error **err)
{
  return error_set (err, E_CONNECT_FAILED, 0, "the daemon's reply %s", what);
}

void
client_reply_fini (struct client_reply *reply)
{
  coffer_fd_close (&reply->fd);
  free (reply->buffer);
  reply->buffer = NULL;
  coffer_buffer_free (&reply->queue);
}

int
answer_wait (const struct client_reply *reply, short events,
             struct error **err)
{
  int64_t deadline = reply->deadline_ns ? reply->deadline_ns : INT64_MAX;
  int r = coffer_wait_fd (reply->fd, events, deadline, reply->cancel_fd);

  if (r == 1)
    return 0;
  if (r == 0 && errno == ECANCELED)
    return error_set (err, E_EXEC_CANCELLED, 0, "interrupted");
  if (r == 0)
    return error_set (err, E_PROVIDER_TIMEOUT, 0,
                      "the daemon did not answer in time");
  return error_set (err, E_CONNECT_FAILED, errno, "waiting for the daemon");
}

int
answer_fill (struct client_reply *reply, struct error **err)
{
  ssize_t n;

  if (reply->size == 0)
    reply->start = 0;
  if (reply->start + reply->size == CLIENT_BUFFER) {
    memmove (reply->buffer, reply->buffer + reply->start, reply->size);
    reply->start = 0;
  }
  for (;;) {
    n = read (reply->fd, reply->buffer + reply->start + reply->size,
              CLIENT_BUFFER - reply->start - reply->size);
    if (n >= 0)
      break;
    if (errno == EAGAIN && answer_wait (reply, POLLIN, err) < 0)
      return -1;
    if (errno == ECONNRESET)
      return 0;
    if (errno != EAGAIN && errno != EINTR)
      return error_set (err, E_CONNECT_FAILED, errno, "the daemon's reply");
  }
  reply->size += (size_t) n;
  return n > 0;
}

/* ---- the head ----------------------------------------------------------- */

static int
line_is_text (const char *line, size_t length)
{
  size_t i;

  for (i = 0; i < length; i++)
    if (((unsigned char) line[i] < ' ' && line[i] != '\t') || line[i] == 127)
      return 0;
  return 1;
}

int
answer_line (struct client_reply *reply, char *line, size_t room,
             struct error **err)
{
  char *from, *end;
  size_t length;
  int r;

  for (;;) {
    from = reply->buffer + reply->start;
    end = memchr (from, '\n', reply->size);
    if (end || reply->size >= room)
      break;
    r = answer_fill (reply, err);
    if (r <= 0)
      return r < 0 ? -1 : broken ("was cut short", err);
  }
  length = end ? (size_t) (end - from) : 0;
  if (!end || length == 0 || from[length - 1] != '\r' || length > room
      || !line_is_text (from, length - 1))
    return broken ("has a line that is not HTTP's", err);
  memcpy (line, from, length - 1);
  line[length - 1] = '\0';
  reply->start += length + 1;
  reply->size -= length + 1;
  return 0;
}

static int
read_status (const char *line, struct client_reply *reply, struct error **err)
{
  const char *code = line + 9;
  uint64_t status;
  char digits[4] = { 0 };

  if (strncmp (line, "HTTP/1.1 ", 9) != 0 || strlen (code) < 3
      || (code[3] != ' ' && code[3] != '\0'))
    return broken ("is not HTTP/1.1", err);
  memcpy (digits, code, 3);
  if (text_parse_u64 (digits, 200, 599, &status) < 0)
    return broken ("has a status that nothing here asked for", err);
  reply->status = (int) status;
  return 0;
}

/* The value after "NAME:" when the line is that header. */
static const char *
header_value (const char *line, const char *name)
{
  const size_t length = strlen (name);

  if (strncasecmp (line, name, length) != 0 || line[length] != ':')
    return NULL;
  line += length + 1;
  return line + strspn (line, " \t");
}

static int
read_header (const char *line, struct client_reply *reply, int *sized,
             struct error **err)
{
  const char *value;

  if ((value = header_value (line, "content-length"))) {
    if (*sized || text_parse_u64 (value, 0, INT64_MAX, &reply->left) < 0)
      return broken ("has a length that is none", err);
    *sized = 1;
  } else if ((value = header_value (line, "transfer-encoding"))) {
    if (*sized || strcasecmp (value, "chunked") != 0)
      return broken ("comes in an encoding that is not known here", err);
    *sized = reply->chunked = 1;
  } else if ((value = header_value (line, "content-type"))) {
    if (strlen (value) >= sizeof reply->type)
      return broken ("has a type that is too long", err);
    memcpy (reply->type, value, strlen (value) + 1);
  } else if (!strchr (line, ':') || strchr (" \t:", *line)) {
    return broken ("has a line that is not HTTP's", err);
  }
  return 0;
}

int
answer_head (struct client_reply *reply, struct error **err)
{
  char line[LINE_BYTES];
  int lines, sized = 0;

  if (answer_line (reply, line, sizeof line, err) < 0
      || read_status (line, reply, err) < 0)
    return -1;
  for (lines = 0; lines < HEAD_LINES; lines++) {
    if (answer_line (reply, line, sizeof line, err) < 0)
      return -1;
    if (!*line)
      break;
    if (read_header (line, reply, &sized, err) < 0)
      return -1;
  }
  if (lines == HEAD_LINES)
    return broken ("has too many headers", err);
  if (reply->status == 204 || reply->status == 304)
    reply->over = 1;
  else if (!sized)
    return broken ("does not say where it ends", err);
  reply->over |= !reply->chunked && reply->left == 0;
  return 0;
}

/* ---- the body ----------------------------------------------------------- */

static int
chunk_size (const char *line, uint64_t *out)
{
  const char *digits = "0123456789abcdef", *at;
  uint64_t size = 0;
  size_t i;

  for (i = 0; line[i]; i++) {
    at = strchr (digits, line[i] >= 'A' && line[i] <= 'F' ? line[i] + 32
                                                          : line[i]);
    if (!at || i == 15)
      return -1;
    size = size * 16 + (uint64_t) (at - digits);
  }
  *out = size;
  return i > 0 ? 0 : -1;
}

/* Up to the first byte of the next chunk, or over the end of the body. */
static int
next_chunk (struct client_reply *reply, struct error **err)
{
  char line[32];

  if (reply->begun
      && (answer_line (reply, line, sizeof line, err) < 0 || *line))
    return err && *err ? -1 : broken ("has a chunk that does not end", err);
  reply->begun = 1;
  if (answer_line (reply, line, sizeof line, err) < 0)
    return -1;
  if (chunk_size (line, &reply->left) < 0)
    return broken ("has a chunk without a size", err);
  if (reply->left > 0)
    return 0;
  reply->over = 1;
  if (answer_line (reply, line, sizeof line, err) < 0)
    return -1;
  return *line ? broken ("goes on after its end", err) : 0;
}

/* Between two chunks there must be the line that begins the next. */
int
client_ready (const struct client_reply *reply)
{
  const size_t end = reply->begun ? 2 : 0;      /* of the last one */

  if (reply->over)
    return 1;
  if (!reply->chunked || reply->left > 0)
    return reply->size > 0;
  return reply->size > end
         && memchr (reply->buffer + reply->start + end, '\n',
                    reply->size - end);
}

int
client_fetch (struct client_reply *reply, struct error **err)
{
  int r = client_ready (reply) ? 1 : answer_fill (reply, err);

  return r > 0 ? 0 : r < 0 ? -1 : broken ("was cut short", err);
}

ssize_t
client_read (struct client_reply *reply, void *bytes, size_t size,
             struct error **err)
{
  int r;

  if (!reply->over && reply->chunked && reply->left == 0
      && next_chunk (reply, err) < 0)
    return -1;
  if (reply->over || size == 0)
    return 0;
  if (reply->size == 0) {
    r = answer_fill (reply, err);
    if (r <= 0)
      return r < 0 ? -1 : broken ("was cut short", err);
  }
  if (size > reply->size)
    size = reply->size;
  if (size > reply->left)
    size = (size_t) reply->left;
  memcpy (bytes, reply->buffer + reply->start, size);
  reply->start += size;
  reply->size -= size;
  reply->left -= size;
  reply->over = !reply->chunked && reply->left == 0;
  return (ssize_t) size;
}

/* What has begun goes on: a daemon that was stopped in the middle is told from
 * one that has nothing to say, which is waited for before this. */
static int64_t
stall_end (const struct client_reply *reply, int64_t deadline_ns)
{
  const int64_t until = coffer_now_ns ()
                        + (reply->stall_ns ? reply->stall_ns : STALL_NS);

  return deadline_ns && deadline_ns < until ? deadline_ns : until;
}

int
client_read_all (struct client_reply *reply, void *bytes, size_t size,
                 struct error **err)
{
  const int64_t deadline_ns = reply->deadline_ns;
  char *to = bytes;
  ssize_t n = 0;

  for (; size > 0; to += n, size -= (size_t) n) {
    reply->deadline_ns = stall_end (reply, deadline_ns);
    n = client_read (reply, to, size, err);
    if (n <= 0)
      break;
  }
  reply->deadline_ns = deadline_ns;
  if (size > 0)
    return n < 0 ? -1 : broken ("ended in the middle", err);
  return 0;
}

int
client_skip (struct client_reply *reply, uint64_t size, struct error **err)
{
  coffer_unfilled char bytes[4096];
  size_t n;

  for (; size > 0; size -= n) {
    n = size < sizeof bytes ? (size_t) size : sizeof bytes;
    if (client_read_all (reply, bytes, n, err) < 0)
      return -1;
  }
  return 0;
}

/* ---- bodies that are read whole ----------------------------------------- */

static int
read_body (struct client_reply *reply, struct coffer_buffer *body,
           struct error **err)
{
  coffer_unfilled char bytes[16384];
  ssize_t n;

  while ((n = client_read (reply, bytes, sizeof bytes, err)) > 0) {
    if (body->size + (size_t) n > JSON_BYTES)
      return broken ("is longer than a reply may be", err);
    coffer_buffer_add (body, bytes, (size_t) n);
  }
  if (body->failed)
    return error_set (err, E_NO_MEMORY, 0, "the daemon's reply");
  return n < 0 ? -1 : 0;
}

int
client_json (struct client_reply *reply, json_t **out, struct error **err)
{
  coffer_autobuffer struct coffer_buffer body = { 0 };

  *out = NULL;
  if (read_body (reply, &body, err) < 0)
    return -1;
  if (body.size == 0)
    return 0;
  if (json_parse (body.data, body.size, out, err) < 0)
    return error_wrap (err, "the daemon's reply");
  return 0;
}

int
client_line (struct client_reply *reply, struct coffer_buffer *lines,
             json_t **out, struct error **err)
{
  coffer_unfilled char bytes[4096];
  const char *end;
  ssize_t n;

  *out = NULL;
  while (!(end = lines->size ? memchr (lines->data, '\n', lines->size)
                             : NULL)) {
    n = client_read (reply, bytes, sizeof bytes, err);
    if (n <= 0)
      return n < 0 ? -1 : lines->size ? broken ("ended in the middle", err) : 0;
    coffer_buffer_add (lines, bytes, (size_t) n);
    if (lines->failed)
      return error_set (err, E_NO_MEMORY, 0, "the daemon's reply");
    if (lines->size > LINES_BYTES)
      return broken ("has a line that is too long", err);
  }
  if (json_parse (lines->data, (size_t) (end - lines->data), out, err) < 0)
    return error_wrap (err, "the daemon's reply");
  lines->size -= (size_t) (end + 1 - lines->data);
  memmove (lines->data, end + 1, lines->size + 1);
  return 0;
}

/* Only codes that are known here; the rest is what the table says of it. */
int
client_error (const json_t *object, struct error **err)
{
  static const char *const words[] = {
    [RETRY_NO] = "no", [RETRY_YES] = "yes", [RETRY_UNKNOWN] = "unknown"
  };
  const char *code = json_string_value (json_object_get (object, "code"));
  const char *said = json_string_value (json_object_get (object, "message"));
  const char *hint = json_string_value (json_object_get (object, "hint"));
  const char *retry
    = json_string_value (json_object_get (object, "retryable"));
  json_t *value;
  const char *key;
  uint64_t number;
  int i;

  if (!code || *code != 'E' || !said
      || text_parse_u64 (code + 1, 1000, 9999, &number) < 0)
    return 0;
  error_set (err, error_lookup ((int) number) ? (int) number : E_INTERNAL, 0,
             "%s", said);
  if (err && *err && hint)
    error_hint (err, "%s", hint);
  for (i = RETRY_NO; err && *err && retry && i <= RETRY_UNKNOWN; i++)
    if (strcmp (retry, words[i]) == 0)
      (*err)->retryable = (enum error_retryable) i;
  json_object_foreach (json_object_get (object, "details"), key, value)
    error_detail (err, key, json_incref (value));
  return -1;
}

int
answer_error (struct client_reply *reply, struct error **err)
{
  const int status = reply->status;
  auto_error struct error *ignored = NULL;
  auto_json json_t *body = NULL;

  if (client_json (reply, &body, &ignored) == 0
      && client_error (json_object_get (body, "error"), err) < 0)
    return -1;
  return error_set (err, E_CONNECT_FAILED, 0,
                    "the daemon answered with status %d", status);
}
