/* SPDX-License-Identifier: Apache-2.0 */
/* One request and its reply by libcurl, within the call's deadline.
 *
 * libcurl neither resolves nor connects here: the host does (coffer_connect),
 * and what libcurl takes for the address is never used.  It sends a request anew
 * by itself when a kept connection turns out to be dead; it may not once a
 * request that must not be done twice has been sent. */

#define _GNU_SOURCE

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "client.h"

#define ADDRESS "127.0.0.1"     /* of nothing: see above */

static void
end_with (struct http_exchange *exchange, int32_t code, const char *why)
{
  if (exchange->code != COFFER_OK)
    return;
  exchange->code = code;
  snprintf (exchange->why, sizeof exchange->why, "%s", why);
}

/* ---- callbacks: the connection ---- */

static curl_socket_t
open_socket (void *data, curlsocktype purpose, struct curl_sockaddr *address)
{
  struct http_exchange *exchange = data;
  const struct http_proxy *proxy = &exchange->http->proxy;
  const char *target = proxy->target ? proxy->target
                                     : exchange->origin->target;
  int32_t fd;

  (void) purpose;
  (void) address;
  if (exchange->code != COFFER_OK)
    return CURL_SOCKET_BAD;
  if (exchange->is_sent && !exchange->is_repeatable) {
    end_with (exchange, COFFER_IO, "the connection was lost before an answer "
              "came: it may have been done or not");
    exchange->is_lost = 1;
    return CURL_SOCKET_BAD;
  }
  fd = coffer_connect (exchange->call, target);
  if (fd >= 0)
    return fd;
  exchange->is_lost = fd == -COFFER_UNAVAILABLE;
  end_with (exchange, -fd, "no connection to ");
  snprintf (exchange->why + strlen (exchange->why),
            sizeof exchange->why - strlen (exchange->why), "%.200s", target);
  return CURL_SOCKET_BAD;
}

static int
is_connected (void *data, curl_socket_t fd, curlsocktype purpose)
{
  (void) data;
  (void) fd;
  (void) purpose;
  return CURL_SOCKOPT_ALREADY_CONNECTED;
}

static int
trace (CURL *easy, curl_infotype kind, char *bytes, size_t size, void *data)
{
  struct http_exchange *exchange = data;

  (void) easy;
  (void) bytes;
  (void) size;
  if (kind == CURLINFO_HEADER_OUT)
    exchange->is_sent = 1;
  return 0;
}

/* ---- callbacks: the request's body ---- */

static size_t
body_most (const struct http_exchange *exchange, size_t room)
{
  const int64_t size = exchange->request->body_size;
  const uint64_t left = size < 0 ? UINT64_MAX
                                 : (uint64_t) size - exchange->body_read;

  return left < room ? (size_t) left : room;
}

static size_t
read_body (char *bytes, size_t one, size_t count, void *data)
{
  struct http_exchange *exchange = data;
  struct pollfd p = { exchange->request->body_fd, POLLIN, 0 };
  const size_t most = body_most (exchange, one * count);
  ssize_t n = 0;

  if (most > 0 && poll (&p, 1, 0) == 0) {
    exchange->is_waiting = 1;
    return CURL_READFUNC_PAUSE;
  }
  do {
    n = most > 0 ? read (p.fd, bytes, most) : 0;
  } while (n < 0 && errno == EINTR);
  if (n < 0) {
    end_with (exchange, COFFER_IO, "reading what is to be sent failed");
    return CURL_READFUNC_ABORT;
  }
  if (n == 0 && most > 0 && exchange->request->body_size >= 0) {
    end_with (exchange, COFFER_IO, "what is to be sent ended too early");
    return CURL_READFUNC_ABORT;
  }
  exchange->body_read += (uint64_t) n;
  exchange->last_ns = coffer_now_ns ();
  return (size_t) n;
}

static int
seek_body (void *data, curl_off_t offset, int origin)
{
  struct http_exchange *exchange = data;

  if (origin != SEEK_SET || exchange->body_start < 0
      || lseek (exchange->request->body_fd, exchange->body_start + offset,
                SEEK_SET) < 0)
    return CURL_SEEKFUNC_FAIL;
  exchange->body_read = (uint64_t) offset;
  return CURL_SEEKFUNC_OK;
}

