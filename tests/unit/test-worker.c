/* SPDX-License-Identifier: Apache-2.0 */
/* Hostile modules in workers: the host survives each, says what happened with
 * the right code, serves the next call, and leaves nothing behind. */

#include "config.h"

#include "harness.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <coffer/fd.h>

#include "base/log.h"
#include "base/text.h"
#include "provider-fixture.h"

/* Ends with `number`; then serves. */
static void
assert_ends (const char *word, int64_t ms, int number)
{
  struct fixture *fixture = fixture_start_plain ();
  int before = provider_worker_pid (fixture->provider);
  struct error *error = NULL;
  int got = fixture_say (fixture, word, ms, -1, NULL, &error);

  if (got != number)
    fail_msg ("%s: E%d %s", word, got, error ? error->message : "");
  if (error)
    assert_non_null (strstr (error->message, "hostile"));
  fixture_assert_serves (fixture);
  error_free (error);
  fixture_free (fixture);
  assert_false (fixture_process_lives (before));
}

/* ---- what a call ends with ------------------------------------------------ */

static void
calls_are_served (void **state)
{
  struct fixture *fixture = fixture_start_plain ();
  struct heard heard = { .facts = 0 };

  (void) state;
  assert_true (provider_worker_pid (fixture->provider) > 0);
  assert_int_equal (fixture_say (fixture, "emits:2000", 5000, -1, &heard,
                                 NULL), 0);
  assert_int_equal (heard.facts, 2000);
  assert_int_equal (fixture_say (fixture, "progress:" VECTOR_NAME, 5000, -1,
                                 &heard, NULL), 0);
  assert_string_equal (heard.value, "1 of 2 " VECTOR_NAME);
  assert_int_equal (fixture_say (fixture, "ok:" VECTOR_BODY, 5000, -1,
                                 &heard, NULL), 0);
  assert_string_equal (heard.value, VECTOR_BODY);
  fixture_free (fixture);
}

static void
a_crash_is_told_with_its_log (void **state)
{
  struct fixture *fixture = fixture_start_plain ();
  struct error *error = NULL;
  json_t *log;

  (void) state;
  assert_int_equal (fixture_say (fixture, "log:before", 5000, -1, NULL,
                                 NULL), 0);
  assert_int_equal (fixture_say (fixture, "crash:why", 5000, -1, NULL,
                                 &error), E_PROVIDER_EXITED);
#ifndef COFFER_SANITIZERS       /* they catch it, and print pages */
  assert_int_equal (json_integer_value (json_object_get (error->details,
                                                         "signal")),
                    SIGSEGV);
  assert_int_equal (json_array_size (json_object_get (error->details, "log")),
                    2);
#endif
  log = json_object_get (error->details, "log");
#ifndef COFFER_SANITIZERS
  assert_string_equal (json_string_value (json_array_get (log, 1)), "why");
#endif
  assert_true (json_array_size (log) > 0);
  assert_int_equal (error->retryable, RETRY_YES);
  error_free (error);
  fixture_assert_serves (fixture);
  fixture_free (fixture);
}

static void
an_abort_is_told_with_what_it_printed (void **state)
{
  struct fixture *fixture = fixture_start_plain ();
  struct error *error = NULL;
  json_t *log;

  (void) state;
  assert_int_equal (fixture_say (fixture, "abort:it", 5000, -1, NULL, &error),
                    E_PROVIDER_EXITED);
  assert_int_equal (json_integer_value (json_object_get (error->details,
                                                         "signal")),
                    SIGABRT);
  log = json_object_get (error->details, "log");
  assert_string_equal (json_string_value (json_array_get (log, 0)),
                       "assertion of it failed");
  assert_non_null (strstr (error->message, "signal 6 (SIGABRT); the last it "
                                           "said: assertion of it failed"));
  error_free (error);
  fixture_assert_serves (fixture);
  fixture_free (fixture);
}

static void
an_exit_is_told_with_its_code (void **state)
{
  struct fixture *fixture = fixture_start_plain ();
  struct error *error = NULL;

  (void) state;
  assert_int_equal (fixture_say (fixture, "exit:42", 5000, -1, NULL, &error),
                    E_PROVIDER_EXITED);
  assert_int_equal (json_integer_value (json_object_get (error->details,
                                                         "exit_code")), 42);
  error_free (error);
  fixture_assert_serves (fixture);
  fixture_free (fixture);
}

