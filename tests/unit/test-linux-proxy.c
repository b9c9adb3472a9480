/* SPDX-License-Identifier: Apache-2.0 */
/* What coffer-proxy reads and decides: names, the list, requests, bodies.  The
 * process itself is judged by tests/e2e/network.sh. */

#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "http.h"
#include "socks.h"

/* ---- names ----------------------------------------------------------------- */

/* The one form of it, or "-". */
static const char *
host_form (const char *host, size_t size)
{
  static struct target target;

  memset (&target, 0, sizeof target);
  return target_host (host, size, &target) == 0 ? target.name : "-";
}

static void
a_name_has_one_form (void **state)
{
  static const char *const same[][2] = {
    { "example.com", "example.com" }, { "EXAMPLE.Com.", "example.com" },
    { "xn--bcher-kva.example", "xn--bcher-kva.example" },
    { "_dns.example", "_dns.example" }, { "a", "a" },
    { "1a.example.x1", "1a.example.x1" }, { "10.0.0.1", "10.0.0.1" },
    { "10.0.0.1.", "10.0.0.1" }, { "::FFFF:1.2.3.4", "::ffff:1.2.3.4" },
    { "2001:DB8:0:0::1", "2001:db8::1" },
  };
  size_t i;

  (void) state;
  for (i = 0; i < sizeof same / sizeof same[0]; i++)
    assert_string_equal (host_form (same[i][0], strlen (same[i][0])),
                         same[i][1]);
}

static void
what_could_be_read_in_two_ways_is_no_name (void **state)
{
  static const char *const bad[] = {
    "", ".", "..", "a..b", ".a", "a b", "a/b", "a@b", "a%2eb", "a,b", "*.a",
    "-a.b", "a-.b", "bücher.example", "a\tb", "a\nb", "a\rb", "127.1",
    "0x7f.0.0.1", "0x7f000001", "2130706433", "010.0.0.1", "1.2.3.4.5",
    "1.2.3", "256.0.0.1", "a.0x1", "a.1", "fe80::1%eth0", ":::", "1::2::3",
    "[::1]", "a:b", "\xff", "0177.0.0.1",
  };
  char label[70], name[260];
  size_t i;

  (void) state;
  for (i = 0; i < sizeof bad / sizeof bad[0]; i++)
    if (strcmp (host_form (bad[i], strlen (bad[i])), "-") != 0)
      fail_msg ("%s was taken for %s", bad[i],
                host_form (bad[i], strlen (bad[i])));
  /* A NUL ends nothing. */
  assert_string_equal (host_form ("evil\0.allowed.com", 17), "-");
  assert_string_equal (host_form ("allowed.com\0", 12), "-");
  memset (label, 'a', sizeof label);
  assert_string_not_equal (host_form (label, 63), "-");
  assert_string_equal (host_form (label, 64), "-");
  for (i = 0; i < sizeof name; i++)
    name[i] = i % 2 ? '.' : 'a';
  assert_string_not_equal (host_form (name, 253), "-");
  assert_string_equal (host_form (name, 255), "-");
}

static int
authority (const char *text, struct target *target)
{
  memset (target, 0, sizeof *target);
  return target_authority (text, strlen (text), 0, target);
}

static void
a_port_is_a_number_from_1_to_65535 (void **state)
{
  static const char *const bad[] = {
    "a", "a:", "a:0", "a:65536", "a:00080x", "a:+80", "a:-1", "a: 80",
    "a:80 ", "a:123456", "a:80:80", ":80", "[::1]", "[::1]80", "[::1]:",
    "[::1", "::1:80", "[10.0.0.1]:80", "[a]:80", "user@a:80", "[]:80",
  };
  struct target target;
  size_t i;

  (void) state;
  for (i = 0; i < sizeof bad / sizeof bad[0]; i++)
    if (authority (bad[i], &target) == 0)
      fail_msg ("%s was taken", bad[i]);
  assert_int_equal (authority ("a:65535", &target), 0);
  assert_int_equal (target.port, 65535);
  assert_int_equal (authority ("[::1]:1", &target), 0);
  assert_int_equal (target.port, 1);
  assert_int_equal (target.family, AF_INET6);
}

/* ---- the list -------------------------------------------------------------- */

static int
reaches (const struct policy *policy, const char *text)
{
  struct target target;

  assert_int_equal (authority (text, &target), 0);
  return policy_allows (policy, &target);
}

