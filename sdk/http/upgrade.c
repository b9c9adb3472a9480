/* SPDX-License-Identifier: Apache-2.0 */
/* A request whose reply is the beginning of something else.  libcurl would read
 * on into it, so that request and reply are ours here: on the connection itself,
 * whose bytes are looked at before they are taken (MSG_PEEK), or, with TLS or a
 * proxy, by libcurl's connection, and a thread takes over (pump.c). */

#define _GNU_SOURCE

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <coffer/fd.h>
#include <coffer/websocket.h>

#include "client.h"
#include "pump.h"

#define INTERIM_MOST 16         /* 1xx before the answer */

struct link {
  struct http_exchange *exchange;
  int fd;                       /* a connection of its own; -1 */
  struct http_handle *handle;   /* libcurl's; NULL */
  curl_socket_t socket;         /* of either, to wait for */
  struct coffer_buffer got;     /* of the head; of libcurl's perhaps more */
};

static int32_t
fail (struct link *link, int32_t code, const char *why)
{
  snprintf (link->exchange->why, sizeof link->exchange->why, "%s", why);
  return code;
}

static int
link_wait (struct link *link, short events)
{
  const struct coffer_call *call = link->exchange->call;

  if (coffer_now_ns () >= call->deadline_ns) {
    errno = ETIMEDOUT;
    return -1;
  }
  return coffer_wait_fd (link->socket, events, call->deadline_ns,
                         call->cancel_fd) == 1 ? 0 : -1;
}

/* -1 with errno. */
static int
link_send (struct link *link, const char *bytes, size_t size)
{
  size_t n;
  CURLcode r;

  if (!link->handle)
    return coffer_write_until (link->fd, bytes, size,
                               link->exchange->call->deadline_ns,
                               link->exchange->call->cancel_fd);
  while (size > 0) {
    if (link_wait (link, POLLOUT) < 0)
      return -1;
    r = curl_easy_send (link->handle->easy, bytes, size, &n);
    if (r == CURLE_AGAIN)
      continue;
    if (r != CURLE_OK) {
      errno = EIO;
      return -1;
    }
    bytes += n;
    size -= n;
  }
  return 0;
}

/* Bytes, 0 at the end, -1 with errno. */
static ssize_t
link_receive (struct link *link, char *bytes, size_t size, int flags)
{
  size_t n = 0;
  CURLcode r;
  ssize_t got;

  for (;;) {
    if (link->handle) {
      r = curl_easy_recv (link->handle->easy, bytes, size, &n);
      if (r == CURLE_OK)
        return (ssize_t) n;
      if (r != CURLE_AGAIN) {
        errno = EIO;
        return -1;
      }
      if (link_wait (link, POLLIN) < 0)
        return -1;
      continue;
    }
    if (link_wait (link, POLLIN) < 0)
      return -1;
    got = recv (link->fd, bytes, size, MSG_DONTWAIT | flags);
    if (got >= 0 || (errno != EAGAIN && errno != EINTR))
      return got;
  }
}

static void
link_close (struct link *link)
{
  coffer_fd_close (&link->fd);
  http_handle_free (link->handle);
  link->handle = NULL;
  coffer_buffer_free (&link->got);
}

static int32_t
link_open (struct link *link)
{
  struct http_exchange *exchange = link->exchange;
  int32_t code;

  if (!exchange->origin->is_tls && !exchange->http->proxy.url) {
    link->fd = coffer_connect (exchange->call, exchange->origin->target);
    link->socket = link->fd;
    if (link->fd >= 0)
      return COFFER_OK;
    code = -link->fd;
    link->fd = -1;
    snprintf (exchange->why, sizeof exchange->why, "no connection to %.200s",
              exchange->origin->target);
    return code;
  }
  link->handle = http_handle_get (exchange->http);
  if (!link->handle)
    return fail (link, COFFER_INTERNAL, "out of memory");
  /* A kept one has a connection of its own, which is none of a stream. */
  code = http_transfer_connect (exchange, link->handle);
  if (code == COFFER_OK
      && curl_easy_getinfo (link->handle->easy, CURLINFO_ACTIVESOCKET,
                            &link->socket) != CURLE_OK)
    code = fail (link, COFFER_INTERNAL, "the connection has no socket");
  return code;
}

