/* SPDX-License-Identifier: Apache-2.0 */
/* core/provider/registry*.c: which providers there are, what an operator's
 * files change, and that one that is broken stays alone with it. */

#include <config.h>

#include "harness.h"

#include "base/json.h"
#include "registry-fixture.h"

static const struct registry_entry *
entry_of (const struct registry *registry, const char *id)
{
  size_t i;

  for (i = 0; i < registry->count; i++) {
    if (strcmp (registry->entries[i].id, id) == 0)
      return &registry->entries[i];
  }
  return NULL;
}

/* Loads `rich` alone, which must be broken, by this. */
static void
broken (const struct place *place, int number, const char *message)
{
  auto_registry struct registry *registry = NULL;
  const struct registry_entry *entry = NULL;
  auto_error struct error *err = NULL;

  assert_int_equal (registry_load_one (place, "rich", &registry, NULL), 0);
  assert_int_equal (registry->entries[0].state, PROVIDER_BROKEN);
  assert_int_equal (registry_find (registry, "rich", &entry, &err), -1);
  if (err->number != number || strstr (err->message, message) == NULL) {
    print_error ("got: E%d %s\nwant: E%d %s\n", err->number, err->message,
                 number, message);
    fail ();
  }
}

static void
shipped_and_installed_are_found_with_their_trust (void **state)
{
  auto_place struct place *place = places (state);
  auto_registry struct registry *registry = NULL;
  const struct registry_entry *entry;

  put (state, "shipped/beta.yaml", MANIFEST ("beta", ""));
  put (state, "shipped/alpha.yaml", MANIFEST ("alpha", "permissions: "
                                    "{namespaces: true, exec: any}\n"));
  put (state, "shipped/m.so", "x");
  put (state, "shipped/.hidden.yaml", "x");
  install (state, "pinned", MANIFEST ("pinned", ""), "pinned");
  install (state, "dropped", MANIFEST ("dropped", ""), NULL);
  registry = load (place);
  assert_int_equal (registry->count, 4);
  assert_string_equal (registry->entries[0].id, "alpha");
  assert_string_equal (registry->entries[3].id, "pinned");
  assert_int_equal (entry_of (registry, "alpha")->trust, TRUST_PACKAGED);
  assert_int_equal (entry_of (registry, "alpha")->state, PROVIDER_ENABLED);
  assert_true (entry_of (registry, "alpha")->dir_fd >= 0);
  assert_int_equal (entry_of (registry, "pinned")->trust, TRUST_PINNED);
  entry = entry_of (registry, "dropped");
  assert_int_equal (entry->trust, TRUST_DROPPED);
  assert_int_equal (entry->state, PROVIDER_QUARANTINED);
  assert_string_equal (registry->default_provider, "linux");
  assert_string_equal (registry->default_source, "builtin");
}

static void
what_is_dropped_in_is_refused_by_name (void **state)
{
  auto_place struct place *place = places (state);
  auto_registry struct registry *registry = NULL;
  const struct registry_entry *entry = NULL;
  auto_error struct error *err = NULL;

  install (state, "dropped", MANIFEST ("dropped", ""), NULL);
  put (state, "config/providers.d/dropped.yaml", "enabled: true\n");
  assert_int_equal (registry_load_one (place, "dropped", &registry, NULL), 0);
  assert_int_equal (registry_find (registry, "dropped", &entry, &err), -1);
  assert_int_equal (err->number, E_PROVIDER_DISABLED);
  assert_non_null (strstr (err->hint, "provider enable dropped"));
}

static void
a_broken_one_stops_no_other (void **state)
{
  auto_place struct place *place = places (state);
  auto_registry struct registry *registry = NULL;
  const struct registry_entry *entry = NULL;

  put (state, "shipped/good.yaml", MANIFEST ("good", ""));
  put (state, "shipped/bad.yaml", "manifest: 1\nid: bad\nnonsense\n");
  put (state, "shipped/other.yaml", MANIFEST ("another", ""));
  install (state, "changed", MANIFEST ("changed", ""), "local");
  install (state, "changed", MANIFEST ("changed", "limits: {calls: 9}\n"),
           NULL);
  install (state, "greedy", MANIFEST ("greedy", "permissions: {namespaces: "
                                                "true}\n"), "signed");
  put (state, "providers/loose/loose.yaml", MANIFEST ("loose", ""));
  assert_int_equal (chmod (at (state, "providers/loose"), 0777), 0);
  registry = load (place);
  assert_int_equal (registry_find (registry, "good", &entry, NULL), 0);
  assert_int_equal (entry_of (registry, "bad")->error->number, E_MANIFEST);
  assert_int_equal (entry_of (registry, "other")->error->number, E_MANIFEST);
  assert_int_equal (entry_of (registry, "changed")->error->number,
                    E_INTEGRITY);
  assert_int_equal (entry_of (registry, "greedy")->error->number, E_DENIED);
  assert_int_equal (entry_of (registry, "loose")->error->number,
                    E_UNSAFE_FILE);
}

