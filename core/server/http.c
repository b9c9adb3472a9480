/* SPDX-License-Identifier: Apache-2.0 */
/* A request from its first line to the end of its reply: which row it is for,
 * who makes it, its body, its handler.  See exchange.h. */

#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <unistd.h>

#include <coffer/fd.h>
#include <coffer/http1.h>

#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "server/api/idempotency.h"
#include "server/exchange.h"
#include "server/head.h"
#include "server/observe.h"
#include "server/runs.h"

#define STEP 65536              /* of a body renews its deadline */
/* Of a body that nobody wants any more, this much is read, so that the client
 * gets as far as the reply. */
#define DISCARD_MAX (INT64_C (16) << 20)
#define MAX_ARGUMENTS 64

/* ---- birth ---------------------------------------------------------------- */

static int
id_make (char out[REQUEST_ID_SIZE])
{
  static const char digits[] = "0123456789abcdefghjkmnpqrstvwxyz";
  unsigned char bytes[26];
  size_t i;

  if (getrandom (bytes, sizeof bytes, 0) != (ssize_t) sizeof bytes)
    return -1;
  memcpy (out, "req-", 4);
  for (i = 0; i < sizeof bytes; i++)
    out[4 + i] = digits[bytes[i] % 32];
  out[4 + i] = '\0';
  return 0;
}

struct exchange *
exchange_new (struct server *server, struct connection *on,
              struct MHD_Connection *http, const char *uri)
{
  struct exchange *exchange = calloc (1, sizeof *exchange);

  if (!exchange)
    return NULL;
  exchange->uri = strdup (uri);
  if (!exchange->uri || id_make (exchange->request.id) < 0) {
    free (exchange->uri);
    free (exchange);
    return NULL;
  }
  exchange->http = http;
  exchange->connection = on;
  exchange->config = server_config_ref (server);
  exchange->feed = -1;
  exchange->request.server = server;
  exchange->request.reply = &exchange->reply;
  exchange->request.body_fd = -1;
  exchange->request.cancel_fd = -1;
  exchange->request.began_ns = coffer_now_ns ();
  exchange->request.deadline_ns = INT64_MAX;
  connection_hold (on, exchange);
  connection_set (on, CONNECTION_WAITS,
                  exchange->request.began_ns
                  + (int64_t) exchange->config->limits.header_time * 1000000);
  return exchange;
}

/* ---- what it is ----------------------------------------------------------- */

static int
add_argument (struct exchange *exchange, const char *text, size_t size,
              struct error **err)
{
  const char *equals = memchr (text, '=', size);
  const size_t name = equals ? (size_t) (equals - text) : size;
  auto_free char *key = route_decode (text, name, 1, 1);
  auto_free char *value
    = equals ? route_decode (equals + 1, size - name - 1, 1, 1) : strdup ("");

  if (!key || !value)
    return error_set (err, E_REQUEST, 0,
                      "the query has an escape that is none");
  coffer_strings_add (&exchange->arguments, key);
  coffer_strings_add (&exchange->arguments, value);
  return 0;
}

static int
read_query (struct exchange *exchange, struct error **err)
{
  const char *p = exchange->query;
  size_t n, count;

  for (count = 0; p && *p; count++) {
    n = strcspn (p, "&");
    if (count == MAX_ARGUMENTS)
      return error_set (err, E_REQUEST, 0, "more than %d names in the query",
                        MAX_ARGUMENTS);
    if (n && add_argument (exchange, p, n, err) < 0)
      return -1;
    p += n + (p[n] == '&');
  }
  return exchange->arguments.failed
           ? error_set (err, E_NO_MEMORY, 0, "a request") : 0;
}

static int
read_params (struct exchange *exchange, const struct route_match *match,
             struct error **err)
{
  size_t i;

  for (i = 0; i < match->n_params; i++) {
    const int rest = i + 1 == match->n_params
                     && strstr (match->route->path, "…}") != NULL;

    exchange->params[i] = route_decode (match->params[i].start,
                                        match->params[i].size, rest, 0);
    exchange->request.params[i] = exchange->params[i];
    if (!exchange->params[i])
      return errno == EINVAL
               ? error_set (err, E_REQUEST, 0, "the path has an escape that"
                            " is none, or means a slash or NUL")
               : error_set (err, E_NO_MEMORY, 0, "a request");
  }
  return 0;
}

