/* SPDX-License-Identifier: Apache-2.0 */
/* A sandbox that rests, its ports, and what it uses. */

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "linux.h"

/* ---- pause -------------------------------------------------------------- */

static int32_t
rest_ask (struct linux_provider *self, struct coffer_call *call,
          const char *sandbox, uint16_t type, int frozen)
{
  struct init_pause body = { .size = sizeof body,
                             .flags = frozen ? PAUSE_FROZEN : 0u };
  struct request request
    = { .type = type, .body = &body, .size = sizeof body };
  auto_link struct link link = { .fd = -1 };
  coffer_unfilled struct reply reply;
  int32_t code = sandbox_reach (self, call, sandbox, &link);

  if (code != COFFER_OK)
    return code;
  if (link_ask (&link, &request, &reply, call) == 0)
    return COFFER_OK;
  if (errno == EOPNOTSUPP)
    return coffer_fail (call, COFFER_UNSUPPORTED,
                        "this sandbox was made by a coffer that could not "
                        "pause it");
  return sandbox_ask_failed (call, type == INIT_PAUSE
                                     ? "stopping all that runs in it"
                                     : "asking the sandbox's init");
}

/* By its control group: 1, 0 when it has none that can, or -1 with errno. */
static int
group_freeze (struct linux_provider *self, const char *sandbox, int frozen)
{
  coffer_autoclose int folder = -1;

  if (self->runtime < 0 || !sandbox_id_valid (sandbox))
    return 0;
  folder = openat (self->runtime, sandbox,
                   O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0)
    return 0;
  if (cgroup_freeze (folder, frozen, coffer_now_ns () + SETTLE_NS) == 0)
    return 1;
  return errno == ENOENT ? 0 : -1;
}

int32_t
linux_sandbox_pause (struct coffer_call *call, void *data,
                     const char *sandbox,
                     const struct coffer_sandbox_pause_opts *opts)
{
  struct linux_provider *self = data;
  int frozen = group_freeze (self, sandbox, 1), error = errno;
  int32_t code;

  (void) opts;
  code = frozen < 0
    ? coffer_fail_errno (call, error, "freezing its control group")
    : rest_ask (self, call, sandbox, INIT_PAUSE, frozen);
  if (code != COFFER_OK && frozen != 0)
    group_freeze (self, sandbox, 0);
  return code;
}

int32_t
linux_sandbox_resume (struct coffer_call *call, void *data,
                      const char *sandbox,
                      const struct coffer_sandbox_resume_opts *opts)
{
  struct linux_provider *self = data;

  (void) opts;
  if (group_freeze (self, sandbox, 0) < 0)
    return coffer_fail_errno (call, errno, "thawing its control group");
  return rest_ask (self, call, sandbox, INIT_RESUME, 0);
}

/* ---- ports -------------------------------------------------------------- */

/* What the init made is a TCP socket, on its way to that port of a loopback:
 * no other may be handed on. */
static int
stream_checked (int fd, uint32_t port)
{
  union {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
  } peer;
  int value = 0;
  socklen_t size = sizeof value;

  if (getsockopt (fd, SOL_SOCKET, SO_PROTOCOL, &value, &size) == -1
      || value != IPPROTO_TCP)
    return 0;
  size = sizeof peer;
  memset (&peer, 0, sizeof peer);
  if (getpeername (fd, &peer.any, &size) == -1)
    return 0;
  if (peer.any.sa_family == AF_INET)
    return peer.v4.sin_addr.s_addr == htonl (INADDR_LOOPBACK)
           && peer.v4.sin_port == htons ((uint16_t) port);
  return peer.any.sa_family == AF_INET6
         && IN6_IS_ADDR_LOOPBACK (&peer.v6.sin6_addr)
         && peer.v6.sin6_port == htons ((uint16_t) port);
}

/* A connected descriptor, or -1 with errno. */
static int
dial (struct link *link, struct coffer_call *call, uint32_t port,
      uint32_t family)
{
  struct init_dial body = { .size = sizeof body, .port = port,
                            .family = family };
  struct request request
    = { .type = INIT_DIAL, .body = &body, .size = sizeof body,
        .takes_fd = 1 };
  coffer_autoclose int fd = -1;
  coffer_unfilled struct reply reply;
  int error = 0;
  socklen_t size = sizeof error;

  if (link_ask (link, &request, &reply, call) == -1)
    return -1;
  fd = reply.fd;
  if (coffer_wait_fd (fd, POLLOUT, call->deadline_ns, call->cancel_fd) <= 0
      || getsockopt (fd, SOL_SOCKET, SO_ERROR, &error, &size) == -1)
    return -1;
  if (error == 0 && !stream_checked (fd, port))
    error = EPROTO;
  if (error == 0 && fcntl (fd, F_SETFL, 0) == -1)
    return -1;
  if (error == 0)
    return coffer_fd_steal (&fd);
  errno = error;
  return -1;
}

