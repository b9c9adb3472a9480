/* SPDX-License-Identifier: Apache-2.0 */
/* Inside a host: its records, the providers opened so far, and the sandboxes
 * made by this process, which are found without asking the records. */

#ifndef SANDBOX_HOST_H
#define SANDBOX_HOST_H

#include <pthread.h>

#include "sandbox/owner.h"
#include "sandbox/records.h"
#include "sandbox/sandbox.h"

#define SANDBOX_TENANT "default"

/* A provider that was looked up; `provider` once it was opened. */
struct opened {
  struct opened *next;
  struct registry *registry;
  const struct registry_entry *entry;
  struct provider *provider;
};

/* A sandbox made by this process. */
struct live {
  struct live *next;
  struct sandbox_record *record;
  int lifeline;                 /* the end we hold; -1: none */
  int recorded;                 /* has a row */
};

struct host {
  const struct place *place;
  unsigned flags;
  struct owner owner;
  pthread_mutex_t records_lock;
  struct records *records;      /* NULL: none; see host_records */
  int opening;                  /* the thread below is at it */
  pthread_t opener;
  struct error *open_error;     /* what it met */
  pthread_mutex_t lock;         /* all below */
  struct opened *opened;
  struct live *live;
  char *default_provider;
};

/* The records, or NULL when there are none.  Where they are optional they are
 * opened beside the provider's loading, and this waits for it. */
struct records *host_records (struct host *host);
/* The records failed in the middle: an error, or, where they are optional,
 * a line in the log, once, and no records from here on; then 0. */
int host_records_failed (struct host *host, struct error *take_error,
                         struct error **err);

/* The registry's entry without opening the provider; id NULL: the default.
 * It lives as long as the host. */
int host_entry (struct host *host, const char *id,
                const struct opened **out, struct error **err);

/* A record by id, from this process or the records: E_UNKNOWN_SANDBOX.
 * The copy is the caller's. */
int host_find (struct host *host, const char *id, struct sandbox_record **out,
               struct error **err);
/* host_find, and its provider opened. */
int host_reach (struct host *host, const char *id,
                struct sandbox_record **record, struct provider **provider,
                struct error **err);

/* Keeps a sandbox made here; takes the record and the lifeline. */
int host_add_live (struct host *host, struct sandbox_record *take_record,
                   int take_lifeline, int recorded, struct error **err);
/* Forgets a sandbox: closes its lifeline, deletes its row. */
int host_forget (struct host *host, const char *id, struct error **err);

struct sandbox_record *sandbox_record_copy (const struct sandbox_record *from);

/* Kills through the provider; *gone when it knew nothing of it. */
int provider_kill (struct provider *provider, const char *id,
                   const struct provider_call *call, int *gone,
                   struct error **err);

/* The absolute CLOCK_MONOTONIC time `ms` from now. */
int64_t deadline_in (int64_t ms);

/* A call without a sink, `ms` from now, cancelled by cancel_fd. */
struct provider_call call_in (int64_t ms, int cancel_fd);

#endif /* SANDBOX_HOST_H */
