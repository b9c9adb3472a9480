/* SPDX-License-Identifier: Apache-2.0 */
/* What earlier processes left behind, the list, and pruning.
 *
 * What is ephemeral has a file (runs.h), all else a row.  A file without a
 * living owner is what that left.  A row is judged by its state and its owner.  A dead owner means that the
 * sandbox was ephemeral, or that its creation never finished and nobody was
 * told its id: either is killed through the provider, which succeeds when
 * nothing is there, and the row goes.  A creation whose owner lives but whose
 * deadline has long passed is looked up: adopted when it is there.
 *
 * A process that dies while a sandbox is made for it may leave a worker that
 * is not through yet and makes something after the kill.  So such a row stays
 * for a moment, `stopping`, and is killed once more before it goes. */

#include "config.h"

#include <string.h>
#include <time.h>

#include <coffer/fd.h>

#include "base/log.h"
#include "sandbox/host.h"
#include "sandbox/info.h"
#include "sandbox/runs.h"

#define SWEEP_CALL_MS 10000
/* How long the worker of a dead process may still be at it. */
#define AFTERMATH_NS 2000000000LL

/* What became of rows, for prune's report; NULL members: not wanted. */
struct sweep {
  struct host *host;
  int again;                    /* also what has failed once */
  int pending;                  /* rows that stay for a moment */
  json_t *killed, *dropped, *kept;
};

static void
note (json_t *list, const char *id)
{
  if (list)
    json_array_append_new (list, json_string (id));
}

static void
keep (struct sweep *sweep, const struct sandbox_record *record,
      struct error *take_error)
{
  auto_error struct error *error = take_error;
  json_t *entry;

  log_event (LOG_LEVEL_WARNING, "sandbox", "%s (provider %s) cannot be cleaned"
             " up yet: %s", record->id, record->provider,
             error_message (error));
  if (!sweep->kept)
    return;
  entry = json_object ();
  json_object_set_new (entry, "id", json_string (record->id));
  json_object_set_new (entry, "reason", json_string (error_message (error)));
  json_array_append_new (sweep->kept, entry);
}

/* Kills through its provider. */
static int
end (struct sweep *sweep, const struct sandbox_record *record, int *gone,
     struct error **err)
{
  struct provider_call call = call_in (SWEEP_CALL_MS, -1);
  struct provider *provider;

  *gone = 0;
  if (host_provider_of (sweep->host, record->provider, record->id, &provider,
                        err) < 0)
    return -1;
  return provider_kill (provider, record->id, &call, gone, err);
}

static void
ended (struct sweep *sweep, const struct sandbox_record *record, int gone)
{
  log_event (LOG_LEVEL_INFO, "sandbox", "%s was left behind: %s", record->id,
             gone ? "its record is dropped" : "killed");
  note (gone ? sweep->dropped : sweep->killed, record->id);
}

/* Kills and drops the row. */
static void
finish (struct sweep *sweep, struct sandbox_record *record)
{
  struct host *host = sweep->host;
  struct error *error = NULL;
  int gone;

  if (end (sweep, record, &gone, &error) < 0) {
    if (record->state != SANDBOX_LOST) {
      record->state = SANDBOX_LOST;
      records_update (host_records (host), record, NULL);
    }
    keep (sweep, record, error);
    return;
  }
  if (host_forget (host, record->id, &error) < 0)
    keep (sweep, record, error);
  else
    ended (sweep, record, gone);
}

/* The first of the two kills of a creation that was cut short. */
static void
begin_finish (struct sweep *sweep, struct sandbox_record *record)
{
  struct error *error = NULL;
  int gone;

  record->state = SANDBOX_STOPPING;
  record->deadline_ns = coffer_realtime_ns () + AFTERMATH_NS;
  if (end (sweep, record, &gone, &error) < 0
      || records_update (host_records (sweep->host), record, &error) < 0)
    keep (sweep, record, error);
  else
    sweep->pending++;
}

/* Is it too early for the second?  A clock that was set back does not hold it
 * up for longer. */
static int
in_aftermath (const struct sandbox_record *record)
{
  int64_t left = record->deadline_ns - coffer_realtime_ns ();

  return record->state == SANDBOX_STOPPING && left > 0 && left <= AFTERMATH_NS;
}

/* Asks the provider.  1: it is there, with *info; 0: it is not; -1. */
static int
look_up (struct host *host, const struct sandbox_record *record,
         struct info_sink *sink, struct error **err)
{
  struct provider_call base = call_in (SWEEP_CALL_MS, -1);
  struct provider_call call = info_call (sink, &base);
  struct provider *provider;
  struct error *error = NULL;
  const char *state;

