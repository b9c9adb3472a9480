/* SPDX-License-Identifier: Apache-2.0 */
/* What the next start makes of the sandboxes of a process that died at any
 * point, over a provider that can be made to break. */

#include "config.h"

#include "sandbox-host.h"
#include "sandbox/owner.h"

/* ---- the next start ------------------------------------------------------ */

/* Runs `work` in a child that has its own host and is then gone. */
static void
in_a_process (struct fixture *f, void (*work) (struct host *))
{
  int status;
  pid_t pid;

  host_close (f->host);
  f->host = NULL;
  pid = fork ();
  if (pid == 0) {
    struct host *host;

    if (host_open (&f->place, 0, &host, NULL) < 0)
      _exit (1);
    work (host);
    _exit (77);
  }
  assert_int_equal (waitpid (pid, &status, 0), pid);
  assert_int_equal (WEXITSTATUS (status), 77);
  memset (&fake, 0, sizeof fake);
  assert_int_equal (host_open (&f->place, 0, &f->host, NULL), 0);
}

static void
sweep_leaves_nothing (struct fixture *f)
{
  struct error *error = NULL;

  assert_int_equal (rows (f), 1);
  assert_ok (host_sweep (f->host, &error), error);
  assert_int_equal (rows (f), 0);
  assert_int_equal (fake.kills, 1);
  assert_int_equal (system ("true"), 0);
}

/* Killed at once; the row stays for a moment, in case that a worker which the
 * dead process left behind was not through. */
static void
prune_leaves_nothing (struct fixture *f)
{
  struct error *error = NULL;
  json_t *report, *list;

  assert_int_equal (rows (f), 1);
  assert_ok (host_sweep (f->host, &error), error);
  assert_int_equal (rows (f), 1);
  assert_int_equal (fake.kills, 1);
  assert_ok (sandbox_list (f->host, &list, &error), error);
  assert_int_equal (json_array_size (list), 0);
  json_decref (list);
  assert_ok (sandbox_prune (f->host, &report, &error), error);
  json_decref (report);
  assert_int_equal (rows (f), 0);
  assert_int_equal (fake.kills, 2);
}

static int
sandboxes (const struct fixture *f)
{
  char command[600];

  snprintf (command, sizeof command, "test -z \"$(ls '%s/fake' 2>&-)\"",
            f->place.runtime);
  return system (command) != 0;
}

static void
die_before_create (struct host *host)
{
  struct sandbox_record *record;

  fake.exit_before_create = 1;
  make (host, &record);
}

static void
die_after_create (struct host *host)
{
  struct sandbox_record *record;

  fake.exit_after_create = 1;
  make (host, &record);
}

static void
test_what_a_worker_makes_after_its_host_died_is_killed (void **state)
{
  struct fixture *f = *state;
  struct error *error = NULL;
  char text[64], path[600];
  json_t *report;

  in_a_process (f, die_before_create);
  assert_ok (host_sweep (f->host, &error), error);
  /* Only now, with the row's own id. */
  sql_text (f, "SELECT id FROM sandbox", text, sizeof text);
  snprintf (path, sizeof path, "%s/fake/%s", f->place.runtime, text);
  assert_int_equal (mkdir (path, 0700), 0);
  assert_ok (sandbox_prune (f->host, &report, &error), error);
  json_decref (report);
  assert_false (sandboxes (f));
  assert_int_equal (rows (f), 0);
}

static void
die_with_ephemeral (struct host *host)
{
  struct sandbox_request request = { .ephemeral = 1 };
  struct sandbox_record *record;

  if (sandbox_create (host, &request, NULL, &record, NULL, NULL) < 0)
    _exit (1);
}

static void
die_in_kill (struct host *host)
{
  struct sandbox_request request = { .ephemeral = 1 };
  struct sandbox_record *record;
  int gone;

  if (sandbox_create (host, &request, NULL, &record, NULL, NULL) < 0)
    _exit (1);
  fake.exit_in_kill = 1;
  sandbox_kill (host, NULL, record->id, NULL, &gone, NULL);
}

static void
test_a_creation_that_never_began_is_dropped (void **state)
{
  in_a_process (*state, die_before_create);
  prune_leaves_nothing (*state);
}

static void
test_a_creation_nobody_heard_of_is_killed (void **state)
{
  in_a_process (*state, die_after_create);
  assert_true (sandboxes (*state));
  prune_leaves_nothing (*state);
  assert_false (sandboxes (*state));
}

static void
test_an_ephemeral_one_ends_with_its_owner (void **state)
{
  in_a_process (*state, die_with_ephemeral);
  assert_true (sandboxes (*state));
  sweep_leaves_nothing (*state);
  assert_false (sandboxes (*state));
}

