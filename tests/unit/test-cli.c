/* SPDX-License-Identifier: Apache-2.0 */
/* core/cli: the table, the parser, variables, mounts, kept output, widths. */

#include <config.h>

#include "harness.h"

#include "sandbox/capture.h"
#include "cli/cli.h"
#include "cli/env.h"
#include "cli/output.h"
#include "cli/spec.h"

/* ---- the table ---------------------------------------------------------- */

static void
check_options (const struct cli_option *options, const char *where)
{
  const struct cli_option *option, *other;
  const struct cli_command *command;
  size_t i;

  for (option = options; option && option->name; option++) {
    if (!option->help || strlen (option->help) > 72)
      fail_msg ("%s --%s: help is missing or long", where, option->name);
    for (i = 0; (command = cli_command_at (i)); i++)
      for (other = command->options; other && other->name; other++) {
        if (!strcmp (option->name, other->name)
            && (option->letter != other->letter
                || !option->argument != !other->argument))
          fail_msg ("--%s differs in %s and %s", option->name, where,
                    command->words);
        if (option->letter && option->letter == other->letter
            && !option->argument != !other->argument)
          fail_msg ("-%c takes a value in one of %s and %s", option->letter,
                    where, command->words);
      }
  }
}

static void
options_mean_the_same_before_and_after_the_command (void **state)
{
  const struct cli_command *command;
  size_t i;

  (void) state;
  check_options (cli_global_options, "every command");
  for (i = 0; (command = cli_command_at (i)); i++)
    check_options (command->options, command->words);
}

static void
rows_of_the_table_are_whole (void **state)
{
  const struct cli_command *command;
  size_t i;

  (void) state;
  for (i = 0; (command = cli_command_at (i)); i++) {
    assert_non_null (command->run);
    assert_non_null (command->summary);
    assert_non_null (command->arguments);
    assert_true (command->most < 0 || command->most >= command->least);
    assert_ptr_equal (cli_find_command (command->words), command);
  }
  assert_true (i > 3);
}

/* ---- the parser --------------------------------------------------------- */

#define ARGV(...) ((const char *const[]) { "coffer", __VA_ARGS__, NULL })

static int
parse (struct cli *cli, const char *const *argv, struct error **err)
{
  int argc = 0;

  while (argv[argc])
    argc++;
  memset (cli, 0, sizeof *cli);
  return cli_parse (cli, argc, argv, err);
}

static void
options_stand_before_or_after (void **state)
{
  struct cli cli;

  (void) state;
  assert_int_equal (parse (&cli, ARGV ("--mem", "1G", "--json", "run", "-w.",
                                       "--", "ls", "--json", "-x"), NULL), 0);
  assert_string_equal (cli.command->words, "run");
  assert_true (cli.json);
  assert_string_equal (cli_value (&cli, "mem"), "1G");
  assert_string_equal (cli_value (&cli, "workspace"), ".");
  assert_int_equal (cli.n_args, 3);
  assert_string_equal (cli.args[1], "--json");
  cli_fini (&cli);
  assert_int_equal (parse (&cli, ARGV ("sandbox", "--yes", "kill", "a",
                                       "--json", "b"), NULL), 0);
  assert_string_equal (cli.command->words, "sandbox kill");
  assert_int_equal (cli.n_args, 2);
  assert_true (cli.yes && cli.json);
  cli_fini (&cli);
}

static void
a_command_to_run_keeps_its_own_options (void **state)
{
  struct cli cli;

  (void) state;
  assert_int_equal (parse (&cli, ARGV ("run", "-it", "python3", "-c", "x",
                                       "--mem"), NULL), 0);
  assert_int_equal (cli.n_args, 4);
  assert_true (cli_flag (&cli, "tty") && cli_flag (&cli, "interactive"));
  cli_fini (&cli);
  assert_int_equal (parse (&cli, ARGV ("sandbox", "exec", "id", "-c", "x y"),
                           NULL), 0);
  assert_int_equal (cli.n_args, 1);
  assert_string_equal (cli_value (&cli, "command"), "x y");
  cli_fini (&cli);
  assert_int_equal (parse (&cli, ARGV ("sandbox", "exec", "id", "ls", "-c"),
                           NULL), 0);
  assert_int_equal (cli.n_args, 3);
  cli_fini (&cli);
  assert_int_equal (parse (&cli, ARGV ("sandbox", "exec", "id", "--", "-c"),
                           NULL), 0);
  assert_string_equal (cli.args[1], "-c");
  cli_fini (&cli);
}