static void
a_hang_ends_at_the_deadline (void **state)
{
  int64_t began = coffer_now_ns ();

  (void) state;
  assert_ends ("hang", 200, E_PROVIDER_TIMEOUT);
  assert_ends ("spin", 200, E_PROVIDER_TIMEOUT);
  assert_ends ("stop_all", 200, E_PROVIDER_TIMEOUT);
  assert_true (coffer_now_ns () - began < HARNESS_PATIENCE_NS);
}

static void
a_deadline_that_the_module_keeps_costs_no_worker (void **state)
{
  struct fixture *fixture = fixture_start_plain ();
  int pid = provider_worker_pid (fixture->provider);

  (void) state;
  /* It was told to stop, but its caller gave nothing up. */
  assert_int_equal (fixture_say (fixture, "wait", 100, -1, NULL, NULL),
                    E_PROVIDER_TIMEOUT);
  fixture_assert_serves (fixture);
  assert_int_equal (provider_worker_pid (fixture->provider), pid);
  fixture_free (fixture);
}

static void *
cancel_soon (void *data)
{
  uint64_t one = 1;

  usleep (50 * 1000);
  if (write (*(int *) data, &one, sizeof one) < 0)
    abort ();
  return NULL;
}

static void
a_cancel_reaches_the_call (void **state)
{
  struct fixture *fixture = fixture_start_plain ();
  int cancel = eventfd (0, EFD_CLOEXEC);
  int pid = provider_worker_pid (fixture->provider);
  pthread_t thread;
  int64_t began = coffer_now_ns ();

  (void) state;
  pthread_create (&thread, NULL, cancel_soon, &cancel);
  assert_int_equal (fixture_say (fixture, "wait", 30000, cancel, NULL, NULL),
                    E_EXEC_CANCELLED);
  assert_true (coffer_now_ns () - began < HARNESS_PATIENCE_NS);
  pthread_join (thread, NULL);
  assert_int_equal (provider_worker_pid (fixture->provider), pid);
  /* One that does not listen is stopped. */
  assert_int_equal (fixture_say (fixture, "hang", 30000, cancel, NULL, NULL),
                    E_PROVIDER_TIMEOUT);
  fixture_assert_serves (fixture);
  close (cancel);
  fixture_free (fixture);
}

static void
a_sink_can_end_the_call (void **state)
{
  struct fixture *fixture = fixture_start_plain ();
  struct heard heard = { .stop_after = 3 };

  (void) state;
  assert_int_equal (fixture_say (fixture, "emits:100000", 5000, -1, &heard,
                                 NULL), E_EXEC_CANCELLED);
  assert_int_equal (heard.facts, 3);
  fixture_assert_serves (fixture);
  fixture_free (fixture);
}

static void
codes_become_public_errors (void **state)
{
  struct fixture *fixture = fixture_start_plain ();
  struct error *error = NULL;

  (void) state;
  assert_int_equal (fixture_say (fixture, "code:999", 5000, -1, NULL, &error),
                    E_PROVIDER_FAILED);
  assert_string_equal (json_string_value (json_object_get (error->details,
                                                           "code")),
                       "INTERNAL");
  error_free (error);
  error = NULL;
  assert_int_equal (fixture_say (fixture, "code:-5", 5000, -1, NULL, NULL),
                    E_PROVIDER_FAILED);
  assert_int_equal (fixture_say (fixture, "code:5", 5000, -1, NULL, NULL),
                    E_UNKNOWN_SANDBOX);
  assert_int_equal (fixture_say (fixture, "code:1", 5000, -1, NULL, NULL),
                    E_CAPABILITY);
  assert_int_equal (fixture_say (fixture, "code:3", 5000, -1, NULL, NULL),
                    E_CREDENTIALS_INVALID);
  assert_int_equal (fixture_say (fixture, "fail:13", 5000, -1, NULL, &error),
                    E_PROVIDER_FAILED);
  assert_int_equal (error->retryable, RETRY_YES);
  assert_non_null (strstr (error->message, "as asked"));
  assert_string_equal (json_string_value (json_object_get (error->details,
                                                           "code")), "IO");
  assert_string_equal (json_string_value (json_object_get (error->details,
                                                           "operation")),
                       "sandbox_info");
  assert_non_null (json_object_get (json_object_get (error->details,
                                                     "reported"), "seen"));
  error_free (error);
  fixture_free (fixture);
}

