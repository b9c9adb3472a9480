/* SPDX-License-Identifier: Apache-2.0 */
/* The floor of a sandbox: what the kernel itself takes for one of the same
 * shape, made by the shortest way there is (floor-init.c). */

#ifndef BENCH_FLOOR_H
#define BENCH_FLOOR_H

#include <stddef.h>

struct floor {
  const char *program;          /* floor-init */
  char **argv;                  /* with the mounts; ends in the command */
};

/* The mounts are those of `mountinfo`, as a sandbox shows its own. */
int floor_prepare (struct floor *floor, const char *program,
                   const char *mountinfo, const char *const *command);
void floor_free (struct floor *floor);
/* Clone, id maps, mounts, command, kill; 0 when the command succeeded. */
int floor_run (const struct floor *floor, int out);

#endif /* BENCH_FLOOR_H */
