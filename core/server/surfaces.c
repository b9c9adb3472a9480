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
  api_archive_routes,
  api_file_routes,
  api_kit_routes,
  api_metrics_routes,
  api_port_routes,
  api_profile_routes,
  api_provider_routes,
  box_routes,
  NULL
};
