/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the mutants' module. */

#include "mutant.h"

static const struct coffer_operations operations = {
  .size = sizeof operations,
  .open = broken_open,
  .close = broken_close,
  .probe = broken_probe,
  .sandbox_create = broken_sandbox_create,
  .sandbox_info = broken_sandbox_info,
  .sandbox_list = broken_sandbox_list,
  .sandbox_kill = broken_sandbox_kill,
  .sandbox_extend = broken_sandbox_extend,
  .sandbox_pause = broken_sandbox_pause,
  .sandbox_resume = broken_sandbox_resume,
  .exec_start = broken_exec_start,
  .exec_wait = broken_exec_wait,
  .exec_list = broken_exec_list,
  .exec_attach = broken_exec_attach,
  .exec_signal = broken_exec_signal,
  .exec_resize = broken_exec_resize,
  .exec_stdin_close = broken_exec_stdin_close,
#ifndef WITHOUT_WARM
  .warm_open = broken_warm_open,
#endif
  .file_read = broken_file_read,
  .file_write = broken_file_write,
  .file_stat = broken_file_stat,
  .file_list = broken_file_list,
  .file_mkdir = broken_file_mkdir,
  .file_remove = broken_file_remove,
  .file_rename = broken_file_rename,
  .file_watch = broken_file_watch,
  .archive_export = broken_archive_export,
  .archive_import = broken_archive_import,
  .port_resolve = broken_port_resolve,
  .port_dial = broken_port_dial,
  .metrics = broken_metrics,
  .snapshot_create = broken_snapshot_create,
  .snapshot_list = broken_snapshot_list,
  .snapshot_delete = broken_snapshot_delete,
};

#ifdef WITHOUT_WARM
COFFER_PROVIDER (bare, COFFER_THREADS_PARALLEL, 0, operations)
#else
COFFER_PROVIDER (mutant, COFFER_THREADS_PARALLEL, 0, operations)
#endif
