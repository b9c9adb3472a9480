/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles: what is read, what is refused and where it stood, whose file is
 * taken, and the schema against the reader. */

#include <config.h>

#include "harness.h"

#include "base/json.h"
#include "base/text.h"
#include "policy/profile.h"

#define HEAD "profile: 1\nname: p\nsummary: s\n"

static int
reads (const char *text, struct profile **out, struct error **err)
{
  return profile_read (text, strlen (text), "f", out, err);
}

static void
what_is_wrong_is_refused_at_its_place (void **state)
{
  static const struct {
    const char *text, *message;
  } table[] = {
    { "", "f:1:1: there is nothing in it" },
    { "name: p\nsummary: s\n", "f:1:1: profile: 1 is missing" },
    { "profile: 2\nname: p\nsummary: s\n",
      "f:1:10: profile must be a whole number from 1 to 1" },
    { "profile: 1\nsummary: s\n", "f:1:1: name is missing" },
    { "profile: 1\nname: P\nsummary: s\n",
      "f:2:7: name must be a letter and then letters, digits and dashes, in"
      " lower case" },
    { "profile: 1\nname: p\n", "f:1:1: summary is missing" },
    { "profile: 1\nname: p\nsummary: \"\"\n",
      "f:3:10: summary must have 1 to 120 bytes" },
    { HEAD "memroy: 1GiB\n",
      "f:4:1: unknown key \"memroy\": did you mean \"memory\"?" },
    { HEAD "memory: 1GiB\nmemory: 2GiB\n",
      "f:5:1: the key \"memory\" is given twice (first in line 4)" },
    { HEAD "memory: \"1GiB\"\n",
      "f:4:9: memory must be written without quotes" },
    { HEAD "memory: 1KiB\n", "f:4:9: memory must be from 1MiB to 1EiB" },
    { HEAD "memory: -1\n", "f:4:9: memory must be from 1MiB to 1EiB" },
    { HEAD "memory: 18446744073709551617\n",
      "f:4:9: memory must be from 1MiB to 1EiB" },
    { HEAD "memory: 16777216TiB\n",
      "f:4:9: memory must be from 1MiB to 1EiB" },
    { HEAD "memory: [1GiB]\n", "f:4:9: memory must be a single value" },
    { HEAD "cpus: 0\n", "f:4:7: cpus must be from 0.001 to 1024" },
    { HEAD "cpus: 1s\n", "f:4:7: cpus must be from 0.001 to 1024" },
    { HEAD "cpus: 1025\n", "f:4:7: cpus must be from 0.001 to 1024" },
    { HEAD "pids: 4294967297\n", "f:4:7: pids must be from 1 to 4194304" },
    { HEAD "pids: 0\n", "f:4:7: pids must be from 1 to 4194304" },
    { HEAD "inodes: 1\n", "f:4:9: inodes must be from 16 to 1099511627776" },
    { HEAD "disk: 1\n", "f:4:7: disk must be from 64KiB to 1EiB" },
    { HEAD "open_files: 1\n", "f:4:13: open_files must be from 32 to 1048576" },
    { HEAD "file_size: 1\n",
      "f:4:12: file_size must be from 1MiB to 1EiB" },
    { HEAD "address_space: 1\n",
      "f:4:16: address_space must be from 64MiB to 1EiB" },
    { HEAD "timeout: 0\n", "f:4:10: timeout must be from 1ms to 366d" },
    { HEAD "timeout: 367d\n", "f:4:10: timeout must be from 1ms to 366d" },
    { HEAD "ttl: 10ms\n", "f:4:6: ttl must be from 1s to 366d" },
    { HEAD "network: non\n",
      "f:4:10: network: \"non\" is not known here: did you mean \"none\"?" },
    { HEAD "networks: none\n", "f:4:11: networks must be a list" },
    { HEAD "networks: [none, all]\n",
      "f:4:18: networks: \"all\" is not known here" },
    { HEAD "network: allow\nnetworks: [none]\n",
      "f:4:10: network: allow is not one of networks" },
    { HEAD "network: host\n",
      "f:4:10: network: host must be one of networks as well" },
    { HEAD "network: allow\nallow: [example.org]\n",
      "f:5:9: allow: not NAME:PORT" },
    { HEAD "network: allow\nallow: [\"a:65536\"]\n",
      "f:5:9: allow: not NAME:PORT" },
    { HEAD "allow: [\"a:1\"]\n", "f:4:8: allow goes with network: allow" },
    { HEAD "mounts: wr\n", "f:4:9: mounts: \"wr\" is not known "
      "here: did you mean \"rw\"?" },
    { HEAD "root: readonly\n", "f:4:7: root: \"readonly\" is not known here: "
      "did you mean \"read-only\"?" },
    { HEAD "filter: lax\n", "f:4:9: filter: \"lax\" is not known here" },
    { HEAD "require: [cgruop]\n", "f:4:11: require: \"cgruop\" is not known "
      "here: did you mean \"cgroup\"?" },
    { HEAD "memory: 1GiB\nmax: {memory: 512MiB}\n",
      "f:5:15: max: memory is below its default" },
    { HEAD "max: {network: none}\n", "f:4:7: unknown key \"network\"" },
    { HEAD "max: {memory: 1}\n",
      "f:4:15: memory must be from 1MiB to 1EiB" },
    { HEAD "max: 1\n", "f:4:6: expected a map of keys and values" },
    { HEAD "locked: [memory]\n",
      "f:4:10: locked: memory has no value in this profile" },
    { HEAD "pids: 1\nlocked: [pid]\n",
      "f:5:10: locked: no such field \"pid\": did you mean \"pids\"?" },
  };
  size_t i;

  (void) state;
  for (i = 0; i < sizeof table / sizeof table[0]; i++) {
    auto_error struct error *err = NULL;
    struct profile *profile = NULL;

    if (reads (table[i].text, &profile, &err) == 0)
      fail_msg ("taken: %s", table[i].text);
    assert_null (profile);
    assert_int_equal (err->number, E_CONFIG);
    if (strcmp (err->message, table[i].message) != 0)
      fail_msg ("%s\ngot:  %s\nwant: %s", table[i].text, err->message,
                table[i].message);
  }
}

