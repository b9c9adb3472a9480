/* SPDX-License-Identifier: Apache-2.0 */
/* Logins: on the unix socket the peer's user id, on TCP nobody's, so that only
 * what is open to anybody is served there. */

#include <config.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "server/exchange.h"

#define TENANT_DEFAULT "default"

static const struct {
  enum caller_right right;
  const char *name;
  unsigned all;
} rights[] = {
  { RIGHT_VIEW, "view", RIGHT_VIEW },
  { RIGHT_RUN, "run", RIGHT_VIEW | RIGHT_RUN },
  { RIGHT_MANAGE, "manage", RIGHT_VIEW | RIGHT_RUN | RIGHT_MANAGE },
};
#define N_RIGHTS (sizeof rights / sizeof rights[0])

const char *
caller_right_name (enum caller_right right)
{
  size_t i;

  for (i = 0; i < N_RIGHTS; i++)
    if (rights[i].right == right)
      return rights[i].name;
  return "none";
}

unsigned
caller_right_all (enum caller_right right)
{
  size_t i;

  for (i = 0; i < N_RIGHTS; i++)
    if (rights[i].right == right)
      return rights[i].all;
  return 0;
}

void
caller_fini (struct caller *caller)
{
  free (caller->name);
  free (caller->tenant);
}

static int
log_in_peer (const struct connection *connection, struct caller *caller)
{
  if (connection->uid != geteuid () && connection->uid != 0)
    return 0;
  caller->local = 1;
  caller->uid = connection->uid;
  caller->gid = connection->gid;
  caller->rights = caller_right_all (RIGHT_MANAGE);
  caller->name = text_printf ("uid:%u", (unsigned) connection->uid);
  caller->tenant = strdup (TENANT_DEFAULT);
  return 1;
}

static void
log_in_nobody (struct caller *caller)
{
  caller->name = strdup ("anonymous");
  caller->tenant = strdup (TENANT_DEFAULT);
}

int
auth_request (struct request *request, struct error **err)
{
  const struct connection *connection = exchange_of (request)->connection;
  const struct route *route = request->route;

  if (!connection->local || !log_in_peer (connection, &request->caller))
    log_in_nobody (&request->caller);
  if (!request->caller.name || !request->caller.tenant)
    return error_set (err, E_NO_MEMORY, 0, "a request");
  if (route->right == RIGHT_NONE || (route->flags & ROUTE_ANONYMOUS)
      || (request->caller.rights & route->right))
    return 0;
  if (connection->local)
    return error_set (err, E_RIGHTS, 0, "uid %u may not use this server",
                      (unsigned) connection->uid);
  return error_set (err, E_TOKEN, 0, "this needs a token");
}
