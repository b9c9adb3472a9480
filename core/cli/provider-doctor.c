/* SPDX-License-Identifier: Apache-2.0 */
/* `coffer provider doctor`: the checks of the files, then the provider itself:
 * started in its worker and asked what it found on this machine. */

#include <config.h>

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "cli/output.h"
#include "cli/provider.h"
#include "provider/doctor.h"

/* What helps is under the table, since a terminal cuts a table's end. */
static void
print_remedies (const json_t *facts)
{
  const json_t *fact, *remedy;
  int said = 0;
  size_t i;

  json_array_foreach (facts, i, fact) {
    auto_free char *name = NULL, *text = NULL;

    remedy = json_object_get (fact, "remedy");
    if (!json_string_length (remedy))
      continue;
    name = output_shown (json_object_get (fact, "name"));
    text = output_shown (remedy);
    printf ("%s  %s: %s\n", said++ ? "" : "\nwhat helps:\n",
            name ? name : "", text ? text : "");
  }
}

static int
print_facts (const struct cli *cli, const json_t *facts, struct error **err)
{
  static const char *const heads[] = { "FACT", "STATE", "VALUE", "READ FROM" };
  static const char *const keys[] = { "name", "state", "value", "how" };
  auto_output_table struct output_table *table = output_table_new (4, heads);
  json_t *fact;
  size_t i, k;

  if (json_array_size (facts) == 0)
    return 0;
  json_array_foreach (facts, i, fact) {
    char *cells[4];

    for (k = 0; k < 4; k++)
      cells[k] = output_shown (json_object_get (fact, keys[k]));
    output_table_row (table, (const char *const *) cells);
    for (k = 0; k < 4; k++)
      free (cells[k]);
  }
  printf ("\n");
  if (output_table_print (table, cli, err) < 0)
    return -1;
  print_remedies (facts);
  return 0;
}

int
provider_doctor_run (struct cli *cli, struct error **err)
{
  auto_registry struct registry *registry = NULL;
  auto_json json_t *found = NULL;
  const struct registry_entry *entry;
  int passed;

  if (provider_named (cli, &registry, &entry, err) < 0
      || provider_examine (entry, cli->place, cli_flag (cli, "probe"), &found,
                           err) < 0)
    return -1;
  passed = json_is_true (json_object_get (found, "ok"));
  if (cli->json)
    return output_json (steal (found), err) < 0 ? -1 : !passed;
  output_styled (cli, stdout, STYLE_BOLD, entry->id);
  printf ("\n");
  provider_print_checks (cli, json_object_get (found, "checks"));
  if (print_facts (cli, json_object_get (found, "facts"), err) < 0
      || output_finish (err) < 0)
    return -1;
  return !passed;
}
