/* SPDX-License-Identifier: Apache-2.0 */
/* What sessions are made with.  Nothing is remembered of a look that failed:
 * what an operator has put right counts at the next. */

#include <config.h>

#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "provider/registry.h"
#include "server/box/sessions.h"
#include "server/server.h"

static json_t *
readiness_of (const json_t *facts)
{
  json_t *out = json_object (), *fact;
  size_t i;

  json_array_foreach (facts, i, fact) {
    const char *name = json_string_value (json_object_get (fact, "name"));
    json_t *state = json_object_get (fact, "state");

    if (name && state)
      json_object_set (out, name, state);
  }
  return out;
}

/* In an instance of its own: what one is asked narrows what it claims, and the
 * host's is to claim what it does without a daemon. */
static int
probe_apart (const struct registry_entry *entry, const struct place *place,
             json_t **facts, struct error **err)
{
  auto_provider struct provider *own = NULL;

  return provider_open (entry, place, PROVIDER_WORKER, &own, err) < 0
             || provider_probe (own, facts, err) < 0
           ? -1 : 0;
}

int
box_backend (struct box *box, char **id, json_t **readiness,
             struct error **err)
{
  auto_registry struct registry *registry = NULL;
  const struct registry_entry *entry;
  struct provider *provider;
  auto_json json_t *facts = NULL;
  auto_free char *name = NULL;

  if (registry_load_one (box->server->place, NULL, &registry, err) < 0
      || registry_find (registry, registry->default_provider, &entry, err) < 0)
    return -1;
  name = strdup (entry->id);
  if (name == NULL)
    return error_set (err, E_NO_MEMORY, 0, "out of memory");
  if (host_provider (box->server->host, name, &provider, err) < 0
      || (readiness
          && probe_apart (entry, box->server->place, &facts, err) < 0))
    return -1;
  if (readiness)
    *readiness = readiness_of (facts);
  *id = steal (name);
  return 0;
}

void
box_backend_say (struct box *box)
{
  auto_error struct error *error = NULL;
  auto_json json_t *readiness = NULL;
  auto_free char *id = NULL, *line = NULL;
  int good = box_backend (box, &id, &readiness, &error) == 0;

  line = good ? text_printf ("native sandbox tools available backend=%s", id)
              : text_printf ("native sandbox tools not available: E%04d: %s",
                             error->number, error_message (error));
  if (line == NULL || (box->said && strcmp (box->said, line) == 0))
    return;
  log_event (good ? LOG_LEVEL_INFO : LOG_LEVEL_WARNING, "box", "%s", line);
  free (box->said);
  box->said = steal (line);
}
