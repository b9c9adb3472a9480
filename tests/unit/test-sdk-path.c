/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/lib/path.c and tree.c: what lies beneath a folder is reached, and
 * nothing else, whatever the tree is made of. */

#define _GNU_SOURCE

#include "harness.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/un.h>

#ifdef IN_WORKER
#include <seccomp.h>
#endif

#include <coffer/fd.h>
#include <coffer/path.h>

/* Every test has an empty `root` and, beside it, `outside` with a canary. */
struct place {
  char *dir;
  int root;
  int outside;
};

static void
put (int dir, const char *name, const char *body)
{
  coffer_autoclose int fd = openat (dir, name, O_WRONLY | O_CREAT | O_TRUNC |
                                    O_CLOEXEC, 0644);

  assert_true (fd >= 0);
  assert_int_equal (coffer_write_all (fd, body, strlen (body)), strlen (body));
}

static int
place_new (void **state)
{
  struct place *place = calloc (1, sizeof *place);
  void *dir;

  if (!place || harness_folder_new (&dir) < 0)
    return -1;
  place->dir = dir;
  if (mkdir (harness_path (dir, "root"), 0755) < 0 ||
      mkdir (harness_path (dir, "outside"), 0755) < 0)
    return -1;
  place->root = open (harness_path (dir, "root"), O_PATH | O_CLOEXEC);
  place->outside = open (harness_path (dir, "outside"),
                         O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  put (place->outside, "canary", "alive");
  *state = place;
  return 0;
}

static int
place_free (void **state)
{
  struct place *place = *state;
  void *dir = place->dir;

  coffer_fd_close (&place->root);
  coffer_fd_close (&place->outside);
  free (place);
  return harness_folder_free (&dir);
}

static void
assert_canary (const struct place *place)
{
  coffer_autoclose int fd = openat (place->outside, "canary",
                                    O_RDONLY | O_CLOEXEC);
  char body[16] = "";

  assert_true (fd >= 0);
  assert_int_equal (read (fd, body, sizeof body), 5);
  assert_memory_equal (body, "alive", 5);
}

#define assert_fails(expression, code)                                        \
  do {                                                                        \
    errno = 0;                                                                \
    assert_int_equal ((expression), -1);                                      \
    assert_int_equal (errno, code);                                           \
  } while (0)

static void
paths_with_dots_and_slashes_mean_what_they_say (void **state)
{
  struct place *place = *state;
  const char *good[] = {"a/b/f", "/a/b/f", "a//b/./f", "./a/b//f", "//a/b/f"};
  const char *bad[] = {"", "..", "a/..", "../root/a", "a/../a/b/f", "a/b/.."};
  char long_path[5000];
  int fd;

  assert_int_equal (coffer_mkdir_beneath (place->root, "a/b", 0755, 1), 0);
  put (place->root, "a/b/f", "x");
  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
    fd = coffer_open_regular (place->root, good[i], NULL);
    assert_true (fd >= 0);
    close (fd);
  }
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
    assert_fails (coffer_open_beneath (place->root, bad[i], O_RDONLY, 0),
                  EINVAL);
  memset (long_path, '/', sizeof long_path);
  long_path[4096] = '\0';
  assert_fails (coffer_open_beneath (place->root, long_path, O_PATH, 0),
                EINVAL);
  long_path[4095] = '\0';
  fd = coffer_open_beneath (place->root, long_path, O_PATH, 0);
  assert_true (fd >= 0);
  close (fd);
}

static void
descriptors_are_close_on_exec_and_regular_files_block (void **state)
{
  struct place *place = *state;
  int fd = coffer_open_beneath (place->root, "f", O_RDWR | O_CREAT, 0600);

  assert_true (fd >= 0);
  assert_true (fcntl (fd, F_GETFD) & FD_CLOEXEC);
  assert_false (fcntl (fd, F_GETFL) & O_NONBLOCK);
  close (fd);
}

