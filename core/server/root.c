/* SPDX-License-Identifier: Apache-2.0 */
/* GET /api/v1: what answers here. */

#include <config.h>

#include "server/http.h"
#include "server/surfaces.h"

#define API_VERSION "v1"

static int
root_show (struct request *request, struct error **err)
{
  return reply_json (request, 200,
                     json_pack ("{s:s, s:s, s:s}", "name", "coffer", "version",
                                PACKAGE_VERSION, "api", API_VERSION), err);
}

const struct route root_routes[] = {
  { "GET", "/api/v1", RIGHT_VIEW, 0, "getApi", root_show },
  { NULL }
};
