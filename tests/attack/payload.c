/* SPDX-License-Identifier: Apache-2.0 */
/* The native payload of the attack corpus: ATTEMPT [ARGUMENT...].  It tries,
 * says "=ready" whatever came of it, and stays until its standard input ends,
 * so that it can be looked at.  Nobody believes what it prints: only secrets
 * that it could not have known otherwise count. */

#include "payload.h"

static const struct {
  const char *name;
  attempt_function *run;
} attempts[] = {
  { "read", try_read }, { "symlink", try_symlink }, { "write", try_write },
  { "chmod", try_chmod }, { "remount", try_remount },
  { "setuid-bit", try_setuid_bit }, { "setuid-high", try_setuid_high },
  { "setuid-openat2", try_setuid_openat2 }, { "whiteout", try_whiteout },
  { "whiteout-rename", try_whiteout_rename },
  { "setuid-program", try_setuid_program }, { "disk", try_disk },
  { "escape", try_escape }, { "reopen", try_reopen }, { "link", try_link },
  { "fifo", try_fifo }, { "lock", try_lock }, { "watch", try_watch },
  { "fork", try_fork }, { "survive", try_survive }, { "kill", try_kill },
  { "vm-read", try_vm_read }, { "proc-mem", try_proc_mem },
  { "prlimit", try_prlimit }, { "descriptors", try_descriptors },
  { "tiocsti", try_tiocsti }, { "tiocsti-high", try_tiocsti_high },
  { "ptrace-init", try_ptrace_init }, { "identity", try_identity },
  { "core", try_core }, { "mlock", try_mlock }, { "memory", try_memory },
  { "renice", try_renice }, { "pidfd", try_pidfd }, { "pipes", try_pipes },
  { "io-uring", try_io_uring }, { "perf", try_perf },
  { "userfault", try_userfault }, { "secretmem", try_secretmem },
  { "listener", try_listener }, { "family", try_family },
  { "keyring", try_keyring }, { "keyring-32", try_keyring_32 },
  { "personality", try_personality }, { "new-user", try_new_user },
  { "clone3", try_clone3 }, { "mount", try_mount }, { "memfd", try_memfd },
  { "tcp", try_tcp }, { "udp", try_udp }, { "abstract", try_abstract },
  { "pathname", try_pathname }, { "mtu", try_mtu }, { "links", try_links },
  { "hostname", try_hostname }, { "nodename", try_nodename },
  { "shm", try_shm }, { "sysctl", try_sysctl }, { "raw", try_raw },
  { "inet", try_inet },
};

void
say (const void *bytes, size_t size)
{
  const char *at = bytes;
  long n;

  while (size > 0 && (n = SYS (write, 1, at, size)) > 0) {
    at += n;
    size -= (size_t) n;
  }
}

void
say_file (const char *path)
{
  static char bytes[65536];
  long fd = SYS (openat, AT_CWD, path, RDONLY, 0), n;

  while (fd >= 0 && (n = SYS (read, fd, bytes, sizeof bytes)) > 0)
    say (bytes, (size_t) n);
  fd_close ((int) fd);
}

void
spill (const char *path, const char *text, int flags)
{
  long fd = SYS (openat, AT_CWD, path, WRONLY | flags, 0666);

  if (fd >= 0)
    SYS (write, fd, text, strlen (text));
  fd_close ((int) fd);
}

long
number (const char *text)
{
  long value = 0;

  for (; text != NULL && *text >= '0' && *text <= '9'; text++)
    value = value * 10 + (*text - '0');
  return value;
}

void
sleep_ms (long ms)
{
  const struct sys_timespec time = { ms / 1000, ms % 1000 * 1000000 };

  SYS (nanosleep, &time, 0);
}

long
child (void)
{
  return SYS (clone, 17 /* SIGCHLD */, 0, 0, 0, 0);
}

/* lib.c ends a process that cannot wait; nothing here waits that way. */

void payload_main (long *stack);

void
payload_main (long *stack)
{
  static char byte[256];
  long argc = stack[0];
  char **argv = (char **) (stack + 1);
  size_t i;

  for (i = 0; argc > 1 && i < sizeof attempts / sizeof attempts[0]; i++)
    if (text_equal (argv[1], attempts[i].name))
      attempts[i].run (argv + 2);
  say ("\n=ready\n", 8);
  while (SYS (read, 0, byte, sizeof byte) > 0)
    ;
  init_exit_now (0);
}

#if defined __x86_64__
__asm__ (".globl _start\n_start:\n\txor %ebp, %ebp\n\tmov %rsp, %rdi\n\t"
         "and $-16, %rsp\n\tcall payload_main\n\thlt\n");
#else
__asm__ (".globl _start\n_start:\n\tmov x29, #0\n\tmov x30, #0\n\t"
         "mov x0, sp\n\tb payload_main\n");
#endif
