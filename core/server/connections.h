/* SPDX-License-Identifier: Apache-2.0 */
/* Every connection of a client, and what it may take.
 *
 * The HTTP library knows neither a deadline for headers against a client that
 * sends a byte a second, nor that a client left while its request is at work.
 * So one thread here keeps every connection's descriptor with its phase: it
 * shuts the socket down at the phase's deadline, and while a request is at work
 * it watches for the client's hanging up, which makes the connection's
 * cancel_fd readable, as does the end of the request's time.  And a request that
 * was made with a token lasts no longer than that: once it is revoked, or has
 * expired, the connection is cut. */

#ifndef SERVER_CONNECTIONS_H
#define SERVER_CONNECTIONS_H

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "policy/token.h"

enum connection_phase {
  CONNECTION_WAITS,             /* for a request or a part of one: the deadline
                                 * shuts it down */
  CONNECTION_WORKS              /* on one: the deadline cancels it, and so does
                                 * the client who hangs up */
};

struct connections;
struct exchange;

struct connection {
  struct connection *next, **link;      /* under the lock, as the next six */
  int fd;                       /* the HTTP library's to close */
  uint32_t serial;
  enum connection_phase phase;
  int64_t deadline_ns;          /* INT64_MAX: none */
  int watched, cancelled;
  char token[TOKEN_ID_SIZE];    /* of the request at work; "": none */
  struct connections *connections;
  int cancel_fd;                /* an eventfd; -1 until the first request */
  int loopback;                 /* TCP to an address of this machine alone */
  int local;                    /* a unix socket, and its peer */
  uid_t uid;
  gid_t gid;
  struct exchange *exchange;    /* the request at work, set by
                                 * connection_hold */
};

/* The tokens are borrowed. */
int connections_new (struct tokens *tokens, struct connections **out,
                     struct error **err);
/* There must be none left. */
void connections_free (struct connections *connections);

/* Room for one more, which is taken before the library knows of it: unless there
 * are `limit` already.  Given back by leave. */
int connections_enter (struct connections *connections, size_t limit);
void connections_leave (struct connections *connections);

/* Between the library's notices that one began and is about to be closed. */
struct connection *connection_new (struct connections *connections, int fd,
                                   int64_t deadline_ns);
void connection_free (struct connection *connection);

void connection_set (struct connection *connection,
                     enum connection_phase phase, int64_t deadline_ns);
/* Makes cancel_fd (made at the first call) unreadable: a request begins. */
int connection_begin (struct connection *connection, struct error **err);
/* The request that the connection is at work on, or NULL. */
void connection_hold (struct connection *connection,
                      struct exchange *exchange);
/* With which token it was made, until it is over. */
void connection_token (struct connection *connection, const char *id);
void connection_cancel (struct connection *connection);

size_t connections_count (struct connections *connections);
/* How many requests are at work. */
size_t connections_working (struct connections *connections);
/* Shuts those that are waiting; cancels those at work; shuts all. */
void connections_shut_waiting (struct connections *connections);
void connections_cancel_all (struct connections *connections);
void connections_shut_all (struct connections *connections);

#endif /* SERVER_CONNECTIONS_H */
