/* SPDX-License-Identifier: Apache-2.0 */
/* How the daemon is set up: the section `serve` of coffer.yaml, and options of
 * the command line, which go over it.  One that was read never changes. */

#ifndef SERVER_SERVE_CONFIG_H
#define SERVER_SERVE_CONFIG_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/error.h"
#include "base/place.h"
#include "server/observe.h"

struct serve_limits {
  uint64_t header;              /* bytes of a request's line and headers */
  uint64_t body;                /* bytes of a JSON or text body */
  uint64_t header_ms;           /* until the headers are there */
  uint64_t body_ms;             /* until a body, or 64 KiB more of one, is */
  uint64_t idle_ms;             /* between requests */
  uint64_t request_ms;          /* of a handler */
  uint64_t drain_ms;
  uint64_t connections;
  uint64_t exec_log;            /* bytes of what one command has written */
  uint64_t exec_logs;           /* and of all that is kept */
};

struct serve_config {
  atomic_uint refs;
  char *socket;                 /* its absolute path */
  char **listen;                /* "127.0.0.1:8000"; NULL-terminated */
  char **allow_hosts;
  char **allowed_roots;         /* folders that requests may show; or NULL */
  struct serve_limits limits;
  struct observe_config observe;
};

struct serve_config *serve_config_ref (struct serve_config *config);
void serve_config_unref (struct serve_config *config);
DEFINE_CLEANUP (struct serve_config *, serve_config_unref, auto_serve_config)
#define auto_serve_config CLEANUP (auto_serve_config)

/* What holds where nothing is said. */
int serve_config_default (const struct place *place, struct serve_config **out,
                          struct error **err);

/* Before it is used.  -1: out of memory. */
struct coffer_strings;
int serve_config_set_listen (struct serve_config *config,
                             const struct coffer_strings *addresses);

#endif /* SERVER_SERVE_CONFIG_H */
