/* SPDX-License-Identifier: Apache-2.0 */
/* What a sandbox uses, as its engine counts it. */

#define _GNU_SOURCE

#include "docker.h"

static const json_t *
at (const json_t *object, const char *a, const char *b)
{
  object = json_object_get (object, a);
  return b ? json_object_get (object, b) : object;
}

static int32_t
emit (struct coffer_call *call, const char *name, const json_t *value,
      double unit)
{
  const struct coffer_metric metric = {
    .size = sizeof metric, .name = name,
    .value = json_number_value (value) / unit,
  };

  return json_is_number (value) ? coffer_emit_metric (call, &metric)
                                : COFFER_OK;
}

static int32_t
emit_all (struct coffer_call *call, const json_t *stats)
{
  const json_t *cpu = at (stats, "cpu_stats", "cpu_usage");
  const struct {
    const char *name;
    const json_t *value;
    double unit;
  } rows[] = {
    {"memory_bytes", at (stats, "memory_stats", "usage"), 1},
    {"memory_limit_bytes", at (stats, "memory_stats", "limit"), 1},
    {"cpu_seconds_total", json_object_get (cpu, "total_usage"), 1e9},
    {"processes", at (stats, "pids_stats", "current"), 1},
  };
  int32_t code = COFFER_OK;

  for (size_t i = 0; code == COFFER_OK && i < sizeof rows / sizeof rows[0];
       i++)
    code = emit (call, rows[i].name, rows[i].value, rows[i].unit);
  return code;
}

int32_t
docker_metrics (struct coffer_call *call, void *self, const char *sandbox,
                const struct coffer_metrics_opts *opts)
{
  coffer_autoreply struct coffer_http_reply reply = {0};
  auto_sandbox struct docker_sandbox found = {0};
  struct docker *docker = self;
  char name[DOCKER_NAME_MAX];
  int32_t code = docker_container_name (call, docker, sandbox, name);

  (void) opts;
  if (code == COFFER_OK)
    code = docker_ask (call, docker, "GET", NULL, &reply, "/containers/%s/"
                       "stats?stream=0&one-shot=1", name);
  if (code != COFFER_OK)
    return code;
  if (reply.status >= 300)
    return docker_fail_sandbox (call, docker, &reply, sandbox, "metrics");
  /* Of one that has ended all is 0, and no failure. */
  if (json_number_value (at (reply.json, "memory_stats", "usage")) > 0)
    return emit_all (call, reply.json);
  code = docker_sandbox_find (call, docker, sandbox, &found);
  return code == COFFER_OK ? emit_all (call, reply.json) : code;
}
