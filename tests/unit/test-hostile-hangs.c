/* SPDX-License-Identifier: Apache-2.0 */
/* Hostile modules in real workers: operations that never come back, a file that
 * is swapped, streams that are kept, a host that is killed.  Nobody else waits,
 * and nothing is left. */

#include "config.h"

#include "harness.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include <coffer/fd.h>

#include "base/text.h"
#include "hostile-run.h"
#include "hostile-world.h"
#include "provider-fixture.h"
#include "provider/opening.h"

/* ---- operations that never come back -------------------------------------- */

static void *
probe_main (void *data)
{
  struct run *run = data;

  run->number = provider_probe (run->fixture->provider, NULL, &run->error) == 0
                ? 0 : run->error->number;
  run->done = 1;
  return NULL;
}

static struct fixture *
fixture_hanging_in (const char *where)
{
  auto_free char *yaml = text_printf (
    "config:\n  mode: {type: text, default: hang_%s}", where);

  return fixture_new (&(struct fixture_spec){ .module = "hostile",
                                              .yaml = yaml });
}

static void
a_probe_that_hangs_holds_nobody_else (void **state)
{
  struct run run = { .fixture = fixture_hanging_in ("probe") };
  int64_t began = coffer_now_ns ();

  (void) state;
  assert_int_equal (fixture_open (run.fixture, PROVIDER_WORKER, NULL), 0);
  pthread_create (&run.thread, NULL, probe_main, &run);
  while (coffer_now_ns () - began < 200000000)
    fixture_assert_serves (bystander);
  assert_int_equal (run.done, 0);
  kill (provider_worker_pid (run.fixture->provider), SIGKILL);
  pthread_join (run.thread, NULL);
  assert_int_equal (run.number, E_PROVIDER_EXITED);
  error_free (run.error);
  fixture_free (run.fixture);
  assert_true (others_are_gone ());
}

static void *
open_main (void *data)
{
  struct run *run = data;

  run->number = fixture_open (run->fixture, PROVIDER_WORKER, &run->error);
  run->done = 1;
  return NULL;
}

/* Before `open` returns, and before the module is there at all. */
static void
an_open_that_hangs_holds_nobody_else (void **state)
{
  int other = provider_worker_pid (bystander->provider), i, worker;
  int64_t began;

  (void) state;
  for (i = 0; i < 2; i++) {
    struct run run = { .fixture = i ? fixture_hanging_in ("open") : fixture_new (
      &(struct fixture_spec){ .module = "birth_hang" }) };
    began = coffer_now_ns ();
    pthread_create (&run.thread, NULL, open_main, &run);
    while (coffer_now_ns () - began < 200000000)
      fixture_assert_serves (bystander);
    assert_int_equal (run.done, 0);
    worker = world_other_child (&world, other);
    assert_true (worker > 0);
    kill (worker, SIGKILL);
    pthread_join (run.thread, NULL);
    assert_int_equal (run.number, E_PROVIDER_EXITED);
    error_free (run.error);
    fixture_free (run.fixture);
    assert_true (others_are_gone ());
  }
}

static void *
close_main (void *data)
{
  struct run *run = data;
  int64_t began = coffer_now_ns ();

  provider_close (run->fixture->provider);
  run->fixture->provider = NULL;
  run->took_ns = coffer_now_ns () - began;
  run->done = 1;
  return NULL;
}

static struct run closing;

/* The next test is done meanwhile. */
static void
a_close_that_hangs_holds_nobody_else (void **state)
{
  (void) state;
  closing.fixture = fixture_hanging_in ("close");
  assert_int_equal (fixture_open (closing.fixture, PROVIDER_WORKER, NULL), 0);
  pthread_create (&closing.thread, NULL, close_main, &closing);
  fixture_assert_serves (bystander);
  assert_int_equal (closing.done, 0);
}

static void
a_close_that_hangs_is_ended (void **state)
{
  (void) state;
  while (!closing.done) {
    fixture_assert_serves (bystander);
    usleep (50000);
  }
  pthread_join (closing.thread, NULL);
  assert_true (closing.took_ns < HARNESS_PATIENCE_NS);
  fixture_free (closing.fixture);
  assert_true (others_are_gone ());
}

/* ---- the module's file ---------------------------------------------------- */

struct swapper {
  char *paths[3];               /* the module, a good one, another */
  pthread_t thread;
  atomic_int stop;
};

