/* SPDX-License-Identifier: Apache-2.0 */
/* An engine that answers as a test has scripted it, in the place of the HTTP
 * library.  Requests are matched in order against the script: one that is not
 * its next line fails the test. */

#ifndef TESTS_DOCKER_ENGINE_H
#define TESTS_DOCKER_ENGINE_H

#include <jansson.h>

#include "docker.h"
#include "fakehost.h"

struct engine_line {
  const char *request;          /* "METHOD PATH", a prefix of what is asked */
  int status;                   /* 0: no answer, `code` instead */
  const char *body;             /* JSON, or NULL */
  int32_t code;
  const char *said;             /* of the first process, for an attach: a
                                 * line, or NULL */
};

/* The script ends with a line of zeros; it is followed from here on. */
void engine_script (const struct engine_line *lines);
/* Fails where lines are left. */
void engine_done (void);
/* The JSON of the last request that had one; borrowed. */
const json_t *engine_sent (void);
/* 1: the stream to the first process ends within that time. */
int engine_ended (int ms);
/* What the first process was told, whole. */
const struct coffer_buffer *engine_told (void);

/* A provider of this configuration, its folder in `folder`. */
struct docker *engine_open (struct fakehost *host, const char *folder,
                            const char *const *config);
void engine_close (struct docker *docker);

#endif /* TESTS_DOCKER_ENGINE_H */
