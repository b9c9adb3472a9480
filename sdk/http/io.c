/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes to a peer that may never take them. */

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include <coffer/fd.h>

#include "internal.h"

int
http_send_all (int fd, const void *bytes, size_t size, int64_t deadline_ns,
               int cancel_fd)
{
  size_t done = 0;
  ssize_t n;

  while (done < size) {
    /* Also when there is room: a peer that takes a byte at a time must not
     * hold us beyond the deadline. */
    if (coffer_wait_fd (fd, POLLOUT, deadline_ns, cancel_fd) <= 0)
      return -1;
    if (coffer_now_ns () >= deadline_ns) {
      errno = ETIMEDOUT;
      return -1;
    }
    n = send (fd, (const char *) bytes + done, size - done,
              MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
      continue;
    if (n < 0)
      return -1;
    done += (size_t) n;
  }
  return 0;
}