static void
wrong_records_are_the_modules_fault (void **state)
{
  (void) state;
  assert_ends ("unknown_record", 5000, E_PROVIDER_PROTOCOL);
  assert_ends ("bad_text", 5000, E_PROVIDER_PROTOCOL);
  assert_ends ("short_record", 5000, E_PROVIDER_PROTOCOL);
}

static void
frames_that_break_the_rules_end_the_worker (void **state)
{
  (void) state;
  assert_ends ("garbage:not json", 5000, E_PROVIDER_PROTOCOL);
  assert_ends ("garbage:{}", 5000, E_PROVIDER_PROTOCOL);
  assert_ends ("garbage:[1,2]", 5000, E_PROVIDER_PROTOCOL);
  assert_ends ("garbage:{\"kind\":\"done\",\"call\":999999,\"code\":0}", 5000,
               E_PROVIDER_PROTOCOL);
  assert_ends ("garbage:{\"kind\":\"start\",\"call\":2}", 5000,
               E_PROVIDER_PROTOCOL);
  assert_ends ("garbage:{\"payload\":70000}", 5000, E_PROVIDER_PROTOCOL);
  assert_ends ("garbage:{\"kind\":\"done\",\"kind\":\"log\"}", 5000,
               E_PROVIDER_PROTOCOL);
  assert_ends ("oversized", 5000, E_PROVIDER_PROTOCOL);
  assert_ends ("fd_storm:17", 5000, E_PROVIDER_PROTOCOL);
  assert_ends ("fd_storm:200", 5000, E_PROVIDER_PROTOCOL);
}

static void
a_worker_that_closes_everything_is_stopped (void **state)
{
  (void) state;
  assert_ends ("close_fds", 5000, E_PROVIDER_EXITED);
}

static void
closed_output_costs_no_processor_time (void **state)
{
  struct fixture *fixture = fixture_start_plain ();
  struct timespec before, after;

  (void) state;
  clock_gettime (CLOCK_PROCESS_CPUTIME_ID, &before);
  fixture_assert_done (fixture, "close_output", "");
  clock_gettime (CLOCK_PROCESS_CPUTIME_ID, &after);
  assert_true ((after.tv_sec - before.tv_sec) * 1000
                 + (after.tv_nsec - before.tv_nsec) / 1000000 < 100);
  fixture_free (fixture);
}

static void
floods_are_bounded (void **state)
{
  struct fixture *fixture = fixture_start_plain ();

  (void) state;
  log_set_level (LOG_LEVEL_ERROR);
  fixture_assert_done (fixture, "flood:100000", "");
  fixture_assert_done (fixture, "print:5000", "");
  fixture_assert_serves (fixture);
  fixture_free (fixture);
}

static void
large_records_pass (void **state)
{
  struct fixture *fixture = fixture_start_plain ();
  struct heard heard = { .facts = 0 };

  (void) state;
  assert_int_equal (fixture_say (fixture, "large:1000000", 5000, -1, &heard,
                                 NULL), 0);
  assert_int_equal (heard.facts, 1);
  assert_int_equal (strlen (heard.value), sizeof heard.value - 1);
  fixture_free (fixture);
}

static void
large_arguments_pass (void **state)
{
  struct fixture *fixture = fixture_start_plain ();
  struct heard heard = { .facts = 0 };
  size_t size = 500000;
  char *word = malloc (size + 1);

  (void) state;
  memset (word, 'y', size);
  memcpy (word, "ok:", 3);
  word[size] = '\0';
  assert_int_equal (fixture_say (fixture, word, 5000, -1, &heard, NULL), 0);
  assert_int_equal (strlen (heard.value), sizeof heard.value - 1);
  free (word);
  fixture_free (fixture);
}

