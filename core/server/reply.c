/* SPDX-License-Identifier: Apache-2.0 */
/* Replies: from what a handler filled in to what the HTTP library sends. */

#include <config.h>

#include <errno.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/json.h"
#include "server/exchange.h"
#include "server/observe.h"

#define BLOCK 65536
/* A client that has not taken a block by then does not read. */
#define SEND_NS (INT64_C (60) * 1000000000)
/* What is sent at once is bounded by this rate. */
#define SLOWEST 16384           /* bytes a second */

/* ---- bodies that are made while they are sent ----------------------------- */

/* Shared by the reply and the library's response, either of which may end
 * first; `free` runs with the first. */
struct stream {
  struct reply_stream source;
  struct exchange *exchange;    /* NULL: it is over */
  int holders;
};

static void
stream_drop (struct stream *stream)
{
  if (stream->exchange && stream->source.free)
    stream->source.free (stream->source.data);
  if (stream->exchange)
    stream->exchange->reply.stream = NULL;
  stream->exchange = NULL;
  if (--stream->holders == 0)
    free (stream);
}

static void
stream_free (void *data)
{
  struct stream *stream = data;

  if (stream->exchange)
    stream->holders--;          /* the exchange's, which forgets it now */
  stream_drop (stream);
}

static ssize_t
stream_read (void *data, uint64_t position, char *out, size_t max)
{
  struct stream *stream = data;
  struct exchange *exchange = stream->exchange;
  ssize_t n;

  (void) position;
  if (!exchange)
    return MHD_CONTENT_READER_END_WITH_ERROR;
  connection_set (exchange->connection, CONNECTION_WORKS,
                  exchange->request.deadline_ns);
  n = stream->source.fill (stream->source.data, out, max);
  if (n > 0)
    exchange->reply.sent += (uint64_t) n;
  connection_set (exchange->connection, CONNECTION_WAITS,
                  coffer_now_ns () + SEND_NS);
  if (n < 0)
    return MHD_CONTENT_READER_END_WITH_ERROR;
  return n == 0 ? MHD_CONTENT_READER_END_OF_STREAM : n;
}

static int
reply_source (struct request *request, int status, const char *type,
              uint64_t size, const struct reply_stream *take_stream,
              struct error **err)
{
  struct exchange *exchange = exchange_of (request);
  struct stream *stream = calloc (1, sizeof *stream);

  if (stream) {
    *stream = (struct stream){ *take_stream, exchange, 2 };
    exchange->reply.response
      = MHD_create_response_from_callback (size, BLOCK, stream_read, stream,
                                           stream_free);
  }
  if (!exchange->reply.response) {
    if (take_stream->free)
      take_stream->free (take_stream->data);
    free (stream);
    return error_set (err, E_NO_MEMORY, 0, "a reply");
  }
  exchange->reply.stream = stream;
  exchange->reply.status = status;
  return type ? reply_header (request, MHD_HTTP_HEADER_CONTENT_TYPE, type, err)
              : 0;
}

int
reply_stream (struct request *request, int status, const char *type,
              const struct reply_stream *take_stream, struct error **err)
{
  return reply_source (request, status, type,
                       take_stream->size ? take_stream->size
                                         : MHD_SIZE_UNKNOWN, take_stream, err);
}

/* ---- a part of a file ----------------------------------------------------- */

struct part {
  int fd;
  uint64_t offset, left;
};

static ssize_t
part_fill (void *data, char *out, size_t max)
{
  struct part *part = data;
  ssize_t n;

  if (max > part->left)
    max = (size_t) part->left;
  if (max == 0)
    return 0;
  do
    n = pread (part->fd, out, max, (off_t) part->offset);
  while (n < 0 && errno == EINTR);
  if (n <= 0)
    return -1;
  part->offset += (uint64_t) n;
  part->left -= (uint64_t) n;
  return n;
}

static void
part_free (void *data)
{
  struct part *part = data;

  coffer_fd_close (&part->fd);
  free (part);
}

