/* SPDX-License-Identifier: Apache-2.0 */
/* A provider whose sandboxes are folders: the instance, and what it needs of
 * this machine.  It isolates nothing beyond what holds its own worker, and
 * says so. */

#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <coffer/fd.h>
#include <coffer/files.h>
#include <coffer/path.h>
#include <coffer/process.h>

#include "example.h"

/* -- the instance's own folder ---- */

/* One that nobody holds is of an instance that was killed. */
static int
sweep_one (void *data, const char *path, int dir, const char *name,
           const struct stat *st)
{
  coffer_autoclose int folder = -1;

  (void) data, (void) path;
  if (!S_ISDIR (st->st_mode))
    return 0;
  folder = coffer_open_beneath (dir, name, O_RDONLY | O_DIRECTORY, 0);
  if (folder >= 0 && flock (folder, LOCK_EX | LOCK_NB) == 0)
    coffer_remove_beneath (dir, name, 1, NULL);
  return 0;
}

/* With the runtime folder locked, so that nobody sweeps what is just made. */
static int
make_folder (struct example *example)
{
  coffer_autoclose int runtime = openat (example->runtime, ".", O_RDONLY
                                         | O_DIRECTORY | O_CLOEXEC);

  if (runtime < 0 || flock (runtime, LOCK_EX) < 0)
    return -1;
  coffer_walk (runtime, "/", 1, sweep_one, NULL);
  for (unsigned n = 0; n < 10000; n++) {
    snprintf (example->name, sizeof example->name, "%ld-%u", (long) getpid (),
              n);
    if (mkdirat (runtime, example->name, 0700) == 0)
      break;
    if (errno != EEXIST)
      return -1;
  }
  example->folder = coffer_open_beneath (runtime, example->name,
                                         O_RDONLY | O_DIRECTORY, 0);
  if (example->folder < 0)
    return -1;
  return flock (example->folder, LOCK_EX | LOCK_NB);
}

static int32_t
instance_close (struct coffer_call *call, void *self,
               const struct coffer_close_opts *opts)
{
  struct example *example = self;

  (void) call, (void) opts;
  sandbox_end_all (example);
  if (example->folder >= 0)
    coffer_remove_beneath (example->runtime, example->name, 1, NULL);
  coffer_fd_close (&example->folder);
  coffer_fd_close (&example->runtime);
  free (example);
  return COFFER_OK;
}

static int32_t
instance_open (struct coffer_call *call, void *self, const char *const *config,
              const struct coffer_open_opts *opts)
{
  struct example *example = calloc (1, sizeof *example);
  int32_t code;

  (void) self, (void) config;   /* KEY=VALUE; this manifest has no keys */
  if (!example)
    return coffer_fail_errno (call, ENOMEM, "the provider");
  example->folder = example->runtime = -1;
  if (COFFER_HAS (opts, runtime_dir) && opts->runtime_dir >= 0)
    example->runtime = fcntl (opts->runtime_dir, F_DUPFD_CLOEXEC, 3);
  if (example->runtime < 0 || make_folder (example) < 0)
    code = coffer_fail_errno (call, errno, "the runtime folder");
  else
    code = coffer_opened (call, example);
  if (code != COFFER_OK)
    instance_close (call, example, NULL);
  return code;
}

/* -- what it needs ---- */

static int32_t
emit (struct coffer_call *call, const char *name, const char *state,
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
  code = emit (call, "isolation", "absent", "commands run as the caller",
               "by design", "use another provider for what is not trusted",
               NULL);
  if (code != COFFER_OK)
    return code;
  if (found < 0)
    return emit (call, "proc", "failed", strerrordesc_np (errno), "/proc",
                 "mount /proc", commands);
  return emit (call, "proc", "ok", "processes can be found", "/proc", NULL,
               NULL);
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
