/* SPDX-License-Identifier: Apache-2.0 */
/* What the programs beside the module give up alike before they read a byte of
 * what they are given: limits, capabilities, files beyond the ones they work on.
 * Each answers NULL, or the step that failed, with errno. */

#ifndef LINUX_RIGHTS_H
#define LINUX_RIGHTS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

#include "landlock.h"

struct rights_limit {
  int which;
  rlim_t most;                  /* soft and hard, where it is not less already */
};

const char *limits_lower (const struct rights_limit *limits, size_t count);
/* And no_new_privs, and nothing for a debugger or a dump. */
const char *capabilities_drop (void);

/* This kernel's; 0: it has no Landlock; -1 with errno: that cannot be asked. */
long landlock_abi (void);
/* For the rules of a domain: a file or folder, or a port that TCP may connect to.
 * -1 with errno. */
int landlock_allow (int ruleset, int fd, uint64_t access);
int landlock_allow_port (int ruleset, uint64_t port);
/* The domain of a shape with the rules that `rules` adds, for this process and
 * what it starts. */
const char *landlock_restrict (const struct landlock_shape *shape,
                               int (*rules) (int ruleset, const void *data),
                               const void *data);

#endif /* LINUX_RIGHTS_H */
