/* SPDX-License-Identifier: Apache-2.0 */
/* The host object: which records, which providers, which sandboxes are ours.
 * See host.h. */

#include "config.h"

#include <string.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/log.h"
#include "sandbox/host.h"
#include "sandbox/ready.h"
#include "sandbox/runs.h"

/* How long a host that ends waits for each sandbox of its own to be gone. */
#define CLOSE_KILL_MS 5000
/* Between two looks at what the operator changed. */
#define LOOK_NS 1000000000
/* Of a provider that was replaced, until its worker ends. */
#define IDLE_NS INT64_C (2000000000)

int64_t
deadline_in (int64_t ms)
{
  return coffer_now_ns () + ms * 1000000;
}

struct provider_call
call_in (int64_t ms, int cancel_fd)
{
  return (struct provider_call){ .deadline_ns = deadline_in (ms),
                                 .cancel_fd = cancel_fd };
}

/* `run` needs none: what is ephemeral is noted in the runtime folder, and a
 * database that has to be opened, read and written costs more than the whole
 * sandbox does. */
struct records *
host_records (struct host *host)
{
  return host->records;
}

const struct owner *
host_owner (struct host *host, struct error **err)
{
  const struct owner *owner = &host->owner;

  pthread_mutex_lock (&host->lock);
  if (!owner->start && owner_self (&host->owner, err) < 0)
    owner = NULL;
  pthread_mutex_unlock (&host->lock);
  return owner;
}

int
host_open (const struct place *place, unsigned flags, struct host **out,
           struct error **err)
{
  auto_host struct host *host = calloc (1, sizeof *host);

  if (!host)
    return error_set (err, E_NO_MEMORY, 0, "the host");
  host->place = place;
  host->flags = flags;
  pthread_mutex_init (&host->lock, NULL);
  host->pid = getpid ();
  if (!(flags & HOST_EPHEMERAL)
      && records_open (place, &host->records, err) < 0)
    return -1;
  *out = steal (host);
  return 0;
}

int
host_records_failed (struct host *host, struct error *take_error,
                     struct error **err)
{
  auto_error struct error *error = take_error;

  if (!(host->flags & HOST_EPHEMERAL))
    return error_move (err, steal (error));
  log_event (LOG_LEVEL_WARNING, "records",
             "going on without records: %s", error_message (error));
  return 0;
}

/* ---- providers ----------------------------------------------------------- */

/* A daemon's users are not who it runs as. */
static int
refuse_host (const struct host *host, const char *id, struct error **err)
{
  if (!(host->flags & HOST_NO_HOST) || strcmp (id, "host") != 0)
    return 0;
  error_set (err, E_DENIED, 0, "the provider host is no sandbox, and off in"
             " this daemon");
  error_hint (err, "name another provider");
  return -1;
}

/* Only the files of the one that is wanted are read: `run` passes here. */
static int
opened_add_locked (struct host *host, const char *id, struct opened **out,
                   struct error **err)
{
  auto_registry struct registry *registry = NULL;
  const struct registry_entry *entry;
  const char *why = "as it was asked for by name, or its sandbox was";
  struct opened *opened;
  int64_t newest;

  /* A host for one command does not last. */
  if (!host->stamp && !(host->flags & HOST_EPHEMERAL))
    host->stamp = registry_stamp (host->place, &newest);
  if (registry_load_one (host->place, id, &registry, err) < 0
      || refuse_host (host, id ? id : registry->default_provider, err) < 0)
    return -1;
  if (!id) {
    id = registry->default_provider;
    why = strcmp (registry->default_source, "builtin") == 0
            ? "the default" : "the default of coffer.yaml";
  }
  if (!host->default_provider
      && !(host->default_provider = strdup (registry->default_provider)))
    return error_set (err, E_NO_MEMORY, 0, "the default provider");
  if (registry_find (registry, id, &entry, err) < 0)
    return -1;
  opened = calloc (1, sizeof *opened);
  if (!opened)
    return error_set (err, E_NO_MEMORY, 0, "provider %s", id);
  pthread_mutex_init (&opened->opening, NULL);
  opened->registry = steal (registry);
  opened->entry = entry;
  opened->next = host->opened;
  host->opened = opened;
  log_event (LOG_LEVEL_INFO, "provider", "%s %s: chosen, %s", id,
             entry->manifest ? entry->manifest->version : "", why);
  *out = opened;
  return 0;
}

