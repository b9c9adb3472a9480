/* SPDX-License-Identifier: Apache-2.0 */
/* Ports and metrics.  The network is the machine's, so a port is the sandbox's
 * when one of its commands listens there; the keeper looks, the module
 * connects. */

#define _GNU_SOURCE

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>

#include <coffer/fd.h>
#include <coffer/files.h>

#include "reference.h"

/* 4 or 6 in *family: a command of this sandbox listens there. */
static int32_t
find_port (struct coffer_call *call, const struct reference *self,
           const char *sandbox, uint32_t port, uint32_t *family)
{
  struct request request = {.op = ASK_PORT, .port = port};
  coffer_autoclose int folder = -1;
  struct reply reply;

  if (port < 1 || port > 65535)
    return coffer_fail (call, COFFER_INVALID, "a port is 1 to 65535");
  folder = sandbox_open (self, sandbox);
  if (folder < 0)
    return fail_sandbox (call, errno);
  if (ask (call, folder, KEEPER_SOCKET, &request, NULL, 0, &reply) < 0)
    return errno == EADDRNOTAVAIL ?
      coffer_fail (call, COFFER_UNAVAILABLE, "nothing in the sandbox listens "
                   "on that port") : fail_sandbox (call, errno);
  *family = reply.family;
  return COFFER_OK;
}

int32_t
reference_port_resolve (struct coffer_call *call, void *self,
                        const char *sandbox, uint32_t port,
                        const struct coffer_port_resolve_opts *opts)
{
  char address[32];
  struct coffer_port record = {.size = sizeof record, .port = port,
                               .address = address};
  uint32_t family;
  int32_t code = find_port (call, self, sandbox, port, &family);

  (void) opts;
  if (code != COFFER_OK)
    return code;
  snprintf (address, sizeof address, "%s:%u",
            family == 4 ? "127.0.0.1" : "[::1]", port);
  return coffer_emit_port (call, &record);
}

static int
dial (struct coffer_call *call, uint32_t family, uint32_t port)
{
  struct sockaddr_in v4 = {.sin_family = AF_INET,
                           .sin_addr.s_addr = htonl (INADDR_LOOPBACK)};
  struct sockaddr_in6 v6 = {.sin6_family = AF_INET6,
                            .sin6_addr = IN6ADDR_LOOPBACK_INIT};
  const struct sockaddr *address = family == 4 ? (const void *) &v4 :
                                                 (const void *) &v6;
  coffer_autoclose int fd = socket (address->sa_family, SOCK_STREAM
                                    | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  int error = 0;
  socklen_t size = sizeof error;

  v4.sin_port = v6.sin6_port = htons ((uint16_t) port);
  if (fd < 0)
    return -1;
  if (connect (fd, address, family == 4 ? sizeof v4 : sizeof v6) < 0
      && (errno != EINPROGRESS
          || coffer_wait_fd (fd, POLLOUT, call->deadline_ns, call->cancel_fd)
             != 1))
    return -1;
  if (getsockopt (fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0 || error) {
    errno = error ? error : errno;
    return -1;
  }
  if (fcntl (fd, F_SETFL, 0) < 0)
    return -1;
  return coffer_fd_steal (&fd);
}

int32_t
reference_port_dial (struct coffer_call *call, void *self,
                     const char *sandbox, uint32_t port,
                     const struct coffer_port_dial_opts *opts)
{
  struct coffer_stream record = {.size = sizeof record, .fd = -1};
  coffer_autoclose int fd = -1;
  uint32_t family;
  int32_t code = find_port (call, self, sandbox, port, &family);

  (void) opts;
  if (code != COFFER_OK)
    return code;
  fd = dial (call, family, port);
  if (fd < 0)
    return coffer_fail_errno (call, errno, "reaching the port");
  record.fd = fd;
  return coffer_emit_stream (call, &record);
}

int32_t
reference_metrics (struct coffer_call *call, void *self, const char *sandbox,
                   const struct coffer_metrics_opts *opts)
{
  struct request request = {.op = ASK_METRICS};
  struct reply reply;
  int32_t code = ask_keeper (call, self, sandbox, &request, &reply);

  (void) opts;
  if (code != COFFER_OK)
    return code;
  const struct {
    const char *name;
    double value;
  } metrics[] = {
    {"cpu_seconds_total", (double) reply.cpu_us / 1e6},
    {"memory_bytes", (double) reply.memory_bytes},
    {"processes", (double) reply.processes},
  };

  for (size_t i = 0; i < sizeof metrics / sizeof metrics[0]; i++) {
    const struct coffer_metric record = {.size = sizeof record,
                                         .name = metrics[i].name,
                                         .value = metrics[i].value};

    code = coffer_emit_metric (call, &record);
    if (code != COFFER_OK)
      break;
  }
  return code;
}
