/* SPDX-License-Identifier: Apache-2.0 */
/* The life of sandboxes over a provider that can be made to break: how they are
 * listed and ended, and what is left to them without records. */

#include "config.h"

#include "sandbox-host.h"
#include "sandbox/owner.h"

/* ---- list, info, prune, kill --------------------------------------------- */

static void
test_a_list_that_lags_does_not_lose_a_sandbox (void **state)
{
  auto_sandbox_record struct sandbox_record *record = NULL;
  struct fixture *f = *state;
  json_t *list;

  make (f->host, &record);
  fake.list_is_empty = 1;
  assert_int_equal (sandbox_list (f->host, &list, NULL), 0);
  assert_int_equal (json_array_size (list), 1);
  json_decref (list);
  assert_int_equal (rows (f), 1);
}

static void
test_what_is_gone_leaves_the_list_and_the_records (void **state)
{
  auto_sandbox_record struct sandbox_record *record = NULL;
  auto_error struct error *error = NULL;
  struct fixture *f = *state;
  json_t *list = NULL;
  char path[600];

  make (f->host, &record);
  snprintf (path, sizeof path, "%s/fake/%s", f->place.runtime, record->id);
  assert_int_equal (rmdir (path), 0);
  assert_int_equal (sandbox_list (f->host, &list, NULL), 0);
  assert_int_equal (json_array_size (list), 0);
  json_decref (list);
  assert_int_equal (rows (f), 0);
  assert_fails (sandbox_info (f->host, record->id, NULL, &list, &error),
                error, E_UNKNOWN_SANDBOX);
}

static void
test_a_provider_that_cannot_be_asked_loses_nothing (void **state)
{
  auto_sandbox_record struct sandbox_record *record = NULL;
  struct fixture *f = *state;
  json_t *list, *report;

  make (f->host, &record);
  fixture_restart (f);
  fake.open_fails = 1;
  log_set_level ((enum log_level) -1);
  assert_int_equal (sandbox_list (f->host, &list, NULL), 0);
  assert_int_equal (json_array_size (list), 1);
  assert_string_equal (json_string_value (json_object_get (
                         json_array_get (list, 0), "state")), "lost");
  json_decref (list);
  assert_int_equal (sandbox_prune (f->host, &report, NULL), 0);
  json_decref (report);
  assert_int_equal (rows (f), 1);
}

static void
test_prune_ends_what_has_expired (void **state)
{
  auto_sandbox_record struct sandbox_record *record = NULL, *other = NULL;
  struct fixture *f = *state;
  char text[200];
  json_t *report;

  make (f->host, &record);
  make (f->host, &other);
  fixture_restart (f);
  snprintf (text, sizeof text,
            "UPDATE sandbox SET expires_ns = 1 WHERE id = '%s'", record->id);
  sql (f, text);
  assert_int_equal (sandbox_prune (f->host, &report, NULL), 0);
  assert_int_equal (json_array_size (json_object_get (report, "killed")), 1);
  json_decref (report);
  assert_false (exists (f, record->id));
  assert_true (exists (f, other->id));
  assert_int_equal (rows (f), 1);
}

static void
test_info_is_the_providers_word_and_the_record (void **state)
{
  auto_sandbox_record struct sandbox_record *record = NULL;
  struct fixture *f = *state;
  struct error *error = NULL;
  json_t *info;

  make (f->host, &record);
  assert_ok (sandbox_info (f->host, record->id, NULL, &info, &error), error);
  assert_string_equal (json_string_value (json_object_get (info, "id")),
                       record->id);
  assert_string_equal (json_string_value (json_object_get (info,
                                                           "provider")),
                       "fake");
  assert_non_null (json_object_get (info, "native_id"));
  /* Not reported, so not shown. */
  assert_null (json_object_get (info, "expires_ns"));
  assert_null (json_object_get (info, "template"));
  json_decref (info);
}

