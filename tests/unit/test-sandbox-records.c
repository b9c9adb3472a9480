/* SPDX-License-Identifier: Apache-2.0 */
/* state.db: rows survive what kills a process, several processes share it,
 * and what cannot be trusted is refused by name. */

#include "config.h"

#include "harness.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include <coffer/fd.h>

#include "sandbox/owner.h"
#include "sandbox/records.h"

static struct place place;

static int
set_up (void **state)
{
  if (harness_folder_new (state) < 0)
    return -1;
  return asprintf (&place.state, "%s/state", (char *) *state) < 0 ? -1 : 0;
}

static int
tear_down (void **state)
{
  free (place.state);
  return harness_folder_free (state);
}

static void
open_records (struct records **out)
{
  struct error *error = NULL;

  if (records_open (&place, out, &error) < 0)
    fail_msg ("%s", error_message (error));
}

static void
fill (struct sandbox_record *record)
{
  memset (record, 0, sizeof *record);
  assert_int_equal (sandbox_id_new (record->id, NULL), 0);
  record->provider = (char *) "linux";
  record->tenant = (char *) "default";
  record->spec = (char *) "{\"workdir\":\"/tmp/你好 世界/'q\\\".txt\"}";
}

static void
insert (struct records *records, struct sandbox_record *record)
{
  struct error *error = NULL;

  fill (record);
  if (records_insert (records, record, RECORDS_NORMAL, &error) < 0)
    fail_msg ("%s", error_message (error));
}

static size_t
count (struct records *records, enum records_filter filter)
{
  auto_record_list struct record_list list = { 0, NULL };
  struct error *error = NULL;

  if (records_list (records, filter, &list, &error) < 0)
    fail_msg ("%s", error_message (error));
  return list.count;
}

static void
test_a_row_comes_back_as_it_was (void **state)
{
  auto_records struct records *records = NULL;
  auto_sandbox_record struct sandbox_record *found = NULL, *none = NULL;
  struct sandbox_record record;

  (void) state;
  open_records (&records);
  insert (records, &record);
  record.native_id = (char *) "native";
  record.state = SANDBOX_RUNNING;
  record.created_ns = 1;
  record.expires_ns = INT64_MAX;
  record.owner_pid = 4194304;
  record.owner_start = 123456789012;
  record.owner_where = (char *) "boot/1";
  assert_int_equal (records_update (records, &record, NULL), 0);
  records_close (steal (records));

  open_records (&records);
  assert_int_equal (records_find (records, record.id, &found, NULL), 0);
  assert_non_null (found);
  assert_string_equal (found->provider, "linux");
  assert_string_equal (found->native_id, "native");
  assert_string_equal (found->spec, record.spec);
  assert_int_equal (found->state, SANDBOX_RUNNING);
  assert_true (found->expires_ns == INT64_MAX);
  assert_int_equal (found->owner_start, 123456789012);
  assert_string_equal (found->owner_where, "boot/1");
  assert_int_equal (found->generation, 1);
  assert_int_equal (records_delete (records, record.id, NULL), 0);
  assert_int_equal (records_delete (records, record.id, NULL), 0);
  assert_int_equal (records_find (records, record.id, &none, NULL), 0);
  assert_null (none);
}

static void
test_only_what_is_not_settled_is_swept (void **state)
{
  auto_records struct records *records = NULL;
  struct sandbox_record running, creating, owned;

  (void) state;
  open_records (&records);
  insert (records, &running);
  running.state = SANDBOX_RUNNING;
  assert_int_equal (records_update (records, &running, NULL), 0);
  insert (records, &creating);
  insert (records, &owned);
  owned.state = SANDBOX_RUNNING;
  owned.owner_pid = 1;
  assert_int_equal (records_update (records, &owned, NULL), 0);
  assert_int_equal (count (records, RECORDS_ALL), 3);
  assert_int_equal (count (records, RECORDS_UNSETTLED), 2);
}