static void
only_what_is_listed_is_reached (void **state)
{
  static const char *const entries[]
    = { "Example.COM.:443", "*.below.test:80", "10.0.0.5:80", "[fd00::5]:80",
        "deep.sub.test:1" };
  static const char *const yes[]
    = { "example.com:443", "EXAMPLE.com.:443", "a.below.test:80",
        "a.b.below.test:80", "10.0.0.5:80", "[fd00:0:0::5]:80" };
  static const char *const no[]
    = { "example.com:80", "example.com:4430", "www.example.com:443",
        "xexample.com:443", "example.com.evil.test:443", "example.co:443",
        "below.test:80", "xbelow.test:80", "a.below.test.evil:80",
        "a.below.test:443", "10.0.0.5:8", "10.0.0.6:80", "[fd00::6]:80",
        "[::ffff:10.0.0.5]:80", "sub.test:1", "x.deep.sub.test:1" };
  struct policy *policy = calloc (1, sizeof *policy);
  size_t i;

  (void) state;
  assert_non_null (policy);
  assert_int_equal (reaches (policy, "example.com:443"), 0);
  for (i = 0; i < sizeof entries / sizeof entries[0]; i++)
    assert_int_equal (policy_add (policy, entries[i]), 0);
  for (i = 0; i < sizeof yes / sizeof yes[0]; i++)
    if (!reaches (policy, yes[i]))
      fail_msg ("%s is not reached", yes[i]);
  for (i = 0; i < sizeof no / sizeof no[0]; i++)
    if (reaches (policy, no[i]))
      fail_msg ("%s is reached", no[i]);
  free (policy);
}

static void
a_list_has_names_and_addresses_and_an_end (void **state)
{
  static const char *const bad[]
    = { "*", "*:80", "*.:80", "**.a:80", "a.*:80", "*.10.0.0.1:80",
        "*.[::1]:80", "a", "", "a:80/x", "http://a:80", "a b:80", "127.1:80" };
  struct policy *policy = calloc (1, sizeof *policy);
  size_t i;

  (void) state;
  assert_non_null (policy);
  for (i = 0; i < sizeof bad / sizeof bad[0]; i++)
    if (policy_add (policy, bad[i]) != -1)
      fail_msg ("%s was taken", bad[i]);
  assert_int_equal (policy->count, 0);
  for (i = 0; i < POLICY_MAX; i++)
    assert_int_equal (policy_add (policy, "a:80"), 0);
  assert_int_equal (policy_add (policy, "a:80"), -2);
  free (policy);
}

static void
a_name_leads_to_public_addresses_alone (void **state)
{
  static const char *const no[]
    = { "127.0.0.1", "10.0.0.1", "192.168.1.1", "172.16.0.1", "169.254.169.254",
        "100.64.0.1", "0.0.0.0", "224.0.0.1", "255.255.255.255",
        "168.63.129.16" };
  static const char *const no6[]
    = { "::1", "::", "fe80::1", "fd00::1", "fd00:ec2::254", "ff02::1",
        "::ffff:127.0.0.1", "::ffff:8.8.8.8", "64:ff9b::808:808",
        "2002:808:808::1", "2001:0:808:808::1" };
  struct sockaddr_in v4 = { .sin_family = AF_INET };
  struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
  size_t i;

  (void) state;
  for (i = 0; i < sizeof no / sizeof no[0]; i++) {
    assert_int_equal (inet_pton (AF_INET, no[i], &v4.sin_addr), 1);
    if (policy_forbids ((const struct sockaddr *) (const void *) &v4) == NULL)
      fail_msg ("a name may lead to %s", no[i]);
  }
  for (i = 0; i < sizeof no6 / sizeof no6[0]; i++) {
    assert_int_equal (inet_pton (AF_INET6, no6[i], &v6.sin6_addr), 1);
    if (policy_forbids ((const struct sockaddr *) (const void *) &v6) == NULL)
      fail_msg ("a name may lead to %s", no6[i]);
  }
  assert_int_equal (inet_pton (AF_INET, "93.184.216.34", &v4.sin_addr), 1);
  assert_null (policy_forbids ((const struct sockaddr *) (const void *) &v4));
}

/* ---- requests -------------------------------------------------------------- */

