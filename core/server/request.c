/* SPDX-License-Identifier: Apache-2.0 */
/* What a handler asks of its request; and its id. */

#include <config.h>

#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "server/exchange.h"

const char *
request_header (const struct request *request, const char *name)
{
  return MHD_lookup_connection_value (exchange_of (request)->http,
                                      MHD_HEADER_KIND, name);
}

const char *
request_query_nth (const struct request *request, const char *name, size_t n)
{
  const struct coffer_strings *list = &exchange_of (request)->arguments;
  size_t i;

  for (i = 0; i + 1 < list->count; i += 2)
    if (strcmp (list->items[i], name) == 0 && n-- == 0)
      return list->items[i + 1];
  return NULL;
}

const char *
request_query (const struct request *request, const char *name)
{
  return request_query_nth (request, name, 0);
}

struct walk {
  int (*each) (void *data, const char *name, const char *value);
  void *data;
};

static enum MHD_Result
walk_header (void *data, enum MHD_ValueKind kind, const char *name,
             const char *value)
{
  const struct walk *walk = data;

  (void) kind;
  return walk->each (walk->data, name, value ? value : "") == 0 ? MHD_YES
                                                                : MHD_NO;
}

void
request_each_header (const struct request *request,
                     int (*each) (void *data, const char *name,
                                  const char *value), void *data)
{
  struct walk walk = { each, data };

  MHD_get_connection_values (exchange_of (request)->http, MHD_HEADER_KIND,
                             walk_header, &walk);
}

int
request_query_u64 (const struct request *request, const char *name,
                   uint64_t min, uint64_t max, uint64_t *inout,
                   struct error **err)
{
  const char *value = request_query (request, name);

  if (!value || text_parse_u64 (value, min, max, inout) == 0)
    return 0;
  return error_set (err, E_REQUEST, 0, "%s wants a number from %ju to %ju",
                    name, (uintmax_t) min, (uintmax_t) max);
}

int
request_body_complete (const struct request *request)
{
  return atomic_load (&exchange_of (request)->complete);
}

struct share_hold *
request_output (struct request *request)
{
  struct share_hold *hold = &exchange_of (request)->output;

  hold->shares = request->server->shares;
  hold->share = SHARE_OUTPUT;
  hold->tenant = request->caller.tenant;
  return hold;
}

struct provider_call
request_call (const struct request *request)
{
  return (struct provider_call){ .deadline_ns = request->deadline_ns,
                                 .cancel_fd = request->cancel_fd };
}

static void
set_deadline (struct request *request, int64_t deadline_ns)
{
  request->deadline_ns = deadline_ns;
  connection_set (exchange_of (request)->connection, CONNECTION_WORKS,
                  deadline_ns);
}

void
request_hasten (struct request *request, int64_t deadline_ns)
{
  if (deadline_ns < request->deadline_ns)
    set_deadline (request, deadline_ns);
}

void
request_prolong (struct request *request, int64_t deadline_ns)
{
  if (deadline_ns > request->deadline_ns)
    set_deadline (request, deadline_ns);
}