static void
test_an_update_of_nothing_fails (void **state)
{
  auto_records struct records *records = NULL;
  auto_error struct error *error = NULL;
  struct sandbox_record record;

  (void) state;
  open_records (&records);
  fill (&record);
  assert_int_equal (records_update (records, &record, &error), -1);
  assert_int_equal (error->number, E_UNKNOWN_SANDBOX);
}

static void
test_the_same_id_twice_is_refused_and_harms_nothing (void **state)
{
  auto_records struct records *records = NULL;
  auto_error struct error *error = NULL;
  struct sandbox_record record, other;

  (void) state;
  open_records (&records);
  insert (records, &record);
  assert_int_equal (records_insert (records, &record, RECORDS_FULL, &error),
                    -1);
  assert_int_equal (error->number, E_RECORDS);
  insert (records, &other);
  assert_int_equal (count (records, RECORDS_ALL), 2);
}

/* Each child ends without any clean-up between two rows. */
static void
test_rows_outlive_processes_that_die_between_them (void **state)
{
  auto_records struct records *records = NULL;
  int i, status;

  (void) state;
  for (i = 0; i < 20; i++) {
    pid_t pid = fork ();

    if (pid == 0) {
      struct records *child = NULL;
      struct sandbox_record record;

      if (records_open (&place, &child, NULL) < 0)
        _exit (1);
      fill (&record);
      if (records_insert (child, &record, i & 1, NULL) < 0)
        _exit (2);
      fill (&record);
      if (records_insert (child, &record, i & 1, NULL) < 0
          || records_delete (child, record.id, NULL) < 0)
        _exit (3);
      _exit (77);
    }
    assert_int_equal (waitpid (pid, &status, 0), pid);
    assert_int_equal (WEXITSTATUS (status), 77);
  }
  open_records (&records);
  assert_int_equal (count (records, RECORDS_ALL), 20);
}

/* A transaction that was open when the process died never was. */
static void
test_half_a_transaction_is_none (void **state)
{
  auto_records struct records *records = NULL;
  struct sandbox_record record;
  int status;
  pid_t pid;

  (void) state;
  open_records (&records);
  insert (records, &record);
  records_close (steal (records));
  pid = fork ();
  if (pid == 0) {
    char path[512];
    sqlite3 *db;

    snprintf (path, sizeof path, "%s/state.db", place.state);
    if (sqlite3_open (path, &db) != SQLITE_OK
        || sqlite3_exec (db, "BEGIN IMMEDIATE; DELETE FROM sandbox", NULL,
                         NULL, NULL) != SQLITE_OK)
      _exit (1);
    _exit (77);
  }
  assert_int_equal (waitpid (pid, &status, 0), pid);
  assert_int_equal (WEXITSTATUS (status), 77);
  open_records (&records);
  assert_int_equal (count (records, RECORDS_ALL), 1);
  insert (records, &record);
}

/* Also the very first start, when the file is made. */
static void
test_many_processes_at_once_lose_nothing (void **state)
{
  enum { PROCESSES = 12, ROUNDS = 15 };
  auto_records struct records *records = NULL;
  pid_t pids[PROCESSES];
  int i, j, status;

  (void) state;
  for (i = 0; i < PROCESSES; i++) {
    pids[i] = fork ();
    if (pids[i] != 0)
      continue;
    for (j = 0; j < ROUNDS; j++) {
      struct records *child = NULL;
      struct error *error = NULL;
      struct sandbox_record keep, drop;

      fill (&keep);
      fill (&drop);
      if (records_open (&place, &child, &error) < 0
          || records_insert (child, &keep, RECORDS_NORMAL, &error) < 0
          || records_insert (child, &drop, RECORDS_NORMAL, &error) < 0
          || records_delete (child, drop.id, &error) < 0) {
        fprintf (stderr, "# %s\n", error_message (error));
        _exit (1);
      }
      records_close (child);
    }
    _exit (0);
  }
  for (i = 0; i < PROCESSES; i++) {
    assert_int_equal (waitpid (pids[i], &status, 0), pids[i]);
    assert_int_equal (status, 0);
  }
  open_records (&records);
  assert_int_equal (count (records, RECORDS_ALL), PROCESSES * ROUNDS);
}

