/* SPDX-License-Identifier: Apache-2.0 */
/* Sandboxes of the host provider: a folder of the caller's own, and a keeper.
 *
 * What a sandbox would promise and this cannot is refused by name when it is
 * asked for, and listed in not_applied when it is a default.  A mount is
 * refused whatever it is: without a mount namespace nothing can be shown at
 * another place, and the caller's files are all there at their own paths, for
 * the workdir to name. */

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
#include <sys/stat.h>
#include <unistd.h>

#include <coffer/buffer.h>
#include <coffer/fd.h>
#include <coffer/files.h>
#include <coffer/path.h>
#include <coffer/spec.h>

#include "host.h"

#define METADATA_MAX (256 << 10)

/* -- what cannot be honoured ---- */

static int
network_is_given (const struct coffer_sandbox_spec *spec)
{
  return spec->network && strcmp (spec->network, "host") != 0;
}

static int
any (const char *const *strings)
{
  return strings && strings[0];
}

static int32_t
refuse (struct coffer_call *call, const char *what, const char *why)
{
  coffer_autobuffer struct coffer_buffer text = {0};

  coffer_buffer_printf (&text, "%s: the host provider %s", what, why);
  return coffer_fail (call, COFFER_UNSUPPORTED,
                      text.failed ? what : text.data);
}

static int32_t
check_spec (struct coffer_call *call, const struct coffer_sandbox_spec *spec)
{
  const struct {
    int given;
    const char *what, *why;
  } refused[] = {
    {spec->template_name != NULL, "template", "has no root but the caller's"},
    {spec->image != NULL, "image", "has no root but the caller's"},
    {spec->profile != NULL, "profile", "confines nothing"},
    {spec->user != NULL, "user", "runs commands as the caller"},
    {spec->memory_bytes != 0, "memory", "sets no limits"},
    {spec->cpu_millis != 0, "cpus", "sets no limits"},
    {spec->pids != 0, "pids", "sets no limits"},
    {spec->disk_bytes != 0, "disk", "sets no limits"},
    {spec->inodes != 0, "inodes", "sets no limits"},
    {spec->address_bytes != 0, "address_bytes", "sets no limits"},
    {spec->file_bytes != 0, "file_bytes", "sets no limits"},
    {spec->open_files != 0, "open_files", "sets no limits"},
    {spec->filter != NULL, "filter", "confines nothing"},
    {spec->warm != NULL, "warm", "has nothing that stands ready"},
    {any (spec->require), "require", "confines nothing"},
    {network_is_given (spec), "network", "has the caller's network only"},
    {any (spec->allow), "allow", "has the caller's network only"},
    {any (spec->ports), "ports", "forwards none: they are the caller's"},
    {spec->mounts && spec->mounts[0], "mounts",
     "shows nothing elsewhere: name the folder as the workdir"},
  };

  for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
    if (refused[i].given)
      return refuse (call, refused[i].what, refused[i].why);
  if (spec->workdir && spec->workdir[0] != '/')
    return coffer_fail (call, COFFER_INVALID, "workdir must be absolute");
  return COFFER_OK;
}

/* -- emitting ---- */

static int
read_metadata (int folder, struct coffer_strings *out)
{
  coffer_autoclose int fd = coffer_open_regular (folder, KEEPER_METADATA,
                                                 NULL);
  char *bytes;
  size_t size;

  if (fd < 0)
    return errno == ENOENT ? 0 : -1;
  if (coffer_read_whole (fd, METADATA_MAX, &bytes, &size) < 0)
    return -1;
  for (size_t at = 0; at < size; at += strlen (bytes + at) + 1)
    coffer_strings_add (out, bytes + at);
  free (bytes);
  return out->failed ? -1 : 0;
}

