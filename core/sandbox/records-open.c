/* SPDX-License-Identifier: Apache-2.0 */
/* Opening state.db: the folder, the file system, the write-ahead log, the
 * schema.  The usual case, a file that is there and of this version, reads
 * one number; all else is the slow path. */

#include "config.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/text.h"
#include "sandbox/records-private.h"

/* Pages of the log after which a commit also writes them back.  Small, since
 * the first process after a pause reads the whole log. */
#define CHECKPOINT_PAGES 64

static const char *const schema_steps[] = {
  "CREATE TABLE sandbox ("
  " id TEXT NOT NULL PRIMARY KEY, provider TEXT NOT NULL, native_id TEXT,"
  " tenant TEXT NOT NULL, spec TEXT NOT NULL, state INTEGER NOT NULL,"
  " created_ns INTEGER NOT NULL, expires_ns INTEGER NOT NULL,"
  " generation INTEGER NOT NULL, owner_pid INTEGER NOT NULL,"
  " owner_start INTEGER NOT NULL, owner_where TEXT,"
  " deadline_ns INTEGER NOT NULL) WITHOUT ROWID",
};
#define SCHEMA_VERSION ((int) (sizeof schema_steps / sizeof schema_steps[0]))

/* File systems on which a lock or a shared mapping of another host, or of the
 * other side of a mount, is not seen. */
static const struct {
  uint32_t magic;
  const char *name;
} refused[] = {
  { NFS_SUPER_MAGIC, "NFS" },        { V9FS_MAGIC, "9P" },
  { SMB_SUPER_MAGIC, "SMB" },        { 0xff534d42, "CIFS" },
  { 0xfe534d42, "SMB2" },            { AFS_SUPER_MAGIC, "AFS" },
  { 0x6b414653, "AFS" },             { CODA_SUPER_MAGIC, "Coda" },
  { 0x00c36400, "Ceph" },            { 0x0bd00bd0, "Lustre" },
  { 0x19830326, "FhGFS" },           { 0x564c, "NCP" },
};

static int
check_file_system (int dir, const char *path, struct error **err)
{
  struct statfs fs;
  size_t i;

  if (fstatfs (dir, &fs) < 0)
    return error_set (err, E_RECORDS, errno, "%s", path);
  for (i = 0; i < sizeof refused / sizeof refused[0]; i++)
    if ((uint32_t) fs.f_type == refused[i].magic) {
      error_set (err, E_RECORDS, 0,
                 "%s is on %s, whose locks other processes may not see", path,
                 refused[i].name);
      error_hint (err, "put the state folder on a local disk (COFFER_HOME)");
      return -1;
    }
  return 0;
}

/* The folder's real name, so that nothing below it is reached over a link. */
static char *
database_path (int dir)
{
  auto_free char *folder = coffer_fd_path (dir);

  return folder ? text_printf ("%s/state.db", folder) : NULL;
}

/* SQLite makes files by umask; ours is private from its birth. */
static int
make_private (int dir, const char *path, struct error **err)
{
  coffer_autoclose int fd = -1;
  struct stat st;

  if (fstatat (dir, "state.db", &st, AT_SYMLINK_NOFOLLOW) == 0) {
    if (S_ISREG (st.st_mode))
      return 0;
    return error_set (err, E_RECORDS, 0, "%s is not a regular file", path);
  }
  fd = openat (dir, "state.db",
               O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0 && errno != EEXIST)
    return error_set (err, E_RECORDS, errno, "make %s", path);
  return 0;
}

static int
db_fail (sqlite3 *db, const char *name, struct error **err, const char *what)
{
  return error_set (err, E_RECORDS, 0, "%s: %s: %s", name, what,
                    sqlite.errmsg (db));
}

static int
read_number (sqlite3 *db, const char *name, const char *sql, int *out,
             struct error **err)
{
  sqlite3_stmt *stmt = NULL;
  int code = sqlite.prepare_v2 (db, sql, -1, &stmt, NULL);

  if (code == SQLITE_OK)
    code = sqlite.step (stmt);
  if (code == SQLITE_ROW)
    *out = sqlite.column_int (stmt, 0);
  else
    db_fail (db, name, err, "read");
  sqlite.finalize (stmt);
  return code == SQLITE_ROW ? 0 : -1;
}

static int
refuse_newer (const char *name, int version, int known, struct error **err)
{
  error_set (err, E_RECORDS, 0,
             "%s was written by a newer coffer (schema %d, this one knows %d)",
             name, version, known);
  error_hint (err, "use that coffer, or another COFFER_HOME");
  return -1;
}

static int
migrate_inside (sqlite3 *db, const char *name, const char *const *steps,
                int count, struct error **err)
{
  char pragma[64];
  int version, tables;

  /* Again, now that nobody else can write. */
  if (read_number (db, name, "PRAGMA user_version", &version, err) < 0)
    return -1;
  if (version > count)
    return refuse_newer (name, version, count, err);
  if (version == 0) {
    if (read_number (db, name, "SELECT count(*) FROM sqlite_schema", &tables,
                     err) < 0)
      return -1;
    if (tables > 0)
      return error_set (err, E_RECORDS, 0, "%s holds something else", name);
  }
  for (; version < count; version++)
    if (sqlite.exec (db, steps[version], NULL, NULL, NULL) != SQLITE_OK)
      return db_fail (db, name, err, "new schema");
  snprintf (pragma, sizeof pragma, "PRAGMA user_version = %d", count);
  if (sqlite.exec (db, pragma, NULL, NULL, NULL) != SQLITE_OK)
    return db_fail (db, name, err, "new schema");
  return 0;
}