static void
descriptors_pass_both_ways (void **state)
{
  struct fixture *fixture = fixture_start_plain ();
  static const char *const argv[] = { "one", VECTOR_NAME, NULL };
  struct heard heard = { .fd = -1 };
  char text[256] = "";
  int ends[2], file;

  (void) state;
  assert_int_equal (pipe2 (ends, O_CLOEXEC), 0);
  assert_int_equal (INVOKE (fixture->provider, NULL, NULL, exec_start,
                            .sandbox = "x", .argv = argv, .in = -1,
                            .out = ends[1], .err = -1), 0);
  close (ends[1]);
  assert_true (coffer_read_all (ends[0], text, sizeof text - 1) > 0);
  assert_string_equal (text, "one\n" VECTOR_NAME "\n");
  close (ends[0]);
  /* A file of the caller's is refused. */
  file = open ("/dev/null", O_WRONLY | O_CLOEXEC);
  assert_int_equal (INVOKE (fixture->provider, NULL, NULL, exec_start,
                            .sandbox = "x", .argv = argv, .in = -1,
                            .out = file, .err = -1), -1);
  close (file);
  (void) heard;
  fixture_free (fixture);
}

static int
take_stream (void *data, const struct contract_record *type, void *record)
{
  struct coffer_stream *stream = record;

  (void) type;
  *(int *) data = stream->fd;
  stream->fd = -1;
  return 0;
}

static void
an_emitted_descriptor_belongs_to_the_caller (void **state)
{
  struct fixture *fixture = fixture_start_plain ();
  int fd = -1;
  struct provider_call call = { .cancel_fd = -1,
                                .sink = { .record = take_stream,
                                          .data = &fd } };
  char text[32] = "";

  (void) state;
  assert_int_equal (INVOKE (fixture->provider, &call, NULL, port_dial,
                            .sandbox = "x", .port = 1), 0);
  assert_true (fd >= 0);
  assert_int_equal (coffer_read_all (fd, text, sizeof text - 1), 8);
  assert_string_equal (text, "dialled\n");
  close (fd);
  fixture_free (fixture);
}

/* ---- a worker that is none ------------------------------------------------ */

static struct fixture *
fake_new (const char *mode)
{
  auto_free char *yaml = text_printf (
    "config:\n  mode: {type: text, default: %s}", mode);

  return fixture_new (&(struct fixture_spec){
    .module = "hostile", .yaml = yaml, .libexec = "tests/modules/fake" });
}

/* A call ends with `number`, and the next one, of a new process, likewise. */
static void
assert_fake (const char *mode, int number)
{
  struct fixture *fixture = fake_new (mode);
  struct error *error = NULL;
  int ms = number == E_PROVIDER_TIMEOUT ? 200 : HARNESS_PATIENCE_MS, got, i;

  if (fixture_open (fixture, PROVIDER_WORKER, &error) != 0)
    fail_msg ("%s: open: %s", mode, error_message (error));
  for (i = 0; i < 2; i++) {
    error = NULL;
    got = fixture_say (fixture, "ok", ms, -1, NULL, &error);
    if (got != number)
      fail_msg ("%s: E%d %s", mode, got, error_message (error));
    error_free (error);
  }
  fixture_free (fixture);
}

static void
a_worker_that_lies_is_ended (void **state)
{
  (void) state;
  assert_fake ("other", E_PROVIDER_PROTOCOL);
  assert_fake ("negative", E_PROVIDER_PROTOCOL);
  assert_fake ("truncated", E_PROVIDER_PROTOCOL);
  assert_fake ("oversized", E_PROVIDER_PROTOCOL);
  assert_fake ("storm", E_PROVIDER_PROTOCOL);
  assert_fake ("unsealed", E_PROVIDER_PROTOCOL);
  assert_fake ("short", E_PROVIDER_PROTOCOL);
  assert_fake ("huge", E_PROVIDER_PROTOCOL);
  assert_fake ("no_value", E_PROVIDER_PROTOCOL);
  assert_fake ("no_record", E_PROVIDER_PROTOCOL);
  assert_fake ("codes", E_PROVIDER_FAILED);
  assert_fake ("silent", E_PROVIDER_TIMEOUT);
  assert_fake ("endless", E_PROVIDER_TIMEOUT);
}

