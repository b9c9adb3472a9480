/* SPDX-License-Identifier: Apache-2.0 */
/* The reference provider: every capability of the contract that can be kept
 * without root and without namespaces, written to be read.
 *
 * A sandbox is a folder, a keeper process that holds it, and a minder process
 * for each command.  It isolates nothing, and says so: it is here for the
 * conformance kit to be tested on, and to show how each operation is meant.
 * This file has the instance and the table; protocol.h says what lies where. */

#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include <coffer/fd.h>
#include <coffer/files.h>

#include "reference.h"

#define HELPER "reference-keeper"

static int
find_helper (const struct coffer_open_opts *opts)
{
  if (!COFFER_HAS (opts, files) || !opts->files)
    return -1;
  for (size_t i = 0; opts->files[i]; i++)
    if (strcmp (opts->files[i]->name, HELPER) == 0)
      return fcntl (opts->files[i]->fd, F_DUPFD_CLOEXEC, 3);
  return -1;
}

static const char *
config_value (const char *const *config, const char *key)
{
  size_t size = strlen (key);

  for (; config && *config; config++)
    if (strncmp (*config, key, size) == 0 && (*config)[size] == '=')
      return *config + size + 1;
  return NULL;
}

/* Stands for what a service would say of a key.  There may be none; one that
 * is given must be right, and is never repeated. */
static int32_t
check_token (struct coffer_call *call, const char *token)
{
  if (!token || strncmp (token, "right-", 6) == 0)
    return COFFER_OK;
  return coffer_fail (call, COFFER_UNAUTHENTICATED,
                      "the token is not accepted");
}

int32_t
reference_close (struct coffer_call *call, void *data,
                 const struct coffer_close_opts *opts)
{
  struct reference *self = data;

  (void) call, (void) opts;
  coffer_fd_close (&self->runtime);
  coffer_fd_close (&self->state);
  coffer_fd_close (&self->keeper);
  warm_forget (self);
  free (self);
  return COFFER_OK;
}

int32_t
reference_open (struct coffer_call *call, void *data,
                const char *const *config, const struct coffer_open_opts *opts)
{
  int32_t code = check_token (call, config_value (config, "token"));
  struct reference *self;

  (void) data;
  if (code != COFFER_OK)
    return code;
  if (!COFFER_HAS (opts, state_dir) || opts->runtime_dir < 0)
    return coffer_fail (call, COFFER_UNAVAILABLE, "there is no runtime folder");
  self = calloc (1, sizeof *self);
  if (!self)
    return coffer_fail_errno (call, ENOMEM, "the provider");
  self->runtime = fcntl (opts->runtime_dir, F_DUPFD_CLOEXEC, 3);
  self->state = opts->state_dir < 0 ? -1 :
    fcntl (opts->state_dir, F_DUPFD_CLOEXEC, 3);
  self->keeper = find_helper (opts);
  code = self->runtime < 0 || self->keeper < 0 ?
    coffer_fail (call, COFFER_UNAVAILABLE, "the provider's helper is missing") :
    coffer_opened (call, self);
  if (code != COFFER_OK)
    reference_close (call, self, NULL);
  return code;
}

int32_t
reference_probe (struct coffer_call *call, void *data,
                 const struct coffer_probe_opts *opts)
{
  static const char *const snapshot[] = {"snapshot", NULL};
  const struct reference *self = data;
  const struct coffer_fact isolation = {
    .size = sizeof isolation, .name = "isolation", .state = "off",
    .value = "none", .how = "this provider has none",
  };
  const struct coffer_fact state = {
    .size = sizeof state, .name = "state folder",
    .state = self->state < 0 ? "absent" : "ok", .how = "as opened by the host",
    .remedy = self->state < 0 ? "make coffer's state folder writable" : NULL,
    .narrows = self->state < 0 ? snapshot : NULL,
  };
  int32_t code = coffer_emit_fact (call, &isolation);

  (void) opts;
  return code == COFFER_OK ? coffer_emit_fact (call, &state) : code;
}

/* The mutants have a table of their own. */
#ifndef MUTANTS
static const struct coffer_operations operations = {
  .size = sizeof operations,
  .open = reference_open,
  .close = reference_close,
  .probe = reference_probe,
  .sandbox_create = reference_sandbox_create,
  .sandbox_info = reference_sandbox_info,
  .sandbox_list = reference_sandbox_list,
  .sandbox_kill = reference_sandbox_kill,
  .sandbox_extend = reference_sandbox_extend,
  .sandbox_pause = reference_sandbox_pause,
  .sandbox_resume = reference_sandbox_resume,
  .exec_start = reference_exec_start,
  .exec_wait = reference_exec_wait,
  .exec_list = reference_exec_list,
  .exec_attach = reference_exec_attach,
  .exec_signal = reference_exec_signal,
  .exec_resize = reference_exec_resize,
  .exec_stdin_close = reference_exec_stdin_close,
  .warm_open = reference_warm_open,
  .file_read = reference_file_read,
  .file_write = reference_file_write,
  .file_stat = reference_file_stat,
  .file_list = reference_file_list,
  .file_mkdir = reference_file_mkdir,
  .file_remove = reference_file_remove,
  .file_rename = reference_file_rename,
  .file_watch = reference_file_watch,
  .archive_export = reference_archive_export,
  .archive_import = reference_archive_import,
  .port_resolve = reference_port_resolve,
  .port_dial = reference_port_dial,
  .metrics = reference_metrics,
  .snapshot_create = reference_snapshot_create,
  .snapshot_list = reference_snapshot_list,
  .snapshot_delete = reference_snapshot_delete,
};

COFFER_PROVIDER (reference, COFFER_THREADS_PARALLEL, 0, operations)
#endif
