/* SPDX-License-Identifier: Apache-2.0 */
/* Hostile modules in workers: the host survives each, says what happened with
 * the right number, and serves the next call; and many calls at once. */

#include "config.h"

#include "harness.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/eventfd.h>

#include <coffer/fd.h>

#include "base/log.h"
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
    cmocka_unit_test (many_threads_share_a_worker),
    cmocka_unit_test (serial_modules_get_one_call_at_a_time),
    cmocka_unit_test (waiting_holds_no_lock),
    cmocka_unit_test (all_calls_of_a_dead_worker_fail),
  };

  log_set_level (LOG_LEVEL_ERROR);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