static int
write_metadata (int folder, const char *const *metadata)
{
  coffer_autobuffer struct coffer_buffer bytes = {0};
  struct coffer_new_file file = {0};

  if (!any (metadata))
    return 0;
  for (size_t i = 0; metadata[i]; i++)
    coffer_buffer_add (&bytes, metadata[i], strlen (metadata[i]) + 1);
  if (bytes.failed || bytes.size > METADATA_MAX) {
    errno = bytes.failed ? ENOMEM : E2BIG;
    return -1;
  }
  if (coffer_new_file_begin (&file, folder, KEEPER_METADATA, 0600, 0) < 0)
    return -1;
  if (coffer_write_all (file.fd, bytes.data, bytes.size) < 0 ||
      coffer_new_file_commit (&file, 0, 0) < 0) {
    coffer_new_file_abort (&file);
    return -1;
  }
  return 0;
}

/* Where the workspace is, as the commands see it. */
static int
workspace_path (int folder, char *path, size_t size)
{
  char *at = coffer_fd_path (folder);
  int n;

  if (!at)
    return -1;
  n = snprintf (path, size, "%s/" KEEPER_WORKSPACE, at);
  free (at);
  if (n >= 0 && (size_t) n < size)
    return 0;
  errno = ENAMETOOLONG;
  return -1;
}

static int32_t
emit_info (struct coffer_call *call, const char *sandbox, int folder,
           const struct keeper_reply *reply)
{
  static const char *const not_applied[] = {
    "network.none", "root.readonly", "limit.memory", "limit.cpu", "limit.pids",
    "limit.disk", NULL, NULL,
  };
  const char *absent[sizeof not_applied / sizeof not_applied[0]];
  coffer_autostrings struct coffer_strings metadata = {0};
  char workspace[PATH_MAX], native[32];
  struct coffer_sandbox_info info = {
    .size = sizeof info, .sandbox = sandbox, .native_id = native,
    .state = "running", .created_ns = reply->created_ns,
    .expires_ns = reply->expires_ns, .isolation = "none",
    .workspace = workspace, .not_applied = absent,
  };

  memcpy (absent, not_applied, sizeof absent);
  if (geteuid () == 0)
    absent[6] = "user.unprivileged";
  snprintf (native, sizeof native, "pid-%lld", (long long) reply->pid);
  if (workspace_path (folder, workspace, sizeof workspace) < 0 ||
      read_metadata (folder, &metadata) < 0)
    return fail_sandbox (call, errno, sandbox);
  info.metadata = coffer_strings_view (&metadata);
  return coffer_emit_sandbox_info (call, &info);
}

/* -- making one ---- */

/* Removes what a keeper left that was killed itself.  Its processes found
 * their own end: each minder saw the keeper's. */
static int
remove_left (const struct host *host, const char *sandbox)
{
  coffer_autoclose int folder = coffer_open_beneath (
    host->runtime, sandbox, O_RDONLY | O_DIRECTORY, 0);

  if (folder < 0)
    return errno == ENOENT ? 0 : -1;
  if (flock (folder, LOCK_EX | LOCK_NB) < 0) {
    errno = EBUSY;
    return -1;
  }
  if (coffer_remove_beneath (host->runtime, sandbox, 1, NULL) < 0)
    return errno == ENOENT ? 0 : -1;
  return 0;
}

/* A new folder, locked.  -1 with EEXIST, or EAGAIN when somebody else had it
 * in hand meanwhile: one who looks holds a lock for a moment, one who takes it
 * for left behind removes it. */
static int
try_folder (const struct host *host, const char *sandbox)
{
  coffer_autoclose int folder = -1;

  if (mkdirat (host->runtime, sandbox, 0700) < 0) {
    if (errno != EEXIST)
      return -1;
    if (remove_left (host, sandbox) < 0)
      errno = errno == EBUSY ? EEXIST : errno;
    else
      errno = EAGAIN;
    return -1;
  }
  folder = coffer_open_beneath (host->runtime, sandbox,
                                O_RDONLY | O_DIRECTORY, 0);
  if (folder < 0 || flock (folder, LOCK_EX | LOCK_NB) < 0 ||
      mkdirat (folder, KEEPER_WORKSPACE, 0700) < 0 ||
      mkdirat (folder, KEEPER_TMP, 0700) < 0) {
    if (errno == ENOENT)
      errno = EAGAIN;
    return -1;
  }
  return coffer_fd_steal (&folder);
}

/* The lock goes to the keeper with the descriptor.  -1 with EEXIST: there is
 * such a sandbox. */
