/* SPDX-License-Identifier: Apache-2.0 */
/* Making, finding, ending sessions.  A session that is being made or ended
 * keeps its name; whoever wants that waits, and others never do. */

#include <config.h>

#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/log.h"
#include "base/text.h"
#include "sandbox/host.h"
#include "server/box/processes.h"
#include "server/box/sessions.h"
#include "server/observe.h"
#include "server/server.h"

#define LOOK_NS INT64_C (200000000)     /* at a client that may have gone */
#define KILL_MS 20000
#define MAKE_MS 60000

static struct box_session *
session_find_locked (struct box *box, const char *tenant, const char *id)
{
  struct box_session *session;

  for (session = box->sessions; session; session = session->next)
    if (strcmp (session->id, id) == 0 && strcmp (session->tenant, tenant) == 0)
      return session;
  return NULL;
}

void
box_session_free (struct box_session *session)
{
  if (session == NULL)
    return;
  box_processes_free (session->processes);
  json_decref (session->spec);
  json_decref (session->asked);
  free (session->tenant);
  free (session->id);
  free (session->backend);
  free (session);
}

static void
session_drop_locked (struct box *box, struct box_session *session)
{
  struct box_session **link = &box->sessions;

  while (*link && *link != session)
    link = &(*link)->next;
  if (*link)
    *link = session->next;
  box_session_free (session);
  pthread_cond_broadcast (&box->changed);
}

static void
used_locked (struct box_session *session)
{
  session->used_ns = coffer_realtime_ns ();
  session->used_at_ns = coffer_now_ns ();
}

/* Until some session changes, or it is time to look whether the client is still
 * there: -1 when it is not, or its time is over. */
static int
wait_locked (struct box *box, const struct request *request,
             struct error **err)
{
  const int64_t now = coffer_now_ns (), until = now + LOOK_NS;
  const struct timespec when = { (time_t) (until / 1000000000),
                                 (long) (until % 1000000000) };

  if (now >= request->deadline_ns
      || coffer_wait_fd (request->cancel_fd, POLLIN, now, -1) == 1)
    return error_set (err, E_EXEC_CANCELLED, 0,
                      "the client left, or the time was over, while the "
                      "session was waited for");
  pthread_cond_timedwait (&box->changed, &box->lock, &when);
  return 0;
}

/* ---- making -------------------------------------------------------------- */

static int
session_new_locked (struct box *box, const struct request *request,
                    const char *id, const json_t *given,
                    struct box_session **out, struct error **err)
{
  const char *tenant = request->caller.tenant;
  struct box_session *session, *other;
  size_t n = 0;

  for (other = box->sessions; other; other = other->next)
    n += strcmp (other->tenant, tenant) == 0;
  if (n >= box->config.sessions) {
    error_set (err, E_LIMIT, 0, "there are %zu sessions, which is as many as "
               "may be", n);
    error_detail (err, "limit", json_string ("sessions"));
    return -1;
  }
  session = calloc (1, sizeof *session);
  if (session) {
    session->tenant = strdup (tenant);
    session->id = strdup (id);
    session->spec = box_spec_fill (given);
    session->asked = json_deep_copy (given);
  }
  if (!session || !session->tenant || !session->id || !session->spec) {
    box_session_free (session);
    return error_set (err, E_NO_MEMORY, 0, "a session");
  }
  session->state = SESSION_CREATING;
  session->next = box->sessions;
  box->sessions = session;
  *out = session;
  return 0;
}

static int
sandbox_make (struct box *box, struct request *request,
              struct box_session *session, struct error **err)
{
  struct provider_call call = request_call (request);
  auto_sandbox_record struct sandbox_record *record = NULL;
  struct box_request ask;
  struct provider *provider;
  int r;

