/* SPDX-License-Identifier: Apache-2.0 */
/* How the daemon is set up: the section `serve` of coffer.yaml, and options of
 * the command line, which go over it.  One that was read never changes: whoever
 * holds one sees it as it was. */

#ifndef SERVER_SERVE_CONFIG_H
#define SERVER_SERVE_CONFIG_H

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/place.h"
#include "policy/rights.h"
#include "server/box/config.h"
#include "server/observe.h"

/* Sizes in bytes, times in milliseconds. */
struct serve_limits {
  uint64_t header;              /* a request's line and headers */
  uint64_t body;                /* a JSON or text body */
  uint64_t upload;              /* a body that is streamed */
  uint64_t header_time;         /* until the headers are there */
  uint64_t body_time;           /* until a body, or 64 KiB more of one, is */
  uint64_t idle_time;           /* between requests */
  uint64_t request_time;        /* a handler that does not stream */
  uint64_t queue_time;          /* waiting for a place to run */
  uint64_t drain_time;          /* what is at work when the daemon ends */
  uint64_t connections;
  uint64_t exec_log;            /* bytes of what one command has written */
  uint64_t exec_logs;           /* and of all that is kept */
  uint64_t commands;            /* in the background */
  uint64_t keys;                /* of idempotency that are kept */
  uint64_t output;              /* bytes of what is waited for, in memory */
  uint64_t tenant_share;        /* percent of what the others have left */
  uint64_t runs;                /* at once; 0 was replaced by the processors */
  uint64_t queue;               /* who wait for one */
};

/* A user or a group that may use the unix socket. */
struct serve_login {
  int is_group;
  uid_t id;                     /* or gid */
  char *name;
  char *tenant;
  unsigned rights;              /* with all that it implies */
};

struct serve_config {
  atomic_uint refs;
  char *socket;                 /* its absolute path */
  char **listen;                /* "127.0.0.1:8000"; NULL-terminated */
  size_t n_logins;
  struct serve_login *logins;
  char **allow_hosts;           /* names in lower case, NULL-terminated */
  int anonymous;                /* what is ROUTE_ANONYMOUS, on every address */
  int host_provider;            /* sandboxes of `host`, which is none */
  /* Of the service that runs Python code: NULL, what the environment says; and
   * whether the container around is the fifth layer. */
  char *execute_profile;
  int execute_contained;
  char **allowed_roots;         /* host folders that requests may name */
  struct serve_limits limits;
  struct observe_config observe;
  struct box_config box;
};

struct serve_config *serve_config_ref (struct serve_config *config);
void serve_config_unref (struct serve_config *config);
DEFINE_CLEANUP (struct serve_config *, serve_config_unref, auto_serve_config)
#define auto_serve_config CLEANUP (auto_serve_config)

/* What the command line says over the file; zeroed: nothing. */
struct serve_options {
  const char *socket;
  const char *const *listen;    /* NULL: as the file says */
  const char *const *allow_hosts;       /* in addition */
  const char *anonymous, *log;
};

/* Reads coffer.yaml of the caller's own folder of configuration, fills in what
 * holds where nothing is said, and puts the options over it.  Everything is
 * checked that can be without opening sockets. */
int serve_config_read (const struct place *place,
                       const struct serve_options *options,
                       struct serve_config **out, struct error **err);

/* The keys of a section ("" is `serve` itself, "socket", "socket.users",
 * "limits"), NULL-terminated, for the test of the manual; NULL: no such. */
const char *const *serve_config_keys (const char *section);

#endif /* SERVER_SERVE_CONFIG_H */
