/* SPDX-License-Identifier: Apache-2.0 */
/* Ports of a sandbox: where one is, and what listens there, shown below
 * …/ports/PORT/ as if it were here. */

#include <config.h>

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <coffer/fd.h>

#include "base/json.h"
#include "base/text.h"
#include "server/api/common.h"
#include "server/api/proxy.h"
#include "server/surfaces.h"

#define DIAL_NS (INT64_C (30) * 1000000000)
/* Another protocol may be silent for so long; once one side sends no more, the
 * other is not waited for as long. */
#define IDLE_MS (60 * 60 * 1000)
#define HALF_MS (60 * 1000)

static int
read_port (const struct request *request, uint32_t *port, struct error **err)
{
  uint64_t value;

  if (text_parse_u64 (request->params[1], 1, 65535, &value) < 0)
    return error_set (err, E_REQUEST, 0, "a port is a number from 1 to 65535");
  *port = (uint32_t) value;
  return 0;
}

static char *
prefix_of (const char *id, uint32_t port)
{
  return text_printf ("/api/v1/sandboxes/%s/ports/%u", id, port);
}

static int
port_get (struct request *request, struct error **err)
{
  const struct provider_call call = request_call (request);
  auto_free char *address = NULL, *prefix = NULL, *path = NULL;
  const char *id;
  uint32_t port;

  if (read_port (request, &port, err) < 0
      || own_sandbox (request, &id, err) < 0
      || sandbox_port (request->server->host, id, port, &call, &address, err)
           < 0)
    return -1;
  prefix = prefix_of (id, port);
  path = prefix ? text_printf ("%s/", prefix) : NULL;
  return reply_json (request, 200,
                     json_pack ("{s:s, s:I, s:s?, s:s?}", "sandbox", id,
                                "port", (json_int_t) port, "address", address,
                                "path", path), err);
}

/* ---- replies ------------------------------------------------------------- */

static ssize_t
body_fill (void *data, char *out, size_t max)
{
  return proxy_body (data, out, max);
}

static void
body_free (void *data)
{
  proxy_free (data);
}

static int
reply_body (struct proxy *take_proxy, struct error **err)
{
  auto_proxy struct proxy *proxy = take_proxy;
  struct request *request = proxy->request;
  const struct coffer_http1_head *head = &proxy->head;
  const char *type = coffer_http1_header (head, "Content-Type");
  const int status = head->status;
  struct reply_stream stream = { .fill = body_fill, .free = body_free,
                                 .size = UINT64_MAX };

  if (type && strchr (type, '\t'))
    type = NULL;
  if ((head->framing == COFFER_HTTP1_NONE && !request->head)
      || (head->sized && head->size == 0))
    return reply_bytes (request, status, type, "", 0, err);
  if (head->sized)
    stream.size = head->size;
  stream.data = steal (proxy);
  return reply_stream (request, status, type, &stream, err);
}

static void
join_run (void *data, int fd, const char *early, size_t size)
{
  struct proxy *proxy = data;
  const struct port_join join = {
    .here = fd, .there = proxy->fd, .from_here = early,
    .from_here_size = size, .from_there = proxy->buffer + proxy->start,
    .from_there_size = proxy->size, .cancel_fd = proxy->request->cancel_fd,
    .idle_ms = IDLE_MS, .half_ms = HALF_MS
  };
  auto_error struct error *error = NULL;

  sandbox_join (&join, &error);
}

static int
reply_protocol (struct proxy *take_proxy, struct error **err)
{
  auto_proxy struct proxy *proxy = take_proxy;
  const char *protocol = coffer_http1_header (&proxy->head, "Upgrade");
  const struct reply_upgrade upgrade = { .run = join_run, .free = body_free,
                                         .data = proxy };

  if (!protocol || strcasecmp (protocol, proxy->upgrade) != 0)
    return error_set (err, E_UPSTREAM, 0,
                      "what answers is refused: nobody asked for %s",
                      protocol ? "that protocol" : "no protocol");
  protocol = proxy->upgrade;
  return reply_upgrade (steal (proxy)->request, protocol, &upgrade, err);
}

static int
port_any (struct request *request, struct error **err)
{
  struct provider_call call = request_call (request);
  auto_proxy struct proxy *proxy = NULL;
  const char *id;
  uint32_t port;

  if (read_port (request, &port, err) < 0
      || own_sandbox (request, &id, err) < 0
      || !(proxy = proxy_new (request, port, err)))
    return -1;
  proxy->prefix = prefix_of (id, port);
  if (!proxy->prefix)
    return error_set (err, E_NO_MEMORY, 0, "a proxy");
  if (call.deadline_ns > request->began_ns + DIAL_NS)
    call.deadline_ns = request->began_ns + DIAL_NS;
  if (sandbox_dial (request->server->host, id, port, &call, &proxy->fd, err)
        < 0
      || proxy_exchange (proxy, err) < 0
      || proxy_reply_headers (proxy, err) < 0)
    return -1;
  return proxy->head.status == 101 ? reply_protocol (steal (proxy), err)
                                   : reply_body (steal (proxy), err);
}

const struct route api_port_routes[] = {
  { "GET", "/api/v1/sandboxes/{id}/ports/{port}", RIGHT_RUN, 0, "getPort",
    port_get },
  { "*", "/api/v1/sandboxes/{id}/ports/{port}/{path…}", RIGHT_RUN,
    ROUTE_STREAM | ROUTE_UPGRADE | ROUTE_LONG, "usePort", port_any },
  { NULL }
};
