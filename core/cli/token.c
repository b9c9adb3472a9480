/* SPDX-License-Identifier: Apache-2.0 */
/* `coffer token create|list|revoke`. */

#include <config.h>

#include <stdio.h>
#include <string.h>

#include <coffer/fd.h>

#include "base/json.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "policy/token.h"

#define TTL_MAX_MS (INT64_C (100) * 366 * 24 * 3600 * 1000)

static int
read_request (const struct cli *cli, struct token_request *request,
              struct error **err)
{
  const char *rights = cli_value (cli, "rights");
  const char *ttl = cli_value (cli, "ttl"), *nearest;

  request->name = cli->args[0];
  request->tenant = cli_value (cli, "tenant");
  request->right = rights ? right_find (rights) : RIGHT_RUN;
  if (request->right == RIGHT_NONE) {
    nearest = text_nearest (rights, right_names);
    return error_set (err, E_USAGE, 0, "--rights wants view, run, manage or"
                      " operate%s%s",
                      nearest ? ": did you mean " : "", nearest ? nearest : "");
  }
  if (ttl && (text_parse_duration (ttl, &request->ttl_ms) < 0
              || request->ttl_ms == 0 || request->ttl_ms > TTL_MAX_MS))
    return error_set (err, E_USAGE, 0, "--ttl wants a time such as 30d");
  return 0;
}

/* The token alone is on standard output, so that it can be kept by `>`. */
static int
create_run (struct cli *cli, struct error **err)
{
  struct token_request request = { 0 };
  auto_json json_t *shown = NULL;
  auto_free char *text = NULL;
  const struct place *place;
  int result;

  if (read_request (cli, &request, err) < 0 || cli_place (cli, &place, err) < 0
      || token_create (place, &request, &text, &shown, err) < 0)
    return -1;
  if (cli->json) {
    json_object_set_new (shown, "token", json_string (text));
    result = output_json (steal (shown), err);
  } else {
    printf ("%s\n", text);
    output_note ("this is shown once; coffer token revoke %s ends it",
                 json_string_value (json_object_get (shown, "id")));
    result = output_finish (err);
  }
  explicit_bzero (text, strlen (text));
  return result;
}

static char *
time_shown (const json_t *value)
{
  return json_is_integer (value)
           ? text_format_time (json_integer_value (value)) : strdup ("never");
}

static int
list_run (struct cli *cli, struct error **err)
{
  static const char *const heads[] = { "ID", "NAME", "TENANT", "RIGHTS",
                                       "CREATED", "EXPIRES" };
  auto_output_table struct output_table *table = NULL;
  auto_json json_t *list = NULL;
  const struct place *place;
  json_t *one;
  size_t i;

  if (cli_place (cli, &place, err) < 0 || token_list (place, &list, err) < 0)
    return -1;
  if (cli->json)
    return output_json (steal (list), err);
  table = output_table_new (6, heads);
  json_array_foreach (list, i, one) {
    auto_free char *created = time_shown (json_object_get (one, "created_ns"));
    auto_free char *expires = time_shown (json_object_get (one, "expires_ns"));
    const char *const cells[] = {
      json_string_value (json_object_get (one, "id")),
      json_string_value (json_object_get (one, "name")),
      json_string_value (json_object_get (one, "tenant")),
      json_string_value (json_object_get (one, "rights")),
      created ? created : "", expires ? expires : ""
    };

    output_table_row (table, cells);
  }
  return output_table_print (table, cli, err);
}

static int
revoke_run (struct cli *cli, struct error **err)
{
  auto_json json_t *shown = NULL;
  const struct place *place;

  if (cli_place (cli, &place, err) < 0
      || token_revoke (place, cli->args[0], &shown, err) < 0)
    return -1;
  if (cli->json)
    return output_json (json_pack ("{s:O}", "revoked", shown), err);
  printf ("revoked %s, %s\n", json_string_value (json_object_get (shown, "id")),
          json_string_value (json_object_get (shown, "name")));
  return output_finish (err);
}

static const struct cli_option create_options[] = {
  { "tenant", 0, "NAME", 0, "whose sandboxes it is for (default)" },
  { "rights", 0, "RIGHT", 0, "view, run (unless said), manage or operate" },
  { "ttl", 0, "TIME", 0, "let it expire after this time" },
  { NULL }
};

const struct cli_command token_commands[] = {
  { "token create", "NAME", "make a token for a program that uses the daemon",
    create_options, 1, 1, -1, 0, create_run },
  { "token list", "", "list the tokens there are", NULL, 0, 0, -1, 0,
    list_run },
  { "token revoke", "ID|NAME", "end a token at once", NULL, 1, 1, -1, 0,
    revoke_run },
  { NULL }
};