  if (host_provider_of (host, record->provider, record->id, &provider, err)
      < 0)
    return -1;
  if (INVOKE (provider, &call, &error, sandbox_info, .sandbox = record->id)
      < 0) {
    if (!error || error->number != E_UNKNOWN_SANDBOX)
      return error_move (err, error);
    error_free (error);
    return 0;
  }
  state = json_string_value (
    json_object_get (json_array_get (sink->infos, 0), "state"));
  return !state || strcmp (state, "gone") != 0;
}

/* A creation that should have ended by now, by a process that still lives. */
static void
adopt_or_drop (struct sweep *sweep, struct sandbox_record *record)
{
  auto_info_sink struct info_sink sink;
  struct error *error = NULL;
  int there;

  info_sink_init (&sink);
  there = look_up (sweep->host, record, &sink, &error);
  if (there == 0) {
    finish (sweep, record);
    return;
  }
  if (there > 0) {
    record->state = SANDBOX_RUNNING;
    record->deadline_ns = 0;
    record->expires_ns = sink.expires_ns;
    free (record->native_id);
    record->native_id = steal (sink.native_id);
    record->owner_pid = record->owner_start = 0;
    if (records_update (host_records (sweep->host), record, &error) == 0)
      return;
  }
  keep (sweep, record, error);
}

static int
is_own (struct host *host, const char *id)
{
  struct live *live;
  int found = 0;

  pthread_mutex_lock (&host->lock);
  for (live = host->live; live && !found; live = live->next)
    found = strcmp (live->record->id, id) == 0;
  pthread_mutex_unlock (&host->lock);
  return found;
}

static enum owner_state
row_owner (struct host *host, const struct sandbox_record *record)
{
  const struct owner *self = host_owner (host, NULL);

  return self ? owner_check (self, record->owner_pid, record->owner_start,
                             record->owner_where)
              : OWNER_UNKNOWN;
}

static void
sweep_row (struct sweep *sweep, struct sandbox_record *record)
{
  struct host *host = sweep->host;
  enum owner_state owner = OWNER_DEAD;

  if (is_own (host, record->id)
      || (record->state == SANDBOX_LOST && !sweep->again))
    return;
  if (record->owner_pid)
    owner = row_owner (host, record);
  if (owner == OWNER_DEAD && record->state == SANDBOX_CREATING)
    begin_finish (sweep, record);
  else if (in_aftermath (record))
    sweep->pending++;
  else if (owner == OWNER_DEAD
           || (owner == OWNER_ALIVE && record->state == SANDBOX_LOST))
    finish (sweep, record);
  else if (record->state == SANDBOX_CREATING && record->deadline_ns
           && record->deadline_ns < coffer_realtime_ns ())
    adopt_or_drop (sweep, record);
}

/* The file of an ephemeral one whose owner is dead. */
static enum run_fate
sweep_run (void *data, struct sandbox_record *record)
{
  struct sweep *sweep = data;
  struct error *error = NULL;
  int cut_short = record->state == SANDBOX_CREATING, gone;

  if (record->state == SANDBOX_LOST && !sweep->again)
    return RUN_KEEP;
  if (in_aftermath (record)) {
    sweep->pending++;
    return RUN_KEEP;
  }
  if (end (sweep, record, &gone, &error) < 0) {
    record->state = SANDBOX_LOST;
    keep (sweep, record, error);
    return RUN_KEEP;
  }
  if (cut_short) {
    record->state = SANDBOX_STOPPING;
    record->deadline_ns = coffer_realtime_ns () + AFTERMATH_NS;
    sweep->pending++;
    return RUN_KEEP;
  }
  ended (sweep, record, gone);
  return RUN_DROP;
}

static int
sweep_all (struct sweep *sweep, struct error **err)
{
  auto_record_list struct record_list list = { 0, NULL };
  size_t i;

  if (runs_visit_dead (sweep->host->place, sweep_run, sweep, err) < 0)
    return -1;
  if (!host_records (sweep->host))
    return 0;
  if (records_list (host_records (sweep->host), RECORDS_UNSETTLED, &list, err)
      < 0)
    return -1;
  for (i = 0; i < list.count; i++)
    sweep_row (sweep, list.items[i]);
  return 0;
}

int
host_sweep (struct host *host, struct error **err)
{
  struct sweep sweep = { .host = host };

  return sweep_all (&sweep, err);
}

static enum run_fate
note_dead (void *data, struct sandbox_record *record)
{
  (void) record;
  *(int *) data = 1;
  return RUN_KEEP;
}

void
host_sweep_soon (struct host *host)
{
  int found = 0;

  if (host->flags & HOST_EPHEMERAL)
    host->clean = runs_visit_dead (host->place, note_dead, &found, NULL) == 0
                  && !found;
}

/* ---- settled rows against what providers say ----------------------------- */

/* What one provider lists, asked once. */
struct listing {
  struct listing *next;
  char *provider;
  struct provider *former;      /* that they are of; NULL: today's */
  json_t *infos;                /* NULL: it could not be asked */
  struct error *error;
};

