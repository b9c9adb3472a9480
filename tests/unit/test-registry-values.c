/* SPDX-License-Identifier: Apache-2.0 */
/* core/provider/registry*.c: where the values of a provider's configuration come
 * from, secrets and proxies among them. */

#include <config.h>

#include "harness.h"

#include <coffer/fd.h>

#include "base/json.h"
#include "registry-fixture.h"

static int
resolve (void **state, char ***values, char ***secrets, struct error **err)
{
  auto_place struct place *place = places (state);
  auto_registry struct registry *registry = NULL;
  const struct registry_entry *entry = NULL;

  if (registry_load_one (place, "rich", &registry, err) < 0
      || registry_find (registry, "rich", &entry, err) < 0)
    return -1;
  return registry_resolve_config (entry, values, secrets, err);
}

static void
resolves_to (void **state, const char *key, const char *url)
{
  char **values = NULL, **secrets = NULL;
  auto_error struct error *err = NULL;

  if (resolve (state, &values, &secrets, &err) < 0)
    print_error ("%s\n", err->message);
  assert_non_null (values);
  assert_string_equal (values[0], key);
  assert_string_equal (values[1], url);
  assert_string_equal (secrets[0], strchr (key, '=') + 1);
  assert_null (secrets[1]);
  yaml_free_texts (values);
  yaml_free_texts (secrets);
}

static void
unresolved (void **state, int number)
{
  char **values = NULL, **secrets = NULL;
  auto_error struct error *err = NULL;

  assert_int_equal (resolve (state, &values, &secrets, &err), -1);
  assert_int_equal (err->number, number);
  assert_null (values);
}

static void
values_come_from_the_environment_the_operator_or_the_default (void **state)
{
  char text[256];

  put (state, "shipped/rich.yaml", MANIFEST ("rich", RICH));
  unresolved (state, E_CREDENTIALS_MISSING);
  setenv ("TEST_REGISTRY_KEY", "from-env", 1);
  resolves_to (state, "key=from-env", "url=https://example.org");
  put (state, "config/providers.d/rich.yaml",
       "config: {url: \"http://operator\"}\n");
  resolves_to (state, "key=from-env", "url=http://operator");
  setenv ("TEST_REGISTRY_URL", "http://env", 1);
  resolves_to (state, "key=from-env", "url=http://env");
  setenv ("TEST_REGISTRY_URL", "ftp://env", 1);
  unresolved (state, E_CONFIG_VALUE);
  unsetenv ("TEST_REGISTRY_URL");
  unsetenv ("TEST_REGISTRY_KEY");

  put (state, "secret", "from file " VECTOR_NAME "\n");
  snprintf (text, sizeof text, "config: {key: \"file:%s\"}\n",
            at (state, "secret"));
  put (state, "config/providers.d/rich.yaml", text);
  resolves_to (state, "key=from file " VECTOR_NAME,
               "url=https://example.org");
  assert_int_equal (chmod (at (state, "secret"), 0666), 0);
  unresolved (state, E_UNSAFE_FILE);
  put (state, "config/providers.d/rich.yaml",
       "config: {key: \"env:TEST_REGISTRY_OTHER\"}\n");
  unresolved (state, E_CREDENTIALS_MISSING);
  setenv ("TEST_REGISTRY_OTHER", "other", 1);
  resolves_to (state, "key=other", "url=https://example.org");
  unsetenv ("TEST_REGISTRY_OTHER");
}

/* ---- proxies ---- */

#define PROXIED                                                               \
  "config:\n  url: {type: url, default: \"https://api.example.org\"}\n"       \
  "  proxy: {type: proxy}\npermissions: {connect: [config]}\n"

static const char *const proxy_variables[] = {
  "http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy",
  "ALL_PROXY", "no_proxy", "NO_PROXY"
};

static void
forget_proxies (void)
{
  for (size_t i = 0; i < sizeof proxy_variables / sizeof (char *); i++)
    unsetenv (proxy_variables[i]);
}

/* NULL: it has none. */
static void
proxy_is (void **state, const char *want)
{
  auto_place struct place *place = places (state);
  auto_registry struct registry *registry = load (place);
  char **values = NULL, **secrets = NULL;

  assert_int_equal (registry_resolve_config (&registry->entries[0], &values,
                                             &secrets, NULL), 0);
  if (want)
    assert_string_equal (values[1], want);
  else
    assert_null (values[1]);
  yaml_free_texts (values);
  yaml_free_texts (secrets);
}

static void
the_proxy_is_what_the_usual_variables_say (void **state)
{
  forget_proxies ();
  put (state, "shipped/rich.yaml", MANIFEST ("rich", PROXIED));
  proxy_is (state, NULL);
  setenv ("http_proxy", "http://plain:3128", 1);
  setenv ("HTTP_PROXY", "http://never:3128", 1);
  proxy_is (state, NULL);
  setenv ("ALL_PROXY", "socks5h://socks", 1);
  proxy_is (state, "proxy=socks5h://socks");
  setenv ("HTTPS_PROXY", "http://me:pass@tls:3128/", 1);
  proxy_is (state, "proxy=http://me:pass@tls:3128/");
  setenv ("no_proxy", "example.com, .api.example.org:80", 1);
  proxy_is (state, "proxy=http://me:pass@tls:3128/");
  setenv ("no_proxy", "ample.org", 1);
  proxy_is (state, "proxy=http://me:pass@tls:3128/");
  setenv ("no_proxy", "a,EXAMPLE.org", 1);
  proxy_is (state, NULL);
  setenv ("no_proxy", "*", 1);
  proxy_is (state, NULL);
  unsetenv ("no_proxy");
  put (state, "config/providers.d/rich.yaml",
       "config: {url: \"http://api.example.org\"}\n");
  proxy_is (state, "proxy=http://plain:3128");
  put (state, "config/providers.d/rich.yaml",
       "config: {proxy: \"https://mine:8443\"}\n");
  proxy_is (state, "proxy=https://mine:8443");
  put (state, "config/providers.d/rich.yaml",
       "config: {proxy: \"env:HTTPS_PROXY\"}\n");
  proxy_is (state, "proxy=http://me:pass@tls:3128/");
  forget_proxies ();
}