static void
test_a_handle_is_refused_in_a_child (void **state)
{
  auto_records struct records *records = NULL;
  struct sandbox_record record;
  int status;
  pid_t pid;

  (void) state;
  open_records (&records);
  insert (records, &record);
  pid = fork ();
  if (pid == 0) {
    struct error *error = NULL;
    int refused = records_delete (records, record.id, &error) < 0
                  && error->number == E_INTERNAL;

    records_close (records);    /* must not take the parent's locks away */
    _exit (refused ? 0 : 1);
  }
  assert_int_equal (waitpid (pid, &status, 0), pid);
  assert_int_equal (status, 0);
  insert (records, &record);
  assert_int_equal (count (records, RECORDS_ALL), 2);
}

static void
run_sql (const char *sql)
{
  char path[512];
  sqlite3 *db;

  snprintf (path, sizeof path, "%s/state.db", place.state);
  assert_int_equal (sqlite3_open (path, &db), SQLITE_OK);
  assert_int_equal (sqlite3_exec (db, sql, NULL, NULL, NULL), SQLITE_OK);
  sqlite3_close (db);
}

static void
expect_refusal (const char *part)
{
  auto_error struct error *error = NULL;
  struct records *records = NULL;

  assert_int_equal (records_open (&place, &records, &error), -1);
  assert_int_equal (error->number, E_RECORDS);
  if (!strstr (error_message (error), part))
    fail_msg ("no \"%s\" in: %s", part, error_message (error));
}

static void
test_a_newer_schema_is_refused_and_left_alone (void **state)
{
  struct records *records;
  struct stat before, after;
  char path[512];

  (void) state;
  open_records (&records);
  records_close (records);
  run_sql ("PRAGMA user_version = 99; PRAGMA wal_checkpoint(TRUNCATE)");
  snprintf (path, sizeof path, "%s/state.db", place.state);
  assert_int_equal (stat (path, &before), 0);
  expect_refusal ("newer coffer (schema 99");
  assert_int_equal (stat (path, &after), 0);
  assert_memory_equal (&before.st_mtim, &after.st_mtim,
                       sizeof before.st_mtim);
}

static void
test_another_database_is_refused (void **state)
{
  (void) state;
  assert_int_equal (mkdir (place.state, 0700), 0);
  run_sql ("CREATE TABLE theirs (a)");
  expect_refusal ("holds something else");
}

