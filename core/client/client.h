/* SPDX-License-Identifier: Apache-2.0 */
/* A client of our own daemon: requests of its interface over its unix socket.
 *
 * It speaks as much of HTTP/1.1 as the daemon answers with, and refuses
 * everything else: whoever holds the socket is believed in nothing but what it
 * says, each reply is bounded, and one that is cut short is an error.  What the
 * daemon reports as an error is an error of the same code here, so that an exit
 * status does not depend on who did the work.  One connection for each request;
 * a client belongs to one thread. */

#ifndef CLIENT_CLIENT_H
#define CLIENT_CLIENT_H

#include <sys/types.h>

#include <coffer/buffer.h>

#include "base/error.h"
#include "base/place.h"

struct client;

/* The daemon of this user, which listens in the runtime folder.  *out is NULL
 * where there is none: no folder, no socket, or nobody behind it. */
int client_find (const struct place *place, struct client **out,
                 struct error **err);
/* The daemon at that socket; it must be there. */
int client_open (const char *path, struct client **out, struct error **err);
void client_free (struct client *client);
DEFINE_CLEANUP (struct client *, client_free, auto_client)
#define auto_client CLEANUP (auto_client)

struct client_request {
  const char *method;
  const char *target;           /* path and query, escaped: client_target */
  const json_t *body;           /* NULL: none */
  const char *accept;           /* NULL: application/json */
  int streamed;                 /* a body follows: client_send, client_sent */
  int64_t deadline_ns;          /* CLOCK_MONOTONIC; 0: none */
  int cancel_fd;                /* -1: none */
};

/* "/api/v1/sandboxes/%s/execs" with each %s escaped as one segment of a path;
 * %p is a path, whose slashes stay.  There is no other directive.  NULL: no
 * memory. */
char *client_target (const char *fmt, ...);

/* One request and its JSON; *out is NULL for a reply without a body. */
int client_call (struct client *client, const struct client_request *request,
                 json_t **out, struct error **err);

/* ---- a reply read, and a request written, as it comes ------------------- */

#define CLIENT_BUFFER 65536

struct client_reply {
  int fd;                       /* for poll, after client_ready */
  int status;
  char type[64];
  /* The rest is for these functions only. */
  int chunked, over, begun;
  uint64_t left;                /* of the body, or of a chunk */
  size_t start, size;
  int64_t deadline_ns;
  int64_t stall_ns;             /* client_read_all; 0: as it is there */
  int cancel_fd;
  char *buffer;
  struct coffer_buffer queue;   /* of the request, from `sent` on */
  size_t sent;
};

/* Sends, and reads the head of the reply.  An error that the daemon reports
 * fails.  With `streamed` it returns before the reply: client_answered. */
int client_begin (struct client *client, const struct client_request *request,
                  struct client_reply *reply, struct error **err);
/* Up to `size` bytes of the body; 0: its end. */
ssize_t client_read (struct client_reply *reply, void *bytes, size_t size,
                     struct error **err);
/* All of them; fewer are an error. */
int client_read_all (struct client_reply *reply, void *bytes, size_t size,
                     struct error **err);
/* The whole body as JSON; NULL when there is none. */
int client_json (struct client_reply *reply, json_t **out,
                 struct error **err);
/* The next line of a body of JSON, one a line; *out NULL: its end.  `lines`
 * begins as zeroes. */
int client_line (struct client_reply *reply, struct coffer_buffer *lines,
                 json_t **out, struct error **err);
/* {"code", "message" …} of a reply as the error that it is: -1; 0: it is none. */
int client_error (const json_t *object, struct error **err);
/* So many bytes are of no use. */
int client_skip (struct client_reply *reply, uint64_t size,
                 struct error **err);
/* Whether client_read has something without waiting; and reading what the
 * descriptor has, once poll says that it has, so that it may.  An end that comes
 * too early is an error. */
int client_ready (const struct client_reply *reply);
int client_fetch (struct client_reply *reply, struct error **err);

/* A piece of the body, and (size 0) its end, as far as it goes without
 * waiting.  0: all of it went, or the daemon wants no more, which its reply
 * explains; 1: a part waits for the descriptor to take more (client_push). */
int client_send (struct client_reply *reply, const void *bytes, size_t size,
                 struct error **err);
/* wait: until all of it went. */
int client_push (struct client_reply *reply, int wait, struct error **err);
/* The head of the reply. */
int client_answered (struct client_reply *reply, struct error **err);

void client_reply_fini (struct client_reply *reply);
#define auto_client_reply __attribute__ ((cleanup (client_reply_fini)))

#endif /* CLIENT_CLIENT_H */
