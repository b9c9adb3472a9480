/* SPDX-License-Identifier: Apache-2.0 */
/* Rows in and out of state.db: statements prepared once, one transaction a
 * call.  Opening the file is records-open.c. */

#include "config.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "sandbox/records-private.h"

static const char *const state_names[] = {
  "creating", "running", "paused", "stopping", "gone", "lost"
};
#define N_STATES (sizeof state_names / sizeof state_names[0])

const char *
sandbox_state_name (enum sandbox_state state)
{
  return (size_t) state < N_STATES ? state_names[state] : "unknown";
}

void
sandbox_record_free (struct sandbox_record *record)
{
  if (!record)
    return;
  free (record->provider);
  free (record->native_id);
  free (record->tenant);
  free (record->spec);
  free (record->owner_where);
  free (record);
}

#define COLUMNS                                                               \
  "id, provider, native_id, tenant, spec, state, created_ns, expires_ns,"     \
  " generation, owner_pid, owner_start, owner_where, deadline_ns"

static const char *const statement_text[STATEMENT_COUNT] = {
  [STATEMENT_BEGIN] = "BEGIN IMMEDIATE",
  [STATEMENT_COMMIT] = "COMMIT",
  [STATEMENT_ROLLBACK] = "ROLLBACK",
  [STATEMENT_INSERT] = "INSERT INTO sandbox (" COLUMNS ")"
    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
  [STATEMENT_UPDATE] = "UPDATE sandbox SET native_id = ?3, state = ?6,"
    " created_ns = ?7, expires_ns = ?8, generation = generation + 1,"
    " owner_pid = ?10, owner_start = ?11, owner_where = ?12,"
    " deadline_ns = ?13 WHERE id = ?1",
  [STATEMENT_DELETE] = "DELETE FROM sandbox WHERE id = ?1",
  [STATEMENT_FIND] = "SELECT " COLUMNS " FROM sandbox WHERE id = ?1",
  [STATEMENT_ALL] = "SELECT " COLUMNS " FROM sandbox ORDER BY id",
  [STATEMENT_UNSETTLED] = "SELECT " COLUMNS " FROM sandbox"
    " WHERE state NOT IN (1, 2) OR owner_pid != 0 ORDER BY id",
};

int
records_fail (struct records *records, struct error **err, const char *what)
{
  int code = sqlite.extended_errcode (records->db);

  if ((code & 0xff) == SQLITE_NOMEM)
    return error_set (err, E_NO_MEMORY, 0, "%s: %s", records->path, what);
  return error_set (err, E_RECORDS, 0, "%s: %s: %s", records->path, what,
                    sqlite.errmsg (records->db));
}

/* Takes the lock and the prepared statement; a handle that came here by fork
 * would break the parent's locks, so it is refused. */
static sqlite3_stmt *
statement_get_locked (struct records *records, enum records_statement which,
                      struct error **err)
{
  sqlite3_stmt **slot = &records->statements[which];

  if (!*slot
      && sqlite.prepare_v3 (records->db, statement_text[which], -1,
                             SQLITE_PREPARE_PERSISTENT, slot, NULL)
           != SQLITE_OK) {
    records_fail (records, err, "prepare");
    return NULL;
  }
  return *slot;
}

static int
records_enter (struct records *records, struct error **err)
{
  if (records->pid != getpid ())
    return error_set (err, E_INTERNAL, 0,
                      "records of process %d used in its child",
                      (int) records->pid);
  pthread_mutex_lock (&records->lock);
  return 0;
}

static void
records_leave (struct records *records)
{
  pthread_mutex_unlock (&records->lock);
}

/* Runs a statement that returns no rows. */
static int
statement_run_locked (struct records *records, enum records_statement which,
                      struct error **err)
{
  sqlite3_stmt *stmt = statement_get_locked (records, which, err);
  int code, bad = 0;

  if (!stmt)
    return -1;
  code = sqlite.step (stmt);
  if (code != SQLITE_DONE)
    bad = records_fail (records, err, statement_text[which]);
  sqlite.reset (stmt);
  return bad;
}

