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

/* A provider that was looked up; `provider` once it was opened.  One that was
 * upgraded since is there twice: what was made by the old one is the old one's
 * as long as it lives. */
struct opened {
  struct opened *next;
  struct registry *registry;
  const struct registry_entry *entry;
  struct provider *provider;    /* under the host's lock */
  struct error *refused;        /* it is not enabled any more */
  int replaced;                 /* there is another one for what is new */
  int64_t idle_ns;              /* since when nothing is of this one's; 0 */
  /* Held by who opens it, without the host's lock: a provider that takes long
   * to start must not hold up those who use others.  The host's may be taken
   * under it. */
  pthread_mutex_t opening;
};

/* A sandbox made by this process. */
struct live {
  struct live *next;
  struct sandbox_record *record;
  struct provider *provider;    /* that made it */
  int lifeline;                 /* the end we hold; -1: none */
  int noted;                    /* the lock of its file in runs/; -1: none */
  int template;                 /* the lock of its template; -1: none */
};

struct host {
  const struct place *place;
  unsigned flags;
  int clean;                    /* see host_sweep_soon */
  pid_t pid;
  struct owner owner;           /* see host_owner */
  struct records *records;      /* NULL: none */
  pthread_mutex_t lock;         /* all below */
  struct opened *opened;
  struct live *live;
  char *default_provider;
  uint64_t stamp;               /* of the registry, as it was looked at */
  int64_t looked_ns;            /* when; 0: look again */
  struct ready *ready;          /* sandboxes made ahead; NULL: none are */
};

/* The records, or NULL in a host for the ephemeral alone. */
struct records *host_records (struct host *host);
/* Who this process is, found out at the first call. */
const struct owner *host_owner (struct host *host, struct error **err);
/* A record could not be kept: an error, or, in a host for the ephemeral, which
 * their lifelines hold anyway, a line in the log; then 0. */
int host_records_failed (struct host *host, struct error *take_error,
                         struct error **err);

/* The registry's entry without opening the provider; id NULL: the default.
 * It lives as long as the host. */
int host_entry (struct host *host, const char *id,
                const struct opened **out, struct error **err);

/* The same opened, whatever comes after it. */
int host_open_entry (struct host *host, const struct opened *opened,
                     struct provider **out, struct error **err);
/* The provider that made a sandbox in this process and was replaced since; NULL:
 * it was not, or may not be used any more. */
struct provider *host_former (struct host *host, const char *sandbox);
/* That one, else the one of that id. */
int host_provider_of (struct host *host, const char *id, const char *sandbox,
                      struct provider **out, struct error **err);

/* A record by id, from this process or the records: E_UNKNOWN_SANDBOX.
 * The copy is the caller's. */
int host_find (struct host *host, const char *id, struct sandbox_record **out,
               struct error **err);
/* host_find, and its provider opened. */
int host_reach (struct host *host, const char *id,
                struct sandbox_record **record, struct provider **provider,
                struct error **err);

/* Keeps a sandbox made here; takes the record, the lifeline and the locks. */
int host_add_live (struct host *host, struct provider *provider,
                   struct sandbox_record *take_record, int take_lifeline,
                   int take_noted, int take_template, struct error **err);
/* Forgets a sandbox: closes its lifeline, deletes its row or file. */
int host_forget (struct host *host, const char *id, struct error **err);

struct sandbox_record *sandbox_record_copy (const struct sandbox_record *from);

/* Ends the worker of one that was replaced, when nothing has been of it for a
 * while: looked at here and by host_provider. */
void host_rest_retired (struct host *host);
/* Whether it is the one of its id still, and may be used. */
int host_is_todays (struct host *host, const struct provider *provider);
/* `metrics` of something of a provider's, within so many milliseconds. */
int provider_metrics (struct provider *provider, const char *of, int64_t ms,
                      json_t **out);

/* Kills through the provider; *gone when it knew nothing of it. */
int provider_kill (struct provider *provider, const char *id,
                   const struct provider_call *call, int *gone,
                   struct error **err);

/* The absolute CLOCK_MONOTONIC time `ms` from now. */
int64_t deadline_in (int64_t ms);

/* A call without a sink, `ms` from now, cancelled by cancel_fd. */
struct provider_call call_in (int64_t ms, int cancel_fd);

#endif /* SANDBOX_HOST_H */