/* An absolute form ("GET http://host/path") is served as its path, when it is of
 * the host that the header names: auth.c looks at no other. */
static int
path_of (struct exchange *exchange, char **path, struct error **err)
{
  char *uri = exchange->uri, *host = strstr (uri, "://");
  const char *named = request_header (&exchange->request,
                                      MHD_HTTP_HEADER_HOST);
  size_t size;

  *path = uri;
  if (uri[0] == '/' || !host)
    return 0;
  host += 3;
  size = strcspn (host, "/");
  if (!named || strlen (named) != size || strncasecmp (named, host, size) != 0)
    return error_set (err, E_REQUEST, 0,
                      "the target is of another server than the header Host");
  *path = host[size] ? host + size : (char *) "/";
  return 0;
}

static int
find_route (struct exchange *exchange, const char *method, struct error **err)
{
  struct request *request = &exchange->request;
  auto_free char *allowed = NULL;
  struct route_match match;
  char *path;

  exchange->query = strchr (exchange->uri, '?');
  if (exchange->query)
    *exchange->query++ = '\0';
  if (path_of (exchange, &path, err) < 0)
    return -1;
  if (route_find (method, path, &match, &allowed, err) < 0) {
    if (allowed)
      reply_header (request, MHD_HTTP_HEADER_ALLOW, allowed, NULL);
    return -1;
  }
  request->route = match.route;
  request->head = strcmp (method, "HEAD") == 0;
  request->method = request->head ? "GET" : method;
  request->path = path;
  request->query = exchange->query;
  return read_params (exchange, &match, err) < 0
             || read_query (exchange, err) < 0
           ? -1 : 0;
}

static int
check_headers (struct exchange *exchange, struct error **err)
{
  const uint64_t limit = exchange->config->limits.header;
  const union MHD_ConnectionInfo *info
    = MHD_get_connection_info (exchange->http,
                               MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);

  if (!info || info->header_size <= limit)
    return 0;
  return error_set (err, E_HEADERS, 0, "more than %ju bytes of headers",
                    (uintmax_t) limit);
}

struct framing {
  unsigned hosts, ends, logins; /* of these there is one at most */
  int odd;
};

