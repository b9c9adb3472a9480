/* SPDX-License-Identifier: Apache-2.0 */
/* `coffer provider disable` and `default`: what an operator would write into
 * providers.d/ID.yaml and coffer.yaml by hand. */

#include <config.h>

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli/output.h"
#include "cli/provider.h"

/* -- disable --------------------------------------------------------------- */

int
provider_print_state (const struct cli *cli, const struct place *place,
                      int changed, struct error **err)
{
  auto_json json_t *state = NULL;

  if (registry_state_json (place, cli->args[0], changed, &state, err) < 0)
    return -1;
  if (cli->json)
    return output_json (steal (state), err);
  printf ("%s is %s%s\n", cli->args[0],
          json_string_value (json_object_get (state, "state")),
          changed ? "" : " already");
  return output_finish (err);
}

int
provider_disable_run (struct cli *cli, struct error **err)
{
  auto_registry struct registry *registry = NULL;
  const struct registry_entry *entry;
  const struct place *place;
  int changed = 0;

  if (provider_named (cli, &registry, &entry, err) < 0
      || cli_place (cli, &place, err) < 0
      || registry_set_enabled (place, entry->id, 0, &changed, err) < 0)
    return -1;
  if (strcmp (entry->id, registry->default_provider) == 0)
    output_note ("warning: %s is the default: name another one with --provider,"
                 " or coffer provider default ID", entry->id);
  return provider_print_state (cli, place, changed, err);
}

/* -- default --------------------------------------------------------------- */

static int
print_default (const struct cli *cli, const struct place *place,
               struct error **err)
{
  auto_registry struct registry *registry = NULL;

  if (registry_load_one (place, NULL, &registry, err) < 0)
    return -1;
  if (cli->json)
    return output_json (registry_default_json (registry), err);
  printf ("%s (%s)\n", registry->default_provider, registry->default_source);
  return output_finish (err);
}

int
provider_default_run (struct cli *cli, struct error **err)
{
  auto_registry struct registry *registry = NULL;
  const struct registry_entry *entry;
  const struct place *place;

  if (cli_place (cli, &place, err) < 0)
    return -1;
  if (cli->n_args
      && (registry_load_one (place, cli->args[0], &registry, err) < 0
          || registry_find (registry, cli->args[0], &entry, err) < 0
          || registry_set_default (place, entry->id, err) < 0))
    return -1;
  return print_default (cli, place, err);
}
