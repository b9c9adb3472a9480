/* SPDX-License-Identifier: Apache-2.0 */
/* What a command's function asks of its invocation: values of options and
 * places. */

#include <config.h>

#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "client/client.h"
#include "sandbox/sandbox.h"

const char *
cli_value (const struct cli *cli, const char *name)
{
  size_t i;

  for (i = cli->n_given; i-- > 0;)
    if (!strcmp (cli->given[i].option->name, name))
      return cli->given[i].value;
  return NULL;
}

int
cli_flag (const struct cli *cli, const char *name)
{
  size_t i;

  for (i = 0; i < cli->n_given; i++)
    if (!strcmp (cli->given[i].option->name, name))
      return 1;
  return 0;
}

int
cli_values (const struct cli *cli, const char *name, const char ***out,
            struct error **err)
{
  const char **values = calloc (cli->n_given + 1, sizeof *values);
  size_t i, n = 0;

  if (!values)
    return error_set (err, E_NO_MEMORY, 0, "reading the options");
  for (i = 0; i < cli->n_given; i++)
    if (!strcmp (cli->given[i].option->name, name))
      values[n++] = cli->given[i].value;
  *out = values;
  return (int) n;
}

/* "--mem 1K is not a size from 1MiB to 1EiB". */
static int
fail_range (const char *name, const char *value, const char *what,
            enum profile_field field, struct error **err)
{
  auto_free char *min = profile_format (field, profile_fields[field].min);
  auto_free char *max = profile_format (field, profile_fields[field].max);

  error_set (err, E_INVALID, 0, "--%s %s is not a %s from %s to %s", name,
             value, what, min ? min : "?", max ? max : "?");
  error_detail (err, "field", json_string (name));
  return -1;
}

static int
in_range (enum profile_field field, uint64_t value)
{
  return value >= profile_fields[field].min
         && value <= profile_fields[field].max;
}

int
cli_size (const struct cli *cli, const char *name, enum profile_field field,
          uint64_t *bytes, struct error **err)
{
  const char *value = cli_value (cli, name);
  uint64_t parsed;

  if (!value)
    return 0;
  if (text_parse_size (value, &parsed) < 0 || !in_range (field, parsed)) {
    fail_range (name, value, "size", field, err);
    error_hint (err, "write a size such as 512M or 1.5GiB");
    return -1;
  }
  *bytes = parsed;
  return 0;
}

int
cli_duration (const struct cli *cli, const char *name,
              enum profile_field field, uint64_t *ms, struct error **err)
{
  const char *value = cli_value (cli, name);
  uint64_t parsed;

  if (!value)
    return 0;
  if (text_parse_duration (value, &parsed) < 0 || !in_range (field, parsed)) {
    fail_range (name, value, "duration", field, err);
    error_hint (err, "write a duration such as 500ms, 30s, 5m or 2h");
    return -1;
  }
  *ms = parsed;
  return 0;
}

int
cli_cpus (const struct cli *cli, const char *name, uint32_t *millis,
          struct error **err)
{
  const char *value = cli_value (cli, name);
  uint64_t parsed;

  if (!value)
    return 0;
  if (text_parse_millis (value, &parsed) < 0
      || !in_range (PROFILE_CPUS, parsed)) {
    fail_range (name, value, "number", PROFILE_CPUS, err);
    error_hint (err, "write how many processors' worth of time, such as 1.5");
    return -1;
  }
  *millis = (uint32_t) parsed;
  return 0;
}

int
cli_number (const struct cli *cli, const char *name, uint64_t min,
            uint64_t max, uint64_t *out, struct error **err)
{
  const char *value = cli_value (cli, name);

  if (!value)
    return 0;
  if (text_parse_u64 (value, min, max, out) == 0)
    return 0;
  error_set (err, E_INVALID, 0, "--%s %s is not a number from %llu to %llu",
             name, value, (unsigned long long) min, (unsigned long long) max);
  error_detail (err, "field", json_string (name));
  return -1;
}

int
cli_place (struct cli *cli, const struct place **out, struct error **err)
{
  if (!cli->place && place_find (&cli->place, err) < 0)
    return -1;
  *out = cli->place;
  return 0;
}

int
cli_failure_status (const struct cli *cli, const struct error *err)
{
  const struct error_info *info;

  if (err->number == E_EXEC_CANCELLED && sandbox_signal_caught ())
    return 128 + sandbox_signal_caught ();
  if (cli->command && cli->command->flags & COMMAND_RUNS)
    return 125;
  info = error_lookup (err->number);
  return info ? info->exit_status : 1;
}

void
cli_fini (struct cli *cli)
{
  host_close (cli->opened);
  client_free (cli->daemon);
  free (cli->args);
  free (cli->given);
  place_free (cli->place);
}
