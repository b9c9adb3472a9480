/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of the docker provider begin with. */

#define _GNU_SOURCE

#include "harness.h"

#include "docker-fixture.h"

const char *const docker_plain[]
  = {"engine=unix:///run/engine.sock", "image=bb:1", "pull=true",
     "images=python=py:3 data=reg.example:5/d@sha256:ab", NULL};

struct fakehost host;
struct docker *docker;

int
docker_setup (void **state)
{
  fakehost_init (&host, HARNESS_PATIENCE_MS);
  docker = engine_open (&host, *state, docker_plain);
  return 0;
}

int
docker_teardown (void **state)
{
  (void) state;
  engine_close (docker);
  fakehost_fini (&host);
  return 0;
}

const char *
inspect_of (const char *state, const char *label_host)
{
  static char texts[3][512];
  static unsigned turn;
  char *text = texts[turn++ % 3];

  assert_true (snprintf (text, sizeof texts[0],
                         "{\"Id\":\"c0ffee\",\"Image\":\"sha256:12\","
                         "\"Created\":\"2026-11-30T14:08:18.5Z\",\"State\":{%s},"
                         "\"Config\":{\"Labels\":{\"coffer.host\":\"%s\","
                         "\"coffer.image\":\"bb:1\"}}}", state, label_host)
               < (int) sizeof texts[0]);
  return text;
}

const char *
paused_on (const char *runtime)
{
  static char text[256];

  snprintf (text, sizeof text, "{\"State\":{\"Running\":true,\"Paused\":true},"
            "\"HostConfig\":{\"Runtime\":\"%s\"}}", runtime);
  return text;
}

int32_t
create (struct coffer_sandbox_spec *spec)
{
  spec->size = sizeof *spec;
  return docker_sandbox_create (&host.call, docker, "sb-1", spec, NULL);
}

struct coffer_sandbox_spec
no_spec (void)
{
  return (struct coffer_sandbox_spec) {.lifeline = -1, .template_fd = -1,
                                       .pids = 33};
}

const json_t *
host_config (const char *key)
{
  return json_object_get (json_object_get (engine_sent (), "HostConfig"), key);
}