static void
what_is_shipped_is_never_replaced (void **state)
{
  auto_place struct place *place = places (state);
  auto_registry struct registry *registry = NULL;

  put (state, "shipped/good.yaml", MANIFEST ("good", ""));
  install (state, "good", MANIFEST ("good", "homepage: \"http://x\"\n"),
           "signed");
  registry = load (place);
  assert_int_equal (registry->count, 1);
  assert_int_equal (registry->entries[0].trust, TRUST_PACKAGED);
  assert_null (registry->entries[0].manifest->homepage);
}

static void
a_link_in_place_of_a_provider_is_not_followed (void **state)
{
  auto_place struct place *place = places (state);
  auto_registry struct registry *registry = NULL;

  put (state, "elsewhere/sly.yaml", MANIFEST ("sly", ""));
  put (state, "providers/real/real.yaml", MANIFEST ("real", ""));
  assert_int_equal (symlink (at (state, "elsewhere"),
                             at (state, "providers/sly")), 0);
  registry = load (place);
  assert_int_equal (entry_of (registry, "sly")->state, PROVIDER_BROKEN);
  assert_null (entry_of (registry, "sly")->manifest);
}

static void
the_operator_configures_narrows_and_limits (void **state)
{
  auto_place struct place *place = places (state);
  auto_registry struct registry *registry = NULL;
  const struct registry_entry *entry;
  const struct manifest *m;

  put (state, "shipped/rich.yaml", MANIFEST ("rich", RICH));
  put (state, "config/coffer.yaml",
       "default_provider: rich\naccept: [limit.memory]\n"
       "default_profile: minimal\n");
  put (state, "config/providers.d/rich.yaml",
       "config: {size: 5MiB, key: \"file:/nonexistent\"}\n"
       "permissions:\n"
       "  connect: [\"api.example.org:443\"]\n"
       "  read: [/etc/ssl/certs]\n"
       "limits: {memory: 128MiB}\n"
       "worker: {allow_degraded: true}\n");
  assert_int_equal (registry_load_one (place, NULL, &registry, NULL), 0);
  assert_string_equal (registry->default_source, "user");
  assert_string_equal (registry->accept[0], "limit.memory");
  assert_string_equal (registry->default_profile, "minimal");
  entry = &registry->entries[0];
  m = entry->manifest;
  assert_int_equal (entry->state, PROVIDER_ENABLED);
  assert_true (entry->allow_degraded);
  assert_string_equal (m->permissions.connect[0], "api.example.org:443");
  assert_null (m->permissions.connect[1]);
  assert_string_equal (m->permissions.read[0], "/etc/ssl/certs");
  assert_string_equal (m->permissions.exec[0], "/usr/bin");
  assert_int_equal (m->limits.memory_bytes, 128 << 20);
  assert_int_equal (m->limits.calls, 4);
}

#define CLAIMS(words) "manifest: 1\nid: many\nsummary: s\nversion: 1\n"        \
  "license: MIT\nmodule:\n  - {arch: x86_64, file: m.so}\n"                    \
  "  - {arch: aarch64, file: m.so}\ncontract: {major: 0, minor: 1}\n"           \
  "threads: serial\ncapabilities: [" words "]\n"                               \
  "isolation: {kind: container, host_kernel_shared: true}\n"

/* What is below a word goes with it, and nothing else. */
static void
the_operator_does_without_claims (void **state)
{
  auto_place struct place *place = places (state);
  auto_registry struct registry *registry = NULL;
  const struct registry_entry *entry;

  put (state, "shipped/many.yaml",
       CLAIMS ("exec, files, exec.stdin, files.watch, pause, limit.pids"));
  put (state, "config/providers.d/many.yaml", "without: [files, limit.pids]\n");
  assert_int_equal (registry_load_one (place, "many", &registry, NULL), 0);
  entry = &registry->entries[0];
  assert_string_equal (entry->manifest->capabilities[0], "exec");
  assert_string_equal (entry->manifest->capabilities[1], "exec.stdin");
  assert_string_equal (entry->manifest->capabilities[2], "pause");
  assert_null (entry->manifest->capabilities[3]);
  assert_string_equal (entry->without[0], "files");
  assert_string_equal (entry->without[1], "files.watch");
  assert_string_equal (entry->without[2], "limit.pids");
  assert_null (entry->without[3]);
}

