/* SPDX-License-Identifier: Apache-2.0 */
/* Folders of a sandbox as tar, out of it and into it. */

#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "server/api/common.h"
#include "server/surfaces.h"

static ssize_t
nothing_fill (void *data, char *out, size_t max)
{
  (void) data;
  (void) out;
  (void) max;
  return -1;
}

static int
archive_get (struct request *request, struct error **err)
{
  const struct provider_call call = api_call (request);
  auto_free char *path = api_path (request, 1, err);
  struct api_stream reply = { .size = UINT64_MAX, .status = 200,
                              .type = "application/x-tar",
                              .slot = SHARE_TRANSFERS };
  const char *id;

  if (!path || own_sandbox (request, &id, err) < 0)
    return -1;
  if (request->head)
    return reply_stream (request, 200, reply.type,
                         &(struct reply_stream){ .fill = nothing_fill,
                                                 .size = UINT64_MAX }, err);
  if (api_slot_take (request, SHARE_TRANSFERS, err) < 0)
    return -1;
  if (sandbox_export (request->server->host, id, path, &call, &reply.stream,
                      err) == 0)
    return api_reply_stream (request, &reply, err);
  api_slot_give (request, SHARE_TRANSFERS);
  return -1;
}

static int
is_whole (void *data)
{
  return request_body_complete (data);
}

static int
archive_put (struct request *request, struct error **err)
{
  const struct provider_call call = api_call (request);
  auto_free char *path = api_path (request, 1, err);
  const char *id;
  int r;

  if (!path || own_sandbox (request, &id, err) < 0
      || api_slot_take (request, SHARE_TRANSFERS, err) < 0)
    return -1;
  r = sandbox_import (request->server->host, id, path, request->body_fd,
                      is_whole, request, &call, err);
  api_slot_give (request, SHARE_TRANSFERS);
  return r < 0 ? -1 : reply_json (request, 200,
                     json_pack ("{s:o}", "path",
                                json_bytes (path, strlen (path))), err);
}

#define ARCHIVE "/api/v1/sandboxes/{id}/archive/{path…}"

const struct route api_archive_routes[] = {
  { "GET", ARCHIVE, RIGHT_RUN, ROUTE_LONG, "exportArchive", archive_get },
  { "PUT", ARCHIVE, RIGHT_RUN, ROUTE_STREAM | ROUTE_LONG, "importArchive",
    archive_put },
  { NULL }
};
