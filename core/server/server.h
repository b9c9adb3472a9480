/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon: what all requests share. */

#ifndef SERVER_SERVER_H
#define SERVER_SERVER_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/place.h"
#include "sandbox/sandbox.h"
#include "server/serve-config.h"

struct MHD_Daemon;
struct connections;
struct listener;
struct execs;
struct idempotency;
struct box;
struct observer;
struct runs_queue;
struct shares;
struct tokens;

struct server {
  const struct place *place;
  struct host *host;            /* one for all threads */
  struct execs *execs;          /* commands in the background */
  struct idempotency *idempotency;
  pthread_mutex_t config_lock;
  struct serve_config *config;  /* by server_config_ref */
  struct connections *connections;
  struct box *box;
  struct observer *observer;    /* observe.h; NULL: not yet, or not any more */
  struct listener *listener;
  struct shares *shares;        /* what a tenant may have of all that follows */
  struct runs_queue *runs;
  struct tokens *tokens;
  struct MHD_Daemon *http;
  atomic_int draining;          /* no new requests */
};

/* The configuration as it is now; unref when done.  It changes with SIGHUP, and
 * one that is held stays as it is. */
struct serve_config *server_config_ref (struct server *server);

/* Opens host and sockets, and serves until server_stop.  place and config are
 * borrowed and taken.  given: see listener_open. */
int server_start (const struct place *place, struct serve_config *take_config,
                  size_t given, struct server **out, struct error **err);
/* From the next request on; where it listens stays as it is. */
void server_configure (struct server *server,
                       struct serve_config *take_config);
/* Whether some address can be reached from elsewhere while nobody could be told
 * apart there: E_CONFIG. */
int server_check_open (const json_t *addresses, const struct serve_config *config,
                       struct tokens *tokens, struct error **err);
/* Takes no new connections and requests, waits for those that are at work at
 * most until deadline_ns or until another signal can be read from `signals`, a
 * signalfd, cancels the rest. */
void server_drain (struct server *server, int64_t deadline_ns, int signals);
/* Ends what is left, and frees. */
void server_stop (struct server *server);

#endif /* SERVER_SERVER_H */
