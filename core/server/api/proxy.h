/* SPDX-License-Identifier: Apache-2.0 */
/* One request that is given on to a server inside of a sandbox, and what comes
 * back.  Neither side is given on as it is: both heads are written anew, and
 * what either says of its own connection stays on its side. */

#ifndef SERVER_API_PROXY_H
#define SERVER_API_PROXY_H

#include <poll.h>

#include <coffer/http1.h>

#include "server/http.h"

#define PROXY_BUFFER 65536

struct proxy {
  struct request *request;
  uint32_t port;
  char *prefix;                 /* "/api/v1/sandboxes/ID/ports/80" */
  const char *upgrade;          /* the protocol that is asked for, or NULL */
  int chunked;                  /* the body goes in so, as its size is not
                                 * known */
  int fd;                       /* to the server inside */
  struct coffer_http1_head head;
  struct coffer_http1_body body;
  char *buffer;                 /* PROXY_BUFFER of what it sent */
  size_t start, size;           /* what of it waits */
  struct pollfd fds[3];         /* proxy.c's */
};

struct proxy *proxy_new (struct request *request, uint32_t port,
                         struct error **err);
void proxy_free (struct proxy *proxy);
DEFINE_CLEANUP (struct proxy *, proxy_free, auto_proxy)
#define auto_proxy CLEANUP (auto_proxy)

/* proxy-head.c: the head that goes in, which the caller frees; and the headers
 * of the reply that came, onto the request's. */
char *proxy_request_head (struct proxy *proxy, size_t *size,
                          struct error **err);
int proxy_reply_headers (struct proxy *proxy, struct error **err);

/* Sends the request with its body, and reads the head of the reply: a last one,
 * or 101 where a protocol was asked for.  E_UPSTREAM, E_UPSTREAM_TIMEOUT. */
int proxy_exchange (struct proxy *proxy, struct error **err);

/* More of the body: how much, 0 at its end, -1: it broke off. */
ssize_t proxy_body (struct proxy *proxy, char *out, size_t max);

#endif /* SERVER_API_PROXY_H */
