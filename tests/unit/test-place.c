/* SPDX-License-Identifier: Apache-2.0 */
/* core/base/place.c: where things live, and which folders are believed. */

#include <config.h>

#include "harness.h"

#include <errno.h>
#include <fcntl.h>

#include "base/place.h"

static void
home_override_holds_everything (void **state)
{
  auto_place struct place *place = NULL;
  const char *home = harness_path (*state, VECTOR_NAME);

  setenv ("COFFER_HOME", home, 1);
  assert_int_equal (place_find (&place, NULL), 0);
  unsetenv ("COFFER_HOME");
  assert_true (place->home_override);
  assert_string_equal (place->state, harness_path (home, "state"));
  assert_string_equal (place->config, harness_path (home, "config"));
  assert_string_equal (place->runtime, harness_path (home, "run"));
  assert_string_equal (place->installed, harness_path (home, "providers"));
  assert_string_equal (place->shipped, place_builtin_shipped);
}

static void
home_override_must_be_absolute (void **state)
{
  auto_error struct error *err = NULL;
  struct place *place = NULL;

  (void) state;
  setenv ("COFFER_HOME", "here", 1);
  assert_int_equal (place_find (&place, &err), -1);
  unsetenv ("COFFER_HOME");
  assert_null (place);
  assert_int_equal (err->number, E_CONFIG);
}

static void
home_of_root_is_the_system_and_of_others_their_own (void **state)
{
  auto_place struct place *place = NULL;

  (void) state;
  unsetenv ("COFFER_HOME");
  unsetenv ("XDG_DATA_HOME");
  setenv ("XDG_STATE_HOME", "/st", 1);
  setenv ("XDG_CONFIG_HOME", "relative", 1);
  setenv ("HOME", "/h", 1);
  unsetenv ("XDG_RUNTIME_DIR");
  assert_int_equal (place_find (&place, NULL), 0);
  if (geteuid () == 0) {
    assert_string_equal (place->state, place_builtin_localstate);
    assert_string_equal (place->config, place_builtin_sysconf);
    assert_string_equal (place->runtime, place_builtin_run);
    return;
  }
  assert_string_equal (place->state, "/st/coffer");
  assert_string_equal (place->config, "/h/.config/coffer");
  assert_string_equal (place->installed, "/h/.local/share/coffer/providers");
  assert_int_equal (strncmp (place->runtime, "/tmp/coffer-", 12), 0);
}

static void
open_dir_makes_private_folders (void **state)
{
  const char *path = harness_path (*state, "made/你好 世界");
  struct stat st;
  int fd = place_open_dir (path, NULL);

  assert_true (fd >= 0);
  assert_true (fcntl (fd, F_GETFD) & FD_CLOEXEC);
  assert_int_equal (fstat (fd, &st), 0);
  assert_int_equal (st.st_mode & 07777, 0700);
  close (fd);
  fd = place_open_dir (path, NULL);
  assert_true (fd >= 0);
  close (fd);
}

static void
check_unsafe (const char *path, const char *part)
{
  auto_error struct error *err = NULL;

  assert_int_equal (place_open_dir (path, &err), -1);
  assert_int_equal (err->number, E_UNSAFE_FILE);
  assert_non_null (strstr (error_message (err), part));
}

