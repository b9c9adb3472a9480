/* SPDX-License-Identifier: Apache-2.0 */
/* Copies: every name, every size, and never a success that is not one. */

#include "config.h"

#include "sandbox-host.h"

#include <fcntl.h>

#include "base/sha256.h"

struct copy {
  struct fixture *f;
  struct sandbox_record *record;
  json_t *report;
  int fd;
};

static void
copy_fini (struct copy *copy)
{
  json_decref (copy->report);
  sandbox_record_free (copy->record);
  coffer_fd_close (&copy->fd);
}
#define auto_copy __attribute__ ((cleanup (copy_fini)))

static int
local_new (struct copy *copy, const char *name, const void *bytes, size_t size)
{
  int fd = open (harness_path (copy->f->home, name),
                 O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

  assert_true (fd >= 0);
  assert_int_equal (coffer_write_all (fd, bytes, size), size);
  assert_int_equal (lseek (fd, 0, SEEK_SET), 0);
  return fd;
}

static char *
noise (size_t size)
{
  char *bytes = malloc (size + 1);
  uint32_t x = 12345;
  size_t i;

  for (i = 0; i < size; i++) {
    x = x * 1664525 + 1013904223;
    bytes[i] = (char) (x >> 24);
  }
  return bytes;
}

/* Names in the sandbox's folder. */
static int
entries (const struct copy *copy)
{
  char command[700];
  FILE *p;
  int n = -1;

  snprintf (command, sizeof command, "ls -A '%s/fake/%s' | wc -l",
            copy->f->place.runtime, copy->record->id);
  p = popen (command, "r");
  if (fscanf (p, "%d", &n) != 1)
    n = -1;
  pclose (p);
  return n;
}

static void
inside (const struct copy *copy, const char *name, char out[600])
{
  snprintf (out, 600, "%s/fake/%s/%s", copy->f->place.runtime,
            copy->record->id, name);
}

static void
round_trip (struct fixture *f, const char *name, size_t size)
{
  auto_copy struct copy copy = { .f = f, .fd = -1 };
  struct error *error = NULL;
  char *bytes = noise (size), *back;
  char hex[SHA256_HEX_SIZE], path[600];
  size_t back_size;
  json_t *down;
  int out;

  make (f->host, &copy.record);
  copy.fd = local_new (&copy, "local", bytes, size);
  inside (&copy, "你好 世界", path);
  assert_int_equal (mkdir (path, 0700), 0);
  assert_ok (sandbox_upload (f->host, copy.record->id, copy.fd, name, 0600, 0,
                             NULL, &copy.report, &error), error);
  sha256_hex (bytes, size, hex);
  assert_string_equal (json_string_value (json_object_get (copy.report,
                                                           "sha256")), hex);
  inside (&copy, name, path);
  assert_int_equal (access (path, F_OK), 0);
  out = local_new (&copy, "back", "", 0);
  assert_ok (sandbox_download (f->host, copy.record->id, name, out, NULL,
                               &down, &error), error);
  assert_string_equal (json_string_value (json_object_get (down, "sha256")),
                       hex);
  json_decref (down);
  assert_int_equal (lseek (out, 0, SEEK_SET), 0);
  assert_int_equal (coffer_read_whole (out, size + 1, &back, &back_size), 0);
  assert_int_equal (back_size, size);
  assert_memory_equal (back, bytes, size);
  free (back);
  free (bytes);
  close (out);
}

static void
test_every_size_goes_there_and_back (void **state)
{
  static const size_t sizes[] = { 0, 1, 4095, 4096, 65535, 65536, 65537,
                                  1000000, 5000000 };
  size_t i;

  for (i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
    round_trip (*state, "file", sizes[i]);
}

static void
test_every_name_goes_there_and_back (void **state)
{
  static const char *const names[] = {
    VECTOR_NAME, "with\nnewline", "-dash", "\x01\xff\xfe", " ",
  };
  size_t i;

  for (i = 0; i < sizeof names / sizeof names[0]; i++)
    round_trip (*state, names[i], strlen (VECTOR_BODY));
}

static void
upload_fails (struct copy *copy, int number)
{
  auto_error struct error *error = NULL;
  char *bytes = noise (300000), path[600], content[16] = "";
  int fd;

  make (copy->f->host, &copy->record);
  inside (copy, "file", path);
  fd = open (path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  assert_int_equal (coffer_write_all (fd, "before", 6), 6);
  close (fd);
  copy->fd = local_new (copy, "local", bytes, 300000);
  free (bytes);
  assert_fails (sandbox_upload (copy->f->host, copy->record->id, copy->fd,
                                "file", 0, 0, NULL, &copy->report, &error),
                error, number);
  /* What was there is there, and nothing else. */
  assert_int_equal (entries (copy), 1);
  fd = open (path, O_RDONLY | O_CLOEXEC);
  assert_int_equal (coffer_read_all (fd, content, 15), 6);
  close (fd);
  assert_string_equal (content, "before");
  assert_int_equal (fake.renames, 0);
}

static void
test_a_short_upload_is_found_out_and_removed (void **state)
{
  auto_copy struct copy copy = { .f = *state, .fd = -1 };

  fake.write_drops = 1;
  upload_fails (&copy, E_FILE_MISMATCH);
}

static void
test_one_wrong_bit_is_found_out_and_removed (void **state)
{
  auto_copy struct copy copy = { .f = *state, .fd = -1 };

  fake.write_flips = 1;
  upload_fails (&copy, E_FILE_MISMATCH);
}

static void
test_success_without_reading_is_found_out (void **state)
{
  auto_copy struct copy copy = { .f = *state, .fd = -1 };

  fake.write_early = 1;
  upload_fails (&copy, E_FILE_MISMATCH);
}

static void
test_a_short_download_is_found_out_and_removed (void **state)
{
  auto_copy struct copy copy = { .f = *state, .fd = -1 };
  auto_error struct error *error = NULL;
  char *bytes = noise (300000), path[600];
  struct stat st;
  int out;

  make (copy.f->host, &copy.record);
  inside (&copy, "file", path);
  copy.fd = open (path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  assert_int_equal (coffer_write_all (copy.fd, bytes, 300000), 300000);
  free (bytes);
  out = local_new (&copy, "back", "", 0);
  fake.read_drops = 1;
  assert_fails (sandbox_download (copy.f->host, copy.record->id, "file", out,
                                  NULL, &copy.report, &error), error,
                E_FILE_MISMATCH);
  assert_int_equal (fstat (out, &st), 0);
  assert_int_equal (st.st_size, 0);
  close (out);
}

static void
test_holes_stay_holes (void **state)
{
  auto_copy struct copy copy = { .f = *state, .fd = -1 };
  const off_t size = 8 * 1024 * 1024 + 5;
  struct error *error = NULL;
  char path[600], tail[6] = "";
  struct stat st;
  int out;

  make (copy.f->host, &copy.record);
  inside (&copy, "file", path);
  copy.fd = open (path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  assert_int_equal (ftruncate (copy.fd, size), 0);
  assert_int_equal (pwrite (copy.fd, "start", 5, 0), 5);
  out = local_new (&copy, "back", "", 0);
  assert_ok (sandbox_download (copy.f->host, copy.record->id, "file", out,
                               NULL, &copy.report, &error), error);
  assert_int_equal (fstat (out, &st), 0);
  assert_int_equal (st.st_size, size);
  assert_true (st.st_blocks * 512 < 1000000);
  assert_int_equal (pread (out, tail, 5, 0), 5);
  assert_string_equal (tail, "start");
  close (out);
}

static void
test_a_download_into_a_pipe_works (void **state)
{
  auto_copy struct copy copy = { .f = *state, .fd = -1 };
  struct error *error = NULL;
  char path[600], got[64] = "";
  int p[2];

  make (copy.f->host, &copy.record);
  inside (&copy, "file", path);
  copy.fd = open (path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  assert_int_equal (coffer_write_all (copy.fd, VECTOR_BODY,
                                      strlen (VECTOR_BODY)),
                    strlen (VECTOR_BODY));
  assert_int_equal (pipe2 (p, O_CLOEXEC), 0);
  assert_ok (sandbox_download (copy.f->host, copy.record->id, "file", p[1],
                               NULL, &copy.report, &error), error);
  close (p[1]);
  assert_int_equal (coffer_read_all (p[0], got, sizeof got - 1),
                    strlen (VECTOR_BODY));
  assert_string_equal (got, VECTOR_BODY);
  close (p[0]);
}

/* An upload out of a pipe, whose writer stops in the middle: cancelled, and
 * not a shorter file. */
static void
test_an_upload_that_is_given_up_leaves_nothing (void **state)
{
  auto_copy struct copy copy = { .f = *state, .fd = -1 };
  auto_error struct error *error = NULL;
  struct provider_call call = { .deadline_ns = coffer_now_ns () + 300000000,
                                .cancel_fd = -1 };
  int p[2];
  char chunk[4096];
  pid_t pid;

  make (copy.f->host, &copy.record);
  assert_int_equal (pipe2 (p, O_CLOEXEC), 0);
  memset (chunk, 'x', sizeof chunk);
  /* A writer that never ends the file but always has a byte. */
  pid = fork ();
  if (pid == 0) {
    close (p[0]);
    for (;;) {
      if (write (p[1], chunk, 16) < 0)
        _exit (0);
      usleep (1000);
    }
  }
  close (p[1]);
  assert_fails (sandbox_upload (copy.f->host, copy.record->id, p[0], "file",
                                0, 0, &call, &copy.report, &error), error,
                E_PROVIDER_TIMEOUT);
  close (p[0]);
  assert_int_equal (waitpid (pid, NULL, 0), pid);
  assert_int_equal (entries (&copy), 0);
}

static void
count_progress (void *data, uint64_t done, uint64_t total, const char *what)
{
  uint64_t *seen = data;

  (void) what;
  assert_true (done <= total);
  if (done == total)
    (*seen)++;
}

static void
test_progress_reaches_the_total (void **state)
{
  auto_copy struct copy copy = { .f = *state, .fd = -1 };
  struct error *error = NULL;
  uint64_t seen = 0;
  struct provider_call call = {
    .cancel_fd = -1, .sink = { .progress = count_progress, .data = &seen }
  };
  char *bytes = noise (300000);

  make (copy.f->host, &copy.record);
  copy.fd = local_new (&copy, "local", bytes, 300000);
  free (bytes);
  assert_ok (sandbox_upload (copy.f->host, copy.record->id, copy.fd, "file",
                             0, 0, &call, &copy.report, &error), error);
  assert_int_equal (seen, 2);   /* sent, and read back */
}

static void
test_bad_paths_are_refused (void **state)
{
  auto_copy struct copy copy = { .f = *state, .fd = -1 };
  static const char *const paths[] = { "", "folder/", NULL };
  char longest[5000];
  size_t i;

  make (copy.f->host, &copy.record);
  memset (longest, 'a', sizeof longest - 1);
  longest[sizeof longest - 1] = '\0';
  for (i = 0; i < 3; i++) {
    auto_error struct error *error = NULL;

    assert_true (sandbox_upload (copy.f->host, copy.record->id, 0,
                                 paths[i] ? paths[i] : longest, 0, 0, NULL,
                                 &copy.report, &error) < 0);
    assert_true (error->number == E_INVALID || error->number == E_FILE_KIND);
  }
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    TEST (test_every_size_goes_there_and_back),
    TEST (test_every_name_goes_there_and_back),
    TEST (test_a_short_upload_is_found_out_and_removed),
    TEST (test_one_wrong_bit_is_found_out_and_removed),
    TEST (test_success_without_reading_is_found_out),
    TEST (test_a_short_download_is_found_out_and_removed),
    TEST (test_holes_stay_holes),
    TEST (test_a_download_into_a_pipe_works),
    TEST (test_an_upload_that_is_given_up_leaves_nothing),
    TEST (test_progress_reaches_the_total),
    TEST (test_bad_paths_are_refused),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
