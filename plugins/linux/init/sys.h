/* SPDX-License-Identifier: Apache-2.0 */
/* System calls of a program without a libc.  Each returns what the kernel
 * does: a negative errno or a result.  x86_64 and aarch64. */

#ifndef INIT_SYS_H
#define INIT_SYS_H

#include <stddef.h>
#include <stdint.h>

#include <asm/unistd.h>
#include <linux/types.h>

#include "../layer.h"

#if defined __x86_64__

static inline long
sys6 (long n, long a, long b, long c, long d, long e, long f)
{
  register long r10 __asm__ ("r10") = d;
  register long r8 __asm__ ("r8") = e;
  register long r9 __asm__ ("r9") = f;
  long ret;

  __asm__ volatile ("syscall"
                    : "=a" (ret)
                    : "a" (n), "D" (a), "S" (b), "d" (c), "r" (r10), "r" (r8),
                      "r" (r9)
                    : "rcx", "r11", "memory");
  return ret;
}

/* clone with a stack of its own: the child runs function (data) and exits
 * with what that returns. */
static inline long
sys_clone_run (unsigned long flags, void *stack, int (*function) (void *),
               void *data)
{
  register long r10 __asm__ ("r10") = 0;
  register long r8 __asm__ ("r8") = 0;
  register void *r12 __asm__ ("r12") = (void *) function;
  register void *r13 __asm__ ("r13") = data;
  long ret;

  __asm__ volatile ("syscall\n\t"
                    "test %%rax, %%rax\n\t"
                    "jnz 1f\n\t"
                    "xor %%ebp, %%ebp\n\t"
                    "mov %%r13, %%rdi\n\t"
                    "call *%%r12\n\t"
                    "mov %%eax, %%edi\n\t"
                    "mov $60, %%eax\n\t"
                    "syscall\n\t"
                    "hlt\n"
                    "1:"
                    : "=a" (ret)
                    : "a" (__NR_clone), "D" (flags), "S" (stack), "d" (0),
                      "r" (r10), "r" (r8), "r" (r12), "r" (r13)
                    : "rcx", "r11", "memory");
  return ret;
}

#elif defined __aarch64__

static inline long
sys6 (long n, long a, long b, long c, long d, long e, long f)
{
  register long x8 __asm__ ("x8") = n;
  register long x0 __asm__ ("x0") = a;
  register long x1 __asm__ ("x1") = b;
  register long x2 __asm__ ("x2") = c;
  register long x3 __asm__ ("x3") = d;
  register long x4 __asm__ ("x4") = e;
  register long x5 __asm__ ("x5") = f;

  __asm__ volatile ("svc #0"
                    : "+r" (x0)
                    : "r" (x8), "r" (x1), "r" (x2), "r" (x3), "r" (x4),
                      "r" (x5)
                    : "memory");
  return x0;
}

static inline long
sys_clone_run (unsigned long flags, void *stack, int (*function) (void *),
               void *data)
{
  register long x8 __asm__ ("x8") = __NR_clone;
  register long x0 __asm__ ("x0") = (long) flags;
  register long x1 __asm__ ("x1") = (long) stack;
  register long x2 __asm__ ("x2") = 0;
  register long x3 __asm__ ("x3") = 0;
  register long x4 __asm__ ("x4") = 0;
  register void *x19 __asm__ ("x19") = (void *) function;
  register void *x20 __asm__ ("x20") = data;

  __asm__ volatile ("svc #0\n\t"
                    "cbnz x0, 1f\n\t"
                    "mov x29, #0\n\t"
                    "mov x0, x20\n\t"
                    "blr x19\n\t"
                    "mov x8, #93\n\t"
                    "svc #0\n\t"
                    "brk #1\n"
                    "1:"
                    : "+r" (x0)
                    : "r" (x8), "r" (x1), "r" (x2), "r" (x3), "r" (x4),
                      "r" (x19), "r" (x20)
                    : "x30", "memory");
  return x0;
}

#else
#error "the init of sandboxes knows x86_64 and aarch64"
#endif

#define SYS(name, ...) SYS_ (name, ##__VA_ARGS__, 0, 0, 0, 0, 0, 0)
#define SYS_(name, a, b, c, d, e, f, ...)                                     \
  LAYER_CALL (__NR_##name, (long) (a), (long) (b), (long) (c), (long) (d),    \
              (long) (e), (long) (f))

/* Newer than the oldest headers that coffer is built with. */
#ifndef __NR_mount_setattr
#define __NR_mount_setattr 442
#endif
#ifndef __NR_landlock_create_ruleset
#define __NR_landlock_create_ruleset 444
#define __NR_landlock_add_rule 445
#define __NR_landlock_restrict_self 446
#endif

/* errno, as far as the init names any. */
enum {
  EPERM_ = 1, ENOENT_ = 2, EINTR_ = 4, EIO_ = 5, E2BIG_ = 7, EBADF_ = 9,
  ECHILD_ = 10, EAGAIN_ = 11, ENOMEM_ = 12, EACCES_ = 13, EEXIST_ = 17,
  ENOTDIR_ = 20, EINVAL_ = 22, ENOSPC_ = 28, EPROTO_ = 71, EMSGSIZE_ = 90,
  EOPNOTSUPP_ = 95, ENOSYS_ = 38, ESRCH_ = 3, ESTALE_ = 116, EBUSY_ = 16
};

/* The kernel's layouts that have no header of their own. */
struct sys_iovec {
  void *base;
  size_t size;
};

struct sys_msghdr {
  void *name;
  int name_size, pad1;
  struct sys_iovec *iov;
  size_t iov_count;
  void *control;
  size_t control_size;
  unsigned flags;
  int pad2;
};

struct sys_cmsghdr {
  size_t size;
  int level, type;
};

struct sys_pollfd {
  int fd;
  short events, revents;
};

struct sys_timespec {
  int64_t s, ns;
};

struct sys_timeval {
  int64_t s, us;
};

struct sys_rusage {
  struct sys_timeval user, system;
  long rest[14];
};

#endif /* INIT_SYS_H */