static void
answers_that_nobody_waits_for_end_the_worker (void **state)
{
  struct fixture *fixture = fake_new ("early");

  (void) state;
  assert_int_equal (fixture_open (fixture, PROVIDER_WORKER, NULL), 0);
  assert_int_equal (fixture_say (fixture, "ok", 2000, -1, NULL, NULL), 0);
  /* Its second answer is there, and belongs to no call. */
  assert_int_equal (fixture_say (fixture, "ok", 2000, -1, NULL, NULL),
                    E_PROVIDER_PROTOCOL);
  fixture_free (fixture);
}

static void
odd_progress_is_harmless (void **state)
{
  struct fixture *fixture = fake_new ("progress");
  struct heard heard = { .facts = 0 };

  (void) state;
  assert_int_equal (fixture_open (fixture, PROVIDER_WORKER, NULL), 0);
  assert_int_equal (fixture_say (fixture, "ok", 2000, -1, &heard, NULL), 0);
  assert_string_equal (heard.value, "0 of 0 ");
  fixture_free (fixture);
}

static void
a_worker_that_never_begins_is_told (void **state)
{
  static const struct {
    const char *mode;
    int number;
  } table[] = { { "not_ready", E_PROVIDER_PROTOCOL },
                { "bad_ready", E_PROVIDER_PROTOCOL },
                { "refused", E_INTERNAL } };
  size_t i;

  (void) state;
  for (i = 0; i < sizeof table / sizeof table[0]; i++) {
    struct fixture *fixture = fake_new (table[i].mode);
    assert_int_equal (fixture_open (fixture, PROVIDER_WORKER, NULL),
                      table[i].number);
    fixture_free (fixture);
  }
}

static void
without_a_worker_program_nothing_starts (void **state)
{
  struct fixture *fixture = fixture_new (&(struct fixture_spec){
    .module = "hostile", .libexec = "tests" });
  struct error *error = NULL;

  (void) state;
  assert_int_equal (fixture_open (fixture, PROVIDER_WORKER, &error), E_IO);
  assert_non_null (strstr (error_message (error), "coffer-worker"));
  error_free (error);
  fixture_free (fixture);
}

/* ---- many calls ----------------------------------------------------------- */

struct caller {
  struct fixture *fixture;
  const char *word;
  int times, failed;
};

static void *
call_often (void *data)
{
  struct caller *caller = data;
  struct heard heard = { .facts = 0 };
  int i;

  for (i = 0; i < caller->times; i++)
    caller->failed += fixture_say (caller->fixture, caller->word, 10000, -1,
                                   &heard, NULL) != 0;
  return NULL;
}

static void
many_threads_share_a_worker (void **state)
{
  struct fixture *fixture = fixture_start_plain ();
  struct caller callers[8];
  pthread_t threads[8];
  int i;

  (void) state;
  for (i = 0; i < 8; i++) {
    callers[i] = (struct caller){ fixture, i % 2 ? "emits:5" : "ok:x",
                                  (int) harness_scaled (200), 0 };
    pthread_create (&threads[i], NULL, call_often, &callers[i]);
  }
  for (i = 0; i < 8; i++) {
    pthread_join (threads[i], NULL);
    assert_int_equal (callers[i].failed, 0);
  }
  fixture_free (fixture);
}

static int64_t
time_of_sleeps (const char *module, const char *threads)
{
  struct fixture *fixture = fixture_start (&(struct fixture_spec){
    .module = module, .threads = threads });
  struct caller callers[4];
  pthread_t ids[4];
  int64_t began = coffer_now_ns ();
  int i;

  for (i = 0; i < 4; i++) {
    callers[i] = (struct caller){ fixture, "sleep:150", 1, 0 };
    pthread_create (&ids[i], NULL, call_often, &callers[i]);
  }
  for (i = 0; i < 4; i++) {
    pthread_join (ids[i], NULL);
    assert_int_equal (callers[i].failed, 0);
  }
  began = coffer_now_ns () - began;
  fixture_free (fixture);
  return began / 1000000;
}

static void
serial_modules_get_one_call_at_a_time (void **state)
{
  int tries = 20;

  (void) state;
  assert_true (time_of_sleeps ("serial", "serial") >= 590);
  /* One after the other it never is; a busy machine may make it long. */
  while (time_of_sleeps ("hostile", "parallel") >= 550)
    assert_true (--tries > 0);
}

