/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the client: where it asks (origin.c), what it hides (secrets.c),
 * one transfer by libcurl (transfer.c), what a reply means (reply.c), and what
 * is tried again or followed (exchange.c). */

#ifndef HTTP_CLIENT_H
#define HTTP_CLIENT_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include <curl/curl.h>

#include <coffer/http.h>
#include <coffer/http1.h>

#define ERROR_BODY_MOST 65536   /* what is kept of a failure's body */
#define PIECE_SIZE 131072L      /* libcurl's buffers */

/* ---- origin.c ------------------------------------------------------------ */

struct http_origin {
  int is_tls, is_unix;
  char *url;                    /* "https://HOST[:PORT]", without a path */
  char *host;                   /* without brackets */
  unsigned port;
  char *target;                 /* coffer_connect's */
};

/* *rest: the path behind it, "" when there is none.  NULL, or what is wrong
 * with it. */
const char *http_origin_parse (const char *url, struct http_origin *out,
                               const char **rest);
void http_origin_fini (struct http_origin *origin);
int http_origin_same (const struct http_origin *a,
                      const struct http_origin *b);
/* It is on this machine. */
int http_origin_is_local (const struct http_origin *origin);

struct http_proxy {
  long kind;                    /* CURLPROXY_... */
  char *host;
  unsigned port;
  char *url;                    /* NULL: there is none */
  char *user;                   /* "NAME:PASSWORD", decoded; NULL */
  char *target;
};

const char *http_proxy_parse (const char *text, struct http_proxy *out);
void http_proxy_fini (struct http_proxy *proxy);

/* ---- secrets.c ----------------------------------------------------------- */

#define SECRET_LEAST 8

/* Adds the forms in which it is looked for; too short a one has none. */
void http_secret_add (struct coffer_strings *forms, const char *secret);
/* Of "Name: value": the value and each of its words. */
void http_secret_add_header (struct coffer_strings *forms,
                             const char *header);
/* In place. */
void http_secrets_hide (const struct coffer_strings *forms, char *text);

/* ---- http.c -------------------------------------------------------------- */

/* A connection, or none yet: used by one call at a time. */
struct http_handle {
  CURL *easy;
  CURLM *multi;
  struct http_handle *next;
};

struct http_pump;

struct coffer_http {
  struct http_origin origin;
  char *prefix;                 /* of paths; "" or "/x/y" */
  struct http_proxy proxy;
  struct coffer_strings headers;
  char *user_agent, *ca, *certificate, *key;
  int insecure;
  size_t head_most, body_most;
  unsigned idle_most, tries;
  struct coffer_strings secrets;
  pthread_mutex_t lock;
  struct http_handle *idle;     /* the rest is locked */
  unsigned n_idle;
  struct http_pump *pumps;
};

struct http_handle *http_handle_get (struct coffer_http *http);
/* keep: its connection may serve another call. */
void http_handle_put (struct coffer_http *http, struct http_handle *handle,
                      int keep);
void http_handle_free (struct http_handle *handle);

/* ---- one call ------------------------------------------------------------ */

struct http_exchange {
  struct coffer_http *http;
  struct coffer_call *call;
  const struct coffer_http_request *request;
  struct coffer_http_reply *reply;
  const char *method;
  const struct http_origin *origin;     /* of this hop */
  struct http_origin elsewhere; /* what a redirect led to */
  int is_foreign;               /* it is not the client's own */
  char *path;                   /* of this hop, with the prefix */
  char *json;                   /* the body, of a json one */
  const char *body;             /* in memory; NULL: none, or from body_fd */
  size_t body_size;
  int64_t body_start;           /* of body_fd; -1: it cannot seek */
  int is_repeatable;

  /* Of one transfer. */
  int32_t code;                 /* why a callback ended it; COFFER_OK */
  char why[300];                /* of a failure that is no status */
  int is_sent;                  /* the request has gone out */
  int is_lost;                  /* the connection failed: another may not */
  int is_vain;                  /* trying again is in vain */
  int is_enough;                /* all of the body that is kept has come */
  int has_head;                 /* all of the last head has come */
  int has_body;                 /* its first byte has come */
  int is_delivered;             /* something went to the sink or out_fd */
  int is_waiting;               /* for body_fd */
  size_t head_size;
  uint64_t body_read;           /* of body_fd */
  int64_t last_ns;              /* when something came last */
  int64_t retry_after_ns;       /* what the server asked for; 0 */
  struct coffer_buffer text;    /* the reply's body */
  char curl_error[CURL_ERROR_SIZE];
};

/* ---- request.c ----------------------------------------------------------- */

/* COFFER_OK, or a code with exchange->why. */
int32_t http_exchange_init (struct http_exchange *exchange,
                            struct coffer_http *http,
                            struct coffer_call *call,
                            const struct coffer_http_request *request,
                            struct coffer_http_reply *reply);
void http_exchange_fini (struct http_exchange *exchange);
/* NULL, or what is wrong with "Name: value" for one that is sent. */
const char *http_header_check (const char *header);
/* Each "Name: value" of this hop. */
void http_exchange_headers (const struct http_exchange *exchange,
                            struct coffer_strings *out);

/* ---- transfer.c ---------------------------------------------------------- */

/* One request and its reply, whatever its status: COFFER_OK when it is whole,
 * else a code with exchange->why. */
int32_t http_transfer (struct http_exchange *exchange);
/* Connects for a stream that is no HTTP (upgrade.c); the same. */
int32_t http_transfer_connect (struct http_exchange *exchange,
                               struct http_handle *handle);

/* ---- reply.c ------------------------------------------------------------- */

/* The code of a status; COFFER_OK for one that is none of a failure. */
int32_t http_status_code (int status);
/* Fills the reply from what has come; `code` COFFER_OK: the status decides.
 * What it returns is the reply's code. */
int32_t http_reply_finish (struct http_exchange *exchange, int32_t code);
/* Takes one line of a head.  -1: it is too large, or memory is out. */
int http_reply_take_line (struct http_exchange *exchange, const char *line,
                          size_t size);
/* What errno of a wait or a transfer means. */
int32_t http_errno_code (int code);

#endif /* HTTP_CLIENT_H */