static int
look_at_header (void *data, const char *name, const char *value)
{
  struct framing *framing = data;
  const int coding = strcasecmp (name, MHD_HTTP_HEADER_TRANSFER_ENCODING) == 0;

  framing->hosts += strcasecmp (name, MHD_HTTP_HEADER_HOST) == 0;
  framing->ends += coding
                   || strcasecmp (name, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0;
  framing->logins += strcasecmp (name, MHD_HTTP_HEADER_AUTHORIZATION) == 0;
  framing->odd |= !coffer_http1_is_token (name)
                  || (coding && strcasecmp (value, "chunked") != 0);
  return 0;
}

/* The library takes the first length of several and leaves out what is no name:
 * what something before this server reads another way would be another request
 * here.  NULL: nothing is wrong. */
static const char *
wrong_framing (const struct exchange *exchange, const char *version)
{
  struct framing framing = { 0 };

  request_each_header (&exchange->request, look_at_header, &framing);
  if (framing.hosts > 1)
    return "more than one header Host";
  if (framing.logins > 1)
    return "more than one header Authorization";
  return framing.odd || framing.ends > 1
             || (exchange_is_chunked (exchange)
                 && strcmp (version, "HTTP/1.1") != 0)
           ? "the headers leave a doubt of where the body ends" : NULL;
}

/* Nothing more is read of a connection where there was a doubt. */
static int
check_framing (struct exchange *exchange, const char *method,
               const char *target, const char *version, struct error **err)
{
  const char *wrong = NULL;

  if (strcmp (version, "HTTP/1.1") != 0 && strcmp (version, "HTTP/1.0") != 0)
    wrong = "only HTTP/1.0 and 1.1 are spoken here";
  else if (!head_is_strict (exchange->http, method, target,
                            exchange->uri, version))
    wrong = "the head is not written as HTTP has it: each line ends with CR"
            " LF, is not folded, and has no control characters";
  else
    wrong = wrong_framing (exchange, version);
  if (!wrong)
    return 0;
  reply_header (&exchange->request, MHD_HTTP_HEADER_CONNECTION, "close", NULL);
  return error_set (err, E_REQUEST, 0, "%s", wrong);
}

static uint64_t
body_limit (const struct exchange *exchange)
{
  const struct serve_limits *limits = &exchange->config->limits;

  return exchange->request.route->flags & ROUTE_STREAM ? limits->upload
                                                       : limits->body;
}

/* A length that is announced; what is sent in chunks is counted. */
static int
too_large (const struct exchange *exchange, struct error **err)
{
  return error_set (err, E_TOO_LARGE, 0, "a body of more than %ju bytes",
                    (uintmax_t) body_limit (exchange));
}

static int
check_length (struct exchange *exchange, struct error **err)
{
  const char *length = request_header (&exchange->request,
                                       MHD_HTTP_HEADER_CONTENT_LENGTH);
  uint64_t size = 0;

  if (!length || (text_parse_u64 (length, 0, UINT64_MAX, &size) == 0
                  && size <= body_limit (exchange)))
    return 0;
  return too_large (exchange, err);
}

/* What a program in a sandbox is sent is its own affair. */
static int
check_coding (struct exchange *exchange, struct error **err)
{
  const char *coding = request_header (&exchange->request,
                                       MHD_HTTP_HEADER_CONTENT_ENCODING);

  if (!coding || strcasecmp (coding, "identity") == 0
      || strcmp (exchange->request.route->method, "*") == 0)
    return 0;
  return error_set (err, E_CODING, 0, "a body with a Content-Encoding");
}

static int
read_json (struct exchange *exchange, struct error **err)
{
  struct request *request = &exchange->request;

  if (!exchange->body.size) {
    request->body = json_object ();
    return request->body ? 0 : error_set (err, E_NO_MEMORY, 0, "a request");
  }
  if (json_parse (exchange->body.data, exchange->body.size, &request->body,
                  err) < 0)
    return -1;
  return json_is_object (request->body)
           ? 0 : error_set (err, E_REQUEST, 0, "the body is no JSON object");
}

static int
parse_body (struct exchange *exchange, struct error **err)
{
  struct error *error = NULL;

  if (!(exchange->request.route->flags & ROUTE_JSON)
      || read_json (exchange, &error) == 0)
    return 0;
  if (error->number == E_NO_MEMORY)
    return error_move (err, error);
  error_set (err, E_REQUEST, 0, "the body: %s", error_message (error));
  error_free (error);
  return -1;
}

/* ---- the handler ---------------------------------------------------------- */

/* Waits for a place, if the route takes one. */
static int
handle_in_turn (struct request *request, struct error **err)
{
  struct runs_queue *runs = request->server->runs;
  const uint64_t wait = exchange_of (request)->config->limits.queue_time;
  int64_t until = coffer_now_ns () + (int64_t) wait * 1000000;
  int result;

  if (!(request->route->flags & ROUTE_COSTS_RUN))
    return request->route->handle (request, err);
  if (until > request->deadline_ns)
    until = request->deadline_ns;
  if (runs_enter (runs, &request->caller, until, request->cancel_fd, err) < 0)
    return -1;
  result = parse_body (exchange_of (request), err);
  if (result == 0)
    result = request->route->handle (request, err);
  /* The reply is sent without it, to clients who may be slow. */
  json_decref (steal (request->body));
  runs_leave (runs, &request->caller);
  return result;
}

static void
handle (struct exchange *exchange)
{
  struct request *request = &exchange->request;
  struct error *error = NULL;
  int begun = idempotency_begin (request, &exchange->idempotent, &error);

  exchange->result = begun < 0 ? -1 : 0;
  if (begun == 0)
    exchange->result = handle_in_turn (request, &error);
  if (exchange->result == 0 && !exchange->reply.response)
    exchange->result = error_set (&error, E_INTERNAL, 0, "%s has no reply",
                                  request->route->operation);
  idempotency_end (request, steal (exchange->idempotent),
                   exchange->result == 0);
  exchange->error = error;
}

static void *
handle_thread (void *data)
{
  struct exchange *exchange = data;

  handle (exchange);
  coffer_fd_close (&exchange->request.body_fd);
  return NULL;
}

static int
begin_stream (struct exchange *exchange, struct error **err)
{
  int ends[2], failed;

  if (pipe2 (ends, O_CLOEXEC) < 0)
    return error_set (err, E_IO, errno, "a pipe for the body");
  exchange->request.body_fd = ends[0];
  exchange->feed = ends[1];
  fcntl (exchange->feed, F_SETFL, O_NONBLOCK);
  failed = pthread_create (&exchange->handler, NULL, handle_thread, exchange);
  if (failed)
    return error_set (err, E_IO, failed, "a thread for the request");
  exchange->handling = 1;
  return 0;
}

/* The handler ends by itself: its pipe has ended, or it was cancelled. */
static void
end_stream (struct exchange *exchange)
{
  coffer_fd_close (&exchange->feed);
  if (exchange->handling)
    pthread_join (exchange->handler, NULL);
  else
    coffer_fd_close (&exchange->request.body_fd);
  exchange->handling = 0;
}

/* ---- its body ------------------------------------------------------------- */

static void
wait_for_body (struct exchange *exchange)
{
  connection_set (exchange->connection, CONNECTION_WAITS,
                  coffer_now_ns ()
                  + (int64_t) exchange->config->limits.body_time * 1000000);
}

/* The handler reads as fast as it likes: that time is its own. */
static int
feed (struct exchange *exchange, const char *bytes, size_t size)
{
  const struct request *request = &exchange->request;

  while (size > 0) {
    ssize_t n = write (exchange->feed, bytes, size);

    if (n > 0) {
      bytes += n;
      size -= (size_t) n;
      continue;
    }
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0 && errno != EAGAIN)
      return -1;
    connection_set (exchange->connection, CONNECTION_WORKS,
                    request->deadline_ns);
    if (coffer_wait_fd (exchange->feed, POLLOUT, request->deadline_ns,
                        request->cancel_fd) != 1)
      return -1;
    wait_for_body (exchange);
  }
  return 0;
}

