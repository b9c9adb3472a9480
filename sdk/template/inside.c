/* SPDX-License-Identifier: Apache-2.0 */
/* What happens inside a sandbox: commands and files.  The helpers of
 * libcoffer-provider.a do the work, the sandbox says where. */

#include <coffer/files.h>
#include <coffer/path.h>

#include "example.h"

/* Finds the sandbox `id`, does something with it, lets go of it. */
#define WITH_SANDBOX(expression)                                              \
  struct coffer_sandbox *sandbox;                                             \
  int32_t code = coffer_sandboxes_find (call, self, id, &sandbox);            \
                                                                              \
  (void) opts;                                                                \
  if (code != COFFER_OK)                                                      \
    return code;                                                              \
  code = expression;                                                          \
  coffer_sandbox_put (sandbox);                                               \
  return code

/* -- commands ---- */

static void
set_all (struct coffer_strings *env, const char *const *entries)
{
  for (; entries && *entries; entries++)
    coffer_strings_set (env, *entries);
}

/* The least that programs expect, then the sandbox's, then the command's. */
static int32_t
start_in (struct coffer_call *call, const struct coffer_sandbox *sandbox,
          struct coffer_process *process,
          const struct coffer_exec_start_opts *opts)
{
  static const char *const least[] = {"PATH=/usr/local/bin:/usr/bin:/bin",
                                      "LANG=C.UTF-8", NULL};
  coffer_autostrings struct coffer_strings env = {0};

  set_all (&env, least);
  coffer_strings_printf (&env, "HOME=%s", sandbox->path);
  coffer_strings_printf (&env, "TMPDIR=%s", sandbox->path);
  set_all (&env, coffer_strings_view (&sandbox->env));
  set_all (&env, process->env);
  if (env.failed)
    return coffer_fail (call, COFFER_LIMIT, "out of memory");
  process->env = coffer_strings_view (&env);
  if (!process->cwd)
    process->cwd = sandbox->workdir;
  return coffer_commands_start (call, sandbox->commands, process, opts);
}

/* An option that is set is a demand: what this cannot do is refused. */
int32_t
exec_start (struct coffer_call *call, void *self, const char *id,
            const char *const *argv, const char *const *env, const char *cwd,
            int32_t in, int32_t out, int32_t err,
            const struct coffer_exec_start_opts *opts)
{
  struct coffer_process process = {
    .argv = argv, .env = env, .cwd = cwd, .in = in, .out = out, .err = err,
  };

  if (!argv || !argv[0])
    return coffer_fail (call, COFFER_INVALID, "argv is empty");
  if (cwd && cwd[0] != '/')
    return coffer_fail (call, COFFER_INVALID, "cwd must be absolute");
  if (opts && (opts->user || opts->tty || opts->background || opts->warm))
    return coffer_fail (call, COFFER_UNSUPPORTED, "user, tty, background, "
                        "warm: commands run as the caller, on pipes");
  WITH_SANDBOX (start_in (call, sandbox, &process, opts));
}

int32_t
exec_wait (struct coffer_call *call, void *self, const char *id,
           const char *exec, const struct coffer_exec_wait_opts *opts)
{
  WITH_SANDBOX (coffer_commands_wait (call, sandbox->commands, exec));
}

int32_t
exec_list (struct coffer_call *call, void *self, const char *id,
           const struct coffer_exec_list_opts *opts)
{
  WITH_SANDBOX (coffer_commands_list (call, sandbox->commands));
}

int32_t
exec_signal (struct coffer_call *call, void *self, const char *id,
             const char *exec, int32_t number,
             const struct coffer_exec_signal_opts *opts)
{
  WITH_SANDBOX (coffer_commands_signal (call, sandbox->commands, exec,
                                        number));
}

/* The command reads the very pipe that the host writes: closing it is the
 * host's.  Here it is only seen that there is such a command. */
int32_t
exec_stdin_close (struct coffer_call *call, void *self, const char *id,
                  const char *exec,
                  const struct coffer_exec_stdin_close_opts *opts)
{
  WITH_SANDBOX (coffer_commands_signal (call, sandbox->commands, exec, 0));
}

/* -- files ---- */

/* Paths are relative to the sandbox's folder, or begin with its own.  They are
 * looked up without following links, and never above it. */
#define WITH_PATH(expression)                                                 \
  WITH_SANDBOX (!(path = coffer_path_below (sandbox->path, path))             \
                  ? coffer_fail (call, COFFER_DENIED, "not below the "        \
                                 "workspace: begin with no slash")            \
                  : expression)

int32_t
file_read (struct coffer_call *call, void *self, const char *id,
           const char *path, int32_t out,
           const struct coffer_file_read_opts *opts)
{
  WITH_PATH (coffer_files_read (call, sandbox->folder, path, out, opts));
}

int32_t
file_write (struct coffer_call *call, void *self, const char *id,
            const char *path, int32_t in,
            const struct coffer_file_write_opts *opts)
{
  WITH_PATH (coffer_files_write (call, sandbox->folder, path, in, opts));
}

int32_t
file_stat (struct coffer_call *call, void *self, const char *id,
           const char *path, const struct coffer_file_stat_opts *opts)
{
  WITH_PATH (coffer_files_stat (call, sandbox->folder, path));
}

int32_t
file_list (struct coffer_call *call, void *self, const char *id,
           const char *path, const struct coffer_file_list_opts *opts)
{
  WITH_PATH (coffer_files_list (call, sandbox->folder, path, opts));
}

int32_t
file_mkdir (struct coffer_call *call, void *self, const char *id,
            const char *path, const struct coffer_file_mkdir_opts *opts)
{
  WITH_PATH (coffer_files_mkdir (call, sandbox->folder, path, opts));
}

int32_t
file_remove (struct coffer_call *call, void *self, const char *id,
             const char *path, const struct coffer_file_remove_opts *opts)
{
  WITH_PATH (coffer_files_remove (call, sandbox->folder, path, opts));
}

static int32_t
rename_in (struct coffer_call *call, const struct coffer_sandbox *sandbox,
           const char *from, const char *to)
{
  from = coffer_path_below (sandbox->path, from);
  to = coffer_path_below (sandbox->path, to);
  if (!from || !to)
    return coffer_fail (call, COFFER_DENIED, "not below the workspace");
  return coffer_files_rename (call, sandbox->folder, from, to);
}

int32_t
file_rename (struct coffer_call *call, void *self, const char *id,
             const char *from, const char *to,
             const struct coffer_file_rename_opts *opts)
{
  WITH_SANDBOX (rename_in (call, sandbox, from, to));
}
