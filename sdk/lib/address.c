/* SPDX-License-Identifier: Apache-2.0 */
/* See <coffer/address.h>: the registries of special addresses as two tables,
 * whose first fitting row decides. */

#include <stdint.h>
#include <string.h>

#include <netinet/in.h>

#include <coffer/address.h>

#define COUNT(array) (sizeof (array) / sizeof (array)[0])

static const struct {
  uint8_t bytes[4];
  uint8_t bits;
  uint8_t kind;
} v4_table[] = {
  { { 169, 254, 169, 254 }, 32, COFFER_ADDRESS_METADATA },
  { { 168, 63, 129, 16 }, 32, COFFER_ADDRESS_METADATA },
  { { 100, 100, 100, 200 }, 32, COFFER_ADDRESS_METADATA },
  { { 192, 0, 0, 192 }, 32, COFFER_ADDRESS_METADATA },
  { { 0, 0, 0, 0 }, 8, COFFER_ADDRESS_NOWHERE },
  { { 10, 0, 0, 0 }, 8, COFFER_ADDRESS_PRIVATE },
  { { 100, 64, 0, 0 }, 10, COFFER_ADDRESS_SHARED },
  { { 127, 0, 0, 0 }, 8, COFFER_ADDRESS_LOOPBACK },
  { { 169, 254, 0, 0 }, 16, COFFER_ADDRESS_LINK },
  { { 172, 16, 0, 0 }, 12, COFFER_ADDRESS_PRIVATE },
  { { 192, 0, 0, 0 }, 24, COFFER_ADDRESS_SPECIAL },
  { { 192, 0, 2, 0 }, 24, COFFER_ADDRESS_SPECIAL },
  { { 192, 88, 99, 0 }, 24, COFFER_ADDRESS_SPECIAL },
  { { 192, 168, 0, 0 }, 16, COFFER_ADDRESS_PRIVATE },
  { { 198, 18, 0, 0 }, 15, COFFER_ADDRESS_SPECIAL },
  { { 198, 51, 100, 0 }, 24, COFFER_ADDRESS_SPECIAL },
  { { 203, 0, 113, 0 }, 24, COFFER_ADDRESS_SPECIAL },
  { { 224, 0, 0, 0 }, 4, COFFER_ADDRESS_MULTICAST },
  { { 240, 0, 0, 0 }, 4, COFFER_ADDRESS_NOWHERE },
  { { 0, 0, 0, 0 }, 0, COFFER_ADDRESS_PUBLIC }
};

#define CARRIES 255             /* the IPv4 address at `at` decides */

static const struct {
  uint8_t bytes[16];
  uint8_t bits;
  uint8_t kind;
  uint8_t at;
} v6_table[] = {
  { { 0xfd, 0, 0x0e, 0xc2, [14] = 0x02, [15] = 0x54 }, 128,
    COFFER_ADDRESS_METADATA, 0 },
  { { 0xfd, 0x20, 0, 0xce, [14] = 0x02, [15] = 0x54 }, 128,
    COFFER_ADDRESS_METADATA, 0 },
  { { 0 }, 128, COFFER_ADDRESS_NOWHERE, 0 },
  { { [15] = 1 }, 128, COFFER_ADDRESS_LOOPBACK, 0 },
  { { [10] = 0xff, [11] = 0xff }, 96, CARRIES, 12 },
  { { [8] = 0xff, [9] = 0xff }, 96, CARRIES, 12 },      /* translated */
  { { 0 }, 96, CARRIES, 12 },
  { { 0, 0x64, 0xff, 0x9b }, 96, CARRIES, 12 },
  /* Of a site's own translator, whose place for IPv4 is not known. */
  { { 0, 0x64, 0xff, 0x9b, 0, 1 }, 48, COFFER_ADDRESS_NOWHERE, 0 },
  { { 0x20, 0x02 }, 16, CARRIES, 2 },
  /* Teredo names a server here and hides the other end behind it. */
  { { 0x20, 0x01, 0, 0 }, 32, CARRIES, 4 },
  { { 0x20, 0x01, 0 }, 23, COFFER_ADDRESS_SPECIAL, 0 },
  { { 0x20, 0x01, 0x0d, 0xb8 }, 32, COFFER_ADDRESS_SPECIAL, 0 },
  { { 0x3f, 0xff, 0 }, 20, COFFER_ADDRESS_SPECIAL, 0 },
  { { 0x20 }, 3, COFFER_ADDRESS_PUBLIC, 0 },
  { { 0xfc }, 7, COFFER_ADDRESS_PRIVATE, 0 },
  { { 0xfe, 0xc0 }, 10, COFFER_ADDRESS_PRIVATE, 0 },
  { { 0xfe, 0x80 }, 10, COFFER_ADDRESS_LINK, 0 },
  { { 0xff }, 8, COFFER_ADDRESS_MULTICAST, 0 },
  { { 0 }, 0, COFFER_ADDRESS_SPECIAL, 0 }
};

static int
begins (const uint8_t *address, const uint8_t *prefix, unsigned bits)
{
  unsigned whole = bits / 8, rest = bits % 8;

  return memcmp (address, prefix, whole) == 0
         && (rest == 0
             || ((address[whole] ^ prefix[whole]) >> (8 - rest)) == 0);
}

static enum coffer_address_kind
v4_kind (const uint8_t *address)
{
  size_t i = 0;

  while (!begins (address, v4_table[i].bytes, v4_table[i].bits))
    i++;
  return (enum coffer_address_kind) v4_table[i].kind;
}

enum coffer_address_kind
coffer_address_kind (const struct sockaddr *address, int *carried)
{
  struct sockaddr_in6 v6;
  struct sockaddr_in v4;
  size_t i = 0;

  if (carried != NULL)
    *carried = 0;
  if (address->sa_family == AF_INET) {
    memcpy (&v4, address, sizeof v4);
    return v4_kind ((const uint8_t *) &v4.sin_addr);
  }
  if (address->sa_family != AF_INET6)
    return COFFER_ADDRESS_NOWHERE;
  memcpy (&v6, address, sizeof v6);
  while (!begins (v6.sin6_addr.s6_addr, v6_table[i].bytes, v6_table[i].bits))
    i++;
  if (v6_table[i].kind != CARRIES)
    return (enum coffer_address_kind) v6_table[i].kind;
  if (carried != NULL)
    *carried = 1;
  return v4_kind (v6.sin6_addr.s6_addr + v6_table[i].at);
}

const char *
coffer_address_word (enum coffer_address_kind kind)
{
  static const char *const words[]
    = { "public", "private", "shared", "special", "loopback", "link-local",
        "metadata", "multicast", "unroutable" };

  return (size_t) kind < COUNT (words) ? words[kind] : "unknown";
}