/* By another file in its place, whole or as it is written. */
static void *
swap_main (void *data)
{
  struct swapper *swapper = data;
  unsigned turn;

  for (turn = 0; !swapper->stop; turn++) {
    const char *from = swapper->paths[1 + turn % 2];
    auto_free char *aside = text_printf ("%s.aside", swapper->paths[0]);
    int in = open (from, O_RDONLY | O_CLOEXEC), to;
    char *bytes;
    size_t size;

    if (turn % 4 < 2) {
      unlink (aside);
      if (link (from, aside) == 0)
        rename (aside, swapper->paths[0]);
    } else if (coffer_read_whole (in, 1 << 28, &bytes, &size) == 0) {
      unlink (swapper->paths[0]);
      to = open (swapper->paths[0], O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
      for (size_t i = 0; i < size; i += 65536)
        if (pwrite (to, bytes + i, size - i < 65536 ? size - i : 65536,
                    (off_t) i) < 0)
          break;
      fchmod (to, 0644);
      close (to);
      free (bytes);
    }
    close (in);
    usleep (turn % 2 ? turn * 37 % 1000 : 3000);        /* 0: the good one */
  }
  return NULL;
}

static void
copy_file (const char *from, const char *to)
{
  int in = open (from, O_RDONLY | O_CLOEXEC);
  int out = open (to, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  char *bytes;
  size_t size;

  assert_int_equal (coffer_read_whole (in, 1 << 28, &bytes, &size), 0);
  assert_int_equal (coffer_write_all (out, bytes, size), size);
  free (bytes);
  close (in);
  close (out);
}

static void
swap_begin (struct swapper *swapper, const struct fixture *fixture)
{
  const char *build = getenv ("COFFER_BUILD");
  auto_free char *other = text_printf ("%s/tests/modules/birth_abort.so",
                                       build ? build : ".");

  memset (swapper, 0, sizeof *swapper);
  swapper->paths[0] = text_printf ("%s/hostile.so", fixture->place.shipped);
  swapper->paths[1] = text_printf ("%s/good", fixture->dir);
  swapper->paths[2] = text_printf ("%s/other", fixture->dir);
  copy_file (swapper->paths[0], swapper->paths[1]);
  copy_file (other, swapper->paths[2]);
  pthread_create (&swapper->thread, NULL, swap_main, swapper);
}

static void
swap_end (struct swapper *swapper)
{
  int i;

  swapper->stop = 1;
  pthread_join (swapper->thread, NULL);
  for (i = 0; i < 3; i++)
    free (swapper->paths[i]);
}

/* What is given to the worker is what the manifest has the hash of. */
static int
opening_is_sealed (const struct fixture *fixture)
{
  const char *sha256 = fixture->entry->manifest->modules[0].sha256;
  auto_opening struct opening *opening = NULL;
  char found[SHA256_HEX_SIZE], *bytes;
  size_t size;

  if (opening_new (fixture->entry, &fixture->place, contract_builtin (),
                   NULL, &opening, NULL) < 0)
    return 0;
  assert_int_equal (lseek (opening->module_fd, 0, SEEK_SET), 0);
  assert_int_equal (coffer_read_whole (opening->module_fd, 1 << 28, &bytes,
                                       &size), 0);
  sha256_hex (bytes, size, found);
  free (bytes);
  assert_string_equal (found, sha256);
  return 1;
}

static void
a_module_that_is_swapped_is_never_run (void **state)
{
  struct fixture *fixture
    = fixture_new (&(struct fixture_spec){ .module = "hostile" });
  unsigned long i, opened = 0, times = harness_scaled (1000);
  struct swapper swapper;
  struct error *error = NULL;

  (void) state;
  swap_begin (&swapper, fixture);
  for (i = 0; i < times; i++)
    opened += (unsigned long) opening_is_sealed (fixture);
  /* And all the way: the other one aborts in its constructor. */
  for (i = 0; i < 20; i++) {
    if (fixture_open (fixture, PROVIDER_WORKER, &error) == 0) {
      fixture_assert_serves (fixture);
      provider_close (fixture->provider);
      fixture->provider = NULL;
    } else {
      assert_int_not_equal (error->number, E_PROVIDER_EXITED);
      error_free (error);
    }
    error = NULL;
  }
  swap_end (&swapper);
  print_message ("# opened %lu of %lu times\n", opened, times);
  fixture_free (fixture);
}

/* ---- what it keeps -------------------------------------------------------- */

/* A stream of a command that is over: it can write into it, and that is all
 * over when its worker is. */
static void
a_stream_that_is_kept_ends_with_the_worker (void **state)
{
  static const char *const argv[] = { "keep", NULL };
  struct fixture *fixture = fixture_start_plain ();
  char text[64] = "";
  int ends[2];

  (void) state;
  assert_int_equal (pipe2 (ends, O_CLOEXEC), 0);
  assert_int_equal (INVOKE (fixture->provider, NULL, NULL, exec_start,
                            .sandbox = "x", .argv = argv, .in = -1,
                            .out = ends[1], .err = -1), 0);
  close (ends[1]);
  fixture_assert_done (fixture, "later", "");
  fixture_free (fixture);
  assert_int_equal (coffer_read_all (ends[0], text, sizeof text - 1), 11);
  assert_string_equal (text, "keep\nlater\n");
  close (ends[0]);
}

static int open_while_slow;

static int
hear_slowly (void *data, const struct contract_record *type, void *record)
{
  (void) type;
  (void) record;
  if (*(int *) data == 0) {
    usleep (300000);
    open_while_slow = world_open_descriptors ();
  }
  *(int *) data = 1;
  return 0;
}

static void *
call_slowly (void *data)
{
  struct run *run = data;
  int slept = 0;
  struct provider_call call = {
    .deadline_ns = coffer_now_ns () + HARNESS_PATIENCE_NS, .cancel_fd = -1,
    .sink = { .record = hear_slowly, .data = &slept }
  };

  run->number = INVOKE (run->fixture->provider, &call, &run->error,
                        sandbox_info, .sandbox = "streams:20000") == 0
                ? 0 : run->error->number;
  return NULL;
}

/* Somebody else's call reads the channel meanwhile. */
static void
what_a_slow_caller_leaves_is_bounded (void **state)
{
  struct run run = { .fixture = fixture_start_plain () };

  (void) state;
  pthread_create (&run.thread, NULL, call_slowly, &run);
  usleep (30000);
  fixture_say (run.fixture, "sleep:1000", 5000, -1, NULL, NULL);
  pthread_join (run.thread, NULL);
  /* By the host, or by the kernel, which counts what is on its way. */
  assert_true (run.number == E_PROVIDER_PROTOCOL
               || run.number == E_PROVIDER_EXITED);
  assert_in_range (open_while_slow, world.descriptors,
                   world.descriptors + 120);
  error_free (run.error);
  fixture_assert_serves (run.fixture);
  fixture_free (run.fixture);
  assert_int_equal (world_open_descriptors (), world.descriptors);
}

/* ---- a host that is killed ------------------------------------------------ */

/* In a process of its own: a host whose worker does `word`. */
static pid_t
host_start (const char *yaml, const char *word, int *worker)
{
  struct fixture *fixture = fixture_new (&(struct fixture_spec){
    .module = "hostile", .yaml = yaml });
  int ends[2], pid = 0;
  pid_t host;

  assert_int_equal (pipe2 (ends, O_CLOEXEC), 0);
  host = fork ();
  if (host == 0) {
    if (fixture_open (fixture, PROVIDER_WORKER, NULL) != 0)
      _exit (1);
    pid = provider_worker_pid (fixture->provider);
    fixture_say (fixture, "forks:3", 5000, -1, NULL, NULL);
    if (write (ends[1], &pid, sizeof pid) < 0)
      _exit (1);
    fixture_say (fixture, word, 30000, -1, NULL, NULL);
    _exit (0);
  }
  close (ends[1]);
  assert_int_equal (read (ends[0], worker, sizeof *worker), sizeof *worker);
  close (ends[0]);
  usleep (50000);               /* it is at it */
  fixture_free (fixture);
  return host;
}

/* Orphans are this process's, so that each that is left shows. */
static void
nothing_of_a_worker_outlives_its_host (void **state)
{
  static const struct {
    const char *yaml, *word;
  } table[] = { { NULL, "hang" }, { NULL, "stop_threads" },
                { NULL, "raise:19" }, { NULL, "channel:null" },
                { NULL, "channel:loop" }, { EXEC, "stop_threads" },
                { EXEC, "raise:19" } };
  int64_t until;
  size_t i;
  int worker, status;
  pid_t host;

  (void) state;
  for (i = 0; i < sizeof table / sizeof table[0]; i++) {
    host = host_start (table[i].yaml, table[i].word, &worker);
    if (!fixture_process_lives (worker)
        && strncmp (table[i].word, "channel:", 8) != 0)
      complain (table[i].word, "its worker did not live");
    assert_int_equal (kill (host, SIGKILL), 0);
    assert_int_equal (waitpid (host, &status, 0), host);
    until = coffer_now_ns () + HARNESS_PATIENCE_NS;
    while (world_children () > 2 && coffer_now_ns () < until)
      if (!world_reap (&world, provider_worker_pid (bystander->provider)))
        usleep (2000);
    if (world_children () != 2)
      complain (table[i].word, "it outlives its host");
  }
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (a_probe_that_hangs_holds_nobody_else),
    cmocka_unit_test (an_open_that_hangs_holds_nobody_else),
    cmocka_unit_test (a_stream_that_is_kept_ends_with_the_worker),
    cmocka_unit_test (what_a_slow_caller_leaves_is_bounded),
    cmocka_unit_test (nothing_of_a_worker_outlives_its_host),
    cmocka_unit_test (a_close_that_hangs_holds_nobody_else),
    cmocka_unit_test (a_module_that_is_swapped_is_never_run),
    cmocka_unit_test (a_close_that_hangs_is_ended),
  };

  return cmocka_run_group_tests (tests, set_up, tear_down);
}