static void
a_request_says_where_it_goes (void **state)
{
  static const struct {
    const char *text, *host;
    int port, is_connect;
  } rows[] = {
    { "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n", "a.test", 443,
      1 },
    { "CONNECT a.test:443 HTTP/1.0\r\nHost: a.test\r\n\r\n", "a.test", 443,
      1 },
    { "CONNECT [2606::1]:8 HTTP/1.1\r\n\r\n", "2606::1", 8, 1 },
    { "GET http://A.test/ HTTP/1.1\r\nHost: a.TEST\r\n\r\n", "a.test", 80, 0 },
    { "GET HTTP://a.test:8080 HTTP/1.1\r\nHost: a.test:8080\r\n\r\n", "a.test",
      8080, 0 },
    { "HEAD http://a.test?q=http://b/ HTTP/1.1\r\nhost:a.test:80\r\n\r\n",
      "a.test", 80, 0 },
  };
  struct http_head head;
  size_t i, n, size;

  (void) state;
  for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    size = strlen (rows[i].text);
    /* However it is cut. */
    for (n = 0; n < size; n++)
      assert_int_equal (http_read (rows[i].text, n, &head), 0);
    assert_int_equal (http_read (rows[i].text, size, &head), 1);
    assert_int_equal (head.size, size);
    assert_string_equal (head.target.name, rows[i].host);
    assert_int_equal (head.target.port, rows[i].port);
    assert_int_equal (head.is_connect, rows[i].is_connect);
    assert_true (head.body.done);
  }
}

static void
a_request_of_two_meanings_is_refused (void **state)
{
#define GET "GET http://a.test/ HTTP/1.1\r\n"
  static const struct {
    const char *text;
    int status;
  } rows[] = {
    { "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", 400 },
    { "GET https://a.test/ HTTP/1.1\r\n\r\n", 400 },
    { "GET ftp://a.test/ HTTP/1.1\r\n\r\n", 400 },
    { "GET http://user@a.test/ HTTP/1.1\r\n\r\n", 400 },
    { "GET http://a.test:80@b.test/ HTTP/1.1\r\n\r\n", 400 },
    { "GET http://a.test\\@b.test/ HTTP/1.1\r\n\r\n", 400 },
    { "GET http:///x HTTP/1.1\r\n\r\n", 400 },
    { "GET http://a.test/#f HTTP/1.1\r\n\r\n", 400 },
    { "GET  http://a.test/ HTTP/1.1\r\n\r\n", 400 },
    { "GET http://a.test/ HTTP/1.1 \r\n\r\n", 400 },
    { "GET http://a.test/ HTTP/2.0\r\n\r\n", 400 },
    { "GET http://a.test/\r\n\r\n", 400 },
    { "POST http://a.test/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
      400 },
    { "G\x01T http://a.test/ HTTP/1.1\r\n\r\n", 400 },
    { "\r\nGET http://a.test/ HTTP/1.1\r\n\r\n", 400 },
    { "CONNECT a.test HTTP/1.1\r\n\r\n", 400 },
    { "CONNECT http://a.test:443 HTTP/1.1\r\n\r\n", 400 },
    { "CONNECT a.test:443/x HTTP/1.1\r\n\r\n", 400 },
    { "CONNECT a.test:443 HTTP/1.1\r\nHost: b.test:443\r\n\r\n", 400 },
    { "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:80\r\n\r\n", 400 },
    { "CONNECT a.test:443 HTTP/1.1\r\nContent-Length: 5\r\n\r\n", 400 },
    { "connect a.test:443 HTTP/1.1\r\n\r\n", 400 },
    { GET "Host: b.test\r\n\r\n", 400 },
    { GET "Host: a.test:8080\r\n\r\n", 400 },
    { GET "Host: a.test\r\nHost: a.test\r\n\r\n", 400 },
    { GET "Host: a.test\r\nHost: b.test\r\n\r\n", 400 },
    { GET "Host:\r\n\r\n", 400 },
    { GET "Host : a.test\r\n\r\n", 400 },
    { GET " Host: a.test\r\n\r\n", 400 },
    { GET "X: 1\r\n folded\r\n\r\n", 400 },
    { GET "no colon\r\n\r\n", 400 },
    { GET ": empty\r\n\r\n", 400 },
    { GET "X: a\nY: b\r\n\r\n", 400 },
    { GET "X: a\rY: b\r\n\r\n", 400 },
    { GET "X: a\x7f\r\n\r\n", 400 },
    { GET "Content-Length: 1\r\nContent-Length: 1\r\n\r\n", 400 },
    { GET "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400 },
    { GET "Content-Length: -1\r\n\r\n", 400 },
    { GET "Content-Length: +1\r\n\r\n", 400 },
    { GET "Content-Length: 1,1\r\n\r\n", 400 },
    { GET "Content-Length: 0x1\r\n\r\n", 400 },
    { GET "Content-Length: \r\n\r\n", 400 },
    { GET "Content-Length: 1234567890123456789\r\n\r\n", 400 },
    { GET "Transfer-Encoding: gzip, chunked\r\n\r\n", 501 },
    { GET "Transfer-Encoding: xchunked\r\n\r\n", 501 },
    { GET "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
      501 },
  };
  static char long_one[HTTP_HEAD_MAX + 1];
  struct http_head head;
  size_t i;

  (void) state;
  for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    if (http_read (rows[i].text, strlen (rows[i].text), &head) != -1)
      fail_msg ("taken: %s", rows[i].text);
    assert_int_equal (head.status, rows[i].status);
    assert_non_null (head.why);
  }
  assert_int_equal (http_read (GET "X: a\0b\r\n\r\n", sizeof GET + 8, &head),
                    -1);
  memset (long_one, 'a', sizeof long_one);
  memcpy (long_one, GET, sizeof GET - 1);
  assert_int_equal (http_read (long_one, HTTP_HEAD_MAX - 1, &head), 0);
  assert_int_equal (http_read (long_one, HTTP_HEAD_MAX, &head), -1);
  assert_int_equal (head.status, 431);
}