static int
make_folder (const struct host *host, const char *sandbox)
{
  int tries = 100, folder;

  do {
    folder = try_folder (host, sandbox);
    if (folder >= 0 || errno != EAGAIN)
      break;
    poll (NULL, 0, 1);
  } while (--tries > 0);
  return folder;
}

/* Asked for twice: the one there is, once its keeper can be reached. */
static int
open_again (const struct host *host, const char *sandbox)
{
  coffer_autoclose int folder = sandbox_open (host, sandbox), connection = -1;

  for (int tries = 200; folder >= 0 && tries > 0; tries--) {
    connection = keeper_connect (folder);
    if (connection >= 0)
      return coffer_fd_steal (&folder);
    if (errno != ENOENT && errno != ECONNREFUSED)
      return -1;
    if (!sandbox_is_held (folder)) {
      errno = ENOENT;           /* its keeper is gone */
      return -1;
    }
    poll (NULL, 0, 5);
  }
  return -1;
}

/* Its folder, made (*made) or found.  Who looks just while another clears
 * away a leftover of that name finds neither, and looks again. */
static int
take_folder (const struct host *host, const char *sandbox, int *made)
{
  int tries = 100, folder;

  do {
    folder = make_folder (host, sandbox);
    *made = folder >= 0;
    if (*made || errno != EEXIST)
      break;
    folder = open_again (host, sandbox);
  } while (folder < 0 && errno == ENOENT && --tries > 0
           && poll (NULL, 0, 1) == 0);
  return folder;
}

static int32_t
begin (struct coffer_call *call, const struct host *host, const char *sandbox,
       const struct coffer_sandbox_spec *spec, int *folder, int *made)
{
  int sys_errno;

  *folder = take_folder (host, sandbox, made);
  if (*folder < 0)
    return fail_sandbox (call, errno, sandbox);
  if (!*made)
    return COFFER_OK;
  sys_errno = write_metadata (*folder, spec->metadata) < 0 ? errno :
                keeper_spawn (host, sandbox, *folder, spec);
  if (sys_errno) {
    coffer_remove_beneath (host->runtime, sandbox, 1, NULL);
    return coffer_fail_errno (call, sys_errno, "the sandbox's keeper");
  }
  return COFFER_OK;
}

/* Ends what was begun and could not be reported. */
static void
give_up (int folder)
{
  struct keeper_request request = {.op = KEEPER_KILL};
  coffer_autoclose int connection = keeper_connect (folder);
  struct keeper_reply reply;

  if (connection >= 0 && keeper_send (connection, &request, NULL, 0) == 0)
    keeper_receive (connection, &reply,
                    coffer_now_ns () + INT64_C (5) * 1000000000, -1);
}

/* For whoever reads the log: `coffer` itself warns its user on each run. */
static void
log_nature (struct coffer_call *call)
{
  coffer_log (call, COFFER_LOG_INFO, "not a sandbox: commands run as the "
              "caller and reach all that the caller can");
  if (geteuid () == 0)
    coffer_log (call, COFFER_LOG_INFO, "commands run as root, without any "
                "isolation");
}

int32_t
host_sandbox_create (struct coffer_call *call, void *self, const char *sandbox,
                     const struct coffer_sandbox_spec *spec,
                     const struct coffer_sandbox_create_opts *opts)
{
  static const struct coffer_sandbox_spec defaults = {
    .size = sizeof defaults, .lifeline = -1,
  };
  struct keeper_request request = {.op = KEEPER_INFO};
  const struct host *host = self;
  coffer_autoclose int folder = -1;
  struct keeper_reply reply;
  int32_t code;
  int made = 0;

  (void) opts;
  if (!spec)
    spec = &defaults;
  if (host->keeper < 0 || host->runtime < 0)
    return coffer_fail (call, COFFER_UNAVAILABLE, "the provider's helper or "
                        "its runtime folder is missing");
  if (!coffer_id_is_valid (sandbox))
    return coffer_fail (call, COFFER_INVALID, "the sandbox's id must be 1 to "
                        "64 letters, digits, dashes, dots and underlines");
  code = check_spec (call, spec);
  if (code == COFFER_OK)
    code = begin (call, host, sandbox, spec, &folder, &made);
  if (code != COFFER_OK)
    return code;
  log_nature (call);
  if (keeper_ask (call, folder, &request, NULL, 0, &reply) < 0) {
    code = coffer_fail_errno (call, errno, "the sandbox's keeper");
    if (made)                   /* another's is not ours to end */
      give_up (folder);
    return code;
  }
  code = emit_info (call, sandbox, folder, &reply);
  if (code == COFFER_OK)
    code = emit_isolation (call);
  return code == COFFER_OK ? emit_user (call) : code;
}

