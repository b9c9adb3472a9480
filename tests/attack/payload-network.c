/* SPDX-License-Identifier: Apache-2.0 */
/* Attempts at networks, and at the other things that have namespaces. */

#include "payload.h"

struct inet {
  uint16_t family, port;
  uint32_t address;
  char zero[8];
};

struct local {
  uint16_t family;
  char path[108];
};

static struct inet
loopback (const char *port)
{
  const long n = number (port);
  struct inet at = { 2, (uint16_t) ((n >> 8 & 0xff) | (n & 0xff) << 8),
                     0x0100007f, { 0 } };

  return at;
}

void
try_tcp (char **args)
{
  const struct inet at = loopback (args[0]);
  long fd = SYS (socket, 2, 1, 0);

  SYS (connect, fd, &at, sizeof at);
  fd = SYS (socket, 2, 1, 0);
  SYS (sendto, fd, "fallen", 6, 0x20000000 /* FASTOPEN */, &at, sizeof at);
  fd = SYS (socket, 2, 1, 262 /* MPTCP */);
  SYS (connect, fd, &at, sizeof at);
}

void
try_udp (char **args)
{
  const struct inet at = loopback (args[0]);
  const long fd = SYS (socket, 2, 2, 0);

  SYS (sendto, fd, "fallen", 6, 0, &at, sizeof at);
  SYS (connect, fd, &at, sizeof at);
  SYS (write, fd, "fallen", 6);
}

void
try_abstract (char **args)
{
  const long fd = SYS (socket, 1, 1, 0);
  struct local at = { 1, "" };

  text_join (at.path + 1, sizeof at.path - 1, args[0], NULL);
  SYS (connect, fd, &at, 3 + strlen (args[0]));
}

void
try_pathname (char **args)
{
  const long fd = SYS (socket, 1, 1, 0);
  struct local at = { 1, "" };

  text_join (at.path, sizeof at.path, args[0], NULL);
  SYS (connect, fd, &at, sizeof at);
}

void
try_mtu (char **args)
{
  struct {
    char name[16];
    int mtu;
    char rest[20];
  } request = { "lo", 1400, { 0 } };
  const long fd = SYS (socket, 2, 2, 0);

  (void) args;
  SYS (ioctl, fd, 0x8922 /* SIOCSIFMTU */, &request);
}

/* Every interface with all that is said of it. */
void
try_links (char **args)
{
  static const struct {
    uint32_t size;
    uint16_t type, flags;
    uint32_t serial, port;
    char info[16];
  } request = { 32, 18 /* RTM_GETLINK */, 0x301 /* request, dump */, 1, 0,
                { 0 } };
  static char reply[32768];
  long fd = SYS (socket, 16, 3, 0), n;

  (void) args;
  SYS (sendto, fd, &request, sizeof request, 0, 0, 0);
  n = SYS (recvfrom, fd, reply, sizeof reply, 0, 0, 0);
  if (n > 0)
    say (reply, (size_t) n);
}

void
try_hostname (char **args)
{
  (void) args;
  SYS (sethostname, "fallen", 6);
}

void
try_nodename (char **args)
{
  static char names[6][65];

  (void) args;
  SYS (uname, names);
  say (names[1], strlen (names[1]));
}

/* ARGS: the key of a segment, how much of it. */
void
try_shm (char **args)
{
  long id = SYS (shmget, number (args[0]), 0, 0);
  long at = SYS (shmat, id, 0, 010000 /* read-only */);

  if (at > 0)
    say ((const void *) at, (size_t) number (args[1]));
}

void
try_sysctl (char **args)
{
  spill (args[0], "33", 0);
}

/* All that passes, and packets as they are. */
void
try_raw (char **args)
{
  (void) args;
  SYS (socket, 17 /* AF_PACKET */, 3, 0x0300);
  SYS (socket, 2, 3, 1 /* ICMP */);
}

void
try_inet (char **args)
{
  (void) args;
  SYS (socket, 2, 1, 0);
  SYS (socket, 2, 2, 0);
}