static void
test_kill_with_a_provider_asks_no_records (void **state)
{
  auto_sandbox_record struct sandbox_record *record = NULL;
  struct fixture *f = *state;
  struct error *error = NULL;
  int gone = -1;

  make (f->host, &record);
  fixture_restart (f);
  fake.kills = fake.infos = fake.lists = 0;
  assert_ok (sandbox_kill (f->host, "fake", record->id, NULL, &gone, &error),
             error);
  assert_int_equal (gone, 0);
  assert_int_equal (fake.kills, 1);
  assert_int_equal (fake.infos + fake.lists, 0);
  assert_false (exists (f, record->id));
  assert_int_equal (rows (f), 0);
}

static void
test_killing_what_nobody_knows_is_success (void **state)
{
  auto_sandbox_record struct sandbox_record *record = NULL;
  struct fixture *f = *state;
  char id[SANDBOX_ID_SIZE];
  int gone = 0;

  make (f->host, &record);
  assert_int_equal (sandbox_id_new (id, NULL), 0);
  assert_int_equal (sandbox_kill (f->host, NULL, id, NULL, &gone, NULL), 0);
  assert_int_equal (gone, 1);
  gone = 0;
  assert_int_equal (sandbox_kill (f->host, "fake", id, NULL, &gone, NULL), 0);
  assert_int_equal (gone, 1);
  gone = 0;
  fake.kills = 0;
  assert_int_equal (sandbox_kill (f->host, NULL, "../../etc", NULL, &gone,
                                  NULL), 0);
  assert_int_equal (gone, 1);
  assert_int_equal (fake.kills, 0);
  assert_true (exists (f, record->id));
  assert_int_equal (sandbox_kill (f->host, NULL, record->id, NULL, &gone,
                                  NULL), 0);
  assert_int_equal (gone, 0);
}

static void
test_a_sandbox_without_a_record_is_found_by_kill (void **state)
{
  auto_sandbox_record struct sandbox_record *record = NULL;
  struct fixture *f = *state;
  int gone = 1;

  make (f->host, &record);
  fixture_restart (f);
  sql (f, "DELETE FROM sandbox");
  assert_int_equal (sandbox_kill (f->host, NULL, record->id, NULL, &gone,
                                  NULL), 0);
  assert_int_equal (gone, 0);
  assert_false (exists (f, record->id));
}

static void
test_a_kill_that_fails_keeps_the_row (void **state)
{
  auto_sandbox_record struct sandbox_record *record = NULL;
  auto_error struct error *error = NULL;
  struct fixture *f = *state;
  int gone;

  make (f->host, &record);
  fake.kill_fails = 1;
  assert_fails (sandbox_kill (f->host, NULL, record->id, NULL, &gone, &error),
                error, E_PROVIDER_FAILED);
  assert_int_equal (rows (f), 1);
}

static void
test_extend_has_bounds (void **state)
{
  auto_sandbox_record struct sandbox_record *record = NULL;
  auto_error struct error *low = NULL, *high = NULL, *error = NULL;
  struct fixture *f = *state;
  json_t *info;

  make (f->host, &record);
  assert_fails (sandbox_extend (f->host, record->id, 1, NULL, &info, &low),
                low, E_SANDBOX_SPEC);
  assert_fails (sandbox_extend (f->host, record->id, UINT64_MAX, NULL, &info,
                                &high), high, E_SANDBOX_SPEC);
  assert_ok (sandbox_extend (f->host, record->id, 60000, NULL, &info, &error),
             error);
  json_decref (info);
}

/* ---- without records ----------------------------------------------------- */

static void
break_records (struct fixture *f)
{
  char command[600];

  host_close (f->host);
  f->host = NULL;
  snprintf (command, sizeof command, "rm -f '%s'/state.db*; mkdir '%s/state.db'",
            f->place.state, f->place.state);
  assert_int_equal (system (command), 0);
}

