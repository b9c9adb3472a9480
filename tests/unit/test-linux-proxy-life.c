/* SPDX-License-Identifier: Apache-2.0 */
/* A sandbox and its proxy: made together or not at all, and nothing of either
 * is left.  What it lets through is for tests/e2e/network.sh. */

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "linux-host.h"

static struct linux_host host;
static const char *const list[] = { "www.example.test:80", NULL };

static struct coffer_sandbox_spec
allowing (const char *const *allow)
{
  struct coffer_sandbox_spec spec = { sizeof spec, .lifeline = -1,
                                      .template_fd = -1 };

  spec.network = "allow";
  spec.allow = allow;
  return spec;
}

/* No process of ours, not even a dead one, and no folder. */
static void
assert_nothing_left (const char *id)
{
  assert_int_equal (waitpid (-1, NULL, WNOHANG | __WALL), -1);
  assert_int_equal (errno, ECHILD);
  assert_int_equal (faccessat (host.runtime, id, F_OK, 0), -1);
}

static void
a_proxy_comes_and_goes_with_its_sandbox (void **state)
{
  struct coffer_sandbox_spec spec = allowing (list);

  (void) state;
  assert_int_equal (host_create (&host, "proxied", &spec), COFFER_OK);
  assert_non_null (strstr (host.facts, "network ok a list of 1, through "
                                       "127.0.0.1:3128\n"));
  assert_non_null (strstr (host.facts, "proxy "));
  assert_non_null (strstr (host.facts, "no capabilities"));
  assert_int_equal (host_kill (&host, "proxied"), COFFER_OK);
  assert_nothing_left ("proxied");
}

static void
a_run_has_one_too (void **state)
{
  const char *const argv[] = { "/bin/sh", "-c", "echo $http_proxy $NO_PROXY",
                               NULL };
  struct coffer_sandbox_spec spec = allowing (NULL);
  static struct outcome outcome;

  (void) state;
  assert_int_equal (host_run_once (&host, &spec, argv, 10000, &outcome),
                    COFFER_OK);
  assert_string_equal (outcome.out, "http://127.0.0.1:3128 "
                                    "localhost,127.0.0.1,::1\n");
}

/* Programs that end at once, say something else, or never stop saying it. */
static void
a_proxy_that_is_none_leaves_nothing (void **state)
{
  static const char *const programs[]
    = { "/bin/false", "/bin/cat", "/usr/bin/yes", "/no/such/file",
        "/etc/passwd" };
  struct coffer_sandbox_spec spec = allowing (list);
  size_t i;

  (void) state;
  for (i = 0; i < sizeof programs / sizeof programs[0]; i++) {
    host.late = programs[i];
    if (host_create (&host, "broken", &spec) != COFFER_UNAVAILABLE
        || strstr (host.error, "coffer-proxy") == NULL)
      fail_msg ("%s: %s", programs[i], host.error);
    host.late = NULL;
    assert_nothing_left ("broken");
  }
  assert_int_equal (host_create (&host, "broken", &spec), COFFER_OK);
  assert_int_equal (host_kill (&host, "broken"), COFFER_OK);
}

static void
a_list_that_is_none_makes_nothing (void **state)
{
  static const char *const entries[]
    = { "a.test", "a.test:0", "127.1:80", "*:80", "a b:80", "[::1]:80x",
        ("b\xc3\xbc" "cher.test:80") };
  const char *allow[2] = { NULL, NULL };
  struct coffer_sandbox_spec spec;
  size_t i;

  (void) state;
  for (i = 0; i < sizeof entries / sizeof entries[0]; i++) {
    allow[0] = entries[i];
    spec = allowing (allow);
    assert_int_equal (host_create (&host, "unlisted", &spec), COFFER_INVALID);
    assert_non_null (strstr (host.error, entries[i]));
  }
  spec = allowing (list);
  spec.network = "none";
  assert_int_equal (host_create (&host, "unlisted", &spec), COFFER_INVALID);
  assert_nothing_left ("unlisted");
}

static int
prepare (void **state)
{
  (void) state;
  linux_host_open (&host);
  return 0;
}

static int
end (void **state)
{
  (void) state;
  linux_host_close (&host);
  return 0;
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (a_proxy_comes_and_goes_with_its_sandbox),
    cmocka_unit_test (a_run_has_one_too),
    cmocka_unit_test (a_proxy_that_is_none_leaves_nothing),
    cmocka_unit_test (a_list_that_is_none_makes_nothing),
  };

  if (!host_can ()) {
    printf ("1..0 # SKIP missing: user namespaces\n");
    return 0;
  }
  return cmocka_run_group_tests (tests, prepare, end);
}
