/* SPDX-License-Identifier: Apache-2.0 */
/* The opened host, calls, warnings. */

#include <config.h>

#include "cli/host.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <coffer/buffer.h>
#include <coffer/fd.h>

int
cli_host (struct cli *cli, unsigned flags, struct host **out,
          struct error **err)
{
  const struct place *place;

  if (!cli->opened
      && (cli_place (cli, &place, err) < 0
          || host_open (place, flags, &cli->opened, err) < 0))
    return -1;
  *out = cli->opened;
  return 0;
}

int
cli_call (uint64_t timeout_ms, struct output_progress *progress,
          struct provider_call *out, struct error **err)
{
  struct provider_call call = { 0 };

  call.cancel_fd = sandbox_signals_catch (err);
  if (call.cancel_fd < 0)
    return -1;
  if (timeout_ms > INT64_MAX / 2000000)
    timeout_ms = INT64_MAX / 2000000;
  if (timeout_ms)
    call.deadline_ns = coffer_now_ns () + (int64_t) timeout_ms * 1000000;
  if (progress) {
    call.sink.progress = output_progress_update;
    call.sink.data = progress;
  }
  *out = call;
  return 0;
}

int
cli_begin (struct cli *cli, struct host **host, struct provider_call *call,
           struct error **err)
{
  return cli_host (cli, 0, host, err) < 0
             || cli_call (0, NULL, call, err) < 0
           ? -1 : 0;
}

static void
warn_not_applied (const json_t *applied, const char *provider)
{
  const json_t *list = json_object_get (applied, "not_applied"), *item;
  coffer_autobuffer struct coffer_buffer text = { 0 };
  size_t i;

  json_array_foreach (list, i, item)
    coffer_buffer_printf (&text, "%s%s", i ? ", " : "",
                          json_string_value (item));
  if (text.size)
    output_note ("warning: not applied here: %s; coffer provider doctor %s"
                 " says why", text.data, provider);
}

void
cli_warn (const struct cli *cli, const char *provider, const json_t *applied)
{
  if (provider && !strcmp (provider, "host"))
    output_note ("warning: provider host is not a sandbox: the command runs "
                 "as you%s, with all that you may do",
                 geteuid () == 0 ? ", and you are root" : "");
  if (!cli->json)
    warn_not_applied (applied, provider ? provider : "");
}