static void
check_refused (const char *const *argv, const char *message)
{
  struct cli cli;
  auto_error struct error *err = NULL;

  assert_int_equal (parse (&cli, argv, &err), -1);
  assert_non_null (err);
  assert_int_equal (err->number, E_USAGE);
  assert_non_null (strstr (err->message, message));
  cli_fini (&cli);
}

static void
mistakes_are_usage_errors (void **state)
{
  (void) state;
  check_refused (ARGV ("sandbox", "exec"), "needs");
  check_refused (ARGV ("sandbox", "exec", "--"), "needs");
  check_refused (ARGV ("run", "--ttl", "1h", "--", "ls"), "unknown option");
  check_refused (ARGV ("--ttl", "1h", "run", "--", "ls"),
                 "unknown option --ttl for coffer run");
  check_refused (ARGV ("run", "--mem"), "needs a value");
  check_refused (ARGV ("run", "--mem", "1G", "--mem=2G", "--", "ls"),
                 "given twice");
  check_refused (ARGV ("sandbox"), "a command is needed");
  check_refused (ARGV ("sandbox", "kil"), "unknown command sandbox kil");
  check_refused (ARGV ("sandbox", "list", "x"), "unexpected argument x");
  check_refused (ARGV ("-"), "unknown command -");
  check_refused (ARGV ("--"), "a command is needed");
  check_refused (ARGV ("--="), "unknown option");
  check_refused (ARGV ("version", "-\xff"), "unknown option");
}

/* ---- variables ---------------------------------------------------------- */

static void
a_later_variable_replaces_an_earlier_one (void **state)
{
  coffer_autostrings struct coffer_strings env = { 0 };

  (void) state;
  setenv ("COFFER_TEST_HERE", "from here", 1);
  assert_int_equal (env_add (&env, "--env", "A=1", NULL), 0);
  assert_int_equal (env_add (&env, "--env", "AB=2", NULL), 0);
  assert_int_equal (env_add (&env, "--env", "A=3=4", NULL), 0);
  assert_int_equal (env_add (&env, "--env", "COFFER_TEST_HERE", NULL), 0);
  assert_int_equal (env_add (&env, "--env", "EMPTY=", NULL), 0);
  assert_int_equal (env.count, 4);
  assert_string_equal (env.items[0], "A=3=4");
  assert_string_equal (env.items[2], "COFFER_TEST_HERE=from here");
  assert_string_equal (env.items[3], "EMPTY=");
}

static void
check_variable_refused (const char *word, const char *message)
{
  coffer_autostrings struct coffer_strings env = { 0 };
  auto_error struct error *err = NULL;

  assert_int_equal (env_add (&env, "--env", word, &err), -1);
  assert_int_equal (err->number, E_INVALID);
  assert_non_null (strstr (err->message, message));
  assert_null (strstr (err->message, "secret"));
}

static void
names_of_variables_are_checked_and_values_never_shown (void **state)
{
  (void) state;
  unsetenv ("COFFER_TEST_NOT_HERE");
  check_variable_refused ("COFFER_TEST_NOT_HERE", "is not set here");
  check_variable_refused ("=secret", "not the name");
  check_variable_refused ("", "not the name");
  check_variable_refused ("export A=secret", "not the name");
  check_variable_refused ("A =secret", "not the name");
}

static const char *
file_with (void **state, const char *bytes, size_t size)
{
  const char *path = harness_path (*state, "env");
  FILE *file = fopen (path, "w");

  assert_non_null (file);
  assert_int_equal (fwrite (bytes, 1, size, file), size);
  assert_int_equal (fclose (file), 0);
  return path;
}