static void
values_are_what_was_written (void **state)
{
  auto_profile struct profile *p = NULL;
  auto_error struct error *err = NULL;

  (void) state;
  assert_int_equal (reads (HEAD "network: allow\nnetworks: [allow, none]\n"
                           "allow: [\"*.example.org:443\"]\nmounts: ro\n"
                           "root: writable\nfilter: strict\n"
                           "require: [landlock, quota.hard]\ncpus: 1.25\n"
                           "memory: 1.5GiB\npids: 7\ndisk: 64KiB\n"
                           "inodes: 16\naddress_space: 64MiB\n"
                           "file_size: 1MiB\nopen_files: 32\ntimeout: 1ms\n"
                           "ttl: 366d\nmax: {timeout: 2m, cpus: 3}\n"
                           "locked: [network, memory]\n", &p, &err), 0);
  assert_string_equal (p->word[PROFILE_NETWORK], "allow");
  assert_true (profile_lists (p, PROFILE_NETWORKS, "none"));
  assert_false (profile_lists (p, PROFILE_NETWORKS, "host"));
  assert_string_equal (p->words[PROFILE_ALLOW][0], "*.example.org:443");
  assert_string_equal (p->word[PROFILE_FILTER], "strict");
  assert_int_equal (p->number[PROFILE_CPUS], 1250);
  assert_int_equal (p->number[PROFILE_MEMORY], 3ULL << 29);
  assert_int_equal (p->number[PROFILE_TIMEOUT], 1);
  assert_int_equal (p->number[PROFILE_TTL], 366ULL * 86400 * 1000);
  assert_int_equal (p->most[PROFILE_TIMEOUT], 120000);
  assert_int_equal (p->most[PROFILE_CPUS], 3000);
  assert_int_equal (p->most[PROFILE_MEMORY], 0);
  assert_true (profile_is_locked (p, PROFILE_NETWORK));
  assert_true (profile_is_locked (p, PROFILE_MEMORY));
  assert_false (profile_is_locked (p, PROFILE_CPUS));
}