int
reply_fd (struct request *request, int status, const char *type, int take_fd,
          uint64_t offset, uint64_t size, struct error **err)
{
  struct part *part = malloc (sizeof *part);
  struct reply_stream stream = { part_fill, part_free, part, size };

  if (!part) {
    coffer_fd_close (&take_fd);
    return error_set (err, E_NO_MEMORY, 0, "a reply");
  }
  *part = (struct part){ take_fd, offset, size };
  if (size > 0)
    return reply_source (request, status, type, size, &stream, err);
  part_free (part);
  return reply_bytes (request, status, type, "", 0, err);
}

/* ---- whole bodies --------------------------------------------------------- */

static int
reply_buffer (struct request *request, int status, const char *type,
              char *take_bytes, size_t size, struct error **err)
{
  struct exchange *exchange = exchange_of (request);

  exchange->reply.sent = size;
  if (take_bytes)
    exchange->reply.response
      = MHD_create_response_from_buffer (size, take_bytes,
                                         MHD_RESPMEM_MUST_FREE);
  if (!exchange->reply.response) {
    free (take_bytes);
    return error_set (err, E_NO_MEMORY, 0, "a reply");
  }
  exchange->reply.bytes = take_bytes;
  exchange->reply.type = type;
  exchange->reply.size = size;
  exchange->reply.status = status;
  return type ? reply_header (request, MHD_HTTP_HEADER_CONTENT_TYPE, type, err)
              : 0;
}

int
reply_json (struct request *request, int status, json_t *take_value,
            struct error **err)
{
  auto_json json_t *value = take_value;
  char *text;

  json_name_encodings (value);
  text = value ? json_text (value) : NULL;
  return reply_buffer (request, status, "application/json", text,
                       text ? strlen (text) : 0, err);
}

int
reply_bytes (struct request *request, int status, const char *type,
             const void *bytes, size_t size, struct error **err)
{
  char *copy = malloc (size + 1);

  if (copy)
    memcpy (copy, bytes, size);
  return reply_buffer (request, status, type, copy, size, err);
}

int
reply_empty (struct request *request, int status, struct error **err)
{
  return reply_buffer (request, status, NULL, calloc (1, 1), 0, err);
}

/* ---- another protocol ----------------------------------------------------- */

/* As long as the request. */
struct handover {
  struct reply_upgrade source;
  struct exchange *exchange;
};

static void
handover_free (struct handover *handover)
{
  if (handover->source.free)
    handover->source.free (handover->source.data);
  free (handover);
}

static void
handover_run (void *data, struct MHD_Connection *http, void *request,
              const char *early, size_t size, MHD_socket socket,
              struct MHD_UpgradeResponseHandle *handle)
{
  struct handover *handover = data;

  (void) http;
  (void) request;
  connection_set (handover->exchange->connection, CONNECTION_WAITS, INT64_MAX);
  handover->source.run (handover->source.data, socket, early, size);
  MHD_upgrade_action (handle, MHD_UPGRADE_ACTION_CLOSE);
}

int
reply_upgrade (struct request *request, const char *protocol,
               const struct reply_upgrade *take_upgrade, struct error **err)
{
  struct exchange *exchange = exchange_of (request);
  struct handover *handover = malloc (sizeof *handover);

  if (handover) {
    *handover = (struct handover){ *take_upgrade, exchange };
    exchange->reply.response
      = MHD_create_response_for_upgrade (handover_run, handover);
  }
  if (!exchange->reply.response) {
    if (take_upgrade->free)
      take_upgrade->free (take_upgrade->data);
    free (handover);
    return error_set (err, E_NO_MEMORY, 0, "a reply");
  }
  exchange->reply.handover = handover;
  exchange->reply.status = MHD_HTTP_SWITCHING_PROTOCOLS;
  return reply_header (request, MHD_HTTP_HEADER_UPGRADE, protocol, err);
}

/* ---- headers, and off it goes --------------------------------------------- */

int
reply_header (struct request *request, const char *name, const char *value,
              struct error **err)
{
  struct coffer_strings *headers = &exchange_of (request)->reply.headers;
  const char *p;

