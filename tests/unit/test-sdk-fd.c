/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/lib/fd.c: whole transfers, waits that end, copies over every pair of
 * ends. */

#define _GNU_SOURCE

#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <coffer/fd.h>

#define MS INT64_C (1000000)
#define SOON (coffer_now_ns () + HARNESS_PATIENCE_NS)

/* `size` bytes that repeat with no power of two. */
static char *
pattern (size_t size)
{
  char *bytes = malloc (size + 1);

  assert_non_null (bytes);
  for (size_t i = 0; i < size; i++)
    bytes[i] = (char) (i * 7 + i / 251);
  return bytes;
}

struct writer {
  int fd;
  const char *bytes;
  size_t size;
  size_t step;                  /* bytes a write */
  pthread_t thread;
};

static void *
writer_main (void *data)
{
  struct writer *w = data;

  for (size_t at = 0; at < w->size; at += w->step)
    if (coffer_write_all (w->fd, w->bytes + at, w->size - at < w->step ?
                          w->size - at : w->step) < 0)
      break;
  close (w->fd);
  return NULL;
}

static void
writer_start (struct writer *w)
{
  assert_int_equal (pthread_create (&w->thread, NULL, writer_main, w), 0);
}

struct reader {
  int fd;
  char *bytes;
  size_t size;
  pthread_t thread;
};

static void *
reader_main (void *data)
{
  struct reader *r = data;

  coffer_read_whole (r->fd, 64 << 20, &r->bytes, &r->size);
  close (r->fd);
  return NULL;
}

static int
file_with (const char *bytes, size_t size)
{
  int fd = memfd_create ("test", MFD_CLOEXEC);

  assert_true (fd >= 0);
  assert_int_equal (coffer_write_all (fd, bytes, size), size);
  assert_int_equal (lseek (fd, 0, SEEK_SET), 0);
  return fd;
}

static void
steal_and_close_keep_errno (void **state)
{
  int fd = open ("/dev/null", O_RDONLY | O_CLOEXEC), stolen;

  (void) state;
  stolen = coffer_fd_steal (&fd);
  assert_int_equal (fd, -1);
  errno = ENOTTY;
  coffer_fd_close (&fd);
  coffer_fd_close (&stolen);
  assert_int_equal (stolen, -1);
  assert_int_equal (errno, ENOTTY);
}

static void
read_whole_stops_exactly_at_its_limit (void **state)
{
  char *bytes = pattern (70000), *out = NULL;
  size_t size = 0, limits[] = {1, 63, 4095, 4096, 4097, 69999, 70000, 70001};

  (void) state;
  for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
    struct writer w = {.bytes = bytes, .size = 70000, .step = 1000};
    int ends[2], r;

    assert_int_equal (pipe2 (ends, O_CLOEXEC), 0);
    w.fd = ends[1];
    writer_start (&w);
    errno = 0;
    r = coffer_read_whole (ends[0], limits[i], &out, &size);
    close (ends[0]);
    pthread_join (w.thread, NULL);
    if (limits[i] < 70000) {
      assert_int_equal (r, -1);
      assert_int_equal (errno, EFBIG);
      continue;
    }
    assert_int_equal (r, 0);
    assert_int_equal (size, 70000);
    assert_memory_equal (out, bytes, size);
    assert_int_equal (out[size], 0);
    free (out);
  }
  free (bytes);
}

static void
read_whole_takes_an_empty_file_and_limit_zero (void **state)
{
  int fd = file_with ("", 0);
  char *out = NULL;
  size_t size = 1;

  (void) state;
  assert_int_equal (coffer_read_whole (fd, 0, &out, &size), 0);
  assert_int_equal (size, 0);
  assert_string_equal (out, "");
  free (out);
  close (fd);
}

