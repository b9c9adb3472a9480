/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the client share. */

#ifndef CLIENT_PRIVATE_H
#define CLIENT_PRIVATE_H

#include <coffer/buffer.h>

#include "client/client.h"

struct client {
  int folder;                   /* of the socket, O_PATH */
  char *name, *shown;
  int own;                      /* must be of our user */
  int connected;                /* the first connection, not yet used; -1 */
};

/* In the runtime folder. */
#define CLIENT_SOCKET "serve.sock"

/* A descriptor that does not block, the caller's. */
int client_connect (struct client *client, int *out, struct error **err);

/* Waits for `events` as long as the request may take. */
int answer_wait (const struct client_reply *reply, short events,
                 struct error **err);

/* The next line of a head, without its end, in at most `room` bytes with its
 * NUL; -1 when it is longer, holds what no head may hold, or does not come. */
int answer_line (struct client_reply *reply, char *line, size_t room,
                 struct error **err);
/* Status line and headers. */
int answer_head (struct client_reply *reply, struct error **err);
/* More bytes into the buffer; 0: the connection has ended. */
int answer_fill (struct client_reply *reply, struct error **err);
/* What the daemon said of an error. */
int answer_error (struct client_reply *reply, struct error **err);

#endif /* CLIENT_PRIVATE_H */
