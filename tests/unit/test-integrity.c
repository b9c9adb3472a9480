/* SPDX-License-Identifier: Apache-2.0 */
/* core/provider/integrity.c: which files are opened at all, and that what is
 * loaded is what was hashed. */

#include <config.h>

#include "harness.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/utsname.h>

#include <coffer/fd.h>

#include "provider/built-in.h"
#include "provider/integrity.h"
#include "provider/manifest.h"

static void
write_file (int dir, const char *name, const char *text, mode_t mode)
{
  coffer_autoclose int fd
    = openat (dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

  assert_true (fd >= 0);
  assert_int_equal (coffer_write_all (fd, text, strlen (text)),
                    strlen (text));
  assert_int_equal (fchmod (fd, mode), 0);
}

static void
write_module (int dir, const char *before, const void *note, size_t size)
{
  coffer_autoclose int fd
    = openat (dir, "linux.so", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

  assert_true (fd >= 0);
  assert_int_equal (coffer_write_all (fd, before, strlen (before)),
                    strlen (before));
  assert_int_equal (coffer_write_all (fd, note, size), size);
  assert_int_equal (fchmod (fd, 0644), 0);
}

static int
open_dir (void **state)
{
  return open (*state, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static void
the_copy_is_what_was_hashed_whatever_becomes_of_the_file (void **state)
{
  coffer_autoclose int dir = open_dir (state);
  coffer_autoclose int copy = -1;
  char hash[SHA256_HEX_SIZE], bytes[64] = "";

  write_file (dir, "body", VECTOR_BODY, 0600);
  sha256_hex (VECTOR_BODY, strlen (VECTOR_BODY), hash);
  copy = integrity_open (dir, "body", hash, 0, NULL);
  assert_true (copy >= 0);
  write_file (dir, "body", "something else", 0600);
  assert_int_equal (pread (copy, bytes, sizeof bytes, 0),
                    strlen (VECTOR_BODY));
  assert_string_equal (bytes, VECTOR_BODY);
}

static void
nobody_can_change_the_copy (void **state)
{
  coffer_autoclose int dir = open_dir (state);
  coffer_autoclose int copy = -1, again = -1;
  char hash[SHA256_HEX_SIZE], path[64];

  write_file (dir, "body", "body", 0600);
  copy = integrity_copy (dir, "body", 1, 1, hash, NULL);
  assert_true (copy >= 0);
  assert_int_equal (pwrite (copy, "x", 1, 0), -1);
  assert_int_equal (ftruncate (copy, 0), -1);
  assert_int_equal (ftruncate (copy, 100), -1);
  assert_ptr_equal (mmap (NULL, 4, PROT_READ | PROT_WRITE, MAP_SHARED, copy,
                          0), MAP_FAILED);
  snprintf (path, sizeof path, "/proc/self/fd/%d", copy);
  again = open (path, O_RDWR | O_CLOEXEC);
  assert_true (again < 0 || pwrite (again, "x", 1, 0) < 0);
  assert_int_equal (fcntl (copy, F_ADD_SEALS, F_SEAL_WRITE), -1);
  assert_true (fcntl (copy, F_GETFD) & FD_CLOEXEC);
}

static void
a_changed_file_is_told_from_the_sealed_one (void **state)
{
  coffer_autoclose int dir = open_dir (state);
  auto_error struct error *err = NULL, *unsealed = NULL;
  char hash[SHA256_HEX_SIZE];

  write_file (dir, "body", "body", 0600);
  sha256_hex ("body", 4, hash);
  write_file (dir, "body", "bodY", 0600);
  assert_int_equal (integrity_open (dir, "body", hash, 0, &err), -1);
  assert_int_equal (err->number, E_INTEGRITY);
  assert_int_equal (integrity_open (dir, "body", "", 0, &unsealed), -1);
  assert_int_equal (unsealed->number, E_INTEGRITY);
}

static void
refused (int dir, const char *name, int number)
{
  auto_error struct error *err = NULL, *other = NULL;
  char hash[SHA256_HEX_SIZE];
  const int64_t start = coffer_now_ns ();

  memset (hash, '0', 64);
  hash[64] = '\0';
  assert_int_equal (integrity_open (dir, name, hash, 0, &err), -1);
  assert_int_equal (integrity_hash (dir, name, hash, &other), -1);
  if (err->number != number || other->number != number) {
    print_error ("%s: E%d %s\n", name, err->number, err->message);
    fail ();
  }
  assert_true (coffer_now_ns () - start < HARNESS_PATIENCE_NS);
}

static void
odd_files_are_refused_at_once (void **state)
{
  coffer_autoclose int dir = open_dir (state);
  coffer_autoclose int sparse = -1;

  write_file (dir, "empty", "", 0600);
  refused (dir, "empty", E_INTEGRITY);
  refused (dir, "missing", E_INTEGRITY);

  sparse = openat (dir, "sparse", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  assert_int_equal (ftruncate (sparse, 1 << 30), 0);
  refused (dir, "sparse", E_INTEGRITY);

  assert_int_equal (mkfifoat (dir, "fifo", 0600), 0);
  refused (dir, "fifo", E_UNSAFE_FILE);
  assert_int_equal (mkdirat (dir, "folder", 0700), 0);
  refused (dir, "folder", E_UNSAFE_FILE);

  write_file (dir, "body", "body", 0600);
  assert_int_equal (symlinkat ("body", dir, "link"), 0);
  refused (dir, "link", E_UNSAFE_FILE);

  write_file (dir, "others", "body", 0602);
  refused (dir, "others", E_UNSAFE_FILE);
  write_file (dir, "group", "body", 0620);
  if (geteuid () == 0)
    refused (dir, "group", E_UNSAFE_FILE);
  refused (dir, "../body", E_INVALID);
  refused (dir, ".", E_INVALID);
  refused (dir, "", E_INVALID);
}

static void
a_file_of_somebody_else_is_refused (void **state)
{
  coffer_autoclose int dir = open_dir (state);

  if (geteuid () != 0)
    skip_missing ("root");
  write_file (dir, "theirs", "body", 0644);
  assert_int_equal (fchownat (dir, "theirs", 12345, 12345, 0), 0);
  refused (dir, "theirs", E_UNSAFE_FILE);
}

static void
helpers_can_be_executed_from_their_copy (void **state)
{
  coffer_autoclose int dir = open_dir (state);
  coffer_autoclose int copy = -1;
  char hash[SHA256_HEX_SIZE];
  struct stat st;

  write_file (dir, "helper", "#!/bin/sh\n", 0600);
  copy = integrity_copy (dir, "helper", 1, 1, hash, NULL);
  assert_true (copy >= 0);
  assert_int_equal (fstat (copy, &st), 0);
  assert_true (st.st_mode & 0100);
  assert_int_equal (faccessat (copy, "", X_OK, AT_EMPTY_PATH | AT_EACCESS),
                    0);
}

/* ---- what the program has in itself ---------------------------------------- */

#define NOTE "\4\0\0\0\3\0\0\0\1\0\0\0GNU\0abc"

static void
what_is_built_in_stands_for_a_shipped_module_of_its_build_alone (void **state)
{
  static const char note[] = NOTE, bytes[] = "#!/bin/sh\n";
  const struct built_in built_in = {
    .id = "linux", .build = note, .build_end = note + sizeof note - 1,
    .file = "helper", .bytes = bytes, .bytes_end = bytes + sizeof bytes - 1
  };
  struct manifest_module module = { .file = (char *) "linux.so" };
  struct manifest manifest = { .n_modules = 1, .modules = &module };
  coffer_autoclose int dir = open_dir (state), file = -1;
  struct registry_entry entry = { .id = (char *) "linux", .dir_fd = dir,
                                  .trust = TRUST_PACKAGED,
                                  .manifest = &manifest };
  struct registry_entry other;
  char found[64] = "";
  struct utsname names;

  assert_int_equal (uname (&names), 0);
  module.arch = names.machine;
  built_in_register (&built_in);
  assert_null (built_in_for (&entry));
  write_module (dir, "ELF ...", note, sizeof note - 1);
  assert_ptr_equal (built_in_for (&entry), &built_in);
  other = entry;
  other.trust = TRUST_LOCAL;
  assert_null (built_in_for (&other));
  other = entry;
  other.held_in_worker = 1;
  assert_null (built_in_for (&other));
  other = entry;
  other.id = (char *) "linus";
  assert_null (built_in_for (&other));
  write_module (dir, "ELF ...", note, sizeof note - 2);
  assert_null (built_in_for (&entry));
  write_module (dir, "ELF ...", note, sizeof note - 1);
  assert_int_equal (fchmodat (dir, "linux.so", 0666, 0), 0);
  assert_null (built_in_for (&entry));
  assert_int_equal (renameat (dir, "linux.so", dir, "there"), 0);
  assert_int_equal (fchmodat (dir, "there", 0644, 0), 0);
  assert_int_equal (symlinkat ("there", dir, "linux.so"), 0);
  assert_null (built_in_for (&entry));
  file = built_in_file (&built_in, NULL);
  assert_true (file >= 0);
  assert_int_equal (read (file, found, sizeof found), sizeof bytes - 1);
  assert_string_equal (found, bytes);
  assert_int_equal (write (file, "x", 1), -1);
  built_in_register (NULL);
  assert_null (built_in_for (&entry));
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
#define IN_FOLDER(test)                                                       \
  cmocka_unit_test_setup_teardown (test, harness_folder_new,                  \
                                   harness_folder_free)
    IN_FOLDER (the_copy_is_what_was_hashed_whatever_becomes_of_the_file),
    IN_FOLDER (nobody_can_change_the_copy),
    IN_FOLDER (a_changed_file_is_told_from_the_sealed_one),
    IN_FOLDER (odd_files_are_refused_at_once),
    IN_FOLDER (a_file_of_somebody_else_is_refused),
    IN_FOLDER (helpers_can_be_executed_from_their_copy),
    IN_FOLDER (
      what_is_built_in_stands_for_a_shipped_module_of_its_build_alone),
  };

  return cmocka_run_group_tests_name ("integrity", tests, NULL, NULL);
}