/* Whether the operator still means it, and it is still the same. */
static void
opened_look (const struct host *host, struct opened *opened)
{
  auto_registry struct registry *registry = NULL;
  const struct registry_entry *entry;
  const char *id = opened->entry->id;

  /* What cannot be read changes nothing. */
  if (registry_load_one (host->place, id, &registry, NULL) < 0)
    return;
  error_free (steal (opened->refused));
  if (registry_find (registry, id, &entry, &opened->refused) < 0
      || opened->replaced
      || strcmp (entry->manifest->sha256, opened->entry->manifest->sha256)
           == 0)
    return;
  opened->replaced = 1;
  log_event (LOG_LEVEL_INFO, "provider", "%s %s: %s %s is for what is made from "
             "now on", id, opened->entry->manifest->version, id,
             entry->manifest->version);
}

/* One that is open goes on as it was opened for what it has made; what has
 * changed is whether it may be used, whether another one has come in its place,
 * and which is the default. */
static void
look_locked (struct host *host)
{
  const int64_t now = coffer_now_ns ();
  struct opened *opened;
  int64_t newest;
  uint64_t stamp;

  if (!host->stamp || (host->looked_ns && now - host->looked_ns < LOOK_NS))
    return;
  stamp = registry_stamp (host->place, &newest);
  if (stamp != host->stamp) {
    for (opened = host->opened; opened; opened = opened->next)
      opened_look (host, opened);
    free (steal (host->default_provider));
  }
  host->stamp = stamp;
  host->looked_ns = now;
}

void
host_look_again (struct host *host)
{
  pthread_mutex_lock (&host->lock);
  host->looked_ns = 0;
  pthread_mutex_unlock (&host->lock);
}

static int
refused_error (const struct error *refused, struct error **err)
{
  error_set (err, refused->number, 0, "%s", error_message (refused));
  if (refused->hint)
    error_hint (err, "%s", refused->hint);
  return -1;
}

static int
opened_get_locked (struct host *host, const char *id, struct opened **out,
                   struct error **err)
{
  struct opened *opened;

  look_locked (host);
  if (!id)
    id = host->default_provider;
  for (opened = host->opened; id && opened; opened = opened->next)
    if (!opened->replaced && strcmp (opened->entry->id, id) == 0) {
      *out = opened;
      return opened->refused ? refused_error (opened->refused, err) : 0;
    }
  return opened_add_locked (host, id, out, err);
}

int
host_entry (struct host *host, const char *id, const struct opened **out,
            struct error **err)
{
  struct opened *opened = NULL;
  int bad;

  pthread_mutex_lock (&host->lock);
  bad = opened_get_locked (host, id, &opened, err);
  pthread_mutex_unlock (&host->lock);
  if (!bad)
    *out = opened;
  return bad;
}

static int
open_logged (struct host *host, const struct opened *opened,
             struct provider **out, struct error **err)
{
  /* What reads the bytes of a peer does so with a worker's rights. */
  const int here = (host->flags & HOST_IN_PROCESS)
                   && opened->entry->trust == TRUST_PACKAGED
                   && !opened->entry->held_in_worker
                   && !opened->entry->manifest->permissions.connect;
  int64_t began = coffer_now_ns ();

  if (provider_open (opened->entry, host->place,
                     here ? PROVIDER_IN_PROCESS : PROVIDER_WORKER, out, err)
      < 0)
    return -1;
  log_event (LOG_LEVEL_INFO, "provider",
             "%s: opened in %s in %.1f ms", opened->entry->id,
             here ? "this process" : "a worker of its own",
             (double) (coffer_now_ns () - began) / 1e6);
  return 0;
}

/* The first who wants it opens it, while others who want it wait. */
static int
open_once (struct host *host, struct opened *opened, struct provider **out,
           struct error **err)
{
  struct provider *provider;
  int bad = 0;

  pthread_mutex_lock (&opened->opening);
  pthread_mutex_lock (&host->lock);
  provider = opened->provider;
  pthread_mutex_unlock (&host->lock);
  if (!provider && (bad = open_logged (host, opened, &provider, err)) == 0) {
    pthread_mutex_lock (&host->lock);
    opened->provider = provider;
    pthread_mutex_unlock (&host->lock);
  }
  pthread_mutex_unlock (&opened->opening);
  if (!bad)
    *out = provider;
  return bad;
}

/* ---- one that was replaced ------------------------------------------------ */

static int
has_live_locked (const struct host *host, const struct provider *provider)
{
  const struct live *live;

  for (live = host->live; live; live = live->next)
    if (live->provider == provider)
      return 1;
  return 0;
}

/* One of which nothing is left, and has not been for a while: a sandbox that is
 * being made is not in the list yet. */
