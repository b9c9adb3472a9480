/* SPDX-License-Identifier: Apache-2.0 */
/* GET /api/v1/openapi.json: the document that describes all that is served, as
 * it lies beside this file.  A test compares it with the tables of routes. */

#include <config.h>

#include "server/http.h"
#include "server/surfaces.h"

static const char document[] =
#include "server/api/openapi.h"
  ;

static int
openapi_show (struct request *request, struct error **err)
{
  return reply_bytes (request, 200, "application/json", document,
                      sizeof document - 1, err);
}

const struct route openapi_routes[] = {
  { "GET", "/api/v1/openapi.json", RIGHT_VIEW, 0, "getDocument",
    openapi_show },
  { NULL }
};