static void
the_server_gets_one_request_of_its_own (void **state)
{
  static const struct {
    const char *in, *out;
  } rows[] = {
    { GET "Host: a.test\r\nUser-Agent: x\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: a.test\r\nUser-Agent: x\r\n"
      "Connection: close\r\n\r\n" },
    { "POST http://A.TEST.:8080?q HTTP/1.0\r\nContent-Length: 3\r\n\r\n",
      "POST /?q HTTP/1.0\r\nHost: a.test:8080\r\nContent-Length: 3\r\n"
      "Connection: close\r\n\r\n" },
    { GET "Proxy-Authorization: secret\r\nProxy-Connection: keep-alive\r\n"
          "Connection: keep-alive, X-Mine , te\r\nX-Mine: 1\r\nTE: x\r\n"
          "Upgrade: h2c\r\nKeep-Alive: 5\r\nX-Other: 2\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: a.test\r\nX-Other: 2\r\n"
      "Connection: close\r\n\r\n" },
    /* What says where the body ends stays, whoever asks for its removal. */
    { "PUT http://a.test/b HTTP/1.1\r\nConnection: content-length\r\n"
      "Content-Length: 4\r\n\r\n",
      "PUT /b HTTP/1.1\r\nHost: a.test\r\nContent-Length: 4\r\n"
      "Connection: close\r\n\r\n" },
    { "GET http://[2606::1]:81/ HTTP/1.1\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: [2606::1]:81\r\nConnection: close\r\n\r\n" },
  };
  char out[HTTP_HEAD_MAX + HTTP_HEAD_MORE];
  struct http_head head;
  size_t i, size;

  (void) state;
  for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    assert_int_equal (http_read (rows[i].in, strlen (rows[i].in), &head), 1);
    size = http_rewrite (rows[i].in, &head, out);
    assert_true (size <= head.size + HTTP_HEAD_MORE);
    out[size] = '\0';
    assert_string_equal (out, rows[i].out);
  }
}

/* ---- bodies ---------------------------------------------------------------- */

/* Bytes of the body, fed so many at a time; -1: malformed. */
static long
body_size (const char *text, size_t step, struct http_body body)
{
  size_t size = strlen (text), at = 0, n, took;

  while (at < size && !body.done) {
    n = size - at < step ? size - at : step;
    took = http_body_take (&body, text + at, n);
    if (body.bad)
      return -1;
    at += took;
    assert_true (took == n || body.done);
  }
  return body.done ? (long) at : -2;
}

static void
a_body_ends_where_its_length_says (void **state)
{
  static const struct {
    const char *text;
    long size;
  } rows[] = {
    { "0\r\n\r\nGET", 5 },
    { "3\r\nabc\r\n0\r\n\r\nmore", 13 },
    { "A;x=y\r\n0123456789\r\n0;z\r\nT: 1\r\n\r\nmore", 32 },
    { "00001\r\na\r\n000\r\n\r\n", 17 },
    { "3\r\nabcX\r\n", -1 },
    { "3\nabc\r\n0\r\n\r\n", -1 },
    { "\r\n", -1 },
    { "x\r\n", -1 },
    { "-1\r\n", -1 },
    { "1 \r\na\r\n", -1 },
    { "0x1\r\na", -1 },
    { "1234567890123456\r\n", -1 },
    { "1;a\x01\r\n", -1 },
    { "0\r\nT: 1\n\r\n", -1 },
    { "0\r\n\rX", -1 },
    { "5\r\nabc", -2 },
  };
  struct http_body chunked = { .chunked = 1 }, plain = { .left = 4 };
  size_t i, step;

  (void) state;
  for (i = 0; i < sizeof rows / sizeof rows[0]; i++)
    for (step = 1; step < 9; step++)
      if (body_size (rows[i].text, step, chunked) != rows[i].size)
        fail_msg ("%s: %ld, by %zu", rows[i].text,
                  body_size (rows[i].text, step, chunked), step);
  assert_int_equal (body_size ("abcdGET http://b/", 3, plain), 4);
  assert_int_equal (body_size ("abc", 3, plain), -2);
}