  /* A command may take its time; what it runs in may not. */
  if (call.deadline_ns > deadline_in (MAKE_MS))
    call.deadline_ns = deadline_in (MAKE_MS);
  if (box_backend (box, &session->backend, NULL, err) < 0
      || host_provider (box->server->host, session->backend, &provider, err)
           < 0)
    return -1;
  r = box_request_make (request, session->id, session->spec, &ask, err);
  box_request_fit (&ask, session->asked, provider);
  ask.request.provider = session->backend;
  ask.request.tenant = session->tenant;
  ask.request.isolated = 1;
  if (r == 0)
    r = sandbox_create (box->server->host, &ask.request, &call, &record, NULL,
                        err);
  if (r == 0) {
    memcpy (session->sandbox, record->id, sizeof session->sandbox);
    session->created_ns = coffer_realtime_ns ();
    session->alive_until_ns = coffer_now_ns ()
                              + (int64_t) ask.request.ttl_ms * 1000000;
  }
  box_request_fini (&ask);
  return r;
}

static void
sandbox_end (struct box *box, const struct box_session *session)
{
  struct provider_call call = call_in (KILL_MS, -1);
  auto_error struct error *error = NULL;
  int gone;

  /* What cannot be ended now ends with its time to live. */
  if (sandbox_kill (box->server->host, session->backend, session->sandbox,
                    &call, &gone, &error) < 0)
    log_event (LOG_LEVEL_WARNING, "box", "%s: %s", session->sandbox,
               error_message (error));
  box_store_remove (box, session->sandbox);
}

/* The session is in the list, and nobody else touches one that is creating. */
static int
session_make (struct box *box, struct request *request,
              struct box_session *session, struct error **err)
{
  struct observe_run run = {
    .kind = OBSERVE_CREATE, .session = session->id,
    .began_ns = coffer_now_ns (), .verdict = "ok"
  };
  struct error *error = NULL;
  int r = sandbox_make (box, request, session, &error);

  if (r == 0 && box_store_write (box, session, &error) < 0) {
    sandbox_end (box, session);
    r = -1;
  }
  run.provider = session->backend;
  run.sandbox = session->sandbox;
  if (r < 0)
    run.verdict = observe_verdict (error);
  observe_run (request, &run);
  return r < 0 ? error_move (err, error) : 0;
}

int
box_session_enter (struct box *box, struct request *request, const char *id,
                   const json_t *given, struct box_session **out,
                   struct error **err)
{
  const char *tenant = request->caller.tenant;
  struct box_session *session;
  int r = 0;

  pthread_mutex_lock (&box->lock);
  while ((session = session_find_locked (box, tenant, id))
         && session->state != SESSION_LIVE && r == 0)
    r = wait_locked (box, request, err);
  if (r == 0 && session)
    r = box_spec_match (id, session->spec, given, err);
  else if (r == 0) {
    r = session_new_locked (box, request, id, given, &session, err);
    if (r == 0) {
      pthread_mutex_unlock (&box->lock);
      r = session_make (box, request, session, err);
      pthread_mutex_lock (&box->lock);
      if (r < 0)
        session_drop_locked (box, session);
      else
        session->state = SESSION_LIVE;
      pthread_cond_broadcast (&box->changed);
    }
  }
  if (r == 0) {
    session->users++;
    used_locked (session);
    *out = session;
  }
  pthread_mutex_unlock (&box->lock);
  return r;
}

/* ---- finding ------------------------------------------------------------- */

static int
unknown (const char *id, struct error **err)
{
  error_set (err, E_UNKNOWN_SESSION, 0, "there is no session %s", id);
  error_detail (err, "session_id", json_string (id));
  return -1;
}

int
box_session_find (struct box *box, const struct request *request,
                  const char *id, struct box_session **out, struct error **err)
{
  struct box_session *session;
  int r = 0;

  pthread_mutex_lock (&box->lock);
  while ((session = session_find_locked (box, request->caller.tenant, id))
         && session->state == SESSION_CREATING && r == 0)
    r = wait_locked (box, request, err);
  if (r == 0 && (session == NULL || session->state != SESSION_LIVE))
    r = unknown (id, err);
  if (r == 0) {
    session->users++;
    *out = session;
  }
  pthread_mutex_unlock (&box->lock);
  return r;
}