/* ---- the request ---- */

static void
add_host (const struct http_origin *origin, struct coffer_buffer *out)
{
  const char *host = strstr (origin->url, "://") + 3;

  coffer_buffer_printf (out, "Host: %s\r\n", host);
}

static int
has_host (const struct coffer_strings *headers)
{
  for (size_t i = 0; i < headers->count; i++)
    if (strncasecmp (headers->items[i], "Host:", 5) == 0)
      return 1;
  return 0;
}

static int32_t
send_request (struct link *link, const char *protocol,
              const char *const *more)
{
  const struct http_exchange *exchange = link->exchange;
  coffer_autostrings struct coffer_strings headers = { 0 };
  struct coffer_buffer text = { 0 };
  int r;

  http_exchange_headers (exchange, &headers);
  coffer_buffer_printf (&text, "%s %s HTTP/1.1\r\n", exchange->method,
                        exchange->path);
  if (!has_host (&headers))
    add_host (exchange->origin, &text);
  coffer_buffer_printf (&text, "User-Agent: %s\r\nConnection: Upgrade\r\n"
                        "Upgrade: %s\r\n", exchange->http->user_agent,
                        protocol);
  for (size_t i = 0; i < headers.count; i++)
    coffer_buffer_printf (&text, "%s\r\n", headers.items[i]);
  for (; more && *more; more++)
    coffer_buffer_printf (&text, "%s\r\n", *more);
  if (exchange->body || strcmp (exchange->method, "POST") == 0)
    coffer_buffer_printf (&text, "Content-Length: %zu\r\n",
                          exchange->body_size);
  coffer_buffer_add_string (&text, "\r\n");
  if (exchange->body)
    coffer_buffer_add (&text, exchange->body, exchange->body_size);
  r = text.failed || headers.failed ? -2 : link_send (link, text.data,
                                                      text.size);
  if (text.data)
    explicit_bzero (text.data, text.size);
  coffer_buffer_free (&text);
  if (r == 0)
    return COFFER_OK;
  return r == -2 ? fail (link, COFFER_INTERNAL, "out of memory")
                 : fail (link, http_errno_code (errno),
                         "sending the request failed");
}

/* ---- the reply's head ---- */

/* Looks at what is there and takes no more of it than belongs to the head.
 * COFFER_OK: *length bytes of `got` are one. */
static int32_t
read_head_bytes (struct link *link, ssize_t *length)
{
  char coffer_unfilled bytes[16384];
  const int flags = link->handle ? 0 : MSG_PEEK;
  size_t before, own;
  ssize_t n;

  for (;;) {
    *length = coffer_http1_head_length (link->got.data ? link->got.data : "",
                                        link->got.size);
    if (*length > 0)
      return COFFER_OK;
    if (*length < 0 || link->got.size > link->exchange->http->head_most)
      return fail (link, COFFER_LIMIT, "the head of the reply is too large");
    n = link_receive (link, bytes, sizeof bytes, flags);
    if (n <= 0)
      return fail (link, n < 0 ? http_errno_code (errno) : COFFER_IO,
                   n < 0 ? "waiting for the answer failed"
                         : "the connection was closed before an answer came");
    before = link->got.size;
    coffer_buffer_add (&link->got, bytes, (size_t) n);
    if (link->got.failed)
      return fail (link, COFFER_INTERNAL, "out of memory");
    if (link->handle)
      continue;
    *length = coffer_http1_head_length (link->got.data, link->got.size);
    own = *length > 0 ? (size_t) *length - before : (size_t) n;
    link->got.size = before + own;
    if (recv (link->fd, bytes, own, MSG_DONTWAIT) != (ssize_t) own)
      return fail (link, COFFER_IO, "the connection failed");
  }
}

static void
drop (struct link *link, size_t n)
{
  link->got.size -= n;
  memmove (link->got.data, link->got.data + n, link->got.size);
}

