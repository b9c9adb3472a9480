/* SPDX-License-Identifier: Apache-2.0 */
/* GET /metrics and GET /api/v1/errors. */

#include <config.h>

#include <coffer/buffer.h>

#include "server/http.h"
#include "server/observe.h"
#include "server/surfaces.h"

static int
metrics_show (struct request *request, struct error **err)
{
  coffer_autobuffer struct coffer_buffer page = { 0 };

  if (metrics_write (observe_metrics (request->server), &page) < 0)
    return error_set (err, E_NO_MEMORY, 0, "out of memory");
  return reply_bytes (request, 200, METRICS_TYPE, page.data, page.size, err);
}

static int
errors_show (struct request *request, struct error **err)
{
  uint64_t limit = ERRORS_RING_TENANT_MAX;
  json_t *list;

  if (request_query_u64 (request, "limit", 1, ERRORS_RING_TENANT_MAX, &limit,
                         err) < 0)
    return -1;
  list = errors_ring_list (observe_errors (request->server),
                           request->caller.tenant, (size_t) limit);
  if (list == NULL)
    return error_set (err, E_NO_MEMORY, 0, "out of memory");
  return reply_json (request, 200, json_pack ("{s:o}", "errors", list), err);
}

const struct route observe_routes[] = {
  { "GET", "/metrics", RIGHT_VIEW, 0, "getMetrics", metrics_show },
  { "GET", "/api/v1/errors", RIGHT_VIEW, 0, "listErrors", errors_show },
  { NULL }
};
