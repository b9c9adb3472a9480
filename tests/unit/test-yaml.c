/* SPDX-License-Identifier: Apache-2.0 */
/* core/base/yaml.c: what is read, where it stood, and what is refused. */

#include <config.h>

#include "harness.h"

#include "base/yaml.h"

static const struct yaml_source source = { "file", E_CONFIG };

static int
reads (const char *text, struct yaml_node **out, struct error **err)
{
  return yaml_read (text, strlen (text), "file", E_CONFIG, out, err);
}

static void
refused_at (const char *text, const char *message)
{
  auto_error struct error *err = NULL;
  struct yaml_node *node = NULL;

  assert_int_equal (reads (text, &node, &err), -1);
  assert_null (node);
  assert_int_equal (err->number, E_CONFIG);
  assert_string_equal (err->message, message);
}

static void
a_tree_keeps_kinds_values_and_places (void **state)
{
  static const char text[] = "# café ☃\n"
                             "a: [1, \"two\", {b: 'drei'}]\n"
                             "c:\n"
                             "  d: plain  # x\n";
  auto_yaml struct yaml_node *root = NULL;
  const struct yaml_node *a, *d;

  (void) state;
  assert_int_equal (reads (text, &root, NULL), 0);
  assert_int_equal (root->kind, YAML_MAP);
  assert_int_equal (root->count, 2);
  assert_string_equal (root->keys[1], "c");
  assert_int_equal (root->key_marks[1].line, 3);
  a = yaml_get (root, "a");
  assert_int_equal (a->kind, YAML_LIST);
  assert_true (a->flow);
  assert_int_equal (a->count, 3);
  assert_false (a->items[0].quoted);
  assert_true (a->items[1].quoted);
  assert_string_equal (a->items[1].text, "two");
  assert_string_equal (yaml_get (&a->items[2], "b")->text, "drei");
  d = yaml_get (yaml_get (root, "c"), "d");
  assert_int_equal (d->line, 4);
  assert_int_equal (d->column, 6);
}

static void
places_in_bytes_cover_the_value_after_text_of_several_bytes (void **state)
{
  static const char text[] = "你好: {'q': x}\n";
  static const char good[] = "k: [\"你好 世界\", ☃, 'd']\n";
  auto_yaml struct yaml_node *root = NULL;
  const struct yaml_node *list;

  (void) state;
  refused_at (text, "file:1:6: a key must be a plain word");
  assert_int_equal (reads (good, &root, NULL), 0);
  list = yaml_get (root, "k");
  assert_memory_equal (good + list->items[0].start, "\"你好 世界\"",
                       list->items[0].end - list->items[0].start);
  assert_memory_equal (good + list->items[1].start, "☃",
                       list->items[1].end - list->items[1].start);
  assert_memory_equal (good + list->items[2].start, "'d'",
                       list->items[2].end - list->items[2].start);
  assert_int_equal (list->end, strlen (good) - 1);
}

static void
what_a_manifest_has_no_use_for_is_refused_with_its_place (void **state)
{
  (void) state;
  refused_at ("", "file:1:1: there is nothing in it");
  refused_at ("a: &x 1\n", "file:1:4: anchors are not allowed");
  refused_at ("a: *x\n", "file:1:4: aliases are not allowed");
  refused_at ("a: !!int 1\n", "file:1:4: tags are not allowed");
  refused_at ("a: 1\nb: 2\na: 3\n",
              "file:3:1: the key \"a\" is given twice (first in line 1)");
  refused_at ("{a: 1}\n---\n{b: 2}\n", "file:2:1: more than one document");
  refused_at ("? {a: 1}\n: 2\n", "file:1:3: a key must be a plain word");
  refused_at ("a: \"x\\0y\"\n", "file:1:4: a NUL character is not allowed");
  refused_at ("a: 1\nb: \xff\n", "file:2:1: not UTF-8");
  refused_at ("\xef\xbb\xbf" "a: 1\n",
              "file:1:1: a byte order mark is not allowed");
}

static char *
repeated (const char *before, const char *middle, size_t count,
          const char *after)
{
  char *text = malloc (strlen (before) + strlen (after)
                       + strlen (middle) * count + 1);
  char *p;

  assert_non_null (text);
  p = stpcpy (text, before);
  while (count--)
    p = stpcpy (p, middle);
  strcpy (p, after);
  return text;
}