/* -- the others ---- */

static int32_t
ask_and_emit (struct coffer_call *call, const struct host *host,
              const char *sandbox, struct keeper_request *request)
{
  coffer_autoclose int folder = sandbox_open (host, sandbox);
  struct keeper_reply reply;

  if (folder < 0 || keeper_ask (call, folder, request, NULL, 0, &reply) < 0)
    return fail_sandbox (call, errno, sandbox);
  return emit_info (call, sandbox, folder, &reply);
}

int32_t
host_sandbox_info (struct coffer_call *call, void *self, const char *sandbox,
                   const struct coffer_sandbox_info_opts *opts)
{
  struct keeper_request request = {.op = KEEPER_INFO};

  (void) opts;
  return ask_and_emit (call, self, sandbox, &request);
}

int32_t
host_sandbox_extend (struct coffer_call *call, void *self, const char *sandbox,
                     uint64_t ttl_ms,
                     const struct coffer_sandbox_extend_opts *opts)
{
  struct keeper_request request = {.op = KEEPER_EXTEND, .ttl_ms = ttl_ms};

  (void) opts;
  if (ttl_ms == 0)
    return coffer_fail (call, COFFER_INVALID, "ttl_ms must not be 0");
  return ask_and_emit (call, self, sandbox, &request);
}

/* One entry of the runtime folder.  One that ends while it is asked is none;
 * one that nobody holds is cleared away, as no record may know of it. */
static int32_t
list_one (struct coffer_call *call, const struct host *host, const char *name)
{
  struct keeper_request request = {.op = KEEPER_INFO};
  coffer_autoclose int folder = sandbox_open (host, name);
  struct keeper_reply reply;
  int32_t code;

  if (folder < 0) {
    if (errno == ENOENT)
      remove_left (host, name);
    return COFFER_OK;
  }
  if (keeper_ask (call, folder, &request, NULL, 0, &reply) < 0) {
    if (errno == ETIMEDOUT || errno == ECANCELED)
      return coffer_fail_errno (call, errno, "a sandbox's keeper");
    if (sandbox_is_left (call, folder, errno))
      remove_left (host, name);
    return COFFER_OK;
  }
  code = emit_info (call, name, folder, &reply);
  return code == COFFER_NOT_FOUND ? COFFER_OK : code;
}

int32_t
host_sandbox_list (struct coffer_call *call, void *self,
                   const struct coffer_sandbox_list_opts *opts)
{
  const struct host *host = self;
  int fd = openat (host->runtime, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
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
      code = list_one (call, host, entry->d_name);
  closedir (stream);
  return code;
}

int32_t
host_sandbox_kill (struct coffer_call *call, void *self, const char *sandbox,
                   const struct coffer_sandbox_kill_opts *opts)
{
  struct keeper_request request = {.op = KEEPER_KILL};
  const struct host *host = self;
  coffer_autoclose int folder = sandbox_open (host, sandbox);
  struct keeper_reply reply;

  (void) opts;
  if (folder < 0) {
    int sys_errno = errno;

    if (coffer_id_is_valid (sandbox) && remove_left (host, sandbox) < 0)
      sys_errno = errno;
    return fail_sandbox (call, sys_errno, sandbox);
  }
  if (keeper_ask (call, folder, &request, NULL, 0, &reply) < 0) {
    int sys_errno = errno;

    if (sandbox_is_left (call, folder, sys_errno))
      remove_left (host, sandbox);
    return fail_sandbox (call, sys_errno, sandbox);
  }
  return COFFER_OK;
}
