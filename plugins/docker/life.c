/* SPDX-License-Identifier: Apache-2.0 */
/* The rest of a sandbox's life: told of, listed, paused, extended, ended. */

#define _GNU_SOURCE

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <coffer/fd.h>
#include <coffer/files.h>
#include <coffer/spec.h>

#include "snapshot.h"

int32_t
docker_sandbox_info (struct coffer_call *call, void *self, const char *sandbox,
                     const struct coffer_sandbox_info_opts *opts)
{
  auto_sandbox struct docker_sandbox found = {0};
  int32_t code = docker_sandbox_find (call, self, sandbox, &found);

  (void) opts;
  return code == COFFER_OK ? docker_emit (call, sandbox, &found) : code;
}

int32_t
docker_sandbox_kill (struct coffer_call *call, void *self, const char *sandbox,
                     const struct coffer_sandbox_kill_opts *opts)
{
  struct docker *docker = self;
  struct docker_engine engine = {0};
  char name[DOCKER_NAME_MAX];
  int32_t code = docker_container_name (call, docker, sandbox, name);

  (void) opts;
  if (code == COFFER_OK)
    code = docker_engine (call, docker, &engine);
  if (code == COFFER_OK) {
    docker_kernel_wake (call, docker, name);
    code = docker_remove (call, docker, name);
  }
  if (code == COFFER_OK || code == COFFER_NOT_FOUND)
    docker_execs_forget (docker, sandbox);
  return code == COFFER_NOT_FOUND ? docker_fail_gone (call, sandbox) : code;
}

/* ---- the list ----------------------------------------------------------- */

/* Only what carries our host's label comes here.  What does not run has ended,
 * unless somebody is just making it. */
static int32_t
list_one (struct coffer_call *call, struct docker *docker,
          const json_t *entry)
{
  struct docker_sandbox found;
  const char *sandbox, *listed;
  int64_t now = coffer_realtime_ns ();
  char name[DOCKER_NAME_MAX];
  int32_t code;

  docker_sandbox_listed (docker, entry, &found);
  listed = json_string_value (json_array_get (json_object_get (entry, "Names"),
                                              0));
  if (listed && *listed && docker_is_carrier (docker, listed + 1)) {
    docker_carrier_clear (call, docker, listed + 1);
    return COFFER_OK;
  }
  sandbox = json_string_value (json_object_get (found.labels, LABEL_SANDBOX));
  if (!sandbox || !coffer_id_is_valid (sandbox) || !found.id)
    return COFFER_OK;
  if (found.running && (!found.expires_ns || found.expires_ns > now))
    return docker_emit (call, sandbox, &found);
  code = docker_container_name (call, docker, sandbox, name);
  if (code == COFFER_OK)
    docker_clear (call, docker, name, sandbox);
  return code;
}

/* ---- volumes that were left --------------------------------------------- */

/* "coffer-HOST-SANDBOX-w" */
static int
has_container (const json_t *containers, const char *volume)
{
  const size_t size = strlen (volume);
  const json_t *entry;
  size_t i;

  json_array_foreach (containers, i, entry) {
    const char *name = json_string_value (json_array_get (
      json_object_get (entry, "Names"), 0));

    if (name && *name && size > 2 && strlen (name + 1) == size - 2
        && strncmp (name + 1, volume, size - 2) == 0)
      return 1;
  }
  return 0;
}

#define OURS "filters=%%7B%%22label%%22%%3A%%5B%%22" LABEL_HOST               \
  "%%3D%s%%22%%5D%%7D"

/* "coffer-HOST-SANDBOX-w" of one that nobody is just making. */
static void
sweep_volume (struct coffer_call *call, struct docker *docker,
              const char *volume)
{
  coffer_autoreply struct coffer_http_reply removed = {0};
  char name[DOCKER_NAME_MAX];
  int lock;

  if (strncmp (volume, "coffer-", 7) != 0 || !docker_is_name (volume)
      || strlen (volume) < 10)
    return;
  snprintf (name, sizeof name, "%.*s", (int) strlen (volume) - 2, volume);
  lock = docker_maker_try (docker, name);
  if (lock < 0)
    return;
  docker_ask (call, docker, "DELETE", NULL, &removed, "/volumes/%s", volume);
  docker_maker_end (docker, name, &lock);
}

/* A sandbox that has ended by itself leaves its volumes, which only its host
 * removes. */
static void
sweep_volumes (struct coffer_call *call, struct docker *docker,
               const json_t *containers)
{
  coffer_autoreply struct coffer_http_reply reply = {0};
  const json_t *entry;
  size_t i;

  if (docker_ask (call, docker, "GET", NULL, &reply, "/volumes?" OURS,
                  docker->host) != COFFER_OK || reply.status >= 300)
    return;
  json_array_foreach (json_object_get (reply.json, "Volumes"), i, entry) {
    const char *name = json_string_value (json_object_get (entry, "Name"));

    if (name && !has_container (containers, name))
      sweep_volume (call, docker, name);
  }
}

/* Podman's list fails whole when one of the containers goes meanwhile. */
#define LIST_TRIES 20

static int32_t
ask_list (struct coffer_call *call, struct docker *docker,
          struct coffer_http_reply *reply)
{
  int32_t code = COFFER_OK;

  for (int tries = 0; code == COFFER_OK && tries < LIST_TRIES; tries++) {
    coffer_http_reply_fini (reply);
    code = docker_ask (call, docker, "GET", NULL, reply,
                       "/containers/json?all=1&" OURS, docker->host);
    if (code == COFFER_OK && reply->status < 500)
      break;
  }
  return code;
}