/* Waits for the last to leave, when its end is under way. */
static void
left_locked (struct box *box, struct box_session *session)
{
  session->users--;
  used_locked (session);
  if (session->lost && session->users == 0) {
    box_store_remove (box, session->sandbox);
    session_drop_locked (box, session);
  }
  pthread_cond_broadcast (&box->changed);
}

void
box_session_leave (struct box *box, struct box_session *session)
{
  pthread_mutex_lock (&box->lock);
  left_locked (box, session);
  pthread_mutex_unlock (&box->lock);
}

int
box_session_lost (struct box *box, struct box_session *session,
                  const struct error *error)
{
  int lost;

  pthread_mutex_lock (&box->lock);
  /* One that is being ended loses its sandbox, too. */
  lost = error && error->number == E_UNKNOWN_SANDBOX
         && (session->state == SESSION_LIVE || session->lost);
  if (lost) {
    session->state = SESSION_CLOSING;
    session->lost = 1;
  }
  left_locked (box, session);
  pthread_mutex_unlock (&box->lock);
  return lost;
}

int
box_session_check (struct box *box, struct request *request, const char *id,
                   struct error **err)
{
  struct provider_call call = request_call (request);
  auto_error struct error *error = NULL;
  auto_json json_t *info = NULL;
  struct box_session *session;

  (void) err;
  if (box_session_find (box, request, id, &session, NULL) < 0)
    return 0;
  /* What cannot be asked now is no reason to make another. */
  sandbox_info (box->server->host, session->sandbox, &call, &info, &error);
  box_session_lost (box, session, error);
  return 0;
}

/* ---- ending -------------------------------------------------------------- */

/* What runs in it ends with the sandbox, so that whoever waits for it leaves. */
static void
session_end_locked (struct box *box, struct box_session *session)
{
  session->state = SESSION_CLOSING;
  pthread_mutex_unlock (&box->lock);
  sandbox_end (box, session);
  pthread_mutex_lock (&box->lock);
  while (session->users > 0)
    pthread_cond_wait (&box->changed, &box->lock);
  session_drop_locked (box, session);
}

int
box_session_close (struct box *box, struct request *request, const char *id,
                   struct error **err)
{
  struct box_session *session;
  int r = 0;

  pthread_mutex_lock (&box->lock);
  while ((session = session_find_locked (box, request->caller.tenant, id))
         && session->state != SESSION_LIVE && r == 0)
    r = wait_locked (box, request, err);
  if (r == 0 && session == NULL)
    r = unknown (id, err);
  if (r == 0)
    session_end_locked (box, session);
  pthread_mutex_unlock (&box->lock);
  return r;
}

/* ---- reaping ------------------------------------------------------------- */

static int
is_idle_locked (struct box *box, const struct box_session *session,
                int64_t now)
{
  return session->state == SESSION_LIVE && session->users == 0
         && box->config.idle_ms > 0
         && !json_is_true (json_object_get (session->spec, "persistent"))
         && now - session->used_at_ns
              >= (int64_t) box->config.idle_ms * 1000000
         && !box_processes_running (box, session);
}

static int
is_short_locked (const struct box_session *session, int64_t now)
{
  return session->state == SESSION_LIVE
         && session->alive_until_ns - now
              < (int64_t) BOX_LIFE_MS * 1000000 / 2;
}

