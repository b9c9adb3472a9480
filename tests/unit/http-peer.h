/* SPDX-License-Identifier: Apache-2.0 */
/* A peer for tests of HTTP, of which each answer is the test's: it listens on
 * loopback and on a unix socket, reads whole requests and keeps them. */

#ifndef UNIT_HTTP_PEER_H
#define UNIT_HTTP_PEER_H

#include <pthread.h>

#include <coffer/buffer.h>

#include "fakehost.h"

struct peer;

/* Answers the n-th request of this peer (from 1 on).  0: another may come on
 * the connection; -1: it is closed. */
typedef int peer_answer (struct peer *peer, int fd, const char *request,
                         unsigned n);

struct peer {
  int tcp, local;               /* listening */
  unsigned port;
  char path[108];
  peer_answer *answer;
  const void *data;             /* the test's */
  int is_tunnel;                /* 1: what is before requests, `answer` reads */
  pthread_t threads[66];
  unsigned n_threads;
  pthread_mutex_t lock;
  int fds[64];                  /* locked, and what follows */
  unsigned connections, closed;
  struct coffer_strings requests;
};

void peer_begin (struct peer *peer, peer_answer *answer, const void *data);
void peer_end (struct peer *peer);

/* All of the text; for what has NULs: size. */
void peer_say (int fd, const char *text);
/* Until the other end has closed or said `until`.  The caller frees. */
char *peer_hear (int fd, const char *until);
unsigned peer_requests (struct peer *peer);
/* The n-th, from 0 on; whole texts, of which none changes. */
const char *peer_request (struct peer *peer, unsigned n);
unsigned peer_connections (struct peer *peer);
/* How many of them the peer has ended. */
unsigned peer_closed (struct peer *peer);

/* For struct fakehost: connects whatever is asked for to this peer, over its
 * unix socket for "unix:", and keeps what was asked for. */
extern struct peer *peer_of_host;
extern struct coffer_strings peer_targets;
int32_t peer_connect (struct fakehost *host, const char *target);
/* The same without the host. */
int peer_dial (const struct peer *peer, int is_unix);

#endif /* UNIT_HTTP_PEER_H */
