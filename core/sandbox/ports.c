/* SPDX-License-Identifier: Apache-2.0 */
/* Ports within a sandbox, as its provider gives them. */

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <coffer/fd.h>

#include "sandbox/dial.h"
#include "sandbox/host.h"
#include "sandbox/request.h"

static int
port_reach (struct host *host, const char *id, uint32_t port,
            struct provider **provider, struct error **err)
{
  auto_sandbox_record struct sandbox_record *record = NULL;

  if (port < 1 || port > 65535)
    return error_set (err, E_INVALID, 0, "port %u is not between 1 and 65535",
                      port);
  if (host_reach (host, id, &record, provider, err) < 0)
    return -1;
  return claim_require (*provider, "ports", err);
}

static int
sink_port (void *data, const struct contract_record *type, void *record)
{
  const struct coffer_port *port = record;
  char **address = data;

  if (type->id != COFFER_REC_port || *address || !port->address)
    return 0;
  *address = strdup (port->address);
  return *address ? 0 : -1;
}

int
sandbox_port (struct host *host, const char *id, uint32_t port,
              const struct provider_call *call, char **address,
              struct error **err)
{
  struct provider_call inner = call ? *call : call_in (60000, -1);
  struct provider *provider;

  *address = NULL;
  if (port_reach (host, id, port, &provider, err) < 0)
    return -1;
  inner.sink.record = sink_port;
  inner.sink.data = address;
  if (INVOKE (provider, &inner, err, port_resolve, .sandbox = id,
              .port = port) == 0)
    return 0;
  free (*address);
  *address = NULL;
  return -1;
}

static int
sink_stream (void *data, const struct contract_record *type, void *record)
{
  struct coffer_stream *stream = record;
  int *fd = data;

  if (type->id == COFFER_REC_stream && *fd < 0) {
    *fd = stream->fd;
    stream->fd = -1;            /* taken */
  }
  return 0;
}

/* What the call ended with, and the connection that it gave, which is ours. */
static int
dial_take (int result, int there, int *out, struct error **err)
{
  coffer_autoclose int fd = there;

  if (result < 0)
    return -1;
  if (fd < 0)
    return error_set (err, E_PROVIDER_FAILED, 0,
                      "port_dial gave no connection");
  *out = coffer_fd_steal (&fd);
  return 0;
}

int
dial_begin (struct dial *dial, struct host *host, const char *id,
            uint32_t port, int64_t deadline_ns, struct error **err)
{
  const struct provider_sink sink = { .record = sink_stream,
                                      .data = &dial->there };
  struct provider *provider;

  dial->there = -1;
  dial->args = (struct contract_args_port_dial){ .sandbox = id, .port = port };
  if (port_reach (host, id, port, &provider, err) < 0)
    return -1;
  return async_begin (&dial->call, provider, COFFER_OP_port_dial, &dial->args,
                      &sink, deadline_ns, err);
}

int
dial_end (struct dial *dial, int *out, struct error **err)
{
  const int result = async_end (&dial->call, err);
  const int there = dial->there;

  dial->there = -1;
  return dial_take (result, there, out, err);
}

void
dial_cancel (struct dial *dial)
{
  async_cancel (&dial->call);
}

int
sandbox_dial (struct host *host, const char *id, uint32_t port,
              const struct provider_call *call, int *out, struct error **err)
{
  struct provider_call inner = call ? *call : call_in (60000, -1);
  struct provider *provider;
  int there = -1, result;

  if (port_reach (host, id, port, &provider, err) < 0)
    return -1;
  inner.sink.record = sink_stream;
  inner.sink.data = &there;
  result = INVOKE (provider, &inner, err, port_dial, .sandbox = id,
                   .port = port);
  return dial_take (result, there, out, err);
}
