/* SPDX-License-Identifier: Apache-2.0 */
/* Children that run in this process's memory, with a stack of their own. */

#ifndef LINUX_CLONE_H
#define LINUX_CLONE_H

#include <stdint.h>
#include <sys/types.h>

/* The calling thread waits until the child has executed a program or is gone,
 * and the child has every signal blocked.  With CLONE_PIDFD among the flags
 * *pidfd is set.  -1 with errno. */
pid_t clone_waited (int (*function) (void *), void *data, int flags,
                    int *pidfd);

/* What of the calling thread goes before others at the processor, the disk and
 * the end of memory, which a child would have of it: bits, or -1 with errno. */
int precedence_found (void);
/* In such a child, by system calls only: gives that up; what goes behind others
 * stays.  -1 with errno. */
int precedence_drop (int found);

/* ---- programs ----------------------------------------------------------- */

/* A program of this provider's, with nothing of what its maker has set but
 * what is named here. */
struct aide {
  const char *const *argv;
  int program;                  /* a descriptor of it */
  const int *fds;               /* to be 0, 1, … in it; no others are there */
  int n_fds;
  int privileged;               /* as this user, and none of the groups */
  uid_t uid;
  gid_t gid;
  int precedence;               /* filled in */
  volatile int error;
  const char *volatile step;    /* that failed */
};

/* Started, and nobody's child to be told of: a pid, or -1 with errno and
 * step. */
pid_t aide_start (struct aide *aide, int *pidfd);

/* ---- clone3 ------------------------------------------------------------- */

/* It can begin the child in a control group; the C library has no function for
 * it.  x86_64 and aarch64. */

#define CLONE3_NUMBER 435
#define CLONE_INTO_CGROUP_ UINT64_C (0x200000000)

/* struct clone_args as of Linux 5.7. */
struct clone_args_ {
  uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack,
    stack_size, tls, set_tid, set_tid_size, cgroup;
};

/* The child runs function (data) and exits with what that returns.  The
 * child's number, or a negative errno. */
static inline long
clone3_run (const struct clone_args_ *args, int (*function) (void *),
            void *data)
{
#if defined __x86_64__
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
                    : "a" ((long) CLONE3_NUMBER), "D" (args),
                      "S" (sizeof *args), "r" (r12), "r" (r13)
                    : "rcx", "r11", "memory");
  return ret;
#elif defined __aarch64__
  register long x8 __asm__ ("x8") = CLONE3_NUMBER;
  register long x0 __asm__ ("x0") = (long) args;
  register long x1 __asm__ ("x1") = sizeof *args;
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
                    : "r" (x8), "r" (x1), "r" (x19), "r" (x20)
                    : "x30", "memory");
  return x0;
#else
#error "the linux provider knows x86_64 and aarch64"
#endif
}

#endif /* LINUX_CLONE_H */
