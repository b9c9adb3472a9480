/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a sandbox: a folder that is made, held by a keeper, and removed
 * by it.  What cannot be given is refused by name when it is asked for, and
 * listed in not_applied when it is a default. */

#define _GNU_SOURCE

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include <coffer/buffer.h>
#include <coffer/fd.h>
#include <coffer/files.h>
#include <coffer/path.h>
#include <coffer/spec.h>

#include "reference.h"

#define METADATA_MAX (256 << 10)

/* -- what cannot be given ---- */

/* What is not here is refused.  A template is a snapshot, never a root. */
static const char *const kept[] = {
  "template_name", "env", "workdir", "ports", "ttl_ms", "root_writable",
  "metadata", "lifeline", "single_exec", "warm", NULL,
};

static int32_t
check_spec (struct coffer_call *call, const struct reference *self,
            const char *sandbox, const struct coffer_sandbox_spec *spec)
{
  if (spec->template_fd >= 0)
    return coffer_fail (call, COFFER_UNSUPPORTED, "template: there is no root "
                        "but the caller's");
  if (spec->warm && !warm_is_known (self, spec->warm))
    return coffer_fail (call, COFFER_NOT_FOUND, "warm: no such handle");
  return coffer_spec_check (call, sandbox, spec, kept);
}

/* -- metadata: each with its NUL ---- */

