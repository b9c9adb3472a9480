/* SPDX-License-Identifier: Apache-2.0 */
/* A module in a process of its own: the host's side. */

#include "config.h"

#include "provider/dispatch.h"

int
worker_start (struct provider *provider, struct error **err)
{
  return error_set (err, E_PROVIDER_FAILED, 0,
                    "%s: this build runs shipped modules only",
                    provider->manifest->id);
}
