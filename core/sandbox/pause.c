/* SPDX-License-Identifier: Apache-2.0 */
/* Sandboxes that rest and go on. */

#include "config.h"

#include "base/json.h"
#include "sandbox/host.h"
#include "sandbox/request.h"
#include "sandbox/runs.h"

/* The record says what the provider was last told; what it says itself counts
 * wherever it is asked. */
static int
state_keep (struct host *host, struct sandbox_record *record,
            enum sandbox_state state, struct error **err)
{
  record->state = state;
  if (run_is (record) || !host_records (host))
    return 0;
  return records_update (host_records (host), record, err);
}

static int
state_change (struct host *host, const char *id, enum sandbox_state state,
              const struct provider_call *call, json_t **out,
              struct error **err)
{
  auto_sandbox_record struct sandbox_record *record = NULL;
  struct provider *provider;
  int r;

  if (host_reach (host, id, &record, &provider, err) < 0
      || claim_require (provider, "pause", err) < 0)
    return -1;
  r = state == SANDBOX_PAUSED
        ? INVOKE (provider, call, err, sandbox_pause, .sandbox = id)
        : INVOKE (provider, call, err, sandbox_resume, .sandbox = id);
  if (r < 0 || state_keep (host, record, state, err) < 0)
    return -1;
  return sandbox_info (host, id, call, out, err);
}

int
sandbox_pause (struct host *host, const char *id,
               const struct provider_call *call, json_t **out,
               struct error **err)
{
  return state_change (host, id, SANDBOX_PAUSED, call, out, err);
}

int
sandbox_resume (struct host *host, const char *id,
                const struct provider_call *call, json_t **out,
                struct error **err)
{
  return state_change (host, id, SANDBOX_RUNNING, call, out, err);
}
