/* SPDX-License-Identifier: Apache-2.0 */
/* What the docker command of the same user would be configured with: where its
 * engine is, the folder of its certificates, where its credentials are kept.  A
 * worker can look into no home, so the host does, and hands over what the
 * manifest asks for by `from`.
 *
 * The order is that command's: DOCKER_HOST, DOCKER_CONTEXT, the current context of
 * config.json.  Files and folders must be root's or the user's own, and not
 * writable by others. */

#ifndef PROVIDER_DOCKER_CLIENT_H
#define PROVIDER_DOCKER_CLIENT_H

#include <stdint.h>

#include <coffer/buffer.h>

#include "base/error.h"
#include "provider/credential-helper.h"

struct docker_client {
  char *host;                   /* a url; NULL: it says nothing of its own */
  char *origin;                 /* env:DOCKER_HOST, env:DOCKER_CONTEXT, context:NAME */
  int by_variable;              /* before what the operator wrote */
  char *certificates;           /* folder of ca.pem, cert.pem, key.pem; NULL */
};

/* `only_variables`: a place is known already, so that config.json does not count.
 * E_CONFIG for a context that is not there or means what cannot be used. */
int docker_client_read (int only_variables, struct docker_client *out,
                        struct error **err);
void docker_client_fini (struct docker_client *client);
#define auto_docker_client __attribute__ ((cleanup (docker_client_fini)))

/* The path of a file with credentials of registries, the caller's to free; NULL:
 * there is none.  `podman`: its own places come first. */
char *docker_client_auths_path (int podman);
/* Its `auths` as one line of JSON, the caller's to wipe and to free, and beside them
 * `helped`, which has true for a server whose credentials a helper keeps, false for
 * one that is an exception, and "*" for all others.  *out NULL: it has neither. */
int docker_client_auths (const char *path, char **out, struct error **err);
/* 1: what the helper that the file names for this server keeps for it; 0: nothing,
 * or there is no such helper; -1: E_CREDENTIALS_HELPER, or what reading gives. */
int docker_client_credential (const char *path, const char *server,
                              int64_t deadline_ns, int cancel_fd,
                              struct credential *out, struct error **err);
/* Each secret that such a line has in it: the words of its entries, and what
 * `auth` stands for.  The caller wipes. */
void docker_client_secrets (const char *text, struct coffer_strings *parts);

#endif /* PROVIDER_DOCKER_CLIENT_H */
