/* SPDX-License-Identifier: Apache-2.0 */
/* Files and folders of a sandbox: read in parts, written whole, looked at,
 * listed, made, renamed, removed, watched.
 *
 * The path behind …/files/ is percent-encoded bytes: below the workspace, or
 * absolute where it begins with a slash ("files//etc/hosts", "files/%2Fetc"). */

#include <config.h>

#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "base/sha256.h"
#include "base/text.h"
#include "server/api/common.h"
#include "server/api/fields.h"
#include "server/surfaces.h"

#define OCTETS "application/octet-stream"
#define LINES "application/x-ndjson"
#define DEPTH_MAX 64
#define ENTRIES_MAX 10000       /* of a list that is one document */

/* ---- reading ------------------------------------------------------------- */

struct range {
  uint64_t first, size;         /* of what is sent */
  int partial;
};

/* "bytes=2-5", "bytes=2-", "bytes=-4".  0: there is one, 1: none that is
 * understood, and all is sent; -1: there is no such part. */
static int
range_read (const char *text, uint64_t size, struct range *out)
{
  auto_free char *copy = NULL;
  uint64_t first = 0, last = UINT64_MAX;
  char *dash;

  if (!text || strncasecmp (text, "bytes=", 6) != 0
      || !(copy = strdup (text + 6)) || !(dash = strchr (copy, '-')))
    return 1;
  *dash++ = '\0';
  if ((*copy && text_parse_u64 (copy, 0, UINT64_MAX, &first) < 0)
      || (*dash && text_parse_u64 (dash, 0, UINT64_MAX, &last) < 0)
      || (!*copy && !*dash) || (*copy && *dash && last < first))
    return 1;
  if (!*copy) {                 /* the last so many */
    if (last == 0 || size == 0)
      return -1;
    first = last < size ? size - last : 0;
    last = size - 1;
  }
  if (first >= size)
    return -1;
  *out = (struct range){ first, (last < size ? last + 1 : size) - first, 1 };
  return 0;
}

/* 206 or 416 says of how much it is a part. */
static int
range_find (struct request *request, const char *path, uint64_t size,
            struct range *range, struct error **err)
{
  char text[80];
  int r = 1;

  *range = (struct range){ 0, size, 0 };
  if (!request_header (request, "If-Range"))
    r = range_read (request_header (request, "Range"), size, range);
  if (reply_header (request, "Accept-Ranges", "bytes", err) < 0)
    return -1;
  if (r > 0)
    return 0;
  if (r == 0)
    snprintf (text, sizeof text, "bytes %llu-%llu/%llu",
              (unsigned long long) range->first,
              (unsigned long long) (range->first + range->size - 1),
              (unsigned long long) size);
  else
    snprintf (text, sizeof text, "bytes */%llu", (unsigned long long) size);
  if (reply_header (request, "Content-Range", text, err) < 0)
    return -1;
  return r == 0 ? 0
                : error_set (err, E_RANGE, 0, "%s has %llu bytes", path,
                             (unsigned long long) size);
}

/* What a HEAD shows: nothing is read for it. */
static ssize_t
nothing_fill (void *data, char *out, size_t max)
{
  (void) data;
  (void) out;
  (void) max;
  return -1;
}

static int
reply_nothing (struct request *request, int status, uint64_t size,
               struct error **err)
{
  return reply_stream (request, status, OCTETS,
                       &(struct reply_stream){ .fill = nothing_fill,
                                               .size = size }, err);
}

/* A size of 0 is no promise: what a file of /proc has is known at its end. */
static int
read_part (struct request *request, const char *id, const char *path,
           const struct range *range, struct error **err)
{
  const struct provider_call call = api_call (request);
  struct api_stream reply = { .size = range->size ? range->size : UINT64_MAX,
                              .status = range->partial ? 206 : 200,
                              .type = OCTETS, .slot = SHARE_TRANSFERS };

  if (request->head)
    return reply_nothing (request, reply.status, reply.size, err);
  if (api_slot_take (request, SHARE_TRANSFERS, err) < 0)
    return -1;
  if (sandbox_read (request->server->host, id, path, range->first,
                    range->size, &call, &reply.stream, err) == 0)
    return api_reply_stream (request, &reply, err);
  api_slot_give (request, SHARE_TRANSFERS);
  return -1;
}

static int
file_read (struct request *request, const char *id, struct error **err)
{
  const struct provider_call call = request_call (request);
  auto_free char *path = api_path (request, 0, err);
  auto_json json_t *stat = NULL;
  struct range range;
  const char *kind;
  uint64_t size = 0;

  if (!path || sandbox_stat (request->server->host, id, path, &call, &stat,
                             err) < 0)
    return -1;
  kind = json_string_value (json_object_get (stat, "kind"));
  /* A link is the provider's to refuse: it knows where it leads. */
  if (kind && strcmp (kind, "file") && strcmp (kind, "symlink"))
    return error_set (err, E_FILE_KIND, 0, "%s is a %s, not a file", path,
                      kind);
  json_get_u64 (json_object_get (stat, "size_bytes"), &size);
  if (kind && strcmp (kind, "symlink") == 0)
    range = (struct range){ 0 };
  else if (range_find (request, path, size, &range, err) < 0)
    return -1;
  return read_part (request, id, path, &range, err);
}

