/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to an HTTP proxy: CONNECT, and those with a whole http URL. */

#ifndef PROXY_HTTP_H
#define PROXY_HTTP_H

#include "../target.h"

#define HTTP_HEAD_MAX 16384
/* What http_rewrite adds to a head at most. */
#define HTTP_HEAD_MORE (TARGET_TEXT_MAX + 64)

/* Where a request's body ends. */
struct http_body {
  int chunked;
  int done, bad;
  int state;                    /* of the chunks */
  uint64_t left;                /* bytes of the body, or of this chunk */
  uint32_t line;                /* bytes of a line between chunks */
};

struct http_head {
  int is_connect;
  size_t size;                  /* of the head, with the empty line */
  struct target target;
  struct http_body body;
  /* Why not: a status and a line for people. */
  int status;
  const char *why;
  int has_target;               /* the target was understood */
};

/* 1: it is whole; 0: more must come; -1: refused. */
int http_read (const char *bytes, size_t size, struct http_head *head);
/* The head as the server gets it: one request, of the path alone, for the host
 * of the URL.  Returns its size; `out` has room for head->size +
 * HTTP_HEAD_MORE. */
size_t http_rewrite (const char *bytes, const struct http_head *head,
                     char *out);
/* How many of these bytes are the body's; the rest is nobody's. */
size_t http_body_take (struct http_body *body, const char *bytes, size_t size);

#endif /* PROXY_HTTP_H */
