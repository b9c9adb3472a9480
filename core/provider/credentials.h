/* SPDX-License-Identifier: Apache-2.0 */
/* The target "credential:KEY:SERVER" of coffer_connect: what a credential helper
 * keeps for a registry. */

#ifndef PROVIDER_CREDENTIALS_H
#define PROVIDER_CREDENTIALS_H

#include "provider/dispatch.h"

#define CREDENTIALS_TARGET "credential:"

/* A descriptor from which {"username","password"} or {"identitytoken"} is read.
 * KEY is of the manifest, with `from: docker.auths` or podman.auths, and its value
 * is none of the operator's.  E_CONNECT_DENIED where it is not so, E_NOT_FOUND
 * where nothing is kept, else what docker_client_credential gives. */
int credentials_connect (struct provider *provider, const char *target,
                         int64_t deadline_ns, int cancel_fd,
                         struct error **err);

#endif /* PROVIDER_CREDENTIALS_H */
