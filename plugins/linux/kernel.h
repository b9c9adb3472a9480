/* SPDX-License-Identifier: Apache-2.0 */
/* Of the kernel's interface, what headers older than it lack: numbers that are
 * the same on every machine that this is built for. */

#ifndef LINUX_KERNEL_H
#define LINUX_KERNEL_H

#include <stddef.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>           /* P_PIDFD is no macro there */
#include <unistd.h>

#ifndef SYS_open_tree
#define SYS_open_tree 428
#endif
#ifndef SYS_fsopen
#define SYS_fsopen 430
#define SYS_fsconfig 431
#define SYS_fsmount 432
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif
#ifndef SYS_quotactl_fd
#define SYS_quotactl_fd 443
#endif
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#endif

#ifndef P_PIDFD
#define P_PIDFD 3
#endif
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif
#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE 2
#endif
#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC 4
#endif

/* Their names are the kernel's or the C library's, by version. */
#define OPEN_TREE_CLONE_ 1
#define MOVE_EMPTY_ 4
#define AT_RECURSIVE_ 0x8000
#define ATTR_IDMAP_ 0x100000

/* 0 or less: there is none. */
static inline long
landlock_abi (void)
{
  return syscall (SYS_landlock_create_ruleset, NULL, 0, 1);
}

#endif /* LINUX_KERNEL_H */
