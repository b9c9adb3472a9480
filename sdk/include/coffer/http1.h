/* SPDX-License-Identifier: Apache-2.0 */
/* A reply of HTTP/1 from a server that nobody trusts, read strictly: what the
 * daemon makes of the services in sandboxes, and coffer_http_upgrade of its
 * server's.  It does no I/O.
 *
 * What leaves a doubt of where a reply ends is refused.  Whoever gives one on
 * writes anew what was understood.  No state but that of the objects: any thread,
 * each object from one at a time.  Part of libcoffer-http.a. */

#ifndef COFFER_HTTP1_H
#define COFFER_HTTP1_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define COFFER_HTTP1_HEAD_MAX 65536     /* bytes of a head */
#define COFFER_HTTP1_HEADERS_MAX 128

struct coffer_http1_header {
  const char *name, *value;     /* within the head's text */
};

enum coffer_http1_framing {
  COFFER_HTTP1_NONE,            /* there is no body */
  COFFER_HTTP1_SIZED,
  COFFER_HTTP1_CHUNKED,
  COFFER_HTTP1_TO_END           /* until the connection is closed */
};

struct coffer_http1_head {
  char *text;
  int status;
  size_t count;
  struct coffer_http1_header headers[COFFER_HTTP1_HEADERS_MAX];
  enum coffer_http1_framing framing;
  uint64_t size;                /* of what is SIZED; of a HEAD: what was said */
  int sized;                    /* a length was said */
};

/* How long the head is that `bytes` begins with, its empty line included; 0:
 * it has not come to its end; -1: none will, as it is too long. */
ssize_t coffer_http1_head_length (const char *bytes, size_t size);
/* Exactly one head.  no_body: the request was a HEAD.  NULL, or what is wrong,
 * as a part of a sentence: "it has a NUL". */
const char *coffer_http1_head_parse (const char *bytes, size_t size,
                                     int no_body,
                                     struct coffer_http1_head *out);
void coffer_http1_head_fini (struct coffer_http1_head *head);
/* The only one of that name; NULL: none, or several. */
const char *coffer_http1_header (const struct coffer_http1_head *head,
                                 const char *name);
/* Does a list of words with commas between them have this one? */
int coffer_http1_list_has (const char *list, const char *word);
/* A token: what names of headers and methods are. */
int coffer_http1_is_token (const char *text);

/* For these functions only. */
enum coffer_http1_state {
  COFFER_HTTP1_DATA, COFFER_HTTP1_CHUNK_SIZE, COFFER_HTTP1_CHUNK_EXTENSION,
  COFFER_HTTP1_CHUNK_LF, COFFER_HTTP1_CHUNK_CR_AFTER,
  COFFER_HTTP1_CHUNK_LF_AFTER, COFFER_HTTP1_TRAILER, COFFER_HTTP1_OVER
};

struct coffer_http1_body {
  enum coffer_http1_framing framing;
  enum coffer_http1_state state;
  uint64_t left;                /* of the body, of the chunk */
  unsigned digits;              /* of a chunk's size */
  unsigned line, extra;         /* of a trailer: this one, all and extensions */
};

void coffer_http1_body_init (struct coffer_http1_body *body,
                             const struct coffer_http1_head *head);
/* Reads on in `in`: *used bytes of it are done with, and the *n of them from
 * *data on are the body's.  0, or -1: it is broken. */
int coffer_http1_body_read (struct coffer_http1_body *body, const char *in,
                            size_t size, size_t *used, const char **data,
                            size_t *n);
static inline int
coffer_http1_body_over (const struct coffer_http1_body *body)
{
  return body->state == COFFER_HTTP1_OVER;
}
/* Whether the end of the connection is the body's. */
static inline int
coffer_http1_body_may_end (const struct coffer_http1_body *body)
{
  return body->state == COFFER_HTTP1_OVER
         || body->framing == COFFER_HTTP1_TO_END;
}

#ifdef __cplusplus
}
#endif

#endif /* COFFER_HTTP1_H */
