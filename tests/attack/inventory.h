/* SPDX-License-Identifier: Apache-2.0 */
/* What there is of everything that a sandbox takes: to be the same when it is
 * gone. */

#ifndef ATTACK_INVENTORY_H
#define ATTACK_INVENTORY_H

#include "arena.h"

struct inventory {
  size_t descriptors, mounts, files, runtime, groups;
};

/* What is wrong; the first word counts. */
extern char complaint[2048];
void complain (const char *fmt, ...) __attribute__ ((format (printf, 1, 2)));

struct inventory inventory_take (const struct arena *arena);
/* Complains of each difference, and of a child that is left. */
void inventory_same (const struct arena *arena,
                     const struct inventory *before);

#endif /* ATTACK_INVENTORY_H */
