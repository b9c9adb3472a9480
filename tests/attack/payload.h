/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the native payload share.  No libc: system calls as the
 * init of a sandbox makes them, so that nothing of a library's is between an
 * attempt and the kernel. */

#ifndef ATTACK_PAYLOAD_H
#define ATTACK_PAYLOAD_H

#include "../../plugins/linux/init/init.h"

#ifndef __NR_fchmodat2
#define __NR_fchmodat2 452
#endif

#define AT_CWD (-100)
#define HIGH (1L << 32)         /* beyond what the kernel looks at */

enum { RDONLY = 0, WRONLY = 1, RDWR = 2, CREATE = 0100, TRUNCATE = 01000 };

/* Attempts.  Arguments are what the canaries' keeper gives; NULL ends them. */
typedef void attempt_function (char **args);

attempt_function try_read, try_symlink, try_write, try_chmod, try_remount,
  try_setuid_bit, try_setuid_high, try_setuid_openat2, try_whiteout,
  try_whiteout_rename, try_setuid_program, try_disk, try_escape, try_reopen,
  try_link, try_fifo, try_lock, try_watch;
attempt_function try_fork, try_survive, try_kill, try_vm_read, try_proc_mem,
  try_prlimit, try_descriptors, try_tiocsti, try_tiocsti_high,
  try_ptrace_init, try_renice, try_identity, try_core, try_mlock, try_memory,
  try_pidfd, try_pipes;
attempt_function try_io_uring, try_perf, try_userfault, try_secretmem,
  try_listener, try_family, try_keyring, try_keyring_32, try_personality,
  try_new_user, try_clone3, try_mount, try_memfd;
attempt_function try_tcp, try_udp, try_abstract, try_pathname, try_mtu,
  try_links, try_hostname, try_nodename, try_shm, try_sysctl, try_raw,
  try_inet;

void say (const void *bytes, size_t size);
/* A whole file, to standard output. */
void say_file (const char *path);
void spill (const char *path, const char *text, int flags);
long number (const char *text);
void sleep_ms (long ms);
long child (void);              /* fork */

#endif /* ATTACK_PAYLOAD_H */
