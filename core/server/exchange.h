/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of HTTP: a request with all that the server keeps for it, from its
 * first line until its reply was sent. */

#ifndef SERVER_EXCHANGE_H
#define SERVER_EXCHANGE_H

#include <pthread.h>
#include <stdatomic.h>

#include <microhttpd.h>

#include <coffer/buffer.h>

#include "server/connections.h"
#include "server/http.h"
#include "server/server.h"

struct reply {
  int status;                   /* 0: not filled yet */
  struct MHD_Response *response;
  uint64_t sent;                /* bytes of the body */
  struct coffer_strings headers;        /* name, value, name, value … */
  uint64_t size;                /* of what is sent at once */
  const char *bytes, *type;     /* that, the library's, until it is sent */
  struct stream *stream;        /* reply.c's, while the request is there */
  struct handover *handover;
};

struct exchange {
  struct request request;
  struct reply reply;
  struct MHD_Connection *http;
  struct connection *connection;
  struct serve_config *config;  /* as it was when it began */
  char *uri;                    /* raw */
  char *query;                  /* in it; NULL: none */
  char *params[ROUTE_MAX_PARAMS];
  struct coffer_strings arguments;      /* the query's: name, value … */
  int began;                    /* the first call for it was */
  int answered;                 /* a reply is queued */
  struct coffer_buffer body;
  uint64_t received;            /* bytes of the body */
  uint64_t progress;            /* of which the deadline knows */
  struct error *failed;         /* the body is not taken any more: the reply */
  int feed;                     /* ROUTE_STREAM: where the body goes */
  int handling;                 /* the handler's thread is there */
  pthread_t handler;
  int result;                   /* of the handler, and its error */
  struct error *error;
  struct idempotent *idempotent;        /* while it is handled */
  atomic_int complete;          /* the body came to its end */
  struct share_hold place, output;      /* of its tenant's shares */
};

struct exchange *exchange_new (struct server *server, struct connection *on,
                               struct MHD_Connection *http, const char *uri);
/* What MHD wants: the headers are there, a part of the body is, all is. */
enum MHD_Result exchange_begin (struct exchange *exchange, const char *method,
                                const char *target, const char *version);
enum MHD_Result exchange_take (struct exchange *exchange, const char *bytes,
                               size_t size);
enum MHD_Result exchange_finish (struct exchange *exchange);
/* The reply was sent, or the client is gone. */
void exchange_end (struct exchange *exchange);

/* A request of the exchange that it is the first part of. */
static inline struct exchange *
exchange_of (const struct request *request)
{
  return (struct exchange *) (uintptr_t) request;
}

/* Its body ends where its chunks say so. */
static inline int
exchange_is_chunked (const struct exchange *exchange)
{
  return request_header (&exchange->request, MHD_HTTP_HEADER_TRANSFER_ENCODING)
         != NULL;
}

/* Sends the reply that was filled, or the error. */
enum MHD_Result reply_send (struct exchange *exchange);
enum MHD_Result reply_send_error (struct exchange *exchange,
                                  struct error *take_error);
void reply_fini (struct exchange *exchange);

#endif /* SERVER_EXCHANGE_H */
