/* SPDX-License-Identifier: Apache-2.0 */
/* The table of each surface; surfaces.c lists them. */

#ifndef SERVER_SURFACES_H
#define SERVER_SURFACES_H

#include "server/route.h"

extern const struct route openapi_routes[];
extern const struct route execute_routes[];
extern const struct route root_routes[];
extern const struct route api_sandbox_routes[];
extern const struct route api_exec_routes[];
extern const struct route api_event_routes[];
extern const struct route observe_routes[];
extern const struct route api_archive_routes[];
extern const struct route api_file_routes[];
extern const struct route api_kit_routes[];
extern const struct route api_metrics_routes[];
extern const struct route api_port_routes[];
extern const struct route api_profile_routes[];
extern const struct route api_provider_routes[];
extern const struct route box_routes[];

#endif /* SERVER_SURFACES_H */
