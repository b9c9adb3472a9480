/* SPDX-License-Identifier: Apache-2.0 */
/* coffer-manifest(5), coffer.yaml(5) and manifests/schema against the code, both ways: every
 * key and word that is read is written down, and nothing else is. */

#include <config.h>

#include "harness.h"

#include <fcntl.h>
#include <regex.h>

#include <coffer/fd.h>

#include "base/json.h"
#include "base/text.h"
#include "contract/contract.h"
#include "provider/registry-read.h"

#define MAX_KEYS 32

static char *
slurp (const char *name)
{
  const char *source = getenv ("COFFER_SOURCE");
  coffer_autoclose int fd = open (harness_path (source ? source : "..", name),
                                  O_RDONLY | O_CLOEXEC);
  char *bytes = NULL;
  size_t size = 0;

  assert_true (fd >= 0);
  assert_int_equal (coffer_read_whole (fd, 1 << 20, &bytes, &size), 0);
  return bytes;
}

static int
has (const char *const *words, size_t count, const char *word)
{
  size_t i;

  for (i = 0; i < count; i++) {
    if (strcmp (words[i], word) == 0)
      return 1;
  }
  return 0;
}

static size_t
length (const char *const *words)
{
  size_t n = 0;

  while (words[n])
    n++;
  return n;
}

/* -- the manual ------------------------------------------------------------ */

/* The part below ".Ss TITLE"; the caller frees. */
static char *
part_of (const char *page, const char *title)
{
  auto_free char *head = text_printf ("\n.Ss %s\n", title);
  const char *start = strstr (page, head), *end, *section;

  if (start == NULL) {
    print_error ("the manual has no part \"%s\"\n", title);
    fail ();
  }
  start += strlen (head);
  end = strstr (start, "\n.Ss ");
  section = strstr (start, "\n.Sh ");
  if (end == NULL || (section && section < end))
    end = section;
  return strndup (start, end ? (size_t) (end - start) : strlen (start));
}

static void
page_has_exactly (const char *page, const char *title,
                  const char *const *keys, size_t count)
{
  auto_free char *part = part_of (page, title);
  char *line, *rest = part;
  size_t found = 0;

  while ((line = strsep (&rest, "\n"))) {
    if (strncmp (line, ".It Cm ", 7) != 0)
      continue;
    if (!has (keys, count, line + 7)) {
      print_error ("%s: the manual has %s and the code does not\n", title,
                   line + 7);
      fail ();
    }
    found++;
  }
  if (found != count) {
    print_error ("%s: the manual has %zu keys, the code %zu\n", title, found,
                 count);
    fail ();
  }
}

static const struct {
  const char *section, *title;
} sections[] = {
  { "", "Top level" }, { "module", "module" }, { "files", "files" },
  { "contract", "contract" }, { "isolation", "isolation" },
  { "config", "config" }, { "permissions", "permissions" },
  { "limits", "limits" },
};
#define N_SECTIONS (sizeof sections / sizeof sections[0])

static void
every_key_is_in_the_manual_and_no_other (void **state)
{
  auto_free char *page = slurp ("core/man/coffer-manifest.5");
  const char *keys[MAX_KEYS];
  size_t i;

  (void) state;
  for (i = 0; i < N_SECTIONS; i++) {
    size_t n = manifest_keys (sections[i].section, keys, MAX_KEYS);

    assert_true (n > 0);
    page_has_exactly (page, sections[i].title, keys, n);
  }
  page_has_exactly (page, "operator", operator_keys, length (operator_keys));
}

static void
every_key_of_the_configuration_is_in_its_manual (void **state)
{
  auto_free char *page = slurp ("core/man/coffer.yaml.5");

  (void) state;
  page_has_exactly (page, "coffer.yaml", operator_main_keys,
                    length (operator_main_keys));
}

static void
every_permission_names_its_mechanism (void **state)
{
  auto_free char *page = slurp ("core/man/coffer-manifest.5");
  auto_free char *part = part_of (page, "permissions");
  const char *keys[MAX_KEYS];
  size_t i, n = manifest_keys ("permissions", keys, MAX_KEYS);

  (void) state;
  for (i = 0; i < n; i++) {
    auto_free char *item = text_printf (".It Cm %s\n", keys[i]);
    const char *start = strstr (part, item);
    const char *mechanism = strstr (start, ".Em Mechanism :");
    const char *next = strstr (start + 1, ".It Cm ");

    if (mechanism == NULL || (next && mechanism > next)) {
      print_error ("%s has no mechanism in the manual\n", keys[i]);
      fail ();
    }
  }
}

static void
optional_keys_are_marked_so (void **state)
{
  auto_free char *page = slurp ("core/man/coffer-manifest.5");
  size_t i, k;

  (void) state;
  for (i = 0; i < N_SECTIONS; i++) {
    auto_free char *part = part_of (page, sections[i].title);
    const char *keys[MAX_KEYS];
    size_t n = manifest_keys (sections[i].section, keys, MAX_KEYS);

    for (k = 0; k < n; k++) {
      auto_free char *item = text_printf (".It Cm %s\n", keys[k]);
      const char *text = strstr (part, item) + strlen (item);
      const int marked = strncmp (text, "Optional", 8) == 0
                         || strncmp (text, "As above", 8) == 0;

      if (marked
          == manifest_key_required (sections[i].section, keys[k])) {
        print_error ("%s: wrong about whether %s is optional\n",
                     sections[i].title, keys[k]);
        fail ();
      }
    }
  }
}

