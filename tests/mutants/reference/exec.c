/* SPDX-License-Identifier: Apache-2.0 */
/* Commands: started by the keeper, then asked of their minders; how one ended,
 * and what one in the background wrote, lies in the command's folder. */

#define _GNU_SOURCE

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <coffer/buffer.h>
#include <coffer/fd.h>
#include <coffer/files.h>
#include <coffer/path.h>

#include "reference.h"

/* -- ids: "x1", "x2", … ---- */

static void
format_exec (uint32_t number, char text[16])
{
  snprintf (text, 16, "x%u", number);
}

static int
is_number (const char *s)
{
  return s[0] >= '1' && s[0] <= '9' && strlen (s) <= 9
         && strspn (s, "0123456789") == strlen (s);
}

/* The folder of a command that the sandbox knows. */
static int32_t
open_exec (struct coffer_call *call, const struct reference *self,
           const char *sandbox, const char *exec, int *out)
{
  coffer_autoclose int folder = sandbox_open (self, sandbox);
  char path[32];

  if (folder < 0)
    return fail_sandbox (call, errno);
  if (exec[0] != 'x' || !is_number (exec + 1))
    return coffer_fail (call, COFFER_NOT_FOUND, "no such command");
  snprintf (path, sizeof path, EXECS "/%s", exec + 1);
  *out = coffer_open_beneath (folder, path, O_RDONLY | O_DIRECTORY, 0);
  if (*out < 0)
    return errno == ENOENT ?
      coffer_fail (call, COFFER_NOT_FOUND, "no such command") :
      coffer_fail_errno (call, errno, "the command");
  return COFFER_OK;
}

/* Its minder has gone, and so has the command. */
static int
is_over (int sys_errno)
{
  return sys_errno == ECONNREFUSED || sys_errno == ECONNRESET
         || sys_errno == EPIPE || sys_errno == ENOENT;
}

/* A request about a command that must still run. */
static int32_t
ask_minder (struct coffer_call *call, const struct reference *self,
            const char *sandbox, const char *exec, struct request *request)
{
  coffer_autoclose int folder = -1;
  struct reply reply;
  int32_t code = open_exec (call, self, sandbox, exec, &folder);

  if (code != COFFER_OK)
    return code;
  if (ask (call, folder, MINDER_SOCKET, request, NULL, 0, &reply) == 0)
    return COFFER_OK;
  if (is_over (errno) || errno == ESRCH)
    return coffer_fail (call, COFFER_CONFLICT, "the command has ended");
  if (errno == ESTALE)
    return coffer_fail (call, COFFER_CONFLICT, "the sandbox is paused: resume "
                        "it first");
  if (errno == ENOTTY)
    return coffer_fail (call, COFFER_CONFLICT, "the command has no terminal");
  return coffer_fail_errno (call, errno, "the command");
}

/* -- starting ---- */

static int32_t
check_start (struct coffer_call *call, const char *const *argv,
             const char *cwd, int32_t in,
             const struct coffer_exec_start_opts *opts)
{
  if (!argv || !argv[0])
    return coffer_fail (call, COFFER_INVALID, "argv is empty");
  if (cwd && cwd[0] != '/')
    return coffer_fail (call, COFFER_INVALID, "cwd must be absolute");
  if (OPTION (opts, user))
    return coffer_fail (call, COFFER_UNSUPPORTED, "user: commands run as the "
                        "caller");
  if (OPTION (opts, warm) && (opts->tty || opts->background))
    return coffer_fail (call, COFFER_UNSUPPORTED, "warm: in the foreground, "
                        "and on no terminal");
  if (OPTION (opts, tty) && in < 0)
    return coffer_fail (call, COFFER_INVALID, "tty: no terminal is given");
  if (OPTION (opts, rows) > 4096 || OPTION (opts, columns) > 4096)
    return coffer_fail (call, COFFER_INVALID, "rows and columns are at most "
                        "4096");
  return COFFER_OK;
}