static void
keep_headers (struct http_exchange *exchange,
              const struct coffer_http1_head *head)
{
  exchange->reply->status = head->status;
  coffer_strings_free (&exchange->reply->headers);
  for (size_t i = 0; i < head->count; i++)
    coffer_strings_printf (&exchange->reply->headers, "%s: %s",
                           head->headers[i].name, head->headers[i].value);
}

/* The head of the answer, behind those that only say that one will come. */
static int32_t
read_head (struct link *link, struct coffer_http1_head *head)
{
  const char *wrong;
  ssize_t length;
  int32_t code;
  char why[128];

  for (int i = 0; i < INTERIM_MOST; i++) {
    code = read_head_bytes (link, &length);
    if (code != COFFER_OK)
      return code;
    wrong = coffer_http1_head_parse (link->got.data, (size_t) length, 0, head);
    drop (link, (size_t) length);
    if (wrong) {
      snprintf (why, sizeof why, "the answer is refused: %s", wrong);
      return fail (link, COFFER_IO, why);
    }
    if (head->status >= 200 || head->status == 101) {
      keep_headers (link->exchange, head);
      return COFFER_OK;
    }
    coffer_http1_head_fini (head);
  }
  return fail (link, COFFER_IO, "the answer never comes");
}

/* ---- its body, of a refusal ---- */

/* 1: more may come. */
static int
take_body (struct http_exchange *exchange, struct coffer_http1_body *body,
           const char *in, size_t size)
{
  const char *data;
  size_t used, n, room;

  while (size > 0 && !coffer_http1_body_over (body)) {
    if (coffer_http1_body_read (body, in, size, &used, &data, &n) < 0)
      return 0;
    room = ERROR_BODY_MOST - exchange->text.size;
    coffer_buffer_add (&exchange->text, data, n < room ? n : room);
    if (n > room || exchange->text.failed)
      return 0;
    in += used;
    size -= used;
  }
  return !coffer_http1_body_over (body);
}

/* What comes of it is enough to say why: a cut is no other failure. */
static void
read_body (struct link *link, const struct coffer_http1_head *head)
{
  char coffer_unfilled bytes[16384];
  struct coffer_http1_body body;
  ssize_t n = 1;
  int more;

  coffer_http1_body_init (&body, head);
  more = !coffer_http1_body_over (&body);
  if (more && link->got.size > 0)
    more = take_body (link->exchange, &body, link->got.data, link->got.size);
  while (more && n > 0) {
    n = link_receive (link, bytes, sizeof bytes, 0);
    if (n > 0)
      more = take_body (link->exchange, &body, bytes, (size_t) n);
  }
  link->exchange->reply->received = link->exchange->text.size;
}

/* ---- all of it ---- */

/* Whether HTTP ends behind this head. */
static int
is_upgraded (const struct coffer_http1_head *head, const char *protocol,
             int strictly)
{
  const char *chosen = coffer_http1_header (head, "Upgrade");

  if (head->status == 101)
    return chosen ? coffer_http1_list_has (chosen, protocol) : !strictly;
  return !strictly && head->status == 200
         && head->framing == COFFER_HTTP1_TO_END;
}

static int32_t
hand_over (struct link *link, int *fd)
{
  if (link->handle) {
    *fd = http_pump_start (link->exchange->http, link->handle,
                           link->got.data ? link->got.data : "",
                           link->got.size);
    link->handle = NULL;
  } else {
    *fd = coffer_fd_steal (&link->fd);
  }
  return *fd >= 0 ? COFFER_OK
                  : fail (link, COFFER_INTERNAL, "no thread for the stream");
}

/* COFFER_OK: *fd, or -1 and the status says why. */
static int32_t
upgrade (struct link *link, const char *protocol, int strictly,
         const char *const *more, int *fd)
{
  struct coffer_http1_head head = { 0 };
  int32_t code = link_open (link);

  if (code == COFFER_OK)
    code = send_request (link, protocol, more);
  if (code == COFFER_OK)
    code = read_head (link, &head);
  if (code != COFFER_OK)
    return code;
  if (is_upgraded (&head, protocol, strictly))
    code = hand_over (link, fd);
  else
    read_body (link, &head);
  coffer_http1_head_fini (&head);
  return code;
}

