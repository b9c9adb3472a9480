/* SPDX-License-Identifier: Apache-2.0 */
/* What dispatch and the two ways of running a module share; private to this
 * folder.
 *
 *   caller -> provider_invoke -> backend->call -> module
 *                 ^                  |
 *                 +--- invoke_*  <---+      emits, failures, logs, progress
 *
 * Locks: `gate.lock` and `probe_lock` are never held while a module or a sink
 * runs, nor is `said_lock`; `journal.lock` is a leaf below that. */

#ifndef PROVIDER_DISPATCH_H
#define PROVIDER_DISPATCH_H

#include <pthread.h>
#include <stdatomic.h>

#include "provider/gate.h"
#include "provider/journal.h"
#include "provider/outcome.h"
#include "provider/provider.h"
#include "provider/redact.h"

struct backend;
struct opening;

struct provider {
  const struct registry_entry *entry;   /* borrowed */
  const struct manifest *manifest;      /* of the entry */
  const struct place *place;
  const struct contract *contract;
  const struct backend *backend;
  void *state;                          /* of the backend */
  struct opening *opening;
  struct redactor *redactor;
  struct gate gate;
  struct journal journal;
  pthread_mutex_t said_lock;            /* lines leave one after the other */
  /* said_lock: ends of what the journal kept, what was shown, and what the
   * module logged and printed. */
  struct redact_tail kept, shown, logged, printed;
  atomic_uint_fast64_t requests;        /* ids given out */
  pthread_mutex_t probe_lock;
  json_t *facts;                        /* probe_lock */
  size_t n_claims;
  atomic_uchar *narrowed;               /* one a claim of the manifest */
};

/* One call on its way. */
struct invoke {
  struct provider *provider;
  const struct contract_op *op;
  const union contract_value *values;
  struct provider_sink sink;
  uint64_t request;
  int64_t deadline_ns;
  int cancel_fd;
  int ended;                    /* the sink has had enough */
  uint64_t first_line;          /* the journal's, when the call began */
  struct outcome outcome;
};

struct backend {
  /* Ends with invoke->outcome filled. */
  void (*call) (struct provider *provider, struct invoke *invoke);
  void (*close) (struct provider *provider);
  int (*pid) (const struct provider *provider);
  /* Of a worker, else NULL: see provider_is_idle. */
  int (*is_idle) (const struct provider *provider);
  void (*rest) (struct provider *provider);
};

extern const struct backend backend_in_process, backend_worker;
int in_process_start (struct provider *provider, struct error **err);
int worker_start (struct provider *provider, struct error **err);

/* A pipe, a socket or a terminal, opened and not only named; or -1. */
int fd_is_stream (int fd);

/* A call of the host's own (open, close, probe), past state and capability. */
void invoke_run (struct provider *provider, struct invoke *invoke);

/* For the conformance kit: past the check of capabilities, with the module's own
 * answer instead of the public error.  -1: arguments that no module is given.
 * The caller frees the outcome with outcome_fini. */
int provider_try (struct provider *provider, uint32_t op,
                  const union contract_value *values,
                  const struct provider_call *call, struct outcome *outcome,
                  struct error **err);

/* ---- what a running module says ------------------------------------------
 * Each takes text and data as they came and checks them. */

/* A record in the module's layout. */
int32_t invoke_emit (struct invoke *invoke, uint32_t id, const void *data);
/* A record in the host's layout and memory; its descriptors are borrowed. */
int32_t invoke_deliver (struct invoke *invoke,
                        const struct contract_record *record, void *data);
int32_t invoke_fail (struct invoke *invoke, int32_t code, int32_t retryable,
                     const char *message, const char *details);
void invoke_log (struct invoke *invoke, int32_t level, const char *text);
void invoke_progress (struct invoke *invoke, uint64_t done, uint64_t total,
                      const char *what);
/* A connected descriptor that the caller owns, or minus a code. */
int32_t invoke_connect (struct invoke *invoke, const char *target);
/* A late file of the manifest, sealed and hashed; owned as above. */
int32_t invoke_file (struct invoke *invoke, const char *name);
/* The operation's return value. */
void invoke_return (struct invoke *invoke, int32_t code);
/* A fault that the host found. */
void invoke_fault (struct invoke *invoke, int number, const char *fmt, ...)
  __attribute__ ((format (printf, 3, 4)));

#endif /* PROVIDER_DISPATCH_H */
