/* SPDX-License-Identifier: Apache-2.0 */
/* connect() of what the host has connected already.
 *
 * A library of a module that is handed a connected socket may try to connect it
 * all the same: libcurl 7.87 to 7.88 do, in spite of its callbacks having said
 * that it is, and give up at the answer that it is connected or, behind this
 * program's filter, that nothing may be.  Libraries that are loaded later find
 * this function before libc's.  It gives nobody a connection. */

#include <config.h>

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

int connect (int fd, const struct sockaddr *address, socklen_t size)
  __attribute__ ((visibility ("default")));

int
connect (int fd, const struct sockaddr *address, socklen_t size)
{
  struct sockaddr_storage peer;
  socklen_t room = sizeof peer;

  if (getpeername (fd, (struct sockaddr *) &peer, &room) == 0)
    return 0;
  return (int) syscall (SYS_connect, fd, address, size);
}
