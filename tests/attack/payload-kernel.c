/* SPDX-License-Identifier: Apache-2.0 */
/* Attempts at what the kernel has that no sandbox needs. */

#include "payload.h"

#ifndef __NR_memfd_secret
#define __NR_memfd_secret 447
#endif

static char bytes[512];

void
try_io_uring (char **args)
{
  (void) args;
  SYS (io_uring_setup, 4, bytes);
}

/* Of this process, in user space: what needs no right. */
void
try_perf (char **args)
{
  static struct {
    uint32_t type, size;
    uint64_t config, period, sample, read, flags;
    uint64_t rest[10];
  } event = { 1 /* software */, 112, 0, 0, 0, 0,
              0x60 /* no kernel, no hypervisor */, { 0 } };

  (void) args;
  SYS (perf_event_open, &event, 0, -1, -1, 0);
}

void
try_userfault (char **args)
{
  (void) args;
  SYS (userfaultfd, 1 /* user mode only */);
}

void
try_secretmem (char **args)
{
  (void) args;
  SYS (memfd_secret, 0);
}

/* One's own judge of one's own calls. */
void
try_listener (char **args)
{
  static const struct {
    uint16_t code;
    uint8_t jt, jf;
    uint32_t k;
  } allow = { 0x06, 0, 0, 0x7fff0000 };
  const struct {
    uint16_t n;
    const void *program;
  } filter = { 1, &allow };

  (void) args;
  SYS (prctl, 38 /* NO_NEW_PRIVS */, 1, 0, 0, 0);
  SYS (seccomp, 1, 8 /* NEW_LISTENER */, &filter);
}

/* Sockets that are nobody's business: vsock, crypto, keys, XDP, CAN. */
void
try_family (char **args)
{
  static const int families[] = { 40, 38, 15, 44, 29, 31, 30, 21, 43 };
  size_t i;

  (void) args;
  for (i = 0; i < sizeof families / sizeof families[0]; i++) {
    SYS (socket, families[i], 1, 0);
    SYS (socket, families[i] | HIGH, 1, 0);
    SYS (socket, families[i], 5, 0);
  }
}

/* ARGS: what a key of the session is called. */
void
try_keyring (char **args)
{
  long key = SYS (keyctl, 10 /* search */, -3, "user", args[0], 0), n;

  n = SYS (keyctl, 11 /* read */, key, bytes, sizeof bytes, 0);
  if (n > 0 && n <= (long) sizeof bytes)
    say (bytes, (size_t) n);
}

#if defined __x86_64__
/* As a program of 32 bits would: everything it names lies low. */
static long
call_32 (long n, long a, long b, long c, long d, long e)
{
  long ret;

  __asm__ volatile ("int $0x80"
                    : "=a" (ret)
                    : "a" (n), "b" (a), "c" (b), "d" (c), "S" (d), "D" (e)
                    : "memory", "r8", "r9", "r10", "r11");
  return ret;
}
#endif

void
try_keyring_32 (char **args)
{
#if defined __x86_64__
  static char name[256];
  static const char type[] = "user";
  long key, n;

  text_join (name, sizeof name, args[0], NULL);
  key = call_32 (288, 10, -3, (long) type, (long) name, 0);
  n = call_32 (288, 11, key, (long) bytes, sizeof bytes, 0);
  if (n > 0 && n <= (long) sizeof bytes)
    say (bytes, (size_t) n);
#else
  try_keyring (args);
#endif
}

void
try_personality (char **args)
{
  (void) args;
  SYS (personality, 0x0040000 /* no randomization */);
}

void
try_new_user (char **args)
{
  (void) args;
  SYS (unshare, 0x10000000);
}

/* With the flags where no filter looks. */
void
try_clone3 (char **args)
{
  const uint64_t wanted[8] = { 0x10000000, 0, 0, 0, 17 /* SIGCHLD */, 0, 0,
                               0 };

  (void) args;
  if (SYS (clone3, wanted, sizeof wanted) == 0)
    for (;;)
      sleep_ms (100000);
}

/* A program that no file system has seen. */
void
try_memfd (char **args)
{
  (void) args;
  SYS (memfd_create, "fallen", 0);
}

/* ARGS: where.  Directly, and as the root of a namespace of one's own. */
void
try_mount (char **args)
{
  long fs;

  if (SYS (mount, "fallen", args[0], "tmpfs", 0, 0) == 0)
    return;
  SYS (unshare, 0x10020000 /* user, mount */);
  if (SYS (mount, "fallen", args[0], "tmpfs", 0, 0) == 0)
    return;
  fs = SYS (fsopen, "tmpfs", 0);
  SYS (fsconfig, fs, 1 /* a string */, "source", "fallen", 0);
  SYS (fsconfig, fs, 6 /* make it */, 0, 0, 0);
  fs = SYS (fsmount, fs, 0, 0);
  SYS (move_mount, fs, "", AT_CWD, args[0], 4 /* what is empty */);
}
