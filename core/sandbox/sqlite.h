/* SPDX-License-Identifier: Apache-2.0 */
/* SQLite, loaded by the first who needs it.
 *
 * `coffer run` keeps no rows, and linked into the program the library and what
 * it needs itself cost each start 0.3 ms of relocations, a tenth of the whole
 * sandbox.  So it is opened by its name at run time, as the dynamic linker
 * would have; the note in sqlite.c tells packagers of it. */

#ifndef SANDBOX_SQLITE_H
#define SANDBOX_SQLITE_H

#include <sqlite3.h>

#include "base/error.h"

#define SQLITE_FUNCTIONS(X) \
  X (bind_int) X (bind_int64) X (bind_null) X (bind_text) X (busy_timeout) \
  X (changes) X (clear_bindings) X (close) X (column_int) X (column_int64) \
  X (column_text) X (db_config) X (errmsg) X (exec) X (extended_errcode) \
  X (finalize) X (get_autocommit) X (open_v2) X (prepare_v2) \
  X (prepare_v3) X (reset) X (step) X (wal_autocheckpoint)

/* sqlite3_NAME, once sqlite_load has succeeded. */
struct sqlite {
#define X(name) __typeof__ (sqlite3_##name) *name;
  SQLITE_FUNCTIONS (X)
#undef X
};
extern struct sqlite sqlite;

/* E_RECORDS when the library or a function is missing.  From any thread. */
int sqlite_load (struct error **err);

#endif /* SANDBOX_SQLITE_H */
