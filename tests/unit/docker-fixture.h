/* SPDX-License-Identifier: Apache-2.0 */
/* A provider of the usual configuration over a scripted engine, for each test. */

#ifndef TESTS_DOCKER_FIXTURE_H
#define TESTS_DOCKER_FIXTURE_H

#include "docker-engine.h"

#define NAME "coffer-0123456789abcdef-sb-1"
#define PING {.request = "GET /_ping", .status = 200}
#define PING_PODMAN {.request = "GET /_ping", .status = 200, .body = "1"}
#define END {.request = NULL}
#define OURS "0123456789abcdef"
#define RUNNING "\"Running\":true"

extern struct fakehost host;
extern struct docker *docker;
extern const char *const docker_plain[];

int docker_setup (void **state);
int docker_teardown (void **state);

/* A container as the engine describes it: valid until two more were. */
const char *inspect_of (const char *state, const char *label_host);
/* One that stands still, with this runtime: valid until the next. */
const char *paused_on (const char *runtime);
/* Makes sb-1, of that. */
int32_t create (struct coffer_sandbox_spec *spec);
struct coffer_sandbox_spec no_spec (void);
/* Of the HostConfig that was sent last. */
const json_t *host_config (const char *key);

#endif /* TESTS_DOCKER_FIXTURE_H */
