/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles and templates: what sandboxes can be made of.  Which file of the
 * host one comes from is for those who manage it. */

#include <config.h>

#include <string.h>

#include "base/json.h"
#include "policy/profile.h"
#include "server/http.h"
#include "server/server.h"
#include "server/surfaces.h"
#include "store/template.h"

static void
hide_source (const struct request *request, json_t *object)
{
  const char *source = json_string_value (json_object_get (object, "source"));

  if (source && source[0] == '/' && !(request->caller.rights & RIGHT_MANAGE))
    json_object_set_new (object, "source", json_string ("operator"));
}

/* {"NAME": […]} */
static int
reply_list (struct request *request, const char *name, json_t *take_list,
            struct error **err)
{
  json_t *item;
  size_t i;

  json_array_foreach (take_list, i, item)
    hide_source (request, item);
  return reply_json (request, 200, json_pack ("{s:o}", name, take_list), err);
}

static int
profiles_get (struct request *request, struct error **err)
{
  json_t *list;

  if (profile_list (request->server->place, &list, err) < 0)
    return -1;
  return reply_list (request, "profiles", list, err);
}

static int
profile_get (struct request *request, struct error **err)
{
  auto_profile struct profile *profile = NULL;
  json_t *json;

  if (profile_find (request->server->place, request->params[0], &profile, err)
      < 0)
    return -1;
  json = profile_to_json (profile);
  hide_source (request, json);
  return reply_json (request, 200, json, err);
}

static int
templates_get (struct request *request, struct error **err)
{
  json_t *list, *item;
  size_t i;

  if (template_list (request->server->place, &list, err) < 0)
    return -1;
  /* What one was made of may have any form, and is a path of the host. */
  if (!(request->caller.rights & RIGHT_MANAGE))
    json_array_foreach (list, i, item)
      json_object_del (item, "source");
  return reply_list (request, "templates", list, err);
}

const struct route api_profile_routes[] = {
  { "GET", "/api/v1/profiles", RIGHT_VIEW, 0, "listProfiles", profiles_get },
  { "GET", "/api/v1/profiles/{name}", RIGHT_VIEW, 0, "getProfile",
    profile_get },
  { "GET", "/api/v1/templates", RIGHT_VIEW, 0, "listTemplates",
    templates_get },
  { NULL }
};