static int
make_block (struct request *request, const char *const *argv,
            const char *const *env, const char *cwd)
{
  coffer_autobuffer struct coffer_buffer block = {0};

  request->argc = coffer_buffer_add_vector (&block, argv);
  if (request->flags & START_TTY)       /* the least; env goes over it */
    request->envc = coffer_buffer_add_vector (
      &block, (const char *const[]) {"TERM=xterm", NULL});
  request->envc += coffer_buffer_add_vector (&block, env);
  coffer_buffer_add_vector (&block,
                            (const char *const[]) {cwd ? cwd : "", NULL});
  if (block.failed || block.size > BLOCK_MAX) {
    errno = block.failed ? ENOMEM : E2BIG;
    return -1;
  }
  return coffer_memfd_sealed ("command", block.data, block.size);
}

/* The block first, then the streams that there are, each with its flag. */
static size_t
collect_fds (struct request *request, int block, const int32_t streams[3],
             int fds[REQUEST_FDS_MAX])
{
  static const uint32_t flags[3] = {START_IN, START_OUT, START_ERR};
  size_t n = 0;

  fds[n++] = block;
  for (int i = 0; i < 3; i++) {
    if (streams[i] < 0 || (i > 0 && request->flags & START_BACKGROUND))
      continue;
    request->flags |= flags[i];
    fds[n++] = streams[i];
  }
  return n;
}

static int32_t
emit_exec (struct coffer_call *call, uint32_t number, int running,
           const struct begun *begun, const char *const *argv)
{
  char id[16];
  const struct coffer_exec_info info = {
    .size = sizeof info, .exec = id, .state = running ? "running" : "exited",
    .started_ns = begun->started_ns, .background = begun->background,
    .argv = argv,
  };

  format_exec (number, id);
  return coffer_emit_exec_info (call, &info);
}

int32_t
reference_exec_start (struct coffer_call *call, void *self,
                      const char *sandbox, const char *const *argv,
                      const char *const *env, const char *cwd, int32_t in,
                      int32_t out, int32_t err,
                      const struct coffer_exec_start_opts *opts)
{
  struct request request = {
    .op = ASK_START, .timeout_ms = OPTION (opts, timeout_ms),
    .rows = OPTION (opts, rows), .columns = OPTION (opts, columns),
    .cap_bytes = OPTION (opts, output_cap_bytes),
    .flags = (OPTION (opts, tty) ? START_TTY : 0)
             | (OPTION (opts, background) ? START_BACKGROUND : 0),
  };
  coffer_autostrings struct coffer_strings warm = {0};
  coffer_autoclose int folder = -1, block = -1;
  int fds[REQUEST_FDS_MAX];
  struct reply reply;
  int32_t code = check_start (call, argv, cwd, in, opts);
  size_t n;

  if (code != COFFER_OK)
    return code;
  if (OPTION (opts, warm)) {
    if (warm_command (self, opts->warm, "", &warm) < 0)
      return coffer_fail (call, COFFER_NOT_FOUND, "no such handle");
    argv = coffer_strings_view (&warm);
  }
  folder = sandbox_open (self, sandbox);
  if (folder < 0)
    return fail_sandbox (call, errno);
  block = make_block (&request, argv, env, cwd);
  if (block < 0)
    return coffer_fail_errno (call, errno, "the command's arguments");
  n = collect_fds (&request, block, (const int32_t[]) {in, out, err}, fds);
  if (ask (call, folder, KEEPER_SOCKET, &request, fds, n, &reply) < 0) {
    if (errno == EBUSY)
      return coffer_fail (call, COFFER_CONFLICT, "the sandbox was made for a "
                          "single command");
    return fail_sandbox (call, errno);
  }
  return emit_exec (call, reply.exec, 1,
                    &(struct begun) {.started_ns = reply.started_ns,
                                     .background = OPTION (opts, background)},
                    argv);
}

