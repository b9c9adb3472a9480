/* SPDX-License-Identifier: Apache-2.0 */
/* LISTEN_FDS and NOTIFY_SOCKET.  See systemd.h. */

#include <config.h>

#include "server/systemd.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/text.h"

#define MOST 15

static int
option_of (int fd, int option)
{
  int value = -1;
  socklen_t size = sizeof value;

  return getsockopt (fd, SOL_SOCKET, option, &value, &size) < 0 ? -1 : value;
}

static int
check_socket (int fd, struct error **err)
{
  const int domain = option_of (fd, SO_DOMAIN);

  if ((domain != AF_UNIX && domain != AF_INET && domain != AF_INET6)
      || option_of (fd, SO_TYPE) != SOCK_STREAM
      || option_of (fd, SO_ACCEPTCONN) != 1)
    return error_set (err, E_CONFIG, 0, "descriptor %d, which was handed over,"
                      " is no listening stream socket", fd);
  if (fcntl (fd, F_SETFD, FD_CLOEXEC) < 0
      || fcntl (fd, F_SETFL, fcntl (fd, F_GETFL) | O_NONBLOCK) < 0)
    return error_set (err, E_IO, errno, "descriptor %d", fd);
  return 0;
}

int
systemd_sockets (size_t *n, struct error **err)
{
  const char *pid = secure_getenv ("LISTEN_PID");
  const char *fds = secure_getenv ("LISTEN_FDS");
  uint64_t whose, count, i;

  *n = 0;
  if (!pid || !fds || text_parse_u64 (pid, 1, INT32_MAX, &whose) < 0
      || whose != (uint64_t) getpid ())
    return 0;
  if (text_parse_u64 (fds, 0, MOST, &count) < 0)
    return error_set (err, E_CONFIG, 0, "LISTEN_FDS is no number up to %d",
                      MOST);
  for (i = 0; i < count; i++)
    if (check_socket (SYSTEMD_FIRST_FD + (int) i, err) < 0)
      return -1;
  unsetenv ("LISTEN_PID");
  unsetenv ("LISTEN_FDS");
  unsetenv ("LISTEN_FDNAMES");
  *n = (size_t) count;
  return 0;
}

void
systemd_notify (const char *state)
{
  const char *path = secure_getenv ("NOTIFY_SOCKET");
  struct sockaddr_un address = { .sun_family = AF_UNIX };
  coffer_autoclose int fd = -1;
  size_t size;

  if (!path || (path[0] != '/' && path[0] != '@')
      || (size = strlen (path)) >= sizeof address.sun_path)
    return;
  memcpy (address.sun_path, path, size);
  if (path[0] == '@')
    address.sun_path[0] = '\0';
  fd = socket (AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0
      || sendto (fd, state, strlen (state), MSG_NOSIGNAL,
                 (const void *) &address,
                 (socklen_t) (offsetof (struct sockaddr_un, sun_path) + size))
           < 0)
    log_event (LOG_LEVEL_WARNING, "serve", "NOTIFY_SOCKET: %s",
               strerror (errno));
}

void
systemd_notify_reload (void)
{
  auto_free char *state
    = text_printf ("RELOADING=1\nMONOTONIC_USEC=%jd",
                   (intmax_t) (coffer_now_ns () / 1000));

  if (state)
    systemd_notify (state);
}