static void
memfd_is_sealed_at_offset_zero_and_not_executable (void **state)
{
  coffer_autoclose int fd = -1;
  char buffer[64], name[400];
  struct stat st;

  (void) state;
  memset (name, 'n', sizeof name - 1);
  name[sizeof name - 1] = '\0';
  fd = coffer_memfd_sealed (name, VECTOR_BODY, strlen (VECTOR_BODY));
  assert_true (fd >= 0);
  assert_true (fcntl (fd, F_GETFD) & FD_CLOEXEC);
  assert_int_equal (read (fd, buffer, sizeof buffer), strlen (VECTOR_BODY));
  assert_memory_equal (buffer, VECTOR_BODY, strlen (VECTOR_BODY));
  assert_int_equal (write (fd, "x", 1), -1);
  assert_int_equal (ftruncate (fd, 0), -1);
  assert_int_equal (ftruncate (fd, 100), -1);
  assert_int_equal (fcntl (fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE), -1);
  assert_int_equal (fstat (fd, &st), 0);
  assert_int_equal (st.st_mode & 0111, 0);
}

static void
wait_ends_at_its_deadline (void **state)
{
  int64_t begin = coffer_now_ns ();
  int ends[2];

  (void) state;
  assert_int_equal (pipe2 (ends, O_CLOEXEC), 0);
  assert_int_equal (coffer_wait_fd (ends[0], POLLIN, begin + 30 * MS, -1), 0);
  assert_int_equal (errno, ETIMEDOUT);
  assert_true (coffer_now_ns () - begin >= 30 * MS);
  /* Long past, and the farthest there is. */
  assert_int_equal (coffer_wait_fd (ends[0], POLLIN, INT64_MIN, -1), 0);
  assert_int_equal (errno, ETIMEDOUT);
  assert_int_equal (write (ends[1], "", 1), 1);
  assert_int_equal (coffer_wait_fd (ends[0], POLLIN, INT64_MAX, -1), 1);
  close (ends[0]);
  close (ends[1]);
}

static void
wait_ends_when_cancelled_even_if_ready (void **state)
{
  int cancel = eventfd (1, EFD_CLOEXEC), ends[2];

  (void) state;
  assert_int_equal (pipe2 (ends, O_CLOEXEC), 0);
  assert_int_equal (write (ends[1], "", 1), 1);
  assert_int_equal (coffer_wait_fd (ends[0], POLLIN, SOON, cancel), 0);
  assert_int_equal (errno, ECANCELED);
  close (ends[1]);
  close (cancel);
  assert_int_equal (coffer_wait_fd (ends[0], POLLIN, SOON, cancel), -1);
  assert_int_equal (errno, EBADF);
  close (ends[0]);
}

static void
nothing (int signo)
{
  (void) signo;
}

static void *
interrupt_main (void *data)
{
  for (int i = 0; i < 20; i++) {
    usleep (2000);
    pthread_kill (*(pthread_t *) data, SIGUSR1);
  }
  return NULL;
}

static void
wait_is_not_ended_by_signals (void **state)
{
  struct sigaction act = {.sa_handler = nothing}, old;
  int64_t begin = coffer_now_ns ();
  pthread_t self = pthread_self (), thread;
  int ends[2];

  (void) state;
  assert_int_equal (sigaction (SIGUSR1, &act, &old), 0);
  assert_int_equal (pipe2 (ends, O_CLOEXEC), 0);
  assert_int_equal (pthread_create (&thread, NULL, interrupt_main, &self), 0);
  assert_int_equal (coffer_wait_fd (ends[0], POLLIN, begin + 60 * MS, -1), 0);
  assert_int_equal (errno, ETIMEDOUT);
  assert_true (coffer_now_ns () - begin >= 60 * MS);
  pthread_join (thread, NULL);
  sigaction (SIGUSR1, &old, NULL);
  close (ends[0]);
  close (ends[1]);
}

/* A stream of each kind: [0] is read from, [1] written to. */
static void
make_stream (int kind, int ends[2])
{
  if (kind == 0)
    assert_int_equal (pipe2 (ends, O_CLOEXEC), 0);
  else
    assert_int_equal (socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0,
                                  ends), 0);
}

static void
copy_is_exact_between_streams (void **state)
{
  const size_t size = 1000003;
  char *bytes = pattern (size);

  (void) state;
  for (int kinds = 0; kinds < 4; kinds++) {
    struct writer w = {.bytes = bytes, .size = size, .step = 4099};
    struct reader r = {0};
    int from[2], to[2];
    uint64_t copied = 0;

    make_stream (kinds & 1, from);
    make_stream (kinds >> 1, to);
    w.fd = from[1];
    r.fd = to[0];
    writer_start (&w);
    assert_int_equal (pthread_create (&r.thread, NULL, reader_main, &r), 0);
    assert_int_equal (coffer_copy (from[0], to[1], 0, SOON, -1, &copied), 0);
    close (to[1]);
    pthread_join (w.thread, NULL);
    pthread_join (r.thread, NULL);
    assert_int_equal (copied, size);
    assert_int_equal (r.size, size);
    assert_memory_equal (r.bytes, bytes, size);
    free (r.bytes);
    close (from[0]);
  }
  free (bytes);
}

