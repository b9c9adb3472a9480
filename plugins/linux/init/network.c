/* SPDX-License-Identifier: Apache-2.0 */
/* The network of a sandbox: a loopback of its own, and nothing else, unless it
 * is the machine's.  Where a proxy outside lets it reach a list of names, the
 * place to ask is a socket of that loopback, which goes out with READY. */

#include "init.h"

#define O_CLOEXEC_ 02000000
#define AF_INET_ 2
#define SOCK_STREAM_ 1
#define SOCK_DGRAM_ 2
#define SIOCGSKNS_ 0x894c
#define CLONE_VM_ 0x100
#define CLONE_FILES_ 0x400
#define CLONE_VFORK_ 0x4000
#define CLONE_NEWNET_ 0x40000000
#define WALL_ 0x40000000

int network_late;
int proxy_listener = -1;
uint32_t exit_proxy;

/* Of the loopback, as it was begun before the plan was there. */
static long loopback = -EINVAL_;

/* In the machine's network, and without the right to, it changes nothing: there
 * the loopback is up. */
void
network_begin (void)
{
  struct {
    char name[16];
    short flags;
    char rest[22];
  } request = { "lo", 0x1 | 0x40 /* UP, RUNNING */, { 0 } };
  int fd = (int) SYS (socket, AF_INET_, SOCK_DGRAM_ | O_CLOEXEC_, 0);

  loopback = fd < 0 ? fd : SYS (ioctl, fd, 0x8914 /* SIOCSIFFLAGS */,
                                &request);
  fd_close (fd);
}

/* In this process's memory, with its descriptors, while it waits. */
static int
socket_inside (void *out)
{
  *(volatile int *) out
    = (int) SYS (socket, AF_INET_, SOCK_DGRAM_ | O_CLOEXEC_, 0);
  return 0;
}

/* A child's own, which is joined by a socket of it: 0 or a negative errno. */
static long
own_by_child (void)
{
  static char stack[4096] __attribute__ ((aligned (16)));
  volatile int inside = -EINVAL_;
  long pid = sys_clone_run (CLONE_VM_ | CLONE_VFORK_ | CLONE_FILES_
                              | CLONE_NEWNET_,
                            stack + sizeof stack, socket_inside,
                            (void *) &inside);
  long ns, r;

  if (pid < 0)
    return pid;
  SYS (wait4, pid, 0, WALL_, 0);
  ns = inside < 0 ? inside : SYS (ioctl, inside, SIOCGSKNS_, 0);
  fd_close (inside);
  r = ns < 0 ? ns : SYS (setns, ns, CLONE_NEWNET_);
  fd_close ((int) ns);
  return r;
}

/* A filter may know but one of the calls that make one. */
void
network_own (void)
{
  if (SYS (unshare, CLONE_NEWNET_) < 0)
    must ("network", own_by_child ());
  network_begin ();
}

static void
proxy_listen (void)
{
  struct {
    uint16_t family;
    uint8_t port[2], address[4], zero[8];
  } here = { AF_INET_, { INIT_PROXY_PORT >> 8, INIT_PROXY_PORT & 255 },
             { 127, 0, 0, 1 }, { 0 } };

  proxy_listener = (int) must ("proxy: socket",
                               SYS (socket, AF_INET_,
                                    SOCK_STREAM_ | O_CLOEXEC_, 0));
  must ("proxy: bind", SYS (bind, proxy_listener, &here, sizeof here));
  must ("proxy: listen", SYS (listen, proxy_listener, 128));
  exit_proxy = EXIT_PROXY;
}

void
network_make (const struct plan *plan)
{
  if (plan->shape.flags & PLAN_HOST_NETWORK)
    return;
  must ("loopback", loopback);
  if (plan->body.flags & PLAN_PROXY)
    proxy_listen ();
}
