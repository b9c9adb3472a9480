/* SPDX-License-Identifier: Apache-2.0 */
/* The host provider: commands run as the caller, on the caller's system.
 *
 * For trusted work only.  It isolates nothing and says so on every run; what
 * it has of a sandbox is a disposable workspace, a life that ends as a whole,
 * and exact reports.  See sandbox.c for what it refuses. */

#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include <coffer/fd.h>
#include <coffer/files.h>

#include "host.h"

#define HELPER "coffer-keeper"

static int
find_helper (const struct coffer_open_opts *opts)
{
  if (!COFFER_HAS (opts, files) || !opts->files)
    return -1;
  for (size_t i = 0; opts->files[i]; i++)
    if (opts->files[i]->name && strcmp (opts->files[i]->name, HELPER) == 0)
      return fcntl (opts->files[i]->fd, F_DUPFD_CLOEXEC, 3);
  return -1;
}

static int32_t
host_close (struct coffer_call *call, void *self,
            const struct coffer_close_opts *opts)
{
  struct host *host = self;

  (void) call, (void) opts;
  coffer_fd_close (&host->keeper);
  coffer_fd_close (&host->runtime);
  free (host);
  return COFFER_OK;
}

/* What is missing is told by probe and refused by create. */
static int32_t
host_open (struct coffer_call *call, void *self, const char *const *config,
           const struct coffer_open_opts *opts)
{
  struct host *host = calloc (1, sizeof *host);
  int32_t code;

  (void) self, (void) config;
  if (!host)
    return coffer_fail_errno (call, ENOMEM, "the provider");
  host->keeper = find_helper (opts);
  host->runtime = COFFER_HAS (opts, runtime_dir) && opts->runtime_dir >= 0 ?
    fcntl (opts->runtime_dir, F_DUPFD_CLOEXEC, 3) : -1;
  code = coffer_opened (call, host);
  if (code != COFFER_OK)
    host_close (call, host, NULL);
  return code;
}

static const struct coffer_operations operations = {
  .size = sizeof operations,
  .open = host_open,
  .close = host_close,
  .probe = host_probe,
  .sandbox_create = host_sandbox_create,
  .sandbox_info = host_sandbox_info,
  .sandbox_list = host_sandbox_list,
  .sandbox_kill = host_sandbox_kill,
  .sandbox_extend = host_sandbox_extend,
  .exec_start = host_exec_start,
  .exec_wait = host_exec_wait,
  .exec_list = host_exec_list,
  .exec_signal = host_exec_signal,
  .exec_resize = host_exec_resize,
  .exec_stdin_close = host_exec_stdin_close,
  .file_read = host_file_read,
  .file_write = host_file_write,
  .file_stat = host_file_stat,
  .file_list = host_file_list,
  .file_mkdir = host_file_mkdir,
  .file_remove = host_file_remove,
  .file_rename = host_file_rename,
  .file_watch = host_file_watch,
  .archive_export = host_archive_export,
  .archive_import = host_archive_import,
};

COFFER_PROVIDER (host, COFFER_THREADS_PARALLEL, 0, operations)
