/* SPDX-License-Identifier: Apache-2.0 */
/* Providers: which there are, what is known of each, what is wrong with one,
 * and what the operator decides about them.  The records are those of
 * `coffer provider`.  What lies in the folders is looked at anew for each
 * request; it is read again when it has changed. */

#include <config.h>

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "provider/doctor.h"
#include "provider/enable.h"
#include "provider/registry.h"
#include "server/api/common.h"
#include "server/api/fields.h"
#include "server/api/kit-run.h"
#include "server/surfaces.h"

/* A stamp this young may miss a change of its own moment. */
#define YOUNG_NS 2000000000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct registry *kept;   /* as the folders were at the stamp */
static uint64_t kept_stamp;

static int64_t
realtime_ns (void)
{
  struct timespec now;

  clock_gettime (CLOCK_REALTIME, &now);
  return (int64_t) now.tv_sec * 1000000000 + now.tv_nsec;
}

/* What is broken may be so for what no stamp sees: a secret that is not there,
 * a variable. */
static int
is_lasting (const struct registry *registry)
{
  size_t i;

  for (i = 0; i < registry->count; i++)
    if (registry->entries[i].state == PROVIDER_BROKEN)
      return 0;
  return 1;
}

/* Under the lock: until it is given up, the registry is there. */
static int
registry_now_locked (const struct request *request,
                     const struct registry **out, struct error **err)
{
  const int64_t now = realtime_ns ();
  int64_t newest;
  const uint64_t stamp = registry_stamp (request->server->place, &newest);
  struct registry *registry;

  if (!kept || stamp != kept_stamp || !is_lasting (kept)) {
    if (registry_load (request->server->place, &registry, err) < 0)
      return -1;
    registry_free (kept);
    kept = registry;
    kept_stamp = now - newest > YOUNG_NS ? stamp : 0;
  }
  *out = kept;
  return 0;
}

static int
providers_get (struct request *request, struct error **err)
{
  const struct registry *registry;
  json_t *json = NULL;

  pthread_mutex_lock (&lock);
  if (registry_now_locked (request, &registry, err) == 0
      && !(json = registry_list_json (registry)))
    error_set (err, E_NO_MEMORY, 0, "the providers");
  pthread_mutex_unlock (&lock);
  return json ? reply_json (request, 200, json, err) : -1;
}

/* ---- one of them --------------------------------------------------------- */

/* Where things lie on the host, and what they are set to, is for those who
 * manage it. */
static void
hide_host (const struct request *request, json_t *info)
{
  static const char *const keys[] = { "manifest", "operator_file", "config",
                                      "permissions", "receipt" };
  size_t i;

  for (i = 0; i < sizeof keys / sizeof keys[0]; i++)
    if (!(request->caller.rights & RIGHT_MANAGE))
      json_object_del (info, keys[i]);
}

static int
entry_find (const struct registry *registry, const char *id,
            const struct registry_entry **out, struct error **err)
{
  size_t i;

  for (i = 0; i < registry->count; i++)
    if (strcmp (registry->entries[i].id, id) == 0) {
      *out = &registry->entries[i];
      return 0;
    }
  return registry_find (registry, id, out, err);
}

static int
provider_get (struct request *request, struct error **err)
{
  const struct registry *registry;
  const struct registry_entry *entry;
  json_t *info = NULL;

  pthread_mutex_lock (&lock);
  if (registry_now_locked (request, &registry, err) == 0
      && entry_find (registry, request->params[0], &entry, err) == 0
      && !(info = registry_entry_json (entry)))
    error_set (err, E_NO_MEMORY, 0, "a provider");
  pthread_mutex_unlock (&lock);
  if (!info)
    return -1;
  hide_host (request, info);
  return reply_json (request, 200, info, err);
}

static int
load_one (const struct request *request, struct registry **registry,
          const struct registry_entry **entry, struct error **err)
{
  const char *id = request->params[0];

  if (registry_load_one (request->server->place, id, registry, err) < 0)
    return -1;
  if ((*registry)->count == 0)
    return registry_find (*registry, id, entry, err);
  *entry = &(*registry)->entries[0];
  return 0;
}

