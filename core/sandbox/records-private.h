/* SPDX-License-Identifier: Apache-2.0 */
/* What records.c and records-open.c share. */

#ifndef SANDBOX_RECORDS_PRIVATE_H
#define SANDBOX_RECORDS_PRIVATE_H

#include <pthread.h>
#include <sys/types.h>

#include "sandbox/records.h"

enum records_statement {
  STATEMENT_BEGIN, STATEMENT_COMMIT, STATEMENT_ROLLBACK, STATEMENT_INSERT,
  STATEMENT_UPDATE, STATEMENT_DELETE, STATEMENT_FIND, STATEMENT_ALL,
  STATEMENT_UNSETTLED, STATEMENT_COUNT
};

struct records {
  pthread_mutex_t lock;         /* db and statements */
  pid_t pid;                    /* who opened it */
  char *path;
  sqlite3 *db;
  enum records_sync sync;
  sqlite3_stmt *statements[STATEMENT_COUNT];
};

/* E_RECORDS with the file, `what` and SQLite's message.  Returns -1. */
int records_fail (struct records *records, struct error **err,
                  const char *what);
int records_sync_level (struct records *records, enum records_sync sync,
                        struct error **err);

#endif /* SANDBOX_RECORDS_PRIVATE_H */