static void
the_operator_disables (void **state)
{
  auto_place struct place *place = places (state);
  auto_registry struct registry *registry = NULL;
  const struct registry_entry *entry = NULL;
  auto_error struct error *err = NULL;

  put (state, "shipped/good.yaml", MANIFEST ("good", ""));
  put (state, "config/providers.d/good.yaml", "enabled: false\n");
  registry = load (place);
  assert_int_equal (registry->entries[0].state, PROVIDER_DISABLED);
  assert_int_equal (registry_find (registry, "good", &entry, &err), -1);
  assert_int_equal (err->number, E_PROVIDER_DISABLED);
}

static void
an_operator_file_that_is_wrong_breaks_its_provider_only (void **state)
{
  static const struct {
    const char *text, *message;
    int number;
  } cases[] = {
    { "enable: true\n", "rich.yaml:1:1: unknown key \"enable\": did you mean "
                        "\"enabled\"?", E_CONFIG },
    { "config: {sise: 1}\n", "did you mean \"size\"?", E_CONFIG },
    { "config: {size: lots}\n", "1:16: size must be a size", E_CONFIG },
    { "config: {key: hunter2}\n", "key is a secret: give it by env:",
      E_CONFIG },
    { "config: {key: \"file:relative\"}\n", "key is a secret", E_CONFIG },
    { "permissions: {read: [/etc]}\n", "only narrowed", E_CONFIG },
    { "permissions: {read: [/etc/sslx]}\n", "only narrowed", E_CONFIG },
    { "permissions: {connect: [\"example.org:443\"]}\n", "only narrowed",
      E_CONFIG },
    { "permissions: {connect: [\"a.example.org:80\"]}\n", "only narrowed",
      E_CONFIG },
    { "permissions: {write: [/srv]}\n", "only narrowed", E_CONFIG },
    { "permissions: {exec: any}\n", "only narrowed", E_CONFIG },
    { "permissions: {namespaces: true}\n", "only narrowed", E_CONFIG },
    { "permissions: {cgroup: true}\n", "only narrowed", E_CONFIG },
    { "limits: {memory: 1}\n", "16MiB", E_CONFIG },
    { "worker: {allow_degraded: maybe}\n", "true or false", E_CONFIG },
    { "without: [pause]\n", "1:11: without: the manifest does not claim this",
      E_CONFIG },
    { "without: exec\n", "without must be a list", E_CONFIG },
    { "- a\n", "expected a map", E_CONFIG },
  };
  auto_place struct place *place = places (state);
  size_t i;

  put (state, "shipped/rich.yaml", MANIFEST ("rich", RICH));
  for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    put (state, "config/providers.d/rich.yaml", cases[i].text);
    broken (place, cases[i].number, cases[i].message);
  }
  assert_int_equal (chmod (at (state, "config/providers.d/rich.yaml"), 0666),
                    0);
  broken (place, E_UNSAFE_FILE, "writable by others");
  unlink (at (state, "config/providers.d/rich.yaml"));
  assert_int_equal (symlink ("/dev/null",
                             at (state, "config/providers.d/rich.yaml")), 0);
  broken (place, E_UNSAFE_FILE, "rich.yaml");
}

/* What a literal secret was is in no message. */
static void
a_secret_written_down_is_not_repeated (void **state)
{
  auto_place struct place *place = places (state);
  auto_registry struct registry *registry = NULL;

  put (state, "shipped/rich.yaml", MANIFEST ("rich", RICH));
  put (state, "config/providers.d/rich.yaml",
       "config: {key: hunter2-and-more}\n");
  assert_int_equal (registry_load_one (place, "rich", &registry, NULL), 0);
  assert_null (strstr (registry->entries[0].error->message, "hunter2"));
}