/* The table of the shipped ones: what is promised of them. */
static void
shipped_ones_are_what_they_are_called (void **state)
{
  static const struct {
    const char *name, *network, *mounts, *root, *filter;
    uint64_t cpus, memory, pids, timeout, most;
    unsigned locked;
  } table[] = {
#define BIT(field) (1u << PROFILE_##field)
    { "default", "none", "rw", "read-only", NULL, 1000, 512, 128, 30, 120,
      0 },
    { "offline-readonly", "none", "ro", "read-only", NULL, 500, 256, 64, 30,
      60, BIT (NETWORK) | BIT (MOUNTS) | BIT (ROOT) },
    { "network-basic", "allow", "rw", "read-only", NULL, 1000, 512, 128, 30,
      120, 0 },
    { "network-extended", "allow", "rw", "writable", NULL, 2000, 1024, 256,
      30, 300, 0 },
    { "minimal", "none", "ro", "read-only", "strict", 500, 256, 32, 10, 30,
      BIT (NETWORK) | BIT (MOUNTS) | BIT (ROOT) | BIT (FILTER) },
    { "data-science", "none", "rw", "read-only", "strict", 2000, 2048, 128,
      60, 300, BIT (NETWORK) | BIT (ROOT) | BIT (FILTER) },
#undef BIT
  };
  struct place place = { .home_override = 1, .config = *state };
  auto_json json_t *list = NULL;
  size_t i;

  for (i = 0; i < sizeof table / sizeof table[0]; i++) {
    auto_profile struct profile *p = NULL;
    auto_error struct error *err = NULL;

    if (profile_find (&place, table[i].name, &p, &err) < 0)
      fail_msg ("%s: %s", table[i].name, error_message (err));
    assert_string_equal (p->source, "shipped");
    assert_string_equal (p->word[PROFILE_NETWORK], table[i].network);
    assert_string_equal (p->word[PROFILE_MOUNTS], table[i].mounts);
    assert_string_equal (p->word[PROFILE_ROOT], table[i].root);
    if (table[i].filter)
      assert_string_equal (p->word[PROFILE_FILTER], table[i].filter);
    else
      assert_null (p->word[PROFILE_FILTER]);
    assert_int_equal (p->number[PROFILE_CPUS], table[i].cpus);
    assert_int_equal (p->number[PROFILE_MEMORY], table[i].memory << 20);
    assert_int_equal (p->number[PROFILE_PIDS], table[i].pids);
    assert_int_equal (p->number[PROFILE_TIMEOUT], table[i].timeout * 1000);
    assert_int_equal (p->most[PROFILE_TIMEOUT], table[i].most * 1000);
    assert_int_equal (p->locked, table[i].locked);
    /* Nothing that a machine may lack; but the guarded interpreter is not to
     * be had with a layer less. */
    if (table[i].filter) {
      assert_int_equal (profile_lists (p, PROFILE_REQUIRE, "landlock"), 1);
      assert_null (p->words[PROFILE_REQUIRE][1]);
    } else
      assert_null (p->words[PROFILE_REQUIRE]);
    /* Only one lets a caller have the host's network. */
    assert_int_equal (profile_lists (p, PROFILE_NETWORKS, "host"),
                      strcmp (table[i].name, "network-extended") == 0);
  }
  assert_int_equal (profile_list (&place, &list, NULL), 0);
  assert_int_equal (json_array_size (list), i);
}

/* ---- an operator's own --------------------------------------------------- */

static void
write_profile (const char *folder, const char *name, const char *text,
               mode_t mode)
{
  FILE *file = fopen (harness_path (folder, name), "w");

  assert_non_null (file);
  fputs (text, file);
  assert_int_equal (fclose (file), 0);
  assert_int_equal (chmod (harness_path (folder, name), mode), 0);
}

static void
find_says (const struct place *place, const char *name, int number,
           const char *part)
{
  auto_profile struct profile *p = NULL;
  auto_error struct error *err = NULL;

  if (profile_find (place, name, &p, &err) == 0)
    fail_msg ("%s was found", name);
  assert_int_equal (err->number, number);
  if (!strstr (error_message (err), part))
    fail_msg ("no \"%s\" in: %s", part, error_message (err));
}

