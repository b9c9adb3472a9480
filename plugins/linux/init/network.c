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
#define CLONE_NEWNET_ 0x40000000
#define WALL_ 0x40000000

int network_late;
int proxy_listener = -1;
uint32_t exit_proxy;

/* Of the loopback, as it was begun before the plan was there. */
static long loopback = -EINVAL_;

/* Its socket, or a negative errno. */
static int
loopback_raise (void)
{
  struct {
    char name[16];
    short flags;
    char rest[22];
  } request = { "lo", 0x1 | 0x40 /* UP, RUNNING */, { 0 } };
  int fd = (int) SYS (socket, AF_INET_, SOCK_DGRAM_ | O_CLOEXEC_, 0);

  loopback = fd < 0 ? fd : SYS (ioctl, fd, 0x8914 /* SIOCSIFFLAGS */,
                                &request);
  return fd;
}

/* In the machine's network, and without the right to, it changes nothing: there
 * the loopback is up. */
void
network_begin (void)
{
  fd_close (loopback_raise ());
}

/* ---- one that is made beside -------------------------------------------- */

/* By a child that has this memory and these descriptors: it is most of what the
 * kernel takes for namespaces, and by then the maker's processor is idle, or this
 * one is. */
static struct {
  char stack[4096] __attribute__ ((aligned (16)));
  long pid;
  volatile int socket;          /* of that network, or a negative errno */
} maker = { .socket = -ESRCH_ };

static int
maker_unshares (void *data)
{
  const long r = SYS (unshare, CLONE_NEWNET_);

  (void) data;
  maker.socket = r < 0 ? (int) r : loopback_raise ();
  return 0;
}

/* One that has it from its own start. */
static int
maker_has (void *data)
{
  (void) data;
  maker.socket = loopback_raise ();
  return 0;
}

static long
maker_start (int (*function) (void *), unsigned long flags)
{
  maker.socket = -ESRCH_;
  maker.pid = sys_clone_run (CLONE_VM_ | CLONE_FILES_ | flags,
                             maker.stack + sizeof maker.stack, function, 0);
  return maker.pid;
}

/* 0 or a negative errno. */
static long
maker_join (void)
{
  long ns, r;

  if (maker.pid <= 0)
    return maker.pid < 0 ? maker.pid : -ESRCH_;
  do
    r = SYS (wait4, maker.pid, 0, WALL_, 0);
  while (r == -EINTR_);
  must ("network: wait", r);    /* it has this memory, too */
  ns = maker.socket < 0 ? maker.socket : SYS (ioctl, maker.socket,
                                              SIOCGSKNS_, 0);
  fd_close (maker.socket);
  r = ns < 0 ? ns : SYS (setns, ns, CLONE_NEWNET_);
  fd_close ((int) ns);
  return r;
}

/* Where there is no room for it the network is made when it is needed. */
void
network_begin_beside (void)
{
  maker_start (maker_unshares, 0);
}

/* A filter may know but one of the calls that make one. */
void
network_join (void)
{
  if (maker_join () == 0)
    return;
  if (SYS (unshare, CLONE_NEWNET_) == 0) {
    network_begin ();
    return;
  }
  must ("network", maker_start (maker_has, CLONE_NEWNET_));
  must ("network", maker_join ());
}

/* ---- for all ------------------------------------------------------------ */

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
