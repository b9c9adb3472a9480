/* SPDX-License-Identifier: Apache-2.0 */
/* A provider as somebody outside writes it: it knows the installed headers and
 * helpers and nothing else of coffer.  Its sandboxes are folders of notes. */

#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <coffer/buffer.h>
#include <coffer/fd.h>
#include <coffer/files.h>
#include <coffer/path.h>
#include <coffer/provider.h>

struct notes {
  int folder;
};

static int32_t
notes_open (struct coffer_call *call, void *self, const char *const *config,
            const struct coffer_open_opts *opts)
{
  struct notes *notes = malloc (sizeof *notes);

  (void) self, (void) config;
  if (!notes)
    return coffer_fail_errno (call, ENOMEM, "notes");
  notes->folder = -1;
  if (COFFER_HAS (opts, runtime_dir) && opts->runtime_dir >= 0)
    notes->folder = fcntl (opts->runtime_dir, F_DUPFD_CLOEXEC, 3);
  return coffer_opened (call, notes);
}

static int32_t
notes_close (struct coffer_call *call, void *self,
             const struct coffer_close_opts *opts)
{
  struct notes *notes = self;

  (void) call, (void) opts;
  coffer_fd_close (&notes->folder);
  free (notes);
  return COFFER_OK;
}

static int32_t
notes_probe (struct coffer_call *call, void *self,
             const struct coffer_probe_opts *opts)
{
  struct notes *notes = self;
  coffer_autobuffer struct coffer_buffer text = {0};
  struct coffer_fact fact = {.size = sizeof fact};

  (void) opts;
  coffer_buffer_printf (&text, "a folder %s",
                        notes->folder >= 0 ? "is there" : "is missing");
  if (text.failed)
    return coffer_fail_errno (call, ENOMEM, "notes");
  fact.name = "folder";
  fact.state = notes->folder >= 0 ? "ok" : "absent";
  fact.value = text.data;
  fact.how = "given at open";
  return coffer_emit_fact (call, &fact);
}

static const char *
checked (const char *sandbox)
{
  return sandbox && *sandbox && !strchr (sandbox, '/') ? sandbox : NULL;
}

static int32_t
emit_info (struct coffer_call *call, const char *sandbox)
{
  struct coffer_sandbox_info info = {.size = sizeof info};

  info.sandbox = info.native_id = sandbox;
  info.state = "running";
  info.isolation = "none";
  info.workspace = "/";
  return coffer_emit_sandbox_info (call, &info);
}

static int32_t
notes_create (struct coffer_call *call, void *self, const char *sandbox,
              const struct coffer_sandbox_spec *spec,
              const struct coffer_sandbox_create_opts *opts)
{
  struct notes *notes = self;

  (void) spec, (void) opts;
  if (!checked (sandbox))
    return coffer_fail (call, COFFER_INVALID, "no such name");
  if (coffer_mkdir_beneath (notes->folder, sandbox, 0700, 1) < 0)
    return coffer_fail_errno (call, errno, sandbox);
  return emit_info (call, sandbox);
}

static int32_t
notes_info (struct coffer_call *call, void *self, const char *sandbox,
            const struct coffer_sandbox_info_opts *opts)
{
  struct notes *notes = self;
  coffer_autoclose int root = -1;

  (void) opts;
  if (checked (sandbox))
    root = coffer_open_beneath (notes->folder, sandbox,
                                O_RDONLY | O_DIRECTORY, 0);
  if (root < 0)
    return coffer_fail_errno (call, ENOENT, "the sandbox");
  return emit_info (call, sandbox);
}

static int
list_one (void *data, const char *path, int dir, const char *name,
          const struct stat *st)
{
  (void) path, (void) dir;
  return S_ISDIR (st->st_mode) ? emit_info (data, name) : 0;
}

static int32_t
notes_list_all (struct coffer_call *call, void *self,
                const struct coffer_sandbox_list_opts *opts)
{
  struct notes *notes = self;
  int r = coffer_walk (notes->folder, "/", 1, list_one, call);

  (void) opts;
  return r < 0 ? coffer_fail_errno (call, errno, "the folder") : r;
}

