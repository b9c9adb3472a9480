/* SPDX-License-Identifier: Apache-2.0 */
/* A run of the conformance kit: lines that say that it still runs, and a last
 * one with its report or an error.  Who leaves ends it. */

#include <config.h>

#include <stdlib.h>
#include <string.h>

#include <coffer/buffer.h>
#include <coffer/fd.h>

#include "base/text.h"
#include "server/api/common.h"
#include "server/api/fields.h"
#include "server/api/kit-run.h"
#include "server/surfaces.h"

#define BEAT_MS 5000

struct telling {
  struct kit_run *run;          /* NULL: it has ended */
  int cancel_fd;
  int64_t began_ns;
  char *line;                   /* being sent */
  size_t given;
};

static void
telling_free (void *data)
{
  struct telling *telling = data;

  kit_run_free (telling->run);
  free (telling->line);
  free (telling);
}

static int
set_line (struct telling *telling, json_t *take_json)
{
  auto_json json_t *json = take_json;
  auto_free char *text = json ? json_text (json) : NULL;

  free (telling->line);
  telling->line = text ? text_printf ("%s\n", text) : NULL;
  telling->given = 0;
  return telling->line ? 0 : -1;
}

/* The kit's own words: an error is one, the rest is a report. */
static json_t *
last_line (json_t *take_report)
{
  auto_json json_t *report = take_report;
  json_t *error = json_object_get (report, "error");

  return error ? json_pack ("{s:s, s:O}", "event", "failed", "error", error)
               : json_pack ("{s:s, s:O}", "event", "report", "report", report);
}

static json_t *
failed_line (const struct error *error)
{
  auto_json json_t *json = error_to_json (error);

  return json_pack ("{s:s, s:O}", "event", "failed", "error",
                    json_object_get (json, "error"));
}

static int
next_line (struct telling *telling)
{
  auto_error struct error *error = NULL;
  json_t *report = NULL;
  int r = kit_run_wait (telling->run, BEAT_MS, telling->cancel_fd, &report,
                        &error);

  if (r == 0)
    return set_line (telling,
                     json_pack ("{s:s, s:I}", "event", "running", "ms",
                                (json_int_t) ((coffer_now_ns ()
                                               - telling->began_ns)
                                              / 1000000)));
  kit_run_free (steal (telling->run));
  if (r < 0 && error && error->number == E_EXEC_CANCELLED)
    return -1;
  return set_line (telling, r > 0 ? last_line (report) : failed_line (error));
}

static ssize_t
telling_fill (void *data, char *out, size_t max)
{
  struct telling *telling = data;
  size_t n;

  if (telling->line && !telling->line[telling->given]) {
    free (steal (telling->line));
    if (!telling->run)
      return 0;
  }
  if (!telling->line && next_line (telling) < 0)
    return -1;
  n = strlen (telling->line + telling->given);
  if (n > max)
    n = max;
  memcpy (out, telling->line + telling->given, n);
  telling->given += n;
  return (ssize_t) n;
}

/* The provider is one that there is; what is wrong with it the kit says. */
static int
check_provider (const struct request *request, const char *id,
                struct error **err)
{
  auto_registry struct registry *registry = NULL;
  const struct registry_entry *entry;

  if (registry_load_one (request->server->place, id, &registry, err) < 0)
    return -1;
  return registry->count ? 0 : registry_find (registry, id, &entry, err);
}

static int
kit_post (struct request *request, struct error **err)
{
  struct kit_options options = { .provider = request->params[0],
                                 .only = request_query (request, "only"),
                                 .seed = request_query (request, "seed") };
  struct telling *telling;
  uint64_t seed;

  if (fields_none (request->body, err) < 0
      || api_flag (request, "record", &options.record, err) < 0
      || request_query_u64 (request, "seed", 0, UINT64_MAX, &seed, err) < 0
      || check_provider (request, options.provider, err) < 0)
    return -1;
  telling = calloc (1, sizeof *telling);
  if (!telling)
    return error_set (err, E_NO_MEMORY, 0, "the kit");
  telling->cancel_fd = request->cancel_fd;
  telling->began_ns = coffer_now_ns ();
  if (kit_run_begin (request->server->place, &options, &telling->run, err) < 0
      || set_line (telling, json_pack ("{s:s, s:s}", "event", "started",
                                       "provider", options.provider)) < 0) {
    telling_free (telling);
    return -1;
  }
  return reply_stream (request, 200, "application/x-ndjson",
                       &(struct reply_stream){ .fill = telling_fill,
                                               .free = telling_free,
                                               .data = telling,
                                               .size = UINT64_MAX }, err);
}

const struct route api_kit_routes[] = {
  { "POST", "/api/v1/kit/{provider}", RIGHT_OPERATE, ROUTE_JSON | ROUTE_LONG,
    "runKit", kit_post },
  { NULL }
};
