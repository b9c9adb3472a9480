/* SPDX-License-Identifier: Apache-2.0 */
/* Sandboxes made ahead: see ready.h.  One thread makes and ends them; who takes
 * one when there is none makes its own, so that nobody waits for the thread. */

#include "config.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include <coffer/fd.h>

#include "base/json.h"
#include "base/log.h"
#include "policy/profile.h"
#include "sandbox/host.h"
#include "sandbox/ready.h"

#define KINDS_MOST 8
#define IDLE_NS INT64_C (60000000000)
#define CALM_NS INT64_C (10000000000)   /* then one is enough */
#define TAKEN_BEFORE 2          /* until any is made ahead */
#define MAKE_MS 20000
#define KILL_MS 10000
#define PAUSE_NS INT64_C (5000000000)   /* after one that could not be made */
/* What waits inside has the layout of its interpreter's memory, and that one is
 * not for ever either. */
#define WAITS_NS INT64_C (180000000000)

struct made {
  struct made *next;
  int waits;                    /* a copy of an interpreter, inside */
  struct sandbox_record *record;
  json_t *applied;
};

/* Requests of one provider and profile. */
struct kind {
  struct kind *next;
  char *provider, *tenant;      /* NULL: the default */
  char *profile;
  char *warm;                   /* a handle; NULL: none */
  int isolated;
  json_t *values;               /* as those were made: see values_now */
  struct made *made;
  unsigned count, taken, wanted;
  int64_t last_ns, not_before_ns;
};

struct ready {
  struct host *host;
  unsigned most;
  pthread_mutex_t lock;         /* all below */
  pthread_cond_t wake;
  pthread_t thread;
  struct kind *kinds;
  struct made *old;             /* to be ended */
  int ending;
};

static void
made_free (struct made *made)
{
  sandbox_record_free (made->record);
  json_decref (made->applied);
  free (made);
}

static void
kind_free (struct kind *kind)
{
  free (kind->provider);
  free (kind->tenant);
  free (kind->profile);
  free (kind->warm);
  json_decref (kind->values);
  free (kind);
}

/* ---- kinds, with the lock held ------------------------------------------ */

static int
same_text (const char *a, const char *b)
{
  return a && b ? strcmp (a, b) == 0 : a == b;
}

static struct kind *
kind_find_locked (struct ready *ready, const struct sandbox_request *request)
{
  struct kind *kind;

  for (kind = ready->kinds; kind; kind = kind->next)
    if (same_text (kind->provider, request->provider)
        && same_text (kind->tenant, request->tenant)
        && same_text (kind->profile, request->profile)
        && kind->isolated == request->isolated)
      return kind;
  return NULL;
}

/* What was made of it, but so many, is for the thread to end. */
static void
kind_cut_locked (struct ready *ready, struct kind *kind, unsigned keep)
{
  struct made *made;

  while (kind->count > keep) {
    made = kind->made;
    kind->made = made->next;
    made->next = ready->old;
    ready->old = made;
    kind->count--;
  }
}

static struct kind *
kind_new_locked (struct ready *ready, const struct sandbox_request *request)
{
  struct kind *kind;
  unsigned n = 0;

  for (kind = ready->kinds; kind; kind = kind->next)
    n++;
  kind = n < KINDS_MOST ? calloc (1, sizeof *kind) : NULL;
  if (!kind)
    return NULL;
  kind->provider = request->provider ? strdup (request->provider) : NULL;
  kind->tenant = request->tenant ? strdup (request->tenant) : NULL;
  kind->profile = strdup (request->profile);
  kind->isolated = request->isolated;
  if (!kind->profile || (request->provider && !kind->provider)
      || (request->tenant && !kind->tenant)) {
    kind_free (kind);
    return NULL;
  }
  kind->next = ready->kinds;
  ready->kinds = kind;
  return kind;
}

