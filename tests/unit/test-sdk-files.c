/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/lib/files.c: the contract's file operations, seen as a host sees them:
 * by what they emit and fail with, and by the files themselves. */

#define _GNU_SOURCE

#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mount.h>
#include <sys/statfs.h>

#include <coffer/fd.h>
#include <coffer/files.h>
#include <coffer/path.h>

#include "fakehost.h"

struct place {
  char *dir;
  int root;
  struct fakehost host;
};

static int
place_new (void **state)
{
  struct place *place = calloc (1, sizeof *place);
  void *dir;

  if (!place || harness_folder_new (&dir) < 0)
    return -1;
  place->dir = dir;
  place->root = open (dir, O_PATH | O_CLOEXEC);
  fakehost_init (&place->host, 5000);
  *state = place;
  return 0;
}

static int
place_free (void **state)
{
  struct place *place = *state;
  void *dir = place->dir;

  fakehost_fini (&place->host);
  coffer_fd_close (&place->root);
  free (place);
  return harness_folder_free (&dir);
}

/* One end of a pipe that a thread feeds or drains. */
struct stream {
  int ends[2];
  const char *feed;
  char *bytes;
  size_t size;
  pthread_t thread;
};

static void *
feed_main (void *data)
{
  struct stream *s = data;

  coffer_write_all (s->ends[1], s->feed, s->size);
  coffer_fd_close (&s->ends[1]);
  return NULL;
}

static void *
drain_main (void *data)
{
  struct stream *s = data;

  coffer_read_whole (s->ends[0], 64 << 20, &s->bytes, &s->size);
  return NULL;
}

static void
stream_feed (struct stream *s, const char *bytes, size_t size)
{
  *s = (struct stream) {.feed = bytes, .size = size};
  assert_int_equal (pipe2 (s->ends, O_CLOEXEC), 0);
  assert_int_equal (pthread_create (&s->thread, NULL, feed_main, s), 0);
}

static void
stream_drain (struct stream *s)
{
  *s = (struct stream) {0};
  assert_int_equal (pipe2 (s->ends, O_CLOEXEC), 0);
  assert_int_equal (pthread_create (&s->thread, NULL, drain_main, s), 0);
}

/* Closes the test's own end and waits for the thread. */
static void
stream_end (struct stream *s)
{
  coffer_fd_close (&s->ends[s->feed ? 0 : 1]);
  pthread_join (s->thread, NULL);
  coffer_fd_close (&s->ends[0]);
  coffer_fd_close (&s->ends[1]);
}

static int32_t
write_file (struct place *place, const char *path, const char *body,
            size_t size, const struct coffer_file_write_opts *opts)
{
  struct stream s;
  int32_t code;

  fakehost_reset (&place->host, 5000);
  stream_feed (&s, body, size);
  code = coffer_files_write (&place->host.call, place->root, path, s.ends[0],
                             opts);
  stream_end (&s);
  return code;
}

static int32_t
read_file (struct place *place, const char *path, struct stream *s,
           const struct coffer_file_read_opts *opts)
{
  int32_t code;

  fakehost_reset (&place->host, 5000);
  stream_drain (s);
  code = coffer_files_read (&place->host.call, place->root, path, s->ends[1],
                            opts);
  stream_end (s);
  return code;
}

static void
written_bytes_are_read_back (void **state)
{
  static const struct coffer_file_write_opts parents = {
    .size = sizeof parents, .parents = 1,
  };
  struct place *place = *state;
  const struct coffer_file_stat *st;
  size_t size = 3000001;
  char *body = malloc (size);
  struct stream s;

  for (size_t i = 0; i < size; i++)
    body[i] = (char) (i * 13 + i / 509);
  for (int round = 0; round < 3; round++) {
    size_t n = round == 0 ? 0 : round == 1 ? strlen (VECTOR_BODY) : size;
    const char *bytes = round == 1 ? VECTOR_BODY : body;

    assert_int_equal (write_file (place, VECTOR_NAME, bytes, n, &parents), 0);
    st = FAKEHOST_GET (&place->host, file_stat, 0);
    assert_non_null (st);
    assert_int_equal (st->moved_bytes, n);
    assert_int_equal (st->size_bytes, n);
    assert_int_equal (st->mode, 0644);
    assert_string_equal (st->kind, "file");
    assert_string_equal (st->path, VECTOR_NAME);
    assert_int_equal (place->host.failures, 0);

    assert_int_equal (read_file (place, VECTOR_NAME, &s, NULL), 0);
    assert_int_equal (s.size, n);
    assert_memory_equal (s.bytes, bytes, n);
    free (s.bytes);
    assert_int_equal (FAKEHOST_GET (&place->host, file_stat, 0)->moved_bytes,
                      n);
  }
  free (body);
}

