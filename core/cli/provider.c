/* SPDX-License-Identifier: Apache-2.0 */
/* `coffer provider list` and `verify`, and the rows of all its commands. */

#include <config.h>

#include "cli/commands.h"

#include <stdio.h>
#include <string.h>

#include <coffer/fd.h>

#include "base/json.h"
#include "base/text.h"
#include "cli/output.h"
#include "cli/provider.h"

int
provider_named (struct cli *cli, struct registry **out,
                const struct registry_entry **entry, struct error **err)
{
  auto_registry struct registry *registry = NULL;
  const struct place *place;
  const char *id = cli->n_args ? cli->args[0] : cli->provider;

  if (cli_place (cli, &place, err) < 0
      || registry_load_one (place, id, &registry, err) < 0)
    return -1;
  if (registry->count == 0)
    return registry_find (registry, id ? id : registry->default_provider,
                          entry, err);
  *entry = &registry->entries[0];
  *out = steal (registry);
  return 0;
}

/* -- list ------------------------------------------------------------------ */

static int
list_json (const struct registry *registry, struct error **err)
{
  return output_json (registry_list_json (registry), err);
}

/* In people's table: what is wrong with it, what is to be done, what it is. */
static char *
what_text (const struct registry_entry *entry)
{
  if (entry->error)
    return strdup (entry->error->message);
  if (entry->state == PROVIDER_QUARANTINED)
    return text_printf ("dropped in by hand: coffer provider enable %s",
                        entry->id);
  if (registry_needs_kit (entry))
    return text_printf ("to be tried first: coffer kit %s --record",
                        entry->id);
  return entry->manifest ? strdup (entry->manifest->summary) : NULL;
}

static int
list_table (const struct cli *cli, const struct registry *registry,
            struct error **err)
{
  static const char *const heads[] = { "PROVIDER", "VERSION", "STATE", "TRUST",
                                       "KIND", "WHAT" };
  auto_output_table struct output_table *table = output_table_new (6, heads);
  size_t i;

  for (i = 0; i < registry->count; i++) {
    const struct registry_entry *entry = &registry->entries[i];
    const struct manifest *m = entry->manifest;
    const int chosen = strcmp (entry->id, registry->default_provider) == 0;
    auto_free char *id = text_printf ("%s%s", entry->id, chosen ? " *" : "");
    auto_free char *what = what_text (entry);
    const char *cells[] = {
      id ? id : entry->id, m ? m->version : "-",
      registry_state_name (entry->state), registry_trust_name (entry->trust),
      m ? m->isolation_kind : "-",
      what ? what : "-"
    };

    output_table_row (table, cells);
  }
  return output_table_print (table, cli, err);
}

static int
list_run (struct cli *cli, struct error **err)
{
  auto_registry struct registry *registry = NULL;
  const struct place *place;

  if (cli_place (cli, &place, err) < 0
      || registry_load (place, &registry, err) < 0)
    return -1;
  return cli->json ? list_json (registry, err)
                   : list_table (cli, registry, err);
}

/* -- verify ---------------------------------------------------------------- */

void
provider_print_checks (const struct cli *cli, const json_t *checks)
{
  json_t *check;
  size_t i;

  json_array_foreach (checks, i, check) {
    const int ok = json_is_true (json_object_get (check, "ok"));
    auto_free char *detail = output_shown (json_object_get (check, "detail"));
    const char *remedy
      = json_string_value (json_object_get (check, "remedy"));

    printf ("  ");
    output_styled (cli, stdout, ok ? STYLE_GREEN : STYLE_RED,
                   ok ? "ok    " : "failed");
    printf ("  %-12s %s\n",
            json_string_value (json_object_get (check, "check")),
            detail ? detail : "-");
    if (remedy) {
      auto_free char *shown = text_escape (remedy, strlen (remedy));

      printf ("          %-12s next: %s\n", "", shown ? shown : "-");
    }
  }
}

/* What was dropped in by hand and not enabled is no fault: nothing of it is
 * ever loaded. */
static int
verify_entry (const struct cli *cli, const struct registry_entry *entry,
              json_t *results)
{
  json_t *checks = registry_check (entry, cli->place, 1);
  const int judged = entry->receipt && entry->receipt->conformance.verdict;
  const int skipped = entry->state == PROVIDER_QUARANTINED;
  int ok;

  /* That nobody has judged it changes none of its bytes. */
  if (judged && entry->manifest)
    json_array_append_new (checks, registry_check_conformance (entry));
  ok = skipped || registry_check_passed (checks);
  if (!cli->json) {
    output_styled (cli, stdout, STYLE_BOLD, entry->id);
    printf ("%s\n", skipped ? " (quarantined: not loaded, not verified)" : "");
    if (!skipped)
      provider_print_checks (cli, checks);
  }
  json_array_append_new (results,
                         json_pack ("{s:s, s:s, s:b, s:o}", "id", entry->id,
                                    "state",
                                    registry_state_name (entry->state), "ok",
                                    ok, "checks", checks));
  return ok;
}

static int
verify_load (struct cli *cli, struct registry **out, struct error **err)
{
  const struct registry_entry *entry;
  const struct place *place;

  if (cli->n_args)
    return provider_named (cli, out, &entry, err);
  if (cli_place (cli, &place, err) < 0)
    return -1;
  return registry_load (place, out, err);
}

static int
verify_run (struct cli *cli, struct error **err)
{
  auto_registry struct registry *registry = NULL;
  const int64_t start = coffer_now_ns ();
  json_t *results = NULL;
  size_t i, bad = 0, skipped = 0;
  int64_t took_us;
  int r;

  if (verify_load (cli, &registry, err) < 0)
    return -1;
  results = json_array ();
  for (i = 0; i < registry->count; i++) {
    bad += !verify_entry (cli, &registry->entries[i], results);
    skipped += registry->entries[i].state == PROVIDER_QUARANTINED;
  }
  took_us = (coffer_now_ns () - start) / 1000;
  if (cli->json)
    r = output_json (json_pack ("{s:b, s:o, s:f}", "ok", bad == 0, "providers",
                                results, "ms", (double) took_us / 1e3), err);
  else {
    json_decref (results);
    printf ("%zu verified, %zu failed, %zu quarantined\n",
            registry->count - bad - skipped, bad, skipped);
    r = output_finish (err);
  }
  return r < 0 ? -1 : bad > 0;
}

/* -- rows ------------------------------------------------------------------ */

static const struct cli_option doctor_options[] = {
  { "probe", 0, NULL, 0, "make one call that needs its credentials" },
  { NULL }
};

const struct cli_command provider_commands[] = {
  { "provider list", "", "list the providers with their state and trust", NULL,
    0, 0, -1, 0, list_run },
  { "provider info", "[ID]",
    "show a provider's manifest and how it is configured", NULL, 0, 1, -1,
    0, provider_info_run },
  { "provider enable", "ID",
    "let a provider be used", NULL, 1, 1, -1, 0, provider_enable_run },
  { "provider disable", "ID", "let a provider be used no more", NULL, 1, 1,
    -1, 0, provider_disable_run },
  { "provider default", "[ID]",
    "show or set what is taken when no provider is named",
    NULL, 0, 1, -1, 0, provider_default_run },
  { "provider doctor", "[ID]",
    "check a provider on this machine and say what is missing",
    doctor_options, 0, 1, -1, 0, provider_doctor_run },
  { "provider verify", "[ID]",
    "compare modules and files with their sealed hashes", NULL, 0, 1, -1,
    0, verify_run },
  { NULL }
};