static void
caps_hold_at_their_edge (void **state)
{
  auto_free char *deep = repeated ("", "[", YAML_MAX_DEPTH - 1, "1");
  auto_free char *closed = repeated (deep, "]", YAML_MAX_DEPTH - 1, "");
  auto_free char *deeper = repeated ("[", closed, 1, "]");
  auto_free char *many = repeated ("[", "1,", YAML_MAX_NODES - 1, "]");
  auto_free char *more = repeated ("[", "1,", YAML_MAX_NODES, "]");
  auto_free char *large = repeated ("a: ", "x", YAML_MAX_BYTES, "");
  auto_free char *bomb = repeated ("a: ", "[", 100000, "");
  auto_yaml struct yaml_node *root = NULL, *list = NULL;

  (void) state;
  assert_int_equal (reads (closed, &root, NULL), 0);
  refused_at (deeper, "file:1:17: nested more than 16 levels deep");
  assert_int_equal (reads (many, &list, NULL), 0);
  assert_int_equal (list->count, YAML_MAX_NODES - 1);
  refused_at (more, "file:1:8192: more than 4096 values");
  refused_at (large, "file: larger than 256 KiB");
  refused_at (bomb, "file:1:19: nested more than 16 levels deep");
}

static void
unknown_keys_name_the_nearest (void **state)
{
  static const char *const keys[] = { "enabled", "config", NULL };
  auto_yaml struct yaml_node *root = NULL;
  auto_error struct error *err = NULL, *other = NULL;

  (void) state;
  assert_int_equal (reads ("config: 1\nenabeld: true\n", &root, NULL), 0);
  assert_int_equal (yaml_check_keys (&source, root, keys, &err), -1);
  assert_string_equal (err->message, "file:2:1: unknown key \"enabeld\": did "
                                     "you mean \"enabled\"?");
  assert_int_equal (
    yaml_check_keys (&source, yaml_get (root, "config"), keys, &other), -1);
  assert_string_equal (other->message,
                       "file:1:9: expected a map of keys and values");
}

static void
typed_values_take_their_type_only (void **state)
{
  static const char text[] = "n: 7\nq: \"7\"\nf: true\ny: yes\ns: 64MiB\n"
                             "d: 1.5h\ne:\nt: \"\"\nl: [a, b]\n";
  auto_yaml struct yaml_node *root = NULL;
  auto_free char *empty = NULL;
  char **texts = NULL, *none = NULL;
  uint64_t n = 0;
  int flag = -1;

  (void) state;
  assert_int_equal (reads (text, &root, NULL), 0);
#define NODE(key) yaml_get (root, key)
  assert_int_equal (yaml_u64 (&source, NODE ("n"), "n", 7, 7, &n, NULL), 0);
  assert_int_equal (n, 7);
  assert_int_equal (yaml_u64 (&source, NODE ("n"), "n", 8, 9, &n, NULL), -1);
  assert_int_equal (yaml_u64 (&source, NODE ("q"), "q", 0, 9, &n, NULL), -1);
  assert_int_equal (yaml_flag (&source, NODE ("f"), "f", &flag, NULL), 0);
  assert_int_equal (flag, 1);
  assert_int_equal (yaml_flag (&source, NODE ("y"), "y", &flag, NULL), -1);
  assert_int_equal (yaml_size (&source, NODE ("s"), "s", &n, NULL), 0);
  assert_int_equal (n, 64 << 20);
  assert_int_equal (yaml_text (&source, NODE ("e"), "e", &none, NULL), -1);
  assert_null (none);
  assert_int_equal (yaml_text (&source, NODE ("t"), "t", &empty, NULL), 0);
  assert_string_equal (empty, "");
  assert_int_equal (yaml_texts (&source, NODE ("n"), "n", &texts, NULL), -1);
  assert_int_equal (yaml_texts (&source, NODE ("l"), "l", &texts, NULL), 0);
  assert_string_equal (texts[1], "b");
  assert_null (texts[2]);
  yaml_free_texts (texts);
#undef NODE
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (a_tree_keeps_kinds_values_and_places),
    cmocka_unit_test (
      places_in_bytes_cover_the_value_after_text_of_several_bytes),
    cmocka_unit_test (what_a_manifest_has_no_use_for_is_refused_with_its_place),
    cmocka_unit_test (caps_hold_at_their_edge),
    cmocka_unit_test (unknown_keys_name_the_nearest),
    cmocka_unit_test (typed_values_take_their_type_only),
  };

  return cmocka_run_group_tests_name ("yaml", tests, NULL, NULL);
}
