/* SPDX-License-Identifier: Apache-2.0 */
/* Where a network address leads, by one table for all who must not be led
 * astray by a name: whoever owns a name decides what it resolves to.
 *
 * No state, any thread.  Part of libcoffer-provider.a. */

#ifndef COFFER_ADDRESS_H
#define COFFER_ADDRESS_H

#include <stddef.h>

#include <sys/socket.h>

#ifdef __cplusplus
extern "C" {
#endif

enum coffer_address_kind {
  COFFER_ADDRESS_PUBLIC,        /* of the internet */
  COFFER_ADDRESS_PRIVATE,       /* of a site: RFC 1918, unique local */
  COFFER_ADDRESS_SHARED,        /* of a provider's network: 100.64.0.0/10 */
  COFFER_ADDRESS_SPECIAL,       /* documentation, benchmarks, not assigned */
  COFFER_ADDRESS_LOOPBACK,
  COFFER_ADDRESS_LINK,          /* link-local */
  COFFER_ADDRESS_METADATA,      /* where clouds give a machine its secrets */
  COFFER_ADDRESS_MULTICAST,
  COFFER_ADDRESS_NOWHERE        /* unspecified, reserved, broadcast, no IP */
};

/* Of an AF_INET or AF_INET6 address.  An IPv6 address that carries an IPv4 one
 * (mapped, compatible, NAT64, 6to4, Teredo) is of the kind of that, and sets
 * *carried when it is given. */
enum coffer_address_kind coffer_address_kind (const struct sockaddr *address,
                                              int *carried);

/* A word for people: "private", "loopback". */
const char *coffer_address_word (enum coffer_address_kind kind);

#ifdef __cplusplus
}
#endif

#endif /* COFFER_ADDRESS_H */
