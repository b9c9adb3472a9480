/* SPDX-License-Identifier: Apache-2.0 */
/* A way into the sandbox's own network, which is its loopback. */

#include "init.h"

#define O_CLOEXEC_ 02000000
#define O_NONBLOCK_ 04000

/* A socket of this network namespace, for whoever is outside.  Whether anybody
 * listens is told to the one who waits for it, not here. */
long
dial (const struct init_dial *body)
{
  const int v6 = body->family == 6;
  uint16_t port = (uint16_t) (body->port << 8 | (body->port & 0xff00) >> 8);
  uint8_t address[28];
  long fd, r;

  if (body->port < 1 || body->port > 65535
      || (body->family != 4 && body->family != 6))
    return -EINVAL_;
  memset (address, 0, sizeof address);
  address[0] = v6 ? 10 : 2;
  memcpy (address + 2, &port, sizeof port);
  if (v6)
    address[23] = 1;            /* ::1 */
  else {
    address[4] = 127;
    address[7] = 1;
  }
  fd = SYS (socket, address[0], 1 | O_CLOEXEC_ | O_NONBLOCK_, 0);
  if (fd < 0)
    return fd;
  r = SYS (connect, fd, address, v6 ? 28 : 16);
  if (r < 0 && r != -115 /* EINPROGRESS */) {
    fd_close ((int) fd);
    return r;
  }
  return fd;
}
