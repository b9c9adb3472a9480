/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the kit's runner: what is tested, the run, the case under way.
 *
 *   runner (parent) ---- fork ----> case ---- fork ----> worker
 *        ^                           |
 *        +------- struct shared -----+
 *
 * The parent never opens the provider itself and never starts a thread: what a
 * module does to a case stays there.  Both see the shared memory, which the
 * case fills and the parent reads after the case has ended. */

#ifndef KIT_RUNNER_H
#define KIT_RUNNER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/json.h"
#include "base/place.h"
#include "provider/registry.h"

#include "../kit.h"

/* Deadlines only bound what fails: long enough for a machine that is busy. */
#define KIT_CASE_MS 20000
#define KIT_LATE_MS 5000        /* beyond a case's own, which it keeps itself */
#define KIT_CLEAN_MS 30000      /* for the end of a case */
#define KIT_LEFT_MS 20000       /* for what ends after its sandbox */

/* ---- what is tested ------------------------------------------------------ */

struct narrowed {
  const char *word;             /* of facts */
  char *reason;
};

struct subject {
  struct registry *registry;
  struct registry_entry *entry; /* of the registry */
  const struct place *place;    /* the user's */
  struct place *own;            /* private folders of this run */
  char *folder;                 /* that they lie in */
  char *outside;                /* that folders of cases lie in */
  int folder_fd, outside_fd;    /* of both, locked; -1: none */
  int in_process;
  char module_sha256[65];
  char **secrets;               /* of the configuration: NULL-terminated */
  /* From the first opening: */
  json_t *facts;
  size_t n_facts;
  struct coffer_fact *fact_list;
  size_t n_narrowed;
  struct narrowed *narrowed;
};

/* WORD is an id, a manifest or a folder. */
int subject_find (const char *word, const struct place *place, int in_process,
                  struct subject **out, struct error **err);
/* Takes what probe emitted, as JSON. */
int subject_take_facts (struct subject *subject, const char *text,
                        struct error **err);
int subject_claims (const struct subject *subject, const char *word);
/* Is it claimed, and the operator does without? */
int subject_gives_up (const struct subject *subject, const char *word);
/* NULL: not narrowed. */
const char *subject_narrowed (const struct subject *subject, const char *word);
void subject_free (struct subject *subject);
DEFINE_CLEANUP (struct subject *, subject_free, auto_subject)
#define auto_subject CLEANUP (auto_subject)

/* A place like `from` whose folders of work lie in FOLDER. */
struct place *place_within (const struct place *from, const char *folder);
/* The folders of a run; what one that was killed has left goes first. */
int folders_begin (struct subject *subject, struct error **err);
/* What the last case has left. */
void folders_empty (const struct subject *subject);
void folders_end (struct subject *subject);

/* ---- what case and parent share ------------------------------------------ */

enum verdict { VERDICT_NONE, VERDICT_PASSED, VERDICT_FAILED, VERDICT_SKIPPED,
               VERDICT_WAIVED };

#define SHARED_OPS 128
#define SHARED_IDS (64 * 1024)

struct shared {
  /* Of the whole run. */
  atomic_uint seen[SHARED_OPS];         /* a bit a code, by operation */
  struct {
    atomic_int found;
    char text[512];
  } findings[KIT_FINDINGS];
  int partial;
  /* Of the case under way. */
  atomic_int ended;             /* the verdict below is whole */
  atomic_int cleaning;
  enum verdict verdict;
  char reason[2048];
  char notes[4096];
  char step[256];               /* the last call that began */
  uint32_t n_ids;               /* of sandboxes, one after the other */
  size_t ids_size;
  char ids[SHARED_IDS];
  char text[256 * 1024];        /* facts, from the first opening */
};

/* ---- the case ------------------------------------------------------------ */

struct kit_instance {
  struct kit_instance *next;
  struct kit *kit;
  struct provider *provider;    /* NULL: closed */
  struct registry_entry entry;  /* a copy with its own configuration */
  struct place *place;          /* NULL: the run's */
  char *folder;                 /* of that place; NULL: none of its own */
};