static void
kind_renew_locked (struct ready *ready, struct kind *kind, json_t *values)
{
  if (kind->values && json_equal (kind->values, values))
    return;
  if (kind->values)
    kind_cut_locked (ready, kind, 0);
  json_decref (kind->values);
  kind->values = json_incref (values);
}

/* Half of its life is over: whoever got it might see it end. */
static int
is_old (const struct made *made, int64_t now)
{
  const struct sandbox_record *record = made->record;

  if (made->waits && now - record->created_ns >= WAITS_NS)
    return 1;
  return record->expires_ns != 0
         && record->expires_ns - now
              < (record->expires_ns - record->created_ns) / 2;
}

/* The last that was made is taken first, so that what lies below it grows old
 * where there is always another. */
static void
old_drop_locked (struct ready *ready, struct kind *kind)
{
  const int64_t now = coffer_realtime_ns ();
  struct made **at = &kind->made, *made;

  while ((made = *at)) {
    if (!is_old (made, now)) {
      at = &made->next;
      continue;
    }
    *at = made->next;
    made->next = ready->old;
    ready->old = made;
    kind->count--;
  }
}

/* One more for each time that there was none; fewer again with time. */
static struct made *
kind_take_locked (struct ready *ready, struct kind *kind)
{
  struct made *made;

  old_drop_locked (ready, kind);
  made = kind->made;
  kind->last_ns = coffer_now_ns ();
  if (kind->taken < TAKEN_BEFORE)
    kind->wanted = ++kind->taken == TAKEN_BEFORE;
  else if (!made && kind->wanted < ready->most)
    kind->wanted++;
  if (made) {
    kind->made = made->next;
    kind->count--;
  }
  pthread_cond_signal (&ready->wake);
  return made;
}

/* ---- the thread --------------------------------------------------------- */

static void
made_end (struct ready *ready, struct made *made)
{
  const struct provider_call call = call_in (KILL_MS, -1);
  auto_error struct error *error = NULL;
  int gone;

  if (sandbox_kill (ready->host, made->record->provider, made->record->id,
                    &call, &gone, &error) < 0)
    log_event (LOG_LEVEL_WARNING, "ready", "%s: %s", made->record->id,
               error_message (error));
  made_free (made);
}

static struct made *
made_new (struct ready *ready, const struct kind *kind, const char *warm)
{
  const struct sandbox_request request
    = { .provider = kind->provider, .tenant = kind->tenant,
        .profile = kind->profile, .isolated = kind->isolated, .ephemeral = 1,
        .single_exec = 1, .warm = warm };
  const struct provider_call call = call_in (MAKE_MS, -1);
  auto_error struct error *error = NULL;
  struct made *made = calloc (1, sizeof *made);

  if (made
      && sandbox_create (ready->host, &request, &call, &made->record,
                         &made->applied, &error) == 0) {
    made->waits = warm != NULL;
    return made;
  }
  log_event (LOG_LEVEL_WARNING, "ready", "none is made ahead for profile %s: "
             "%s", kind->profile, error ? error_message (error) : "out of memory");
  free (made);
  return NULL;
}

/* The kind is there still when it has been made: none is taken away but by this
 * thread. */
static void
kind_fill_locked (struct ready *ready, struct kind *kind)
{
  json_t *values = json_incref (kind->values);
  auto_free char *warm = kind->warm ? strdup (kind->warm) : NULL;
  struct made *made;

  pthread_mutex_unlock (&ready->lock);
  made = made_new (ready, kind, warm);
  pthread_mutex_lock (&ready->lock);
  if (!made) {
    kind->not_before_ns = coffer_now_ns () + PAUSE_NS;
  } else if (values != kind->values) {
    /* Of a profile that has become another meanwhile. */
    made->next = ready->old;
    ready->old = made;
  } else {
    made->next = kind->made;
    kind->made = made;
    kind->count++;
  }
  json_decref (values);
}

static struct kind *
kind_due_locked (const struct ready *ready, int64_t now)
{
  struct kind *kind;

  for (kind = ready->kinds; kind; kind = kind->next)
    if (kind->taken >= TAKEN_BEFORE && kind->count < kind->wanted
        && now >= kind->not_before_ns)
      return kind;
  return NULL;
}