static void
copy_is_exact_between_files_and_pipes (void **state)
{
  const size_t size = 700001;
  char *bytes = pattern (size), *back = NULL;
  struct reader r = {0};
  struct writer w = {.bytes = bytes, .size = size, .step = size};
  int file = file_with (bytes, size), other = file_with ("", 0), ends[2];
  uint64_t copied = 0;

  (void) state;
  assert_int_equal (pipe2 (ends, O_CLOEXEC), 0);
  r.fd = ends[0];
  assert_int_equal (pthread_create (&r.thread, NULL, reader_main, &r), 0);
  assert_int_equal (coffer_copy (file, ends[1], 0, SOON, -1, &copied), 0);
  close (ends[1]);
  pthread_join (r.thread, NULL);
  assert_int_equal (copied, size);
  assert_int_equal (r.size, size);
  assert_memory_equal (r.bytes, bytes, size);
  free (r.bytes);

  assert_int_equal (pipe2 (ends, O_CLOEXEC), 0);
  w.fd = ends[1];
  writer_start (&w);
  assert_int_equal (coffer_copy (ends[0], other, 0, SOON, -1, &copied), 0);
  pthread_join (w.thread, NULL);
  close (ends[0]);
  assert_int_equal (copied, size);
  lseek (other, 0, SEEK_SET);
  assert_int_equal (coffer_read_whole (other, size, &back, NULL), 0);
  assert_memory_equal (back, bytes, size);
  free (back);

  lseek (file, 0, SEEK_SET);
  lseek (other, 0, SEEK_SET);
  assert_int_equal (ftruncate (other, 0), 0);
  assert_int_equal (coffer_copy (file, other, 0, SOON, -1, &copied), 0);
  assert_int_equal (copied, size);
  free (bytes);
  close (file);
  close (other);
}

static void
copy_stops_at_its_limit (void **state)
{
  char *bytes = pattern (200000), *back = NULL;
  int file = file_with (bytes, 200000), out = file_with ("", 0), ends[2];
  size_t size;
  uint64_t copied;

  (void) state;
  assert_int_equal (coffer_copy (file, out, 131073, SOON, -1, &copied), 0);
  assert_int_equal (copied, 131073);
  lseek (out, 0, SEEK_SET);
  assert_int_equal (coffer_read_whole (out, 1 << 20, &back, &size), 0);
  assert_int_equal (size, 131073);
  free (back);

  assert_int_equal (pipe2 (ends, O_CLOEXEC), 0);
  lseek (file, 0, SEEK_SET);
  assert_int_equal (coffer_copy (file, ends[1], 7, SOON, -1, &copied), 0);
  assert_int_equal (copied, 7);
  close (ends[1]);
  assert_int_equal (coffer_read_whole (ends[0], 100, &back, &size), 0);
  assert_int_equal (size, 7);
  assert_memory_equal (back, bytes, 7);
  free (back);
  free (bytes);
  close (ends[0]);
  close (file);
  close (out);
}

/* Nobody reads: the copy fills the pipe and must still end. */
static void
copy_to_a_full_pipe_ends_at_the_deadline (void **state)
{
  char *bytes = pattern (1 << 20);

  (void) state;
  for (int from_kind = 0; from_kind < 3; from_kind++)
    for (int to_kind = 0; to_kind < 2; to_kind++) {
      struct writer w = {.bytes = bytes, .size = 1 << 20, .step = 5000};
      int from[2], to[2];
      uint64_t copied = 0;

      if (from_kind == 2)
        from[0] = file_with (bytes, 1 << 20);
      else {
        make_stream (from_kind, from);
        w.fd = from[1];
        writer_start (&w);
      }
      make_stream (to_kind, to);
      assert_int_equal (coffer_wait_fd (from[0], POLLIN, SOON, -1), 1);
      errno = 0;
      assert_int_equal (coffer_copy (from[0], to[1], 0,
                                     coffer_now_ns () + 100 * MS, -1,
                                     &copied), -1);
      assert_int_equal (errno, ETIMEDOUT);
      if (copied == 0 || copied >= 1 << 20)
        fail_msg ("%d to %d: %ju", from_kind, to_kind, (uintmax_t) copied);
      close (from[0]);
      if (from_kind != 2)
        pthread_join (w.thread, NULL);
      close (to[0]);
      close (to[1]);
    }
  free (bytes);
}

