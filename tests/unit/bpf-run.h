/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a seccomp program as the kernel does, and fails the test for one that the
 * kernel would not take. */

#ifndef UNIT_BPF_RUN_H
#define UNIT_BPF_RUN_H

#include "harness.h"

#include <linux/filter.h>
#include <linux/seccomp.h>

static inline uint32_t
program_run (const struct sock_filter *program, size_t n,
             const struct seccomp_data *data)
{
  uint32_t a = 0, word;
  size_t pc;

  for (pc = 0; pc < n; pc++) {
    const struct sock_filter *i = &program[pc];

    switch (i->code) {
    case BPF_LD | BPF_W | BPF_ABS:
      assert_true (i->k % 4 == 0 && i->k < sizeof *data);
      memcpy (&word, (const char *) data + i->k, sizeof word);
      a = word;
      break;
    case BPF_ALU | BPF_AND | BPF_K:
      a &= i->k;
      break;
    case BPF_JMP | BPF_JA:
      pc += i->k;
      break;
    case BPF_JMP | BPF_JEQ | BPF_K:
      pc += a == i->k ? i->jt : i->jf;
      break;
    case BPF_JMP | BPF_JGT | BPF_K:
      pc += a > i->k ? i->jt : i->jf;
      break;
    case BPF_JMP | BPF_JSET | BPF_K:
      pc += a & i->k ? i->jt : i->jf;
      break;
    case BPF_JMP | BPF_JGE | BPF_K:
      pc += a >= i->k ? i->jt : i->jf;
      break;
    case BPF_RET | BPF_K:
      return i->k;
    default:
      fail_msg ("instruction %zu: code %x", pc, i->code);
    }
  }
  fail_msg ("the program has no end");
  return 0;
}

#endif /* UNIT_BPF_RUN_H */