/* Not tried again before half of what is left is over. */
static void
session_extend_locked (struct box *box, struct box_session *session)
{
  struct provider_call call = call_in (KILL_MS, -1);
  auto_error struct error *error = NULL;
  auto_json json_t *info = NULL;
  int64_t now, life = (int64_t) BOX_LIFE_MS * 1000000;
  int r;

  session->users++;
  pthread_mutex_unlock (&box->lock);
  r = sandbox_extend (box->server->host, session->sandbox, BOX_LIFE_MS, &call,
                      &info, &error);
  pthread_mutex_lock (&box->lock);
  now = coffer_now_ns ();
  session->users--;
  session->alive_until_ns = now + (r == 0 ? life : life / 2 + life / 60);
  if (r < 0 && error->number == E_UNKNOWN_SANDBOX
      && session->state == SESSION_LIVE) {
    session->state = SESSION_CLOSING;
    session->lost = 1;
  }
  if (session->lost && session->users == 0) {
    box_store_remove (box, session->sandbox);
    session_drop_locked (box, session);
  }
  pthread_cond_broadcast (&box->changed);
}

/* 1: something was done, and the list may be another. */
static int
reap_one_locked (struct box *box)
{
  const int64_t now = coffer_now_ns ();
  struct box_session *session;

  for (session = box->sessions; session; session = session->next) {
    if (is_idle_locked (box, session, now)) {
      session_end_locked (box, session);
      return 1;
    }
    if (is_short_locked (session, now)) {
      session_extend_locked (box, session);
      return 1;
    }
  }
  return 0;
}

void
box_sessions_reap (struct box *box)
{
  pthread_mutex_lock (&box->lock);
  while (reap_one_locked (box))
    ;
  pthread_mutex_unlock (&box->lock);
}

/* ---- showing ------------------------------------------------------------- */

static double
seconds (int64_t ns)
{
  return (double) (ns / 1000000) / 1000;
}

static json_t *
session_json_locked (struct box *box, const struct box_session *session)
{
  json_t *json = json_deep_copy (session->spec);

  json_object_set_new (json, "session_id", json_string (session->id));
  json_object_set_new (json, "backend_name", json_string (session->backend));
  json_object_set_new (json, "backend_session_id",
                       json_string (session->sandbox));
  json_object_set_new (json, "created_at",
                       json_real (seconds (session->created_ns)));
  json_object_set_new (json, "last_used_at",
                       json_real (seconds (session->used_ns)));
  json_object_set_new (json, "managed_processes",
                       box_processes_json (box, session));
  return json;
}

int
box_session_json (struct box *box, const char *tenant, const char *id,
                  json_t **out, struct error **err)
{
  struct box_session *session;
  int r = 0;

  pthread_mutex_lock (&box->lock);
  session = session_find_locked (box, tenant, id);
  if (session && session->state == SESSION_LIVE)
    *out = session_json_locked (box, session);
  else
    r = unknown (id, err);
  pthread_mutex_unlock (&box->lock);
  return r;
}

json_t *
box_sessions_json (struct box *box, const char *tenant)
{
  json_t *list = json_array ();
  struct box_session *session;

  pthread_mutex_lock (&box->lock);
  for (session = box->sessions; session; session = session->next)
    if (session->state == SESSION_LIVE
        && strcmp (session->tenant, tenant) == 0)
      json_array_insert_new (list, 0, session_json_locked (box, session));
  pthread_mutex_unlock (&box->lock);
  return list;
}

size_t
box_sessions_count (struct box *box, const char *tenant)
{
  struct box_session *session;
  size_t n = 0;

  pthread_mutex_lock (&box->lock);
  for (session = box->sessions; session; session = session->next)
    n += session->state == SESSION_LIVE
         && strcmp (session->tenant, tenant) == 0;
  pthread_mutex_unlock (&box->lock);
  return n;
}

size_t
box_processes_count (struct box *box, const char *tenant)
{
  struct box_session *session;
  size_t n = 0;

  pthread_mutex_lock (&box->lock);
  for (session = box->sessions; session; session = session->next)
    if (strcmp (session->tenant, tenant) == 0)
      n += (size_t) box_processes_running (box, session);
  pthread_mutex_unlock (&box->lock);
  return n;
}
