/* SPDX-License-Identifier: Apache-2.0 */
/* A provider for scenarios that says back what it was given: nothing runs,
 * nothing is made. */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <coffer/provider.h>

/* Its token: what begins with "wrong" is refused at the first call. */
static char parrot[256];

static int32_t
parrot_open (struct coffer_call *call, void *self, const char *const *config,
             const struct coffer_open_opts *opts)
{
  (void) self;
  (void) opts;
  parrot[0] = '\0';
  for (; config && *config; config++)
    if (strncmp (*config, "token=", 6) == 0)
      snprintf (parrot, sizeof parrot, "%s", *config + 6);
  return coffer_opened (call, parrot);
}

static int32_t
parrot_close (struct coffer_call *call, void *self,
              const struct coffer_close_opts *opts)
{
  (void) call;
  (void) self;
  (void) opts;
  return COFFER_OK;
}

static int32_t
parrot_probe (struct coffer_call *call, void *self,
              const struct coffer_probe_opts *opts)
{
  static const char *const narrows[] = { "pause", NULL };
  const struct coffer_fact fact
    = { .size = sizeof fact, .name = "perch", .state = "ok",
        .value = "café ☃", .how = "looked", .narrows = narrows };

  (void) self;
  (void) opts;
  return coffer_emit_fact (call, &fact);
}

static int32_t
parrot_sandbox_create (struct coffer_call *call, void *self,
                       const char *sandbox,
                       const struct coffer_sandbox_spec *spec,
                       const struct coffer_sandbox_create_opts *opts)
{
  char memory[32];
  const struct coffer_sandbox_info info
    = { .size = sizeof info, .sandbox = sandbox, .native_id = memory,
        .state = "running", .template_name = spec->template_name,
        .workspace = spec->workdir, .metadata = spec->metadata,
        .created_ns = spec->lifeline, .expires_ns = (int64_t) spec->ttl_ms };

  (void) self;
  (void) opts;
  snprintf (memory, sizeof memory, "%llu",
            (unsigned long long) spec->memory_bytes);
  return coffer_emit_sandbox_info (call, &info);
}

static int32_t
parrot_sandbox_info (struct coffer_call *call, void *self,
                     const char *sandbox,
                     const struct coffer_sandbox_info_opts *opts)
{
  (void) self;
  (void) opts;
  (void) sandbox;
  return coffer_fail (call, COFFER_NOT_FOUND, "nothing is ever made here");
}

static int32_t
parrot_sandbox_list (struct coffer_call *call, void *self,
                     const struct coffer_sandbox_list_opts *opts)
{
  const char *token = self;
  char text[300];

  (void) opts;
  if (strncmp (token, "wrong", 5) != 0)
    return COFFER_OK;
  snprintf (text, sizeof text, "nobody knows %s", token);
  return coffer_fail (call, COFFER_UNAUTHENTICATED, text);
}

static int32_t
parrot_sandbox_kill (struct coffer_call *call, void *self,
                     const char *sandbox,
                     const struct coffer_sandbox_kill_opts *opts)
{
  (void) call;
  (void) self;
  (void) sandbox;
  (void) opts;
  return COFFER_NOT_FOUND;
}

static int
write_all (int fd, const char *bytes, size_t size)
{
  ssize_t n;

  for (; size > 0; bytes += n, size -= (size_t) n) {
    n = write (fd, bytes, size);
    if (n < 0 && errno == EINTR)
      n = 0;
    if (n < 0)
      return -1;
  }
  return 0;
}

/* Its words on `out`, a complaint on `err`; what it read is counted. */
static int32_t
parrot_exec_start (struct coffer_call *call, void *self, const char *sandbox,
                   const char *const *argv, const char *const *env,
                   const char *cwd, int32_t in, int32_t out, int32_t err,
                   const struct coffer_exec_start_opts *opts)
{
  struct coffer_exec_info info
    = { .size = sizeof info, .exec = sandbox, .state = cwd ? cwd : "nowhere",
        .argv = argv, .background = opts ? opts->background : 0 };
  char bytes[4096];
  ssize_t n;

  (void) self;
  (void) env;
  while (in >= 0 && (n = read (in, bytes, sizeof bytes)) != 0)
    info.started_ns += n > 0 ? n : 0;
  for (; out >= 0 && *argv; argv++)
    if (write_all (out, *argv, strlen (*argv) + 1) < 0)
      return coffer_fail (call, COFFER_IO, "writing to out");
  if (err >= 0 && write_all (err, "squawk\n", 7) < 0)
    return coffer_fail (call, COFFER_IO, "writing to err");
  return coffer_emit_exec_info (call, &info);
}

static int32_t
parrot_exec_wait (struct coffer_call *call, void *self, const char *sandbox,
                  const char *exec, const struct coffer_exec_wait_opts *opts)
{
  const struct coffer_exec_exit ended
    = { .size = sizeof ended, .exec = exec, .code = -1, .signal = 9,
        .duration_us = UINT64_MAX };

  (void) self;
  (void) sandbox;
  (void) opts;
  return coffer_emit_exec_exit (call, &ended);
}

static int32_t
parrot_exec_list (struct coffer_call *call, void *self, const char *sandbox,
                  const struct coffer_exec_list_opts *opts)
{
  (void) call;
  (void) self;
  (void) sandbox;
  (void) opts;
  return COFFER_OK;
}

static int32_t
parrot_metrics (struct coffer_call *call, void *self, const char *sandbox,
                const struct coffer_metrics_opts *opts)
{
  const struct coffer_metric metric
    = { .size = sizeof metric, .name = sandbox, .value = 0.5 };

  (void) self;
  (void) opts;
  return coffer_emit_metric (call, &metric);
}

static const struct coffer_operations operations = {
  .size = sizeof operations,
  .open = parrot_open,
  .close = parrot_close,
  .probe = parrot_probe,
  .sandbox_create = parrot_sandbox_create,
  .sandbox_info = parrot_sandbox_info,
  .sandbox_list = parrot_sandbox_list,
  .sandbox_kill = parrot_sandbox_kill,
  .exec_start = parrot_exec_start,
  .exec_wait = parrot_exec_wait,
  .exec_list = parrot_exec_list,
  .metrics = parrot_metrics,
};

COFFER_PROVIDER (parrot, COFFER_THREADS_PARALLEL, 0, operations)
