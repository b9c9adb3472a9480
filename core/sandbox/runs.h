/* SPDX-License-Identifier: Apache-2.0 */
/* The records of what is ephemeral: RUNTIME/runs/SANDBOX-ID, a file each.
 *
 * Such a sandbox dies with its owner, so its record need not outlive a boot,
 * nor cost a database: it is a file in the runtime folder, locked (flock) by
 * the owner for life.  Who gets the lock knows that the owner is dead, without
 * asking about pids; who does not, that it lives, and that the pid which the
 * file names is it. */

#ifndef SANDBOX_RUNS_H
#define SANDBOX_RUNS_H

#include "sandbox/owner.h"
#include "sandbox/records.h"

/* Writes the record, locked: *out holds the lock until it is closed. */
int run_note (const struct place *place, const struct sandbox_record *record,
              int *out, struct error **err);
/* The one that was noted as `creating` is there. */
void run_note_running (int fd);
/* Removes the file; closing the lock is the caller's. */
void run_drop (const struct place *place, const char *id);

/* Is the record one of these?  They alone have an owner while running. */
int run_is (const struct sandbox_record *record);
/* And this process's own? */
int run_is_own (const struct sandbox_record *record);

/* A living one, or NULL when there is none of that id. */
int runs_find (const struct place *place, const char *id,
               struct sandbox_record **out, struct error **err);
/* All that live, in order of id, added to `out`. */
int runs_list (const struct place *place, struct record_list *out,
               struct error **err);

/* A file whose owner is dead, locked by us.  The callback takes care of the
 * sandbox and says what becomes of the file. */
enum run_fate { RUN_DROP, RUN_KEEP };   /* KEEP: with the record's state */
typedef enum run_fate run_visit (void *data, struct sandbox_record *record);
int runs_visit_dead (const struct place *place, run_visit *visit, void *data,
                     struct error **err);

/* Asks the owner to end, and makes it after a while.  1: it has; 0: there is
 * no such sandbox any more; -1 otherwise. */
int run_end_owner (const struct place *place, const char *id,
                   int64_t deadline_ns, struct error **err);

#endif /* SANDBOX_RUNS_H */