struct waiter {
  struct fixture *fixture;
  int cancel;
  atomic_int done;
};

static void *
wait_exec (void *data)
{
  struct waiter *waiter = data;
  struct provider_call call = { .cancel_fd = waiter->cancel,
                                .deadline_ns = coffer_now_ns ()
                                               + 2 * HARNESS_PATIENCE_NS };

  INVOKE (waiter->fixture->provider, &call, NULL, exec_wait, .sandbox = "x",
          .exec = "40000");
  waiter->done = 1;
  return NULL;
}

static void
waiting_holds_no_lock (void **state)
{
  struct waiter waiter = { .fixture = fixture_start (&(struct fixture_spec){
    .module = "serial", .threads = "serial" }) };
  pthread_t thread;

  (void) state;
  waiter.cancel = eventfd (0, EFD_CLOEXEC);
  pthread_create (&thread, NULL, wait_exec, &waiter);
  usleep (50 * 1000);
  fixture_assert_serves (waiter.fixture);
  assert_false (waiter.done);
  assert_int_equal (eventfd_write (waiter.cancel, 1), 0);
  pthread_join (thread, NULL);
  close (waiter.cancel);
  fixture_free (waiter.fixture);
}

static void
all_calls_of_a_dead_worker_fail (void **state)
{
  struct fixture *fixture = fixture_start_plain ();
  struct caller callers[3];
  pthread_t threads[3];
  int i;

  (void) state;
  for (i = 0; i < 3; i++) {
    callers[i] = (struct caller){ fixture, "wait", 1, 0 };
    pthread_create (&threads[i], NULL, call_often, &callers[i]);
  }
  usleep (50 * 1000);
  assert_int_equal (fixture_say (fixture, "crash", 5000, -1, NULL, NULL),
                    E_PROVIDER_EXITED);
  for (i = 0; i < 3; i++) {
    pthread_join (threads[i], NULL);
    assert_int_equal (callers[i].failed, 1);
  }
  fixture_assert_serves (fixture);
  fixture_free (fixture);
}

/* ---- dying often ---------------------------------------------------------- */

static void
a_worker_killed_while_idle_is_replaced (void **state)
{
  struct fixture *fixture = fixture_start_plain ();
  int pid = provider_worker_pid (fixture->provider);

  (void) state;
  assert_int_equal (kill (pid, SIGKILL), 0);
  while (fixture_process_lives (pid))
    usleep (1000);
  fixture_assert_serves (fixture);
  assert_int_not_equal (provider_worker_pid (fixture->provider), pid);
  fixture_free (fixture);
  assert_false (fixture_process_lives (pid));
}

static void
a_worker_that_dies_often_rests (void **state)
{
  struct fixture *fixture = fixture_start_plain ();
  struct error *error = NULL;
  int i;

  (void) state;
  for (i = 0; i < 5; i++)
    assert_int_equal (fixture_say (fixture, "exit:1", 5000, -1, NULL, NULL),
                      E_PROVIDER_EXITED);
  assert_int_equal (fixture_say (fixture, "ok", 5000, -1, NULL, &error),
                    E_PROVIDER_BREAKER);
  assert_int_equal (error->retryable, RETRY_YES);
  error_free (error);
  fixture_free (fixture);
}

/* ---- starting ------------------------------------------------------------- */

static void
a_constructor_that_dies_is_told (void **state)
{
  struct fixture *fixture = fixture_new (&(struct fixture_spec){
    .module = "birth_abort" });
  struct error *error = NULL;

  (void) state;
  assert_int_equal (fixture_open (fixture, PROVIDER_WORKER, &error),
                    E_PROVIDER_EXITED);
  assert_non_null (strstr (error->message, "ABRT"));
  assert_non_null (strstr (error->message, "constructor: no"));
  assert_string_equal (
    json_string_value (json_array_get (json_object_get (error->details,
                                                        "log"), 0)),
    "constructor: no");
  error_free (error);
  fixture_free (fixture);
}

