/* SPDX-License-Identifier: Apache-2.0 */
/* Where the host connects to for a provider: targets, what permissions grant of
 * them, and places of this machine that no name leads to. */

#include "config.h"

#include "harness.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <coffer/fd.h>

#include "base/log.h"
#include "base/text.h"
#include "provider-fixture.h"
#include "provider/broker.h"

/* ---- targets -------------------------------------------------------------- */

static void
targets_have_one_form (void **state)
{
  static const char *const good[][2] = {
    { "tcp:example.org:443", "example.org" },
    { "tcp:Example.ORG.:443", "example.org" },
    { "tcp:[::1]:443", "::1" },
    { "tcp:127.0.0.1:443", "127.0.0.1" },
  };
  static const char *const bad[] = {
    "", "tcp:", "tcp:a", "tcp:a:", "tcp:a:0", "tcp:a:65536", "tcp:a:+80",
    "tcp::80", "tcp:a b:80", "tcp:a%2e:80", "tcp:user@a:80", "tcp:a..b:80",
    "tcp:[::1:80", "tcp:[::1]80", "tcp:a\n:80", "udp:a:80", "a:80",
    "unix:relative", "unix:/a/../b", "unix:", "config:", "config:missing",
    "tcp:b\xc3\xa9:80", "tcp:a/b:80",
  };
  static char *const config[] = { (char *) "other=1", NULL };
  struct broker_target target;
  size_t i;

  (void) state;
  for (i = 0; i < sizeof good / sizeof good[0]; i++) {
    assert_int_equal (broker_parse (good[i][0], config, &target, NULL), 0);
    assert_string_equal (target.host, good[i][1]);
    assert_int_equal (target.port, 443);
  }
  for (i = 0; i < sizeof bad / sizeof bad[0]; i++)
    if (broker_parse (bad[i], config, &target, NULL) == 0)
      fail_msg ("accepted: %s", bad[i]);
  assert_int_equal (broker_parse (NULL, config, &target, NULL), -1);
}

static int
allows (char *const *connect, const char *target)
{
  static struct manifest_config keys[] = { { .key = (char *) "url",
                                             .type = CONFIG_URL },
                                           { .key = (char *) "name",
                                             .type = CONFIG_TEXT },
                                           { .key = (char *) "proxy",
                                             .type = CONFIG_PROXY } };
  static char *const config[] = { (char *) "url=https://API.example.org/v1?x",
                                  (char *) "name=http://text.example.org",
                                  (char *) "proxy=socks5h://a:b@P.example.org",
                                  NULL };
  struct manifest manifest = { .n_config = 3, .config = keys,
                               .permissions.connect = (char **) connect };
  struct broker_target parsed;

  return broker_parse (target, config, &parsed, NULL) == 0
         && broker_allows (&manifest, config, &parsed);
}

static void
permissions_grant_what_they_name (void **state)
{
  static char *const names[] = { (char *) "api.example.org:443",
                                 (char *) "*.example.net:80",
                                 (char *) "unix:/run/x.sock", NULL };
  static char *const config[] = { (char *) "config", NULL };
  static char *const numbers[] = { (char *) "*.0.0.1:80", NULL };

  (void) state;
  assert_true (allows (names, "tcp:API.example.org:443"));
  assert_false (allows (names, "tcp:api.example.org:80"));
  assert_false (allows (names, "tcp:xapi.example.org:443"));
  assert_false (allows (names, "tcp:api.example.org.evil:443"));
  assert_true (allows (names, "tcp:a.example.net:80"));
  assert_true (allows (names, "tcp:a.b.example.net:80"));
  assert_false (allows (names, "tcp:example.net:80"));
  assert_false (allows (names, "tcp:aexample.net:80"));
  assert_true (allows (numbers, "tcp:x.0.0.1:80"));
  assert_false (allows (numbers, "tcp:127.0.0.1:80"));
  assert_true (allows (names, "unix:/run/x.sock"));
  assert_false (allows (names, "unix:/run/y.sock"));
  assert_true (allows (config, "config:url"));
  assert_true (allows (config, "tcp:api.example.org:443"));
  assert_false (allows (config, "tcp:api.example.org:80"));
  assert_false (allows (config, "tcp:text.example.org:80"));
  assert_true (allows (config, "tcp:p.example.org:1080"));
  assert_false (allows (config, "tcp:p.example.org:80"));
  assert_false (allows (NULL, "config:url"));
  assert_false (allows (NULL, "tcp:api.example.org:443"));
}

static int
may_lead (const char *address, int loopback)
{
  struct sockaddr_in v4 = { .sin_family = AF_INET };
  struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
  void *whole = strchr (address, ':') ? (void *) &v6 : (void *) &v4;

  assert_int_equal (inet_pton (whole == &v6 ? AF_INET6 : AF_INET, address,
                               whole == &v6 ? (void *) &v6.sin6_addr
                                            : (void *) &v4.sin_addr), 1);
  return broker_name_may_lead (whole, loopback);
}

