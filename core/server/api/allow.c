/* SPDX-License-Identifier: Apache-2.0 */
/* What a request may ask to be reached.  A name leads to public addresses alone,
 * which its provider sees to; an address that is listed itself is reached
 * wherever it is, so that anybody's token would open the services that this
 * machine has for itself, and what clouds tell it.  Such a one is the operator's
 * to list, in a profile, or to ask for over the socket. */

#include <config.h>

#include <arpa/inet.h>
#include <string.h>
#include <unistd.h>

#include <coffer/address.h>

#include "server/api/spec.h"

/* An address, or what some reader may take for one. */
static int
is_public (const char *host)
{
  struct sockaddr_in v4 = { .sin_family = AF_INET };
  struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
  const char *label = strrchr (host, '.');
  int carried = 0;

  label = label ? label + 1 : host;
  if (inet_pton (AF_INET, host, &v4.sin_addr) == 1)
    return coffer_address_kind ((const void *) &v4, NULL)
           == COFFER_ADDRESS_PUBLIC;
  if (inet_pton (AF_INET6, host, &v6.sin6_addr) == 1)
    return coffer_address_kind ((const void *) &v6, &carried)
             == COFFER_ADDRESS_PUBLIC
           && !carried;
  return !strchr (host, ':') && !(*label >= '0' && *label <= '9');
}

/* The part before the port, without brackets; NULL: it is no such thing, which
 * its reader says. */
static char *
host_of (const char *entry)
{
  const char *colon = strrchr (entry, ':');
  size_t size = colon ? (size_t) (colon - entry) : 0;

  if (size >= 2 && entry[0] == '[' && entry[size - 1] == ']') {
    entry++;
    size -= 2;
  }
  return size > 0 ? strndup (entry, size) : NULL;
}

int
api_allow_check (const struct request *request, const char *const *allow,
                 struct error **err)
{
  const struct caller *caller = &request->caller;

  if (caller->local && caller->uid == geteuid ())
    return 0;
  for (; allow && *allow; allow++) {
    auto_free char *host = host_of (*allow);

    if (!host || is_public (host))
      continue;
    error_set (err, E_DENIED, 0, "allow: %s is no public address", *allow);
    error_hint (err, "name a host of the internet; others are the operator's to "
                "list, under `allow` of a profile");
    error_detail (err, "field", json_string ("allow"));
    return -1;
  }
  return 0;
}