static void
bind_text (sqlite3_stmt *stmt, int index, const char *text)
{
  if (text)
    sqlite.bind_text (stmt, index, text, -1, SQLITE_STATIC);
  else
    sqlite.bind_null (stmt, index);
}

static void
bind_record (sqlite3_stmt *stmt, const struct sandbox_record *record)
{
  sqlite.clear_bindings (stmt);
  bind_text (stmt, 1, record->id);
  bind_text (stmt, 2, record->provider);
  bind_text (stmt, 3, record->native_id);
  bind_text (stmt, 4, record->tenant);
  bind_text (stmt, 5, record->spec);
  sqlite.bind_int (stmt, 6, record->state);
  sqlite.bind_int64 (stmt, 7, record->created_ns);
  sqlite.bind_int64 (stmt, 8, record->expires_ns);
  sqlite.bind_int64 (stmt, 9, (int64_t) record->generation);
  sqlite.bind_int64 (stmt, 10, record->owner_pid);
  sqlite.bind_int64 (stmt, 11, record->owner_start);
  bind_text (stmt, 12, record->owner_where);
  sqlite.bind_int64 (stmt, 13, record->deadline_ns);
}

/* One writing statement in one transaction; the sync level cannot change
 * inside it. */
static int
write_locked (struct records *records, enum records_statement which,
              const struct sandbox_record *record, const char *id,
              enum records_sync sync, struct error **err)
{
  sqlite3_stmt *stmt = statement_get_locked (records, which, err);

  if (!stmt || records_sync_level (records, sync, err) < 0
      || statement_run_locked (records, STATEMENT_BEGIN, err) < 0)
    return -1;
  if (record)
    bind_record (stmt, record);
  else
    bind_text (stmt, 1, id);
  if (statement_run_locked (records, which, err) < 0
      || statement_run_locked (records, STATEMENT_COMMIT, err) < 0) {
    /* A failed COMMIT may leave the transaction open, or not. */
    if (!sqlite.get_autocommit (records->db))
      statement_run_locked (records, STATEMENT_ROLLBACK, NULL);
    return -1;
  }
  return sqlite.changes (records->db);
}

static int
records_write (struct records *records, enum records_statement which,
               const struct sandbox_record *record, const char *id,
               enum records_sync sync, struct error **err)
{
  int changed;

  if (records_enter (records, err) < 0)
    return -1;
  changed = write_locked (records, which, record, id, sync, err);
  records_leave (records);
  return changed;
}

int
records_insert (struct records *records, const struct sandbox_record *record,
                enum records_sync sync, struct error **err)
{
  return records_write (records, STATEMENT_INSERT, record, NULL, sync, err) < 0
           ? -1 : 0;
}

int
records_update (struct records *records, const struct sandbox_record *record,
                struct error **err)
{
  int changed = records_write (records, STATEMENT_UPDATE, record, NULL,
                               RECORDS_NORMAL, err);

  if (changed == 0)
    return error_set (err, E_UNKNOWN_SANDBOX, 0, "no record of sandbox %s",
                      record->id);
  return changed < 0 ? -1 : 0;
}

int
records_delete (struct records *records, const char *id, struct error **err)
{
  return records_write (records, STATEMENT_DELETE, NULL, id, RECORDS_NORMAL,
                        err) < 0 ? -1 : 0;
}

/* A copy of a text column, which must be there unless `optional`. */
static int
column_text (sqlite3_stmt *stmt, int index, int optional, char **out)
{
  const char *text = (const char *) sqlite.column_text (stmt, index);

  if (!text)
    return optional ? 0 : -1;
  *out = strdup (text);
  return *out ? 0 : -1;
}

/* The row as it stands, or an error that names the file: what is read back is
 * as little to be trusted as any other file. */
static int
row_read (struct records *records, sqlite3_stmt *stmt,
          struct sandbox_record **out, struct error **err)
{
  auto_sandbox_record struct sandbox_record *record = NULL;
  const char *id = (const char *) sqlite.column_text (stmt, 0);
  int state = sqlite.column_int (stmt, 5);