/* ---- SOCKS ----------------------------------------------------------------- */

static void
socks_requests_are_read_as_they_come (void **state)
{
  static const char greeting[] = "\5\2\2\0more";
  static const char named[] = "\5\1\0\3\6A.Test\1\xbbmore";
  static const char v4[] = "\5\1\0\1\12\0\0\5\0\120";
  static const char v6[]
    = "\5\1\0\4\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\5\0\120";
  enum socks_reply reply;
  struct target target;
  size_t used = 0, n;

  (void) state;
  for (n = 0; n < 4; n++)
    assert_int_equal (socks_greeting (greeting, n, &used), 0);
  assert_int_equal (socks_greeting (greeting, 8, &used), 1);
  assert_int_equal (used, 4);
  for (n = 0; n < 13; n++)
    assert_int_equal (socks_request (named, n, &used, &target, &reply), 0);
  assert_int_equal (socks_request (named, 17, &used, &target, &reply), 1);
  assert_int_equal (used, 13);
  assert_string_equal (target.name, "a.test");
  assert_int_equal (target.family, 0);
  assert_int_equal (target.port, 443);
  assert_int_equal (socks_request (v4, sizeof v4 - 1, &used, &target, &reply),
                    1);
  assert_string_equal (target.name, "10.0.0.5");
  assert_int_equal (target.family, AF_INET);
  assert_int_equal (target.port, 80);
  assert_int_equal (socks_request (v6, sizeof v6 - 1, &used, &target, &reply),
                    1);
  assert_string_equal (target.name, "fd00::5");
}

static void
socks_that_is_not_for_connecting_is_refused (void **state)
{
  static const struct {
    const char *bytes;
    size_t size;
    enum socks_reply reply;
  } rows[] = {
    { "\5\2\0\1\12\0\0\5\0\120", 10, SOCKS_NO_COMMAND },        /* bind */
    { "\5\3\0\1\12\0\0\5\0\120", 10, SOCKS_NO_COMMAND },        /* UDP */
    { "\5\1\0\2\12\0\0\5\0\120", 10, SOCKS_NO_ADDRESS },
    { "\5\1\1\1\12\0\0\5\0\120", 10, SOCKS_FAILED },
    { "\4\1\0\120\12\0\0\5\0", 9, SOCKS_FAILED },
    { "\5\1\0\3\0\0\120", 7, SOCKS_NO_ADDRESS },
    { "\5\1\0\3\6a\0.com\0\120", 13, SOCKS_NO_ADDRESS },
    { "\5\1\0\3\6a b.cc\0\120", 13, SOCKS_NO_ADDRESS },
    { "\5\1\0\3\5" "127.1\0\120", 12, SOCKS_NO_ADDRESS },
    { "\5\1\0\1\12\0\0\5\0\0", 10, SOCKS_NO_ADDRESS },          /* port 0 */
  };
  enum socks_reply reply;
  struct target target;
  size_t used = 0, i;

  (void) state;
  for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    assert_int_equal (socks_request (rows[i].bytes, rows[i].size, &used,
                                     &target, &reply), -1);
    assert_int_equal (reply, rows[i].reply);
  }
  assert_int_equal (socks_greeting ("\5\1\2", 3, &used), -1);
  assert_int_equal (socks_greeting ("\5\0", 2, &used), -1);
  assert_int_equal (socks_greeting ("\4\1\0", 3, &used), -1);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (a_name_has_one_form),
    cmocka_unit_test (what_could_be_read_in_two_ways_is_no_name),
    cmocka_unit_test (a_port_is_a_number_from_1_to_65535),
    cmocka_unit_test (only_what_is_listed_is_reached),
    cmocka_unit_test (a_list_has_names_and_addresses_and_an_end),
    cmocka_unit_test (a_name_leads_to_public_addresses_alone),
    cmocka_unit_test (a_request_says_where_it_goes),
    cmocka_unit_test (a_request_of_two_meanings_is_refused),
    cmocka_unit_test (the_server_gets_one_request_of_its_own),
    cmocka_unit_test (a_body_ends_where_its_length_says),
    cmocka_unit_test (socks_requests_are_read_as_they_come),
    cmocka_unit_test (socks_that_is_not_for_connecting_is_refused),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