static void
take_bytes (struct exchange *exchange, const char *bytes, size_t size)
{
  const unsigned flags = exchange->request.route->flags;

  if (exchange->failed)
    return;
  if (exchange->received > body_limit (exchange)) {
    too_large (exchange, &exchange->failed);
    coffer_buffer_free (&exchange->body);
    connection_cancel (exchange->connection);
    end_stream (exchange);
  } else if (flags & (ROUTE_JSON | ROUTE_TEXT))
    coffer_buffer_add (&exchange->body, bytes, size);
  else if (exchange->feed >= 0 && feed (exchange, bytes, size) < 0)
    coffer_fd_close (&exchange->feed);
}

enum MHD_Result
exchange_take (struct exchange *exchange, const char *bytes, size_t size)
{
  const int unwanted = exchange->failed || !exchange->request.route
                       || ((exchange->request.route->flags & ROUTE_STREAM)
                           && exchange->feed < 0);

  exchange->received += size;
  if (unwanted && exchange->received - exchange->progress > DISCARD_MAX)
    return MHD_NO;
  take_bytes (exchange, bytes, size);
  if (!unwanted && exchange->received - exchange->progress >= STEP) {
    exchange->progress = exchange->received;
    wait_for_body (exchange);
  }
  return MHD_YES;
}

/* Parsed it takes many times the room: whoever waits in a queue has it as it
 * came. */
static int
read_body (struct exchange *exchange, struct error **err)
{
  if (exchange->body.failed)
    return error_set (err, E_NO_MEMORY, 0, "a request");
  exchange->request.body_text = exchange->body.data ? exchange->body.data : "";
  exchange->request.body_size = exchange->body.size;
  return exchange->request.route->flags & ROUTE_COSTS_RUN
           ? 0 : parse_body (exchange, err);
}

/* ---- the three calls ------------------------------------------------------ */