  if (!sandbox_id_valid (id) || state < 0 || state >= (int) N_STATES)
    return error_set (err, E_RECORDS, 0, "%s: a row is damaged",
                      records->path);
  record = calloc (1, sizeof *record);
  if (!record)
    return error_set (err, E_NO_MEMORY, 0, "a record");
  memcpy (record->id, id, sizeof record->id);
  if (column_text (stmt, 1, 0, &record->provider) < 0
      || column_text (stmt, 2, 1, &record->native_id) < 0
      || column_text (stmt, 3, 0, &record->tenant) < 0
      || column_text (stmt, 4, 0, &record->spec) < 0
      || column_text (stmt, 11, 1, &record->owner_where) < 0
      || !text_is_id (record->provider))
    return error_set (err, E_RECORDS, 0, "%s: the row of %s is damaged",
                      records->path, record->id);
  record->state = (enum sandbox_state) state;
  record->created_ns = sqlite.column_int64 (stmt, 6);
  record->expires_ns = sqlite.column_int64 (stmt, 7);
  record->generation = (uint64_t) sqlite.column_int64 (stmt, 8);
  record->owner_pid = sqlite.column_int64 (stmt, 9);
  record->owner_start = sqlite.column_int64 (stmt, 10);
  record->deadline_ns = sqlite.column_int64 (stmt, 12);
  *out = steal (record);
  return 0;
}

static int
find_locked (struct records *records, const char *id,
             struct sandbox_record **out, struct error **err)
{
  sqlite3_stmt *stmt = statement_get_locked (records, STATEMENT_FIND, err);
  int code, bad = 0;

  if (!stmt)
    return -1;
  bind_text (stmt, 1, id);
  code = sqlite.step (stmt);
  if (code == SQLITE_ROW)
    bad = row_read (records, stmt, out, err);
  else if (code == SQLITE_DONE)
    *out = NULL;
  else
    bad = records_fail (records, err, "find a record");
  sqlite.reset (stmt);
  return bad;
}

int
records_find (struct records *records, const char *id,
              struct sandbox_record **out, struct error **err)
{
  int bad;

  if (records_enter (records, err) < 0)
    return -1;
  bad = find_locked (records, id, out, err);
  records_leave (records);
  return bad;
}

void
record_list_fini (struct record_list *list)
{
  int keep = errno;
  size_t i;

  for (i = 0; i < list->count; i++)
    sandbox_record_free (list->items[i]);
  free (list->items);
  memset (list, 0, sizeof *list);
  errno = keep;
}

static int
list_add (struct record_list *list, struct sandbox_record *take_record,
          struct error **err)
{
  struct sandbox_record **grown = list->items;

  if ((list->count & (list->count - 1)) == 0) {
    size_t room = list->count ? list->count * 2 : 1;

    grown = reallocarray (grown, room, sizeof *grown);
    if (!grown) {
      sandbox_record_free (take_record);
      return error_set (err, E_NO_MEMORY, 0, "the list of records");
    }
    list->items = grown;
  }
  list->items[list->count++] = take_record;
  return 0;
}

static int
list_locked (struct records *records, enum records_statement which,
             struct record_list *list, struct error **err)
{
  sqlite3_stmt *stmt = statement_get_locked (records, which, err);
  struct sandbox_record *record;
  int code, bad = 0;

  if (!stmt)
    return -1;
  while (!bad && (code = sqlite.step (stmt)) != SQLITE_DONE) {
    if (code != SQLITE_ROW)
      bad = records_fail (records, err, "list records");
    else if (!(bad = row_read (records, stmt, &record, err)))
      bad = list_add (list, record, err);
  }
  sqlite.reset (stmt);
  return bad;
}

int
records_list (struct records *records, enum records_filter filter,
              struct record_list *out, struct error **err)
{
  auto_record_list struct record_list list = { 0, NULL };
  int bad;

  if (records_enter (records, err) < 0)
    return -1;
  bad = list_locked (records,
                     filter == RECORDS_ALL ? STATEMENT_ALL
                                           : STATEMENT_UNSETTLED,
                     &list, err);
  records_leave (records);
  if (bad)
    return -1;
  *out = list;
  memset (&list, 0, sizeof list);
  return 0;
}