/* ---- callbacks: the reply ---- */

static size_t
take_line (char *bytes, size_t one, size_t count, void *data)
{
  struct http_exchange *exchange = data;

  exchange->last_ns = coffer_now_ns ();
  if (exchange->has_body)
    return one * count;         /* a trailer: nobody asks for it */
  if (http_reply_take_line (exchange, bytes, one * count) == 0)
    return one * count;
  end_with (exchange, COFFER_LIMIT, "the head of the reply is too large");
  return 0;
}

static int32_t
deliver (struct http_exchange *exchange, const char *bytes, size_t size)
{
  const struct coffer_http_request *request = exchange->request;
  int32_t code;

  exchange->is_delivered = 1;
  if (request->sink) {
    code = request->sink (request->sink_data, bytes, size);
    if (code != COFFER_OK)
      end_with (exchange, code, "what came was not taken");
    return code;
  }
  if (coffer_write_until (request->out_fd, bytes, size,
                          exchange->call->deadline_ns,
                          exchange->call->cancel_fd) == 0)
    return COFFER_OK;
  code = http_errno_code (errno);
  end_with (exchange, code, errno == EPIPE ? "the reader of the body has gone"
                                           : "writing the body failed");
  return code;
}

static int
keep (struct http_exchange *exchange, const char *bytes, size_t size)
{
  const int is_failure = http_status_code (exchange->reply->status)
                         != COFFER_OK
                         && !(exchange->request->flags
                              & COFFER_HTTP_ANY_STATUS);
  const size_t most = is_failure ? ERROR_BODY_MOST
                                 : exchange->http->body_most;
  const size_t room = most - exchange->text.size;

  coffer_buffer_add (&exchange->text, bytes, size < room ? size : room);
  if (exchange->text.failed)
    end_with (exchange, COFFER_INTERNAL, "out of memory");
  else if (size > room && is_failure)
    exchange->is_enough = 1;
  else if (size > room)
    end_with (exchange, COFFER_LIMIT, "the body of the reply is too large");
  return exchange->code == COFFER_OK && !exchange->is_enough ? 0 : -1;
}

static size_t
take_body (char *bytes, size_t one, size_t count, void *data)
{
  struct http_exchange *exchange = data;
  const struct coffer_http_request *request = exchange->request;
  const size_t size = one * count;
  const int is_given = (request->sink || request->body_to_fd)
                       && exchange->reply->status / 100 == 2;

  exchange->last_ns = coffer_now_ns ();
  exchange->has_body = 1;
  exchange->reply->received += size;
  if (is_given)
    return deliver (exchange, bytes, size) == COFFER_OK ? size : 0;
  return keep (exchange, bytes, size) == 0 ? size : 0;
}

/* ---- options ---- */

struct lists {
  struct curl_slist *headers, *resolve;
};

static void
lists_free (struct lists *lists)
{
  curl_slist_free_all (lists->headers);
  curl_slist_free_all (lists->resolve);
}

static int
append (struct curl_slist **list, const char *text)
{
  struct curl_slist *longer = curl_slist_append (*list, text);

  if (longer)
    *list = longer;
  return longer ? 0 : -1;
}

/* libcurl takes "Name:" for a header that it is to leave out. */
static int
header_append (struct curl_slist **list, char *header)
{
  char *colon = strchr (header, ':');

  if (colon[1 + strspn (colon + 1, " \t")] == '\0') {
    colon[0] = ';';
    colon[1] = '\0';
  }
  return append (list, header);
}