static void
listings_free (struct listing *listings)
{
  struct listing *next;

  for (; listings; listings = next) {
    next = listings->next;
    json_decref (listings->infos);
    error_free (listings->error);
    free (listings->provider);
    free (listings);
  }
}
DEFINE_CLEANUP (struct listing *, listings_free, auto_listings)

static void
listing_ask (struct host *host, struct listing *listing)
{
  auto_info_sink struct info_sink sink;
  struct provider_call base = call_in (SWEEP_CALL_MS, -1);
  struct provider_call call;
  struct provider *provider = listing->former;

  info_sink_init (&sink);
  call = info_call (&sink, &base);
  if ((provider
       || host_provider (host, listing->provider, &provider, &listing->error)
            == 0)
      && INVOKE (provider, &call, &listing->error, sandbox_list) == 0)
    listing->infos = json_incref (sink.infos);
}

static struct listing *
listing_of (struct host *host, const struct sandbox_record *record,
            struct listing **all)
{
  struct provider *former = host_former (host, record->id);
  struct listing *listing;

  for (listing = *all; listing; listing = listing->next)
    if (listing->former == former
        && strcmp (listing->provider, record->provider) == 0)
      return listing;
  listing = calloc (1, sizeof *listing);
  if (!listing)
    return NULL;
  listing->former = former;
  listing->provider = strdup (record->provider);
  if (!listing->provider) {
    free (listing);
    return NULL;
  }
  listing_ask (host, listing);
  listing->next = *all;
  *all = listing;
  return listing;
}

/* The provider's word on one sandbox (borrowed), or NULL. */
static json_t *
listed (const struct listing *listing, const char *id)
{
  json_t *info;
  size_t i;

  json_array_foreach (listing->infos, i, info) {
    const char *seen = json_string_value (json_object_get (info, "id"));
    const char *state = json_string_value (json_object_get (info, "state"));

    if (seen && strcmp (seen, id) == 0
        && !(state && strcmp (state, "gone") == 0))
      return info;
  }
  return NULL;
}

/* A durable sandbox that its provider does not list.  Lists of services lag,
 * so its own word decides before the row goes. */
static int
is_gone (struct host *host, const struct sandbox_record *record)
{
  auto_info_sink struct info_sink sink;
  int there;

  info_sink_init (&sink);
  there = look_up (host, record, &sink, NULL);
  return there == 0;
}

static json_t *
row_json (const struct sandbox_record *record, json_t *info, int reachable)
{
  json_t *row = json_object (), *state = json_object_get (info, "state");
  json_t *expires = json_object_get (info, "expires_ns");

  json_object_set_new (row, "id", json_string (record->id));
  json_object_set_new (row, "provider", json_string (record->provider));
  if (reachable && state)
    json_object_set (row, "state", state);
  else
    json_object_set_new (row, "state", json_string (
      reachable ? sandbox_state_name (record->state) : "lost"));
  json_object_set_new (row, "created_ns", json_integer (record->created_ns));
  if (expires)
    json_object_set (row, "expires_ns", expires);
  else if (record->expires_ns)
    json_object_set_new (row, "expires_ns",
                         json_integer (record->expires_ns));
  json_object_set_new (row, "ephemeral",
                       json_boolean (record->owner_pid != 0));
  return row;
}

static int
list_row (struct host *host, const struct sandbox_record *record,
          struct listing **listings, json_t *out, struct error **err)
{
  struct listing *listing;
  json_t *info = NULL;

  /* Dead, and only kept to be killed once more. */
  if (record->state == SANDBOX_STOPPING)
    return 0;
  /* Held by a process that lives: its provider there knows, not ours. */
  if (record->owner_pid == 0) {
    listing = listing_of (host, record, listings);
    if (!listing)
      return error_set (err, E_NO_MEMORY, 0, "the list");
    if (!listing->infos) {
      log_event (LOG_LEVEL_WARNING, "sandbox", "provider %s cannot list: %s",
                 record->provider, error_message (listing->error));
      json_array_append_new (out, row_json (record, NULL, 0));
      return 0;
    }
    info = listed (listing, record->id);
    if (!info && record->state != SANDBOX_CREATING && is_gone (host, record))
      return host_forget (host, record->id, err);
  }
  json_array_append_new (out, row_json (record, info, 1));
  return 0;
}

/* Each of them is among what the sandbox was made with. */
static int
metadata_fits (const char *const *wanted, const char *spec_text)
{
  auto_json json_t *spec = NULL;
  json_t *item;
  size_t i;

  if (!wanted || !wanted[0])
    return 1;
  if (json_parse (spec_text, strlen (spec_text), &spec, NULL) < 0)
    return 0;
  for (; *wanted; wanted++) {
    int found = 0;

    json_array_foreach (json_object_get (spec, "metadata"), i, item)
      found |= json_is_string (item)
               && strcmp (json_string_value (item), *wanted) == 0;
    if (!found)
      return 0;
  }
  return 1;
}

