/* SPDX-License-Identifier: Apache-2.0 */
/* Logins: a token; on the unix socket else the peer's user id; on TCP else
 * nobody, who gets only what is open to anybody.  And before that, on TCP,
 * whether a web page of somebody else's made a browser send this. */

#include <config.h>

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/text.h"
#include "policy/token.h"
#include "server/exchange.h"

#define GROUPS_MAX 65536
#define BEARER "Bearer "

void
caller_fini (struct caller *caller)
{
  free (caller->name);
  free (caller->tenant);
}

/* ---- is it meant for this server? ------------------------------------------- */

/* The length of the name in "name:port" and "[address]:port"; what is neither is
 * all of it, which is no name that anybody lists. */
static size_t
host_length (const char *host)
{
  const char *end = host[0] == '[' ? strchr (host, ']') : NULL;

  if (!end)
    return strcspn (host, ":");
  return end[1] == '\0' || end[1] == ':' ? (size_t) (end + 1 - host)
                                         : strlen (host);
}

/* An address cannot be made to lead elsewhere, as a name can. */
static int
is_address (const char *host, size_t size)
{
  char text[INET6_ADDRSTRLEN + 2];
  struct in6_addr six;
  struct in_addr four;

  if (size == 0 || size >= sizeof text)
    return 0;
  memcpy (text, host, size);
  text[size] = '\0';
  if (text[0] != '[')
    return inet_pton (AF_INET, text, &four) == 1;
  text[size - 1] = '\0';
  return inet_pton (AF_INET6, text + 1, &six) == 1;
}

static int
is_listed (const struct serve_config *config, const char *host, size_t size)
{
  char **one;

  for (one = config->allow_hosts; *one; one++)
    if (strlen (*one) == size && strncasecmp (*one, host, size) == 0)
      return 1;
  return 0;
}

static int
host_is_ours (const struct serve_config *config, const char *host)
{
  const size_t size = host_length (host);

  return is_address (host, size)
         || (size == 9 && strncasecmp (host, "localhost", 9) == 0)
         || is_listed (config, host, size);
}

/* A page of this server's own, or of a host that is listed. */
static int
origin_is_ours (const struct serve_config *config, const char *origin,
                const char *host)
{
  const char *rest = strstr (origin, "://");

  if (!rest)
    return 0;                   /* "null", too */
  rest += 3;
  return (host && strcasecmp (rest, host) == 0
          && strncmp (origin, "http://", 7) == 0)
         || is_listed (config, rest, host_length (rest));
}

static int
check_browser (const struct exchange *exchange, struct error **err)
{
  const struct request *request = &exchange->request;
  const char *host = request_header (request, MHD_HTTP_HEADER_HOST);
  const char *origin = request_header (request, MHD_HTTP_HEADER_ORIGIN);
  const char *site = request_header (request, "Sec-Fetch-Site");

  if (host && !host_is_ours (exchange->config, host))
    return error_set (err, E_MISDIRECTED, 0,
                      "the header Host names another server");
  if ((origin && !origin_is_ours (exchange->config, origin, host))
      || (!origin && site
          && (strcmp (site, "cross-site") == 0
              || strcmp (site, "same-site") == 0)))
    return error_set (err, E_MISDIRECTED, 0,
                      "a page of another site made this request");
  return 0;
}

/* ---- who is it? --------------------------------------------------------------- */

static int
set_caller (struct caller *caller, char *take_name, const char *tenant,
            unsigned rights, struct error **err)
{
  caller->name = take_name;
  caller->tenant = strdup (tenant);
  caller->rights = rights;
  return caller->name && caller->tenant
           ? 1 : error_set (err, E_NO_MEMORY, 0, "a request");
}