static void
test_without_records_only_the_ephemeral_live (void **state)
{
  struct sandbox_request request = { .ephemeral = 1 };
  auto_sandbox_record struct sandbox_record *record = NULL;
  auto_error struct error *error = NULL, *refused = NULL;
  struct fixture *f = *state;
  struct sandbox_record *none;
  int gone;

  break_records (f);
  log_set_level ((enum log_level) -1);
  assert_int_equal (host_open (&f->place, 0, &f->host, &error), -1);
  assert_int_equal (error->number, E_RECORDS);
  assert_int_equal (host_open (&f->place, HOST_EPHEMERAL, &f->host, NULL), 0);
  assert_int_equal (host_sweep (f->host, NULL), 0);
  assert_int_equal (sandbox_create (f->host, &request, NULL, &record, NULL,
                                    NULL), 0);
  assert_int_equal (sandbox_kill (f->host, NULL, record->id, NULL, &gone,
                                  NULL), 0);
  assert_int_equal (gone, 0);
  assert_false (exists (f, record->id));
  request.ephemeral = 0;
  assert_fails (sandbox_create (f->host, &request, NULL, &none, NULL,
                                &refused), refused, E_RECORDS);
}

/* The file that cannot be made is missed, and said, by who needs none. */
static void
test_what_cannot_be_noted_lives_on_its_lifeline (void **state)
{
  struct sandbox_request request = { .ephemeral = 1 };
  auto_sandbox_record struct sandbox_record *record = NULL;
  auto_error struct error *error = NULL;
  struct fixture *f = *state;
  struct sandbox_record *none;
  char path[600];

  assert_int_equal (mkdir (f->place.runtime, 0700), 0);
  snprintf (path, sizeof path, "%s/runs", f->place.runtime);
  assert_int_equal (symlink ("/", path), 0);
  assert_fails (sandbox_create (f->host, &request, NULL, &none, NULL, &error),
                error, E_UNSAFE_FILE);
  host_close (f->host);
  log_set_level ((enum log_level) -1);
  assert_int_equal (host_open (&f->place, HOST_EPHEMERAL, &f->host, NULL), 0);
  assert_int_equal (sandbox_create (f->host, &request, NULL, &record, NULL,
                                    NULL), 0);
  assert_true (exists (f, record->id));
}

/* The provider has it no more. */
static void
forget (const struct fixture *f, const char *id)
{
  char path[600];

  snprintf (path, sizeof path, "%s/fake/%s", f->place.runtime, id);
  assert_int_equal (rmdir (path), 0);
}

/* Makes one, says so, and waits to be ended. */
static pid_t
owner_start (struct fixture *f, int fd)
{
  struct sandbox_request request = { .ephemeral = 1 };
  struct sandbox_record *record;
  struct host *host;
  pid_t pid = fork ();

  if (pid != 0)
    return pid;
  signal (SIGTERM, SIG_DFL);
  if (host_open (&f->place, HOST_EPHEMERAL, &host, NULL) < 0
      || sandbox_create (host, &request, NULL, &record, NULL, NULL) < 0
      || write (fd, record->id, sizeof record->id) < 0)
    _exit (1);
  for (;;)
    pause ();
}

static void
test_what_only_its_owner_reaches_ends_with_its_owner (void **state)
{
  auto_error struct error *error = NULL;
  struct fixture *f = *state;
  char id[SANDBOX_ID_SIZE];
  int ends[2], gone, status;
  json_t *list, *info;
  pid_t owner;

  assert_int_equal (pipe (ends), 0);
  owner = owner_start (f, ends[1]);
  assert_int_equal (read (ends[0], id, sizeof id), (ssize_t) sizeof id);
  assert_int_equal (sandbox_list (f->host, &list, NULL), 0);
  assert_int_equal (json_array_size (list), 1);
  json_decref (list);
  assert_ok (sandbox_info (f->host, id, NULL, &info, &error), error);
  assert_string_equal (json_string_value (json_object_get (info, "state")),
                       "running");
  json_decref (info);
  /* To the provider it is as if it never was: the owner is who holds it. */
  forget (f, id);
  assert_ok (sandbox_info (f->host, id, NULL, &info, &error), error);
  json_decref (info);
  assert_ok (sandbox_kill (f->host, NULL, id, NULL, &gone, &error), error);
  assert_int_equal (gone, 0);
  assert_int_equal (waitpid (owner, &status, 0), owner);
  assert_true (WIFSIGNALED (status) && WTERMSIG (status) == SIGTERM);
  assert_int_equal (sandbox_kill (f->host, NULL, id, NULL, &gone, NULL), 0);
  assert_int_equal (gone, 1);
  assert_int_equal (host_sweep (f->host, NULL), 0);
  assert_int_equal (rows (f), 0);
  close (ends[0]);
  close (ends[1]);
}