int
records_migrate (sqlite3 *db, const char *name, const char *const *steps,
                 int count, struct error **err)
{
  if (sqlite_load (err) < 0)
    return -1;
  if (sqlite.exec (db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK)
    return db_fail (db, name, err, "begin");
  if (migrate_inside (db, name, steps, count, err) < 0) {
    sqlite.exec (db, "ROLLBACK", NULL, NULL, NULL);
    return -1;
  }
  if (sqlite.exec (db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK) {
    db_fail (db, name, err, "commit");
    sqlite.exec (db, "ROLLBACK", NULL, NULL, NULL);
    return -1;
  }
  return 0;
}

/* The switch to the log needs the file alone and does not use the busy
 * handler, so it is tried until the others are through. */
static int
use_write_ahead_log (sqlite3 *db, const char *name, struct error **err)
{
  const struct timespec pause = { 0, 2000000 };
  int64_t deadline = coffer_now_ns () + RECORDS_BUSY_MS * 1000000LL;
  int code;

  for (;;) {
    sqlite3_stmt *stmt = NULL;
    int is_wal = 0;

    code = sqlite.prepare_v2 (db, "PRAGMA journal_mode = WAL", -1, &stmt,
                               NULL);
    if (code == SQLITE_OK)
      code = sqlite.step (stmt);
    if (code == SQLITE_ROW)
      is_wal = strcmp ((const char *) sqlite.column_text (stmt, 0), "wal")
               == 0;
    sqlite.finalize (stmt);
    if (is_wal)
      return 0;
    if (code == SQLITE_ROW)
      return error_set (err, E_RECORDS, 0,
                        "%s: no write-ahead log on this file system", name);
    if ((code & 0xff) != SQLITE_BUSY || coffer_now_ns () > deadline)
      return db_fail (db, name, err, "write-ahead log");
    nanosleep (&pause, NULL);
  }
}

int
records_sync_level (struct records *records, enum records_sync sync,
                    struct error **err)
{
  const char *sql = sync == RECORDS_FULL ? "PRAGMA synchronous = FULL"
                                         : "PRAGMA synchronous = NORMAL";

  if (records->sync == sync)
    return 0;
  if (sqlite.exec (records->db, sql, NULL, NULL, NULL) != SQLITE_OK)
    return records_fail (records, err, "synchronous");
  records->sync = sync;
  return 0;
}

static int
database_open (struct records *records, struct error **err)
{
  int version;

  if (sqlite.open_v2 (records->path, &records->db,
                       SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX
                         | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_EXRESCODE,
                       NULL) != SQLITE_OK)
    return records_fail (records, err, "open");
  sqlite.busy_timeout (records->db, RECORDS_BUSY_MS);
  sqlite.db_config (records->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
  sqlite.db_config (records->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
  sqlite.db_config (records->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
  sqlite.wal_autocheckpoint (records->db, CHECKPOINT_PAGES);
  if (read_number (records->db, records->path, "PRAGMA user_version",
                   &version, err) < 0)
    return -1;
  if (version > SCHEMA_VERSION)
    return refuse_newer (records->path, version, SCHEMA_VERSION, err);
  if (version < SCHEMA_VERSION
      && (use_write_ahead_log (records->db, records->path, err) < 0
          || records_migrate (records->db, records->path, schema_steps,
                              SCHEMA_VERSION, err) < 0))
    return -1;
  records->sync = RECORDS_FULL; /* SQLite's own default */
  return records_sync_level (records, RECORDS_NORMAL, err);
}

int
records_open (const struct place *place, struct records **out,
              struct error **err)
{
  auto_records struct records *records = calloc (1, sizeof *records);
  coffer_autoclose int dir = -1;

  if (!records)
    return error_set (err, E_NO_MEMORY, 0, "the records");
  if (sqlite_load (err) < 0)
    return -1;
  pthread_mutex_init (&records->lock, NULL);
  records->pid = getpid ();
  dir = place_open_dir (place->state, err);
  if (dir < 0)
    return -1;
  records->path = database_path (dir);
  if (!records->path)
    return error_set (err, E_RECORDS, errno, "%s", place->state);
  if (check_file_system (dir, place->state, err) < 0
      || make_private (dir, records->path, err) < 0
      || database_open (records, err) < 0)
    return -1;
  *out = steal (records);
  return 0;
}

void
records_close (struct records *records)
{
  int i;

  if (!records)
    return;
  /* In a child of fork SQLite must not even close: it would drop the locks
   * and delete the log that the parent uses. */
  if (records->pid == getpid ()) {
    for (i = 0; i < STATEMENT_COUNT; i++)
      sqlite.finalize (records->statements[i]);
    sqlite.close (records->db);
  }
  pthread_mutex_destroy (&records->lock);
  free (records->path);
  free (records);
}