struct kit {
  const struct kit_case *row;
  const struct subject *subject;
  struct shared *shared;
  uint64_t random;              /* lock */
  int64_t deadline_ns;
  pthread_mutex_t lock;         /* a leaf: chance, memory, instances, shared */
  pthread_mutex_t end_lock;     /* taken once, by whoever ends the case */
  struct kit_instance *instances, *first;
  uint32_t n_memory;
};

/* Runs in the forked child and never returns. */
_Noreturn void case_main (const struct kit_case *row,
                          const struct subject *subject, struct shared *shared,
                          uint64_t seed);
_Noreturn void case_end (struct kit *kit, enum verdict verdict,
                         const char *reason);
/* Kills the sandboxes of a case that did not do so itself. */
_Noreturn void case_sweep (const struct subject *subject,
                           struct shared *shared);
/* Opens, probes, and leaves the facts in shared->text. */
_Noreturn void case_probe (const struct subject *subject,
                           struct shared *shared);
/* NULL and the reason, when it cannot be opened. */
struct kit_instance *instance_open (struct kit *kit,
                                    const char *const *config,
                                    int another_host, struct error **err);
void instance_close (struct kit_instance *instance);
/* Calls by values, as contract_invoke takes them. */
union contract_value;
int32_t call_values (struct kit_instance *instance, struct kit_reply *reply,
                     uint32_t op, const union contract_value *values);
void shared_add_id (struct kit *kit, const char *id);

/* ---- the run ------------------------------------------------------------- */

struct result {
  const struct kit_case *row;
  enum verdict verdict;
  char *reason;                 /* NULL: none */
  char *notes;                  /* lines, or NULL */
  char *log;                    /* the end of what it wrote, when it failed */
  int64_t duration_us;
};

enum format { FORMAT_TAP, FORMAT_JSON };

struct options {
  const char *provider;
  uint64_t seed;
  int seed_given;
  const char **only;            /* NULL-terminated, or NULL */
  const char *second;           /* --compare */
  int in_process, record, yes, compare, list, color, verbose, json;
  const char *junit;
};

struct run {
  const struct options *options;
  struct subject *subject;
  struct shared *shared;
  size_t count;
  struct result *results;       /* in the order in which they ran; waived last */
  size_t passed, failed, skipped, waived;
  int64_t began_ns;             /* realtime */
  int64_t duration_us;
  uint64_t sandboxes;           /* that were asked for */
  int interrupted;              /* by this signal; 0: no */
};

int case_is_claimed (const struct subject *subject,
                     const struct kit_case *row);
int run_all (struct run *run, struct error **err);
void run_fini (struct run *run);
/* conformant, failed or incomplete, and why it is no better. */
const char *run_verdict (const struct run *run, char why[512]);

/* Forks, waits with a deadline, ends the whole tree. */
int process_run (struct run *run, const struct kit_case *row, uint64_t seed,
                 struct result *result, struct error **err);
int process_probe (struct run *run, struct result *result, struct error **err);
int process_set_up (struct error **err);

/* ---- what is printed ----------------------------------------------------- */

void tap_begin (const struct run *run, size_t planned);
void tap_case_begins (const struct run *run, const struct kit_case *row,
                      size_t number, size_t planned);
void tap_case (const struct run *run, const struct result *result,
               size_t number);
void tap_end (const struct run *run);

json_t *report_json (const struct run *run);
int report_junit (const struct run *run, const char *path, struct error **err);
/* --record: what can be refused, what it will cost, and the question; then the
 * report to where the provider lies. */
int record_begin (const struct run *run, struct error **err);
int record_end (const struct run *run, const json_t *report,
                struct error **err);
int list_print (const struct options *options, struct error **err);
int compare_print (const char *old_path, const char *new_path, int json,
                   int *worse, struct error **err);
const char *verdict_name (enum verdict verdict);

#endif /* KIT_RUNNER_H */
