/* SPDX-License-Identifier: Apache-2.0 */
/* core/base/yaml-edit.c: one key changes, and nothing else of the text does. */

#include <config.h>

#include "harness.h"

#include <fcntl.h>
#include <sys/wait.h>

#include <coffer/fd.h>

#include "base/yaml.h"

static const struct yaml_source source = { "file", E_CONFIG };

static void
becomes (const char *text, const char *key, const char *value,
         const char *want)
{
  auto_error struct error *err = NULL;
  auto_free char *out = NULL;
  size_t size = 0;

  if (yaml_edit (text, strlen (text), &source, key, value, &out, &size, &err)
      < 0)
    print_error ("%s\n", error_message (err));
  assert_non_null (out);
  assert_string_equal (out, want);
  assert_int_equal (size, strlen (want));
}

static void
refused (const char *text, const char *key, const char *value,
         const char *message)
{
  auto_error struct error *err = NULL;
  char *out = NULL;
  size_t size = 0;

  assert_int_equal (yaml_edit (text, strlen (text), &source, key, value, &out,
                               &size, &err), -1);
  assert_null (out);
  assert_int_equal (err->number, E_CONFIG);
  assert_string_equal (err->message, message);
}

static void
a_value_is_replaced_where_it_stands (void **state)
{
  (void) state;
  becomes ("# café ☃\ndefault: a # why\nother: [1, 2]\n", "default", "b",
           "# café ☃\ndefault: b # why\nother: [1, 2]\n");
  becomes ("default: \"a\"\r\nx: y\r\n", "default", "b",
           "default: b\r\nx: y\r\n");
  becomes ("{a: 1, default: 'x', c: 2} # é\n", "default", "b",
           "{a: 1, default: b, c: 2} # é\n");
  becomes ("default: # none yet\n# more\n", "default", "b",
           "default: b # none yet\n# more\n");
  becomes ("default: |\n  a\n  b\nx: y\n", "default", "b",
           "default: b\nx: y\n");
  becomes ("default: a", "default", "b", "default: b");
  becomes ("x:\n  default: z\ndefault: a\n", "default", "b",
           "x:\n  default: z\ndefault: b\n");
}

static void
a_new_key_goes_to_the_end (void **state)
{
  (void) state;
  becomes ("", "default", "b", "default: b\n");
  becomes ("# only this\n", "default", "b", "# only this\ndefault: b\n");
  becomes ("x: y # z", "default", "b", "x: y # z\ndefault: b\n");
  becomes ("x:\n  default: z\n# end\n", "default", "b",
           "x:\n  default: z\n# end\ndefault: b\n");
  becomes ("  x: y\n", "default", "b", "  x: y\n  default: b\n");
  becomes ("{x: y}\n", "default", "b", "{x: y, default: b}\n");
  becomes ("{ }\n", "default", "b", "{default: b }\n");
  becomes ("---\nx: y\n", "default", "b", "---\nx: y\ndefault: b\n");
}

static void
a_key_is_taken_out_with_its_line (void **state)
{
  (void) state;
  becomes ("a: 1\ndefault: b # why\n# kept\nc: 2\n", "default", NULL,
           "a: 1\n# kept\nc: 2\n");
  becomes ("# kept\ndefault: b\n", "default", NULL, "# kept\n");
  becomes ("default: b", "default", NULL, "");
  becomes ("{default: b, a: 1}\n", "default", NULL, "{a: 1}\n");
  becomes ("{a: 1, default: b}\n", "default", NULL, "{a: 1}\n");
  becomes ("{default: b}\n", "default", NULL, "{}\n");
  becomes ("default: |\n  a\nx: y\n", "default", NULL, "x: y\n");
}

static void
what_is_there_already_is_left_alone (void **state)
{
  (void) state;
  becomes ("default: 'b'  # x\n", "default", "b", "default: 'b'  # x\n");
  becomes ("a: 1\n", "default", NULL, "a: 1\n");
  becomes ("# none\n", "default", NULL, "# none\n");
}

static void
what_cannot_be_spliced_is_refused (void **state)
{
  (void) state;
  refused ("default: [a]\n", "default", "b",
           "file:1:10: default must be a single value");
  refused ("- a\n", "default", "b",
           "file:1:1: expected a map of keys and values");
  refused ("a: 1\na: 2\n", "default", "b",
           "file:2:1: the key \"a\" is given twice (first in line 1)");
  refused ("a: 1\n...\n", "default", "b",
           "file: default cannot be changed in its text without changing "
           "more");
  refused ("? default\n: a\nx: y\n", "default", NULL,
           "file: default cannot be changed in its text without changing "
           "more");
}

