/* SPDX-License-Identifier: Apache-2.0 */
/* The system call filters: `general` on the init and so on all that it starts,
 * `strict` besides on a command that is about to become its program. */

#include <linux/filter.h>

#include "filter.h"
#include "init.h"

int strict_mode;

static long
program_install (const struct sock_filter *program, size_t n)
{
  struct {
    uint16_t count;
    const struct sock_filter *program;
  } filter = { (uint16_t) n, program };

  return SYS (seccomp, 1 /* filter */, 0, &filter);
}

void
filter_enter (void)
{
  must ("seccomp", program_install (filter_general, sizeof filter_general
                                                    / sizeof filter_general[0]));
}

const struct sock_filter *
filter_bytes (int strict, uint32_t *count)
{
  *count = strict ? sizeof filter_strict / sizeof filter_strict[0]
                  : sizeof filter_general / sizeof filter_general[0];
  return strict ? filter_strict : filter_general;
}

/* The secret is another one for each command, so that none learns of it what
 * lets another start a program; and none could read it here. */
long
filter_enter_strict (uint64_t *secret)
{
  struct sock_filter *low = &filter_strict[FILTER_SECRET_LOW];
  struct sock_filter *high = &filter_strict[FILTER_SECRET_HIGH];
  long r = SYS (getrandom, secret, sizeof *secret, 1 /* never wait */);

  if (r < 0)
    return r;
  if (r != (long) sizeof *secret)
    return -EIO_;
  low->k = (uint32_t) *secret;
  high->k = (uint32_t) (*secret >> 32);
  r = program_install (filter_strict, sizeof filter_strict
                                      / sizeof filter_strict[0]);
  /* In force: what the other one allows is refused. */
  if (r >= 0 && SYS (getppid) != -EPERM_)
    r = -EPERM_;
  return r;
}
