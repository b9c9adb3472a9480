/* SPDX-License-Identifier: Apache-2.0 */
/* `coffer template add|list|remove`. */

#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/host.h"
#include "cli/output.h"
#include "sandbox/template.h"
#include "store/template.h"

static uint64_t
number (const json_t *entry, const char *key)
{
  uint64_t value = 0;

  json_get_u64 (json_object_get (entry, key), &value);
  return value;
}

static int
add_run (struct cli *cli, struct error **err)
{
  auto_json json_t *entry = NULL;
  auto_free char *size = NULL;
  const struct place *place;
  struct output_progress progress;
  struct helper_watch watch = { sandbox_signals_catch (err),
                                output_progress_update, &progress };
  int r;

  if (watch.cancel_fd < 0 || cli_place (cli, &place, err) < 0)
    return -1;
  output_progress_begin (&progress, cli, "keeping the template");
  r = template_add (place, cli->args[0], cli->args[1], &watch, &entry, err);
  output_progress_end (&progress);
  if (r < 0)
    return -1;
  if (cli->json)
    return output_json (steal (entry), err);
  size = text_format_size (number (entry, "bytes"));
  printf ("%s %.12s: %llu entries, %s\n", cli->args[0],
          json_string_value (json_object_get (entry, "digest")),
          (unsigned long long) number (entry, "files"), size ? size : "?");
  if (number (entry, "left_out"))
    output_note ("%llu device%s left out: a sandbox has its own",
                 (unsigned long long) number (entry, "left_out"),
                 number (entry, "left_out") == 1 ? "" : "s");
  if (number (entry, "stripped"))
    output_note ("%llu set-user-ID or set-group-ID bit%s dropped",
                 (unsigned long long) number (entry, "stripped"),
                 number (entry, "stripped") == 1 ? "" : "s");
  return output_finish (err);
}

static int
list_run (struct cli *cli, struct error **err)
{
  static const char *const heads[] = { "NAME", "DIGEST", "ENTRIES", "SIZE",
                                       "ADDED", "SOURCE" };
  auto_output_table struct output_table *table = NULL;
  auto_json json_t *list = NULL;
  const struct place *place;
  json_t *entry;
  size_t i;

  if (cli_place (cli, &place, err) < 0 || template_list (place, &list, err) < 0)
    return -1;
  if (cli->json)
    return output_json (steal (list), err);
  table = output_table_new (6, heads);
  json_array_foreach (list, i, entry) {
    auto_free char *size = text_format_size (number (entry, "bytes"));
    auto_free char *files = output_shown (json_object_get (entry, "files"));
    auto_free char *source = output_shown (json_object_get (entry, "source"));
    auto_free char *added = text_format_time (json_integer_value (
      json_object_get (entry, "created_ns")));
    char digest[13];
    const char *cells[6];

    snprintf (digest, sizeof digest, "%s",
              json_string_value (json_object_get (entry, "digest")));
    cells[0] = json_string_value (json_object_get (entry, "name"));
    cells[1] = digest;
    cells[2] = files;
    cells[3] = size;
    cells[4] = added;
    cells[5] = source;
    output_table_row (table, cells);
  }
  return output_table_print (table, cli, err);
}

static int
remove_run (struct cli *cli, struct error **err)
{
  struct host *host;

  if (cli_host (cli, 0, &host, err) < 0
      || sandbox_template_remove (host, cli->args[0], err) < 0)
    return -1;
  if (cli->json)
    return output_json (json_pack ("{s:s}", "removed", cli->args[0]), err);
  printf ("%s removed\n", cli->args[0]);
  return output_finish (err);
}

const struct cli_command template_commands[] = {
  { "template add", "NAME DIR|ARCHIVE",
    "keep a root file system that sandboxes can be made of", NULL, 2, 2, -1,
    0, add_run },
  { "template list", "", "list the templates there are", NULL, 0, 0, -1, 0,
    list_run },
  { "template remove", "NAME", "remove a template that nobody uses", NULL, 1,
    1, -1, 0, remove_run },
  { NULL }
};
