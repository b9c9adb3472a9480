/* SPDX-License-Identifier: Apache-2.0 */
/* Attempts at processes: too many, too long, others', the init; and at what
 * they may use. */

#include "payload.h"

#define TIOCSTI_ 0x5412
#define PTRACE_SEIZE_ 0x4206

void
try_fork (char **args)
{
  long n = number (args[0]);

  while (n-- > 0)
    if (child () == 0)
      for (;;)
        sleep_ms (100000);
}

/* ARGS: a file that grows as long as this lives. */
void
try_survive (char **args)
{
  uint64_t ignore[4] = { 1 /* SIG_IGN */, 0, 0, 0 };
  long pid = child (), fd, i;

  if (pid != 0) {
    SYS (wait4, pid, 0, 0, 0);
    return;
  }
  SYS (setsid);
  if (child () != 0)
    init_exit_now (0);
  for (i = 1; i < 16; i++)
    SYS (rt_sigaction, i, ignore, 0, 8);
  fd = SYS (openat, AT_CWD, args[0], WRONLY | 02000 /* append */, 0);
  for (i = 0; i < 3; i++)
    SYS (close, i);
  /* At most some seconds: nothing of a test lives on for good. */
  for (i = 0; i < 600; i++) {
    SYS (write, fd, ".", 1);
    sleep_ms (5);
  }
  init_exit_now (0);
}

void
try_kill (char **args)
{
  static struct {
    int signal, error, code, rest[29];
  } told = { 10, 0, -1 /* queued */, { 0 } };
  const long pid = number (args[0]);
  long fd;

  SYS (kill, pid, 10 /* SIGUSR1 */);
  SYS (tgkill, pid, pid, 10);
  SYS (rt_sigqueueinfo, pid, 10, &told);
  fd = SYS (pidfd_open, pid, 0);
  SYS (pidfd_send_signal, fd, 10, 0, 0);
}

/* ARGS: a process, an address, how much there. */
void
try_vm_read (char **args)
{
  static char bytes[256];
  struct sys_iovec here = { bytes, (size_t) number (args[2]) };
  struct sys_iovec there
    = { (void *) number (args[1]), (size_t) number (args[2]) };
  long n = SYS (process_vm_readv, number (args[0]), &here, 1, &there, 1, 0);

  if (n > 0)
    say (bytes, (size_t) n);
}

void
try_proc_mem (char **args)
{
  static char bytes[256];
  char path[64];
  long fd, n;

  text_join (path, sizeof path, "/proc/", args[0], "/mem", NULL);
  fd = SYS (openat, AT_CWD, path, RDONLY, 0);
  n = SYS (pread64, fd, bytes, number (args[2]), number (args[1]));
  if (n > 0)
    say (bytes, (size_t) n);
}

void
try_prlimit (char **args)
{
  const uint64_t limit[2] = { 7, 7 };

  SYS (prlimit64, number (args[0]), 7 /* NOFILE */, limit, 0);
}

/* Whatever was left open. */
void
try_descriptors (char **args)
{
  int i;

  (void) args;
  for (i = 3; i < 256; i++)
    SYS (write, i, "fallen", 6);
}

static void
stuff (long high)
{
  const char *c;

  for (c = "id\n"; *c != '\0'; c++)
    SYS (ioctl, 0, TIOCSTI_ | high, c);
  init_exit_now (0);            /* standard input is the terminal */
}

void
try_tiocsti (char **args)
{
  (void) args;
  stuff (0);
}

void
try_tiocsti_high (char **args)
{
  (void) args;
  stuff (HIGH);
}

/* Whoever holds the init holds all of it. */
void
try_ptrace_init (char **args)
{
  const long init = SYS (getppid);

  (void) args;
  SYS (ptrace, PTRACE_SEIZE_, init, 0, 0);
}

/* Whoever waits behind all others watches over nothing. */
void
try_renice (char **args)
{
  static const struct {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t rest[7];
  } last = { 48, 0, 0, 19, { 0 } };
  const long init = SYS (getppid);

  (void) args;
  SYS (setpriority, 0, init, 19);
  SYS (sched_setattr, init, &last, 0);
}

void
try_identity (char **args)
{
  (void) args;
  SYS (setresgid, 0, 0, 0);
  SYS (setresuid, 0, 0, 0);
}

/* Begun where a core would be seen. */
void
try_core (char **args)
{
  const long self = SYS (getpid);
  volatile uintptr_t nowhere = 8;

  (void) args;
  SYS (kill, self, 11);
  /* Where no signal may be sent. */
  *(volatile char *) nowhere = 0;
}

void
try_mlock (char **args)
{
  static char bytes[262144];

  (void) args;
  SYS (mlock, bytes, sizeof bytes);
  SYS (mlock2, bytes, sizeof bytes, 1);
  SYS (mmap, 0, sizeof bytes, 3, 0x2022 /* LOCKED */, -1, 0);
}

/* ARGS: MiB. */
void
try_memory (char **args)
{
  size_t size = (size_t) number (args[0]) << 20, i;
  long at = SYS (mmap, 0, size, 3, 0x22, -1, 0);

  for (i = 0; at > 0 && i < size; i += 4096)
    ((volatile char *) at)[i] = 1;
}

void
try_pidfd (char **args)
{
  const long self = SYS (getpid);

  (void) args;
  SYS (pidfd_open, self, 0);
}

/* Each holds some of the kernel's memory. */
void
try_pipes (char **args)
{
  int ends[2], i;

  (void) args;
  for (i = 0; i < 32; i++)
    SYS (pipe2, ends, 0);
}
