/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the program inside a container: one function a word. */

#ifndef DOCKER_INSIDE_INSIDE_H
#define DOCKER_INSIDE_INSIDE_H

#include "../inside.h"

/* Exit statuses of the program itself, where no command's is meant. */
#define INSIDE_OK 0
#define INSIDE_USAGE 2
#define INSIDE_FAILED 1

/* argv[0] is the word. */
int inside_hold (int argc, char **argv);
int inside_extend (int argc, char **argv);

#endif /* DOCKER_INSIDE_INSIDE_H */
