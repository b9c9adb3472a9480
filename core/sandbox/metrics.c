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

static int
metrics_ask (struct provider *provider, const char *id,
             struct provider_call *call, json_t **out, struct error **err)
{
  auto_json json_t *metrics = json_object ();

  call->sink.record = sink_metric;
  call->sink.data = metrics;
  if (INVOKE (provider, call, err, metrics, .sandbox = id) < 0)
    return -1;
  *out = steal (metrics);
  return 0;
}

int
provider_metrics (struct provider *provider, const char *of, int64_t ms,
                  json_t **out)
{
  struct provider_call call = call_in (ms, -1);

  return provider_claims (provider, "metrics")
           ? metrics_ask (provider, of, &call, out, NULL) : -1;
}

int
sandbox_metrics (struct host *host, const char *id,
                 const struct provider_call *call, json_t **out,
                 struct error **err)
{
  auto_sandbox_record struct sandbox_record *record = NULL;
  struct provider_call inner = call ? *call : call_in (60000, -1);
  struct provider *provider;

  return host_reach (host, id, &record, &provider, err) < 0
             || claim_require (provider, "metrics", err) < 0
           ? -1 : metrics_ask (provider, id, &inner, out, err);
}