static void
reads_of_a_part_are_exact (void **state)
{
  struct place *place = *state;
  static const struct {
    uint64_t offset, length, want;
  } cases[] = {
    {0, 4, 4}, {3, 0, 7}, {3, 2, 2}, {10, 0, 0}, {11, 5, 0}, {9, 100, 1},
    {INT64_MAX, 1, 0},
  };
  struct stream s;

  assert_int_equal (write_file (place, "f", "0123456789", 10, NULL), 0);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct coffer_file_read_opts opts = {
      .size = sizeof opts, .offset_bytes = cases[i].offset,
      .length_bytes = cases[i].length,
    };

    assert_int_equal (read_file (place, "f", &s, &opts), 0);
    assert_int_equal (s.size, cases[i].want);
    if (s.size > 0)
      assert_memory_equal (s.bytes, &"0123456789"[cases[i].offset], s.size);
    free (s.bytes);
  }
  struct coffer_file_read_opts far = {
    .size = sizeof far, .offset_bytes = UINT64_C (1) << 63,
  };
  assert_int_equal (read_file (place, "f", &s, &far), COFFER_INVALID);
  free (s.bytes);
}

static void
a_sparse_file_reads_as_zeros_of_its_size (void **state)
{
  struct place *place = *state;
  struct coffer_file_read_opts opts = {
    .size = sizeof opts, .offset_bytes = (UINT64_C (1) << 30) - 100000,
  };
  int fd = openat (place->root, "sparse", O_WRONLY | O_CREAT | O_CLOEXEC,
                   0644);
  struct stream s;

  assert_int_equal (ftruncate (fd, 1 << 30), 0);
  close (fd);
  assert_int_equal (read_file (place, "sparse", &s, &opts), 0);
  assert_int_equal (s.size, 100000);
  for (size_t i = 0; i < s.size; i++)
    if (s.bytes[i])
      fail_msg ("byte %zu is not zero", i);
  free (s.bytes);
}

static void
a_replaced_file_keeps_its_mode_unless_told (void **state)
{
  struct place *place = *state;
  struct coffer_file_write_opts opts = {.size = sizeof opts, .mode = 0600};
  struct stat st;

  assert_int_equal (write_file (place, "f", "a", 1, NULL), 0);
  assert_int_equal (fchmodat (place->root, "f", 04755, 0), 0);
  assert_int_equal (write_file (place, "f", "b", 1, NULL), 0);
  assert_int_equal (fstatat (place->root, "f", &st, 0), 0);
  assert_int_equal (st.st_mode & 07777, 0755);
  assert_int_equal (write_file (place, "f", "c", 1, &opts), 0);
  assert_int_equal (fstatat (place->root, "f", &st, 0), 0);
  assert_int_equal (st.st_mode & 07777, 0600);
  opts.mode = 04755;
  assert_int_equal (write_file (place, "f", "d", 1, &opts), COFFER_INVALID);
}

static void
exclusive_writes_leave_the_old_file (void **state)
{
  struct coffer_file_write_opts opts = {.size = sizeof opts, .exclusive = 1};
  struct place *place = *state;
  struct stream s;

  assert_int_equal (write_file (place, "f", "old", 3, &opts), 0);
  assert_int_equal (write_file (place, "f", "new", 3, &opts), COFFER_EXISTS);
  assert_int_equal (place->host.failures, 1);
  assert_int_equal (fakehost_count (&place->host, COFFER_REC_file_stat), 0);
  assert_int_equal (read_file (place, "f", &s, NULL), 0);
  assert_memory_equal (s.bytes, "old", 3);
  free (s.bytes);
}

static void
a_write_that_is_cut_short_leaves_nothing (void **state)
{
  struct place *place = *state;
  int ends[2];

  assert_int_equal (write_file (place, "f", "old", 3, NULL), 0);
  assert_int_equal (pipe2 (ends, O_CLOEXEC), 0);
  assert_int_equal (write (ends[1], "half", 4), 4);
  for (int cancelled = 0; cancelled < 2; cancelled++) {
    fakehost_reset (&place->host, cancelled ? 5000 : 30);
    if (cancelled)
      fakehost_cancel (&place->host);
    assert_int_equal (coffer_files_write (&place->host.call, place->root, "f",
                                          ends[0], NULL),
                      cancelled ? COFFER_CANCELLED : COFFER_TIMEOUT);
    assert_int_equal (place->host.failures, 1);
  }
  close (ends[0]);
  close (ends[1]);
  fakehost_reset (&place->host, 5000);
  assert_int_equal (coffer_files_list (&place->host.call, place->root, "/",
                                       NULL), 0);
  assert_int_equal (place->host.count, 1);
  assert_int_equal (FAKEHOST_GET (&place->host, file_stat, 0)->size_bytes, 3);
}

