/* SPDX-License-Identifier: Apache-2.0 */
/* What a sandbox uses. */

#include <config.h>

#include "server/api/own.h"
#include "server/surfaces.h"

static int
metrics_get (struct request *request, struct error **err)
{
  const struct provider_call call = request_call (request);
  const char *id;
  json_t *metrics;

  if (own_sandbox (request, &id, err) < 0
      || sandbox_metrics (request->server->host, id, &call, &metrics, err) < 0)
    return -1;
  return reply_json (request, 200, metrics, err);
}

const struct route api_metrics_routes[] = {
  { "GET", "/api/v1/sandboxes/{id}/metrics", RIGHT_VIEW, 0,
    "getSandboxMetrics", metrics_get },
  { NULL }
};