/* What can be told without asking anybody. */
static int
record_fits (const struct sandbox_filter *filter,
             const struct sandbox_record *record)
{
  return (!filter->tenant || (strcmp (filter->tenant, record->tenant) == 0
                              && !run_is_own (record)))
         && (!filter->provider
             || strcmp (filter->provider, record->provider) == 0)
         && (!filter->after || strcmp (filter->after, record->id) < 0)
         && metadata_fits (filter->metadata, record->spec);
}

/* list_row, unless its state is another than is wanted. */
static int
select_row (struct host *host, const struct sandbox_filter *filter,
            const struct sandbox_record *record, struct listing **listings,
            json_t *out, struct error **err)
{
  size_t before = json_array_size (out);
  const char *state;

  if (list_row (host, record, listings, out, err) < 0)
    return -1;
  if (!filter->state || json_array_size (out) == before)
    return 0;
  state = json_string_value (json_object_get (json_array_get (out, before),
                                              "state"));
  if (!state || strcmp (state, filter->state) != 0)
    json_array_remove (out, before);
  return 0;
}

/* Records and what is ephemeral are two lists. */
static int
record_order (const void *a, const void *b)
{
  const struct sandbox_record *const *x = a, *const *y = b;

  return strcmp ((*x)->id, (*y)->id);
}

int
sandbox_select (struct host *host, const struct sandbox_filter *filter,
                json_t **out, int *more, struct error **err)
{
  auto_record_list struct record_list list = { 0, NULL };
  CLEANUP (auto_listings) struct listing *listings = NULL;
  auto_json json_t *rows = json_array ();
  size_t i;

  if (!host_records (host))
    return error_set (err, E_RECORDS, 0, "there are no records to list");
  if (host_sweep (host, err) < 0
      || records_list (host_records (host), RECORDS_ALL, &list, err) < 0
      || runs_list (host->place, &list, err) < 0)
    return -1;
  if (filter->limit && list.count)
    qsort (list.items, list.count, sizeof *list.items, record_order);
  /* One more than is wanted says that there are more. */
  for (i = 0; i < list.count
              && (!filter->limit || json_array_size (rows) <= filter->limit);
       i++)
    if (record_fits (filter, list.items[i])
        && select_row (host, filter, list.items[i], &listings, rows, err) < 0)
      return -1;
  *more = filter->limit && json_array_size (rows) > filter->limit;
  if (*more)
    json_array_remove (rows, filter->limit);
  *out = json_incref (rows);
  return 0;
}

int
sandbox_list (struct host *host, json_t **out, struct error **err)
{
  const struct sandbox_filter all = { 0 };
  int more;

  return sandbox_select (host, &all, out, &more, err);
}

static void
prune_row (struct sweep *sweep, struct sandbox_record *record)
{
  struct error *error = NULL;

  /* Owned: sweep_rows has judged it, except one whose owner cannot be seen
   * from here; of that the provider must know. */
  if (record->owner_pid != 0
      && row_owner (sweep->host, record) != OWNER_UNKNOWN)
    return;
  if (record->expires_ns && record->expires_ns < coffer_realtime_ns ()) {
    finish (sweep, record);
  } else if (is_gone (sweep->host, record)) {
    if (host_forget (sweep->host, record->id, &error) < 0)
      keep (sweep, record, error);
    else
      note (sweep->dropped, record->id);
  }
}

int
sandbox_prune (struct host *host, json_t **out, struct error **err)
{
  auto_record_list struct record_list list = { 0, NULL };
  auto_json json_t *report = json_object ();
  const struct timespec aftermath = { AFTERMATH_NS / 1000000000,
                                      50000000 };
  struct sweep sweep = { .host = host, .again = 1, .killed = json_array (),
                         .dropped = json_array (), .kept = json_array () };
  size_t i;

  json_object_set_new (report, "killed", sweep.killed);
  json_object_set_new (report, "dropped", sweep.dropped);
  json_object_set_new (report, "kept", sweep.kept);
  if (!host_records (host))
    return error_set (err, E_RECORDS, 0, "there are no records to prune");
  if (sweep_all (&sweep, err) < 0)
    return -1;
  if (sweep.pending) {
    nanosleep (&aftermath, NULL);
    if (sweep_all (&sweep, err) < 0)
      return -1;
  }
  if (records_list (host_records (host), RECORDS_ALL, &list, err) < 0)
    return -1;
  for (i = 0; i < list.count; i++)
    prune_row (&sweep, list.items[i]);
  host_rest_retired (host);
  *out = json_incref (report);
  return 0;
}