static void
open_dir_refuses_links_files_and_open_modes (void **state)
{
  const char *target = harness_path (*state, "target");
  const char *path = harness_path (*state, "odd");

  assert_int_equal (mkdir (target, 0700), 0);
  assert_int_equal (symlink (target, path), 0);
  check_unsafe (path, "symbolic link");
  assert_int_equal (unlink (path), 0);
  close (open (path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  check_unsafe (path, "Not a directory");
  assert_int_equal (unlink (path), 0);
  assert_int_equal (mkdir (path, 0700), 0);
  assert_int_equal (chmod (path, 0702), 0);
  check_unsafe (path, "writable by others");
  check_unsafe (harness_path (path, "below"), "writable by others");
  assert_int_equal (rmdir (path), 0);
  assert_int_equal (rmdir (target), 0);
}

static void
open_dir_refuses_the_folder_of_another_user (void **state)
{
  auto_error struct error *err = NULL;
  const char *path = harness_path (*state, "theirs");

  if (geteuid () != 0)
    skip_missing ("root");
  assert_int_equal (mkdir (path, 0700), 0);
  assert_int_equal (chown (path, 12345, 12345), 0);
  check_unsafe (path, "belongs to uid 12345");
  check_unsafe (harness_path (path, "below"), "belongs to uid 12345");
  /* As all of root's does where a user namespace does not map root. */
  assert_int_equal (chown (path, 65534, 65534), 0);
  assert_int_equal (place_open_dir (path, &err), -1);
  assert_non_null (strstr (error_next_step (err), "user namespace"));
  assert_int_equal (rmdir (path), 0);
}

static void
open_trusted_dir_follows_own_links_only (void **state)
{
  const char *target = harness_path (*state, "real");
  const char *path = harness_path (*state, "link");
  struct stat st;
  int fd;

  assert_int_equal (mkdir (target, 0700), 0);
  assert_int_equal (symlink ("real/../real", path), 0);
  fd = place_open_trusted_dir (path, NULL);
  assert_true (fd >= 0);
  assert_int_equal (fstat (fd, &st), 0);
  assert_true (S_ISDIR (st.st_mode));
  close (fd);
  if (geteuid () == 0) {
    assert_int_equal (lchown (path, 12345, 12345), 0);
    assert_int_equal (place_open_trusted_dir (path, NULL), -1);
  }
  assert_int_equal (unlink (path), 0);
  assert_int_equal (rmdir (target), 0);
}

/* What passed a moment ago is believed only as long as it is the same. */
static void
open_dir_notices_that_a_folder_above_was_changed (void **state)
{
  const char *above = harness_path (*state, "above");
  const char *path = harness_path (above, "below/at");
  const char *other = harness_path (*state, "other");
  int fd = place_open_dir (path, NULL);

  assert_true (fd >= 0);
  close (fd);
  assert_int_equal (chmod (harness_path (above, "below"), 0702), 0);
  check_unsafe (path, "writable by others");
  assert_int_equal (chmod (harness_path (above, "below"), 0700), 0);
  /* Another in its place, and one that nobody may trust above it. */
  assert_int_equal (rename (above, other), 0);
  assert_int_equal (mkdir (above, 0700), 0);
  assert_int_equal (mkdir (harness_path (above, "below"), 0700), 0);
  assert_int_equal (chmod (above, 0702), 0);
  check_unsafe (path, "writable by others");
  assert_int_equal (rmdir (harness_path (above, "below")), 0);
  assert_int_equal (rmdir (above), 0);
  assert_int_equal (rmdir (harness_path (other, "below/at")), 0);
  assert_int_equal (rmdir (harness_path (other, "below")), 0);
  assert_int_equal (rmdir (other), 0);
}

static void
open_trusted_dir_ends_on_loops_and_missing_names (void **state)
{
  const char *loop = harness_path (*state, "loop");
  auto_error struct error *err = NULL;

  assert_int_equal (symlink ("loop", loop), 0);
  assert_int_equal (place_open_trusted_dir (loop, &err), -1);
  assert_int_equal (err->sys_errno, ELOOP);
  assert_int_equal (place_open_trusted_dir (harness_path (*state, "none"),
                                            &err), -1);
  assert_int_equal (err->number, E_NOT_FOUND);
  assert_int_equal (place_open_trusted_dir ("tmp", &err), -1);
  assert_int_equal (err->number, E_INVALID);
  assert_int_equal (unlink (loop), 0);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (home_override_holds_everything),
    cmocka_unit_test (home_override_must_be_absolute),
    cmocka_unit_test (home_of_root_is_the_system_and_of_others_their_own),
    cmocka_unit_test (open_dir_makes_private_folders),
    cmocka_unit_test (open_dir_refuses_links_files_and_open_modes),
    cmocka_unit_test (open_dir_refuses_the_folder_of_another_user),
    cmocka_unit_test (open_dir_notices_that_a_folder_above_was_changed),
    cmocka_unit_test (open_trusted_dir_follows_own_links_only),
    cmocka_unit_test (open_trusted_dir_ends_on_loops_and_missing_names),
  };

  return cmocka_run_group_tests_name ("place", tests, harness_folder_new,
                                      harness_folder_free);
}
