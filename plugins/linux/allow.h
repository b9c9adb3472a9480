/* SPDX-License-Identifier: Apache-2.0 */
/* Filters of the programs beside the module: a list of the system calls that one
 * of them makes, and everything else is refused.  What they do is little and
 * known, so they have lists of their own, where sandboxes have a table of all
 * that there is (filter-table.h). */

#ifndef LINUX_ALLOW_H
#define LINUX_ALLOW_H

#include <linux/filter.h>
#include <stddef.h>
#include <stdint.h>

/* (argument & mask) == value, and none of the bits `not` of the third one: what
 * is allowed. */
struct allow_shape {
  int call, argument;
  uint32_t mask, value, not;
};

struct allow_list {
  const int *calls;
  const struct allow_shape *shapes;
  const int *absent;            /* ENOSYS: who asks gets along without */
  size_t n_calls, n_shapes, n_absent;
};

struct allow_program {
  struct sock_filter code[512];
  unsigned short size;
};

/* The rest is EPERM; another architecture's numbers end the process.  -1: it is
 * too long. */
int allow_make (const struct allow_list *list, struct allow_program *program);
/* For this process and what it starts; no_new_privs is set. */
int allow_install (const struct allow_list *list);

#endif /* LINUX_ALLOW_H */