static void
folders_that_others_can_change_are_not_read (void **state)
{
  auto_place struct place *place = places (state);
  auto_registry struct registry *registry = NULL;
  auto_error struct error *err = NULL;

  put (state, "shipped/good.yaml", MANIFEST ("good", ""));
  put (state, "config/coffer.yaml", "default_provider: evil\n");
  assert_int_equal (chmod (at (state, "config"), 0777), 0);
  assert_int_equal (registry_load (place, &registry, &err), -1);
  assert_int_equal (err->number, E_UNSAFE_FILE);
  assert_int_equal (chmod (at (state, "config"), 0700), 0);

  install (state, "extra", MANIFEST ("extra", ""), "local");
  assert_int_equal (chmod (at (state, "providers"), 0777), 0);
  registry = load (place);
  assert_int_equal (registry->count, 1);
  assert_string_equal (registry->entries[0].id, "good");
}

static void
coffer_yaml_is_read_strictly (void **state)
{
  static const char *const bad[] = {
    "default: x\n", "default_profile: UP\n", "default_provider: [x]\n", "default_provider: UP\n",
    "accept: [limit.mem]\n", "accept: limit.memory\n", "x\n",
    "default_provider: a\ndefault_provider: b\n"
  };
  auto_place struct place *place = places (state);
  size_t i;

  for (i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    auto_error struct error *err = NULL;
    struct registry *registry = NULL;

    put (state, "config/coffer.yaml", bad[i]);
    assert_int_equal (registry_load (place, &registry, &err), -1);
    assert_int_equal (err->number, E_CONFIG);
    assert_non_null (strstr (err->message, "coffer.yaml:"));
  }
}

static void
the_nearest_provider_is_named (void **state)
{
  auto_place struct place *place = places (state);
  auto_registry struct registry *registry = NULL;
  const struct registry_entry *entry = NULL;
  auto_error struct error *err = NULL, *odd = NULL;

  put (state, "shipped/linux.yaml", MANIFEST ("linux", ""));
  assert_int_equal (registry_load_one (place, "linus", &registry, NULL), 0);
  assert_int_equal (registry->count, 0);
  assert_int_equal (registry_find (registry, "linus", &entry, &err), -1);
  assert_int_equal (err->number, E_UNKNOWN_PROVIDER);
  assert_non_null (strstr (err->hint, "did you mean linux?"));
  registry_free (steal (registry));
  assert_int_equal (registry_load_one (place, "../linux", &registry, NULL), 0);
  assert_int_equal (registry_find (registry, "../linux", &entry, &odd), -1);
  assert_int_equal (odd->number, E_UNKNOWN_PROVIDER);
}

static void
the_default_is_set_and_reset (void **state)
{
  auto_place struct place *place = places (state);
  auto_registry struct registry *registry = NULL;
  auto_free char *now = NULL, *again = NULL;

  put (state, "config/coffer.yaml", "# kept\n");
  assert_int_equal (registry_set_default (place, "good", NULL), 0);
  assert_int_equal (registry_load_one (place, NULL, &registry, NULL), 0);
  assert_string_equal (registry->default_provider, "good");
  assert_string_equal (registry->default_source, "user");
  assert_int_equal (registry_reset_default (place, "other", &now, NULL), 0);
  assert_string_equal (now, "good");
  assert_int_equal (registry_reset_default (place, "good", &again, NULL), 0);
  assert_string_equal (again, "linux");
  assert_int_equal (registry_set_default (place, "../x", NULL), -1);
}

int
main (void)
{
#define IN_FOLDER(test)                                                       \
  cmocka_unit_test_setup_teardown (test, harness_folder_new,                  \
                                   harness_folder_free)
  const struct CMUnitTest tests[] = {
    IN_FOLDER (shipped_and_installed_are_found_with_their_trust),
    IN_FOLDER (what_is_dropped_in_is_refused_by_name),
    IN_FOLDER (a_broken_one_stops_no_other),
    IN_FOLDER (what_is_shipped_is_never_replaced),
    IN_FOLDER (a_link_in_place_of_a_provider_is_not_followed),
    IN_FOLDER (the_operator_configures_narrows_and_limits),
    IN_FOLDER (the_operator_does_without_claims),
    IN_FOLDER (the_operator_disables),
    IN_FOLDER (an_operator_file_that_is_wrong_breaks_its_provider_only),
    IN_FOLDER (a_secret_written_down_is_not_repeated),
    IN_FOLDER (folders_that_others_can_change_are_not_read),
    IN_FOLDER (coffer_yaml_is_read_strictly),
    IN_FOLDER (the_default_is_set_and_reset),
    IN_FOLDER (the_nearest_provider_is_named),
  };

  return cmocka_run_group_tests_name ("registry", tests, NULL, NULL);
}
