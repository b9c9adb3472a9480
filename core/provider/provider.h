/* SPDX-License-Identifier: Apache-2.0 */
/* An opened provider, and the one layer that every call passes.
 *
 * A provider lives in a worker process of its own, or, when coffer ships it
 * and the caller asks, in this process.  Callers cannot tell: both sides take
 * the same values, give the same records, fail with the same errors.
 *
 * provider_invoke is dispatch: state, arguments, capability, deadline, thread
 * model, trace, call, result check, redaction.  It may be called from several
 * threads; a serial module's calls wait for each other (not exec_wait,
 * exec_attach and file_watch, which never hold the lock). */

#ifndef PROVIDER_PROVIDER_H
#define PROVIDER_PROVIDER_H

#include "contract/args.h"
#include "contract/contract.h"
#include "provider/registry.h"

struct provider;

enum provider_mode { PROVIDER_WORKER, PROVIDER_IN_PROCESS };

/* What comes back while a call runs.  `record` gets each emit: the data lives
 * until the callback returns, except descriptors, which it may take by
 * setting the field to -1.  Non-zero ends the call as CANCELLED.  Both may
 * be NULL; they run on the calling thread. */
struct provider_sink {
  int (*record) (void *data, const struct contract_record *type, void *record);
  void (*progress) (void *data, uint64_t done, uint64_t total,
                    const char *what);
  void *data;
};

struct provider_call {
  int64_t deadline_ns;          /* CLOCK_MONOTONIC; 0: 60 s from now */
  int cancel_fd;                /* -1: none */
  struct provider_sink sink;
};

/* Loads, checks, starts and opens.  The entry and the place are borrowed until
 * provider_close: their registry lives longer.  IN_PROCESS is refused (E_DENIED) for what
 * coffer does not ship.  What the entry demands of the provider (require_...) is
 * looked at first.  Each step that fails names itself. */
int provider_open (const struct registry_entry *entry,
                   const struct place *place, enum provider_mode mode,
                   struct provider **out, struct error **err);
void provider_close (struct provider *provider);
DEFINE_CLEANUP (struct provider *, provider_close, auto_provider)
#define auto_provider CLEANUP (auto_provider)

/* Whether it has a worker that nobody has a call for; and ends such a one, which
 * the next call starts again. */
int provider_is_idle (const struct provider *provider);
void provider_rest (struct provider *provider);

/* Runs `probe` once and keeps its facts; narrows the effective capabilities.
 * provider_claims asks the effective set (the manifest's until probed). */
int provider_probe (struct provider *provider, json_t **facts,
                    struct error **err);
int provider_claims (const struct provider *provider, const char *capability);
const char *provider_id (const struct provider *provider);
const struct manifest *provider_manifest (const struct provider *provider);
int provider_worker_pid (const struct provider *provider);      /* 0: none */

/* Values as contract_invoke takes them: n_args, then opts. */
int provider_invoke (struct provider *provider, uint32_t op,
                     const union contract_value *values,
                     const struct provider_call *call, struct error **err);

/* The same with named, typed arguments:
 *
 *   INVOKE (provider, &call, err, exec_start, .sandbox = id, .argv = argv,
 *           .in = -1, .out = pipe, .err = -1, .opts = &opts)
 *
 * What is not named is NULL or 0, so descriptors (-1) must be named. */
#define INVOKE(provider, call, error, op, ...)                                \
  provider_invoke_args (provider, COFFER_OP_##op,                             \
                        &(const struct contract_args_##op){ __VA_ARGS__ },    \
                        call, error)
int provider_invoke_args (struct provider *provider, uint32_t op,
                          const void *args, const struct provider_call *call,
                          struct error **err);

#endif /* PROVIDER_PROVIDER_H */
