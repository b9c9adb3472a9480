/* SPDX-License-Identifier: Apache-2.0 */
/* What the provider and its program inside a container say to each other.
 *
 * The program is static and needs nothing of an image.  It is shown read-only,
 * and has no rights but those of the user that the engine starts it as:
 *
 *   INSIDE_PATH hold MILLISECONDS …    the first process (INSIDE_UID)
 *   INSIDE_PATH extend MILLISECONDS    a new end, from now (INSIDE_UID)
 *   INSIDE_PATH work                   what wire.h says (the sandbox's user)
 *
 * The first process has a user of its own, which no command has, so that none
 * can stop it or change its time.  All that the program says is said from inside
 * and believed no further than that.
 *
 * What a sandbox was given for all its commands, environment and working folder,
 * is told to the first process by its standard input and lies in INSIDE_STATE,
 * in memory: an engine would write it to its disk. */

#ifndef DOCKER_INSIDE_H
#define DOCKER_INSIDE_H

#include <stdint.h>

#define INSIDE_NAME "coffer-inside"     /* in the manifest's `files` */
#define INSIDE_PATH "/.coffer-inside"   /* in a container */
#define INSIDE_STATE "/.coffer-state"   /* a folder in memory, the first
                                         * process's own */
/* In there: strings, each with its NUL.  The first is the working folder ("":
 * none given), then comes the environment. */
#define INSIDE_GIVEN INSIDE_STATE "/given"

/* What the first process is told at first: this, then as many bytes of mounts
 * ("DEVICE INODE TARGET", each with its NUL, decimal), then those of
 * INSIDE_GIVEN. */
struct inside_told {
  uint32_t mounts_size;
  uint32_t given_size;
  uint32_t restores;            /* 1: its files come before it begins */
};
#define INSIDE_TOLD_MOST (512 << 10)    /* of each */

/* What it answers: lines, of which the last is
 *   ok             all is as it was told
 *   waits          the same, and it waits for a byte when the files are there: then
 *                  the last one comes, and without it the sandbox ends
 *   moved TARGET   something else than the host opened is shown there
 *   ended STATUS   the entrypoint has ended, as wait says
 *   failed WHAT    the rest
 * and those before it say what it found itself confined by. */
#define INSIDE_ANSWER_MOST 2048

#define INSIDE_KEPT "/.coffer-execs"    /* another, the sandbox's user's: what
                                         * commands leave (wire.h) */

/* Users and groups inside.  No image has these numbers: nothing of an image's
 * belongs to them.  The first process has the group of the commands, for an
 * entrypoint that shares files with them. */
#define INSIDE_UID "60998"              /* of the first process */
#define SANDBOX_USER "60999:60999"      /* of commands; docker->config.user may
                                         * name another */
#define SANDBOX_WORKSPACE "/workspace"

#endif /* DOCKER_INSIDE_H */
