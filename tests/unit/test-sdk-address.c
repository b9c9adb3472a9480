/* SPDX-License-Identifier: Apache-2.0 */
/* Kinds of addresses, at the edges of each range. */

#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <coffer/address.h>

static const char *
kind_of (const char *text, int *carried)
{
  union {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
  } address;

  memset (&address, 0, sizeof address);
  if (inet_pton (AF_INET, text, &address.v4.sin_addr) == 1)
    address.v4.sin_family = AF_INET;
  else {
    assert_int_equal (inet_pton (AF_INET6, text, &address.v6.sin6_addr), 1);
    address.v6.sin6_family = AF_INET6;
  }
  return coffer_address_word (coffer_address_kind (&address.any, carried));
}

static void
each_range_ends_where_its_registry_says (void **state)
{
  static const struct {
    const char *address, *kind;
  } rows[] = {
    { "8.8.8.8", "public" }, { "1.0.0.0", "public" },
    { "0.0.0.0", "unroutable" }, { "0.255.255.255", "unroutable" },
    { "9.255.255.255", "public" }, { "10.0.0.0", "private" },
    { "10.255.255.255", "private" }, { "11.0.0.0", "public" },
    { "100.63.255.255", "public" }, { "100.64.0.0", "shared" },
    { "100.100.100.200", "metadata" }, { "100.127.255.255", "shared" },
    { "100.128.0.0", "public" }, { "126.255.255.255", "public" },
    { "127.0.0.1", "loopback" }, { "127.255.255.255", "loopback" },
    { "128.0.0.0", "public" }, { "168.63.129.16", "metadata" },
    { "169.253.255.255", "public" }, { "169.254.0.0", "link-local" },
    { "169.254.169.254", "metadata" }, { "169.254.255.255", "link-local" },
    { "169.255.0.0", "public" }, { "172.15.255.255", "public" },
    { "172.16.0.0", "private" }, { "172.31.255.255", "private" },
    { "172.32.0.0", "public" }, { "192.0.0.1", "special" },
    { "192.0.0.192", "metadata" }, { "192.0.1.0", "public" },
    { "192.0.2.1", "special" }, { "192.167.255.255", "public" },
    { "192.168.0.0", "private" }, { "192.168.255.255", "private" },
    { "192.169.0.0", "public" }, { "198.17.255.255", "public" },
    { "198.18.0.0", "special" }, { "198.19.255.255", "special" },
    { "198.20.0.0", "public" }, { "203.0.113.9", "special" },
    { "223.255.255.255", "public" }, { "224.0.0.0", "multicast" },
    { "239.255.255.255", "multicast" }, { "240.0.0.0", "unroutable" },
    { "255.255.255.255", "unroutable" },
    { "::", "unroutable" }, { "::1", "loopback" },
    { "2606:4700::1111", "public" }, { "3fff:1000::1", "public" },
    { "3fff::1", "special" }, { "2001:db8::1", "special" },
    { "2001:2::1", "special" }, { "2001:200::1", "public" },
    { "4000::1", "special" }, { "fc00::1", "private" },
    { "fdff::1", "private" }, { "fd00:ec2::254", "metadata" },
    { "fd20:ce::254", "metadata" }, { "fe80::1", "link-local" },
    { "febf::1", "link-local" }, { "fec0::1", "private" },
    { "ff02::1", "multicast" }, { "64:ff9b:1::1", "unroutable" },
  };
  size_t i;
  int carried;

  (void) state;
  for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    if (strcmp (kind_of (rows[i].address, &carried), rows[i].kind) != 0)
      fail_msg ("%s is %s", rows[i].address,
                kind_of (rows[i].address, NULL));
    if (carried)
      fail_msg ("%s carries nothing", rows[i].address);
  }
}

static void
an_address_within_another_decides (void **state)
{
  static const char *const forms[]
    = { "::ffff:10.1.2.3", "::ffff:0:10.1.2.3", "::10.1.2.3",
        "64:ff9b::10.1.2.3", "2002:a01:203::1", "2001:0:a01:203::1" };
  size_t i;
  int carried;

  (void) state;
  for (i = 0; i < sizeof forms / sizeof forms[0]; i++) {
    if (strcmp (kind_of (forms[i], &carried), "private") != 0 || !carried)
      fail_msg ("%s is %s", forms[i], kind_of (forms[i], NULL));
  }
  assert_string_equal (kind_of ("::ffff:8.8.8.8", &carried), "public");
  assert_int_equal (carried, 1);
}

static void
what_is_no_internet_address_leads_nowhere (void **state)
{
  struct sockaddr other = { .sa_family = AF_UNIX };

  (void) state;
  assert_int_equal (coffer_address_kind (&other, NULL),
                    COFFER_ADDRESS_NOWHERE);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (each_range_ends_where_its_registry_says),
    cmocka_unit_test (an_address_within_another_decides),
    cmocka_unit_test (what_is_no_internet_address_leads_nowhere),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
