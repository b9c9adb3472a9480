/* SPDX-License-Identifier: Apache-2.0 */
/* Every surface there is, in the order in which a path is looked up. */

#include <config.h>

#include "server/surfaces.h"

const struct route *const server_surfaces[] = {
  openapi_routes,
  root_routes,
  api_sandbox_routes,
  api_exec_routes,
  api_event_routes,
  execute_routes,
  observe_routes,
  NULL
};
