/* SPDX-License-Identifier: Apache-2.0 */
/* Which kernel programs in a container have: the machine's, or one of its own that
 * the container's runtime brings.
 *
 * Which runtime that is says the configuration, or else the engine, of a container
 * that it has made: the engine's own default may be any, and another one after its
 * next start.  What a runtime is says its name, or else its program, of which
 * Docker's engine tells. */

#define _GNU_SOURCE

#include <stdio.h>
#include <string.h>

#include "docker.h"

#define RUNTIME_MAX 256         /* bytes of a name or a path */

static enum docker_kernel
kernel_of_word (const char *word)
{
  static const struct {
    const char *part;
    enum docker_kernel kernel;
  } rows[] = {
    {"runsc", KERNEL_GVISOR}, {"gvisor", KERNEL_GVISOR},
    {"runc", KERNEL_SHARED}, {"crun", KERNEL_SHARED}, {"youki", KERNEL_SHARED},
    {"io.containerd.runtime.v1.linux", KERNEL_SHARED},
  };
  const char *base = word ? strrchr (word, '/') : NULL;

  base = base ? base + 1 : word;
  for (size_t i = 0; base && i < sizeof rows / sizeof rows[0]; i++)
    if (rows[i].kernel == KERNEL_GVISOR ? strstr (base, rows[i].part) != NULL
                                        : strcmp (base, rows[i].part) == 0)
      return rows[i].kernel;
  return base && strncmp (base, "io.containerd.runc.", 19) == 0 ? KERNEL_SHARED
                                                                : KERNEL_OTHER;
}

enum docker_kernel
docker_kernel_named (const char *name, const json_t *info)
{
  static const char *const keys[] = {"path", "runtimeType"};
  const json_t *entry = json_object_get (json_object_get (info, "Runtimes"),
                                         name);
  enum docker_kernel kernel = kernel_of_word (name);

  for (size_t i = 0; kernel == KERNEL_OTHER && i < 2; i++)
    kernel = kernel_of_word (json_string_value (json_object_get (entry,
                                                                 keys[i])));
  return kernel;
}

/* ---- of a container -------------------------------------------------------------- */

struct told {
  char runtime[RUNTIME_MAX];    /* its name */
  int paused;
};

/* Docker's engine tells of the one that it has chosen; Podman does so in an answer
 * of its own alone, and says `oci` in the other. */
static int32_t
ask_name (struct coffer_call *call, struct docker *docker,
          const struct docker_engine *engine, const char *container,
          struct told *told)
{
  coffer_autoreply struct coffer_http_reply reply = {0};
  const int is_podman = engine->kind == ENGINE_PODMAN;
  const json_t *name;
  int32_t code = docker_ask (call, docker, "GET", NULL, &reply,
                             is_podman ? "/libpod/containers/%s/json"
                                       : "/containers/%s/json", container);

  if (code != COFFER_OK)
    return code;
  if (reply.status >= 300)
    return docker_fail (call, &reply, "a container that was just made");
  name = is_podman ? json_object_get (reply.json, "OCIRuntime")
                   : json_object_get (json_object_get (reply.json,
                                                       "HostConfig"),
                                      "Runtime");
  snprintf (told->runtime, sizeof told->runtime, "%s",
            json_string_value (name) ? json_string_value (name) : "");
  told->paused = json_is_true (json_object_get (json_object_get (reply.json,
                                                                 "State"),
                                                "Paused"));
  return COFFER_OK;
}

/* Podman's takes a second, and has no program that is not named after its kernel. */
static int32_t
ask_program (struct coffer_call *call, struct docker *docker,
             const char *runtime, enum docker_kernel *kernel)
{
  coffer_autoreply struct coffer_http_reply reply = {0};
  int32_t code = docker_ask (call, docker, "GET", NULL, &reply, "/info");

  if (code == COFFER_OK && reply.status >= 300)
    code = docker_fail (call, &reply, "ask for facts");
  if (code == COFFER_OK)
    *kernel = docker_kernel_named (runtime, reply.json);
  return code;
}

int32_t
docker_kernel_of (struct coffer_call *call, struct docker *docker,
                  const struct docker_engine *engine, const char *container,
                  enum docker_kernel *kernel)
{
  const char *given = docker->config.runtime;
  struct told told = {0};
  int32_t code = COFFER_OK;

  snprintf (told.runtime, sizeof told.runtime, "%s", given ? given : "");
  if (!given)
    code = ask_name (call, docker, engine, container, &told);
  *kernel = docker_kernel_named (told.runtime, NULL);
  if (code == COFFER_OK && *kernel == KERNEL_OTHER
      && engine->kind != ENGINE_PODMAN)
    code = ask_program (call, docker, told.runtime, kernel);
  if (code != COFFER_OK)
    return code;
  pthread_mutex_lock (&docker->lock);
  docker->kernel = *kernel;
  pthread_mutex_unlock (&docker->lock);
  return COFFER_OK;
}

/* gVisor's takes no signal while it stands still: the engine would wait for ten
 * seconds, end what it sees of it by itself, and leave the shim and its control
 * groups.  What is not known to have the machine's kernel is asked for; what goes
 * wrong here goes wrong with the removal too. */
void
docker_kernel_wake (struct coffer_call *call, struct docker *docker,
                    const char *container)
{
  coffer_autoreply struct coffer_http_reply reply = {0};
  struct docker_engine engine = {0};
  struct told told = {0};
  struct docker_hush hush;

  if (docker_kernel_guess (docker) == KERNEL_SHARED)
    return;
  docker_hush (call, &hush);
  if (docker_engine (call, docker, &engine) == COFFER_OK
      && ask_name (call, docker, &engine, container, &told) == COFFER_OK
      && told.paused
      && docker_kernel_named (told.runtime, NULL) != KERNEL_SHARED)
    docker_ask (call, docker, "POST", NULL, &reply, "/containers/%s/unpause",
                container);
  docker_unhush (call, &hush);
}

enum docker_kernel
docker_kernel_guess (struct docker *docker)
{
  enum docker_kernel kernel;

  pthread_mutex_lock (&docker->lock);
  kernel = docker->kernel;
  pthread_mutex_unlock (&docker->lock);
  if (kernel == KERNEL_UNKNOWN && docker->config.runtime)
    kernel = docker_kernel_named (docker->config.runtime, NULL);
  return kernel == KERNEL_OTHER ? KERNEL_UNKNOWN : kernel;
}
