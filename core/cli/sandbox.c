/* SPDX-License-Identifier: Apache-2.0 */
/* `coffer sandbox create|list|info|kill|prune`. */

#include <config.h>

#include <stdlib.h>
#include <string.h>

#include <coffer/fd.h>

#include "base/json.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/host.h"
#include "cli/spec.h"
#include "cli/work.h"

#define INFO_DEPTH 4

/* ---- create ------------------------------------------------------------- */

static const char *
created_word (const json_t *created, const char *key)
{
  return json_string_value (json_object_get (created, key));
}

static int
print_created (struct cli *cli, json_t *created, struct error **err)
{
  if (cli->json)
    return output_json (json_incref (created), err);
  output_styled (cli, stdout, STYLE_PLAIN, created_word (created, "id"));
  printf ("\n");
  return output_finish (err);
}

static int
create_run (struct cli *cli, struct error **err)
{
  auto_spec struct spec spec = { 0 };
  auto_json json_t *created = NULL;
  auto_error struct error *error = NULL;
  struct output_progress progress;
  const char *id;
  int r, gone;

  if (spec_read (cli, &spec, err) < 0)
    return -1;
  output_progress_begin (&progress, cli, "making the sandbox");
  r = work_create (cli, &spec.request, &progress, &created, err);
  output_progress_end (&progress);
  if (r < 0) {
    hint_user (spec.request.user, err);
    return -1;
  }
  cli_warn (cli, created_word (created, "provider"),
            json_object_get (created, "applied"));
  if (print_created (cli, created, err) == 0)
    return 0;
  /* Nobody knows of it: what is reported as failed is not there. */
  id = created_word (created, "id");
  if (work_kill (cli, id, &gone, &error) < 0)
    output_note ("%s is still there: %s", id, error_message (error));
  return -1;
}

/* ---- info --------------------------------------------------------------- */

/* "2026-01-31 12:00:00" for keys that end in _ns, else as it is. */
static char *
shown_value (const char *key, const json_t *value)
{
  size_t length = strlen (key);

  if (length > 3 && !strcmp (key + length - 3, "_ns")
      && json_is_integer (value))
    return json_integer_value (value)
             ? text_format_time (json_integer_value (value))
             : strdup ("-");
  return output_shown (value);
}

static void
print_line (const char *name, const char *key, const json_t *value)
{
  auto_free char *escaped = text_escape (name, strlen (name));
  auto_free char *shown = shown_value (key, value);
  size_t length = escaped ? strlen (escaped) : 0;

  if (length > 3 && !strcmp (escaped + length - 3, "_ns"))
    length -= 3;
  printf ("%-14.*s  %s\n", (int) length, escaped ? escaped : "",
          shown ? shown : "");
}

/* What is in an object is named by both, each item of a list has a line.  A
 * cap on the depth, as what a provider reports is its own. */
static void
print_lines (const char *outer, json_t *object, int depth)
{
  json_t *value, *item;
  const char *key;
  size_t i;

  json_object_foreach (object, key, value) {
    auto_free char *name = text_printf ("%s%s%s", outer, *outer ? "." : "",
                                        key);

    if (!name)
      continue;
    if (json_is_object (value) && !json_object_get (value, "b64")
        && depth < INFO_DEPTH)
      print_lines (name, value, depth + 1);
    else if (json_is_array (value))
      json_array_foreach (value, i, item)
        print_line (name, key, item);
    else
      print_line (name, key, value);
  }
}

static int
print_info (struct cli *cli, json_t *take_info, struct error **err)
{
  auto_json json_t *info = take_info;

  if (cli->json)
    return output_json (steal (info), err);
  print_lines ("", info, 0);
  return output_finish (err);
}

static int
info_run (struct cli *cli, struct error **err)
{
  json_t *info = NULL;

  if (work_info (cli, cli->args[0], &info, err) < 0)
    return -1;
  return print_info (cli, info, err);
}

/* ---- list --------------------------------------------------------------- */

/* How long until then: "59m 58s", "-" for never. */
static char *
remaining (const json_t *expires)
{
  int64_t at = json_integer_value (expires), now = coffer_realtime_ns ();

  if (at == 0)
    return strdup ("-");
  if (at <= now)
    return strdup ("now");
  return text_format_duration ((uint64_t) (at - now) / 1000000000 * 1000);
}

static void
add_row (struct output_table *table, const json_t *item)
{
  auto_free char *id = output_shown (json_object_get (item, "id"));
  auto_free char *provider = output_shown (json_object_get (item, "provider"));
  auto_free char *state = output_shown (json_object_get (item, "state"));
  auto_free char *created = shown_value (
    "created_ns", json_object_get (item, "created_ns"));
  auto_free char *left = remaining (json_object_get (item, "expires_ns"));
  const char *cells[] = { id, provider, state, created, left };

  output_table_row (table, cells);
}