static void
a_full_file_system_is_a_limit_and_leaves_nothing (void **state)
{
  struct place *place = *state;
  coffer_autoclose int root = -1;
  char *body = calloc (1, 2 << 20), *mnt = strdup (harness_path (place->dir,
                                                                "small"));
  struct statfs before, after;
  struct stream s;

  assert_int_equal (mkdir (mnt, 0755), 0);
  if (mount ("none", mnt, "tmpfs", 0, "size=1m") < 0) {
    free (body);
    free (mnt);
    skip_missing ("the right to mount");
  }
  root = open (mnt, O_PATH | O_CLOEXEC);
  assert_int_equal (fstatfs (root, &before), 0);
  stream_feed (&s, body, 2 << 20);
  assert_int_equal (coffer_files_write (&place->host.call, root, "f",
                                        s.ends[0], NULL), COFFER_LIMIT);
  stream_end (&s);
  assert_non_null (strstr (place->host.message, "No space"));
  assert_int_equal (fstatfs (root, &after), 0);
  assert_int_equal (after.f_bfree, before.f_bfree);
  assert_int_equal (after.f_ffree, before.f_ffree);
  coffer_fd_close (&root);
  assert_int_equal (umount2 (mnt, MNT_DETACH), 0);
  free (body);
  free (mnt);
}

static void
a_read_without_a_reader_fails_and_kills_nobody (void **state)
{
  struct place *place = *state;
  char body[1000] = "";
  int ends[2];

  assert_int_equal (write_file (place, "f", body, sizeof body, NULL), 0);
  assert_int_equal (pipe2 (ends, O_CLOEXEC), 0);
  close (ends[0]);
  fakehost_reset (&place->host, 5000);
  assert_int_equal (coffer_files_read (&place->host.call, place->root, "f",
                                       ends[1], NULL), COFFER_IO);
  close (ends[1]);
}

static void
stat_tells_kinds_and_targets_of_links (void **state)
{
  struct place *place = *state;
  struct timespec far[2] = {{.tv_sec = 1}, {.tv_sec = 12345, .tv_nsec = 678}};
  const struct coffer_file_stat *st;
  static const struct {
    const char *path, *kind, *target;
  } cases[] = {
    {"f", "file", NULL}, {"d", "directory", NULL}, {"p", "fifo", NULL},
    {"l", "symlink", "/nowhere/\xff"}, {"/", "directory", NULL},
  };

  assert_int_equal (write_file (place, "f", "x", 1, NULL), 0);
  assert_int_equal (utimensat (place->root, "f", far, 0), 0);
  assert_int_equal (mkdirat (place->root, "d", 0755), 0);
  assert_int_equal (mkfifoat (place->root, "p", 0644), 0);
  assert_int_equal (symlinkat ("/nowhere/\xff", place->root, "l"), 0);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    fakehost_reset (&place->host, 5000);
    assert_int_equal (coffer_files_stat (&place->host.call, place->root,
                                         cases[i].path), 0);
    st = FAKEHOST_GET (&place->host, file_stat, 0);
    assert_string_equal (st->kind, cases[i].kind);
    if (cases[i].target)
      assert_string_equal (st->target, cases[i].target);
    else
      assert_null (st->target);
    if (i == 0)
      assert_int_equal (st->modified_ns, INT64_C (12345000000678));
  }
}

static void
list_emits_each_entry_once (void **state)
{
  struct coffer_file_list_opts opts = {.size = sizeof opts, .depth = 3};
  struct place *place = *state;
  unsigned files = 0, dirs = 0;
  const struct coffer_file_stat *st;

  assert_int_equal (coffer_mkdir_beneath (place->root, "a/b", 0755, 1), 0);
  for (int i = 0; i < 300; i++) {
    char name[32];

    snprintf (name, sizeof name, "a/b/f%d", i);
    assert_int_equal (write_file (place, name, "x", 1, NULL), 0);
  }
  fakehost_reset (&place->host, 5000);
  assert_int_equal (coffer_files_list (&place->host.call, place->root, "/",
                                       &opts), 0);
  for (size_t i = 0; (st = FAKEHOST_GET (&place->host, file_stat, i)); i++) {
    files += strcmp (st->kind, "file") == 0;
    dirs += strcmp (st->kind, "directory") == 0;
    assert_int_equal (st->moved_bytes, 0);
  }
  assert_int_equal (files, 300);
  assert_int_equal (dirs, 2);

  /* What the host answers to an emit ends the list. */
  fakehost_reset (&place->host, 5000);
  place->host.emit_answer = COFFER_LIMIT;
  assert_int_equal (coffer_files_list (&place->host.call, place->root, "/",
                                       &opts), COFFER_LIMIT);
  assert_int_equal (place->host.count, 1);

  fakehost_reset (&place->host, 5000);
  place->host.call.deadline_ns = 0;
  assert_int_equal (coffer_files_list (&place->host.call, place->root, "/",
                                       &opts), COFFER_TIMEOUT);
  opts.depth = 1000;
  assert_int_equal (coffer_files_list (&place->host.call, place->root, "/",
                                       &opts), COFFER_INVALID);
}