/* -- files ----------------------------------------------------------------- */

static int
folder (void **state)
{
  int fd = open (*state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

  assert_true (fd >= 0);
  return fd;
}

static void
content_is (void **state, const char *name, const char *want, mode_t mode)
{
  coffer_autoclose int fd = open (harness_path (*state, name),
                                  O_RDONLY | O_CLOEXEC);
  auto_free char *bytes = NULL;
  struct stat st;
  size_t size;

  assert_true (fd >= 0);
  assert_int_equal (coffer_read_whole (fd, 4096, &bytes, &size), 0);
  assert_string_equal (bytes, want);
  assert_int_equal (fstat (fd, &st), 0);
  assert_int_equal (st.st_mode & 07777, mode);
}

static void
a_file_is_made_and_keeps_its_mode (void **state)
{
  coffer_autoclose int dir = folder (state);
  int changed = 0;

  assert_int_equal (yaml_edit_file (dir, "new.yaml", &source, "enabled",
                                    "false", &changed, NULL), 0);
  assert_true (changed);
  content_is (state, "new.yaml", "enabled: false\n", 0644);
  assert_int_equal (chmod (harness_path (*state, "new.yaml"), 0600), 0);
  assert_int_equal (yaml_edit_file (dir, "new.yaml", &source, "enabled",
                                    "true", &changed, NULL), 0);
  assert_true (changed);
  content_is (state, "new.yaml", "enabled: true\n", 0600);
  assert_int_equal (yaml_edit_file (dir, "new.yaml", &source, "enabled",
                                    "true", &changed, NULL), 0);
  assert_false (changed);
}

static void
a_link_and_a_stranger_s_file_are_refused (void **state)
{
  coffer_autoclose int dir = folder (state);
  auto_error struct error *err = NULL;
  int changed = 0;

  assert_int_equal (symlink ("elsewhere", harness_path (*state, "link.yaml")),
                    0);
  assert_int_equal (yaml_edit_file (dir, "link.yaml", &source, "enabled",
                                    "false", &changed, &err), -1);
  assert_int_equal (err->number, E_UNSAFE_FILE);
  assert_int_equal (access (harness_path (*state, "elsewhere"), F_OK), -1);
}

/* Eight at once, each with a key of its own: none is lost. */
static void
edits_at_the_same_time_are_all_kept (void **state)
{
  static const char *const keys[] = { "a", "b", "c", "d", "e", "f", "g", "h" };
  coffer_autoclose int dir = folder (state);
  auto_yaml struct yaml_node *root = NULL;
  auto_free char *bytes = NULL;
  coffer_autoclose int fd = -1;
  int i, status, changed;
  size_t size;

  for (i = 0; i < 8; i++) {
    if (fork () == 0)
      _exit (yaml_edit_file (dir, "many.yaml", &source, keys[i], "x",
                             &changed, NULL) < 0);
  }
  for (i = 0; i < 8; i++) {
    assert_true (wait (&status) > 0);
    assert_int_equal (status, 0);
  }
  fd = open (harness_path (*state, "many.yaml"), O_RDONLY | O_CLOEXEC);
  assert_int_equal (coffer_read_whole (fd, 4096, &bytes, &size), 0);
  assert_int_equal (yaml_read (bytes, size, "many", E_CONFIG, &root, NULL), 0);
  assert_int_equal (root->count, 8);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (a_value_is_replaced_where_it_stands),
    cmocka_unit_test (a_new_key_goes_to_the_end),
    cmocka_unit_test (a_key_is_taken_out_with_its_line),
    cmocka_unit_test (what_is_there_already_is_left_alone),
    cmocka_unit_test (what_cannot_be_spliced_is_refused),
    cmocka_unit_test (a_file_is_made_and_keeps_its_mode),
    cmocka_unit_test (a_link_and_a_stranger_s_file_are_refused),
    cmocka_unit_test (edits_at_the_same_time_are_all_kept),
  };

  return cmocka_run_group_tests (tests, harness_folder_new,
                                 harness_folder_free);
}
