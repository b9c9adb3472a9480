/* SPDX-License-Identifier: Apache-2.0 */
/* Names to addresses.
 *
 * getaddrinfo has no deadline, reads what strangers answer, and opens files:
 * each lookup is a child that holds nothing but the pipe for its result, and
 * that an alarm ends.  Names are looked up as they are, without the machine's
 * search list, in its hosts file and by DNS; other sources of nsswitch.conf
 * would be modules to load. */

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <nss.h>
#include <resolv.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proxy.h"

static void
take_address (struct resolved *out, const struct addrinfo *ai)
{
  const void *address = ai->ai_addr;

  if (out->count == ADDRESSES_MAX)
    return;
  if (ai->ai_family == AF_INET)
    memcpy (out->addresses[out->count].bytes,
            &((const struct sockaddr_in *) address)->sin_addr, 4);
  else if (ai->ai_family == AF_INET6
           && ((const struct sockaddr_in6 *) address)->sin6_scope_id == 0)
    memcpy (out->addresses[out->count].bytes,
            &((const struct sockaddr_in6 *) address)->sin6_addr, 16);
  else
    return;
  out->addresses[out->count++].family = (uint16_t) ai->ai_family;
}

static void
look_up (const char *name, struct resolved *out)
{
  const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
  struct addrinfo *found = NULL, *ai;

  __nss_configure_lookup ("hosts", "files dns");
  res_init ();
  _res.options &= ~(unsigned long) (RES_DEFNAMES | RES_DNSRCH);
  if (getaddrinfo (name, NULL, &hints, &found) != 0)
    return;
  for (ai = found; ai != NULL; ai = ai->ai_next)
    take_address (out, ai);
}

static void __attribute__ ((noreturn))
child (int pipe, const char *name)
{
  struct resolved out;

  memset (&out, 0, sizeof out);
  prctl (PR_SET_PDEATHSIG, SIGKILL);
  alarm (RESOLVE_NS / 1000000000);
  /* The clients' sockets are none of its business, and their ends are told
   * by the one process that has them. */
  if (dup2 (pipe, PROXY_LISTENER) < 0
      || syscall (SYS_close_range, PROXY_LISTENER + 1, ~0u, 0) < 0)
    _exit (1);
  look_up (name, &out);
  if (write (PROXY_LISTENER, &out, sizeof out) != (ssize_t) sizeof out)
    _exit (1);
  _exit (0);
}

int
resolve_begin (const char *name)
{
  int ends[2], saved;
  pid_t pid;

  if (pipe2 (ends, O_CLOEXEC | O_NONBLOCK) < 0)
    return -1;
  pid = fork ();
  if (pid == 0)
    child (ends[1], name);
  saved = errno;
  close (ends[1]);
  if (pid > 0)
    return ends[0];
  close (ends[0]);
  errno = saved;
  return -1;
}

int
resolve_take (int fd, struct resolved *out)
{
  ssize_t n = read (fd, out, sizeof *out);
  uint32_t i;

  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return 0;
  if (n != (ssize_t) sizeof *out || out->count > ADDRESSES_MAX)
    return -1;
  for (i = 0; i < out->count; i++)
    if (out->addresses[i].family != AF_INET
        && out->addresses[i].family != AF_INET6)
      return -1;
  return 1;
}
