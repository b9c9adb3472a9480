/* SPDX-License-Identifier: Apache-2.0 */
/* `coffer sandbox metrics`. */

#include <config.h>

#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/work.h"

static int
ends_in (const char *name, const char *end)
{
  size_t n = strlen (name), k = strlen (end);

  return n >= k && strcmp (name + n - k, end) == 0;
}

static char *
shown_number (const char *name, const json_t *value)
{
  const double number = json_number_value (value);

  if (ends_in (name, "_bytes") && number >= 0 && number < 1e18)
    return text_format_size ((uint64_t) number);
  if (ends_in (name, "_seconds_total"))
    return text_printf ("%.2f s", number);
  return output_shown (value);
}

/* Those that people look for first, in this order; what nobody measures is
 * said to be unknown, and has no number. */
static const char *const known[] = {
  "cpu_seconds_total", "memory_bytes", "memory_peak_bytes", "processes",
  "disk_bytes", NULL
};

static int
is_known (const char *name)
{
  size_t i;

  for (i = 0; known[i]; i++)
    if (strcmp (known[i], name) == 0)
      return 1;
  return 0;
}

static void
add_metric (struct output_table *table, const char *name,
            const json_t *value)
{
  auto_free char *shown = value ? shown_number (name, value) : NULL;
  const char *cells[] = { name, shown ? shown : "unknown" };

  output_table_row (table, cells);
}

static int
metrics_run (struct cli *cli, struct error **err)
{
  static const char *const heads[] = { "NAME", "VALUE" };
  auto_output_table struct output_table *table = NULL;
  auto_json json_t *metrics = NULL;
  const char *name;
  json_t *value;
  size_t i;

  if (work_metrics (cli, cli->args[0], &metrics, err) < 0)
    return -1;
  if (cli->json)
    return output_json (steal (metrics), err);
  table = output_table_new (2, heads);
  for (i = 0; known[i]; i++)
    add_metric (table, known[i], json_object_get (metrics, known[i]));
  json_object_foreach (metrics, name, value)
    if (!is_known (name))
      add_metric (table, name, value);
  return output_table_print (table, cli, err);
}

const struct cli_command sandbox_metrics_commands[] = {
  { "sandbox metrics", "ID", "show what a sandbox uses", NULL, 1, 1, -1,
    COMMAND_DAEMON, metrics_run },
  { NULL }
};