static int
doctor_get (struct request *request, struct error **err)
{
  auto_registry struct registry *registry = NULL;
  const struct registry_entry *entry;
  json_t *found;
  int probe;

  if (api_flag (request, "probe", &probe, err) < 0
      || load_one (request, &registry, &entry, err) < 0
      || provider_examine (entry, request->server->place, probe, &found, err)
           < 0)
    return -1;
  return reply_json (request, 200, found, err);
}

/* ---- what is decided ----------------------------------------------------- */

static int
reply_state (struct request *request, int changed, struct error **err)
{
  json_t *state;

  host_look_again (request->server->host);
  if (registry_state_json (request->server->place, request->params[0],
                           changed, &state, err) < 0)
    return -1;
  return reply_json (request, 200, state, err);
}

/* What counts is what the kit recorded. */
static int
judge (void *data, const char *id, struct error **err)
{
  const struct request *request = data;
  const struct kit_options options = { .provider = id, .record = 1 };
  auto_kit_run struct kit_run *run = NULL;
  auto_json json_t *report = NULL;
  int r;

  if (kit_run_begin (request->server->place, &options, &run, err) < 0)
    return -1;
  do
    r = kit_run_wait (run, 60000, request->cancel_fd, &report, err);
  while (r == 0);
  return r < 0 ? -1 : 0;
}

static int
enable_post (struct request *request, struct error **err)
{
  int changed, kit, r;

  if (fields_none (request->body, err) < 0
      || api_flag (request, "kit", &kit, err) < 0)
    return -1;
  r = provider_enable (request->server->place, request->params[0],
                       kit ? judge : NULL, request, &changed, err);
  if (r < 0 && !kit && err && *err && (*err)->number == E_NOT_CONFORMANT)
    error_hint (err, "enable?kit=1 has the conformance kit try it first, which"
                " makes sandboxes with it");
  return r < 0 ? -1 : reply_state (request, changed, err);
}

static int
disable_post (struct request *request, struct error **err)
{
  auto_registry struct registry *registry = NULL;
  const struct registry_entry *entry;
  int changed = 0;

  if (fields_none (request->body, err) < 0
      || load_one (request, &registry, &entry, err) < 0
      || registry_set_enabled (request->server->place, entry->id, 0, &changed,
                               err) < 0)
    return -1;
  return reply_state (request, changed, err);
}

static int
default_post (struct request *request, struct error **err)
{
  auto_registry struct registry *registry = NULL;
  const struct place *place = request->server->place;
  const struct registry_entry *entry;

  if (fields_none (request->body, err) < 0
      || load_one (request, &registry, &entry, err) < 0
      || registry_find (registry, entry->id, &entry, err) < 0
      || registry_set_default (place, entry->id, err) < 0)
    return -1;
  host_look_again (request->server->host);
  registry_free (steal (registry));
  if (registry_load_one (place, NULL, &registry, err) < 0)
    return -1;
  return reply_json (request, 200, registry_default_json (registry), err);
}

#define PROVIDER "/api/v1/providers/{provider}"

const struct route api_provider_routes[] = {
  { "GET", "/api/v1/providers", RIGHT_VIEW, 0, "listProviders",
    providers_get },
  { "GET", PROVIDER, RIGHT_VIEW, 0, "getProvider", provider_get },
  { "GET", PROVIDER "/doctor", RIGHT_MANAGE, 0, "examineProvider",
    doctor_get },
  { "POST", PROVIDER "/enable", RIGHT_OPERATE, ROUTE_JSON | ROUTE_MUTATES
    | ROUTE_LONG, "enableProvider", enable_post },
  { "POST", PROVIDER "/disable", RIGHT_OPERATE, ROUTE_JSON | ROUTE_MUTATES,
    "disableProvider", disable_post },
  { "POST", PROVIDER "/default", RIGHT_OPERATE, ROUTE_JSON | ROUTE_MUTATES,
    "setDefaultProvider", default_post },
  { NULL }
};
