/* SPDX-License-Identifier: Apache-2.0 */
/* What a sandbox uses, as its provider measures it. */

#include "config.h"

#include <math.h>

#include "base/json.h"
#include "sandbox/host.h"
#include "sandbox/request.h"

#define WHOLE_MAX 9007199254740992.0    /* 2^53 */

/* A whole number as one; none that JSON has no word for. */
static int
sink_metric (void *data, const struct contract_record *type, void *record)
{
  const struct coffer_metric *metric = record;
  json_t *value;

  if (type->id != COFFER_REC_metric || !metric->name
      || !isfinite (metric->value))
    return 0;
  value = metric->value > -WHOLE_MAX && metric->value < WHOLE_MAX
              && metric->value == (double) (int64_t) metric->value
            ? json_integer ((json_int_t) metric->value)
            : json_real (metric->value);
  return json_object_set_new (data, metric->name, value);
}

int
sandbox_metrics (struct host *host, const char *id,
                 const struct provider_call *call, json_t **out,
                 struct error **err)
{
  auto_sandbox_record struct sandbox_record *record = NULL;
  struct provider_call inner = call ? *call : call_in (60000, -1);
  auto_json json_t *metrics = json_object ();
  struct provider *provider;

  if (host_reach (host, id, &record, &provider, err) < 0
      || claim_require (provider, "metrics", err) < 0)
    return -1;
  inner.sink.record = sink_metric;
  inner.sink.data = metrics;
  if (INVOKE (provider, &inner, err, metrics, .sandbox = id) < 0)
    return -1;
  *out = steal (metrics);
  return 0;
}