/* ---- looking ------------------------------------------------------------- */

static int
file_stat (struct request *request, const char *id, struct error **err)
{
  const struct provider_call call = request_call (request);
  auto_free char *path = api_path (request, 1, err);
  json_t *stat;

  if (!path || sandbox_stat (request->server->host, id, path, &call, &stat,
                             err) < 0)
    return -1;
  return reply_json (request, 200, stat, err);
}

/* As many as there are, a line each. */
static int
list_lines (struct request *request, const char *id, const char *path,
            uint32_t depth, struct error **err)
{
  const struct provider_call call = api_call (request);
  struct api_stream reply = { .size = UINT64_MAX, .status = 200,
                              .type = LINES, .slot = SHARE_TRANSFERS };

  if (api_slot_take (request, SHARE_TRANSFERS, err) < 0)
    return -1;
  if (sandbox_list_lines (request->server->host, id, path, depth, &call,
                          &reply.stream, err) == 0)
    return api_reply_stream (request, &reply, err);
  api_slot_give (request, SHARE_TRANSFERS);
  return -1;
}

static int
file_list (struct request *request, const char *id, struct error **err)
{
  const struct provider_call call = request_call (request);
  const char *accept = request_header (request, "Accept");
  auto_free char *path = api_path (request, 1, err);
  uint64_t depth = 1;
  json_t *list;

  if (!path
      || request_query_u64 (request, "depth", 1, DEPTH_MAX, &depth, err) < 0)
    return -1;
  if (accept && strstr (accept, LINES) && !request->head)
    return list_lines (request, id, path, (uint32_t) depth, err);
  if (sandbox_ls (request->server->host, id, path, (uint32_t) depth,
                  ENTRIES_MAX, &call, &list, err) < 0) {
    if (err && *err && (*err)->number == E_LIMIT)
      error_hint (err, "Accept: " LINES " gives as many as there are");
    return -1;
  }
  return reply_json (request, 200,
                     json_pack ("{s:o, s:o}", "path",
                                json_bytes (path, strlen (path)), "entries",
                                list), err);
}

static int
bad_op (const char *op, const char *known, struct error **err)
{
  if (!op || !*op)
    return error_set (err, E_REQUEST, 0, "op is missing: %s", known);
  return error_set (err, E_REQUEST, 0, "op %s is none of %s", op, known);
}

static int
file_get (struct request *request, struct error **err)
{
  const char *op = request_query (request, "op"), *id;

  if (own_sandbox (request, &id, err) < 0)
    return -1;
  if (!op)
    return file_read (request, id, err);
  if (strcmp (op, "stat") == 0)
    return file_stat (request, id, err);
  if (strcmp (op, "list") == 0)
    return file_list (request, id, err);
  return bad_op (op, "stat, list", err);
}

/* ---- writing ------------------------------------------------------------- */

static int
is_whole (void *data)
{
  return request_body_complete (data);
}

/* Sixty-four digits, as sha256sum prints them or in capitals. */
static int
read_sha256 (const struct request *request, char out[SHA256_HEX_SIZE],
             const char **given, struct error **err)
{
  const char *text = request_header (request, "X-Content-Sha256");
  size_t i;

  *given = NULL;
  if (!text)
    return 0;
  for (i = 0; i < SHA256_HEX_SIZE - 1 && isxdigit ((unsigned char) text[i]);
       i++)
    out[i] = (char) tolower ((unsigned char) text[i]);
  out[i] = '\0';
  if (i < SHA256_HEX_SIZE - 1 || text[i])
    return error_set (err, E_REQUEST, 0,
                      "X-Content-Sha256 is not 64 hexadecimal digits");
  *given = out;
  return 0;
}

static int
read_mode (const struct request *request, uint32_t *mode, struct error **err)
{
  const char *text = request_query (request, "mode");
  unsigned long value;
  char *end;

  if (!text)
    return 0;
  value = strtoul (text, &end, 8);
  if (*end || *text < '0' || *text > '7' || value == 0 || value > 0777)
    return error_set (err, E_REQUEST, 0,
                      "mode is not an octal one from 1 to 777");
  *mode = (uint32_t) value;
  return 0;
}

static int
file_put (struct request *request, struct error **err)
{
  const struct provider_call call = api_call (request);
  auto_free char *path = api_path (request, 0, err);
  struct upload upload = { .local = request->body_fd, .path = path,
                           .whole = is_whole, .data = request };
  char sha256[SHA256_HEX_SIZE];
  const char *id;
  json_t *report;
  int r;

  if (!path || own_sandbox (request, &id, err) < 0
      || read_mode (request, &upload.mode, err) < 0
      || api_flag (request, "parents", &upload.parents, err) < 0
      || api_flag (request, "exclusive", &upload.exclusive, err) < 0
      || read_sha256 (request, sha256, &upload.sha256, err) < 0
      || api_slot_take (request, SHARE_TRANSFERS, err) < 0)
    return -1;
  r = sandbox_upload_as (request->server->host, id, &upload, &call, &report,
                         err);
  api_slot_give (request, SHARE_TRANSFERS);
  return r < 0 ? -1 : reply_json (request, 200, report, err);
}

