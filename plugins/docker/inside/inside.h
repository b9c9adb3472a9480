/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the program inside a container: one function a word. */

#ifndef DOCKER_INSIDE_INSIDE_H
#define DOCKER_INSIDE_INSIDE_H

#include <sys/types.h>

#include "../inside.h"

/* Exit statuses of the program itself, where no command's is meant. */
#define INSIDE_OK 0
#define INSIDE_USAGE 2
#define INSIDE_FAILED 1

/* told.c: what the first process is told by its standard input, and its answer.
 * Starts the entrypoint argv, if any: *entrypoint is -1 without one.  -1: the
 * sandbox is not as it was to be, which is answered. */
int inside_told (char **argv, pid_t *entrypoint);

/* argv[0] is the word. */
int inside_hold (int argc, char **argv);
int inside_extend (int argc, char **argv);
int inside_work (int argc, char **argv);

#endif /* DOCKER_INSIDE_INSIDE_H */