static void
idle_drop_locked (struct ready *ready, int64_t now)
{
  struct kind **at = &ready->kinds, *kind;

  while ((kind = *at)) {
    if (now - kind->last_ns >= CALM_NS && kind->wanted > 1) {
      kind->wanted = 1;
      kind_cut_locked (ready, kind, 1);
    }
    old_drop_locked (ready, kind);
    if (now - kind->last_ns < IDLE_NS) {
      at = &kind->next;
      continue;
    }
    kind_cut_locked (ready, kind, 0);
    *at = kind->next;
    kind_free (kind);
  }
}

/* Until somebody takes one, or one has been idle for long. */
static void
rest_locked (struct ready *ready, int64_t now)
{
  const int64_t until_ns = now + (ready->kinds ? PAUSE_NS : IDLE_NS);
  const struct timespec until
    = { .tv_sec = until_ns / 1000000000, .tv_nsec = until_ns % 1000000000 };

  pthread_cond_timedwait (&ready->wake, &ready->lock, &until);
}

static void *
ready_thread (void *data)
{
  struct ready *ready = data;
  struct made *made;
  struct kind *kind;
  int64_t now;

  pthread_mutex_lock (&ready->lock);
  while (!ready->ending) {
    now = coffer_now_ns ();
    idle_drop_locked (ready, now);
    if ((kind = kind_due_locked (ready, now))) {
      kind_fill_locked (ready, kind);
    } else if ((made = ready->old)) {
      ready->old = made->next;
      pthread_mutex_unlock (&ready->lock);
      made_end (ready, made);
      pthread_mutex_lock (&ready->lock);
    } else
      rest_locked (ready, now);
  }
  pthread_mutex_unlock (&ready->lock);
  return NULL;
}

static int
thread_begin (struct ready *ready)
{
  sigset_t all, old;
  int code;

  /* Signals are for who began this. */
  sigfillset (&all);
  pthread_sigmask (SIG_SETMASK, &all, &old);
  code = pthread_create (&ready->thread, NULL, ready_thread, ready);
  pthread_sigmask (SIG_SETMASK, &old, NULL);
  return code;
}

static struct ready *
ready_new (struct host *host, unsigned most)
{
  struct ready *ready = calloc (1, sizeof *ready);
  pthread_condattr_t attr;

  if (!ready)
    return NULL;
  ready->host = host;
  ready->most = most;
  pthread_mutex_init (&ready->lock, NULL);
  pthread_condattr_init (&attr);
  pthread_condattr_setclock (&attr, CLOCK_MONOTONIC);
  pthread_cond_init (&ready->wake, &attr);
  pthread_condattr_destroy (&attr);
  if (thread_begin (ready) == 0)
    return ready;
  pthread_cond_destroy (&ready->wake);
  pthread_mutex_destroy (&ready->lock);
  free (ready);
  return NULL;
}

int
host_ready_begin (struct host *host, unsigned most, struct error **err)
{
  struct ready *ready;

  pthread_mutex_lock (&host->lock);
  ready = host->ready;
  if (!ready)
    ready = host->ready = ready_new (host, most);
  pthread_mutex_unlock (&host->lock);
  return ready ? 0 : error_set (err, E_NO_MEMORY, 0, "sandboxes made ahead");
}

void
ready_free (struct ready *ready)
{
  struct kind *kind;
  struct made *made;

  if (!ready)
    return;
  pthread_mutex_lock (&ready->lock);
  ready->ending = 1;
  pthread_cond_signal (&ready->wake);
  pthread_mutex_unlock (&ready->lock);
  pthread_join (ready->thread, NULL);
  while ((kind = ready->kinds)) {
    ready->kinds = kind->next;
    kind_cut_locked (ready, kind, 0);
    kind_free (kind);
  }
  while ((made = ready->old)) {
    ready->old = made->next;
    made_free (made);
  }
  pthread_cond_destroy (&ready->wake);
  pthread_mutex_destroy (&ready->lock);
  free (ready);
}

