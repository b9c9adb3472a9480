/* SPDX-License-Identifier: Apache-2.0 */
/* Who asks, and what they may. */

#ifndef SERVER_AUTH_H
#define SERVER_AUTH_H

#include <sys/types.h>

#include "base/error.h"
#include "policy/rights.h"

struct caller {
  char *name;                   /* "uid:1000", "token:ci", "anonymous" */
  char *tenant;
  unsigned rights;              /* with all that each implies */
  uid_t uid;                    /* local: the peer's, also with a token */
  gid_t gid;
  int local;                    /* by the unix socket */
};

void caller_fini (struct caller *caller);

struct request;

/* Whether the request is meant for this server (Host, Origin), who makes it,
 * and whether the route is theirs: fills request->caller.
 * E_TOKEN (401), E_RIGHTS and E_MISDIRECTED (403). */
int auth_request (struct request *request, struct error **err);

#endif /* SERVER_AUTH_H */
