/* SPDX-License-Identifier: Apache-2.0 */
/* A reply of HTTP/1 from a server that nobody trusts, read strictly.
 *
 * It is never given on as it came: what was understood is written anew.  What
 * leaves a doubt of where it ends is refused.  One reply is read from a
 * connection, and nothing follows it.  Knows of nothing else here. */

#ifndef SERVER_API_HTTP1_H
#define SERVER_API_HTTP1_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

#define HTTP1_HEAD_MAX 65536    /* bytes of a head */
#define HTTP1_HEADERS_MAX 128

struct http1_header {
  const char *name, *value;     /* within the head's text */
};

enum http1_framing {
  HTTP1_NONE,                   /* there is no body */
  HTTP1_SIZED,
  HTTP1_CHUNKED,
  HTTP1_TO_END                  /* until the connection is closed */
};

struct http1_head {
  char *text;
  int status;
  size_t count;
  struct http1_header headers[HTTP1_HEADERS_MAX];
  enum http1_framing framing;
  uint64_t size;                /* HTTP1_SIZED; of a HEAD: what was said */
  int sized;                    /* a length was said */
};

/* How long the head is that `bytes` begins with, its empty line included; 0:
 * it has not come to its end; -1: none will, as it is too long. */
ssize_t http1_head_length (const char *bytes, size_t size);
/* Exactly one head.  no_body: the request was a HEAD.  E_UPSTREAM. */
int http1_head_parse (const char *bytes, size_t size, int no_body,
                      struct http1_head *out, struct error **err);
void http1_head_fini (struct http1_head *head);
/* The only one of that name; NULL: none, or several. */
const char *http1_header (const struct http1_head *head, const char *name);
/* Does a list of words with commas between them have this one? */
int http1_list_has (const char *list, const char *word);
/* A token: what names of headers and methods are. */
int http1_is_token (const char *text);

enum http1_state { HTTP1_DATA, HTTP1_CHUNK_SIZE, HTTP1_CHUNK_EXTENSION,
                   HTTP1_CHUNK_LF, HTTP1_CHUNK_CR_AFTER,
                   HTTP1_CHUNK_LF_AFTER, HTTP1_TRAILER, HTTP1_OVER };

struct http1_body {
  enum http1_framing framing;
  enum http1_state state;
  uint64_t left;                /* of the body, of the chunk */
  unsigned digits;              /* of a chunk's size */
  unsigned line, extra;         /* of a trailer: this one, all and extensions */
};

void http1_body_init (struct http1_body *body, const struct http1_head *head);
/* Reads on in `in`: *used bytes of it are done with, and the *n of them from
 * *data on are the body's.  0, or -1: it is broken. */
int http1_body_read (struct http1_body *body, const char *in, size_t size,
                     size_t *used, const char **data, size_t *n);
static inline int
http1_body_over (const struct http1_body *body)
{
  return body->state == HTTP1_OVER;
}
/* Whether the end of the connection is the body's. */
static inline int
http1_body_may_end (const struct http1_body *body)
{
  return body->state == HTTP1_OVER || body->framing == HTTP1_TO_END;
}

#endif /* SERVER_API_HTTP1_H */
