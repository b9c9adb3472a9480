/* SPDX-License-Identifier: Apache-2.0 */
/* From a folder that somebody put there to a provider that is used.  See
 * enable.h. */

#include <config.h>

#include "provider/conformance.h"
#include "provider/enable.h"
#include "provider/signature.h"
#include "provider/trust.h"

struct enabling {
  const struct place *place;
  provider_judge *judge;
  void *data;
  int *changed;
};

static int
load (const struct place *place, const char *id, struct registry **registry,
      const struct registry_entry **entry, struct error **err)
{
  registry_free (*registry);
  *registry = NULL;
  if (registry_load_one (place, id, registry, err) < 0)
    return -1;
  if ((*registry)->count == 0)
    return registry_find (*registry, id, entry, err);
  *entry = &(*registry)->entries[0];
  return 0;
}

static int
try_it (const struct enabling *enabling, const char *id, struct error **err)
{
  auto_registry struct registry *registry = NULL;
  const struct registry_entry *entry;

  if (load (enabling->place, id, &registry, &entry, err) < 0)
    return -1;
  if (entry->state == PROVIDER_BROKEN)
    return registry_find (registry, id, &entry, err);
  if (signature_demand (entry, enabling->place, err) < 0)
    return -1;
  if (conformance_demand (entry, enabling->judge ? NULL : err) == 0)
    return 0;
  if (!enabling->judge || enabling->judge (enabling->data, id, err) < 0
      || load (enabling->place, id, &registry, &entry, err) < 0)
    return -1;
  return conformance_demand (entry, err);
}

static int
set_enabled (const struct enabling *enabling, const char *id,
             struct error **err)
{
  auto_registry struct registry *registry = NULL;
  const struct registry_entry *entry;

  if (load (enabling->place, id, &registry, &entry, err) < 0)
    return -1;
  if (entry->state == PROVIDER_DISABLED)
    return registry_set_enabled (enabling->place, id, 1, enabling->changed,
                                 err);
  return registry_find (registry, id, &entry, err);
}

/* One that does not pass is as it was before. */
static int
admit (const struct enabling *enabling, const struct registry_entry *entry,
       struct error **err)
{
  auto_error struct error *error = NULL;

  if (trust_admit (enabling->place, entry, err) < 0)
    return -1;
  if (try_it (enabling, entry->id, &error) == 0
      && set_enabled (enabling, entry->id, &error) == 0)
    return 0;
  trust_dismiss (entry, NULL);
  return error_move (err, steal (error));
}

static int
renew (const struct enabling *enabling, const struct registry_entry *entry,
       struct error **err)
{
  if (trust_renew (enabling->place, entry, err) < 0
      || try_it (enabling, entry->id, err) < 0)
    return -1;
  return set_enabled (enabling, entry->id, err);
}

int
provider_enable (const struct place *place, const char *id,
                 provider_judge *judge, void *data, int *changed,
                 struct error **err)
{
  const struct enabling enabling = { place, judge, data, changed };
  auto_registry struct registry *registry = NULL;
  const struct registry_entry *entry;

  if (load (place, id, &registry, &entry, err) < 0)
    return -1;
  *changed = entry->state == PROVIDER_QUARANTINED;
  if (entry->state == PROVIDER_BROKEN)
    return registry_find (registry, entry->id, &entry, err);
  return *changed ? admit (&enabling, entry, err)
                  : renew (&enabling, entry, err);
}
