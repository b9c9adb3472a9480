/* SPDX-License-Identifier: Apache-2.0 */
/* The records of one host: state.db, a row a sandbox.
 *
 * Several processes use the file at once.  Each call is one transaction (BEGIN
 * IMMEDIATE where it writes) and waits at most RECORDS_BUSY_MS for the others.
 * A handle belongs to the process that opened it and may be used from any of
 * its threads. */

#ifndef SANDBOX_RECORDS_H
#define SANDBOX_RECORDS_H

#include "sandbox/sandbox.h"
#include "sandbox/sqlite.h"

#define RECORDS_BUSY_MS 10000

struct records;

/* Opens or makes place->state/state.db.  E_RECORDS when it cannot be used:
 * not writable, damaged, from a newer coffer, on a file system whose locks
 * other hosts do not see. */
int records_open (const struct place *place, struct records **out,
                  struct error **err);
void records_close (struct records *records);
DEFINE_CLEANUP (struct records *, records_close, auto_records)
#define auto_records CLEANUP (auto_records)

/* FULL: the row is on the disk before this returns, for what lives on beyond
 * this machine.  NORMAL: it survives this process, not a loss of power. */
enum records_sync { RECORDS_NORMAL, RECORDS_FULL };

int records_insert (struct records *records,
                    const struct sandbox_record *record,
                    enum records_sync sync, struct error **err);
/* Rewrites what may change: native id, state, expiry, owner.  The generation
 * counts up; a row that is not there is E_UNKNOWN_SANDBOX. */
int records_update (struct records *records,
                    const struct sandbox_record *record, struct error **err);
int records_delete (struct records *records, const char *id,
                    struct error **err);
/* *out is NULL when there is no such row. */
int records_find (struct records *records, const char *id,
                  struct sandbox_record **out, struct error **err);

/* Rows in order of id. */
enum records_filter {
  RECORDS_ALL,
  RECORDS_UNSETTLED             /* creating, stopping, lost or with an owner */
};
struct record_list {
  size_t count;
  struct sandbox_record **items;
};
void record_list_fini (struct record_list *list);
#define auto_record_list __attribute__ ((cleanup (record_list_fini)))
int records_list (struct records *records, enum records_filter filter,
                  struct record_list *out, struct error **err);

/* Schema steps: step i takes a file from version i to i + 1, all that are
 * missing in one transaction.  A file beyond `count` is refused. */
int records_migrate (sqlite3 *db, const char *name, const char *const *steps,
                     int count, struct error **err);

#endif /* SANDBOX_RECORDS_H */