static void
a_file_of_variables_is_read_as_written (void **state)
{
  static const char text[]
    = "\xef\xbb\xbf" "A=1\r\n\n# note\n  B= two  words \nCAFÉ=café\nQ=\"x\"";
  coffer_autostrings struct coffer_strings env = { 0 };

  assert_int_equal (
    env_add_file (&env, file_with (state, text, sizeof text - 1), NULL), 0);
  assert_int_equal (env.count, 4);
  assert_string_equal (env.items[0], "A=1");
  assert_string_equal (env.items[1], "B= two  words ");
  assert_string_equal (env.items[2], "CAFÉ=café");
  assert_string_equal (env.items[3], "Q=\"x\"");
}

static void
a_bad_file_of_variables_names_its_line (void **state)
{
  coffer_autostrings struct coffer_strings env = { 0 };
  auto_error struct error *err = NULL;

  assert_int_equal (
    env_add_file (&env, file_with (state, "A=1\n\nB\0=2\n", 10), &err), -1);
  assert_non_null (strstr (err->message, "env:3: a NUL byte"));
  error_free (steal (err));
  assert_int_equal (
    env_add_file (&env, file_with (state, "A=1\nexport B=2", 14), &err), -1);
  assert_non_null (strstr (err->message, "env:2: "));
  error_free (steal (err));
  assert_int_equal (env_add_file (&env, "/nonexistent/env", &err), -1);
  assert_int_equal (err->number, E_INVALID);
}

/* ---- mounts ------------------------------------------------------------- */

static void
check_mount (const char *word, const char *fallback, const char *source,
             const char *target, int writable)
{
  struct sandbox_mount mount;
  auto_error struct error *err = NULL;

  if (mount_parse (word, fallback, fallback == NULL, &mount, &err) < 0)
    fail_msg ("%s: %s", word, err->message);
  assert_string_equal (mount.source, source);
  assert_string_equal (mount.target, target);
  assert_int_equal (mount.writable, writable);
  mount_fini (&mount);
}

static void
mounts_are_split_at_the_target (void **state)
{
  char odd[512], word[600];

  snprintf (odd, sizeof odd, "%s/a:b :ro 你好", (const char *) *state);
  assert_int_equal (mkdir (odd, 0700), 0);
  check_mount ("/usr", "/workspace", "/usr", "/workspace", 0);
  check_mount ("/usr:rw", "/workspace", "/usr", "/workspace", 1);
  check_mount ("/usr:ro", "/workspace", "/usr", "/workspace", 0);
  check_mount (odd, "/workspace", odd, "/workspace", 0);
  check_mount ("/usr:/data", NULL, "/usr", "/data", 1);
  check_mount ("/usr:/data:ro", NULL, "/usr", "/data", 0);
  snprintf (word, sizeof word, "%s:/data:ro", odd);
  check_mount (word, NULL, odd, "/data", 0);
  snprintf (word, sizeof word, "%s:/in side/x", odd);
  check_mount (word, NULL, odd, "/in side/x", 1);
}

static void
check_mount_refused (const char *word, const char *fallback)
{
  struct sandbox_mount mount;
  auto_error struct error *err = NULL;

  assert_int_equal (mount_parse (word, fallback, 0, &mount, &err), -1);
  assert_int_equal (err->number, E_INVALID);
}

static void
mounts_of_nothing_are_refused (void **state)
{
  check_mount_refused ("", "/workspace");
  check_mount_refused (":rw", "/workspace");
  check_mount_refused (harness_path (*state, "none"), "/workspace");
  check_mount_refused ("/etc/passwd", "/workspace");
  check_mount_refused ("/usr", NULL);
  check_mount_refused ("/usr:data", NULL);
  check_mount_refused (":/data", NULL);
  check_mount_refused ("/dev/null:/data", NULL);
}

/* ---- kept output -------------------------------------------------------- */

static void
short_output_is_kept_whole (void **state)
{
  struct capture capture = { 0 };
  json_t *json;

  (void) state;
  capture_add (&capture, VECTOR_BODY, strlen (VECTOR_BODY));
  json = capture_json (&capture);
  assert_string_equal (json_string_value (json_object_get (json, "data")),
                       VECTOR_BODY);
  assert_string_equal (json_string_value (json_object_get (json, "encoding")),
                       "utf-8");
  assert_null (json_object_get (json, "omitted"));
  json_decref (json);
  capture_add (&capture, "\xff", 1);
  json = capture_json (&capture);
  assert_string_equal (json_string_value (json_object_get (json, "encoding")),
                       "base64");
  json_decref (json);
  capture_fini (&capture);
}