static struct opened *
retired_find_locked (const struct host *host, int64_t now)
{
  struct opened *opened;

  for (opened = host->opened; opened; opened = opened->next) {
    if (!opened->replaced || !opened->provider
        || has_live_locked (host, opened->provider)
        || !provider_is_idle (opened->provider))
      opened->idle_ns = 0;
    else if (!opened->idle_ns)
      opened->idle_ns = now;
    else if (now - opened->idle_ns >= IDLE_NS)
      return opened;
  }
  return NULL;
}

/* Its worker ends.  Whoever has a call for it nevertheless starts another one, of
 * the same bytes. */
void
host_rest_retired (struct host *host)
{
  struct opened *opened;

  pthread_mutex_lock (&host->lock);
  opened = retired_find_locked (host, coffer_now_ns ());
  if (opened)
    opened->idle_ns = 0;
  pthread_mutex_unlock (&host->lock);
  if (opened)
    provider_rest (opened->provider);
}

int
host_open_entry (struct host *host, const struct opened *opened,
                 struct provider **out, struct error **err)
{
  struct provider *provider;

  pthread_mutex_lock (&host->lock);
  provider = opened->provider;
  pthread_mutex_unlock (&host->lock);
  if (!provider)
    return open_once (host, (struct opened *) (uintptr_t) opened, out, err);
  *out = provider;
  return 0;
}

int
host_provider (struct host *host, const char *id, struct provider **out,
               struct error **err)
{
  const struct opened *opened;

  host_rest_retired (host);
  return host_entry (host, id, &opened, err) < 0
           ? -1 : host_open_entry (host, opened, out, err);
}

static struct live **
live_find_locked (struct host *host, const char *id)
{
  struct live **p;

  for (p = &host->live; *p; p = &(*p)->next)
    if (strcmp ((*p)->record->id, id) == 0)
      return p;
  return NULL;
}

struct provider *
host_former (struct host *host, const char *sandbox)
{
  struct provider *provider = NULL;
  const struct opened *opened;
  struct live **live;

  pthread_mutex_lock (&host->lock);
  look_locked (host);
  for (opened = host->opened; opened && !provider; opened = opened->next) {
    if (!opened->replaced || !opened->provider || opened->refused)
      continue;
    live = live_find_locked (host, sandbox);
    if (live && (*live)->provider == opened->provider)
      provider = opened->provider;
  }
  pthread_mutex_unlock (&host->lock);
  return provider;
}

int
host_is_todays (struct host *host, const struct provider *provider)
{
  const struct opened *opened;
  int is = 0;

  pthread_mutex_lock (&host->lock);
  look_locked (host);
  for (opened = host->opened; opened; opened = opened->next)
    is |= opened->provider == provider && !opened->replaced
          && !opened->refused;
  pthread_mutex_unlock (&host->lock);
  return is;
}

int
host_provider_of (struct host *host, const char *id, const char *sandbox,
                  struct provider **out, struct error **err)
{
  *out = host_former (host, sandbox);
  return *out ? 0 : host_provider (host, id, out, err);
}

int
provider_kill (struct provider *provider, const char *id,
               const struct provider_call *call, int *gone, struct error **err)
{
  struct error *error = NULL;

  *gone = 0;
  if (INVOKE (provider, call, &error, sandbox_kill, .sandbox = id) == 0)
    return 0;
  if (error && error->number == E_UNKNOWN_SANDBOX) {
    error_free (error);
    *gone = 1;
    return 0;
  }
  return error_move (err, error);
}

/* ---- sandboxes ----------------------------------------------------------- */

static char *
copy_text (const char *text, int *failed)
{
  char *copy = text ? strdup (text) : NULL;

  if (text && !copy)
    *failed = 1;
  return copy;
}

struct sandbox_record *
sandbox_record_copy (const struct sandbox_record *from)
{
  struct sandbox_record *copy = malloc (sizeof *copy);
  int failed = 0;

  if (!copy)
    return NULL;
  *copy = *from;
  copy->provider = copy_text (from->provider, &failed);
  copy->native_id = copy_text (from->native_id, &failed);
  copy->tenant = copy_text (from->tenant, &failed);
  copy->spec = copy_text (from->spec, &failed);
  copy->owner_where = copy_text (from->owner_where, &failed);
  if (failed) {
    sandbox_record_free (copy);
    return NULL;
  }
  return copy;
}

static void
live_free (struct live *live)
{
  coffer_fd_close (&live->lifeline);
  coffer_fd_close (&live->noted);
  coffer_fd_close (&live->template);
  sandbox_record_free (live->record);
  free (live);
}

