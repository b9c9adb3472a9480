/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the host provider.  It keeps nothing about sandboxes itself:
 * each is a folder with a keeper, which any process of the same user finds. */

#ifndef HOST_HOST_H
#define HOST_HOST_H

#include <coffer/provider.h>

#include "protocol.h"

struct host {
  int runtime;                  /* folder of the sandboxes */
  int keeper;                   /* the helper's program, sealed */
};

/* ---- client.c ------------------------------------------------------------ */

/* The folder of a living sandbox; -1 with errno, ENOENT when there is none. */
int sandbox_open (const struct host *host, const char *sandbox);
/* 1: a keeper holds this folder. */
int sandbox_is_held (int folder);
/* Whether that error of its keeper's socket is the end of one that was killed;
 * nobody holds the folder then. */
int sandbox_is_left (const struct coffer_call *call, int folder, int sys_errno);

/* One connection to a keeper: -1 with errno. */
int keeper_connect (int folder);
int keeper_send (int connection, struct keeper_request *request,
                 const int *fds, size_t n_fds);
int keeper_receive (int connection, struct keeper_reply *reply,
                    int64_t deadline_ns, int cancel_fd);
/* Connect, send, receive: 0, or -1 with errno. */
int keeper_ask (struct coffer_call *call, int folder,
                struct keeper_request *request, const int *fds, size_t n_fds,
                struct keeper_reply *reply);
/* coffer_fail for errno of the above: ENOENT is the sandbox. */
int32_t fail_sandbox (struct coffer_call *call, int sys_errno,
                      const char *sandbox);

/* ---- spawn.c ------------------------------------------------------------- */

/* Starts the keeper of a folder that is locked by `folder`.  0, or errno. */
int keeper_spawn (const struct host *host, const char *sandbox, int folder,
                  const struct coffer_sandbox_spec *spec);

/* ---- sandbox.c, exec.c, files.c: the operations -------------------------- */

#define OPERATION(name, ...)                                                  \
  int32_t host_##name (struct coffer_call *call, void *self, __VA_ARGS__)

OPERATION (sandbox_create, const char *sandbox,
           const struct coffer_sandbox_spec *spec,
           const struct coffer_sandbox_create_opts *opts);
OPERATION (sandbox_info, const char *sandbox,
           const struct coffer_sandbox_info_opts *opts);
OPERATION (sandbox_list, const struct coffer_sandbox_list_opts *opts);
OPERATION (sandbox_kill, const char *sandbox,
           const struct coffer_sandbox_kill_opts *opts);
OPERATION (sandbox_extend, const char *sandbox, uint64_t ttl_ms,
           const struct coffer_sandbox_extend_opts *opts);

OPERATION (exec_start, const char *sandbox, const char *const *argv,
           const char *const *env, const char *cwd, int32_t in, int32_t out,
           int32_t err, const struct coffer_exec_start_opts *opts);
OPERATION (exec_wait, const char *sandbox, const char *exec,
           const struct coffer_exec_wait_opts *opts);
OPERATION (exec_list, const char *sandbox,
           const struct coffer_exec_list_opts *opts);
OPERATION (exec_signal, const char *sandbox, const char *exec, int32_t number,
           const struct coffer_exec_signal_opts *opts);
OPERATION (exec_resize, const char *sandbox, const char *exec, uint32_t rows,
           uint32_t columns, const struct coffer_exec_resize_opts *opts);
OPERATION (exec_stdin_close, const char *sandbox, const char *exec,
           const struct coffer_exec_stdin_close_opts *opts);

OPERATION (file_read, const char *sandbox, const char *path, int32_t out,
           const struct coffer_file_read_opts *opts);
OPERATION (file_write, const char *sandbox, const char *path, int32_t in,
           const struct coffer_file_write_opts *opts);
OPERATION (file_stat, const char *sandbox, const char *path,
           const struct coffer_file_stat_opts *opts);
OPERATION (file_list, const char *sandbox, const char *path,
           const struct coffer_file_list_opts *opts);
OPERATION (file_mkdir, const char *sandbox, const char *path,
           const struct coffer_file_mkdir_opts *opts);
OPERATION (file_remove, const char *sandbox, const char *path,
           const struct coffer_file_remove_opts *opts);
OPERATION (file_rename, const char *sandbox, const char *from, const char *to,
           const struct coffer_file_rename_opts *opts);
OPERATION (file_watch, const char *sandbox, const char *path,
           const struct coffer_file_watch_opts *opts);
OPERATION (archive_export, const char *sandbox, const char *path, int32_t out,
           const struct coffer_archive_export_opts *opts);
OPERATION (archive_import, const char *sandbox, const char *path, int32_t in,
           const struct coffer_archive_import_opts *opts);

/* ---- facts.c ---- */

/* What every run and every probe says first: this isolates nothing. */
int32_t emit_isolation (struct coffer_call *call);
int32_t emit_user (struct coffer_call *call);
int32_t host_probe (struct coffer_call *call, void *self,
                    const struct coffer_probe_opts *opts);

#endif /* HOST_HOST_H */