/* -- its end ---- */

static void
describe_failure (const struct ended *ended, char *text, size_t size)
{
  static const char *const stages[] = {
    "the command could not be started", "the command could not be set up",
    "the working folder", "the program",
  };
  const char *why = strerrordesc_np (ended->failure_errno);

  snprintf (text, size, "%s: %s",
            stages[ended->failure_stage < 4 ? ended->failure_stage : 0],
            why ? why : "unknown error");
}

static int32_t
emit_exit (struct coffer_call *call, const char *exec,
           const struct ended *ended)
{
  char failure[128];
  struct coffer_exec_exit record = {
    .size = sizeof record, .exec = exec, .code = ended->code,
    .signal = ended->signal, .timed_out = ended->timed_out,
    .duration_us = ended->duration_us, .cpu_us = ended->cpu_us,
    .killed = ended->killed, .failure_errno = ended->failure_errno,
  };

  if (ended->failure_errno) {
    describe_failure (ended, failure, sizeof failure);
    record.failure = failure;
  }
  return coffer_emit_exec_exit (call, &record);
}

/* A minder writes `exit` before it answers.  One that has gone without was
 * killed, and what it minded with it. */
int32_t
reference_exec_wait (struct coffer_call *call, void *self,
                     const char *sandbox, const char *exec,
                     const struct coffer_exec_wait_opts *opts)
{
  struct request request = {.op = ASK_WAIT};
  struct ended ended = {.code = -1, .signal = SIGKILL};
  coffer_autoclose int folder = -1;
  struct reply reply;
  int32_t code = open_exec (call, self, sandbox, exec, &folder);

  (void) opts;
  if (code != COFFER_OK)
    return code;
  if (ask (call, folder, MINDER_SOCKET, &request, NULL, 0, &reply) < 0
      && !is_over (errno))
    return coffer_fail_errno (call, errno, "waiting for the command");
  if (file_load (folder, EXIT, &ended, sizeof ended) < 0 && errno != ENOENT)
    return coffer_fail_errno (call, errno, "how the command ended");
  return emit_exit (call, exec, &ended);
}

/* -- the others ---- */

static int32_t
list_one (struct coffer_call *call, int execs, const char *name)
{
  coffer_autoclose int folder = coffer_open_beneath (execs, name, O_RDONLY
                                                     | O_DIRECTORY, 0);
  struct begun begun;
  struct ended ended;

  if (folder < 0 || file_load (folder, BEGUN, &begun, sizeof begun) < 0)
    return COFFER_OK;           /* it is only being made, or removed */
  return emit_exec (call, (uint32_t) strtoul (name, NULL, 10),
                    file_load (folder, EXIT, &ended, sizeof ended) < 0, &begun,
                    NULL);
}

int32_t
reference_exec_list (struct coffer_call *call, void *self,
                     const char *sandbox,
                     const struct coffer_exec_list_opts *opts)
{
  coffer_autoclose int folder = sandbox_open (self, sandbox);
  int fd = folder < 0 ? -1 : coffer_open_beneath (folder, EXECS, O_RDONLY
                                                  | O_DIRECTORY, 0);
  DIR *stream = fd < 0 ? NULL : fdopendir (fd);
  int32_t code = COFFER_OK;
  struct dirent *entry;

  (void) opts;
  if (!stream) {
    code = fail_sandbox (call, errno);
    coffer_fd_close (&fd);
    return code;
  }
  while (code == COFFER_OK && (entry = readdir (stream)))
    if (is_number (entry->d_name))
      code = list_one (call, fd, entry->d_name);
  closedir (stream);
  return code;
}

int32_t
reference_exec_signal (struct coffer_call *call, void *self,
                       const char *sandbox, const char *exec, int32_t number,
                       const struct coffer_exec_signal_opts *opts)
{
  struct request request = {.op = ASK_SIGNAL, .signal = number};

  (void) opts;
  if (number < 0 || number >= NSIG)
    return coffer_fail (call, COFFER_INVALID, "no such signal");
  return ask_minder (call, self, sandbox, exec, &request);
}

