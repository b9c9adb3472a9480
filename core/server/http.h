/* SPDX-License-Identifier: Apache-2.0 */
/* One request and its reply, as a handler of a surface sees them.
 *
 * A handler runs on a thread of its own, which may block: on the thread of the
 * client's connection or, for ROUTE_STREAM, on another one, while the
 * connection's thread feeds the body into a pipe.  It returns 0 with the reply
 * filled by one of reply_..., or -1 with an error, which becomes
 * {"error":{…}} with the HTTP status of the table of errors.  What waits
 * watches request->cancel_fd and keeps to request->deadline_ns. */

#ifndef SERVER_HTTP_H
#define SERVER_HTTP_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <jansson.h>

#include "base/error.h"
#include "policy/shares.h"
#include "provider/provider.h"
#include "server/auth.h"
#include "server/route.h"

#define REQUEST_ID_SIZE 32      /* "req-" + 26 characters + NUL */

struct server;
struct reply;

struct request {
  struct server *server;
  const struct route *route;
  const char *method;           /* GET also for HEAD */
  int head;                     /* it is a HEAD: no body is sent */
  const char *path, *query;     /* raw, as they came; query NULL: none */
  /* The {x} of the path in order, decoded: never with NUL, nor, but for
   * {rest…}, with a slash.  Bytes of anybody, not always UTF-8. */
  const char *params[ROUTE_MAX_PARAMS];
  struct caller caller;         /* who asks */
  char id[REQUEST_ID_SIZE];     /* the X-Request-Id of the reply, in logs too */
  int cancel_fd;                /* readable: the client is gone, the deadline
                                 * passed, or the daemon ends */
  int64_t began_ns, deadline_ns;        /* CLOCK_MONOTONIC; INT64_MAX: none */
  json_t *body;                 /* ROUTE_JSON: an object, {} when it is empty */
  const char *body_text;        /* ROUTE_JSON, ROUTE_TEXT: as it came */
  size_t body_size;
  int body_fd;                  /* ROUTE_STREAM: a pipe of it; else -1.  At its
                                 * end ask request_body_complete */
  struct reply *reply;          /* for reply_... alone */
};

/* NULL: absent.  Names of headers in any case; of the query decoded, the first
 * of that name. */
const char *request_header (const struct request *request, const char *name);
const char *request_query (const struct request *request, const char *name);
/* The nth of that name, from 0 on. */
const char *request_query_nth (const struct request *request,
                               const char *name, size_t n);
/* Each header as it came, until `each` returns anything but 0. */
void request_each_header (const struct request *request,
                          int (*each) (void *data, const char *name,
                                       const char *value), void *data);
/* Leaves *inout alone when it is absent; E_REQUEST when it is no number within
 * the bounds. */
int request_query_u64 (const struct request *request, const char *name,
                       uint64_t min, uint64_t max, uint64_t *inout,
                       struct error **err);
/* Whether the body came to its end: one that the client cut short must never
 * be taken as whole.  After the end of body_fd was read. */
int request_body_complete (const struct request *request);
/* Its tenant's share of what output takes in memory: what is taken of it goes
 * back when the reply was sent. */
struct share_hold *request_output (struct request *request);
/* Deadline and cancel_fd of the request, no sink. */
struct provider_call request_call (const struct request *request);
/* For who must have answered sooner than others: the deadline is no later than
 * that, and cancel_fd is readable then. */
void request_hasten (struct request *request, int64_t deadline_ns);
/* For who tells meanwhile how far it is: no sooner than that. */
void request_prolong (struct request *request, int64_t deadline_ns);

/* ---- replies: one of them, once ----------------------------------------- */

int reply_json (struct request *request, int status, json_t *take_value,
                struct error **err);
int reply_bytes (struct request *request, int status, const char *type,
                 const void *bytes, size_t size, struct error **err);
int reply_empty (struct request *request, int status, struct error **err);
/* `size` bytes of a file from `offset` on.  A file that is shorter by then cuts
 * the connection: the client sees a broken transfer. */
int reply_fd (struct request *request, int status, const char *type,
              int take_fd, uint64_t offset, uint64_t size, struct error **err);

/* A body that is made while it is sent.  `fill` writes 1 to max bytes and
 * returns how many, 0 at the end, -1 to cut the connection (a broken transfer,
 * never a short success).  It may block, and then watches request->cancel_fd,
 * which with ROUTE_LONG has no deadline.  `free` is called once, on whatever
 * becomes of the reply, while the request is still there. */
struct reply_stream {
  ssize_t (*fill) (void *data, char *out, size_t max);
  void (*free) (void *data);    /* NULL: nothing to free */
  void *data;
  uint64_t size;                /* of all of it; 0 and UINT64_MAX: not known.
                                 * Less is a broken transfer */
};
/* type NULL: not said. */
int reply_stream (struct request *request, int status, const char *type,
                  const struct reply_stream *take_stream, struct error **err);

/* 101: `run` gets the connection's socket, which stays the server's to close,
 * on the connection's thread, with what the client sent already; the request
 * is there until it returns.  `free` as above.  The route has ROUTE_UPGRADE. */
struct reply_upgrade {
  void (*run) (void *data, int fd, const char *early, size_t size);
  void (*free) (void *data);
  void *data;
};
int reply_upgrade (struct request *request, const char *protocol,
                   const struct reply_upgrade *take_upgrade,
                   struct error **err);

/* A header more, before or after the reply is filled; control characters are
 * refused. */
int reply_header (struct request *request, const char *name,
                  const char *value, struct error **err);

#endif /* SERVER_HTTP_H */