static int32_t
notes_kill (struct coffer_call *call, void *self, const char *sandbox,
            const struct coffer_sandbox_kill_opts *opts)
{
  struct notes *notes = self;

  (void) opts;
  if (!checked (sandbox) ||
      coffer_remove_beneath (notes->folder, sandbox, 1, NULL) < 0)
    return coffer_fail_errno (call, checked (sandbox) ? errno : ENOENT,
                              "the sandbox");
  return COFFER_OK;
}

static int
open_sandbox (struct notes *notes, const char *sandbox)
{
  if (!checked (sandbox)) {
    errno = ENOENT;
    return -1;
  }
  return coffer_open_beneath (notes->folder, sandbox,
                              O_RDONLY | O_DIRECTORY, 0);
}

static int32_t
notes_write (struct coffer_call *call, void *self, const char *sandbox,
             const char *path, int32_t in,
             const struct coffer_file_write_opts *opts)
{
  coffer_autoclose int root = open_sandbox (self, sandbox);

  if (root < 0)
    return coffer_fail_errno (call, errno, "the sandbox");
  return coffer_files_write (call, root, path, in, opts);
}

static int32_t
notes_read (struct coffer_call *call, void *self, const char *sandbox,
            const char *path, int32_t out,
            const struct coffer_file_read_opts *opts)
{
  coffer_autoclose int root = open_sandbox (self, sandbox);

  if (root < 0)
    return coffer_fail_errno (call, errno, "the sandbox");
  return coffer_files_read (call, root, path, out, opts);
}

static int32_t
notes_stat (struct coffer_call *call, void *self, const char *sandbox,
            const char *path, const struct coffer_file_stat_opts *opts)
{
  coffer_autoclose int root = open_sandbox (self, sandbox);

  (void) opts;
  if (root < 0)
    return coffer_fail_errno (call, errno, "the sandbox");
  return coffer_files_stat (call, root, path);
}

static int32_t
notes_list (struct coffer_call *call, void *self, const char *sandbox,
            const char *path, const struct coffer_file_list_opts *opts)
{
  coffer_autoclose int root = open_sandbox (self, sandbox);

  if (root < 0)
    return coffer_fail_errno (call, errno, "the sandbox");
  return coffer_files_list (call, root, path, opts);
}

static int32_t
notes_mkdir (struct coffer_call *call, void *self, const char *sandbox,
             const char *path, const struct coffer_file_mkdir_opts *opts)
{
  coffer_autoclose int root = open_sandbox (self, sandbox);

  if (root < 0)
    return coffer_fail_errno (call, errno, "the sandbox");
  return coffer_files_mkdir (call, root, path, opts);
}

static int32_t
notes_remove (struct coffer_call *call, void *self, const char *sandbox,
              const char *path, const struct coffer_file_remove_opts *opts)
{
  coffer_autoclose int root = open_sandbox (self, sandbox);

  if (root < 0)
    return coffer_fail_errno (call, errno, "the sandbox");
  return coffer_files_remove (call, root, path, opts);
}

static int32_t
notes_rename (struct coffer_call *call, void *self, const char *sandbox,
              const char *from, const char *to,
              const struct coffer_file_rename_opts *opts)
{
  coffer_autoclose int root = open_sandbox (self, sandbox);

  (void) opts;
  if (root < 0)
    return coffer_fail_errno (call, errno, "the sandbox");
  return coffer_files_rename (call, root, from, to);
}

static const struct coffer_operations operations = {
  .size = sizeof operations,
  .open = notes_open,
  .close = notes_close,
  .probe = notes_probe,
  .sandbox_create = notes_create,
  .sandbox_info = notes_info,
  .sandbox_list = notes_list_all,
  .sandbox_kill = notes_kill,
  .file_write = notes_write,
  .file_read = notes_read,
  .file_stat = notes_stat,
  .file_list = notes_list,
  .file_mkdir = notes_mkdir,
  .file_remove = notes_remove,
  .file_rename = notes_rename,
};

COFFER_PROVIDER (notes, COFFER_THREADS_SERIAL, 0, operations)