static int
lists_make (const struct http_exchange *exchange, struct lists *lists)
{
  const struct http_proxy *proxy = &exchange->http->proxy;
  coffer_autostrings struct coffer_strings headers = { 0 };
  char entry[512];
  int r;

  http_exchange_headers (exchange, &headers);
  r = headers.failed ? -1 : append (&lists->headers, "Expect:");
  for (size_t i = 0; r == 0 && i < headers.count; i++)
    r = header_append (&lists->headers, headers.items[i]);
  snprintf (entry, sizeof entry, "%s:%u:" ADDRESS, exchange->origin->host,
            exchange->origin->port ? exchange->origin->port : 80);
  if (r == 0 && !strchr (exchange->origin->host, ':'))
    r = append (&lists->resolve, entry);
  if (r == 0 && proxy->host && !strchr (proxy->host, ':')) {
    snprintf (entry, sizeof entry, "%s:%u:" ADDRESS, proxy->host,
              proxy->port);
    r = append (&lists->resolve, entry);
  }
  return r;
}

#define SET(option, value)                                                    \
  do {                                                                        \
    if (r == CURLE_OK)                                                        \
      r = curl_easy_setopt (easy, option, value);                             \
  } while (0)

/* What tools write may have words before the first block. */
static int
is_pem (const char *text)
{
  return strstr (text, "-----BEGIN ") != NULL;
}

/* A path, or the PEM itself. */
static CURLcode
set_pem (CURL *easy, CURLoption file, CURLoption blob, const char *value)
{
  struct curl_blob bytes;

  if (!value)
    return CURLE_OK;
  if (!is_pem (value))
    return curl_easy_setopt (easy, file, value);
  bytes = (struct curl_blob) { (void *) value, strlen (value),
                               CURL_BLOB_NOCOPY };
  return curl_easy_setopt (easy, blob, &bytes);
}

static CURLcode
set_tls (CURL *easy, const struct http_exchange *exchange)
{
  const struct coffer_http *http = exchange->http;
  const int believe = http->insecure && !exchange->is_foreign;
  CURLcode r = CURLE_OK;

  SET (CURLOPT_SSLVERSION, (long) CURL_SSLVERSION_TLSv1_2);
  SET (CURLOPT_SSL_VERIFYPEER, believe ? 0L : 1L);
  SET (CURLOPT_SSL_VERIFYHOST, believe ? 0L : 2L);
  if (r == CURLE_OK && http->ca)
#if LIBCURL_VERSION_NUM >= 0x074d00
    r = set_pem (easy, CURLOPT_CAINFO, CURLOPT_CAINFO_BLOB, http->ca);
#else
    r = is_pem (http->ca) ? CURLE_NOT_BUILT_IN
                          : curl_easy_setopt (easy, CURLOPT_CAINFO, http->ca);
#endif
  if (http->ca)
    SET (CURLOPT_CAPATH, NULL);
  if (exchange->is_foreign)
    return r;
  if (r == CURLE_OK)
    r = set_pem (easy, CURLOPT_SSLCERT, CURLOPT_SSLCERT_BLOB,
                 http->certificate);
  if (r == CURLE_OK)
    r = set_pem (easy, CURLOPT_SSLKEY, CURLOPT_SSLKEY_BLOB, http->key);
  return r;
}