/* The example is one that is read. */
static void
the_example_of_the_manual_is_a_manifest (void **state)
{
  auto_free char *page = slurp ("core/man/coffer-manifest.5");
  const char *start = strstr (page, "\n.Bd -literal\n");
  const char *end = start ? strstr (start, "\n.Ed\n") : NULL;
  auto_manifest struct manifest *m = NULL;
  auto_error struct error *err = NULL;

  (void) state;
  assert_non_null (end);
  start += strlen ("\n.Bd -literal\n");
  if (manifest_parse (start, (size_t) (end + 1 - start), "example", &m, &err)
      < 0)
    print_error ("%s\n", err->message);
  assert_non_null (m);
}

/* -- the schema ------------------------------------------------------------ */

static json_t *
schema (void)
{
  auto_free char *text = slurp ("manifests/schema/manifest.schema.json");
  json_t *json = NULL;

  assert_int_equal (json_parse (text, strlen (text), &json, NULL), 0);
  return json;
}

static json_t *
definition (json_t *root, const char *section)
{
  if (*section == '\0')
    return root;
  return json_object_get (json_object_get (root, "$defs"), section);
}

static int
array_has (const json_t *array, const char *word)
{
  json_t *item;
  size_t i;

  json_array_foreach (array, i, item) {
    if (strcmp (json_string_value (item), word) == 0)
      return 1;
  }
  return 0;
}

static void
every_key_is_in_the_schema_and_no_other (void **state)
{
  auto_json json_t *root = schema ();
  const char *keys[MAX_KEYS];
  size_t i, k;

  (void) state;
  for (i = 0; i < N_SECTIONS; i++) {
    json_t *def = definition (root, sections[i].section);
    json_t *properties = json_object_get (def, "properties");
    json_t *required = json_object_get (def, "required");
    size_t n = manifest_keys (sections[i].section, keys, MAX_KEYS);

    assert_true (json_is_false (json_object_get (def,
                                                 "additionalProperties")));
    assert_int_equal (json_object_size (properties), n);
    for (k = 0; k < n; k++) {
      assert_non_null (json_object_get (properties, keys[k]));
      assert_int_equal (array_has (required, keys[k]),
                        manifest_key_required (sections[i].section, keys[k]));
    }
  }
}

static void
enum_is (json_t *root, const char *section, const char *key,
         const char *const *words)
{
  json_t *property
    = json_object_get (json_object_get (definition (root, section),
                                        "properties"), key);
  json_t *list = json_object_get (property, "enum");
  size_t i;

  if (list == NULL)
    list = json_object_get (json_object_get (property, "items"), "enum");
  assert_int_equal (json_array_size (list), length (words));
  for (i = 0; words[i]; i++)
    assert_true (array_has (list, words[i]));
}

static void
the_words_of_the_schema_are_those_of_the_code (void **state)
{
  static const char *const threads[] = { "serial", "parallel", NULL };
  const char *types[CONFIG_PEM + 2] = { NULL };
  auto_json json_t *root = schema ();
  int i;

  (void) state;
  for (i = 0; i <= CONFIG_PEM; i++)
    types[i] = manifest_config_type_name ((enum manifest_config_type) i);
  enum_is (root, "", "capabilities", contract_capabilities ());
  enum_is (root, "", "never", contract_failures ());
  enum_is (root, "", "threads", threads);
  enum_is (root, "module", "arch", manifest_archs);
  enum_is (root, "isolation", "kind", manifest_isolation_kinds);
  enum_is (root, "config", "type", types);
  enum_is (root, "config", "from", manifest_config_froms);
}

static void
patterns_agree (json_t *root, const char *section, const char *key,
                int (*is_good) (const char *))
{
  static const char *const vectors[] = {
    "", "a", "A", "1", "-", ".", "_", "a-b", "a_b", "a.b", "a/b", "a b",
    "demo.so", ".a", "-a", "é", "abcdefghijklmnopqrstuvwxyz012345",
    "abcdefghijklmnopqrstuvwxyz0123456",
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdeF",
  };
  json_t *property
    = json_object_get (json_object_get (definition (root, section),
                                        "properties"), key);
  regex_t regex;
  size_t i;

  assert_int_equal (
    regcomp (&regex,
             json_string_value (json_object_get (property, "pattern")),
             REG_EXTENDED | REG_NOSUB), 0);
  for (i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
    if ((regexec (&regex, vectors[i], 0, NULL, 0) == 0)
        != !!is_good (vectors[i])) {
      print_error ("%s %s: schema and code differ about \"%s\"\n", section,
                   key, vectors[i]);
      fail ();
    }
  }
  regfree (&regex);
}

static int
is_hash (const char *s)
{
  return *s == '\0' || sha256_is_hex (s);
}

static void
the_patterns_of_the_schema_take_what_the_code_takes (void **state)
{
  auto_json json_t *root = schema ();

  (void) state;
  patterns_agree (root, "", "id", text_is_id);
  patterns_agree (root, "module", "file", manifest_is_file_name);
  patterns_agree (root, "files", "name", manifest_is_file_name);
  patterns_agree (root, "module", "sha256", is_hash);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (every_key_is_in_the_manual_and_no_other),
    cmocka_unit_test (every_key_of_the_configuration_is_in_its_manual),
    cmocka_unit_test (every_permission_names_its_mechanism),
    cmocka_unit_test (optional_keys_are_marked_so),
    cmocka_unit_test (the_example_of_the_manual_is_a_manifest),
    cmocka_unit_test (every_key_is_in_the_schema_and_no_other),
    cmocka_unit_test (the_words_of_the_schema_are_those_of_the_code),
    cmocka_unit_test (the_patterns_of_the_schema_take_what_the_code_takes),
  };

  return cmocka_run_group_tests_name ("manifest-docs", tests, NULL, NULL);
}
