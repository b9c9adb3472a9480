/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP for providers of services, over libcurl.
 *
 * A client stands for one origin (a url or a unix socket) and keeps its idle
 * connections.  Each is made by the host (coffer_connect), so that names are
 * resolved and permissions checked there: the worker has no sockets and looks
 * nothing up.  Any thread may use a client, and several at once.
 *
 *   struct coffer_http_request request = { 0 };
 *   coffer_autoreply struct coffer_http_reply reply = { 0 };
 *
 *   request.path = "/containers/json?all=1";
 *   if (coffer_http_do (http, call, &request, &reply) != COFFER_OK)
 *     return coffer_http_fail (call, &reply);
 *   ... reply.json ...
 *
 * Every wait ends at call->deadline_ns (COFFER_TIMEOUT) or when
 * call->cancel_fd becomes readable (COFFER_CANCELLED).
 *
 * Part of libcoffer-http.a (pkg-config coffer-http); needs libcurl and
 * jansson. */

#ifndef COFFER_HTTP_H
#define COFFER_HTTP_H

#include <stddef.h>
#include <stdint.h>

#include <coffer/buffer.h>
#include <coffer/frames.h>
#include <coffer/provider.h>

#ifdef __cplusplus
extern "C" {
#endif

struct json_t;                  /* jansson's */

/* ---- the client ---------------------------------------------------------- */

struct coffer_http;

/* All strings are copied.  Zeros are defaults. */
struct coffer_http_config {
  /* "http://HOST[:PORT][/PREFIX]", "https://…", or "unix:///PATH" (where Host
   * is "localhost").  A user name or password in it is refused. */
  const char *base;
  /* "Name: value", sent with each request to this origin and to no other:
   * credentials belong here.  What is in them is hidden in messages. */
  const char *const *headers;
  const char *user_agent;       /* NULL: "coffer" */
  /* TLS: certificates that are trusted (NULL: the system's), and this client's
   * own with its key.  Each is the path of a PEM file or the PEM itself. */
  const char *ca, *certificate, *key;
  /* 1: whoever answers is believed.  Refused (COFFER_INVALID) but for a
   * loopback address. */
  int insecure;
  /* What a configuration key of type `proxy` holds; NULL or "": none.  What
   * is on this machine is never asked for through one. */
  const char *proxy;
  /* Hidden wherever they would show in a message: as they are, URL-encoded,
   * in base64.  Under 8 bytes: not looked for. */
  const char *const *secrets;
  size_t head_most;             /* bytes of a reply's head; 64 KiB */
  size_t body_most;             /* bytes of a body in memory; 16 MiB */
  unsigned idle;                /* connections kept for later; 8 */
  unsigned tries;               /* of what may be sent again; 4 */
};

/* Connects to nothing yet.  Not COFFER_OK: the call has been failed with what
 * is wrong (coffer_fail), and *out is NULL. */
int32_t coffer_http_new (struct coffer_call *call,
                         const struct coffer_http_config *config,
                         struct coffer_http **out);
/* When no call uses it any more.  NULL is fine. */
void coffer_http_free (struct coffer_http *http);

/* ---- a request ----------------------------------------------------------- */

enum coffer_http_flags {
  /* May be sent again although its method does not say so: GET, HEAD, PUT,
   * DELETE and OPTIONS may without it. */
  COFFER_HTTP_REPEATABLE = 1,
  /* Is sent once, whatever its method. */
  COFFER_HTTP_ONCE = 2,
  /* A status of 400 and more is a reply like others: COFFER_OK. */
  COFFER_HTTP_ANY_STATUS = 4,
  /* Redirects (of GET and HEAD, at most 5) are replies like others too. */
  COFFER_HTTP_NO_REDIRECT = 8
};

/* Takes a part of a body as it comes.  COFFER_OK, or the code with which the
 * request ends; may wait, within the call's deadline. */
typedef int32_t (*coffer_http_sink) (void *data, const void *bytes,
                                     size_t size);

/* All of it is borrowed until the function returns.  Zeros are defaults. */
struct coffer_http_request {
  const char *method;           /* NULL: GET, with a body POST */
  const char *path;             /* "/v1/x?y=z", encoded, behind the base's
                                 * prefix */
  const char *const *headers;   /* "Name: value", besides the client's */
  unsigned flags;
  /* At most one body: json, bytes, or what `body_fd` has when body_from_fd is
   * 1 (body_size bytes, or to its end when that is -1: then it is chunked).
   * Bytes are application/octet-stream unless `headers` say otherwise.  A file
   * is sent from its offset; one that can seek may be sent again. */
  const struct json_t *json;
  const void *bytes;
  size_t size;
  int body_from_fd;
  int body_fd;
  int64_t body_size;
  /* Where the body of a 2xx goes instead of reply->body, without a limit: to
   * the sink, or to `out_fd` when body_to_fd is 1.  Bodies of other statuses
   * are in reply->body. */
  coffer_http_sink sink;
  void *sink_data;
  int body_to_fd;
  int out_fd;
  /* Nothing came from the peer for so long: COFFER_TIMEOUT.  0: until the
   * deadline. */
  int64_t silence_ns;
};

/* {0} before the first use; coffer_http_reply_fini after the last. */
struct coffer_http_reply {
  int32_t code;                 /* what the function returned */
  int32_t retryable;            /* enum coffer_retryable */
  int status;                   /* 0: none came */
  char *body;                   /* NUL-terminated beyond size; NULL: none.
                                 * Of a failure at most 64 KiB */
  size_t size;
  struct json_t *json;          /* the body, when its type says JSON and it is;
                                 * NULL for a status of 400 and more unless
                                 * ANY_STATUS: `said` is what it said */
  uint64_t received;            /* bytes of the body, wherever they went */
  uint64_t sent;                /* bytes of the request's */
  char *message;                /* of a failure: one line, nothing secret */
  char *said;                   /* of a failure: what the server's text was, one
                                 * line, cut and with secrets hidden; or NULL */
  struct coffer_strings headers;        /* use coffer_http_header */
};

#define coffer_autoreply __attribute__ ((cleanup (coffer_http_reply_fini)))

/* Sends and waits for the whole reply.  COFFER_OK for 2xx (and what the flags
 * say); else a code, which reply->message explains:
 *   400, 422 and other 4xx  INVALID          429  BUSY
 *   401, 407  UNAUTHENTICATED                408, 504  TIMEOUT
 *   403  DENIED     404, 410  NOT_FOUND      405, 501  UNSUPPORTED
 *   409, 412, 423  CONFLICT                  413, 507  LIMIT
 *   500  IO       502, 503 and other 5xx  UNAVAILABLE
 *   no connection, refused: UNAVAILABLE      permission: DENIED
 *   bad TLS: UNAVAILABLE, never tried again  over a cap: LIMIT
 *   cut off, wrong length, no HTTP: IO
 * A caller that knows its service better looks at reply->status.  What may be
 * sent again is, after 429, 502, 503, 504 and lost connections, as Retry-After
 * says or after a wait that doubles, while the deadline allows it and as long
 * as nothing has gone to the sink or to out_fd. */
int32_t coffer_http_do (struct coffer_http *http, struct coffer_call *call,
                        const struct coffer_http_request *request,
                        struct coffer_http_reply *reply);
void coffer_http_reply_fini (struct coffer_http_reply *reply);

/* A header's value, the first of that name in any case of letters; NULL. */
const char *coffer_http_header (const struct coffer_http_reply *reply,
                                const char *name);

/* Fails the call with what the reply says; returns its code. */
int32_t coffer_http_fail (struct coffer_call *call,
                          const struct coffer_http_reply *reply);

/* ---- raw streams ---------------------------------------------------------
 * Sends a request, with a body of json or bytes, that asks to leave HTTP:
 * `Connection: Upgrade` and `Upgrade: PROTOCOL` ("tcp" for container engines).
 * After 101, or a 200 with neither a length nor chunks as older engines say,
 * *fd is a stream socket of the caller's, and its first byte is the first
 * behind the reply's head: nothing was read too far.
 * shutdown (*fd, SHUT_WR) ends what is sent, and the other direction goes on;
 * with TLS or a proxy a thread of the library moves the bytes, and what is ended
 * by it is TLS's direction (where libcurl's TLS is OpenSSL; elsewhere the server
 * learns of it when *fd is closed).  Such a stream ends with its client.  Any
 * other reply is a failure as of coffer_http_do, with its body; *fd is -1. */
int32_t coffer_http_upgrade (struct coffer_http *http,
                             struct coffer_call *call, const char *protocol,
                             const struct coffer_http_request *request,
                             struct coffer_http_reply *reply, int *fd);

/* The same for WebSocket: makes the key and checks the answer.  `protocols` is
 * what Sec-WebSocket-Protocol says, or NULL; what was chosen is in the reply's
 * headers.  Then coffer/websocket.h. */
int32_t coffer_http_websocket (struct coffer_http *http,
                               struct coffer_call *call,
                               const char *protocols,
                               const struct coffer_http_request *request,
                               struct coffer_http_reply *reply, int *fd);

/* ---- helpers ------------------------------------------------------------- */

/* Appends `text` as one segment of a path or one value of a query: all but
 * letters, digits and -._~ becomes %XX. */
void coffer_http_add_encoded (struct coffer_buffer *out, const char *text);

/* A sink for a body of one JSON value a line: `request.sink =
 * coffer_http_json_lines, request.sink_data = &lines`.  `take` gets each value
 * (borrowed).  Empty lines are skipped; a line that is no JSON ends the
 * request with COFFER_IO. */
struct coffer_http_json_lines {
  int32_t (*take) (void *data, const struct json_t *value);
  void *data;
  size_t most;                  /* bytes of a line; 0: 1 MiB */
  struct coffer_lines lines;    /* for these functions only */
};
int32_t coffer_http_json_lines (void *lines, const void *bytes, size_t size);
/* After the request: takes a last line that had no end, and frees. */
int32_t coffer_http_json_lines_end (struct coffer_http_json_lines *lines);

#ifdef __cplusplus
}
#endif

#endif /* COFFER_HTTP_H */