/* Nothing of the environment: the host has read it. */
static CURLcode
set_proxy (CURL *easy, const struct http_proxy *proxy)
{
  CURLcode r = CURLE_OK;

  SET (CURLOPT_PROXY, proxy->url ? proxy->url : "");
  SET (CURLOPT_NOPROXY, "");
  if (!proxy->url)
    return r;
  SET (CURLOPT_PROXYTYPE, proxy->kind);
  SET (CURLOPT_PROXYAUTH, CURLAUTH_BASIC);
  SET (CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  if (proxy->user)
    SET (CURLOPT_PROXYUSERPWD, proxy->user);
  return r;
}

static CURLcode
set_connection (CURL *easy, struct http_exchange *exchange,
                const struct lists *lists)
{
  CURLcode r = CURLE_OK;

#if LIBCURL_VERSION_NUM >= 0x075500
  SET (CURLOPT_PROTOCOLS_STR, "http,https");
#else
  SET (CURLOPT_PROTOCOLS, (long) (CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
  SET (CURLOPT_NOSIGNAL, 1L);
  SET (CURLOPT_HTTP_VERSION, (long) CURL_HTTP_VERSION_1_1);
  SET (CURLOPT_PATH_AS_IS, 1L);
  SET (CURLOPT_BUFFERSIZE, PIECE_SIZE);
  SET (CURLOPT_UPLOAD_BUFFERSIZE, PIECE_SIZE);
  SET (CURLOPT_RESOLVE, lists->resolve);
  SET (CURLOPT_OPENSOCKETFUNCTION, open_socket);
  SET (CURLOPT_OPENSOCKETDATA, exchange);
  SET (CURLOPT_SOCKOPTFUNCTION, is_connected);
  SET (CURLOPT_ERRORBUFFER, exchange->curl_error);
  if (r == CURLE_OK)
    r = set_proxy (easy, &exchange->http->proxy);
  if (r == CURLE_OK)
    r = set_tls (easy, exchange);
  return r;
}

static CURLcode
set_body (CURL *easy, struct http_exchange *exchange)
{
  const struct coffer_http_request *request = exchange->request;
  CURLcode r = CURLE_OK;

  if (request->body_from_fd) {
    SET (CURLOPT_UPLOAD, 1L);
    SET (CURLOPT_INFILESIZE_LARGE, (curl_off_t) request->body_size);
    SET (CURLOPT_READFUNCTION, read_body);
    SET (CURLOPT_READDATA, exchange);
    SET (CURLOPT_SEEKFUNCTION, seek_body);
    SET (CURLOPT_SEEKDATA, exchange);
  } else if (exchange->body || strcmp (exchange->method, "POST") == 0
             || strcmp (exchange->method, "PUT") == 0) {
    SET (CURLOPT_POST, 1L);
    SET (CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t) exchange->body_size);
    SET (CURLOPT_POSTFIELDS, exchange->body ? exchange->body : "");
  } else if (strcmp (exchange->method, "HEAD") == 0) {
    SET (CURLOPT_NOBODY, 1L);
  }
  SET (CURLOPT_CUSTOMREQUEST, exchange->method);
  return r;
}

static CURLcode
set_request (CURL *easy, struct http_exchange *exchange,
             const struct lists *lists)
{
  coffer_autobuffer struct coffer_buffer url = { 0 };
  CURLcode r = CURLE_OK;

  coffer_buffer_printf (&url, "%s%s", exchange->origin->url, exchange->path);
  if (url.failed)
    return CURLE_OUT_OF_MEMORY;
  SET (CURLOPT_URL, url.data);
  SET (CURLOPT_USERAGENT, exchange->http->user_agent);
  SET (CURLOPT_HTTPHEADER, lists->headers);
  SET (CURLOPT_HEADERFUNCTION, take_line);
  SET (CURLOPT_HEADERDATA, exchange);
  SET (CURLOPT_WRITEFUNCTION, take_body);
  SET (CURLOPT_WRITEDATA, exchange);
  /* That a request has gone out is said nowhere else. */
  SET (CURLOPT_VERBOSE, 1L);
  SET (CURLOPT_DEBUGFUNCTION, trace);
  SET (CURLOPT_DEBUGDATA, exchange);
  return r;
}

/* ---- waiting ---- */

/* COFFER_OK: go on. */
static int32_t
time_check (struct http_exchange *exchange, int64_t *until)
{
  const int64_t silence = exchange->request->silence_ns;
  const int64_t now = coffer_now_ns ();

  *until = exchange->call->deadline_ns;
  if (now >= *until) {
    end_with (exchange, COFFER_TIMEOUT, "no whole answer came in time");
  } else if (silence > 0) {
    if (now - exchange->last_ns >= silence)
      end_with (exchange, COFFER_TIMEOUT, "nothing came for too long");
    else if (silence - (now - exchange->last_ns) < *until - now)
      *until = now + silence - (now - exchange->last_ns);
  }
  return exchange->code;
}

static int32_t
wait_some (struct http_exchange *exchange, struct http_handle *handle)
{
  struct curl_waitfd fds[2] = { { 0 } };
  unsigned n = 0;
  int64_t until;
  int ready;

  if (time_check (exchange, &until) != COFFER_OK)
    return exchange->code;
  if (exchange->call->cancel_fd >= 0)
    fds[n++] = (struct curl_waitfd) { exchange->call->cancel_fd,
                                      CURL_WAIT_POLLIN, 0 };
  if (exchange->is_waiting)
    fds[n++] = (struct curl_waitfd) { exchange->request->body_fd,
                                      CURL_WAIT_POLLIN, 0 };
  if (curl_multi_poll (handle->multi, fds, n, coffer_poll_ms (until), &ready)
      != CURLM_OK)
    end_with (exchange, COFFER_INTERNAL, "waiting for the connection failed");
  else if (exchange->call->cancel_fd >= 0 && fds[0].revents)
    end_with (exchange, COFFER_CANCELLED, "the caller gave up");
  else if (exchange->is_waiting && fds[n - 1].revents) {
    exchange->is_waiting = 0;
    curl_easy_pause (handle->easy, CURLPAUSE_CONT);
  }
  return exchange->code;
}

/* What libcurl says of the transfer that has ended. */
static CURLcode
result_get (struct http_handle *handle)
{
  CURLMsg *message;
  int left;

  while ((message = curl_multi_info_read (handle->multi, &left)))
    if (message->msg == CURLMSG_DONE)
      return message->data.result;
  return CURLE_FAILED_INIT;
}

static CURLcode
run (struct http_exchange *exchange, struct http_handle *handle)
{
  CURLcode r = CURLE_ABORTED_BY_CALLBACK;
  int running = 1;

  exchange->last_ns = coffer_now_ns ();
  if (curl_multi_add_handle (handle->multi, handle->easy) != CURLM_OK)
    return CURLE_OUT_OF_MEMORY;
  for (;;) {
    if (curl_multi_perform (handle->multi, &running) != CURLM_OK)
      r = CURLE_FAILED_INIT;
    else if (!running)
      r = result_get (handle);
    else if (wait_some (exchange, handle) == COFFER_OK)
      continue;
    break;
  }
  return r;
}

/* ---- how it ended ---- */

static int
is_tls_failure (CURLcode r)
{
  return r == CURLE_PEER_FAILED_VERIFICATION || r == CURLE_SSL_CONNECT_ERROR
         || r == CURLE_SSL_CERTPROBLEM || r == CURLE_SSL_CIPHER
         || r == CURLE_SSL_CACERT_BADFILE || r == CURLE_SSL_ISSUER_ERROR
         || r == CURLE_SSL_INVALIDCERTSTATUS
         || r == CURLE_SSL_PINNEDPUBKEYNOTMATCH;
}

static int32_t
result_code (struct http_exchange *exchange, CURL *easy, CURLcode r)
{
  long answer = 0;

  curl_easy_getinfo (easy, CURLINFO_HTTP_CONNECTCODE, &answer);
  if (answer == 407)
    return COFFER_UNAUTHENTICATED;
  if (answer >= 300)
    return COFFER_UNAVAILABLE;
  exchange->is_vain = is_tls_failure (r);
  exchange->is_lost = r == CURLE_SEND_ERROR || r == CURLE_RECV_ERROR
                      || r == CURLE_GOT_NOTHING || r == CURLE_PARTIAL_FILE
                      || r == CURLE_COULDNT_CONNECT;
  if (is_tls_failure (r) || r == CURLE_COULDNT_CONNECT
      || r == CURLE_COULDNT_RESOLVE_HOST || r == CURLE_COULDNT_RESOLVE_PROXY
      || r == CURLE_PROXY)
    return COFFER_UNAVAILABLE;
  if (r == CURLE_OPERATION_TIMEDOUT)
    return COFFER_TIMEOUT;
  return r == CURLE_OUT_OF_MEMORY || r == CURLE_FAILED_INIT
           || r == CURLE_NOT_BUILT_IN || r == CURLE_UNKNOWN_OPTION
         ? COFFER_INTERNAL : COFFER_IO;
}

static int32_t
finish (struct http_exchange *exchange, CURL *easy, CURLcode r, int is_whole)
{
  curl_off_t sent = 0, wait = 0;

  curl_easy_getinfo (easy, CURLINFO_SIZE_UPLOAD_T, &sent);
  curl_easy_getinfo (easy, CURLINFO_RETRY_AFTER, &wait);
  /* libcurl counts the chunks' heads as well. */
  exchange->reply->sent = exchange->request->body_from_fd
                            ? exchange->body_read : (uint64_t) sent;
  exchange->retry_after_ns = wait > 0 && wait < 86400
                               ? wait * INT64_C (1000000000) : 0;
  if (exchange->code != COFFER_OK)
    return exchange->code;
  if (exchange->is_enough || (r == CURLE_OK && is_whole))
    return COFFER_OK;
  if (r == CURLE_OK) {
    /* To libcurl a head without its end is one. */
    exchange->is_lost = 1;
    end_with (exchange, COFFER_IO, "the connection was closed in the middle "
              "of the head of the reply");
    return exchange->code;
  }
  end_with (exchange, result_code (exchange, easy, r),
            exchange->curl_error[0] ? exchange->curl_error
                                    : curl_easy_strerror (r));
  return exchange->code;
}

static void
begin (struct http_exchange *exchange)
{
  exchange->code = COFFER_OK;
  exchange->why[0] = exchange->curl_error[0] = '\0';
  exchange->is_lost = exchange->is_vain = exchange->is_enough = 0;
  exchange->has_head = exchange->has_body = 0;
  exchange->is_waiting = exchange->is_sent = 0;
  exchange->head_size = 0;
  exchange->body_read = 0;
  exchange->reply->status = 0;
  exchange->reply->received = 0;
  coffer_strings_free (&exchange->reply->headers);
  coffer_buffer_clear (&exchange->text);
}

static int32_t
transfer (struct http_exchange *exchange, struct http_handle *handle,
          int connect_only, struct lists *lists)
{
  CURL *easy = handle->easy;
  CURLcode r;
  int32_t code;

  curl_easy_reset (easy);
  r = lists_make (exchange, lists) < 0 ? CURLE_OUT_OF_MEMORY
                                       : set_connection (easy, exchange,
                                                         lists);
  if (r == CURLE_OK)
    r = set_request (easy, exchange, lists);
  if (r == CURLE_OK && !connect_only)
    r = set_body (easy, exchange);
  if (connect_only) {
    SET (CURLOPT_CONNECT_ONLY, 1L);
    SET (CURLOPT_HTTPPROXYTUNNEL, 1L);
  }
  if (r == CURLE_OK)
    r = run (exchange, handle);
  code = finish (exchange, easy, r, connect_only || exchange->has_head);
  if (!connect_only || code != COFFER_OK)
    curl_multi_remove_handle (handle->multi, easy);
  return code;
}

int32_t
http_transfer_connect (struct http_exchange *exchange,
                       struct http_handle *handle)
{
  struct lists lists = { 0 };
  int32_t code;

  begin (exchange);
  code = transfer (exchange, handle, 1, &lists);
  /* The connection outlives the exchange. */
  curl_easy_setopt (handle->easy, CURLOPT_HTTPHEADER, NULL);
  curl_easy_setopt (handle->easy, CURLOPT_RESOLVE, NULL);
  curl_easy_setopt (handle->easy, CURLOPT_VERBOSE, 0L);
  curl_easy_setopt (handle->easy, CURLOPT_DEBUGFUNCTION, NULL);
  curl_easy_setopt (handle->easy, CURLOPT_ERRORBUFFER, NULL);
  lists_free (&lists);
  return code;
}

int32_t
http_transfer (struct http_exchange *exchange)
{
  struct http_handle *handle = http_handle_get (exchange->http);
  struct lists lists = { 0 };
  int32_t code;

  begin (exchange);
  if (!handle) {
    end_with (exchange, COFFER_INTERNAL, "out of memory");
    return exchange->code;
  }
  code = transfer (exchange, handle, 0, &lists);
  /* It knows of this exchange, and must not when that has gone. */
  curl_easy_reset (handle->easy);
  lists_free (&lists);
  http_handle_put (exchange->http, handle, code == COFFER_OK);
  return code;
}
