/* SPDX-License-Identifier: Apache-2.0 */
/* The docker provider: the module's table, its instance and configuration. */

#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include <coffer/fd.h>
#include <coffer/files.h>

#include "docker.h"

static int32_t
docker_close (struct coffer_call *call, void *self,
              const struct coffer_close_opts *opts)
{
  struct docker *docker = self;

  (void) call, (void) opts;
  docker_ports_end (docker);
  docker_keeps_end (docker);
  docker_execs_free (docker->execs);
  docker_engine_fini (docker);
  docker_config_fini (&docker->config);
  coffer_fd_close (&docker->stop);
  coffer_fd_close (&docker->runtime);
  free (docker->program_path);
  pthread_mutex_destroy (&docker->lock);
  free (docker);
  return COFFER_OK;
}

static int
find_program (const struct coffer_open_opts *opts)
{
  if (!COFFER_HAS (opts, files) || !opts->files)
    return -1;
  for (size_t i = 0; opts->files[i]; i++)
    if (opts->files[i]->name
        && strcmp (opts->files[i]->name, INSIDE_NAME) == 0)
      return opts->files[i]->fd;
  return -1;
}

/* FNV-1a: a name among the few hosts of an engine, not a secret. */
static void
name_host (struct docker *docker, const char *id)
{
  static const char digits[] = "0123456789abcdef";
  uint64_t hash = UINT64_C (0xcbf29ce484222325);

  for (; *id; id++)
    hash = (hash ^ (unsigned char) *id) * UINT64_C (0x100000001b3);
  for (int i = 0; i < 16; i++, hash >>= 4)
    docker->host[15 - i] = digits[hash & 15];
}

/* Nothing is asked of the engine here: one that is not there is told by probe
 * and by whatever needs it. */
static int32_t
docker_open (struct coffer_call *call, void *self, const char *const *config,
             const struct coffer_open_opts *opts)
{
  struct docker *docker = calloc (1, sizeof *docker);
  int32_t code;

  (void) self;
  if (!docker)
    return coffer_fail_errno (call, ENOMEM, "the provider");
  pthread_mutex_init (&docker->lock, NULL);
  docker->execs = docker_execs_new ();
  docker->runtime = COFFER_HAS (opts, runtime_dir) && opts->runtime_dir >= 0 ?
    fcntl (opts->runtime_dir, F_DUPFD_CLOEXEC, 3) : -1;
  docker->stop = eventfd (0, EFD_CLOEXEC);
  docker_program_place (docker, find_program (opts));
  name_host (docker, COFFER_HAS (opts, host) && opts->host ? opts->host : "");
  code = docker->stop < 0 || !docker->execs
           ? coffer_fail_errno (call, errno, "the provider")
           : docker_configure (call, docker, config);
  if (code == COFFER_OK)
    code = docker_engine_init (call, docker);
  if (code == COFFER_OK)
    code = coffer_opened (call, docker);
  if (code != COFFER_OK)
    docker_close (call, docker, NULL);
  return code;
}

static const struct coffer_operations operations = {
  .size = sizeof operations,
  .open = docker_open,
  .close = docker_close,
  .probe = docker_probe,
  .sandbox_create = docker_sandbox_create,
  .sandbox_info = docker_sandbox_info,
  .sandbox_list = docker_sandbox_list,
  .sandbox_kill = docker_sandbox_kill,
  .sandbox_extend = docker_sandbox_extend,
  .sandbox_pause = docker_sandbox_pause,
  .sandbox_resume = docker_sandbox_resume,
  .exec_start = docker_exec_start,
  .exec_wait = docker_exec_wait,
  .exec_list = docker_exec_list,
  .exec_attach = docker_exec_attach,
  .exec_signal = docker_exec_signal,
  .exec_resize = docker_exec_resize,
  .exec_stdin_close = docker_exec_stdin_close,
  .file_read = docker_file_read,
  .file_write = docker_file_write,
  .file_stat = docker_file_stat,
  .file_list = docker_file_list,
  .file_mkdir = docker_file_mkdir,
  .file_remove = docker_file_remove,
  .file_rename = docker_file_rename,
  .file_watch = docker_file_watch,
  .archive_export = docker_archive_export,
  .archive_import = docker_archive_import,
  .port_resolve = docker_port_resolve,
  .port_dial = docker_port_dial,
  .metrics = docker_metrics,
  .snapshot_create = docker_snapshot_create,
  .snapshot_list = docker_snapshot_list,
  .snapshot_delete = docker_snapshot_delete,
};

COFFER_PROVIDER (docker, COFFER_THREADS_PARALLEL, 0, operations)
