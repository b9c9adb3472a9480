/* SPDX-License-Identifier: Apache-2.0 */
/* `coffer profile list|show`. */

#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "policy/profile.h"

static int
list_run (struct cli *cli, struct error **err)
{
  static const char *const heads[] = { "NAME", "SOURCE", "SUMMARY" };
  auto_output_table struct output_table *table = NULL;
  auto_json json_t *list = NULL;
  const struct place *place;
  json_t *row;
  size_t i;

  if (cli_place (cli, &place, err) < 0 || profile_list (place, &list, err) < 0)
    return -1;
  if (cli->json)
    return output_json (steal (list), err);
  table = output_table_new (3, heads);
  json_array_foreach (list, i, row) {
    const char *error = json_string_value (json_object_get (row, "error"));
    const char *source = json_string_value (json_object_get (row, "source"));
    const char *summary = json_string_value (json_object_get (row,
                                                              "summary"));
    const char *cells[]
      = { json_string_value (json_object_get (row, "name")),
          error ? "broken" : source, error ? error : summary };

    output_table_row (table, cells);
  }
  return output_table_print (table, cli, err);
}

/* "none", "none, allow", "512MiB"; NULL: not said. */
static char *
value_text (const struct profile *profile, enum profile_field field)
{
  char *const *words = profile->words[field], *joined, *longer;

  if (profile->word[field])
    return strdup (profile->word[field]);
  if (profile->number[field])
    return profile_format (field, profile->number[field]);
  if (!words)
    return NULL;
  for (joined = strdup (""); joined && *words; words++) {
    longer = text_printf ("%s%s%s", joined, *joined ? ", " : "", *words);
    free (joined);
    joined = longer;
  }
  return joined;
}

/* What is no number has no maximum: `locked` says whether it may change. */
static int
is_number (enum profile_field field)
{
  return profile_fields[field].kind != KIND_WORD
         && profile_fields[field].kind != KIND_WORDS;
}

static int
print_profile (const struct cli *cli, const struct profile *profile,
               struct error **err)
{
  static const char *const heads[] = { "FIELD", "VALUE", "AT MOST", "LOCKED" };
  auto_output_table struct output_table *table = output_table_new (4, heads);
  int i;

  output_styled (cli, stdout, STYLE_BOLD, profile->name);
  printf (": ");
  output_styled (cli, stdout, STYLE_PLAIN, profile->summary);
  printf (" (");
  output_styled (cli, stdout, STYLE_PLAIN, profile->source);
  printf (")\n\n");
  for (i = 0; i < PROFILE_FIELDS; i++) {
    auto_free char *value = value_text (profile, i);
    auto_free char *most = profile->most[i]
      ? profile_format (i, profile->most[i]) : NULL;
    const char *cells[] = { profile_fields[i].key, value ? value : "-",
                            most ? most : is_number (i) ? "any" : "-",
                            profile_is_locked (profile, i) ? "yes" : "" };

    if (value || most)
      output_table_row (table, cells);
  }
  return output_table_print (table, cli, err);
}

static int
show_run (struct cli *cli, struct error **err)
{
  auto_profile struct profile *profile = NULL;
  const struct place *place;

  if (cli_place (cli, &place, err) < 0
      || profile_find (place, cli->args[0], &profile, err) < 0)
    return -1;
  if (cli->json)
    return output_json (profile_to_json (profile), err);
  return print_profile (cli, profile, err);
}

const struct cli_command profile_commands[] = {
  { "profile list", "", "list the profiles there are", NULL, 0, 0, -1, 0,
    list_run },
  { "profile show", "NAME", "show what a profile gives, allows and locks",
    NULL, 1, 1, -1, 0, show_run },
  { NULL }
};
