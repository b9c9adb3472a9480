/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of the host provider: requests to the sandbox's keeper. */

#define _GNU_SOURCE

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <coffer/buffer.h>
#include <coffer/fd.h>
#include <coffer/files.h>
#include <coffer/spec.h>

#include "host.h"

#define OPTION(opts, field) (COFFER_HAS (opts, field) ? (opts)->field : 0)

/* -- ids: "x1", "x2", … ---- */

static int
parse_exec (const char *text, uint32_t *number)
{
  unsigned long value = 0;

  if (!text || text[0] != 'x' || text[1] < '1' || text[1] > '9' ||
      strlen (text) > 10)
    return -1;
  for (const char *s = text + 1; *s; s++) {
    if (*s < '0' || *s > '9')
      return -1;
    value = value * 10 + (unsigned long) (*s - '0');
  }
  *number = (uint32_t) value;   /* at most nine digits */
  return 0;
}

static void
format_exec (uint32_t number, char text[16])
{
  snprintf (text, 16, "x%u", number);
}

static int32_t
fail_exec (struct coffer_call *call, int sys_errno)
{
  if (sys_errno == ENOENT || sys_errno == ECONNREFUSED ||
      sys_errno == ECONNRESET || sys_errno == EPIPE)
    return coffer_fail (call, COFFER_NOT_FOUND, "no such command");
  if (sys_errno == ESRCH)
    return coffer_fail (call, COFFER_CONFLICT, "the command has ended");
  return coffer_fail_errno (call, sys_errno, "the command");
}

/* A request about one command, with a reply that says only whether. */
static int32_t
ask_exec (struct coffer_call *call, const struct host *host,
          const char *sandbox, const char *exec,
          struct keeper_request *request, struct keeper_reply *reply)
{
  coffer_autoclose int folder = sandbox_open (host, sandbox);

  if (folder < 0)
    return fail_sandbox (call, errno, sandbox);
  if (parse_exec (exec, &request->exec) < 0)
    return fail_exec (call, ENOENT);
  if (keeper_ask (call, folder, request, NULL, 0, reply) < 0)
    return fail_exec (call, errno);
  return COFFER_OK;
}

/* -- starting ---- */

/* Sets flags and returns how many descriptors there are. */
static size_t
collect_fds (struct keeper_request *request, int block, int32_t in,
             int32_t out, int32_t err, int fds[KEEPER_FDS_MAX])
{
  size_t n = 0;

  fds[n++] = block;
  if (in >= 0) {
    request->flags |= KEEPER_EXEC_IN;
    fds[n++] = in;
  }
  if (out >= 0) {
    request->flags |= KEEPER_EXEC_OUT;
    fds[n++] = out;
  }
  if (err >= 0) {
    request->flags |= KEEPER_EXEC_ERR;
    fds[n++] = err;
  }
  return n;
}

static int
make_block (struct keeper_request *request, const char *const *argv,
            const char *const *env, const char *cwd, int tty)
{
  coffer_autobuffer struct coffer_buffer block = {0};

  request->argc = coffer_buffer_add_vector (&block, argv);
  if (tty)                      /* the least; what env says goes over it */
    request->envc = coffer_buffer_add_vector (
      &block, (const char *const[]) {"TERM=xterm", NULL});
  request->envc += coffer_buffer_add_vector (&block, env);
  coffer_buffer_add_vector (&block,
                            (const char *const[]) {cwd ? cwd : "", NULL});
  if (block.failed || block.size > KEEPER_BLOCK_MAX) {
    errno = block.failed ? ENOMEM : E2BIG;
    return -1;
  }
  return coffer_memfd_sealed ("coffer-command", block.data, block.size);
}

static int32_t
emit_started (struct coffer_call *call, const struct keeper_reply *reply,
              const char *const *argv)
{
  char id[16];
  const struct coffer_exec_info info = {
    .size = sizeof info, .exec = id,
    .state = reply->flags & KEEPER_EXITED ? "exited" : "running",
    .started_ns = reply->started_ns, .argv = argv,
  };

  format_exec (reply->exec, id);
  return coffer_emit_exec_info (call, &info);
}