static void
links_are_never_followed (void **state)
{
  struct place *place = *state;
  char target[600];
  struct stat st;
  int fd;

  snprintf (target, sizeof target, "%s/outside", place->dir);
  assert_int_equal (symlinkat (target, place->root, "abs"), 0);
  assert_int_equal (symlinkat ("../outside", place->root, "rel"), 0);
  assert_int_equal (symlinkat ("/proc/self/root", place->root, "magic"), 0);
  assert_int_equal (mkdirat (place->root, "in", 0755), 0);
  put (place->root, "in/f", "x");
  assert_int_equal (symlinkat ("in", place->root, "inside"), 0);
  assert_int_equal (symlinkat ("in/f", place->root, "file"), 0);
  assert_fails (coffer_open_regular (place->root, "abs/canary", NULL), ELOOP);
  assert_fails (coffer_open_regular (place->root, "rel/canary", NULL), ELOOP);
  assert_fails (coffer_open_regular (place->root, "magic/etc/passwd", NULL),
                ELOOP);
  assert_fails (coffer_open_regular (place->root, "inside/f", NULL), ELOOP);
  assert_fails (coffer_open_regular (place->root, "file", NULL), ELOOP);
  assert_fails (coffer_mkdir_beneath (place->root, "rel/new", 0755, 1), ELOOP);
  assert_fails (coffer_remove_beneath (place->root, "rel/canary", 1, NULL),
                ELOOP);
  assert_canary (place);

  /* The link itself can be looked at and removed. */
  fd = coffer_open_beneath (place->root, "rel", O_PATH, 0);
  assert_true (fd >= 0);
  assert_int_equal (fstat (fd, &st), 0);
  assert_true (S_ISLNK (st.st_mode));
  close (fd);
  assert_int_equal (coffer_remove_beneath (place->root, "rel", 1, NULL), 0);
  assert_canary (place);
}

static void
what_is_no_regular_file_is_refused_at_once (void **state)
{
  struct place *place = *state;
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  char path[600];
  int s = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

  assert_int_equal (mkfifoat (place->root, "fifo", 0644), 0);
  assert_int_equal (mkdirat (place->root, "d", 0755), 0);
  snprintf (path, sizeof path, "%s/root/s", place->dir);
  assert_true (strlen (path) < sizeof address.sun_path);
  strcpy (address.sun_path, path);
  assert_int_equal (bind (s, (struct sockaddr *) &address, sizeof address), 0);
  alarm (60);                   /* a fifo that is waited for shows as a death */
  assert_fails (coffer_open_regular (place->root, "fifo", NULL), EINVAL);
  alarm (0);
  assert_fails (coffer_open_regular (place->root, "d", NULL), EISDIR);
  assert_fails (coffer_open_regular (place->root, "s", NULL), ENXIO);
  close (s);
}

static void
devices_are_refused (void **state)
{
  struct place *place = *state;

  if (mknodat (place->root, "null", S_IFCHR | 0666, 0x103) < 0)
    skip_missing ("the right to make device nodes");
  errno = 0;
  assert_int_equal (coffer_open_regular (place->root, "null", NULL), -1);
  assert_true (errno == EINVAL || errno == EACCES);
}

struct swapper {
  int root;
  int stop;
  pthread_t thread;
};

static void *
swapper_main (void *data)
{
  struct swapper *s = data;

  while (!__atomic_load_n (&s->stop, __ATOMIC_RELAXED)) {
    renameat2 (s->root, "d", s->root, "link", RENAME_EXCHANGE);
    renameat2 (s->root, "f", s->root, "flink", RENAME_EXCHANGE);
  }
  return NULL;
}

/* The folder and the file on the way are exchanged with links to outside, as
 * fast as a thread can.  Never may a canary's bytes come out or the canary
 * be touched. */