static void
this_machine_is_reached_without_a_proxy (void **state)
{
  static const char *const urls[] = { "http://localhost:1", "http://127.1.2.3",
                                      "https://[::1]:8443" };
  char text[128];

  forget_proxies ();
  put (state, "shipped/rich.yaml", MANIFEST ("rich", PROXIED));
  setenv ("all_proxy", "http://p:1", 1);
  for (size_t i = 0; i < 3; i++) {
    snprintf (text, sizeof text, "config: {url: \"%s\"}\n", urls[i]);
    put (state, "config/providers.d/rich.yaml", text);
    proxy_is (state, NULL);
  }
  forget_proxies ();
}

static int
has_warning (void **state)
{
  auto_place struct place *place = places (state);
  auto_registry struct registry *registry = load (place);
  auto_json json_t *checks = registry_check (&registry->entries[0], place, 0);
  auto_free char *text = json_dumps (checks, 0);

  return strstr (text, "warning: all_proxy names a SOCKS proxy") != NULL;
}

static void
proxies_of_two_kinds_are_pointed_out (void **state)
{
  forget_proxies ();
  put (state, "shipped/rich.yaml", MANIFEST ("rich", PROXIED));
  setenv ("ALL_PROXY", "socks5://s:1080", 1);
  assert_false (has_warning (state));
  setenv ("https_proxy", "http://p:3128", 1);
  assert_true (has_warning (state));
  setenv ("ALL_PROXY", "http://p:3128", 1);
  assert_false (has_warning (state));
  forget_proxies ();
}

/* Neither in a file that anybody may read nor in what is shown. */
static void
a_proxys_password_is_not_written_down_nor_shown (void **state)
{
  auto_place struct place *place = places (state);
  auto_registry struct registry *registry = NULL;
  const struct registry_config *proxy;

  forget_proxies ();
  put (state, "shipped/rich.yaml", MANIFEST ("rich", PROXIED));
  setenv ("https_proxy", "http://me:pass@p:3128", 1);
  registry = load (place);
  proxy = registry_given (&registry->entries[0], "proxy");
  assert_true (proxy->secret);
  assert_null (proxy->value);
  assert_string_equal (proxy->origin, "env:https_proxy");
  registry_free (steal (registry));
  put (state, "config/providers.d/rich.yaml",
       "config: {proxy: \"http://me:pass@p:3128\"}\n");
  registry = load (place);
  assert_int_not_equal (registry->entries[0].state, PROVIDER_ENABLED);
  forget_proxies ();
}

static void
secrets_come_from_the_credentials_of_systemd (void **state)
{
  put (state, "shipped/rich.yaml", MANIFEST ("rich", RICH));
  put (state, "credentials/rich.key", "by default name");
  put (state, "credentials/named", "by its name\n");
  setenv ("CREDENTIALS_DIRECTORY", at (state, "credentials"), 1);
  resolves_to (state, "key=by default name", "url=https://example.org");
  put (state, "config/providers.d/rich.yaml",
       "config: {key: \"credential:named\"}\n");
  resolves_to (state, "key=by its name", "url=https://example.org");
  unsetenv ("CREDENTIALS_DIRECTORY");
  unresolved (state, E_CREDENTIALS_MISSING);
}

static void
origins_are_told_and_secrets_are_not_read_before_they_are_needed (void **state)
{
  auto_place struct place *place = places (state);
  auto_registry struct registry *registry = NULL;
  const struct registry_entry *entry;

  put (state, "shipped/rich.yaml", MANIFEST ("rich", RICH));
  put (state, "config/providers.d/rich.yaml",
       "config: {key: \"file:/nonexistent/secret\", size: 1K}\n");
  registry = load (place);
  entry = &registry->entries[0];
  assert_int_equal (entry->n_config, 3);
  assert_string_equal (entry->config[0].origin, "file:/nonexistent/secret");
  assert_null (entry->config[0].value);
  assert_true (entry->config[0].secret);
  assert_string_equal (entry->config[1].origin, "config");
  assert_string_equal (entry->config[1].value, "1K");
  assert_string_equal (entry->config[2].origin, "default");
}

int
main (void)
{
#define IN_FOLDER(test)                                                       \
  cmocka_unit_test_setup_teardown (test, harness_folder_new,                  \
                                   harness_folder_free)
  const struct CMUnitTest tests[] = {
    IN_FOLDER (values_come_from_the_environment_the_operator_or_the_default),
    IN_FOLDER (secrets_come_from_the_credentials_of_systemd),
    IN_FOLDER (the_proxy_is_what_the_usual_variables_say),
    IN_FOLDER (this_machine_is_reached_without_a_proxy),
    IN_FOLDER (proxies_of_two_kinds_are_pointed_out),
    IN_FOLDER (a_proxys_password_is_not_written_down_nor_shown),
    IN_FOLDER (
      origins_are_told_and_secrets_are_not_read_before_they_are_needed),
  };

  unsetenv ("CREDENTIALS_DIRECTORY");
  return cmocka_run_group_tests_name ("registry-values", tests, NULL, NULL);
}