/* ---- changing ------------------------------------------------------------ */

static json_t *
path_json (const char *path)
{
  return json_pack ("{s:o}", "path", json_bytes (path, strlen (path)));
}

static int
file_mkdir (struct request *request, const char *id, const char *path,
            struct error **err)
{
  const struct provider_call call = request_call (request);
  int parents;

  if (fields_none (request->body, err) < 0
      || api_flag (request, "parents", &parents, err) < 0
      || sandbox_mkdir (request->server->host, id, path, parents, &call, err)
           < 0)
    return -1;
  return reply_json (request, 200, path_json (path), err);
}

struct rename {
  char *to;
};

static int
file_rename (struct request *request, const char *id, const char *path,
             struct error **err)
{
  static const struct field fields[] = {
    { "to", field_path, offsetof (struct rename, to) }, { NULL }
  };
  const struct provider_call call = request_call (request);
  struct rename rename = { NULL };
  auto_free char *to = NULL;
  json_t *report;
  int r = fields_read (request->body, fields, &rename, err);

  to = rename.to;
  if (r < 0)
    return -1;
  if (!to)
    return error_set (err, E_REQUEST, 0, "to is missing: the new path");
  if (sandbox_rename (request->server->host, id, path, to, &call, err) < 0)
    return -1;
  report = path_json (to);
  if (report)
    json_object_set_new (report, "from", json_bytes (path, strlen (path)));
  return reply_json (request, 200, report, err);
}

static int
file_remove (struct request *request, const char *id, const char *path,
             struct error **err)
{
  const struct provider_call call = request_call (request);
  int recursive;

  if (api_flag (request, "recursive", &recursive, err) < 0)
    return -1;
  return sandbox_remove (request->server->host, id, path, recursive, &call,
                         err);
}

static int
file_post (struct request *request, struct error **err)
{
  const char *op = request_query (request, "op"), *id;
  auto_free char *path = api_path (request, 1, err);

  if (!path || own_sandbox (request, &id, err) < 0)
    return -1;
  if (op && strcmp (op, "mkdir") == 0)
    return file_mkdir (request, id, path, err);
  if (op && strcmp (op, "rename") == 0)
    return file_rename (request, id, path, err);
  if (!op || strcmp (op, "remove") != 0)
    return bad_op (op, "mkdir, rename, remove", err);
  return fields_none (request->body, err) < 0
             || file_remove (request, id, path, err) < 0
           ? -1 : reply_json (request, 200, path_json (path), err);
}

static int
file_delete (struct request *request, struct error **err)
{
  auto_free char *path = api_path (request, 1, err);
  const char *id;

  if (!path || own_sandbox (request, &id, err) < 0
      || file_remove (request, id, path, err) < 0)
    return -1;
  return reply_empty (request, 204, err);
}

/* ---- watching ------------------------------------------------------------ */

static int
watch_get (struct request *request, struct error **err)
{
  const struct provider_call call = api_call (request);
  auto_free char *path = api_path (request, 1, err);
  struct api_stream reply = { .size = UINT64_MAX, .status = 200,
                              .type = LINES, .events = 1,
                              .slot = SHARE_WATCHES };
  auto_json json_t *stat = NULL;
  const char *kind, *id;

  if (!path || own_sandbox (request, &id, err) < 0
      || sandbox_stat (request->server->host, id, path, &call, &stat, err) < 0)
    return -1;
  kind = json_string_value (json_object_get (stat, "kind"));
  if (!kind || strcmp (kind, "directory") != 0)
    return error_set (err, E_FILE_KIND, 0, "%s is a %s, not a folder", path,
                      kind ? kind : "thing");
  if (request->head)
    return reply_nothing (request, 200, UINT64_MAX, err);
  if (api_slot_take (request, SHARE_WATCHES, err) < 0)
    return -1;
  if (sandbox_watch (request->server->host, id, path, &call, &reply.stream,
                     err) == 0)
    return api_reply_stream (request, &reply, err);
  api_slot_give (request, SHARE_WATCHES);
  return -1;
}

#define FILES "/api/v1/sandboxes/{id}/files/{path…}"

const struct route api_file_routes[] = {
  { "GET", FILES, RIGHT_RUN, ROUTE_LONG, "readFile", file_get },
  { "PUT", FILES, RIGHT_RUN, ROUTE_STREAM | ROUTE_LONG, "writeFile",
    file_put },
  { "POST", FILES, RIGHT_RUN, ROUTE_JSON | ROUTE_MUTATES, "changeFile",
    file_post },
  { "DELETE", FILES, RIGHT_RUN, ROUTE_MUTATES, "removeFile", file_delete },
  { "GET", "/api/v1/sandboxes/{id}/watch/{path…}", RIGHT_RUN, ROUTE_LONG,
    "watchFiles", watch_get },
  { NULL }
};
