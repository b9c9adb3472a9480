/* SPDX-License-Identifier: Apache-2.0 */
/* A provider whose sandboxes are folders and whose commands are processes of
 * its worker: the instance, and the life of sandboxes.  It isolates nothing
 * beyond what holds its own worker, and says so.
 *
 * The instance is a set of sandboxes of the library's.  A provider that drives
 * an engine has a struct of its own instead, and asks the engine what there is. */

#define _GNU_SOURCE

#include <errno.h>
#include <string.h>

#include <coffer/files.h>
#include <coffer/process.h>
#include <coffer/spec.h>

#include "example.h"

/* -- the instance ---- */

/* What `open` hands over with coffer_opened is every later call's `self`. */
static int32_t
instance_open (struct coffer_call *call, void *self, const char *const *config,
               const struct coffer_open_opts *opts)
{
  struct coffer_sandboxes *set;
  int32_t code;

  (void) self, (void) config;   /* KEY=VALUE; this manifest has no keys */
  if (!COFFER_HAS (opts, runtime_dir))
    return coffer_fail (call, COFFER_UNAVAILABLE, "there is no runtime folder");
  set = coffer_sandboxes_new (opts->runtime_dir, EXAMPLE_MARK);
  if (!set)
    return coffer_fail_errno (call, errno, "the runtime folder");
  code = coffer_opened (call, set);
  if (code != COFFER_OK)
    coffer_sandboxes_free (set);
  return code;
}

static int32_t
instance_close (struct coffer_call *call, void *self,
                const struct coffer_close_opts *opts)
{
  (void) call, (void) opts;
  coffer_sandboxes_free (self);
  return COFFER_OK;
}

static int32_t
emit_fact (struct coffer_call *call, const char *name, const char *state,
           const char *value, const char *how, const char *remedy,
           const char *const *narrows)
{
  const struct coffer_fact fact = {
    .size = sizeof fact, .name = name, .state = state, .value = value,
    .how = how, .remedy = remedy, .narrows = narrows,
  };

  return coffer_emit_fact (call, &fact);
}

/* A fact for each need; one that is not met takes its claims away. */
static int32_t
instance_probe (struct coffer_call *call, void *self,
                const struct coffer_probe_opts *opts)
{
  static const char *const commands[] = {"exec", "exec.stdin", "exec.signal",
                                         NULL};
  int found = coffer_process_signal_marked (EXAMPLE_MARK, 0);
  int32_t code;

  (void) self, (void) opts;
  code = emit_fact (call, "isolation", "absent", "commands run as the caller",
                    "by design", "use another provider for what is not trusted",
                    NULL);
  if (code != COFFER_OK)
    return code;
  if (found < 0)
    return emit_fact (call, "proc", "failed", strerrordesc_np (errno), "/proc",
                      "mount /proc", commands);
  return emit_fact (call, "proc", "ok", "processes can be found", "/proc", NULL,
                    NULL);
}

/* -- the life of sandboxes ---- */

/* Defaults that are not kept are named, so that nobody takes them for given. */
static int32_t
emit_info (struct coffer_call *call, const struct coffer_sandbox *sandbox)
{
  static const char *const not_applied[] = {
    "network.none", "root.readonly", "limit.memory", "limit.cpu", "limit.pids",
    "limit.disk", "user.unprivileged", NULL,
  };
  const struct coffer_sandbox_info info = {
    .size = sizeof info, .sandbox = sandbox->id, .native_id = sandbox->path,
    .state = "running", .created_ns = sandbox->created_ns,
    .isolation = "none", .workspace = sandbox->path,
    .not_applied = not_applied,
    .metadata = coffer_strings_view (&sandbox->metadata),
  };

  return coffer_emit_sandbox_info (call, &info);
}

/* A field of a specification is a demand: what is not named here is refused,
 * never passed over.  An id that exists is the same sandbox. */
static int32_t
sandbox_create (struct coffer_call *call, void *self, const char *id,
                const struct coffer_sandbox_spec *spec,
                const struct coffer_sandbox_create_opts *opts)
{
  static const char *const kept[] = {"env", "workdir", "metadata", "lifeline",
                                     "single_exec", "root_writable", NULL};
  struct coffer_sandbox *sandbox;
  int32_t code = coffer_spec_check (call, id, spec, kept);

  (void) opts;
  if (code == COFFER_OK)
    code = coffer_sandboxes_create (call, self, id, spec, &sandbox);
  if (code != COFFER_OK)
    return code;
  code = emit_info (call, sandbox);
  coffer_sandbox_put (sandbox);
  return code;
}

static int32_t
sandbox_info (struct coffer_call *call, void *self, const char *id,
              const struct coffer_sandbox_info_opts *opts)
{
  struct coffer_sandbox *sandbox;
  int32_t code = coffer_sandboxes_find (call, self, id, &sandbox);

  (void) opts;
  if (code != COFFER_OK)
    return code;
  code = emit_info (call, sandbox);
  coffer_sandbox_put (sandbox);
  return code;
}

static int32_t
sandbox_list (struct coffer_call *call, void *self,
              const struct coffer_sandbox_list_opts *opts)
{
  (void) opts;
  return coffer_sandboxes_each (call, self, emit_info);
}

static int32_t
sandbox_kill (struct coffer_call *call, void *self, const char *id,
              const struct coffer_sandbox_kill_opts *opts)
{
  (void) opts;
  return coffer_sandboxes_kill (call, self, id);
}

/* What is not named here is UNSUPPORTED, without this module being asked. */
static const struct coffer_operations operations = {
  .size = sizeof operations,
  .open = instance_open,
  .close = instance_close,
  .probe = instance_probe,
  .sandbox_create = sandbox_create,
  .sandbox_info = sandbox_info,
  .sandbox_list = sandbox_list,
  .sandbox_kill = sandbox_kill,
  .exec_start = exec_start,
  .exec_wait = exec_wait,
  .exec_list = exec_list,
  .exec_signal = exec_signal,
  .exec_stdin_close = exec_stdin_close,
  .file_read = file_read,
  .file_write = file_write,
  .file_stat = file_stat,
  .file_list = file_list,
  .file_mkdir = file_mkdir,
  .file_remove = file_remove,
  .file_rename = file_rename,
};

COFFER_PROVIDER (example, COFFER_THREADS_PARALLEL, 0, operations)