static void
test_a_damaged_file_is_refused (void **state)
{
  char path[512];
  int fd;

  (void) state;
  assert_int_equal (mkdir (place.state, 0700), 0);
  snprintf (path, sizeof path, "%s/state.db", place.state);
  fd = open (path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  assert_int_equal (coffer_write_all (fd, "this is no database, is it? ", 28),
                    28);
  close (fd);
  expect_refusal ("state.db");
}

static void
test_a_damaged_row_is_refused (void **state)
{
  auto_records struct records *records = NULL;
  auto_error struct error *error = NULL;
  struct sandbox_record record;
  struct record_list list;

  (void) state;
  open_records (&records);
  insert (records, &record);
  run_sql ("UPDATE sandbox SET provider = '../../evil'");
  assert_int_equal (records_list (records, RECORDS_ALL, &list, &error), -1);
  assert_int_equal (error->number, E_RECORDS);
  assert_non_null (strstr (error_message (error), "damaged"));
}

static void
test_a_link_in_its_place_is_refused (void **state)
{
  char path[512];

  assert_int_equal (mkdir (place.state, 0700), 0);
  snprintf (path, sizeof path, "%s/state.db", place.state);
  assert_int_equal (symlink (harness_path (*state, "elsewhere"), path), 0);
  expect_refusal ("not a regular file");
  assert_int_equal (access (harness_path (*state, "elsewhere"), F_OK), -1);
}

static void
test_the_files_are_private (void **state)
{
  static const char *const names[] = { "state.db", "state.db-wal",
                                       "state.db-shm" };
  auto_records struct records *records = NULL;
  struct sandbox_record record;
  mode_t old = umask (0);
  size_t i;

  (void) state;
  open_records (&records);
  insert (records, &record);
  umask (old);
  for (i = 0; i < 3; i++) {
    struct stat st;

    assert_int_equal (stat (harness_path (place.state, names[i]), &st), 0);
    assert_int_equal (st.st_mode & 0777, 0600);
  }
}

static void
test_older_schemas_are_migrated_in_one_transaction (void **state)
{
  static const char *const good[] = {
    "CREATE TABLE a (x)", "ALTER TABLE a ADD COLUMN y", "UPDATE a SET y = 2"
  };
  static const char *const broken[] = {
    "CREATE TABLE a (x)", "ALTER TABLE a ADD COLUMN z", "SELECT no_such ()"
  };
  auto_error struct error *error = NULL;
  sqlite3 *db;

  (void) state;
  assert_int_equal (sqlite3_open (":memory:", &db), SQLITE_OK);
  assert_int_equal (records_migrate (db, "db", good, 1, NULL), 0);
  assert_int_equal (sqlite3_exec (db, "INSERT INTO a VALUES (1)", NULL, NULL,
                                  NULL), SQLITE_OK);
  /* The second step of the broken list must not stay. */
  assert_int_equal (records_migrate (db, "db", broken, 3, &error), -1);
  assert_int_equal (error->number, E_RECORDS);
  assert_int_not_equal (sqlite3_exec (db, "SELECT z FROM a", NULL, NULL,
                                      NULL), SQLITE_OK);
  assert_int_equal (records_migrate (db, "db", good, 3, NULL), 0);
  assert_int_equal (sqlite3_exec (db, "CREATE TABLE ok AS SELECT 1/(y=2) FROM"
                                  " a", NULL, NULL, NULL), SQLITE_OK);
  assert_int_equal (records_migrate (db, "db", good, 3, NULL), 0);
  assert_int_equal (records_migrate (db, "db", good, 2, NULL), -1);
  sqlite3_close (db);
}

static void
test_a_folder_without_write_permission_is_refused (void **state)
{
  (void) state;
  if (geteuid () == 0)
    skip_missing ("an ordinary user (root writes anywhere)");
  assert_int_equal (mkdir (place.state, 0500), 0);
  expect_refusal ("state");
}

/* As root: on a file system that is mounted read-only, and on a full one. */
static void
test_read_only_and_full_disks_are_errors_not_losses (void **state)
{
  struct records *records = NULL;
  auto_error struct error *error = NULL;
  struct sandbox_record record;
  int i, failed = 0;

  (void) state;
  assert_int_equal (mkdir (place.state, 0700), 0);
  /* A namespace of its own: the mount ends with this process at the latest. */
  if (unshare (CLONE_NEWNS) < 0
      || mount (NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0
      || mount ("tmpfs", place.state, "tmpfs", 0, "size=256k,mode=0700") < 0)
    skip_missing ("the right to mount a tmpfs");
  open_records (&records);
  for (i = 0; i < 2000 && !failed; i++) {
    char spec[2048];

    fill (&record);
    memset (spec, 'x', sizeof spec - 1);
    spec[sizeof spec - 1] = '\0';
    record.spec = spec;
    failed = records_insert (records, &record, RECORDS_NORMAL, &error) < 0;
  }
  assert_true (failed);
  assert_int_equal (error->number, E_RECORDS);
  /* All that was confirmed is there. */
  assert_int_equal (count (records, RECORDS_ALL), i - 1);
  records_close (records);
  records = NULL;
  assert_int_equal (mount (NULL, place.state, NULL,
                           MS_REMOUNT | MS_RDONLY, NULL), 0);
  {
    auto_error struct error *refused = NULL;

    /* It may open, but then it must not claim to have written. */
    if (records_open (&place, &records, &refused) == 0) {
      fill (&record);
      assert_int_equal (records_insert (records, &record, RECORDS_NORMAL,
                                        &refused), -1);
      records_close (records);
    }
    assert_non_null (refused);
    assert_int_equal (refused->number, E_RECORDS);
  }
  assert_int_equal (umount (place.state), 0);
}

static void
test_owners_are_told_from_reused_pids_and_earlier_boots (void **state)
{
  struct owner self;
  char other[OWNER_WHERE_SIZE];
  int status;
  pid_t pid;

  (void) state;
  assert_int_equal (owner_self (&self, NULL), 0);
  assert_int_equal (owner_check (&self, self.pid, self.start, self.where),
                    OWNER_ALIVE);
  assert_int_equal (owner_check (&self, self.pid, self.start + 1, self.where),
                    OWNER_DEAD);
  assert_int_equal (owner_check (&self, self.pid, self.start, "other-boot/1"),
                    OWNER_DEAD);
  assert_int_equal (owner_check (&self, self.pid, self.start, NULL),
                    OWNER_DEAD);
  snprintf (other, sizeof other, "%.*s/1",
            (int) strcspn (self.where, "/"), self.where);
  assert_int_equal (owner_check (&self, self.pid, self.start, other),
                    OWNER_UNKNOWN);
  pid = fork ();
  if (pid == 0) {
    struct owner child;

    _exit (owner_self (&child, NULL) == 0
           && owner_check (&child, getppid (), self.start, self.where)
                == OWNER_ALIVE ? 0 : 1);
  }
  assert_int_equal (waitpid (pid, &status, 0), pid);
  assert_int_equal (status, 0);
  assert_int_equal (owner_check (&self, pid, self.start, self.where),
                    OWNER_DEAD);
}

static void
test_the_usual_start_is_cheap (void **state)
{
  int64_t best = INT64_MAX;
  int i;

  (void) state;
  for (i = 0; i < 30; i++) {
    struct records *records;
    struct sandbox_record record;
    int64_t start = coffer_now_ns (), took;

    open_records (&records);
    insert (records, &record);
    assert_int_equal (records_delete (records, record.id, NULL), 0);
    records_close (records);
    took = coffer_now_ns () - start;
    if (took < best)
      best = took;
  }
  print_message ("# open, insert, delete, close: %lld us at best\n",
                 (long long) best / 1000);
#ifndef COFFER_SANITIZERS
  assert_true (best < 2000000);
#endif
}

#define TEST(name) cmocka_unit_test_setup_teardown (name, set_up, tear_down)

int
main (void)
{
  const struct CMUnitTest tests[] = {
    TEST (test_a_row_comes_back_as_it_was),
    TEST (test_only_what_is_not_settled_is_swept),
    TEST (test_an_update_of_nothing_fails),
    TEST (test_the_same_id_twice_is_refused_and_harms_nothing),
    TEST (test_rows_outlive_processes_that_die_between_them),
    TEST (test_half_a_transaction_is_none),
    TEST (test_many_processes_at_once_lose_nothing),
    TEST (test_a_handle_is_refused_in_a_child),
    TEST (test_a_newer_schema_is_refused_and_left_alone),
    TEST (test_another_database_is_refused),
    TEST (test_a_damaged_file_is_refused),
    TEST (test_a_damaged_row_is_refused),
    TEST (test_a_link_in_its_place_is_refused),
    TEST (test_the_files_are_private),
    TEST (test_older_schemas_are_migrated_in_one_transaction),
    TEST (test_a_folder_without_write_permission_is_refused),
    TEST (test_read_only_and_full_disks_are_errors_not_losses),
    TEST (test_owners_are_told_from_reused_pids_and_earlier_boots),
    TEST (test_the_usual_start_is_cheap),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
