/* SPDX-License-Identifier: Apache-2.0 */
/* Workers that are none, that die often, and that never begin: what is said of
 * each, and that nothing is left. */

#include "config.h"

#include "harness.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/log.h"
#include "base/text.h"
#include "provider-fixture.h"

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
    cmocka_unit_test (a_worker_that_lies_is_ended),
    cmocka_unit_test (answers_that_nobody_waits_for_end_the_worker),
    cmocka_unit_test (odd_progress_is_harmless),
    cmocka_unit_test (a_worker_that_never_begins_is_told),
    cmocka_unit_test (without_a_worker_program_nothing_starts),
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