static int32_t
run (struct http_exchange *exchange, const char *protocol, int strictly,
     const char *const *more, int *fd)
{
  struct link link = { .exchange = exchange, .fd = -1, .socket = -1 };
  int32_t code = COFFER_OK;

  if (!coffer_http1_is_token (protocol))
    code = fail (&link, COFFER_INVALID, "protocol: it is none");
  else if (exchange->request->body_from_fd)
    code = fail (&link, COFFER_INVALID,
                 "body: before a stream it is in memory");
  if (code == COFFER_OK)
    code = upgrade (&link, protocol, strictly, more, fd);
  link_close (&link);
  if (code == COFFER_OK && *fd < 0
      && (exchange->reply->status == 101
          || http_status_code (exchange->reply->status) == COFFER_OK))
    code = fail (&link, COFFER_UNSUPPORTED,
                 "the server does not leave HTTP for this");
  return code;
}

static int32_t
begin (struct http_exchange *exchange, struct coffer_http *http,
       struct coffer_call *call, const struct coffer_http_request *request,
       struct coffer_http_reply *reply, int *fd)
{
  *fd = -1;
  coffer_http_reply_fini (reply);
  return http_exchange_init (exchange, http, call, request, reply);
}

/* A stream is a success whatever its status is. */
static int32_t
finish (struct http_exchange *exchange, int32_t code, int fd)
{
  if (fd < 0)
    code = http_reply_finish (exchange, code);
  else
    code = exchange->reply->code = COFFER_OK;
  http_exchange_fini (exchange);
  return code;
}

int32_t
coffer_http_upgrade (struct coffer_http *http, struct coffer_call *call,
                     const char *protocol,
                     const struct coffer_http_request *request,
                     struct coffer_http_reply *reply, int *fd)
{
  struct http_exchange exchange;
  int32_t code = begin (&exchange, http, call, request, reply, fd);

  if (code == COFFER_OK)
    code = run (&exchange, protocol, 0, NULL, fd);
  return finish (&exchange, code, *fd);
}

/* ---- WebSocket ---- */

static int
is_accepted (const struct coffer_http_reply *reply, const char *want)
{
  const char *accept = coffer_http_header (reply, "Sec-WebSocket-Accept");

  return accept && strcmp (accept, want) == 0
         && !coffer_http_header (reply, "Sec-WebSocket-Extensions");
}

static int32_t
run_websocket (struct http_exchange *exchange, const char *protocols, int *fd)
{
  char key[COFFER_WEBSOCKET_KEY_SIZE], want[COFFER_WEBSOCKET_ACCEPT_SIZE];
  coffer_autostrings struct coffer_strings more = { 0 };
  int32_t code;

  if (coffer_websocket_key (key) < 0
      || coffer_websocket_accept (key, want) < 0) {
    snprintf (exchange->why, sizeof exchange->why, "no random bytes");
    return COFFER_INTERNAL;
  }
  coffer_strings_add (&more, "Sec-WebSocket-Version: 13");
  coffer_strings_printf (&more, "Sec-WebSocket-Key: %s", key);
  if (protocols)
    coffer_strings_printf (&more, "Sec-WebSocket-Protocol: %s", protocols);
  if (more.failed || (protocols && http_header_check (more.items[2]))) {
    snprintf (exchange->why, sizeof exchange->why, "protocols: no header");
    return COFFER_INVALID;
  }
  code = run (exchange, "websocket", 1, coffer_strings_view (&more), fd);
  if (code == COFFER_OK && *fd >= 0 && !is_accepted (exchange->reply, want)) {
    coffer_fd_close (fd);
    snprintf (exchange->why, sizeof exchange->why,
              "the answer is none to this WebSocket key");
    code = COFFER_IO;
  }
  return code;
}

int32_t
coffer_http_websocket (struct coffer_http *http, struct coffer_call *call,
                       const char *protocols,
                       const struct coffer_http_request *request,
                       struct coffer_http_reply *reply, int *fd)
{
  struct http_exchange exchange;
  int32_t code = begin (&exchange, http, call, request, reply, fd);

  if (code == COFFER_OK)
    code = run_websocket (&exchange, protocols, fd);
  return finish (&exchange, code, *fd);
}