static void
a_name_leads_to_no_place_of_this_machine (void **state)
{
  static const char *const never[] = {
    "169.254.169.254", "169.254.0.1", "0.0.0.0", "0.1.2.3", "224.0.0.1",
    "255.255.255.255", "240.0.0.1", "::", "fe80::1", "febf::1", "ff02::1",
    "fd00:ec2::254", "::ffff:169.254.169.254", "64:ff9b::169.254.169.254",
    "::169.254.169.254",
  };
  static const char *const local[] = { "127.0.0.1", "127.8.9.1", "::1",
                                       "::ffff:127.0.0.1" };
  static const char *const good[] = { "10.0.0.1", "192.168.1.1", "8.8.8.8",
                                      "169.253.1.1", "2001:db8::1",
                                      "fd00:1::254", "::ffff:8.8.8.8" };
  size_t i;

  (void) state;
  for (i = 0; i < sizeof never / sizeof never[0]; i++)
    if (may_lead (never[i], 0) || may_lead (never[i], 1))
      fail_msg ("%s", never[i]);
  for (i = 0; i < sizeof local / sizeof local[0]; i++)
    if (may_lead (local[i], 0) || !may_lead (local[i], 1))
      fail_msg ("%s", local[i]);
  for (i = 0; i < sizeof good / sizeof good[0]; i++)
    if (!may_lead (good[i], 0))
      fail_msg ("%s", good[i]);
}

/* A listening socket at `path`. */
static int
listen_at (const char *path)
{
  struct sockaddr_un address = { .sun_family = AF_UNIX };
  int fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

  assert_true (strlen (path) < sizeof address.sun_path);
  strcpy (address.sun_path, path);
  assert_int_equal (bind (fd, (struct sockaddr *) (void *) &address,
                          sizeof address), 0);
  assert_int_equal (listen (fd, 4), 0);
  return fd;
}

/* 0 or the error's number. */
static int
connects_to (char **write, const char *dir, const char *name)
{
  auto_free char *grant = text_printf ("unix:%s/%s", dir, name);
  char *connect[] = { grant, NULL };
  struct manifest manifest = { .permissions = { .connect = connect,
                                                .write = write } };
  auto_error struct error *error = NULL;
  int fd = broker_connect (&manifest, NULL, grant,
                           coffer_now_ns () + HARNESS_PATIENCE_NS, -1, &error);

  if (fd >= 0)
    close (fd);
  return fd >= 0 ? 0 : error->number;
}

static void
a_provider_leads_the_host_to_no_other_socket (void **state)
{
  char dir[] = "/tmp/coffer-unit-XXXXXX";
  auto_free char *theirs = NULL, *file = NULL, *path = NULL, *made = NULL;
  char *write[2] = { NULL, NULL };
  void *gone = dir;
  int fd;

  (void) state;
  assert_non_null (mkdtemp (dir));
  theirs = text_printf ("%s/theirs", dir);
  file = text_printf ("%s/plain", theirs);
  path = text_printf ("%s/sock", dir);
  made = text_printf ("%s/link", theirs);
  write[0] = theirs;
  assert_int_equal (mkdir (theirs, 0700), 0);
  fd = listen_at (path);
  assert_int_equal (symlink ("../sock", made), 0);
  assert_int_equal (connects_to (write, dir, "sock"), 0);
  assert_int_equal (connects_to (write, dir, "theirs/link"),
                    E_CONNECT_DENIED);
  assert_int_equal (connects_to (NULL, dir, "theirs/link"), 0);
  assert_int_equal (unlink (made), 0);
  assert_int_equal (symlink (dir, made), 0);
  assert_int_equal (connects_to (write, dir, "theirs/link/sock"),
                    E_CONNECT_DENIED);
  close (open (file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  assert_int_equal (connects_to (write, dir, "theirs/plain"),
                    E_CONNECT_FAILED);
  assert_int_equal (connects_to (write, dir, "none"), E_CONNECT_FAILED);
  assert_int_equal (connects_to (write, dir, "theirs"), E_CONNECT_FAILED);
  close (fd);
  unlink (file);
  unlink (made);
  unlink (path);
  rmdir (theirs);
  assert_int_equal (rmdir (gone), 0);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (targets_have_one_form),
    cmocka_unit_test (permissions_grant_what_they_name),
    cmocka_unit_test (a_name_leads_to_no_place_of_this_machine),
    cmocka_unit_test (a_provider_leads_the_host_to_no_other_socket),
  };

  log_set_level (LOG_LEVEL_ERROR);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