static void
an_operators_own_is_read_under_the_rule_for_trusted_files (void **state)
{
  struct place place = { .home_override = 1, .config = *state };
  const char *folder = strdup (harness_path (*state, "profiles"));
  auto_profile struct profile *p = NULL, *own = NULL;
  auto_json json_t *list = NULL;

  find_says (&place, "mine", E_NOT_FOUND, "there is no profile mine");
  assert_int_equal (mkdir (folder, 0755), 0);
  write_profile (folder, "mine.yaml",
                 "profile: 1\nname: mine\nsummary: s\npids: 9\n", 0644);
  write_profile (folder, "default.yaml",
                 "profile: 1\nname: default\nsummary: ours\n", 0644);
  write_profile (folder, "open.yaml",
                 "profile: 1\nname: open\nsummary: s\n", 0666);
  write_profile (folder, "named.yaml",
                 "profile: 1\nname: other\nsummary: s\n", 0644);
  write_profile (folder, "bad.yaml", "profile: 1\nname: bad\nx: 1\n", 0644);
  assert_int_equal (symlink ("mine.yaml", harness_path (folder,
                                                        "link.yaml")), 0);
  assert_int_equal (profile_find (&place, "mine", &p, NULL), 0);
  assert_int_equal (p->number[PROFILE_PIDS], 9);
  assert_string_equal (p->source, harness_path (folder, "mine.yaml"));
  assert_int_equal (profile_find (&place, "default", &own, NULL), 0);
  assert_string_equal (own->summary, "ours");
  find_says (&place, "open", E_UNSAFE_FILE, "writable by others");
  find_says (&place, "link", E_UNSAFE_FILE, "link.yaml");
  find_says (&place, "named", E_CONFIG, "must be called other.yaml");
  find_says (&place, "bad", E_CONFIG, "bad.yaml:3:1: unknown key \"x\"");
  find_says (&place, "../mine", E_NOT_FOUND, "no profile ../mine");
  find_says (&place, "", E_NOT_FOUND, "no profile");
  assert_int_equal (profile_list (&place, &list, NULL), 0);
  assert_int_equal (json_array_size (list), 11);
  assert_non_null (json_object_get (json_array_get (list, 0), "error"));
  assert_int_equal (chmod (folder, 0777), 0);
  find_says (&place, "mine", E_UNSAFE_FILE, "profiles");
  assert_int_equal (chmod (folder, 0755), 0);
  free ((char *) folder);
}

/* ---- the schema and the manual ------------------------------------------- */

static char *
slurp (const char *name)
{
  const char *source = getenv ("COFFER_SOURCE");
  FILE *file = fopen (harness_path (source ? source : ".", name), "r");
  char *text = calloc (1, 65536);

  assert_non_null (file);
  assert_non_null (text);
  assert_true (fread (text, 1, 65535, file) > 0);
  fclose (file);
  return text;
}

static int
enum_has (const json_t *property, const char *word)
{
  json_t *list = json_object_get (property, "enum"), *item;
  size_t i;

  if (!list)
    list = json_object_get (json_object_get (property, "items"), "enum");
  json_array_foreach (list, i, item)
    if (strcmp (json_string_value (item), word) == 0)
      return 1;
  return 0;
}

static void
the_schema_and_the_manual_have_the_keys_of_the_reader (void **state)
{
  auto_free char *text = slurp ("manifests/schema/profile.schema.json");
  auto_free char *manual = slurp ("core/man/coffer-profile.5");
  auto_json json_t *root = NULL;
  json_t *properties, *most, *locked;
  size_t numbers = 0, k;
  int i;

  (void) state;
  assert_int_equal (json_parse (text, strlen (text), &root, NULL), 0);
  properties = json_object_get (root, "properties");
  most = json_object_get (json_object_get (properties, "max"), "properties");
  locked = json_object_get (properties, "locked");
  for (i = 0; i < PROFILE_FIELDS; i++) {
    const struct profile_field_info *info = &profile_fields[i];
    json_t *property = json_object_get (properties, info->key);
    auto_free char *item = text_printf ("\n.It Cm %s\n", info->key);
    int number = info->kind != KIND_WORD && info->kind != KIND_WORDS;

    assert_non_null (property);
    assert_int_equal (json_object_get (most, info->key) != NULL, number);
    numbers += (size_t) number;
    assert_true (enum_has (locked, info->key));
    for (k = 0; info->choices && info->choices[k]; k++)
      assert_true (enum_has (property, info->choices[k]));
    if (!strstr (manual, item))
      fail_msg ("coffer-profile(5) lacks %s", info->key);
  }
  assert_int_equal (json_object_size (properties), PROFILE_FIELDS + 5);
  assert_int_equal (json_object_size (most), numbers);
  assert_int_equal (json_array_size (json_object_get (
                      json_object_get (locked, "items"), "enum")),
                    PROFILE_FIELDS);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (what_is_wrong_is_refused_at_its_place),
    cmocka_unit_test (values_are_what_was_written),
    cmocka_unit_test_setup_teardown (shipped_ones_are_what_they_are_called,
                                     harness_folder_new,
                                     harness_folder_free),
    cmocka_unit_test_setup_teardown (
      an_operators_own_is_read_under_the_rule_for_trusted_files,
      harness_folder_new, harness_folder_free),
    cmocka_unit_test (the_schema_and_the_manual_have_the_keys_of_the_reader),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