static int
metadata_write (int folder, const char *const *metadata)
{
  coffer_autobuffer struct coffer_buffer bytes = {0};
  coffer_autoclose int fd = -1;

  for (; metadata && *metadata; metadata++)
    coffer_buffer_add (&bytes, *metadata, strlen (*metadata) + 1);
  if (bytes.failed || bytes.size > METADATA_MAX) {
    errno = bytes.failed ? ENOMEM : E2BIG;
    return -1;
  }
  fd = openat (folder, METADATA, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  return fd < 0 || coffer_write_all (fd, bytes.data, bytes.size) < 0 ? -1 : 0;
}

static int
metadata_read (int folder, struct coffer_strings *out)
{
  coffer_autoclose int fd = coffer_open_regular (folder, METADATA, NULL);
  char *bytes;
  size_t size;

  if (fd < 0 || coffer_read_whole (fd, METADATA_MAX, &bytes, &size) < 0)
    return -1;
  for (size_t at = 0; at < size; at += strlen (bytes + at) + 1)
    coffer_strings_add (out, bytes + at);
  free (bytes);
  return out->failed ? -1 : 0;
}

/* -- what there is to say of one ---- */

/* -1 with errno when it ends meanwhile; else 0, and the code of the emit. */
static int
emit_info (struct coffer_call *call, const char *sandbox, int folder,
           const struct reply *reply, int32_t *code)
{
  static const char *const not_applied[] = {
    "network.none", "root.readonly", "user.unprivileged", "limit.memory",
    "limit.pids", "limit.disk", NULL,
  };
  coffer_autostrings struct coffer_strings metadata = {0};
  coffer_autobuffer struct coffer_buffer workspace = {0};
  char native[32], *path = coffer_fd_path (folder);
  struct coffer_sandbox_info info = {
    .size = sizeof info, .sandbox = sandbox, .native_id = native,
    .state = reply->paused ? "paused" : "running",
    .created_ns = reply->created_ns, .expires_ns = reply->expires_ns,
    .isolation = "none", .not_applied = not_applied,
  };

  if (path)
    coffer_buffer_printf (&workspace, "%s/" WORKSPACE, path);
  free (path);
  if (workspace.size == 0 || metadata_read (folder, &metadata) < 0)
    return -1;
  snprintf (native, sizeof native, "pid-%lld", (long long) reply->pid);
  info.workspace = workspace.data;
  info.metadata = coffer_strings_view (&metadata);
  *code = coffer_emit_sandbox_info (call, &info);
  return 0;
}

static int32_t
ask_and_emit (struct coffer_call *call, const struct reference *self,
              const char *sandbox, uint32_t op, uint64_t ttl_ms)
{
  struct request request = {.op = op, .ttl_ms = ttl_ms};
  coffer_autoclose int folder = sandbox_open (self, sandbox);
  struct reply reply;
  int32_t code;

  if (folder < 0
      || ask (call, folder, KEEPER_SOCKET, &request, NULL, 0, &reply) < 0
      || emit_info (call, sandbox, folder, &reply, &code) < 0)
    return fail_sandbox (call, errno);
  return code;
}

/* -- making one ---- */

/* Held while a folder appears or one that was left disappears, by all processes
 * that use the runtime folder.  A lock is its descriptor's: close to unlock. */
static int
runtime_lock (struct coffer_call *call, const struct reference *self)
{
  coffer_autoclose int fd = openat (self->runtime, ".", O_RDONLY | O_DIRECTORY
                                                        | O_CLOEXEC);
  struct pollfd cancel = {.fd = call->cancel_fd, .events = POLLIN};

  while (fd >= 0 && flock (fd, LOCK_EX | LOCK_NB) < 0) {
    if (errno != EWOULDBLOCK && errno != EINTR)
      return -1;
    if (poll (&cancel, 1, 1) > 0) {
      errno = ECANCELED;
      return -1;
    }
    if (coffer_now_ns () >= call->deadline_ns) {
      errno = ETIMEDOUT;
      return -1;
    }
  }
  return coffer_fd_steal (&fd);
}

/* The workspace begins as what the snapshot has. */
static int32_t
fill_from_snapshot (struct coffer_call *call, const struct reference *self,
                    const char *snapshot, int folder)
{
  coffer_autoclose int from = snapshot_open (self, snapshot);
  coffer_autoclose int to = openat (folder, WORKSPACE, O_RDONLY | O_DIRECTORY
                                                       | O_CLOEXEC);
  uint64_t bytes;

  if (from < 0)
    return coffer_fail (call, COFFER_NOT_FOUND, "no such snapshot");
  if (to < 0 || tree_copy (call, from, to, &bytes) < 0)
    return coffer_fail_errno (call, errno, "the snapshot");
  return COFFER_OK;
}

static int32_t
fill_folder (struct coffer_call *call, const struct reference *self,
             const struct coffer_sandbox_spec *spec, int folder)
{
  if (mkdirat (folder, WORKSPACE, 0755) < 0
      || mkdirat (folder, TEMPORARY, 0700) < 0
      || mkdirat (folder, EXECS, 0700) < 0
      || metadata_write (folder, spec->metadata) < 0)
    return coffer_fail_errno (call, errno, "the sandbox's folder");
  if (spec->template_name)
    return fill_from_snapshot (call, self, spec->template_name, folder);
  return COFFER_OK;
}

/* Under the lock, and there is none of this name that lives.  What a keeper
 * that was killed has left goes first; its commands have ended with it. */
static int32_t
make_sandbox (struct coffer_call *call, const struct reference *self,
              const char *sandbox, const struct coffer_sandbox_spec *spec)
{
  coffer_autoclose int folder = -1;
  int32_t code;
  int r;

  if (coffer_remove_beneath (self->runtime, sandbox, 1, NULL) < 0
      && errno != ENOENT)
    return coffer_fail_errno (call, errno, "what is left of the sandbox");
  if (mkdirat (self->runtime, sandbox, 0700) < 0
      || (folder = coffer_open_beneath (self->runtime, sandbox, O_RDONLY
                                        | O_DIRECTORY, 0)) < 0)
    return coffer_fail_errno (call, errno, "the sandbox's folder");
  code = fill_folder (call, self, spec, folder);
  if (code == COFFER_OK) {
    r = keeper_spawn (self, sandbox, folder, spec);
    if (r)
      code = coffer_fail_errno (call, r, "starting the sandbox's keeper");
  }
  if (code != COFFER_OK)
    coffer_remove_beneath (self->runtime, sandbox, 1, NULL);
  return code;
}

int32_t
reference_sandbox_create (struct coffer_call *call, void *data,
                          const char *sandbox,
                          const struct coffer_sandbox_spec *spec,
                          const struct coffer_sandbox_create_opts *opts)
{
  const struct reference *self = data;
  coffer_autoclose int lock = -1, folder = -1;
  int32_t code;

  (void) opts;
  code = check_spec (call, self, sandbox, spec);
  if (code != COFFER_OK)
    return code;
  lock = runtime_lock (call, self);
  if (lock < 0)
    return coffer_fail_errno (call, errno, "the runtime folder");
  folder = sandbox_open (self, sandbox);
  if (folder < 0)
    code = errno == ENOENT ? make_sandbox (call, self, sandbox, spec) :
      fail_sandbox (call, errno);
  return code == COFFER_OK ? ask_and_emit (call, self, sandbox, ASK_INFO, 0) :
    code;
}

/* -- the others ---- */

int32_t
reference_sandbox_info (struct coffer_call *call, void *self,
                        const char *sandbox,
                        const struct coffer_sandbox_info_opts *opts)
{
  (void) opts;
  return ask_and_emit (call, self, sandbox, ASK_INFO, 0);
}

int32_t
reference_sandbox_extend (struct coffer_call *call, void *self,
                          const char *sandbox, uint64_t ttl_ms,
                          const struct coffer_sandbox_extend_opts *opts)
{
  (void) opts;
  if (ttl_ms == 0)
    return coffer_fail (call, COFFER_INVALID, "ttl_ms must not be 0");
  return ask_and_emit (call, self, sandbox, ASK_EXTEND, ttl_ms);
}

int32_t
reference_sandbox_pause (struct coffer_call *call, void *self,
                         const char *sandbox,
                         const struct coffer_sandbox_pause_opts *opts)
{
  struct request request = {.op = ASK_PAUSE};
  struct reply reply;

  (void) opts;
  return ask_keeper (call, self, sandbox, &request, &reply);
}

int32_t
reference_sandbox_resume (struct coffer_call *call, void *self,
                          const char *sandbox,
                          const struct coffer_sandbox_resume_opts *opts)
{
  struct request request = {.op = ASK_RESUME};
  struct reply reply;

  (void) opts;
  return ask_keeper (call, self, sandbox, &request, &reply);
}

/* One entry of the runtime folder.  One that ends while it is asked is none. */
static int32_t
list_one (struct coffer_call *call, const struct reference *self,
          const char *name)
{
  struct request request = {.op = ASK_INFO};
  coffer_autoclose int folder = sandbox_open (self, name);
  struct reply reply;
  int32_t code;

  if (folder < 0)
    return COFFER_OK;
  if (ask (call, folder, KEEPER_SOCKET, &request, NULL, 0, &reply) == 0
      && emit_info (call, name, folder, &reply, &code) == 0)
    return code;
  return errno == ETIMEDOUT || errno == ECANCELED ?
    coffer_fail_errno (call, errno, "a sandbox's keeper") : COFFER_OK;
}

int32_t
reference_sandbox_list (struct coffer_call *call, void *data,
                        const struct coffer_sandbox_list_opts *opts)
{
  const struct reference *self = data;
  int fd = openat (self->runtime, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *stream = fd < 0 ? NULL : fdopendir (fd);
  int32_t code = COFFER_OK;
  struct dirent *entry;

  (void) opts;
  if (!stream) {
    code = coffer_fail_errno (call, errno, "the runtime folder");
    coffer_fd_close (&fd);
    return code;
  }
  while (code == COFFER_OK && (entry = readdir (stream)))
    if (coffer_id_is_valid (entry->d_name))
      code = list_one (call, self, entry->d_name);
  closedir (stream);
  return code;
}

/* A folder that nobody holds is removed here; what lay in it has ended. */
static int
remove_left (struct coffer_call *call, const struct reference *self,
             const char *sandbox)
{
  coffer_autoclose int lock = -1, folder = -1;

  if (!coffer_id_is_valid (sandbox)
      || faccessat (self->runtime, sandbox, F_OK, AT_SYMLINK_NOFOLLOW) < 0) {
    errno = ENOENT;
    return -1;
  }
  lock = runtime_lock (call, self);
  if (lock < 0)
    return -1;
  folder = sandbox_open (self, sandbox);
  if (folder < 0 && errno == ENOENT)
    coffer_remove_beneath (self->runtime, sandbox, 1, NULL);
  errno = ENOENT;
  return -1;
}

int32_t
reference_sandbox_kill (struct coffer_call *call, void *data,
                        const char *sandbox,
                        const struct coffer_sandbox_kill_opts *opts)
{
  struct request request = {.op = ASK_KILL};
  const struct reference *self = data;
  coffer_autoclose int folder = sandbox_open (self, sandbox);
  struct reply reply;

  (void) opts;
  if (folder < 0) {
    if (errno == ENOENT)
      remove_left (call, self, sandbox);
    return fail_sandbox (call, errno);
  }
  if (ask (call, folder, KEEPER_SOCKET, &request, NULL, 0, &reply) < 0)
    return fail_sandbox (call, errno);
  return COFFER_OK;
}