static void
swapping_names_while_they_are_opened_wins_nothing (void **state)
{
  struct place *place = *state;
  struct swapper swapper = {.root = place->root};
  int64_t end = coffer_now_ns () + 400 * INT64_C (1000000);
  unsigned good = 0, refused = 0;
  char body[16];
  int fd;

  assert_int_equal (mkdirat (place->root, "d", 0755), 0);
  put (place->root, "d/canary", "inner");
  put (place->root, "f", "inner");
  assert_int_equal (symlinkat ("../outside", place->root, "link"), 0);
  assert_int_equal (symlinkat ("../outside/canary", place->root, "flink"), 0);
  assert_int_equal (pthread_create (&swapper.thread, NULL, swapper_main,
                                    &swapper), 0);
  while (coffer_now_ns () < end || !good || !refused) {
    assert_true (coffer_now_ns () < end + HARNESS_PATIENCE_NS);
    for (int i = 0; i < 2; i++) {
      fd = coffer_open_regular (place->root, i ? "f" : "d/canary", NULL);
      if (fd < 0) {
        assert_true (errno == ELOOP || errno == ENOENT);
        refused++;
        continue;
      }
      assert_int_equal (read (fd, body, sizeof body), 5);
      assert_memory_equal (body, "inner", 5);
      close (fd);
      good++;
    }
    coffer_mkdir_beneath (place->root, "d/new", 0755, 1);
    coffer_remove_beneath (place->root, "d/new", 1, NULL);
  }
  swapper.stop = 1;
  pthread_join (swapper.thread, NULL);
  assert_canary (place);
  assert_int_equal (faccessat (place->outside, "new", F_OK, 0), -1);
}

static void
names_are_any_bytes_up_to_255 (void **state)
{
  struct place *place = *state;
  char name[256], all[512] = "";
  size_t n = 0;
  struct stat st;
  int fd;

  for (int c = 1; c < 256; c++)
    if (c != '/')
      all[n++] = (char) c;
  all[n] = '\0';                /* 254 bytes */
  memset (name, 'x', 255);
  name[255] = '\0';
  for (int i = 0; i < 3; i++) {
    const char *path = i == 0 ? all : i == 1 ? name : "\xff\xfe\n";

    assert_int_equal (coffer_mkdir_beneath (place->root, path, 0755, 0), 0);
    fd = coffer_open_beneath (place->root, path, O_PATH, 0);
    assert_true (fd >= 0);
    assert_int_equal (fstat (fd, &st), 0);
    close (fd);
    assert_int_equal (coffer_remove_beneath (place->root, path, 0, NULL), 0);
  }
  name[254] = 'y';
  assert_int_equal (coffer_mkdir_beneath (place->root, VECTOR_NAME, 0755, 1),
                    0);
}

static void
mkdir_says_what_is_there (void **state)
{
  struct place *place = *state;

  put (place->root, "f", "x");
  assert_fails (coffer_mkdir_beneath (place->root, "a/b", 0755, 0), ENOENT);
  assert_int_equal (coffer_mkdir_beneath (place->root, "a/b/", 0755, 1), 0);
  assert_int_equal (coffer_mkdir_beneath (place->root, "a/b", 0755, 1), 0);
  assert_fails (coffer_mkdir_beneath (place->root, "a/b", 0755, 0), EEXIST);
  assert_fails (coffer_mkdir_beneath (place->root, "f", 0755, 1), ENOTDIR);
  assert_fails (coffer_mkdir_beneath (place->root, "f/x", 0755, 1), ENOTDIR);
  assert_int_equal (coffer_mkdir_beneath (place->root, "/", 0755, 1), 0);
  assert_fails (coffer_mkdir_beneath (place->root, "/", 0755, 0), EEXIST);
}