static void
test_a_kill_that_was_cut_short_is_finished (void **state)
{
  in_a_process (*state, die_in_kill);
  sweep_leaves_nothing (*state);
  assert_false (sandboxes (*state));
}

static void
make_durable (struct host *host)
{
  struct sandbox_record *record;

  make (host, &record);
}

static void
test_a_durable_one_is_left_alone (void **state)
{
  struct fixture *f = *state;
  struct error *error = NULL;
  json_t *list;

  in_a_process (f, make_durable);
  assert_ok (host_sweep (f->host, &error), error);
  assert_int_equal (fake.opens, 0);
  assert_int_equal (rows (f), 1);
  assert_ok (sandbox_list (f->host, &list, &error), error);
  assert_int_equal (json_array_size (list), 1);
  assert_string_equal (json_string_value (json_object_get (
                         json_array_get (list, 0), "state")), "running");
  json_decref (list);
}

static void
test_an_empty_sweep_opens_no_provider (void **state)
{
  struct fixture *f = *state;

  assert_int_equal (host_sweep (f->host, NULL), 0);
  assert_int_equal (fake.opens, 0);
}

static void
test_the_sandboxes_of_a_living_process_are_not_swept (void **state)
{
  struct sandbox_request request = { .ephemeral = 1 };
  auto_sandbox_record struct sandbox_record *record = NULL;
  struct fixture *f = *state;
  int status;
  pid_t pid;

  assert_int_equal (sandbox_create (f->host, &request, NULL, &record, NULL,
                                    NULL), 0);
  pid = fork ();
  if (pid == 0) {
    struct host *host;
    json_t *report, *list;

    if (host_open (&f->place, 0, &host, NULL) < 0
        || host_sweep (host, NULL) < 0
        || sandbox_prune (host, &report, NULL) < 0
        || sandbox_list (host, &list, NULL) < 0)
      _exit (1);
    _exit (json_array_size (list) == 1 ? 0 : 2);
  }
  assert_int_equal (waitpid (pid, &status, 0), pid);
  assert_int_equal (status, 0);
  assert_true (exists (f, record->id));
  assert_int_equal (rows (f), 1);
}

static void
as_if_creating (const struct fixture *f)
{
  char text[300];
  struct owner self;

  assert_int_equal (owner_self (&self, NULL), 0);
  snprintf (text, sizeof text, "UPDATE sandbox SET state = 0, deadline_ns = 1,"
            " owner_pid = %lld, owner_start = %lld, owner_where = '%s'",
            (long long) self.pid, (long long) self.start, self.where);
  sql (f, text);
}

static void
test_an_overdue_creation_that_is_there_is_adopted (void **state)
{
  auto_sandbox_record struct sandbox_record *record = NULL;
  struct fixture *f = *state;
  struct error *error = NULL;
  json_t *info;

  make (f->host, &record);
  fixture_restart (f);
  as_if_creating (f);
  assert_ok (host_sweep (f->host, &error), error);
  assert_int_equal (rows (f), 1);
  assert_true (exists (f, record->id));
  assert_ok (sandbox_info (f->host, record->id, NULL, &info, &error), error);
  json_decref (info);
  /* Settled: the next sweep needs no provider. */
  fixture_restart (f);
  fake.opens = 0;
  assert_int_equal (host_sweep (f->host, NULL), 0);
  assert_int_equal (fake.opens, 0);
}

static void
test_an_overdue_creation_that_is_not_there_is_dropped (void **state)
{
  auto_sandbox_record struct sandbox_record *record = NULL;
  struct fixture *f = *state;
  char path[600];

  make (f->host, &record);
  fixture_restart (f);
  as_if_creating (f);
  snprintf (path, sizeof path, "%s/fake/%s", f->place.runtime, record->id);
  assert_int_equal (rmdir (path), 0);
  assert_int_equal (host_sweep (f->host, NULL), 0);
  assert_int_equal (rows (f), 0);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    TEST (test_a_creation_that_never_began_is_dropped),
    TEST (test_a_creation_nobody_heard_of_is_killed),
    TEST (test_what_a_worker_makes_after_its_host_died_is_killed),
    TEST (test_an_ephemeral_one_ends_with_its_owner),
    TEST (test_a_kill_that_was_cut_short_is_finished),
    TEST (test_a_durable_one_is_left_alone),
    TEST (test_an_empty_sweep_opens_no_provider),
    TEST (test_the_sandboxes_of_a_living_process_are_not_swept),
    TEST (test_an_overdue_creation_that_is_there_is_adopted),
    TEST (test_an_overdue_creation_that_is_not_there_is_dropped),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