static void
open_may_refuse (void **state)
{
  struct fixture *fixture = fixture_new (&(struct fixture_spec){
    .module = "hostile",
    .yaml = "config:\n  mode: {type: text, default: refuse}" });
  struct error *error = NULL;

  (void) state;
  assert_int_equal (fixture_open (fixture, PROVIDER_WORKER, &error),
                    E_CREDENTIALS_INVALID);
  assert_non_null (strstr (error->message, "the key is wrong"));
  error_free (error);
  fixture_free (fixture);
}

static void
open_may_crash (void **state)
{
  struct fixture *fixture = fixture_new (&(struct fixture_spec){
    .module = "hostile",
    .yaml = "config:\n  mode: {type: text, default: crash}" });

  (void) state;
  assert_int_equal (fixture_open (fixture, PROVIDER_WORKER, NULL),
                    E_PROVIDER_EXITED);
  fixture_free (fixture);
}

/* The host is killed while a call runs, and while a constructor hangs. */
static void
nothing_outlives_a_killed_host (void **state)
{
  const struct fixture_spec specs[2] = { { .module = "hostile" },
                                         { .module = "birth_hang" } };
  int i, pid, host, ends[2], status;

  (void) state;
  prctl (PR_SET_CHILD_SUBREAPER, 1);
  for (i = 0; i < 2; i++) {
    struct fixture *fixture = fixture_new (&specs[i]);
    assert_int_equal (pipe2 (ends, O_CLOEXEC), 0);
    host = fork ();
    if (host == 0) {
      if (i == 1)
        fixture_open (fixture, PROVIDER_WORKER, NULL);
      if (fixture_open (fixture, PROVIDER_WORKER, NULL) != 0)
        _exit (1);
      pid = provider_worker_pid (fixture->provider);
      if (write (ends[1], &pid, sizeof pid) < 0)
        _exit (1);
      fixture_say (fixture, "hang", 30000, -1, NULL, NULL);
      _exit (0);
    }
    close (ends[1]);
    if (i == 0)
      assert_int_equal (read (ends[0], &pid, sizeof pid), sizeof pid);
    while (fixture_children (host) == 0)
      usleep (1000);
    usleep (200 * 1000);        /* its module is at it */
    assert_int_equal (kill (host, SIGKILL), 0);
    waitpid (host, &status, 0);
    /* Its worker is ours now, and ends by itself or by the kernel. */
    assert_true (fixture_reap_within (HARNESS_PATIENCE_MS, &status) > 0);
    assert_true (WIFEXITED (status)
                 || (WIFSIGNALED (status) && WTERMSIG (status) == SIGKILL));
    close (ends[0]);
    fixture_free (fixture);
  }
}

static void
only_what_is_shipped_runs_in_process (void **state)
{
  struct fixture *fixture = fixture_new (&(struct fixture_spec){
    .module = "hostile", .local = 1 });

  (void) state;
  if (fixture->entry->state != PROVIDER_ENABLED)
    fail_msg ("state %s", registry_state_name (fixture->entry->state));
  assert_int_equal (fixture_open (fixture, PROVIDER_IN_PROCESS, NULL),
                    E_DENIED);
  assert_int_equal (fixture_open (fixture, PROVIDER_WORKER, NULL), 0);
  fixture_assert_serves (fixture);
  fixture_free (fixture);
}

static void
only_what_is_shipped_gets_namespaces (void **state)
{
  struct fixture *fixture = fixture_new (&(struct fixture_spec){
    .module = "hostile", .yaml = "permissions: {namespaces: true}" });
  struct registry_entry *entry = (struct registry_entry *) fixture->entry;

  (void) state;
  /* The registry refuses it as well, so that this looks behind it. */
  entry->trust = TRUST_LOCAL;
  assert_int_equal (fixture_open (fixture, PROVIDER_WORKER, NULL), E_DENIED);
  fixture_free (fixture);
}

static void
a_killed_worker_makes_room_for_another_provider (void **state)
{
  struct fixture *one = fixture_start_plain (), *two = fixture_start_plain ();

  (void) state;
  assert_int_equal (fixture_say (one, "hang", 100, -1, NULL, NULL),
                    E_PROVIDER_TIMEOUT);
  fixture_assert_serves (two);
  fixture_free (one);
  fixture_free (two);
}