static void
copy_from_a_silent_pipe_is_cancelled (void **state)
{
  int cancel = eventfd (0, EFD_CLOEXEC), from[2], out = file_with ("", 0);
  uint64_t copied = 9;

  (void) state;
  assert_int_equal (pipe2 (from, O_CLOEXEC), 0);
  assert_int_equal (coffer_copy (from[0], out, 0, coffer_now_ns () + 20 * MS,
                                 cancel, &copied), -1);
  assert_int_equal (errno, ETIMEDOUT);
  assert_int_equal (copied, 0);
  assert_int_equal (eventfd_write (cancel, 1), 0);
  assert_int_equal (coffer_copy (from[0], out, 0, SOON, cancel, NULL), -1);
  assert_int_equal (errno, ECANCELED);
  close (from[0]);
  close (from[1]);
  close (out);
  close (cancel);
}

/* An end that is always ready: only looking at the clock ends this. */
static void
copy_from_an_endless_source_ends (void **state)
{
  int zero = open ("/dev/zero", O_RDONLY | O_CLOEXEC);
  int null = open ("/dev/null", O_WRONLY | O_CLOEXEC);
  uint64_t copied = 0;

  (void) state;
  assert_true (zero >= 0 && null >= 0);
  assert_int_equal (coffer_copy (zero, null, 0, coffer_now_ns () + 100 * MS,
                                 -1, &copied), -1);
  assert_int_equal (errno, ETIMEDOUT);
  assert_true (copied > 0);
  close (zero);
  close (null);
}

static void
write_to_a_pipe_without_reader_is_an_error_and_no_signal (void **state)
{
  char *bytes = pattern (1000);
  int file = file_with (bytes, 1000), ends[2];
  sigset_t waiting;

  (void) state;
  for (int kind = 0; kind < 2; kind++) {
    signal (SIGPIPE, SIG_DFL);
    make_stream (kind, ends);
    close (ends[0]);
    assert_int_equal (coffer_write_all (ends[1], bytes, 1000), -1);
    assert_int_equal (errno, EPIPE);
    lseek (file, 0, SEEK_SET);
    assert_int_equal (coffer_copy (file, ends[1], 0, SOON, -1, NULL), -1);
    assert_int_equal (errno, EPIPE);
    assert_int_equal (sigpending (&waiting), 0);
    assert_false (sigismember (&waiting, SIGPIPE));
    close (ends[1]);
  }
  close (file);
  free (bytes);
}

/* A pipe of one page: every write comes back short. */
static void
write_all_survives_short_writes (void **state)
{
  char *bytes = pattern (100000);
  struct reader r = {0};
  int ends[2];

  (void) state;
  assert_int_equal (pipe2 (ends, O_CLOEXEC), 0);
  assert_true (fcntl (ends[1], F_SETPIPE_SZ, 4096) > 0);
  r.fd = ends[0];
  assert_int_equal (pthread_create (&r.thread, NULL, reader_main, &r), 0);
  assert_int_equal (coffer_write_all (ends[1], bytes, 100000), 100000);
  close (ends[1]);
  pthread_join (r.thread, NULL);
  assert_int_equal (r.size, 100000);
  assert_memory_equal (r.bytes, bytes, 100000);
  free (r.bytes);
  free (bytes);
}

