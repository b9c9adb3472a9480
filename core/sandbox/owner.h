/* SPDX-License-Identifier: Apache-2.0 */
/* Who owns an ephemeral sandbox: a process, named so that neither a reused
 * pid, a reboot nor another pid namespace is mistaken for it. */

#ifndef SANDBOX_OWNER_H
#define SANDBOX_OWNER_H

#include <stdint.h>

#include "base/error.h"

#define OWNER_WHERE_SIZE 96

struct owner {
  int64_t pid;
  int64_t start;                /* clock ticks since boot */
  char where[OWNER_WHERE_SIZE]; /* boot id and pid namespace */
};

int owner_self (struct owner *out, struct error **err);

/* UNKNOWN: it lived in a pid namespace that cannot be seen from here. */
enum owner_state { OWNER_ALIVE, OWNER_DEAD, OWNER_UNKNOWN };
enum owner_state owner_check (const struct owner *self, int64_t pid,
                              int64_t start, const char *where);

#endif /* SANDBOX_OWNER_H */
