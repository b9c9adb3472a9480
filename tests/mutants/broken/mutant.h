/* SPDX-License-Identifier: Apache-2.0 */
/* Mutants: the reference provider with one thing wrong each.
 *
 * All of them are one module.  The manifest of a mutant names its fault in the
 * key `fault`; each operation here goes on to the reference's, after it has
 * changed what is asked or while it changes what is answered.  mutants.tsv says
 * of each what is wrong, and which case must find it.
 *
 * A fault is as narrow as it can be: it shows in what its case looks at and,
 * where others look there too, in something that they do not do. */

#ifndef BROKEN_MUTANT_H
#define BROKEN_MUTANT_H

#include <pthread.h>
#include <stddef.h>
#include <sys/types.h>

#include "../reference/files.h"

/* Is this what is wrong? */
int fault (const char *name);
void fault_set (const char *name);
/* The handle that the last sandbox was made for; "": none. */
extern char made_for[64];

/* ---- calls whose records are changed on their way ------------------------ */

struct wrapped;
typedef int32_t wrapped_emit (struct wrapped *wrapped, uint32_t record,
                              const void *data);

struct wrapped {
  struct coffer_call call;      /* what the reference gets */
  struct coffer_host host;
  struct coffer_call *real;
  wrapped_emit *emit;           /* NULL: passed on */
  const char *sandbox, *exec;
  void *data;                   /* the emit's own */
  unsigned records;             /* so many were emitted */
};

struct coffer_call *wrap (struct wrapped *wrapped, struct coffer_call *call,
                          wrapped_emit *emit);
/* Deaf to what comes after the deadline, and with no deadline of its own. */
void wrap_endless (struct wrapped *wrapped);
/* To the host. */
int32_t pass_on (struct wrapped *wrapped, uint32_t record, const void *data);

/* ---- what was seen of sandboxes and commands ----------------------------- */

struct memory {
  char sandbox[80];
  int killed, asked, paused, resumed;
  char last_env[256];           /* of a command */
  unsigned execs, first_in;
  int64_t ttl_ms, created_ns, expires_ns, real_end_ns;
  struct coffer_sandbox_info info;
  char native[32], workspace[512];
  uint64_t inputs;              /* bit N: command N has an input */
  uint64_t late;                /* bit N: its timeout is ours */
  uint64_t told;                /* bit N: its end was told */
  pid_t keeper;
};

/* Of a sandbox, made when it is new; the lock is held until memory_done. */
struct memory *memory_of (const char *sandbox);
struct memory *memory_known (const char *sandbox);      /* NULL: never seen */
void memory_done (void);
uint64_t exec_bit (const char *exec);

/* What was asked last, of any sandbox. */
void note_op (uint32_t op, const char *sandbox);
int op_was (uint32_t op, const char *sandbox);

/* Processes below one, at most `max`. */
pid_t process_parent (pid_t pid);
size_t processes_below (pid_t pid, pid_t *out, size_t max);

/* ---- streams that go through this process -------------------------------- */

enum pump_fault {
  PUMP_LATE, PUMP_BYTE_LOST, PUMP_CUT, PUMP_FLOOD_SWAPPED,
  PUMP_INPUT_CUT, PUMP_INPUT_NUL, PUMP_INPUT_OPEN
};

/* What a command is given for `fd`: a pipe whose other end is pumped.  It is
 * the caller's to close; -1: there is none. */
int pump_output (enum pump_fault fault, int fd);
int pump_input (enum pump_fault fault, int fd);
/* Both streams at once. */
enum pair_fault { PAIR_SWAPPED, PAIR_MERGED, PAIR_REORDERED };
void pump_pair (enum pair_fault fault, int out, int err, int given[2]);
/* Output that is late is passed on when the provider is next called. */
void pump_flush (void);
/* A connection that is relayed, and not as it should be. */
enum relay_fault { RELAY_CUT, RELAY_NO_HALF_CLOSE, RELAY_GARBLED };
int relay (enum relay_fault fault, int fd);
int thread_start (void *(*run) (void *), void *data);

/* ---- the operations ------------------------------------------------------ */

#define X_ARG(type, name, doc) , COFFER_TYPE_##type name
#define X_RARG(type, record, name, doc) , COFFER_RTYPE_##type (record) name
#define X_OP(id, name, since, capability, args, OPTS, doc)                    \
  int32_t broken_##name (struct coffer_call *call, void *self args,           \
                         const struct coffer_##name##_opts *opts);
COFFER_OPERATIONS (X_OP, X_ARG, X_RARG)
#undef X_OP
#undef X_ARG
#undef X_RARG

#endif /* BROKEN_MUTANT_H */
