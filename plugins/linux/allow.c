/* SPDX-License-Identifier: Apache-2.0 */
/* See allow.h. */

#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

#include "allow.h"

#if defined __x86_64__
#define ARCH AUDIT_ARCH_X86_64
#elif defined __aarch64__
#define ARCH AUDIT_ARCH_AARCH64
#else
#error "the filters of programs know x86_64 and aarch64"
#endif

#define COUNT(array) (sizeof (array) / sizeof (array)[0])
#define LOW(argument)                                                         \
  (uint32_t) (offsetof (struct seccomp_data, args) + 8 * (argument)           \
              + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 4 : 0))
#define STATEMENT(code, k) ((struct sock_filter) BPF_STMT (code, k))
#define JUMP(code, k, yes, no) ((struct sock_filter) BPF_JUMP (code, k, yes, no))

static void
emit (struct allow_program *program, struct sock_filter instruction)
{
  if (program->size < COUNT (program->code))
    program->code[program->size++] = instruction;
}

static void
answer (struct allow_program *program, int call, uint32_t action)
{
  emit (program, JUMP (BPF_JMP | BPF_JEQ | BPF_K, (uint32_t) call, 0, 1));
  emit (program, STATEMENT (BPF_RET | BPF_K, action));
}

static void
answer_shape (struct allow_program *program, const struct allow_shape *shape)
{
  emit (program, JUMP (BPF_JMP | BPF_JEQ | BPF_K, (uint32_t) shape->call, 0,
                       7));
  emit (program, STATEMENT (BPF_LD | BPF_W | BPF_ABS, LOW (shape->argument)));
  emit (program, STATEMENT (BPF_ALU | BPF_AND | BPF_K, shape->mask));
  emit (program, JUMP (BPF_JMP | BPF_JEQ | BPF_K, shape->value, 0, 3));
  emit (program, STATEMENT (BPF_LD | BPF_W | BPF_ABS, LOW (2)));
  emit (program, JUMP (BPF_JMP | BPF_JSET | BPF_K, shape->not, 1, 0));
  emit (program, STATEMENT (BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  emit (program, STATEMENT (BPF_LD | BPF_W | BPF_ABS,
                            offsetof (struct seccomp_data, nr)));
}

int
allow_make (const struct allow_list *list, struct allow_program *program)
{
  size_t i;

  program->size = 0;
  emit (program, STATEMENT (BPF_LD | BPF_W | BPF_ABS,
                            offsetof (struct seccomp_data, arch)));
  emit (program, JUMP (BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0));
  emit (program, STATEMENT (BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
  emit (program, STATEMENT (BPF_LD | BPF_W | BPF_ABS,
                            offsetof (struct seccomp_data, nr)));
  for (i = 0; i < list->n_calls; i++)
    answer (program, list->calls[i], SECCOMP_RET_ALLOW);
  for (i = 0; i < list->n_shapes; i++)
    answer_shape (program, &list->shapes[i]);
  for (i = 0; i < list->n_absent; i++)
    answer (program, list->absent[i], SECCOMP_RET_ERRNO | ENOSYS);
  emit (program, STATEMENT (BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM));
  if (program->size < COUNT (program->code))
    return 0;
  errno = E2BIG;
  return -1;
}

int
allow_install (const struct allow_list *list)
{
  static struct allow_program program;
  struct sock_fprog filter = { 0, program.code };

  if (allow_make (list, &program) == -1)
    return -1;
  filter.len = program.size;
  return prctl (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0);
}