static void
open_parent_points_into_the_path (void **state)
{
  struct place *place = *state;
  const char *path = "a/./b//last", *name = NULL;
  int dir;

  assert_fails (coffer_open_parent (place->root, path, 0, &name), ENOENT);
  dir = coffer_open_parent (place->root, path, 1, &name);
  assert_true (dir >= 0);
  assert_ptr_equal (name, path + 7);
  close (dir);
  assert_fails (coffer_open_parent (place->root, "/", 0, &name), EINVAL);
  assert_fails (coffer_open_parent (place->root, "a/", 0, &name), EINVAL);
  assert_fails (coffer_open_parent (place->root, "a/.", 0, &name), EINVAL);
}

/* -- new files ---- */

static unsigned
entries (int root)
{
  coffer_autoclose int dir = openat (root, ".", O_RDONLY | O_DIRECTORY |
                                     O_CLOEXEC);
  char names[4096];
  unsigned n = 0;
  ssize_t got;

  /* Counted by a plain list, not by the code under test. */
  while ((got = getdents64 (dir, names, sizeof names)) > 0)
    for (ssize_t at = 0; at < got; n++) {
      unsigned short length;

      memcpy (&length, names + at + 16, sizeof length);
      at += length;
    }
  return n - 2;
}

static void
new_file_appears_only_when_whole (void **state)
{
  struct place *place = *state;
  struct coffer_new_file file;
  struct stat st;

  umask (077);
  assert_true (coffer_new_file_begin (&file, place->root, "f", 0644, 0) >= 0);
  assert_int_equal (coffer_write_all (file.fd, "new", 3), 3);
  assert_int_equal (faccessat (place->root, "f", F_OK, 0), -1);
  assert_int_equal (coffer_new_file_commit (&file, 1, 0), 0);
  coffer_new_file_abort (&file);
  umask (022);
  assert_int_equal (fstatat (place->root, "f", &st, 0), 0);
  assert_int_equal (st.st_size, 3);
  assert_int_equal (st.st_mode & 07777, 0644);
  assert_int_equal (entries (place->root), 1);
}

static void
new_file_given_up_leaves_nothing (void **state)
{
  struct place *place = *state;
  struct coffer_new_file file, zeroed;

  put (place->root, "f", "old");
  assert_true (coffer_new_file_begin (&file, place->root, "f", 0644, 0) >= 0);
  coffer_new_file_abort (&file);
  coffer_new_file_abort (&file);
  memset (&zeroed, 0, sizeof zeroed);
  coffer_new_file_abort (&zeroed);
  assert_true (fcntl (0, F_GETFD) >= 0);        /* descriptor 0 is not its */
  assert_int_equal (entries (place->root), 1);
}

static void
new_file_replaces_files_alone (void **state)
{
  struct place *place = *state;
  struct coffer_new_file file;

  assert_int_equal (mkdirat (place->root, "d", 0755), 0);
  assert_int_equal (symlinkat ("../outside/canary", place->root, "l"), 0);
  assert_int_equal (mkfifoat (place->root, "p", 0644), 0);
  assert_fails (coffer_new_file_begin (&file, place->root, "d", 0644, 0),
                EISDIR);
  assert_fails (coffer_new_file_begin (&file, place->root, "/", 0644, 0),
                EISDIR);
  assert_fails (coffer_new_file_begin (&file, place->root, "l", 0644, 0),
                ELOOP);
  assert_fails (coffer_new_file_begin (&file, place->root, "p", 0644, 0),
                EINVAL);
  /* A link that comes after the check is refused too. */
  assert_true (coffer_new_file_begin (&file, place->root, "late", 0644, 0)
               >= 0);
  assert_int_equal (symlinkat ("../outside/canary", place->root, "late"), 0);
  assert_fails (coffer_new_file_commit (&file, 0, 0), ELOOP);
  coffer_new_file_abort (&file);
  assert_canary (place);
  assert_int_equal (entries (place->root), 4);
}

