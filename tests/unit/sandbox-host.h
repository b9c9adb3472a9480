/* SPDX-License-Identifier: Apache-2.0 */
/* A host in a folder of its own, over the fake provider. */

#ifndef UNIT_SANDBOX_HOST_H
#define UNIT_SANDBOX_HOST_H

#include "config.h"

#include "harness.h"

#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>

#include <sqlite3.h>

#include <coffer/fd.h>

#include "base/log.h"
#include "sandbox-fake.h"
#include "sandbox/sandbox.h"

struct fixture {
  void *home;
  struct place place;
  struct host *host;
};

static inline int
fixture_new (void **state)
{
  struct fixture *f = calloc (1, sizeof *f);

  if (!f || harness_folder_new (&f->home) < 0)
    return -1;
  memset (&fake, 0, sizeof fake);
  log_set_level (LOG_LEVEL_ERROR);
  if (asprintf (&f->place.state, "%s/state", (char *) f->home) < 0
      || asprintf (&f->place.runtime, "%s/run", (char *) f->home) < 0)
    return -1;
  *state = f;
  return host_open (&f->place, 0, &f->host, NULL);
}

static inline int
fixture_free (void **state)
{
  struct fixture *f = *state;
  int r;

  fake.kill_fails = fake.exit_in_kill = 0;
  host_close (f->host);
  r = harness_folder_free (&f->home);
  free (f->place.state);
  free (f->place.runtime);
  free (f);
  return r;
}

/* A row of a list of tests. */
#define TEST(name)                                                            \
  cmocka_unit_test_setup_teardown (name, fixture_new, fixture_free)

/* A host that looks like the next start. */
static inline void
fixture_restart (struct fixture *f)
{
  host_close (f->host);
  f->host = NULL;
  assert_int_equal (host_open (&f->place, 0, &f->host, NULL), 0);
}

#define assert_ok(expression, error)                                          \
  do {                                                                        \
    if ((expression) < 0)                                                     \
      fail_msg ("%s: %s", #expression, error_message (error));                \
  } while (0)

#define assert_fails(expression, error, wanted)                               \
  do {                                                                        \
    assert_true ((expression) < 0);                                           \
    assert_non_null (error);                                                  \
    if ((error)->number != (wanted))                                          \
      fail_msg ("%s: E%d, not %s: %s", #expression, (error)->number, #wanted, \
                error_message (error));                                       \
  } while (0)

/* One durable sandbox. */
static inline void
make (struct host *host, struct sandbox_record **out)
{
  struct sandbox_request request = { 0 };
  struct error *error = NULL;

  assert_ok (sandbox_create (host, &request, NULL, out, NULL, &error), error);
}

/* Is the sandbox really there? */
static inline int
exists (const struct fixture *f, const char *id)
{
  char path[512];
  struct stat st;

  snprintf (path, sizeof path, "%s/fake/%s", f->place.runtime, id);
  return stat (path, &st) == 0;
}

/* One statement on the records, as another process would run it; the first
 * column of its answer, or "". */
static inline void
sql_text (const struct fixture *f, const char *text, char *out, size_t size)
{
  sqlite3_stmt *stmt = NULL;
  sqlite3 *db = NULL;
  char path[512];
  int code;

  *out = '\0';
  snprintf (path, sizeof path, "%s/state.db", f->place.state);
  assert_int_equal (sqlite3_open (path, &db), SQLITE_OK);
  sqlite3_busy_timeout (db, 5000);
  assert_int_equal (sqlite3_prepare_v2 (db, text, -1, &stmt, NULL),
                    SQLITE_OK);
  code = sqlite3_step (stmt);
  if (code == SQLITE_ROW)
    snprintf (out, size, "%s", (const char *) sqlite3_column_text (stmt, 0));
  sqlite3_finalize (stmt);
  sqlite3_close (db);
  assert_true (code == SQLITE_ROW || code == SQLITE_DONE);
}

static inline void
sql (const struct fixture *f, const char *text)
{
  char answer[64];

  sql_text (f, text, answer, sizeof answer);
}

/* The records of what is ephemeral: a file each. */
static inline int
noted (const struct fixture *f)
{
  char path[512];
  struct dirent *entry;
  int count = 0;
  DIR *dir;

  snprintf (path, sizeof path, "%s/runs", f->place.runtime);
  dir = opendir (path);
  while (dir && (entry = readdir (dir)))
    count += entry->d_name[0] != '.';
  if (dir)
    closedir (dir);
  return count;
}

/* All records. */
static inline int
rows (const struct fixture *f)
{
  char answer[64];

  sql_text (f, "SELECT count(*) FROM sandbox", answer, sizeof answer);
  return atoi (answer) + noted (f);
}

#endif /* UNIT_SANDBOX_HOST_H */