static void
a_path_is_that_of_the_open_file_and_of_no_other (void **state)
{
  const char *dir = *state;
  char path[4096];
  char *got;
  int fd, pair[2];

  snprintf (path, sizeof path, "%s/%s", dir, "你好 'q\".txt");
  fd = open (path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  assert_true (fd >= 0);
  got = coffer_fd_path (fd);
  assert_string_equal (got, path);
  free (got);
  unlink (path);
  assert_null (coffer_fd_path (fd));
  assert_int_equal (errno, ENOENT);
  close (fd);
  assert_int_equal (pipe (pair), 0);
  assert_null (coffer_fd_path (pair[0]));
  assert_int_equal (errno, ENOENT);
  close (pair[0]);
  close (pair[1]);
  assert_null (coffer_fd_path (-1));
}

static void
sockets_are_reached_below_a_long_path (void **state)
{
  const char *dir = *state;
  char path[4096], name[200];
  int folder, server, client, peer;

  memset (name, 'n', sizeof name - 1);
  name[sizeof name - 1] = '\0';
  snprintf (path, sizeof path, "%s/%s", dir, name);
  assert_int_equal (mkdir (path, 0700), 0);
  folder = open (path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  assert_int_equal (coffer_socket_bind (folder, name), -1);
  assert_int_equal (errno, ENAMETOOLONG);
  server = coffer_socket_bind (folder, "s");
  assert_true (server >= 0);
  assert_int_equal (coffer_socket_connect (folder, "s", SOCK_NONBLOCK), -1);
  assert_int_equal (errno, ECONNREFUSED);
  assert_int_equal (listen (server, 1), 0);
  client = coffer_socket_connect (folder, "s", 0);
  peer = accept (server, NULL, NULL);
  assert_true (client >= 0 && peer >= 0);
  assert_int_equal (coffer_write_all (client, "x", 1), 1);
  assert_int_equal (fcntl (client, F_GETFD), FD_CLOEXEC);
  assert_int_equal (coffer_socket_bind (folder, "s"), -1);
  assert_int_equal (errno, EADDRINUSE);
  close (client), close (peer), close (server);
  unlinkat (folder, "s", 0);
  close (folder);
}

/* Whatever it would have been waited for. */
static void
an_end_of_the_other_kind_is_refused_at_once (void **state)
{
  int ends[2], others[2];
  uint64_t copied = 1;

  (void) state;
  assert_int_equal (pipe2 (ends, O_CLOEXEC), 0);
  assert_int_equal (pipe2 (others, O_CLOEXEC), 0);
  assert_int_equal (write (ends[1], "x", 1), 1);
  assert_int_equal (coffer_copy (ends[1], others[1], 0, INT64_MAX, -1, &copied),
                    -1);
  assert_int_equal (errno, EBADF);
  assert_int_equal (copied, 0);
  assert_int_equal (coffer_copy (ends[0], others[0], 0, INT64_MAX, -1, NULL),
                    -1);
  assert_int_equal (errno, EBADF);
  assert_int_equal (coffer_copy (ends[0], others[1], 1, INT64_MAX, -1, &copied),
                    0);
  assert_int_equal (copied, 1);
  for (int i = 0; i < 2; i++) {
    close (ends[i]);
    close (others[i]);
  }
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (steal_and_close_keep_errno),
    cmocka_unit_test (read_whole_stops_exactly_at_its_limit),
    cmocka_unit_test (read_whole_takes_an_empty_file_and_limit_zero),
    cmocka_unit_test (memfd_is_sealed_at_offset_zero_and_not_executable),
    cmocka_unit_test (wait_ends_at_its_deadline),
    cmocka_unit_test (wait_ends_when_cancelled_even_if_ready),
    cmocka_unit_test (wait_is_not_ended_by_signals),
    cmocka_unit_test (copy_is_exact_between_streams),
    cmocka_unit_test (copy_is_exact_between_files_and_pipes),
    cmocka_unit_test (copy_stops_at_its_limit),
    cmocka_unit_test (copy_to_a_full_pipe_ends_at_the_deadline),
    cmocka_unit_test (copy_from_a_silent_pipe_is_cancelled),
    cmocka_unit_test (copy_from_an_endless_source_ends),
    cmocka_unit_test (write_to_a_pipe_without_reader_is_an_error_and_no_signal),
    cmocka_unit_test (write_all_survives_short_writes),
    cmocka_unit_test (an_end_of_the_other_kind_is_refused_at_once),
    cmocka_unit_test_setup_teardown (
      a_path_is_that_of_the_open_file_and_of_no_other, harness_folder_new,
      harness_folder_free),
    cmocka_unit_test_setup_teardown (
      sockets_are_reached_below_a_long_path, harness_folder_new,
      harness_folder_free),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