static void
new_file_that_is_exclusive_takes_no_name (void **state)
{
  struct place *place = *state;
  struct coffer_new_file file;

  assert_true (coffer_new_file_begin (&file, place->root, "a/f", 0644, 1)
               >= 0);
  put (place->root, "a/f", "first");
  assert_fails (coffer_new_file_commit (&file, 0, 1), EEXIST);
  coffer_new_file_abort (&file);
  assert_true (coffer_new_file_begin (&file, place->root, "a/g", 0644, 1)
               >= 0);
  assert_int_equal (coffer_new_file_commit (&file, 0, 1), 0);
  assert_int_equal (faccessat (place->root, "a/g", F_OK, 0), 0);
}

/* -- trees ---- */

struct seen {
  unsigned count;
  unsigned stop_at;
  char last[4200];
};

static int
see (void *data, const char *path, int dir, const char *name,
     const struct stat *st)
{
  struct seen *seen = data;
  struct stat again;

  assert_int_equal (fstatat (dir, name, &again, AT_SYMLINK_NOFOLLOW), 0);
  assert_int_equal (again.st_ino, st->st_ino);
  strcpy (seen->last, path);
  return ++seen->count == seen->stop_at ? 77 : 0;
}

static void
walk_goes_as_deep_as_asked_and_into_no_link (void **state)
{
  struct place *place = *state;
  struct seen seen = {0};

  assert_int_equal (coffer_mkdir_beneath (place->root, "a/b/c/d", 0755, 1), 0);
  assert_int_equal (symlinkat ("../../outside", place->root, "a/link"), 0);
  for (uint32_t depth = 0; depth < 6; depth++) {
    const unsigned want[] = {1, 1, 3, 4, 5, 5};

    seen.count = 0;
    assert_int_equal (coffer_walk (place->root, "/", depth, see, &seen), 0);
    assert_int_equal (seen.count, want[depth]);
  }
  seen = (struct seen) {.stop_at = 1};
  assert_int_equal (coffer_walk (place->root, "a/b/c", 3, see, &seen), 77);
  assert_string_equal (seen.last, "d");
  assert_fails (coffer_walk (place->root, "a", 129, see, &seen), EINVAL);
  assert_fails (coffer_walk (place->root, "a/link", 1, see, &seen), ELOOP);
}

static void
removal_counts_and_keeps_to_what_was_asked (void **state)
{
  struct place *place = *state;
  uint64_t removed = 0;

  assert_int_equal (coffer_mkdir_beneath (place->root, "a/b/c", 0755, 1), 0);
  put (place->root, "a/f", "x");
  put (place->root, "a/b/g", "x");
  assert_int_equal (symlinkat ("../../outside", place->root, "a/l"), 0);
  assert_fails (coffer_remove_beneath (place->root, "a", 0, NULL), ENOTEMPTY);
  assert_fails (coffer_remove_beneath (place->root, "/", 1, NULL), EBUSY);
  assert_fails (coffer_remove_beneath (place->root, "none", 1, NULL), ENOENT);
  assert_int_equal (coffer_remove_beneath (place->root, "a/b/c", 0, &removed),
                    0);
  assert_int_equal (removed, 1);
  assert_int_equal (coffer_remove_beneath (place->root, "a", 1, &removed), 0);
  assert_int_equal (removed, 5);
  assert_int_equal (entries (place->root), 0);
  assert_canary (place);
}

/* Deeper than paths, stacks and descriptors go. */
static void
removal_takes_a_tree_of_any_depth (void **state)
{
  struct place *place = *state;
  int dir = openat (place->root, ".", O_RDONLY | O_CLOEXEC), next;
  uint64_t removed = 0;

  for (int i = 0; i < 5000; i++) {
    assert_int_equal (mkdirat (dir, "d", 0755), 0);
    if (i % 100 == 0)
      put (dir, "file", "x");
    next = openat (dir, "d", O_RDONLY | O_CLOEXEC);
    assert_true (next >= 0);
    close (dir);
    dir = next;
  }
  close (dir);
  assert_int_equal (coffer_remove_beneath (place->root, "d", 1, &removed), 0);
  assert_int_equal (removed, 5000 + 49);
  assert_int_equal (coffer_remove_beneath (place->root, "file", 0, NULL), 0);
  assert_int_equal (entries (place->root), 0);
}

