/* SPDX-License-Identifier: Apache-2.0 */
/* The network namespace of a sandbox, made beside its init.
 *
 * It is most of what the kernel takes for a sandbox's namespaces, and nothing
 * that the init prepares needs one.  So one that is begun early is begun
 * without, and when it has its plan, and is at work, this process makes one in
 * its user namespace: by a child that has joined that, and is over then.  The
 * init joins it before it gives up what it may, and could join no other: of a
 * namespace that belongs to the machine the kernel refuses it, and the host
 * reads back afterwards which one it is in.  A filter may know unshare alone:
 * then it is made by clone.  Where none can be made here the init makes it
 * itself. */

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clone.h"
#include "spawn.h"

struct maker {
  int pidfd;                    /* of the init */
  volatile int ns;
  char stack[16384] __attribute__ ((aligned (16)));
};

/* Both run in this process's memory, with its descriptors, while the calling
 * thread waits: system calls only. */
static int
maker_inside (void *data)
{
  struct ifreq request = { .ifr_name = "lo",
                           .ifr_flags = IFF_UP | IFF_RUNNING };
  struct maker *maker = data;
  int fd;

  fd = (int) syscall (SYS_socket, AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd >= 0) {
    syscall (SYS_ioctl, fd, SIOCSIFFLAGS, &request);
    syscall (SYS_close, fd);
  }
  maker->ns = (int) syscall (SYS_openat, AT_FDCWD, "/proc/self/ns/net",
                             O_RDONLY | O_CLOEXEC);
  return 0;
}

static int
maker_main (void *data)
{
  struct maker *maker = data;
  long pid;

  if (syscall (SYS_setns, maker->pidfd, CLONE_NEWUSER) == -1)
    return 1;
  if (syscall (SYS_unshare, CLONE_NEWNET) == 0)
    return maker_inside (maker);
  pid = clone_inside (maker_inside, maker, CLONE_FILES | CLONE_NEWNET,
                      maker->stack, sizeof maker->stack);
  while (pid > 0 && syscall (SYS_wait4, pid, NULL, __WALL, NULL) == -1
         && errno == EINTR)
    ;
  return pid < 0;
}

int
netns_give (const struct making *making)
{
  /* It has no answer: nobody is ever to take one for another's. */
  struct link link = { .fd = making->control, .serial = UINT32_MAX };
  struct maker maker = { .pidfd = making->pidfd, .ns = -1 };
  pid_t pid = clone_waited (maker_main, &maker, CLONE_FILES | SIGCHLD, NULL);
  coffer_autoclose int ns = -1;
  struct request request = { .type = INIT_NETWORK, .fds = &ns };

  while (pid > 0 && waitpid (pid, NULL, __WALL) == -1 && errno == EINTR)
    ;
  ns = maker.ns;
  request.n_fds = ns >= 0;
  return link_send (&link, &request, making->call);
}
