/* SPDX-License-Identifier: Apache-2.0 */
/* `coffer serve --routes`: every path that is served, for people and for what
 * compares it with the document. */

#include <config.h>

#include <stdio.h>

#include "base/json.h"
#include "server/routes.h"
#include "server/route.h"

static json_t *
route_json (const struct route *route)
{
  return json_pack ("{s:s, s:s, s:s, s:s, s:b, s:b, s:b, s:b}", "method",
                    route->method, "path", route->path, "right",
                    right_name (route->right), "operation",
                    route->operation, "anonymous",
                    route->flags & ROUTE_ANONYMOUS, "mutates",
                    route->flags & ROUTE_MUTATES, "long",
                    route->flags & ROUTE_LONG, "json",
                    route->flags & ROUTE_JSON);
}

static int
print_json (struct error **err)
{
  const struct route *const *surface, *route;
  auto_json json_t *routes = json_array ();
  auto_json json_t *document = json_pack ("{s:O}", "routes", routes);
  auto_free char *text = NULL;

  for (surface = server_surfaces; *surface; surface++)
    for (route = *surface; route->method; route++)
      json_array_append_new (routes, route_json (route));
  text = document ? json_text (document) : NULL;
  if (!text)
    return error_set (err, E_NO_MEMORY, 0, "the routes");
  printf ("%s\n", text);
  return 0;
}

/* In columns: a path may have letters of several bytes. */
static size_t
width (const char *text)
{
  size_t n = 0;

  for (; *text; text++)
    n += ((unsigned char) *text & 0xc0) != 0x80;
  return n;
}

int
routes_print (int json, struct error **err)
{
  const struct route *const *surface, *route;
  size_t widest = 0;

  if (json)
    return print_json (err);
  for (surface = server_surfaces; *surface; surface++)
    for (route = *surface; route->method; route++)
      if (width (route->path) > widest)
        widest = width (route->path);
  for (surface = server_surfaces; *surface; surface++)
    for (route = *surface; route->method; route++)
      printf ("%-7s %s%*s %-7s %s\n", route->method, route->path,
              (int) (widest - width (route->path)), "",
              right_name (route->right), route->operation);
  return fflush (stdout) ? error_set (err, E_IO, errno, "standard output") : 0;
}