static int32_t
port_check (struct coffer_call *call, uint32_t port)
{
  return port >= 1 && port <= 65535
    ? COFFER_OK : coffer_fail (call, COFFER_INVALID, "port: 1 to 65535");
}

int32_t
linux_port_resolve (struct coffer_call *call, void *self, const char *sandbox,
                    uint32_t port,
                    const struct coffer_port_resolve_opts *opts)
{
  struct coffer_port record = { sizeof record };
  auto_link struct link link = { .fd = -1 };
  int32_t code = port_check (call, port);

  (void) opts;
  if (code == COFFER_OK)
    code = sandbox_reach (self, call, sandbox, &link);
  if (code != COFFER_OK)
    return code;
  record.port = port;
  return coffer_emit_port (call, &record);
}

int32_t
linux_port_dial (struct coffer_call *call, void *self, const char *sandbox,
                 uint32_t port, const struct coffer_port_dial_opts *opts)
{
  struct coffer_stream record = { .size = sizeof record, .fd = -1 };
  auto_link struct link link = { .fd = -1 };
  coffer_autoclose int fd = -1;
  int32_t code = port_check (call, port);

  (void) opts;
  if (code == COFFER_OK)
    code = sandbox_reach (self, call, sandbox, &link);
  if (code != COFFER_OK)
    return code;
  fd = dial (&link, call, port, 4);
  /* Who listens on ::1 alone. */
  if (fd < 0 && errno == ECONNREFUSED) {
    fd = dial (&link, call, port, 6);
    if (fd < 0 && (errno == EADDRNOTAVAIL || errno == EAFNOSUPPORT
                   || errno == ENETUNREACH))
      errno = ECONNREFUSED;
  }
  if (fd < 0 && errno == ECONNREFUSED)
    return fail_with (call, COFFER_UNAVAILABLE,
                      "nothing in the sandbox listens on port %u", port);
  if (fd < 0)
    return coffer_fail_errno (call, errno, "reaching the port");
  record.fd = fd;
  return coffer_emit_stream (call, &record);
}

/* ---- metrics ------------------------------------------------------------ */

int32_t
metrics_emit (struct coffer_call *call, const struct metric *metrics,
              size_t n)
{
  struct coffer_metric record = { sizeof record };
  int32_t code = COFFER_OK;
  size_t i;

  for (i = 0; i < n && code == COFFER_OK; i++) {
    if (!metrics[i].known)
      continue;
    record.name = metrics[i].name;
    record.value = metrics[i].value;
    code = coffer_emit_metric (call, &record);
  }
  return code;
}

/* Only what was read back: what nobody counts here has no number. */
int32_t
linux_metrics (struct coffer_call *call, void *data, const char *sandbox,
               const struct coffer_metrics_opts *opts)
{
  struct request request = { .type = INIT_INFO };
  struct linux_provider *self = data;
  auto_link struct link link = { .fd = -1 };
  struct cgroup_use use;
  struct init_state state;
  coffer_unfilled struct reply reply;
  int grouped, disk;
  int32_t code;

  (void) opts;
  if (warm_is_handle (sandbox))
    return warm_metrics (self, call, sandbox);
  code = sandbox_reach (self, call, sandbox, &link);
  if (code != COFFER_OK)
    return code;
  if (link_ask (&link, &request, &reply, call) == -1
      || reply_body (&reply, &state, sizeof state) == -1)
    return sandbox_ask_failed (call, "asking the sandbox's init");
  grouped = cgroup_use_of (self, sandbox, &use) == 0 && use.memory_bytes != 0;
  disk = (state.flags & STATE_DATA) != 0;

  const struct metric metrics[] = {
    { "memory_bytes", grouped ? (double) use.memory_bytes
                              : (double) state.resident_pages
                                  * (double) sysconf (_SC_PAGESIZE), 1 },
    { "memory_peak_bytes", (double) use.memory_peak_bytes,
      grouped && use.memory_peak_bytes != 0 },
    { "cpu_seconds_total", (double) state.cpu_us / 1e6, 1 },
    { "processes", (double) state.processes, 1 },
    { "commands_running", (double) state.running, 1 },
    { "disk_bytes", (double) state.data_bytes, disk },
    { "disk_limit_bytes", (double) state.data_most, disk },
    { "inodes", (double) state.data_inodes, disk },
    { "inodes_limit", (double) state.data_inodes_most, disk },
  };

  return metrics_emit (call, metrics, sizeof metrics / sizeof metrics[0]);
}
