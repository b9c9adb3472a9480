/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/lib: folders as tar and tar into folders, as a hostile or an odd archive
 * meets them; and watched folders. */

#define _GNU_SOURCE

#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <coffer/buffer.h>
#include <coffer/fd.h>
#include <coffer/files.h>
#include <coffer/path.h>

#include "fakehost.h"

#define BLOCK 512

struct place {
  char *dir;
  int root;
  struct fakehost host;
  struct coffer_buffer tar;
};

static int
place_new (void **state)
{
  struct place *place = calloc (1, sizeof *place);
  void *dir;

  if (!place || harness_folder_new (&dir) < 0)
    return -1;
  place->dir = dir;
  place->root = open (dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  fakehost_init (&place->host, HARNESS_PATIENCE_MS);
  *state = place;
  return mkdirat (place->root, "in", 0755);
}

static int
place_free (void **state)
{
  struct place *place = *state;
  void *dir = place->dir;

  fakehost_fini (&place->host);
  coffer_fd_close (&place->root);
  coffer_buffer_free (&place->tar);
  free (place);
  return harness_folder_free (&dir);
}

/* ---- archives ------------------------------------------------------------- */

static void
add (struct place *place, char type, const char *name, const char *link,
     unsigned mode, const char *body)
{
  static const char zeros[BLOCK];
  const size_t size = body ? strlen (body) : 0;
  char header[BLOCK] = "";
  unsigned sum = 0;

  memcpy (header, name, strnlen (name, 100));
  snprintf (header + 100, 8, "%07o", mode);
  snprintf (header + 124, 12, "%011o", (unsigned) size & 077777777);
  snprintf (header + 136, 12, "%011o", 1577934245u);
  memset (header + 148, ' ', 8);
  header[156] = type;
  if (link)
    memcpy (header + 157, link, strnlen (link, 100));
  memcpy (header + 257, "ustar\0" "00", 8);
  for (size_t i = 0; i < BLOCK; i++)
    sum += (unsigned char) header[i];
  snprintf (header + 148, 8, "%06o", sum);
  coffer_buffer_add (&place->tar, header, BLOCK);
  coffer_buffer_add (&place->tar, body, size);
  coffer_buffer_add (&place->tar, zeros, (BLOCK - size % BLOCK) % BLOCK);
}

static void
end (struct place *place)
{
  static const char zeros[2 * BLOCK];

  coffer_buffer_add (&place->tar, zeros, sizeof zeros);
}

/* The archive from a file, into "in"; then another one may begin. */
static int32_t
import (struct place *place)
{
  coffer_autoclose int fd = coffer_memfd_sealed ("tar", place->tar.data,
                                                 place->tar.size);
  int32_t code;

  fakehost_reset (&place->host, HARNESS_PATIENCE_MS);
  code = coffer_files_import (&place->host.call, place->root, "in", fd);
  coffer_buffer_clear (&place->tar);
  assert_int_equal (place->host.failures, code != COFFER_OK);
  return code;
}

static int
count_one (void *data, const char *path, int dir, const char *name,
           const struct stat *st)
{
  (void) path, (void) dir, (void) name, (void) st;
  ++*(unsigned *) data;
  return 0;
}

static unsigned
names_in (struct place *place, const char *path)
{
  unsigned n = 0;

  assert_int_equal (coffer_walk (place->root, path, 128, count_one, &n), 0);
  return n;
}

static void
refused (struct place *place, const char *why)
{
  const int32_t code = import (place);

  if (code != COFFER_INVALID || !strstr (place->host.message, why))
    fail_msg ("\"%s\" was to be said, and %d \"%s\" came", why, code,
              place->host.message ? place->host.message : "");
  assert_int_equal (names_in (place, "in"), 0);
  assert_int_equal (names_in (place, "/"), 1);
}

static void
what_is_odd_is_refused_and_not_made_other (void **state)
{
  struct place *place = *state;

  add (place, '0', "f", NULL, 04755, "x");
  end (place);
  refused (place, "setuid");
  add (place, '5', "d/", NULL, 02775, NULL);
  end (place);
  refused (place, "setuid");
  add (place, 'x', "pax", NULL, 0644, "22 GNU.sparse.major=1\n");
  add (place, '0', "f", NULL, 0644, "x");
  end (place);
  refused (place, "sparse");
  add (place, 'S', "f", NULL, 0644, NULL);
  end (place);
  refused (place, "no file, folder or link");
  add (place, '6', "pipe", NULL, 0644, NULL);
  end (place);
  refused (place, "no file, folder or link");
  add (place, '2', "l", "f", 0777, "bytes");
  end (place);
  refused (place, "bytes of what has none");
  add (place, 'g', "pax", NULL, 0644, "14 path=other\n");
  add (place, '0', "f", NULL, 0644, "x");
  end (place);
  refused (place, "names all");
  add (place, 'x', "pax", NULL, 0644, "14 path=other\n");
  end (place);
  refused (place, "ends after a header");
  add (place, 'x', "pax", NULL, 0644, "99 path=other\n");
  end (place);
  refused (place, "malformed");
  add (place, '2', "l", "/etc/passwd", 0777, NULL);
  end (place);
  refused (place, "leaves the folder");
  add (place, '0', "f", NULL, 0644, "x");
  end (place);
  add (place, '0', "g", NULL, 0644, "x");
  end (place);
  refused (place, "after its end");
  coffer_buffer_add (&place->tar, "\x1f\x8b", 2);
  add (place, '0', "f", NULL, 0644, "x");
  coffer_buffer_add (&place->tar, place->tar.data, BLOCK - 2);
  refused (place, "compressed");
}

static void
what_ends_early_is_refused_wherever_it_ends (void **state)
{
  struct place *place = *state;
  size_t whole;

  add (place, 'x', "pax", NULL, 0644, "14 path=other\n");
  add (place, '0', "f", NULL, 0644, "body");
  end (place);
  whole = place->tar.size;
  for (size_t cut = 0; cut < whole; cut += 256) {
    add (place, 'x', "pax", NULL, 0644, "14 path=other\n");
    add (place, '0', "f", NULL, 0644, "body");
    if (cut == 0)               /* the first one is still there */
      coffer_buffer_clear (&place->tar);
    place->tar.size = cut < place->tar.size ? cut : place->tar.size;
    refused (place, "the archive");
  }
}

static void
a_name_too_deep_is_refused_and_one_less_is_not (void **state)
{
  struct place *place = *state;
  coffer_autobuffer struct coffer_buffer name = {0}, pax = {0};
  const char *skip;

  for (int deep = 129; deep >= 128; deep--) {
    coffer_buffer_clear (&name);
    for (int i = 0; i < deep; i++)
      coffer_buffer_add_string (&name, "d/");
    coffer_buffer_clear (&pax);
    coffer_buffer_printf (&pax, "%zu path=%s\n", name.size + 10, name.data);
    skip = pax.data;
    assert_int_equal (pax.size, name.size + 10);
    add (place, 'x', "pax", NULL, 0644, skip);
    add (place, '5', "d", NULL, 0755, NULL);
    end (place);
    if (deep == 129)
      refused (place, "too deep");
    else
      assert_int_equal (import (place), COFFER_OK);
  }
  assert_int_equal (names_in (place, "in"), 128);
}

static void
what_programs_write_is_taken (void **state)
{
  struct place *place = *state;
  char text[8] = "", name[151];
  struct stat a, b;

  memset (name, 'n', sizeof name - 1);
  name[sizeof name - 1] = '\0';
  add (place, 'g', "pax_global_header", NULL, 0644, "14 comment=ab\n");
  add (place, '5', "./", NULL, 0755, NULL);
  add (place, 'L', "././@LongLink", NULL, 0644, name);
  add (place, '0', "nnn", NULL, 0600, "long");
  add (place, '0', "d/f", NULL, 0640, "body");
  add (place, '1', "d/again", "d/f", 0640, NULL);
  add (place, '2', "d/l", "../d/f", 0777, NULL);
  end (place);
  if (import (place) != COFFER_OK)
    fail_msg ("%s", place->host.message);
  assert_int_equal (names_in (place, "in"), 5);
  assert_int_equal (fstatat (place->root, "in/d/f", &a, 0), 0);
  assert_int_equal (fstatat (place->root, "in/d/again", &b, 0), 0);
  assert_true (a.st_ino == b.st_ino);
  assert_int_equal (a.st_mode & 07777, 0640);
  assert_int_equal (a.st_mtim.tv_sec, 1577934245);
  assert_int_equal (readlinkat (place->root, "in/d/l", text, sizeof text), 6);
}

static void
what_is_in_the_way_leaves_all_as_it_was (void **state)
{
  struct place *place = *state;
  coffer_autoclose int fd = -1;
  char text[16] = "";

  assert_int_equal (mkdirat (place->root, "in/d", 0755), 0);
  assert_int_equal (mkdirat (place->root, "in/z", 0755), 0);
  fd = openat (place->root, "in/d/f", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  assert_int_equal (write (fd, "old", 3), 3);
  add (place, '0', "d/f", NULL, 0644, "new");
  add (place, '0', "d/g", NULL, 0644, "new");
  add (place, '0', "a", NULL, 0644, "new");
  add (place, '0', "z", NULL, 0644, "a file where a folder is");
  end (place);
  assert_int_equal (import (place), COFFER_CONFLICT);
  assert_int_equal (names_in (place, "in"), 3);
  coffer_fd_close (&fd);
  fd = openat (place->root, "in/d/f", O_RDONLY | O_CLOEXEC);
  assert_int_equal (read (fd, text, sizeof text), 3);
  assert_string_equal (text, "old");
  add (place, '0', "d/f", NULL, 0644, "new");
  add (place, '0', "a", NULL, 0644, "new");
  end (place);
  assert_int_equal (import (place), COFFER_OK);
  assert_int_equal (names_in (place, "in"), 4);
  coffer_fd_close (&fd);
  fd = openat (place->root, "in/d/f", O_RDONLY | O_CLOEXEC);
  assert_int_equal (read (fd, text, sizeof text), 3);
  assert_memory_equal (text, "new", 3);
}

static void
links_of_a_snapshot_lead_where_they_led (void **state)
{
  struct place *place = *state;
  coffer_autoclose int fd = -1;
  char text[16] = "";

  for (int through = 0; through < 2; through++) {
    add (place, '2', "d/l", "/etc", 0777, NULL);
    add (place, '2', "up", "../../x", 0777, NULL);
    if (through)
      add (place, '0', "d/l/f", NULL, 0644, "x");
    end (place);
    fd = coffer_memfd_sealed ("tar", place->tar.data, place->tar.size);
    fakehost_reset (&place->host, HARNESS_PATIENCE_MS);
    assert_int_equal (coffer_files_restore (&place->host.call, place->root,
                                            "in", fd),
                      through ? COFFER_INVALID : COFFER_OK);
    coffer_fd_close (&fd);
    coffer_buffer_clear (&place->tar);
  }
  assert_int_equal (readlinkat (place->root, "in/d/l", text, sizeof text), 4);
  assert_memory_equal (text, "/etc", 4);
  assert_int_equal (readlinkat (place->root, "in/up", text, sizeof text), 7);
}

static void
giving_up_is_seen_while_nothing_comes (void **state)
{
  struct place *place = *state;
  int ends[2];

  assert_int_equal (pipe2 (ends, O_CLOEXEC), 0);
  add (place, '0', "f", NULL, 0644, "body");
  assert_int_equal (write (ends[1], place->tar.data, place->tar.size),
                    place->tar.size);
  fakehost_reset (&place->host, HARNESS_PATIENCE_MS);
  fakehost_cancel (&place->host);
  assert_int_equal (coffer_files_import (&place->host.call, place->root, "in",
                                         ends[0]), COFFER_CANCELLED);
  assert_int_equal (names_in (place, "in"), 0);
  fakehost_reset (&place->host, 50);
  assert_int_equal (coffer_files_import (&place->host.call, place->root, "in",
                                         ends[0]), COFFER_TIMEOUT);
  assert_int_equal (names_in (place, "in"), 0);
  close (ends[0]);
  /* A pipe that is full and is not read. */
  assert_int_equal (pipe2 (ends, O_CLOEXEC), 0);
  add (place, '0', "large", NULL, 0644, "x");
  end (place);
  assert_int_equal (import (place), COFFER_OK);
  assert_int_equal (truncate (harness_path (place->dir, "in/large"), 1 << 20),
                    0);
  fakehost_reset (&place->host, 50);
  assert_int_equal (coffer_files_export (&place->host.call, place->root, "in",
                                         ends[1]), COFFER_TIMEOUT);
  close (ends[0]);
  close (ends[1]);
}

static void
what_cannot_be_read_is_no_hole_in_an_export (void **state)
{
  struct place *place = *state;
  coffer_autoclose int out = memfd_create ("out", MFD_CLOEXEC);
  struct stat st;

  assert_int_equal (mkfifoat (place->root, "in/pipe", 0644), 0);
  fakehost_reset (&place->host, HARNESS_PATIENCE_MS);
  assert_int_equal (coffer_files_export (&place->host.call, place->root, "in",
                                         out), COFFER_OK);
  assert_true (fakehost_logged (&place->host, "not in the archive"));
  assert_int_equal (fstat (out, &st), 0);
  assert_int_equal (st.st_size, 2 * BLOCK);
  assert_int_equal (mkdirat (place->root, "in/closed", 0), 0);
  fakehost_reset (&place->host, HARNESS_PATIENCE_MS);
  if (geteuid () != 0) {
    assert_int_equal (coffer_files_export (&place->host.call, place->root,
                                           "in", out), COFFER_DENIED);
    assert_non_null (strstr (place->host.message, "closed"));
  } else                        /* whom no mode keeps out */
    assert_int_equal (coffer_files_export (&place->host.call, place->root,
                                           "in", out), COFFER_OK);
}

/* ---- what somebody that was killed has left ------------------------------- */

#define FILE_LEFT ".coffer-0123456789abcdef"
#define FOLDER_LEFT ".coffer-fedcba9876543210"

static void
leave (struct place *place)
{
  char path[64];
  int fd;

  snprintf (path, sizeof path, "in/%s", FOLDER_LEFT);
  assert_int_equal (mkdirat (place->root, path, 0700), 0);
  snprintf (path, sizeof path, "in/%s/below", FOLDER_LEFT);
  assert_int_equal (mkdirat (place->root, path, 0700), 0);
  snprintf (path, sizeof path, "in/%s", FILE_LEFT);
  fd = openat (place->root, path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  assert_int_equal (write (fd, "half", 4), 4);
  close (fd);
}

static int
is_there (struct place *place, const char *name)
{
  return access (harness_path (place->dir, name), F_OK) == 0;
}

static off_t
exported (struct place *place)
{
  coffer_autoclose int out = memfd_create ("out", MFD_CLOEXEC);
  struct stat st;

  fakehost_reset (&place->host, HARNESS_PATIENCE_MS);
  assert_int_equal (coffer_files_export (&place->host.call, place->root, "in",
                                         out), COFFER_OK);
  assert_int_equal (fstat (out, &st), 0);
  return st.st_size;
}

static void
what_was_left_is_taken_away_by_who_looks_next (void **state)
{
  struct place *place = *state;

  leave (place);
  assert_int_equal (exported (place), 2 * BLOCK);
  assert_int_equal (names_in (place, "in"), 0);
  leave (place);
  fakehost_reset (&place->host, HARNESS_PATIENCE_MS);
  assert_int_equal (coffer_files_list (&place->host.call, place->root, "in",
                                       NULL), COFFER_OK);
  assert_int_equal (names_in (place, "in"), 0);
  leave (place);
  add (place, '0', "f", NULL, 0644, "x");
  end (place);
  assert_int_equal (import (place), COFFER_OK);
  assert_int_equal (names_in (place, "in"), 1);
}

/* It is in no archive, and stays until it is done. */
static void
what_somebody_works_at_is_left_alone (void **state)
{
  struct place *place = *state;
  struct coffer_new_file file;
  coffer_autoclose int folder = -1;

  leave (place);
  folder = open (harness_path (place->dir, "in/" FOLDER_LEFT),
                 O_RDONLY | O_CLOEXEC);
  assert_int_equal (flock (folder, LOCK_EX), 0);
  assert_true (coffer_new_file_begin (&file, place->root, "in/new", 0644, 0)
               >= 0);
  assert_int_equal (exported (place), 2 * BLOCK);
  assert_false (is_there (place, "in/" FILE_LEFT));
  assert_true (is_there (place, "in/" FOLDER_LEFT "/below"));
  assert_int_equal (coffer_new_file_commit (&file, 0, 0), 0);
  assert_true (is_there (place, "in/new"));
  assert_int_equal (exported (place), 3 * BLOCK);
}

static void
names_of_others_are_theirs (void **state)
{
  static const char *const names[] = {
    "in/.coffer-", "in/.coffer-notes", "in/.coffer-0123456789abcde",
    "in/.coffer-0123456789abcdef0", "in/.coffer-0123456789ABCDEF",
    "in/x.coffer-0123456789abcdef",
  };
  struct place *place = *state;
  const size_t count = sizeof names / sizeof names[0];

  for (size_t i = 0; i < count; i++)
    close (openat (place->root, names[i], O_CREAT | O_WRONLY | O_CLOEXEC,
                   0600));
  assert_int_equal (symlinkat ("x", place->root, "in/" FILE_LEFT), 0);
  assert_int_equal (exported (place), (count + 3) * BLOCK);
  assert_int_equal (names_in (place, "in"), count + 1);
}

/* ---- watching ------------------------------------------------------------- */

struct watching {
  struct place *place;
  int watch, ended;
  int32_t code;
};

static void *
watch_main (void *data)
{
  struct watching *watching = data;

  watching->code = coffer_files_watch (&watching->place->host.call,
                                       watching->watch, watching->ended);
  return NULL;
}

static void
what_changed_before_the_end_is_told (void **state)
{
  struct place *place = *state;
  const struct coffer_file_event *event;
  struct watching watching = {.place = place};
  pthread_t thread;
  int ended[2];

  assert_int_equal (pipe2 (ended, O_CLOEXEC), 0);
  watching.watch = coffer_watch_open (place->root, "in");
  watching.ended = ended[0];
  assert_true (watching.watch >= 0);
  assert_int_equal (mkdirat (place->root, "in/d", 0755), 0);
  assert_int_equal (mkdirat (place->root, "in/.coffer-d", 0755), 0);
  close (ended[1]);
  assert_int_equal (pthread_create (&thread, NULL, watch_main, &watching), 0);
  pthread_join (thread, NULL);
  assert_int_equal (watching.code, COFFER_NOT_FOUND);
  assert_string_equal (place->host.message, "the sandbox has ended");
  event = FAKEHOST_GET (&place->host, file_event, 0);
  assert_non_null (event);
  assert_string_equal (event->path, "d");
  assert_string_equal (event->kind, "created");
  assert_int_equal (fakehost_count (&place->host, COFFER_REC_file_event), 1);
  close (watching.watch);
  close (ended[0]);
}

static void
what_the_queue_lost_is_said (void **state)
{
  struct place *place = *state;
  coffer_autoclose int fd = open ("/proc/sys/fs/inotify/max_queued_events",
                                  O_RDONLY | O_CLOEXEC);
  coffer_autoclose int watch = coffer_watch_open (place->root, "in");
  char *bytes = NULL;
  unsigned long n = 16384, lost = 0;
  const struct coffer_file_event *event;
  int files[2], ended[2];

  assert_true (watch >= 0);
  files[0] = openat (place->root, "in/f", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  files[1] = openat (place->root, "in/g", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (fd >= 0 && coffer_read_whole (fd, 32, &bytes, NULL) == 0)
    n = strtoul (bytes, NULL, 10);
  free (bytes);
  /* In turns: two that are alike would be one. */
  for (unsigned long i = 0; i < n + 16; i++)
    assert_int_equal (fchmod (files[i % 2], 0600), 0);
  close (files[0]);
  close (files[1]);
  fakehost_reset (&place->host, HARNESS_PATIENCE_MS);
  assert_int_equal (pipe2 (ended, O_CLOEXEC), 0);
  close (ended[1]);
  assert_int_equal (coffer_files_watch (&place->host.call, watch, ended[0]),
                    COFFER_NOT_FOUND);
  for (size_t i = 0; (event = FAKEHOST_GET (&place->host, file_event, i)); i++)
    lost += strcmp (event->kind, "lost") == 0;
  assert_int_equal (lost, 1);
  close (ended[0]);
}

static void
only_a_folder_below_is_watched (void **state)
{
  struct place *place = *state;

  assert_int_equal (symlinkat ("in", place->root, "link"), 0);
  assert_int_equal (coffer_watch_open (place->root, "link"), -1);
  assert_int_equal (errno, ELOOP);
  assert_int_equal (coffer_watch_open (place->root, "../"), -1);
  assert_int_equal (errno, EINVAL);
  assert_int_equal (coffer_watch_open (place->root, "absent"), -1);
  assert_int_equal (errno, ENOENT);
}

int
main (void)
{
#define TEST(name) cmocka_unit_test_setup_teardown (name, place_new, place_free)
  const struct CMUnitTest tests[] = {
    TEST (what_is_odd_is_refused_and_not_made_other),
    TEST (what_ends_early_is_refused_wherever_it_ends),
    TEST (a_name_too_deep_is_refused_and_one_less_is_not),
    TEST (what_programs_write_is_taken),
    TEST (what_is_in_the_way_leaves_all_as_it_was),
    TEST (links_of_a_snapshot_lead_where_they_led),
    TEST (giving_up_is_seen_while_nothing_comes),
    TEST (what_was_left_is_taken_away_by_who_looks_next),
    TEST (what_somebody_works_at_is_left_alone),
    TEST (names_of_others_are_theirs),
    TEST (what_cannot_be_read_is_no_hole_in_an_export),
    TEST (what_changed_before_the_end_is_told),
    TEST (what_the_queue_lost_is_said),
    TEST (only_a_folder_below_is_watched),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
