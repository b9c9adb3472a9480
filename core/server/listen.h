/* SPDX-License-Identifier: Apache-2.0 */
/* Where clients come in: the sockets, and the thread that accepts. */

#ifndef SERVER_LISTEN_H
#define SERVER_LISTEN_H

#include "base/error.h"
#include "server/server.h"

struct listener;

/* Binds all that the configuration names, or, when there are any, takes the
 * `given` sockets from SYSTEMD_FIRST_FD on instead.  A socket that nobody listens
 * on any more is replaced; a second daemon of the same place is E_BUSY. */
int listener_open (const struct place *place, const struct serve_config *config,
                   size_t given, struct listener **out, struct error **err);
/* ["127.0.0.1:8000"], as they are bound; the path of the unix socket, or NULL. */
json_t *listener_addresses (const struct listener *listener);
const char *listener_path (const struct listener *listener);
/* Accepts into server->http from now on. */
int listener_start (struct listener *listener, struct server *server,
                    struct error **err);
/* Closes the sockets. */
void listener_stop (struct listener *listener);
void listener_free (struct listener *listener);

/* ADDRESS:PORT or [ADDRESS]:PORT, numbers alone. */
struct sockaddr_storage;
int listen_parse (const char *text, struct sockaddr_storage *out,
                  struct error **err);
/* Of this machine alone. */
int listen_is_loopback (const struct sockaddr_storage *address);

#endif /* SERVER_LISTEN_H */