/* A file that nobody holds names a process that has nothing to do with it. */
static void
test_a_pid_in_a_file_that_nobody_holds_is_not_signalled (void **state)
{
  struct fixture *f = *state;
  char path[600], id[SANDBOX_ID_SIZE];
  int gone;
  FILE *file;

  assert_int_equal (sandbox_id_new (id, NULL), 0);
  assert_int_equal (mkdir (f->place.runtime, 0700), 0);
  snprintf (path, sizeof path, "%s/runs", f->place.runtime);
  assert_int_equal (mkdir (path, 0700), 0);
  snprintf (path, sizeof path, "%s/runs/%s", f->place.runtime, id);
  file = fopen (path, "w");
  assert_non_null (file);
  fprintf (file, "{\"state\":1,\"id\":\"%s\",\"provider\":\"fake\","
           "\"tenant\":\"default\",\"spec\":\"{}\",\"owner\":%d,"
           "\"pid_namespace\":0,\"created_ns\":1,\"deadline_ns\":1}",
           id, (int) getppid ());
  fclose (file);
  assert_int_equal (sandbox_kill (f->host, NULL, id, NULL, &gone, NULL), 0);
  assert_int_equal (gone, 1);
  assert_int_equal (host_sweep (f->host, NULL), 0);
  assert_int_equal (noted (f), 0);
}

static void
test_files_in_runs_that_are_no_records_are_harmless (void **state)
{
  static const char *const texts[]
    = { "", "{", "[]", "{\"state\":9}", "{\"state\":1,\"id\":\"x\"}" };
  struct fixture *f = *state;
  char path[600], id[SANDBOX_ID_SIZE];
  json_t *list;
  FILE *file;
  size_t i;

  assert_int_equal (mkdir (f->place.runtime, 0700), 0);
  snprintf (path, sizeof path, "%s/runs", f->place.runtime);
  assert_int_equal (mkdir (path, 0700), 0);
  for (i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    assert_int_equal (sandbox_id_new (id, NULL), 0);
    snprintf (path, sizeof path, "%s/runs/%s", f->place.runtime, id);
    file = fopen (path, "w");
    assert_non_null (file);
    fputs (texts[i], file);
    fclose (file);
  }
  assert_int_equal (sandbox_list (f->host, &list, NULL), 0);
  assert_int_equal (json_array_size (list), 0);
  json_decref (list);
  assert_int_equal (noted (f), 0);
}

static void
test_closing_a_host_ends_what_is_ephemeral (void **state)
{
  struct sandbox_request request = { .ephemeral = 1 };
  auto_sandbox_record struct sandbox_record *record = NULL, *durable = NULL;
  struct fixture *f = *state;

  assert_int_equal (sandbox_create (f->host, &request, NULL, &record, NULL,
                                    NULL), 0);
  make (f->host, &durable);
  fixture_restart (f);
  assert_false (exists (f, record->id));
  assert_true (exists (f, durable->id));
  assert_int_equal (rows (f), 1);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    TEST (test_a_list_that_lags_does_not_lose_a_sandbox),
    TEST (test_what_is_gone_leaves_the_list_and_the_records),
    TEST (test_a_provider_that_cannot_be_asked_loses_nothing),
    TEST (test_prune_ends_what_has_expired),
    TEST (test_info_is_the_providers_word_and_the_record),
    TEST (test_kill_with_a_provider_asks_no_records),
    TEST (test_killing_what_nobody_knows_is_success),
    TEST (test_a_sandbox_without_a_record_is_found_by_kill),
    TEST (test_a_kill_that_fails_keeps_the_row),
    TEST (test_extend_has_bounds),
    TEST (test_without_records_only_the_ephemeral_live),
    TEST (test_what_cannot_be_noted_lives_on_its_lifeline),
    TEST (test_what_only_its_owner_reaches_ends_with_its_owner),
    TEST (test_a_pid_in_a_file_that_nobody_holds_is_not_signalled),
    TEST (test_files_in_runs_that_are_no_records_are_harmless),
    TEST (test_closing_a_host_ends_what_is_ephemeral),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