static void
removal_takes_folders_that_forbid_it (void **state)
{
  struct place *place = *state;

  if (geteuid () == 0)
    skip_missing ("a user whom file modes bind (this is root)");
  assert_int_equal (coffer_mkdir_beneath (place->root, "a/b/c", 0755, 1), 0);
  put (place->root, "a/b/f", "x");
  assert_int_equal (fchmodat (place->root, "a/b/c", 0, 0), 0);
  assert_int_equal (fchmodat (place->root, "a/b", 0500, 0), 0);
  assert_int_equal (fchmodat (place->root, "a", 0, 0), 0);
  assert_int_equal (coffer_remove_beneath (place->root, "a", 1, NULL), 0);
  assert_int_equal (entries (place->root), 0);
}

/* As root: a mount below is neither emptied nor entered, and a bind mount
 * has the device number of the tree around it. */
static void
removal_and_walk_cross_no_mount (void **state)
{
  struct place *place = *state;
  struct seen seen = {0};
  char inner[600], outside[600];

  snprintf (inner, sizeof inner, "%s/root/a/m", place->dir);
  snprintf (outside, sizeof outside, "%s/outside", place->dir);
  assert_int_equal (coffer_mkdir_beneath (place->root, "a/m", 0755, 1), 0);
  if (mount (outside, inner, NULL, MS_BIND, NULL) < 0)
    skip_missing ("the right to mount");
  errno = 0;
  assert_int_equal (coffer_remove_beneath (place->root, "a", 1, NULL), -1);
  assert_true (errno == EXDEV || errno == EBUSY);
  assert_int_equal (coffer_walk (place->root, "a", 5, see, &seen), 0);
  assert_int_equal (seen.count, 1);
  assert_int_equal (umount2 (inner, MNT_DETACH), 0);
  assert_canary (place);
}

#ifdef IN_WORKER
static void
take_openat2 (void)
{
  scmp_filter_ctx filter = seccomp_init (SCMP_ACT_ALLOW);

  if (!filter
      || seccomp_rule_add (filter, SCMP_ACT_ERRNO (ENOSYS), SCMP_SYS (openat2),
                           0) < 0
      || seccomp_load (filter) < 0)
    abort ();
  seccomp_release (filter);
}
#endif

int
main (void)
{
#define TEST(name) cmocka_unit_test_setup_teardown (name, place_new, place_free)
  const struct CMUnitTest tests[] = {
    TEST (paths_with_dots_and_slashes_mean_what_they_say),
    TEST (descriptors_are_close_on_exec_and_regular_files_block),
    TEST (links_are_never_followed),
    TEST (what_is_no_regular_file_is_refused_at_once),
    TEST (devices_are_refused),
    TEST (swapping_names_while_they_are_opened_wins_nothing),
    TEST (names_are_any_bytes_up_to_255),
    TEST (mkdir_says_what_is_there),
    TEST (open_parent_points_into_the_path),
    TEST (new_file_appears_only_when_whole),
    TEST (new_file_given_up_leaves_nothing),
    TEST (new_file_replaces_files_alone),
    TEST (new_file_that_is_exclusive_takes_no_name),
    TEST (walk_goes_as_deep_as_asked_and_into_no_link),
    TEST (removal_counts_and_keeps_to_what_was_asked),
    TEST (removal_takes_a_tree_of_any_depth),
    TEST (removal_takes_folders_that_forbid_it),
    TEST (removal_and_walk_cross_no_mount),
  };

#ifdef IN_WORKER
  take_openat2 ();
#endif
  return cmocka_run_group_tests (tests, NULL, NULL);
}
