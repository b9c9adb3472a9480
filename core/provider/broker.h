/* SPDX-License-Identifier: Apache-2.0 */
/* Connections for providers: the host resolves, checks the target against the
 * manifest's `connect`, connects, and hands over a descriptor. */

#ifndef PROVIDER_BROKER_H
#define PROVIDER_BROKER_H

#include <stdint.h>
#include <sys/socket.h>

#include "base/error.h"
#include "provider/manifest.h"

/* A target, taken apart and brought to one form. */
struct broker_target {
  int is_unix;
  char host[256];               /* lower case, no trailing dot, no brackets */
  uint16_t port;
  char path[4096];              /* unix */
};

/* "tcp:HOST:PORT", "unix:PATH", or "config:KEY" through `config`
 * (KEY=VALUE).  E_CONNECT_DENIED when malformed. */
int broker_parse (const char *target, char *const *config,
                  struct broker_target *out, struct error **err);
/* By the manifest's permissions alone; resolves nothing. */
int broker_allows (const struct manifest *manifest, char *const *config,
                   const struct broker_target *target);
/* A connected stream socket, or E_CONNECT_DENIED, E_CONNECT_FAILED. */
int broker_connect (const struct manifest *manifest, char *const *config,
                    const char *target, int64_t deadline_ns, int cancel_fd,
                    struct error **err);
/* Whether a name that was granted may lead to this address; loopback: also
 * when it is this machine's own. */
int broker_name_may_lead (const struct sockaddr *address, int loopback);
/* O_PATH descriptor of the socket at `path`, reached through no link that lies
 * in one of the folders `writable` or below.  E_CONNECT_DENIED,
 * E_CONNECT_FAILED. */
int broker_open_socket (const char *path, char *const *writable,
                        struct error **err);
/* The code of the contract that a module gets for such an error. */
int32_t broker_code (const struct error *error);

#endif /* PROVIDER_BROKER_H */
