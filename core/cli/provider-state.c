/* SPDX-License-Identifier: Apache-2.0 */
/* `coffer provider disable` and `default`: what an operator would write into
 * providers.d/ID.yaml and coffer.yaml by hand. */

#include <config.h>

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/output.h"
#include "cli/provider.h"

/* -- disable --------------------------------------------------------------- */

int
provider_print_state (const struct cli *cli, const struct place *place,
                      int changed, struct error **err)
{
  auto_registry struct registry *registry = NULL;
  const struct registry_entry *entry;
  const char *state;

  if (registry_load_one (place, cli->args[0], &registry, err) < 0)
    return -1;
  /* Another command may have taken it away meanwhile. */
  if (registry->count == 0)
    return registry_find (registry, cli->args[0], &entry, err);
  entry = &registry->entries[0];
  state = registry_state_name (entry->state);
  if (cli->json)
    return output_json (json_pack ("{s:s, s:s, s:s, s:b, s:s*}", "id",
                                   entry->id, "state", state, "trust",
                                   registry_trust_name (entry->trust),
                                   "changed", changed, "operator_file",
                                   entry->override_path), err);
  printf ("%s is %s%s\n", entry->id, state, changed ? "" : " already");
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
    return output_json (json_pack ("{s:s, s:s}", "id",
                                   registry->default_provider, "source",
                                   registry->default_source), err);
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
