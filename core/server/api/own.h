/* SPDX-License-Identifier: Apache-2.0 */
/* What the handlers of sandboxes and commands share. */

#ifndef SERVER_API_OWN_H
#define SERVER_API_OWN_H

#include "sandbox/sandbox.h"
#include "server/http.h"
#include "server/server.h"

/* The sandbox that the path names first, when it is the caller's tenant's:
 * another's is not there. */
static inline int
own_sandbox (const struct request *request, const char **id,
             struct error **err)
{
  *id = request->params[0];
  return sandbox_check_tenant (request->server->host, *id,
                               request->caller.tenant, err);
}

#endif /* SERVER_API_OWN_H */