/* 1: logged in; 0: no token; -1. */
static int
log_in_token (struct request *request, struct error **err)
{
  const char *header = request_header (request,
                                       MHD_HTTP_HEADER_AUTHORIZATION);
  struct token_owner owner = { 0 };
  int result;

  if (!header)
    return 0;
  if (strncasecmp (header, BEARER, sizeof BEARER - 1) != 0)
    return error_set (err, E_TOKEN, 0, "only Bearer tokens are known here");
  result = tokens_verify (request->server->tokens,
                          header + sizeof BEARER - 1, &owner);
  if (result == 0)
    return error_set (err, E_TOKEN, 0, "the token is none that counts here");
  if (result < 0)
    return error_set (err, E_NO_MEMORY, 0, "a request");
  result = set_caller (&request->caller, text_printf ("token:%s", owner.name),
                       owner.tenant, owner.rights, err);
  if (result > 0)
    connection_token (exchange_of (request)->connection, owner.id);
  token_owner_fini (&owner);
  return result;
}

static int
in_groups (const gid_t *groups, size_t n, gid_t group)
{
  size_t i;

  for (i = 0; i < n; i++)
    if (groups[i] == group)
      return 1;
  return 0;
}

/* The first login that fits: users before groups, as they are listed. */
static const struct serve_login *
find_login (const struct serve_config *config,
            const struct connection *connection)
{
  auto_free gid_t *groups = NULL;
  socklen_t size = GROUPS_MAX * sizeof *groups;
  size_t i, n = 0;

  for (i = 0; i < config->n_logins; i++)
    if (!config->logins[i].is_group
        && config->logins[i].id == connection->uid)
      return &config->logins[i];
  for (i = 0; i < config->n_logins && !config->logins[i].is_group; i++)
    ;
  if (i == config->n_logins)
    return NULL;
  groups = malloc (size);
  if (groups
      && getsockopt (connection->fd, SOL_SOCKET, SO_PEERGROUPS, groups, &size)
           == 0)
    n = size / sizeof *groups;
  for (i = 0; i < config->n_logins; i++)
    if (config->logins[i].is_group
        && (config->logins[i].id == connection->gid
            || in_groups (groups, n, config->logins[i].id)))
      return &config->logins[i];
  return NULL;
}

/* As log_in_token. */
static int
log_in_peer (struct exchange *exchange, struct error **err)
{
  const struct connection *connection = exchange->connection;
  struct caller *caller = &exchange->request.caller;
  const struct serve_login *login;

  if (!connection->local)
    return 0;
  if (connection->uid == geteuid () || connection->uid == 0)
    return set_caller (caller, text_printf ("uid:%u", connection->uid),
                       TENANT_DEFAULT, right_all (RIGHT_OPERATE), err);
  login = find_login (exchange->config, connection);
  if (!login)
    return error_set (err, E_RIGHTS, 0, "uid %u is no user of this server",
                      connection->uid);
  return set_caller (caller, text_printf ("uid:%u", connection->uid),
                     login->tenant, login->rights, err);
}

/* ---- may they? ---------------------------------------------------------------- */

static int
check_right (const struct exchange *exchange, int known, struct error **err)
{
  const struct request *request = &exchange->request;
  const struct route *route = request->route;
  const struct connection *connection = exchange->connection;

  if (route->right == RIGHT_NONE || (request->caller.rights & route->right))
    return 0;
  if ((route->flags & ROUTE_ANONYMOUS) && !connection->local
      && (connection->loopback || exchange->config->anonymous))
    return 0;
  if (!known)
    return error_set (err, E_TOKEN, 0, "this needs a token");
  return error_set (err, E_RIGHTS, 0, "%s may not do this: it needs the right"
                    " to %s", request->caller.name, right_name (route->right));
}

int
auth_request (struct request *request, struct error **err)
{
  struct exchange *exchange = exchange_of (request);
  const struct connection *connection = exchange->connection;
  int known;

  request->caller.local = connection->local;
  request->caller.uid = connection->uid;
  request->caller.gid = connection->gid;
  if (!connection->local && check_browser (exchange, err) < 0)
    return -1;
  known = log_in_token (request, err);
  if (known == 0)
    known = log_in_peer (exchange, err);
  if (known == 0
      && set_caller (&request->caller, strdup ("anonymous"), TENANT_DEFAULT, 0,
                     err) < 0)
    return -1;
  return known < 0 ? -1 : check_right (exchange, known, err);
}