/* Writes `total` bytes of a text in which every character takes three, in
 * steps of `step`, and compares what is kept with what was written. */
static void
check_kept (size_t total, size_t step)
{
  struct capture capture = { 0 };
  char *all = malloc (total);
  size_t i, n, at, omitted;
  const char *data;
  json_t *json, *gap;

  for (i = 0; i < total; i++)
    all[i] = "\xe2\x98\x83"[i % 3];
  for (i = 0; i < total; i += n) {
    n = total - i < step ? total - i : step;
    capture_add (&capture, all + i, n);
  }
  json = capture_json (&capture);
  assert_non_null (json);
  assert_int_equal (json_integer_value (json_object_get (json, "bytes")),
                    total);
  assert_string_equal (json_string_value (json_object_get (json, "encoding")),
                       "utf-8");
  data = json_string_value (json_object_get (json, "data"));
  gap = json_object_get (json, "omitted");
  at = gap ? (size_t) json_integer_value (json_object_get (gap, "at")) : total;
  omitted = gap
    ? (size_t) json_integer_value (json_object_get (gap, "bytes")) : 0;
  assert_int_equal (strlen (data) + omitted, total);
  assert_memory_equal (data, all, at);
  assert_memory_equal (data + at, all + at + omitted, total - at - omitted);
  if (total > CAPTURE_HEAD + CAPTURE_TAIL)
    assert_true (omitted >= total - CAPTURE_HEAD - CAPTURE_TAIL);
  else
    assert_int_equal (omitted, 0);
  json_decref (json);
  capture_fini (&capture);
  free (all);
}

static void
long_output_keeps_head_and_tail_and_counts_the_rest (void **state)
{
  size_t cap = CAPTURE_HEAD + CAPTURE_TAIL, around = cap / 3 * 3;

  (void) state;
  check_kept (CAPTURE_HEAD / 3 * 3, 4096);
  check_kept (CAPTURE_HEAD / 3 * 3 + 3, 4096);
  check_kept (around, 65536);
  check_kept (around + 3, 65536);
  check_kept (around + 30, 7);
  check_kept (3 * around, 1000003);
  check_kept (3 * around, 3 * around);
}

/* ---- widths ------------------------------------------------------------- */

static void
columns_are_counted_as_a_terminal_shows_them (void **state)
{
  (void) state;
  assert_int_equal (output_width (""), 0);
  assert_int_equal (output_width ("café"), 4);
  assert_int_equal (output_width ("e\xcc\x81"), 1);
  assert_int_equal (output_width ("你好"), 4);
  assert_int_equal (output_width ("☃"), 1);
  assert_int_equal (output_width ("a\xff" "b"), 3);
  assert_int_equal (output_width ("\xe4\xbd"), 2);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (options_mean_the_same_before_and_after_the_command),
    cmocka_unit_test (rows_of_the_table_are_whole),
    cmocka_unit_test (options_stand_before_or_after),
    cmocka_unit_test (a_command_to_run_keeps_its_own_options),
    cmocka_unit_test (mistakes_are_usage_errors),
    cmocka_unit_test (a_later_variable_replaces_an_earlier_one),
    cmocka_unit_test (names_of_variables_are_checked_and_values_never_shown),
    cmocka_unit_test (a_file_of_variables_is_read_as_written),
    cmocka_unit_test (a_bad_file_of_variables_names_its_line),
    cmocka_unit_test (mounts_are_split_at_the_target),
    cmocka_unit_test (mounts_of_nothing_are_refused),
    cmocka_unit_test (short_output_is_kept_whole),
    cmocka_unit_test (long_output_keeps_head_and_tail_and_counts_the_rest),
    cmocka_unit_test (columns_are_counted_as_a_terminal_shows_them),
  };

  return cmocka_run_group_tests (tests, harness_folder_new,
                                 harness_folder_free);
}
