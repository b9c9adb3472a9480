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

int
sandbox_pause (struct host *host, const char *id,
               const struct provider_call *call, json_t **out,
               struct error **err)
{
  auto_sandbox_record struct sandbox_record *record = NULL;
  struct provider *provider;

  if (host_reach (host, id, &record, &provider, err) < 0
      || claim_require (provider, "pause", err) < 0
      || INVOKE (provider, call, err, sandbox_pause, .sandbox = id) < 0
      || state_keep (host, record, SANDBOX_PAUSED, err) < 0)
    return -1;
  return sandbox_info (host, id, call, out, err);
}

int
sandbox_resume (struct host *host, const char *id,
                const struct provider_call *call, json_t **out,
                struct error **err)
{
  auto_sandbox_record struct sandbox_record *record = NULL;
  struct provider *provider;

  if (host_reach (host, id, &record, &provider, err) < 0
      || claim_require (provider, "pause", err) < 0
      || INVOKE (provider, call, err, sandbox_resume, .sandbox = id) < 0
      || state_keep (host, record, SANDBOX_RUNNING, err) < 0)
    return -1;
  return sandbox_info (host, id, call, out, err);
}