static void
options_of_an_older_caller_are_defaults (void **state)
{
  struct place *place = *state;
  struct coffer_file_remove_opts opts = {.size = 8, .recursive = 1};

  assert_int_equal (coffer_mkdir_beneath (place->root, "a/b", 0755, 1), 0);
  assert_int_equal (coffer_files_remove (&place->host.call, place->root, "a",
                                         &opts), COFFER_CONFLICT);
  opts.size = sizeof opts;
  assert_int_equal (coffer_files_remove (&place->host.call, place->root, "a",
                                         &opts), 0);
}

static void
rename_replaces_files_and_follows_nothing (void **state)
{
  struct place *place = *state;
  struct coffer_call *call = &place->host.call;
  struct stat st;

  assert_int_equal (write_file (place, "a", "aa", 2, NULL), 0);
  assert_int_equal (write_file (place, "b", "b", 1, NULL), 0);
  assert_int_equal (mkdirat (place->root, "d", 0755), 0);
  assert_int_equal (symlinkat ("d", place->root, "l"), 0);
  assert_int_equal (coffer_files_rename (call, place->root, "a", "b"), 0);
  assert_int_equal (fstatat (place->root, "b", &st, 0), 0);
  assert_int_equal (st.st_size, 2);
  assert_int_equal (coffer_files_rename (call, place->root, "b", "d/b"), 0);
  assert_int_equal (coffer_files_rename (call, place->root, "d/", "e/"), 0);
  assert_int_equal (coffer_files_rename (call, place->root, "none", "x"),
                    COFFER_NOT_FOUND);
  assert_int_equal (coffer_files_rename (call, place->root, "e/b", "l/b"),
                    COFFER_DENIED);
  assert_int_equal (coffer_files_rename (call, place->root, "/", "x"),
                    COFFER_BUSY);
}

static void
failures_name_the_path_in_printable_text (void **state)
{
  struct place *place = *state;
  struct coffer_call *call = &place->host.call;

  assert_int_equal (coffer_files_stat (call, place->root, "a\n\xff/你好\x7f"),
                    COFFER_NOT_FOUND);
  assert_string_equal (place->host.message,
                       "a\\n\\xff/你好\\x7f: No such file or directory");
  assert_int_equal (coffer_files_stat (call, place->root, ""),
                    COFFER_INVALID);
  assert_int_equal (coffer_files_stat (call, place->root, "\xed\xa0\x80"),
                    COFFER_NOT_FOUND);
  assert_string_equal (place->host.message,
                       "\\xed\\xa0\\x80: No such file or directory");
}

static void
every_errno_becomes_a_code_of_the_contract (void **state)
{
  struct place *place = *state;

  for (int e = 1; e < 200; e++) {
    int32_t code = coffer_code_from_errno (e);

    assert_true (code > COFFER_OK && code <= COFFER_INTERNAL);
  }
  assert_int_equal (coffer_code_from_errno (ENOENT), COFFER_NOT_FOUND);
  assert_int_equal (coffer_code_from_errno (EXDEV), COFFER_DENIED);
  /* errno 0 is no success when something failed. */
  assert_int_equal (coffer_fail_errno (&place->host.call, 0, "x"),
                    COFFER_INTERNAL);
}

int
main (void)
{
#define TEST(name) cmocka_unit_test_setup_teardown (name, place_new, place_free)
  const struct CMUnitTest tests[] = {
    TEST (written_bytes_are_read_back),
    TEST (reads_of_a_part_are_exact),
    TEST (a_sparse_file_reads_as_zeros_of_its_size),
    TEST (a_replaced_file_keeps_its_mode_unless_told),
    TEST (exclusive_writes_leave_the_old_file),
    TEST (a_write_that_is_cut_short_leaves_nothing),
    TEST (a_full_file_system_is_a_limit_and_leaves_nothing),
    TEST (a_read_without_a_reader_fails_and_kills_nobody),
    TEST (stat_tells_kinds_and_targets_of_links),
    TEST (list_emits_each_entry_once),
    TEST (options_of_an_older_caller_are_defaults),
    TEST (rename_replaces_files_and_follows_nothing),
    TEST (failures_name_the_path_in_printable_text),
    TEST (every_errno_becomes_a_code_of_the_contract),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