/* ---- taking ------------------------------------------------------------- */

/* Names a profile, and nothing else of its own. */
static int
request_is_plain (const struct sandbox_request *request)
{
  return request->profile && request->ephemeral && request->single_exec
         && !request->no_facts && !request->warm && !request->template_name
         && !request->image
         && !request->workdir && !request->user && !request->network
         && !request->env && !request->allow && !request->ports
         && !request->metadata && request->n_mounts == 0
         && !request->memory_bytes && !request->disk_bytes
         && !request->inodes && !request->ttl_ms && !request->cpu_millis
         && !request->pids && !request->accept && !request->filter
         && !request->require && !request->address_bytes
         && !request->file_bytes && !request->open_files
         && !request->root_writable && !request->host_network
         && !request->timeout_ms && !request->asked_timeout_ms;
}

/* The profile as it is now, and which provider it is for; NULL: they cannot be
 * read, which is for the maker of a sandbox to say. */
static json_t *
values_now (struct host *host, const struct sandbox_request *request)
{
  auto_profile struct profile *profile = NULL;
  auto_error struct error *error = NULL;
  const struct opened *opened;
  json_t *values;

  if (profile_find (host->place, request->profile, &profile, &error) < 0
      || host_entry (host, request->provider, &opened, &error) < 0)
    return NULL;
  values = profile_to_json (profile);
  if (values)
    json_object_set_new (values, "manifest",
                         json_string (opened->entry->manifest->sha256));
  return values;
}

/* Its life would begin before it is asked for, and end before that. */
static int
has_ttl (const json_t *values)
{
  return json_object_get (json_object_get (values, "values"),
                          profile_json_key (PROFILE_TTL)) != NULL;
}

static struct made *
made_take (struct host *host, const struct sandbox_request *request)
{
  struct ready *ready = host->ready;
  json_t *values = values_now (host, request);
  struct made *made = NULL;
  struct kind *kind;

  if (!values || has_ttl (values)) {
    json_decref (values);
    return NULL;
  }
  pthread_mutex_lock (&ready->lock);
  kind = kind_find_locked (ready, request);
  if (!kind)
    kind = kind_new_locked (ready, request);
  if (kind) {
    kind_renew_locked (ready, kind, values);
    made = kind_take_locked (ready, kind);
  }
  /* A kind may have it too, and others count its references. */
  json_decref (values);
  pthread_mutex_unlock (&ready->lock);
  return made;
}

int
ready_take (struct host *host, const struct sandbox_request *request,
            const struct provider_call *call, struct sandbox_record **out,
            json_t **applied, struct error **err)
{
  struct made *made = NULL;

  if (host->ready && request_is_plain (request))
    made = made_take (host, request);
  if (!made)
    return sandbox_create (host, request, call, out, applied, err);
  *out = steal (made->record);
  if (applied)
    *applied = steal (made->applied);
  made_free (made);
  return 0;
}

void
ready_warm (struct host *host, const struct sandbox_request *request,
            const char *handle)
{
  struct ready *ready = host->ready;
  struct kind *kind;

  if (!ready)
    return;
  pthread_mutex_lock (&ready->lock);
  kind = kind_find_locked (ready, request);
  if (kind && !same_text (kind->warm, handle)) {
    free (kind->warm);
    kind->warm = handle ? strdup (handle) : NULL;
  }
  pthread_mutex_unlock (&ready->lock);
}

unsigned
host_ready_count (struct host *host)
{
  struct kind *kind;
  unsigned n = 0;

  if (!host->ready)
    return 0;
  pthread_mutex_lock (&host->ready->lock);
  for (kind = host->ready->kinds; kind; kind = kind->next)
    n += kind->count;
  pthread_mutex_unlock (&host->ready->lock);
  return n;
}
