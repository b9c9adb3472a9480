/* SPDX-License-Identifier: Apache-2.0 */
/* What a coffer-proxy that somebody has taken over can still do: each attempt
 * in a process that has confined itself as the program does. */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "confined.h"
#include "proxy.h"

struct policy policy;

static uint16_t open_port, listed_port;
static char canary[] = "/tmp/coffer-proxy-canary.XXXXXX";

/* ---- attempts: 1 when it worked -------------------------------------------- */

static int read_etc (void) { return opens ("/etc/hosts", O_RDONLY); }
static int read_program (void) { return opens ("/bin/sh", O_RDONLY); }
static int read_canary (void) { return opens (canary, O_RDONLY); }
static int read_proc (void) { return opens ("/proc/self/maps", O_RDONLY); }
static int write_etc (void) { return opens ("/etc/hosts", O_WRONLY); }
static int write_canary (void) { return opens (canary, O_WRONLY); }
static int make_file (void) { return opens ("/tmp/coffer-proxy-made",
                                            O_WRONLY | O_CREAT); }
static int path_only (void) { return opens (canary, O_PATH); }
static int remove_canary (void) { return unlink (canary) == 0; }
static int change_mode (void) { return chmod (canary, 0777) == 0; }
static int make_folder (void) { return mkdir ("/tmp/coffer-proxy-made", 0700)
                                       == 0; }

static int raw (void) { return has_socket (AF_INET, SOCK_RAW, 255); }
static int mptcp (void) { return has_socket (AF_INET, SOCK_STREAM, 262); }
static int udp (void) { return has_socket (AF_INET, SOCK_DGRAM, IPPROTO_UDP); }

static int
connects (uint16_t port)
{
  struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons (port),
                            .sin_addr.s_addr = htonl (INADDR_LOOPBACK) };
  int fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int r = connect (fd, (const struct sockaddr *) (const void *) &to,
                   sizeof to);

  close (fd);
  return r == 0;
}

static int connect_listed (void) { return connects (listed_port); }
static int connect_other (void) { return connects (open_port); }

static int
fast_open (void)
{
  struct sockaddr_in to = { .sin_family = AF_INET,
                            .sin_port = htons (open_port),
                            .sin_addr.s_addr = htonl (INADDR_LOOPBACK) };
  int fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ssize_t n = sendto (fd, "x", 1, MSG_FASTOPEN | MSG_NOSIGNAL,
                      (const struct sockaddr *) (const void *) &to, sizeof to);

  close (fd);
  return n >= 0 || errno == EINPROGRESS;
}

static int
listens (void)
{
  struct sockaddr_in here = { .sin_family = AF_INET };
  int fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int bound = bind (fd, (const struct sockaddr *) (const void *) &here,
                    sizeof here) == 0;
  int listening = listen (fd, 1) == 0;

  close (fd);
  return bound || listening;
}

/* 2: where Landlock has no rules for ports it works. */
static const struct attempt attempts[] = {
  { "reading /etc", read_etc, 1 },
  { "a UDP socket", udp, 1 },
  { "connecting to a port of the list", connect_listed, 1 },
  { "a child", child, 1 },
  { "connecting to another port", connect_other, 2 },
  { "reading a program", read_program, 0 },
  { "reading a file of its user", read_canary, 0 },
  { "reading /proc", read_proc, 0 },
  { "writing /etc", write_etc, 0 },
  { "writing a file of its user", write_canary, 0 },
  { "making a file", make_file, 0 },
  { "a path's descriptor", path_only, 0 },
  { "removing a file", remove_canary, 0 },
  { "changing a mode", change_mode, 0 },
  { "making a folder", make_folder, 0 },
  { "a unix socket", unix_socket, 0 },
  { "a pair of sockets", pair, 0 },
  { "a netlink socket", netlink, 0 },
  { "a packet socket", packet, 0 },
  { "a vsock socket", vsock, 0 },
  { "a raw socket", raw, 0 },
  { "a multipath socket", mptcp, 0 },
  { "connecting by sending", fast_open, 0 },
  { "listening", listens, 0 },
  { "executing", execute, 0 },
  { "new code", code_new, 0 },
  { "memory made code", code_made, 0 },
  { "signalling its parent", signal_parent, 0 },
  { "tracing its parent", trace_parent, 0 },
  { "reading its parent", read_parent, 0 },
  { "limiting its parent", limit_parent, 0 },
  { "a user namespace", namespaces, 0 },
  { "mounting", mounts, 0 },
  { "a memory file", memory_file, 0 },
  { "a thread", thread, 0 },
  { "a child of its parent", parent_of_parent, 0 },
  { "typing into a terminal", terminal, 0 },
  { "being dumped", dump, 0 },
  { "an io_uring", ring, 0 },
  { NULL, NULL, 0 }
};

/* ---- the tests ------------------------------------------------------------- */

static int
confine_self (void)
{
  char line[256];

  return confine (&policy, line, sizeof line);
}

static long
landlock_abi (void)
{
  return syscall (444 /* landlock_create_ruleset */, NULL, 0, 1);
}

static void
it_keeps_what_it_is_for_and_nothing_else (void **state)
{
  size_t i;
  int got;

  (void) state;
  for (i = 0; attempts[i].what; i++) {
    got = attempt_status (&attempts[i], confine_self);
    if (attempts[i].may == 2) {
      if (got != (landlock_abi () < 4))
        fail_msg ("%s: %d", attempts[i].what, got);
    } else if (got != attempts[i].may)
      fail_msg ("%s: %d", attempts[i].what, got);
  }
}

/* Else the test above proves nothing of them. */
static void
without_it_they_work (void **state)
{
  static const char *const names[]
    = { "reading a program", "reading a file of its user", "reading /proc",
        "writing a file of its user", "a unix socket", "a pair of sockets",
        "a netlink socket", "connecting to another port", "listening",
        "new code", "memory made code", "signalling its parent",
        "limiting its parent", "a memory file", "changing a mode",
        "a path's descriptor", "a child of its parent" };
  size_t i;

  (void) state;
  for (i = 0; i < sizeof names / sizeof names[0]; i++)
    if (attempt_status (attempt_find (attempts, names[i]), NULL) != 1)
      fail_msg ("%s does not work here anyway", names[i]);
}

static uint16_t
listener (void)
{
  struct sockaddr_in here = { .sin_family = AF_INET,
                              .sin_addr.s_addr = htonl (INADDR_LOOPBACK) };
  socklen_t size = sizeof here;
  int fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

  if (fd < 0
      || bind (fd, (struct sockaddr *) (void *) &here, sizeof here) != 0
      || listen (fd, 16) != 0
      || getsockname (fd, (struct sockaddr *) (void *) &here, &size) != 0)
    return 0;
  return ntohs (here.sin_port);
}

static int
prepare (void **state)
{
  char entry[32];
  int fd = mkstemp (canary);

  (void) state;
  if (fd < 0)
    return -1;
  close (fd);
  open_port = listener ();
  listed_port = listener ();
  snprintf (entry, sizeof entry, "www.example.test:%u", listed_port);
  return open_port && listed_port ? policy_add (&policy, entry) : -1;
}

static int
clear (void **state)
{
  (void) state;
  return unlink (canary);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (without_it_they_work),
    cmocka_unit_test (it_keeps_what_it_is_for_and_nothing_else),
  };

  if (landlock_abi () <= 0) {
    puts ("1..0 # SKIP missing: Landlock");
    return 0;
  }
  return cmocka_run_group_tests (tests, prepare, clear);
}