static int
list_run (struct cli *cli, struct error **err)
{
  static const char *const heads[] = { "ID", "PROVIDER", "STATE", "CREATED",
                                       "ENDS IN" };
  auto_output_table struct output_table *table = NULL;
  auto_json json_t *list = NULL;
  json_t *item;
  size_t i;

  if (work_list (cli, &list, err) < 0)
    return -1;
  if (cli->json)
    return output_json (steal (list), err);
  table = output_table_new (5, heads);
  json_array_foreach (list, i, item)
    add_row (table, item);
  return output_table_print (table, cli, err);
}

/* ---- kill --------------------------------------------------------------- */

static int
kill_one (struct cli *cli, const char *id, struct error **err)
{
  int gone = 0;

  if (work_kill (cli, id, &gone, err) < 0)
    return -1;
  if (cli->json)
    return output_json (json_pack ("{s:o, s:b}", "id",
                                   json_bytes (id, strlen (id)),
                                   "already_gone", gone),
                        err);
  output_styled (cli, stdout, STYLE_PLAIN, id);
  printf (" %s\n", gone ? "was gone already" : "killed");
  return output_finish (err);
}

/* One that cannot be killed does not save the others: its error is printed,
 * or left in `err` when it is the first. */
static int
kill_next (struct cli *cli, const char *id, struct error **err)
{
  auto_error struct error *error = NULL;

  if (!id || kill_one (cli, id, &error) == 0)
    return 0;
  if (!*err)
    return error_move (err, steal (error));
  output_error (cli, error);
  return -1;
}

/* Ids of all sandboxes, after asking. */
static int
all_ids (struct cli *cli, json_t **list, struct error **err)
{
  auto_free char *question = NULL;

  if (cli->n_args)
    return error_set (err, E_USAGE, 0, "--all and an id do not go together");
  if (work_list (cli, list, err) < 0)
    return -1;
  if (json_array_size (*list) == 0)
    return 0;
  question = text_printf ("kill %zu sandbox%s", json_array_size (*list),
                          json_array_size (*list) == 1 ? "" : "es");
  return output_confirm (cli, question ? question : "kill all", err);
}

static int
kill_run (struct cli *cli, struct error **err)
{
  auto_json json_t *list = NULL;
  json_t *item;
  size_t i;
  int n, r = 0;

  if (!cli->n_args && !cli_flag (cli, "all"))
    return error_set (err, E_USAGE, 0, "coffer sandbox kill needs an ID");
  if (cli_flag (cli, "all") && all_ids (cli, &list, err) < 0)
    return -1;
  for (n = 0; n < cli->n_args; n++)
    r |= kill_next (cli, cli->args[n], err);
  json_array_foreach (list, i, item)
    r |= kill_next (cli, json_string_value (json_object_get (item, "id")),
                    err);
  return r;
}

/* ---- prune -------------------------------------------------------------- */

static void
print_ids (const json_t *result, const char *key, const char *what)
{
  const json_t *list = json_object_get (result, key), *item;
  size_t i;

  json_array_foreach (list, i, item) {
    const json_t *id = json_is_object (item) ? json_object_get (item, "id")
                                             : item;
    auto_free char *shown = output_shown (id);
    auto_free char *reason = json_is_object (item)
      ? output_shown (json_object_get (item, "reason")) : NULL;

    printf ("%s %s%s%s\n", shown ? shown : "", what, reason ? ": " : "",
            reason ? reason : "");
  }
}

static int
prune_run (struct cli *cli, struct error **err)
{
  auto_json json_t *result = NULL;
  struct host *host;

  if (cli_host (cli, 0, &host, err) < 0
      || sandbox_prune (host, &result, err) < 0)
    return -1;
  if (cli->json)
    return output_json (steal (result), err);
  print_ids (result, "killed", "killed");
  print_ids (result, "dropped", "forgotten: it was gone");
  print_ids (result, "kept", "kept");
  return output_finish (err);
}

/* ---- the rows ----------------------------------------------------------- */

static const struct cli_option create_options[] = {
  SPEC_OPTIONS,
  COMMAND_OPTIONS,
  { "ttl", 0, "TIME", 0, "life of the sandbox; 1h unless said" },
  { "port", 0, "NUMBER", OPTION_REPEATED, "a port that will be reached" },
  { "metadata", 0, "NAME=VALUE", OPTION_REPEATED,
    "kept with the sandbox and shown, not interpreted" },
  { NULL }
};

static const struct cli_option kill_options[] = {
  { "all", 0, NULL, 0, "kill every sandbox, after asking" }, { NULL }
};

const struct cli_command sandbox_commands[] = {
  { "sandbox create", "", "make a sandbox and print its id", create_options, 0,
    0, -1, COMMAND_DAEMON, create_run },
  { "sandbox list", "", "list the sandboxes there are", NULL, 0, 0, -1,
    COMMAND_DAEMON, list_run },
  { "sandbox info", "ID", "show what is known of a sandbox", NULL, 1, 1, -1,
    COMMAND_DAEMON, info_run },
  { "sandbox kill", "ID… | --all", "end sandboxes and all that runs in them",
    kill_options, 0, -1, -1, COMMAND_DAEMON, kill_run },
  { "sandbox prune", "", "clear away what has expired or is gone", NULL, 0, 0,
    -1, 0, prune_run },
  { NULL }
};