int32_t
reference_exec_resize (struct coffer_call *call, void *self,
                       const char *sandbox, const char *exec, uint32_t rows,
                       uint32_t columns,
                       const struct coffer_exec_resize_opts *opts)
{
  struct request request = {.op = ASK_RESIZE, .rows = rows,
                            .columns = columns};

  (void) opts;
  if (rows < 1 || rows > 4096 || columns < 1 || columns > 4096)
    return coffer_fail (call, COFFER_INVALID, "rows and columns are 1 to 4096");
  return ask_minder (call, self, sandbox, exec, &request);
}

/* The command reads the very pipe that the host writes: its end is the host's
 * to close, and nobody else holds one. */
int32_t
reference_exec_stdin_close (struct coffer_call *call, void *self,
                            const char *sandbox, const char *exec,
                            const struct coffer_exec_stdin_close_opts *opts)
{
  struct request request = {.op = ASK_SIGNAL, .signal = 0};

  (void) opts;
  return ask_minder (call, self, sandbox, exec, &request);
}

/* -- output of one in the background ---- */

/* All that there is from where we are. */
static int
give (struct coffer_call *call, const int files[2], const int32_t to[2])
{
  uint64_t copied;

  for (int i = 0; i < 2; i++)
    if (to[i] >= 0
        && coffer_copy (files[i], to[i], 0, call->deadline_ns,
                        call->cancel_fd, &copied) < 0)
      return -1;
  return 0;
}

/* Until the minder says that this was the last, or has gone. */
static int
follow (struct coffer_call *call, int folder, const int files[2],
        const int32_t to[2])
{
  struct request request = {.op = ASK_FOLLOW};
  coffer_autoclose int connection = coffer_socket_connect (folder,
                                                           MINDER_SOCKET, 0);
  struct reply reply = {0};

  if (connection < 0 || request_send (connection, &request, NULL, 0) < 0) {
    if (!is_over (errno))
      return -1;
    reply.last = 1;
  }
  while (give (call, files, to) == 0) {
    if (reply.last)
      return 0;
    if (reply_receive (call, connection, &reply) < 0) {
      if (!is_over (errno))
        return -1;
      reply.last = 1;
    }
  }
  return -1;
}

static void
log_dropped (struct coffer_call *call, int folder)
{
  struct ended ended;
  char text[96];

  if (file_load (folder, EXIT, &ended, sizeof ended) < 0 || !ended.dropped)
    return;
  snprintf (text, sizeof text, "%llu bytes of output beyond the cap were not "
            "kept", (unsigned long long) ended.dropped);
  coffer_log (call, COFFER_LOG_WARNING, text);
}

int32_t
reference_exec_attach (struct coffer_call *call, void *self,
                       const char *sandbox, const char *exec, int32_t out,
                       int32_t err, const struct coffer_exec_attach_opts *opts)
{
  coffer_autoclose int folder = -1, kept_out = -1, kept_err = -1;
  int32_t code = open_exec (call, self, sandbox, exec, &folder);
  struct begun begun;

  (void) opts;
  if (code != COFFER_OK)
    return code;
  if (file_load (folder, BEGUN, &begun, sizeof begun) < 0)
    return coffer_fail_errno (call, errno, "the command");
  if (!begun.background)
    return coffer_fail (call, COFFER_CONFLICT, "the command does not run in "
                        "the background");
  kept_out = coffer_open_regular (folder, "out", NULL);
  kept_err = coffer_open_regular (folder, "err", NULL);
  if (kept_out < 0 || kept_err < 0
      || follow (call, folder, (const int[]) {kept_out, kept_err},
                 (const int32_t[]) {out, err}) < 0)
    return coffer_fail_errno (call, errno, "kept output");
  log_dropped (call, folder);
  return COFFER_OK;
}
