/* SPDX-License-Identifier: Apache-2.0 */
/* A connection to a port of the sandbox, between our streams and a server that
 * listens on the sandbox's loopback. */

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <coffer/fd.h>
#include <coffer/provider.h>

#include "work.h"

#define PIECE 65536

static int
reach (int family, uint16_t port)
{
  const struct sockaddr_in v4 = {
    .sin_family = AF_INET, .sin_port = htons (port),
    .sin_addr.s_addr = htonl (INADDR_LOOPBACK),
  };
  const struct sockaddr_in6 v6 = {
    .sin6_family = AF_INET6, .sin6_port = htons (port),
    .sin6_addr = IN6ADDR_LOOPBACK_INIT,
  };
  int fd = socket (family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int failed = fd < 0 ? -1
               : family == AF_INET
               ? connect (fd, (const struct sockaddr *) &v4, sizeof v4)
               : connect (fd, (const struct sockaddr *) &v6, sizeof v6);

  if (failed < 0)
    coffer_fd_close (&fd);
  return fd;
}

/* 1: there may be more; 0: the end, of either side. */
static int
move (int from, int to, uint64_t *moved)
{
  coffer_unfilled char bytes[PIECE];
  ssize_t n = read (from, bytes, sizeof bytes);

  if (n < 0)
    return errno == EINTR || errno == EAGAIN;
  *moved += (uint64_t) n;
  return n > 0 && coffer_write_all (to, bytes, (size_t) n) == n;
}

/* Until both sides have said all, or one cannot be written to. */
static void
relay (int fd)
{
  struct pollfd waits[2] = {{0, POLLIN, 0}, {fd, POLLIN, 0}};
  uint64_t in = 0, out = 0;

  while (waits[0].fd >= 0 || waits[1].fd >= 0) {
    if (poll (waits, 2, -1) < 0 && errno != EINTR)
      return;
    if (waits[0].revents && !move (0, fd, &in)) {
      shutdown (fd, SHUT_WR);
      waits[0].fd = -1;
    }
    if (waits[1].revents && !move (fd, 1, &out)) {
      say (WIRE_OUT_ENDED, &out, sizeof out);
      waits[1].fd = -1;
      if (waits[0].revents & (POLLERR | POLLNVAL))
        return;
    }
  }
}

int
dial_port (const struct wire_request *request)
{
  coffer_autoclose int fd = reach (AF_INET, (uint16_t) request->port);

  if (fd < 0)
    fd = reach (AF_INET6, (uint16_t) request->port);
  if (fd < 0) {
    say_failed (COFFER_UNAVAILABLE, COFFER_RETRY_YES,
                "nothing listens on that port of the sandbox");
    return INSIDE_FAILED;
  }
  say (WIRE_STARTED, NULL, 0);
  relay (fd);
  return INSIDE_OK;
}