int32_t
host_exec_start (struct coffer_call *call, void *self, const char *sandbox,
                 const char *const *argv, const char *const *env,
                 const char *cwd, int32_t in, int32_t out, int32_t err,
                 const struct coffer_exec_start_opts *opts)
{
  static const char *const kept[] = {
    "timeout_ms", "tty", "rows", "columns", "output_cap_bytes", NULL,
  };
  int tty = OPTION (opts, tty) != 0, fds[KEEPER_FDS_MAX];
  coffer_autoclose int folder = -1, block = -1;
  struct keeper_request request = {
    .op = KEEPER_EXEC, .timeout_ms = OPTION (opts, timeout_ms),
    .rows = OPTION (opts, rows), .columns = OPTION (opts, columns),
    .flags = tty ? KEEPER_EXEC_TTY : 0,
  };
  struct keeper_reply reply;
  int32_t code = coffer_exec_check (call, argv, cwd, in, opts, kept);
  size_t n;

  if (code != COFFER_OK)
    return code;
  folder = sandbox_open (self, sandbox);
  if (folder < 0)
    return fail_sandbox (call, errno, sandbox);
  block = make_block (&request, argv, env, cwd, tty);
  if (block < 0)
    return coffer_fail_errno (call, errno, "the command's arguments");
  n = collect_fds (&request, block, in, out, err, fds);
  if (keeper_ask (call, folder, &request, fds, n, &reply) < 0) {
    if (errno == EBUSY)
      return coffer_fail (call, COFFER_CONFLICT, "the sandbox was made for a "
                          "single command");
    return fail_sandbox (call, errno, sandbox);
  }
  return emit_started (call, &reply, argv);
}

/* -- the end of one ---- */

static void
describe_failure (const struct keeper_reply *reply, char *text, size_t size)
{
  static const char *const stages[] = {
    "the command could not be started", "the command could not be set up",
    "the working folder", "the program",
  };
  uint32_t stage = reply->failure_stage < 4 ? reply->failure_stage : 0;
  const char *why = strerrordesc_np (reply->failure_errno);

  snprintf (text, size, "%s: %s", stages[stage], why ? why : "unknown error");
}

int32_t
host_exec_wait (struct coffer_call *call, void *self, const char *sandbox,
                const char *exec, const struct coffer_exec_wait_opts *opts)
{
  struct keeper_request request = {.op = KEEPER_WAIT};
  struct keeper_reply reply;
  char failure[128];
  int32_t code;
  struct coffer_exec_exit record = {.size = sizeof record, .exec = exec};

  (void) opts;
  code = ask_exec (call, self, sandbox, exec, &request, &reply);
  if (code != COFFER_OK)
    return code;
  record.code = reply.code;
  record.signal = reply.signal;
  record.timed_out = (reply.flags & KEEPER_TIMED_OUT) != 0;
  record.duration_us = reply.duration_us;
  record.cpu_us = reply.cpu_us;
  record.killed = reply.killed;
  record.failure_errno = reply.failure_errno;
  if (reply.failure_errno) {
    describe_failure (&reply, failure, sizeof failure);
    record.failure = failure;
  }
  return coffer_emit_exec_exit (call, &record);
}

/* -- the others ---- */

int32_t
host_exec_list (struct coffer_call *call, void *self, const char *sandbox,
                const struct coffer_exec_list_opts *opts)
{
  struct keeper_request request = {.op = KEEPER_LIST};
  coffer_autoclose int folder = sandbox_open (self, sandbox), connection = -1;
  int32_t code = COFFER_OK;
  struct keeper_reply reply;

  (void) opts;
  if (folder < 0 || (connection = keeper_connect (folder)) < 0 ||
      keeper_send (connection, &request, NULL, 0) < 0)
    return fail_sandbox (call, errno, sandbox);
  while (code == COFFER_OK) {
    if (keeper_receive (connection, &reply, call->deadline_ns,
                        call->cancel_fd) < 0)
      return fail_sandbox (call, errno, sandbox);
    if (reply.flags & KEEPER_LAST)
      break;
    code = emit_started (call, &reply, NULL);
  }
  return code;
}

int32_t
host_exec_signal (struct coffer_call *call, void *self, const char *sandbox,
                  const char *exec, int32_t number,
                  const struct coffer_exec_signal_opts *opts)
{
  struct keeper_request request = {.op = KEEPER_SIGNAL, .signal = number};
  struct keeper_reply reply;

  (void) opts;
  if (number < 0 || number >= NSIG)
    return coffer_fail (call, COFFER_INVALID, "no such signal");
  return ask_exec (call, self, sandbox, exec, &request, &reply);
}

int32_t
host_exec_resize (struct coffer_call *call, void *self, const char *sandbox,
                  const char *exec, uint32_t rows, uint32_t columns,
                  const struct coffer_exec_resize_opts *opts)
{
  struct keeper_request request = {.op = KEEPER_RESIZE, .rows = rows,
                                   .columns = columns};
  struct keeper_reply reply;

  (void) opts;
  if (rows < 1 || rows > 4096 || columns < 1 || columns > 4096)
    return coffer_fail (call, COFFER_INVALID, "rows and columns are 1 to 4096");
  return ask_exec (call, self, sandbox, exec, &request, &reply);
}

/* The command reads the very pipe that the host writes: its end is the host's
 * to close, and nobody else holds one. */
int32_t
host_exec_stdin_close (struct coffer_call *call, void *self,
                       const char *sandbox, const char *exec,
                       const struct coffer_exec_stdin_close_opts *opts)
{
  struct keeper_request request = {.op = KEEPER_SIGNAL, .signal = 0};
  struct keeper_reply reply;

  (void) opts;
  return ask_exec (call, self, sandbox, exec, &request, &reply);
}