  for (p = value; *p; p++)
    if ((unsigned char) *p < ' ' || *p == 0x7f)
      return error_set (err, E_INTERNAL, 0,
                        "a control character in the header %s", name);
  coffer_strings_add (headers, name);
  coffer_strings_add (headers, value);
  return headers->failed ? error_set (err, E_NO_MEMORY, 0, "a reply") : 0;
}

void
reply_fini (struct exchange *exchange)
{
  struct reply *reply = &exchange->reply;

  if (reply->stream)
    stream_drop (reply->stream);
  if (reply->response)
    MHD_destroy_response (reply->response);
  if (reply->handover)
    handover_free (reply->handover);
  reply->response = NULL;
  reply->handover = NULL;
  reply->bytes = NULL;
  reply->status = 0;
  coffer_strings_free (&reply->headers);
}

/* The library is lenient with chunks, out of sight here: who comes before this
 * server may see their end elsewhere, and what is behind it is never taken as
 * another request. */
static int
is_last (const struct exchange *exchange)
{
  return exchange->reply.status != MHD_HTTP_SWITCHING_PROTOCOLS
         && (atomic_load (&exchange->request.server->draining)
             || exchange_is_chunked (exchange));
}

static void
add_headers (struct exchange *exchange)
{
  struct reply *reply = &exchange->reply;
  size_t i;

  for (i = 0; i + 1 < reply->headers.count; i += 2)
    MHD_add_response_header (reply->response, reply->headers.items[i],
                             reply->headers.items[i + 1]);
  MHD_add_response_header (reply->response, "X-Request-Id",
                           exchange->request.id);
  MHD_add_response_header (reply->response, "X-Content-Type-Options",
                           "nosniff");
  MHD_add_response_header (reply->response, MHD_HTTP_HEADER_CACHE_CONTROL,
                           "no-store");
  if (is_last (exchange))
    MHD_add_response_header (reply->response, MHD_HTTP_HEADER_CONNECTION,
                             "close");
}

enum MHD_Result
reply_send (struct exchange *exchange)
{
  struct reply *reply = &exchange->reply;
  enum MHD_Result result;

  add_headers (exchange);
  exchange->answered = 1;
  connection_set (exchange->connection, CONNECTION_WAITS,
                  coffer_now_ns () + SEND_NS
                  + (int64_t) (reply->size / SLOWEST) * 1000000000);
  result = MHD_queue_response (exchange->http, (unsigned) reply->status,
                               reply->response);
  MHD_destroy_response (reply->response);
  reply->response = NULL;
  return result;
}

static int
has_header (const struct exchange *exchange, const char *name)
{
  const struct coffer_strings *headers = &exchange->reply.headers;
  size_t i;

  for (i = 0; i + 1 < headers->count; i += 2)
    if (strcasecmp (headers->items[i], name) == 0)
      return 1;
  return 0;
}

/* The names of what a client can do about a refusal stand in headers, too. */
static void
add_error_headers (struct exchange *exchange, int number)
{
  struct request *request = &exchange->request;

  if (number == E_TOKEN)
    reply_header (request, MHD_HTTP_HEADER_WWW_AUTHENTICATE,
                  "Bearer realm=\"coffer\"", NULL);
  if ((number == E_LIMIT || number == E_DRAINING)
      && !has_header (exchange, MHD_HTTP_HEADER_RETRY_AFTER))
    reply_header (request, MHD_HTTP_HEADER_RETRY_AFTER, "1", NULL);
}

enum MHD_Result
reply_send_error (struct exchange *exchange, struct error *take_error)
{
  auto_error struct error *error = take_error;
  const struct error_info *info = error_lookup (error->number);
  struct reply *reply = &exchange->reply;

  observe_error (&exchange->request, error);
  if (reply->response)
    reply_fini (exchange);
  add_error_headers (exchange, error->number);
  if (reply_json (&exchange->request, info ? info->http_status : 500,
                  error_to_json (error), NULL) < 0)
    return MHD_NO;
  return reply_send (exchange);
}
