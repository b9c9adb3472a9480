/* SPDX-License-Identifier: Apache-2.0 */
/* What an engine has, asked of it: a fact each, with what it takes away. */

#define _GNU_SOURCE

#include <stdio.h>
#include <string.h>

#include "docker.h"

#define INFO "the engine's /info"

static int32_t
fact (struct coffer_call *call, const char *name, const char *state,
      const char *value, const char *how, const char *remedy,
      const char *const *narrows)
{
  const struct coffer_fact record = {
    .size = sizeof record, .name = name, .state = state, .value = value,
    .how = how, .remedy = remedy, .narrows = narrows,
  };

  return coffer_emit_fact (call, &record);
}

static int
is_true (const json_t *info, const char *key)
{
  return json_is_true (json_object_get (info, key));
}

static const char *
word (const json_t *info, const char *key)
{
  const char *text = json_string_value (json_object_get (info, key));

  return text ? text : "not said";
}

static int
has_option (const json_t *info, const char *name)
{
  const json_t *entry;
  size_t i;

  json_array_foreach (json_object_get (info, "SecurityOptions"), i, entry)
    if (json_is_string (entry) && strstr (json_string_value (entry), name))
      return 1;
  return 0;
}

/* Without root and on control groups of version 1 there are none for it: Podman
 * says all the same that it can limit, and leaves limits out. */
static int
lacks_cgroups (const json_t *info)
{
  return (is_true (info, "Rootless") || has_option (info, "rootless"))
         && strcmp (word (info, "CgroupVersion"), "1") == 0;
}

/* What an engine cannot limit it leaves out without a failure. */
static int32_t
emit_limits (struct coffer_call *call, const json_t *info)
{
  static const char *const memory[] = {"limit.memory", NULL},
    *const pids[] = {"limit.pids", NULL}, *const cpu[] = {"limit.cpu", NULL};
  const struct {
    const char *name, *key;
    const char *const *narrows;
  } rows[] = {
    {"memory-limit", "MemoryLimit", memory},
    {"pids-limit", "PidsLimit", pids},
    {"cpu-limit", "CpuCfsQuota", cpu},
  };
  int32_t code = COFFER_OK;

  for (size_t i = 0; code == COFFER_OK && i < 3; i++) {
    int has = is_true (info, rows[i].key) && !lacks_cgroups (info);

    code = fact (call, rows[i].name, has ? "ok" : "absent",
                 has ? "can be set" : "cannot be set", INFO,
                 has ? NULL : "let the engine have its control groups: version "
                              "2, delegated, for one without root",
                 has ? NULL : rows[i].narrows);
  }
  return code;
}

/* No profile of its own is ever asked for, so it is the engine's default or
 * none. */
static int32_t
emit_seccomp (struct coffer_call *call, const json_t *info)
{
  int has = has_option (info, "seccomp")
            && !has_option (info, "profile=unconfined");

  return fact (call, "seccomp", has ? "ok" : "off",
               has ? "the engine's default profile" : "none", INFO,
               has ? NULL : "let the engine have a seccomp profile", NULL);
}

/* To the machine a sandbox is one program there: what is over a cap ends all of it,
 * or keeps its kernel from beginning, its files in memory have no number of names,
 * and its clock of processors is another.  Its terminals tell nobody of a new size
 * nor of an interrupt. */
static int32_t
emit_kernel (struct coffer_call *call, const struct docker *docker,
             const json_t *info)
{
  static const char *const words[]
    = {"limit.memory", "limit.pids", "limit.cpu", "limit.disk", "exec.tty", NULL};
  const char *name = docker->config.runtime ? docker->config.runtime
                                            : word (info, "DefaultRuntime");

  if (docker_kernel_named (name, info) != KERNEL_GVISOR)
    return COFFER_OK;
  return fact (call, "host_kernel_shared", "absent", "gVisor: a kernel of its "
               "own, which caps end as a whole; its terminals send no signals",
               INFO, "use the engine's default runtime for exact caps", words);
}

static int32_t
emit_runtime (struct coffer_call *call, const struct docker *docker,
              const json_t *info)
{
  static const char *const all[] = {"exec", NULL};
  const char *name = docker->config.runtime;
  const json_t *runtimes = json_object_get (info, "Runtimes");
  int has = !name || !json_object_size (runtimes)
            || json_object_get (runtimes, name);

  return fact (call, "runtime", has ? "ok" : "absent",
               name ? name : word (info, "DefaultRuntime"), INFO,
               has ? NULL : "make the runtime known to the engine, or set "
                            "another one", has ? NULL : all);
}

/* What freezes and what counts are control groups. */
static int32_t
emit_cgroup (struct coffer_call *call, const json_t *info)
{
  static const char *const words[] = {"pause", "metrics", NULL};
  int lacks = lacks_cgroups (info);
  char text[96];

  snprintf (text, sizeof text, "version %.8s, by %.32s%s",
            word (info, "CgroupVersion"), word (info, "CgroupDriver"),
            lacks ? ", none without root" : "");
  return fact (call, "cgroup", lacks ? "degraded" : "ok", text, INFO,
               lacks ? "pause and metrics need control groups of version 2 here"
                     : NULL, lacks ? words : NULL);
}

static int32_t
emit_image (struct coffer_call *call, const struct docker *docker)
{
  const char *image = docker->config.image;

  return fact (call, "image", image ? "ok" : "absent",
               image ? image : "none is configured", "configuration",
               image ? NULL : "set the provider's `image`, or name one with "
                              "each sandbox", NULL);
}

static int32_t
emit_info (struct coffer_call *call, const struct docker *docker,
           const struct docker_engine *engine, const json_t *info)
{
  char text[160];
  int32_t code;

  snprintf (text, sizeof text, "%s, API 1.%d, storage %.32s%s",
            engine->version, engine->api, word (info, "Driver"),
            is_true (info, "Rootless") || has_option (info, "rootless")
              ? ", without root" : "");
  code = fact (call, "engine", "ok", text, "its own word", NULL, NULL);
  if (code == COFFER_OK)
    code = emit_limits (call, info);
  if (code == COFFER_OK)
    code = emit_seccomp (call, info);
  if (code == COFFER_OK)
    code = emit_cgroup (call, info);
  if (code == COFFER_OK)
    code = emit_runtime (call, docker, info);
  if (code == COFFER_OK)
    code = emit_kernel (call, docker, info);
  return code == COFFER_OK ? emit_image (call, docker) : code;
}

int32_t
docker_probe (struct coffer_call *call, void *self,
              const struct coffer_probe_opts *opts)
{
  coffer_autoreply struct coffer_http_reply reply = {0};
  struct docker *docker = self;
  struct docker_engine engine;
  int32_t code = docker_engine (call, docker, &engine);

  (void) opts;
  if (code == COFFER_OK)
    code = docker_ask (call, docker, "GET", NULL, &reply, "/info");
  if (code != COFFER_OK)
    return code;
  if (reply.status >= 300 || !json_is_object (reply.json))
    return docker_fail (call, &reply, "ask for facts");
  return emit_info (call, docker, &engine, reply.json);
}