static void
probe_narrows_and_never_widens (void **state)
{
  struct fixture *fixture = fixture_start_plain ();
  json_t *facts = NULL;
  struct error *error = NULL;

  (void) state;
  assert_true (provider_claims (fixture->provider, "metrics"));
  assert_int_equal (provider_probe (fixture->provider, &facts, NULL), 0);
  assert_int_equal (json_array_size (facts), 1);
  json_decref (facts);
  assert_false (provider_claims (fixture->provider, "metrics"));
  assert_false (provider_claims (fixture->provider, "snapshot"));
  assert_true (provider_claims (fixture->provider, "exec"));
  assert_int_equal (INVOKE (fixture->provider, NULL, &error, metrics,
                            .sandbox = "x"), -1);
  assert_int_equal (error->number, E_CAPABILITY);
  error_free (error);
  fixture_free (fixture);
}

static void
no_descriptor_is_left (void **state)
{
  struct fixture *fixture;
  int i, before = 0, after = 0;

  (void) state;
  for (i = 0; i < 1024; i++)
    before += fcntl (i, F_GETFD) >= 0;
  fixture = fixture_start_plain ();
  fixture_say (fixture, "crash", 5000, -1, NULL, NULL);
  fixture_say (fixture, "fd_storm:17", 5000, -1, NULL, NULL);
  fixture_say (fixture, "hang", 100, -1, NULL, NULL);
  fixture_free (fixture);
  for (i = 0; i < 1024; i++)
    after += fcntl (i, F_GETFD) >= 0;
  assert_int_equal (before, after);
  assert_int_equal (fixture_children (getpid ()), 0);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (calls_are_served),
    cmocka_unit_test (a_crash_is_told_with_its_log),
    cmocka_unit_test (an_abort_is_told_with_what_it_printed),
    cmocka_unit_test (an_exit_is_told_with_its_code),
    cmocka_unit_test (a_hang_ends_at_the_deadline),
    cmocka_unit_test (a_deadline_that_the_module_keeps_costs_no_worker),
    cmocka_unit_test (a_cancel_reaches_the_call),
    cmocka_unit_test (a_sink_can_end_the_call),
    cmocka_unit_test (codes_become_public_errors),
    cmocka_unit_test (wrong_records_are_the_modules_fault),
    cmocka_unit_test (frames_that_break_the_rules_end_the_worker),
    cmocka_unit_test (a_worker_that_closes_everything_is_stopped),
    cmocka_unit_test (closed_output_costs_no_processor_time),
    cmocka_unit_test (floods_are_bounded),
    cmocka_unit_test (large_records_pass),
    cmocka_unit_test (large_arguments_pass),
    cmocka_unit_test (descriptors_pass_both_ways),
    cmocka_unit_test (an_emitted_descriptor_belongs_to_the_caller),
    cmocka_unit_test (a_worker_that_lies_is_ended),
    cmocka_unit_test (answers_that_nobody_waits_for_end_the_worker),
    cmocka_unit_test (odd_progress_is_harmless),
    cmocka_unit_test (a_worker_that_never_begins_is_told),
    cmocka_unit_test (without_a_worker_program_nothing_starts),
    cmocka_unit_test (many_threads_share_a_worker),
    cmocka_unit_test (serial_modules_get_one_call_at_a_time),
    cmocka_unit_test (waiting_holds_no_lock),
    cmocka_unit_test (all_calls_of_a_dead_worker_fail),
    cmocka_unit_test (a_worker_killed_while_idle_is_replaced),
    cmocka_unit_test (a_worker_that_dies_often_rests),
    cmocka_unit_test (a_constructor_that_dies_is_told),
    cmocka_unit_test (open_may_refuse),
    cmocka_unit_test (open_may_crash),
    cmocka_unit_test (nothing_outlives_a_killed_host),
    cmocka_unit_test (only_what_is_shipped_runs_in_process),
    cmocka_unit_test (only_what_is_shipped_gets_namespaces),
    cmocka_unit_test (a_killed_worker_makes_room_for_another_provider),
    cmocka_unit_test (probe_narrows_and_never_widens),
    cmocka_unit_test (no_descriptor_is_left),
  };

  log_set_level (LOG_LEVEL_ERROR);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