int
host_add_live (struct host *host, struct provider *provider,
               struct sandbox_record *take_record, int take_lifeline,
               int take_noted, int take_template, struct error **err)
{
  struct live *live = malloc (sizeof *live);

  if (!live) {
    coffer_fd_close (&take_lifeline);
    coffer_fd_close (&take_noted);
    coffer_fd_close (&take_template);
    sandbox_record_free (take_record);
    return error_set (err, E_NO_MEMORY, 0, "a sandbox");
  }
  live->record = take_record;
  live->provider = provider;
  live->lifeline = take_lifeline;
  live->noted = take_noted;
  live->template = take_template;
  pthread_mutex_lock (&host->lock);
  live->next = host->live;
  host->live = live;
  pthread_mutex_unlock (&host->lock);
  return 0;
}

int
host_find (struct host *host, const char *id, struct sandbox_record **out,
           struct error **err)
{
  struct sandbox_record *record = NULL;
  struct live **live;

  if (!sandbox_id_valid (id))
    return error_set (err, E_UNKNOWN_SANDBOX, 0, "no sandbox %s", id);
  pthread_mutex_lock (&host->lock);
  live = live_find_locked (host, id);
  if (live)
    record = sandbox_record_copy ((*live)->record);
  pthread_mutex_unlock (&host->lock);
  if (live && !record)
    return error_set (err, E_NO_MEMORY, 0, "the record of %s", id);
  if (!live && runs_find (host->place, id, &record, err) < 0)
    return -1;
  if (!record && host_records (host)
      && records_find (host_records (host), id, &record, err) < 0)
    return -1;
  if (!record)
    return error_set (err, E_UNKNOWN_SANDBOX, 0, "no sandbox %s", id);
  *out = record;
  return 0;
}

int
sandbox_check_tenant (struct host *host, const char *id, const char *tenant,
                      struct error **err)
{
  auto_sandbox_record struct sandbox_record *record = NULL;

  if (host_find (host, id, &record, err) < 0)
    return -1;
  if (strcmp (record->tenant, tenant) != 0 || run_is_own (record))
    return error_set (err, E_UNKNOWN_SANDBOX, 0, "no sandbox %s", id);
  return 0;
}

int
host_reach (struct host *host, const char *id, struct sandbox_record **record,
            struct provider **provider, struct error **err)
{
  auto_sandbox_record struct sandbox_record *found = NULL;

  if (host_find (host, id, &found, err) < 0
      || host_provider_of (host, found->provider, id, provider, err) < 0)
    return -1;
  *record = steal (found);
  return 0;
}

int
host_forget (struct host *host, const char *id, struct error **err)
{
  struct live **p, *live = NULL;

  pthread_mutex_lock (&host->lock);
  p = live_find_locked (host, id);
  if (p) {
    live = *p;
    *p = live->next;
    if (live->noted >= 0)
      run_drop (host->place, id);
    live_free (live);
  }
  pthread_mutex_unlock (&host->lock);
  if (!host_records (host))
    return 0;
  return records_delete (host_records (host), id, err);
}

/* What is ephemeral ends here in an orderly way; the lifeline would end it
 * anyway, but not its row. */
static void
close_live (struct host *host)
{
  struct live *live, *next;

  for (live = host->live; live; live = next) {
    auto_error struct error *error = NULL;
    struct provider_call call = call_in (CLOSE_KILL_MS, -1);
    int gone;

    next = live->next;
    if (live->lifeline >= 0) {
      if (provider_kill (live->provider, live->record->id, &call, &gone,
                         &error) == 0) {
        if (live->noted >= 0)
          run_drop (host->place, live->record->id);
        log_event (LOG_LEVEL_INFO, "sandbox", "%s: ended, with all that ran",
                   live->record->id);
      } else
        log_event (LOG_LEVEL_WARNING, "sandbox", "%s: left to the next start:"
                   " %s", live->record->id, error_message (error));
    }
    live_free (live);
  }
  host->live = NULL;
}

void
host_close (struct host *host)
{
  struct opened *opened, *next;

  if (!host)
    return;
  ready_free (host->ready);
  close_live (host);
  /* Not when somebody waits for this process to go away. */
  if (host->pid == getpid () && !host->clean && !sandbox_signal_caught ())
    host_sweep (host, NULL);
  for (opened = host->opened; opened; opened = next) {
    next = opened->next;
    provider_close (opened->provider);
    pthread_mutex_destroy (&opened->opening);
    registry_free (opened->registry);
    error_free (opened->refused);
    free (opened);
  }
  records_close (host_records (host));
  pthread_mutex_destroy (&host->lock);
  free (host->default_provider);
  free (host);
}