int32_t
docker_sandbox_list (struct coffer_call *call, void *self,
                     const struct coffer_sandbox_list_opts *opts)
{
  struct docker *docker = self;
  coffer_autoreply struct coffer_http_reply reply = {0};
  struct docker_engine engine;
  const json_t *entry;
  int32_t code;
  size_t i;

  (void) opts;
  code = docker_engine (call, docker, &engine);
  if (code == COFFER_OK)
    code = ask_list (call, docker, &reply);
  if (code != COFFER_OK)
    return code;
  if (reply.status >= 300 || !json_is_array (reply.json))
    return docker_fail (call, &reply, "list containers");
  json_array_foreach (reply.json, i, entry) {
    code = list_one (call, docker, entry);
    if (code != COFFER_OK)
      return code;
  }
  if (engine.kind == ENGINE_PODMAN) {
    struct docker_hush hush;

    docker_hush (call, &hush);
    sweep_volumes (call, docker, reply.json);
    docker_unhush (call, &hush);
  }
  return COFFER_OK;
}

/* ---- pause and resume --------------------------------------------------- */

static int32_t
set_paused (struct coffer_call *call, struct docker *docker,
            const char *sandbox, int paused)
{
  coffer_autoreply struct coffer_http_reply reply = {0};
  auto_sandbox struct docker_sandbox found = {0};
  char name[DOCKER_NAME_MAX];
  int32_t code = docker_container_name (call, docker, sandbox, name);

  if (code == COFFER_OK)
    code = docker_ask (call, docker, "POST", NULL, &reply,
                       "/containers/%s/%s", name,
                       paused ? "pause" : "unpause");
  if (code != COFFER_OK || reply.status < 300)
    return code;
  if (reply.status == 404)
    return docker_fail_gone (call, sandbox);
  code = docker_sandbox_find (call, docker, sandbox, &found);
  if (code != COFFER_OK || found.paused == paused)
    return code;
  return docker_fail (call, &reply, paused ? "pause a container"
                                           : "resume a container");
}

int32_t
docker_sandbox_pause (struct coffer_call *call, void *self,
                      const char *sandbox,
                      const struct coffer_sandbox_pause_opts *opts)
{
  (void) opts;
  return set_paused (call, self, sandbox, 1);
}

int32_t
docker_sandbox_resume (struct coffer_call *call, void *self,
                       const char *sandbox,
                       const struct coffer_sandbox_resume_opts *opts)
{
  (void) opts;
  return set_paused (call, self, sandbox, 0);
}

/* ---- extend ------------------------------------------------------------- */

/* Runs the program inside as the first process's user, and waits. */
static int32_t
tell_end (struct coffer_call *call, struct docker *docker,
          const char *sandbox, const char *name, uint64_t ttl_ms)
{
  coffer_autoreply struct coffer_http_reply made = {0}, ran = {0}, ended = {0};
  json_t *body = json_pack ("{s:o, s:b, s:[s, s, o]}", "User",
                            docker_spec_holder (docker), "AttachStdout", 1,
                            "Cmd", INSIDE_PATH, "extend",
                            json_sprintf ("%" PRIu64, ttl_ms));
  json_t *go = json_pack ("{s:b}", "Detach", 0);
  const char *exec;
  int32_t code = docker_ask (call, docker, "POST", body, &made,
                             "/containers/%s/exec", name);

  if (code == COFFER_OK && made.status >= 300)
    code = docker_fail_sandbox (call, docker, &made, sandbox, "extend");
  exec = json_string_value (json_object_get (made.json, "Id"));
  if (code == COFFER_OK && (!exec || !coffer_id_is_valid (exec)))
    code = coffer_fail (call, COFFER_IO, "the engine gave an exec no id");
  if (code == COFFER_OK)
    code = docker_ask (call, docker, "POST", go, &ran, "/exec/%s/start", exec);
  if (code == COFFER_OK && ran.status >= 300)
    code = docker_fail_sandbox (call, docker, &ran, sandbox, "extend");
  if (code == COFFER_OK)
    code = docker_ask (call, docker, "GET", NULL, &ended, "/exec/%s/json",
                       exec);
  if (code == COFFER_OK
      && json_integer_value (json_object_get (ended.json, "ExitCode")) != 0)
    code = coffer_fail (call, COFFER_IO, "the sandbox's first process did not "
                        "take its new end");
  json_decref (body);
  json_decref (go);
  return code;
}

int32_t
docker_sandbox_extend (struct coffer_call *call, void *self,
                       const char *sandbox, uint64_t ttl_ms,
                       const struct coffer_sandbox_extend_opts *opts)
{
  auto_sandbox struct docker_sandbox found = {0};
  struct docker *docker = self;
  char name[DOCKER_NAME_MAX];
  int32_t code;

  (void) opts;
  if (ttl_ms == 0 || ttl_ms > UINT64_C (1000) * 86400 * 365 * 10)
    return coffer_fail (call, COFFER_INVALID, "ttl_ms must not be 0, nor more "
                        "than ten years");
  code = docker_sandbox_find (call, docker, sandbox, &found);
  if (code == COFFER_OK)
    code = docker_container_name (call, docker, sandbox, name);
  if (code == COFFER_OK)
    code = tell_end (call, docker, sandbox, name, ttl_ms);
  if (code != COFFER_OK)
    return code;
  found.expires_ns = coffer_realtime_ns () + (int64_t) ttl_ms * 1000000;
  if (docker_end_write (docker, name, found.expires_ns) < 0)
    return coffer_fail_errno (call, errno, "the sandbox's new end");
  return docker_emit (call, sandbox, &found);
}