/* Whoever only asks whether this daemon is well is always told. */
static int
take_place (struct exchange *exchange, struct error **err)
{
  const struct request *request = &exchange->request;

  exchange->place = (struct share_hold){ .shares = request->server->shares,
                                         .share = SHARE_REQUESTS,
                                         .tenant = request->caller.tenant };
  return request->route->right == RIGHT_NONE
           ? 0 : share_hold_more (&exchange->place, 1, err);
}

static int
begin (struct exchange *exchange, const char *method, const char *target,
       const char *version, struct error **err)
{
  struct request *request = &exchange->request;

  if (connection_begin (exchange->connection, err) < 0)
    return -1;
  request->cancel_fd = exchange->connection->cancel_fd;
  if (check_headers (exchange, err) < 0
      || check_framing (exchange, method, target, version, err) < 0
      || find_route (exchange, method, err) < 0
      || auth_request (request, err) < 0 || take_place (exchange, err) < 0
      || check_length (exchange, err) < 0 || check_coding (exchange, err) < 0)
    return -1;
  if (!(request->route->flags & ROUTE_LONG))
    request->deadline_ns
      = coffer_now_ns ()
        + (int64_t) exchange->config->limits.request_time * 1000000;
  wait_for_body (exchange);
  if (request->route->flags & ROUTE_STREAM)
    return begin_stream (exchange, err);
  return 0;
}

static int
has_body (const struct exchange *exchange)
{
  const char *length = request_header (&exchange->request,
                                       MHD_HTTP_HEADER_CONTENT_LENGTH);

  return (length && strcmp (length, "0") != 0) || exchange_is_chunked (exchange);
}

/* A refusal before the body was read ends the connection. */
enum MHD_Result
exchange_begin (struct exchange *exchange, const char *method,
                const char *target, const char *version)
{
  struct error *error = NULL;

  exchange->began = 1;
  exchange->request.method = method;
  if (atomic_load (&exchange->request.server->draining))
    error_set (&error, E_DRAINING, 0, "this server is going away");
  else if (begin (exchange, method, target, version, &error) == 0)
    return MHD_YES;
  end_stream (exchange);
  if (has_body (exchange))
    return reply_send_error (exchange, error);
  exchange->failed = error;
  return MHD_YES;
}

enum MHD_Result
exchange_finish (struct exchange *exchange)
{
  struct request *request = &exchange->request;
  struct error *error = NULL;

  if (exchange->answered)
    return MHD_YES;
  if (exchange->failed)
    return reply_send_error (exchange, steal (exchange->failed));
  /* A part that its pipe did not take any more is missing from it. */
  if (!(request->route->flags & ROUTE_STREAM) || exchange->feed >= 0)
    atomic_store (&exchange->complete, 1);
  connection_set (exchange->connection, CONNECTION_WORKS,
                  request->deadline_ns);
  if (request->route->flags & ROUTE_STREAM)
    end_stream (exchange);
  else if (read_body (exchange, &error) < 0)
    return reply_send_error (exchange, error);
  else
    handle (exchange);
  if (exchange->result < 0)
    return reply_send_error (exchange, steal (exchange->error));
  return reply_send (exchange);
}

void
exchange_end (struct exchange *exchange)
{
  struct request *request = &exchange->request;
  size_t i;

  /* What is still at work for it, or for its reply, is waited for below. */
  if (exchange->handling || exchange->reply.stream)
    connection_cancel (exchange->connection);
  end_stream (exchange);
  observe_request (request, exchange->reply.status, exchange->reply.sent);
  reply_fini (exchange);
  connection_hold (exchange->connection, NULL);
  connection_set (exchange->connection, CONNECTION_WAITS,
                  coffer_now_ns ()
                  + (int64_t) exchange->config->limits.idle_time * 1000000);
  for (i = 0; i < ROUTE_MAX_PARAMS; i++)
    free (exchange->params[i]);
  json_decref (request->body);
  share_hold_give (&exchange->output);
  share_hold_give (&exchange->place);
  caller_fini (&request->caller);
  coffer_strings_free (&exchange->arguments);
  coffer_buffer_free (&exchange->body);
  error_free (exchange->failed);
  error_free (exchange->error);
  serve_config_unref (exchange->config);
  free (exchange->uri);
  free (exchange);
}
