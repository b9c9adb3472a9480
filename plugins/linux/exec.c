/* SPDX-License-Identifier: Apache-2.0 */
/* Commands: what is asked of the init, and what its answers mean. */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "linux.h"

#define INLINE_MAX 48000        /* bytes of strings in the packet itself */

static const struct coffer_exec_start_opts no_opts = { sizeof no_opts };

/* ---- ids ---------------------------------------------------------------- */

static void
exec_name (char out[16], uint32_t exec)
{
  snprintf (out, 16, "e%" PRIu32, exec);
}

int32_t
exec_number (struct coffer_call *call, const char *name, uint32_t *out)
{
  unsigned long value = 0;
  char *end = NULL;

  if (name != NULL && name[0] == 'e' && name[1] >= '1' && name[1] <= '9') {
    errno = 0;
    value = strtoul (name + 1, &end, 10);
    if (errno == 0 && *end == '\0' && value <= UINT32_MAX) {
      *out = (uint32_t) value;
      return COFFER_OK;
    }
  }
  return coffer_fail (call, COFFER_NOT_FOUND, "no command has such an id");
}

int32_t
exec_ask_failed (struct coffer_call *call, const char *exec)
{
  if (errno == ENOENT)
    return fail_with (call, COFFER_NOT_FOUND, "command %.32s is not known",
                      exec);
  if (errno == ESRCH)
    return fail_with (call, COFFER_CONFLICT, "command %.32s has ended", exec);
  if (errno == ESTALE)
    return coffer_fail (call, COFFER_CONFLICT,
                        "the sandbox is paused; resume it first");
  return sandbox_ask_failed (call, "asking the sandbox's init");
}

/* One request about one command. */
static int32_t
command_ask (struct linux_provider *self, struct coffer_call *call,
             const char *sandbox, const char *exec, uint16_t type,
             struct init_command *body)
{
  struct request request
    = { .type = type, .body = body, .size = sizeof *body };
  auto_link struct link link = { .fd = -1 };
  coffer_unfilled struct reply reply;
  int32_t code;

  body->size = sizeof *body;
  code = exec_number (call, exec, &body->exec);
  if (code == COFFER_OK)
    code = sandbox_reach (self, call, sandbox, &link);
  if (code != COFFER_OK)
    return code;
  if (link_ask (&link, &request, &reply, call) == -1)
    return exec_ask_failed (call, exec);
  return COFFER_OK;
}

/* ---- start -------------------------------------------------------------- */

static uint32_t
strings_add (struct coffer_buffer *strings, const char *const *list)
{
  uint32_t n = 0;

  for (; list != NULL && list[n] != NULL; n++)
    coffer_buffer_add (strings, list[n], strlen (list[n]) + 1);
  return n;
}

static int32_t
start_check (struct coffer_call *call, const char *const *argv,
             const char *cwd, int32_t in,
             const struct coffer_exec_start_opts *opts)
{
  if (argv == NULL || argv[0] == NULL)
    return coffer_fail (call, COFFER_INVALID, "argv: empty");
  if (cwd != NULL && cwd[0] != '/')
    return coffer_fail (call, COFFER_INVALID, "cwd: not absolute");
  if (opts->warm != NULL && (opts->tty || opts->background))
    return coffer_fail (call, COFFER_UNSUPPORTED,
                        "warm: in the foreground, and on no terminal");
  if (opts->user != NULL && strcmp (opts->user, "user") != 0
      && strcmp (opts->user, "1000") != 0)
    return coffer_fail (call, COFFER_UNSUPPORTED,
                        "user: only user (1000) is inside");
  if (opts->tty && in < 0)
    return coffer_fail (call, COFFER_INVALID, "tty: no terminal is given");
  if (opts->rows > 4096 || opts->columns > 4096)
    return coffer_fail (call, COFFER_INVALID, "rows and columns: up to 4096");
  return COFFER_OK;
}

static void
start_fill (struct init_exec *body, const struct coffer_exec_start_opts *opts,
            const int32_t streams[3], struct request *request, int *fds)
{
  static const uint32_t flags[3] = { EXEC_IN, EXEC_OUT, EXEC_ERR };
  int i;

  body->size = sizeof *body;
  body->flags |= (opts->tty ? EXEC_TTY : 0u)
                 | (opts->background ? EXEC_BACKGROUND : 0u);
  body->timeout_ns = opts->timeout_ms > UINT64_C (1) << 40
    ? 0 : opts->timeout_ms * 1000000;
  body->output_cap = opts->output_cap_bytes;
  body->rows = opts->rows;
  body->columns = opts->columns;
  for (i = 0; i < 3; i++)
    if (streams[i] >= 0 && (i == 0 || !opts->background)) {
      body->flags |= flags[i];
      fds[request->n_fds++] = streams[i];
    }
}

/* Root's pipes and terminals belong to root: as /dev/stdout they could not be
 * opened by the sandbox's user.  What has a name on a disk stays as it is, and
 * so does a terminal that is not made for this command. */
static void
streams_give (struct linux_provider *self, const char *sandbox,
              const int32_t streams[3], int tty)
{
  struct statfs fs;
  struct stat st;
  struct ids ids;
  int i;

  if (sandbox_ids (self, sandbox, &ids) == -1 || !ids.privileged)
    return;
  for (i = 0; i < 3; i++) {
    if (streams[i] < 0 || fstat (streams[i], &st) == -1 || st.st_uid != 0
        || fstatfs (streams[i], &fs) == -1)
      continue;
    if ((S_ISFIFO (st.st_mode) && fs.f_type == PIPEFS_MAGIC)
        || (tty && S_ISCHR (st.st_mode) && fs.f_type == DEVPTS_SUPER_MAGIC))
      /* Without it the stream still works, only not by a name. */
      (void) !fchown (streams[i], ids.uid, ids.gid);
  }
}

static int32_t
started_emit (struct coffer_call *call, const struct init_exit *started,
              const char *const *argv)
{
  struct coffer_exec_info info = { sizeof info };
  char name[16];

  exec_name (name, started->exec);
  info.exec = name;
  info.state = started->flags & EXIT_RUNNING ? "running" : "exited";
  info.started_ns = started->started_ns;
  info.argv = argv;
  info.background = (started->flags & EXIT_BACKGROUND) != 0;
  return coffer_emit_exec_info (call, &info);
}

static int32_t
start_failed (struct coffer_call *call)
{
  if (errno == EOPNOTSUPP)
    return coffer_fail (call, COFFER_CONFLICT, WARM_INTO);
  if (errno == EEXIST)
    return coffer_fail (call, COFFER_CONFLICT,
                        "warm: a command was started in this sandbox before");
  if (errno == EBUSY)
    return coffer_fail (call, COFFER_CONFLICT,
                        "this sandbox was made for one command in the "
                        "foreground");
  if (errno == EAGAIN)
    return fail_with (call, COFFER_LIMIT, "at most %d commands at once",
                      INIT_EXECS_MAX);
  return exec_ask_failed (call, "");
}

/* The strings, in the packet or, where they are many, beside it. */
static int32_t
strings_give (struct coffer_call *call, const struct coffer_buffer *strings,
              struct init_exec *body, struct request *request, int *fds,
              int *block)
{
  if (strings->failed || strings->size > INIT_BLOCK_MAX)
    return coffer_fail (call, COFFER_LIMIT,
                        "argv and env: 8 MiB together at most");
  body->strings_size = (uint32_t) strings->size;
  if (strings->size <= INLINE_MAX) {
    request->more = strings->data;
    request->more_size = strings->size;
    return COFFER_OK;
  }
  *block = coffer_memfd_sealed ("arguments", strings->data, strings->size);
  if (*block < 0)
    return coffer_fail_errno (call, errno, "the arguments");
  body->flags |= EXEC_BLOCK;
  fds[request->n_fds++] = *block;
  return COFFER_OK;
}

/* One that stands ready: *asked is who was to make the copy. */
static int32_t
warm_start (struct linux_provider *self, struct coffer_call *call,
            struct warm *warm, struct link *link, struct request *request,
            struct init_exec *body, int *fds, pid_t *asked)
{
  int32_t code = warm_fits (call, link->sb);
  unsigned waits;

  if (code != COFFER_OK)
    return code;
  request->type = INIT_WARM;
  waits = link->shared ? link->sb->ahead : 0;
  if (waits != 0)
    link->sb->ahead = 0;
  if (waits != warm->number)
    return warm_send (self, call, warm, link, request, fds, asked);
  *asked = link->sb->ahead_of;
  body->flags |= EXEC_AHEAD;
  return link_send (link, request, call) == -1 ? start_failed (call)
                                               : COFFER_OK;
}

/* All that one start holds. */
struct starting {
  struct linux_provider *self;
  struct coffer_buffer strings;
  struct link link;
  int block;
  struct warm *warm;
  pid_t asked;
};

static void
starting_fini (struct starting *starting)
{
  coffer_buffer_free (&starting->strings);
  link_close (&starting->link);
  coffer_fd_close (&starting->block);
  warm_leave (starting->self, starting->warm);
}
#define auto_starting __attribute__ ((cleanup (starting_fini)))

/* With the connection taken. */
static int32_t
start_ask (struct starting *starting, struct coffer_call *call,
           const char *sandbox, struct request *request,
           struct init_exec *body, int *fds, struct init_exit *started)
{
  struct link *link = &starting->link;
  const int told = link->shared && link->sb->single;
  coffer_unfilled struct reply reply;
  struct cgroup_denials denials;
  int32_t code = COFFER_OK;

  /* In one that was made for one command there was nobody before it. */
  if (!told
      && cgroup_denials_of (starting->self, sandbox, &denials) == 0) {
    body->marks[0] = denials.oom_kills;
    body->marks[1] = denials.pids_denied;
  }
  /* Its end is told without being asked for, and the sandbox goes with it. */
  if (told)
    body->flags |= EXEC_TELL;
  if (starting->warm != NULL)
    code = warm_start (starting->self, call, starting->warm, link, request,
                       body, fds, &starting->asked);
  else if (link_send (link, request, call) == -1)
    code = start_failed (call);
  if (code != COFFER_OK)
    return code;
  if (link_answer (link, request, &reply, call) == -1
      || reply_body (&reply, started, sizeof *started) == -1)
    return start_failed (call);
  if (starting->warm != NULL && started->failure_step == STEP_ENTER
      && started->failure_errno == ETIMEDOUT)
    warm_stuck (starting->warm, starting->asked);
  if (told)
    link->sb->told_serial = link->serial;
  return COFFER_OK;
}

int32_t
linux_exec_start (struct coffer_call *call, void *self, const char *sandbox,
                  const char *const *argv, const char *const *env,
                  const char *cwd, int32_t in, int32_t out, int32_t err,
                  const struct coffer_exec_start_opts *opts)
{
  const int32_t streams[3] = { in, out, err };
  auto_starting struct starting starting
    = { .self = self, .link = { .fd = -1 }, .block = -1 };
  struct init_exec body = { 0 };
  struct init_exit started;
  int fds[5];
  struct request request = { .type = INIT_EXEC, .body = &body,
                             .size = sizeof body, .fds = fds };
  int32_t code;

  opts = opts ? opts : &no_opts;
  code = start_check (call, argv, cwd, in, opts);
  if (code == COFFER_OK && opts->warm != NULL)
    code = warm_find (self, call, opts->warm, &starting.warm);
  if (code != COFFER_OK)
    return code;
  body.argc = strings_add (&starting.strings, argv);
  body.envc = strings_add (&starting.strings, env);
  coffer_buffer_add (&starting.strings, cwd ? cwd : "",
                     (cwd ? strlen (cwd) : 0) + 1);
  code = strings_give (call, &starting.strings, &body, &request, fds,
                       &starting.block);
  if (code != COFFER_OK)
    return code;
  start_fill (&body, opts, streams, &request, fds);
  streams_give (self, sandbox, streams, opts->tty != 0);
  code = sandbox_reach (self, call, sandbox, &starting.link);
  if (code == COFFER_OK)
    code = start_ask (&starting, call, sandbox, &request, &body, fds,
                      &started);
  return code == COFFER_OK ? started_emit (call, &started, argv) : code;
}

/* ---- the end ------------------------------------------------------------ */

static const char *
failure_text (const struct init_exit *exit, char *out, size_t size)
{
  static const char *const steps[]
    = { "it was not started", "no process could be made",
        "its streams could not be set up",
        "its terminal could not be taken",
        "its working folder could not be entered",
        "the program could not be run",
        "its filter could not be put on it",
        "it could not enter its control group",
        "no copy of what stands ready could enter the sandbox",
        "what confines it could not be put on it" };
  uint32_t step = exit->failure_step;

  if (exit->flags & EXIT_LEFT)
    return "what it left behind could not be ended, and the sandbox was";
  if (exit->failure_errno == 0)
    return NULL;
  snprintf (out, size, "%s: %s",
            steps[step < sizeof steps / sizeof steps[0] ? step : 0],
            strerror (exit->failure_errno));
  return out;
}

static int32_t
exit_emit (struct linux_provider *self, struct coffer_call *call,
           const char *sandbox, const struct init_exit *exit)
{
  struct coffer_exec_exit record = { sizeof record };
  coffer_autostrings struct coffer_strings limits = { 0 };
  struct cgroup_denials denials;
  char name[16], failure[256];

  if (exit->flags & EXIT_PROXY)
    network_denied (self, call, sandbox, exit->started_ns);
  cgroup_denials_of (self, sandbox, &denials);
  exec_name (name, exit->exec);
  record.exec = name;
  record.code = exit->code;
  record.signal = exit->signal;
  record.timed_out = (exit->flags & EXIT_TIMED_OUT) != 0;
  /* The count is of the whole sandbox: it is not how a command ended that was
   * well, when there may have been another. */
  record.oom = denials.oom_kills > exit->marks[0]
               && ((exit->flags & EXIT_ALONE) || exit->code != 0
                   || exit->signal != 0);
  if (record.oom)
    coffer_strings_add (&limits, "memory");
  if (denials.pids_denied > exit->marks[1])
    coffer_strings_add (&limits, "pids");
  if (exit->flags & EXIT_DISK)
    coffer_strings_add (&limits, "disk");
  if (exit->flags & EXIT_INODES)
    coffer_strings_add (&limits, "inodes");
  if (record.timed_out)
    coffer_strings_add (&limits, "timeout");
  record.limits_hit = coffer_strings_view (&limits);
  record.duration_us = exit->duration_us;
  record.cpu_us = exit->cpu_us;
  record.killed = exit->killed;
  record.failure = failure_text (exit, failure, sizeof failure);
  record.failure_errno = exit->failure_errno;
  return coffer_emit_exec_exit (call, &record);
}

/* The sandbox ended under the command.  When that was for memory, it is how
 * the command ended. */
static int32_t
wait_failed (struct linux_provider *self, struct coffer_call *call,
             const char *sandbox, const char *exec, uint32_t number)
{
  struct init_exit exit = { .size = sizeof exit, .exec = number, .code = -1,
                            .signal = SIGKILL };
  struct cgroup_denials denials;
  int error = errno;

  if (error == ECONNRESET && cgroup_denials_of (self, sandbox, &denials) == 0
      && denials.oom_kills > 0)
    return exit_emit (self, call, sandbox, &exit);
  errno = error;
  return exec_ask_failed (call, exec);
}

int32_t
linux_exec_wait (struct coffer_call *call, void *self, const char *sandbox,
                 const char *exec, const struct coffer_exec_wait_opts *opts)
{
  struct init_command body = { .size = sizeof body };
  struct request request
    = { .type = INIT_WAIT, .body = &body, .size = sizeof body };
  auto_link struct link link = { .fd = -1 };
  struct init_exit exit;
  coffer_unfilled struct reply reply;
  int32_t code = exec_number (call, exec, &body.exec);

  (void) opts;
  if (code != COFFER_OK)
    return code;
  if (sandbox_id_valid (sandbox)
      && sandbox_told_link (self, sandbox, &link)) {
    if (link_told (&link, &exit, call) == -1)
      return wait_failed (self, call, sandbox, exec, body.exec);
    sandbox_note_end (self, link.sb);
    return exit.exec == body.exec
      ? exit_emit (self, call, sandbox, &exit)
      : fail_with (call, COFFER_NOT_FOUND, "command %.32s is not known", exec);
  }
  code = sandbox_reach (self, call, sandbox, &link);
  if (code != COFFER_OK)
    return code;
  if (link_ask (&link, &request, &reply, call) == -1
      || reply_body (&reply, &exit, sizeof exit) == -1)
    return wait_failed (self, call, sandbox, exec, body.exec);
  if (link.sb != NULL && link.sb->single)
    sandbox_note_end (self, link.sb);
  return exit_emit (self, call, sandbox, &exit);
}

int32_t
linux_exec_list (struct coffer_call *call, void *self, const char *sandbox,
                 const struct coffer_exec_list_opts *opts)
{
  struct request request = { .type = INIT_LIST };
  auto_link struct link link = { .fd = -1 };
  struct init_exit command;
  coffer_unfilled struct reply reply;
  int32_t code = sandbox_reach (self, call, sandbox, &link);
  uint32_t i;

  (void) opts;
  if (code != COFFER_OK)
    return code;
  if (link_send (&link, &request, call) == -1)
    return exec_ask_failed (call, "");
  /* One more than the most is the end of the list. */
  for (i = 0; code == COFFER_OK; i++) {
    if (link_receive (&link, &reply, 0, call->deadline_ns, call->cancel_fd)
          == -1)
      return exec_ask_failed (call, "");
    coffer_fd_close (&reply.fd);
    if (reply.header.type != INIT_COMMAND)
      break;
    if (i == INIT_EXECS_MAX)
      return coffer_fail (call, COFFER_INTERNAL,
                          "the init lists more commands than there can be");
    if (reply_body (&reply, &command, sizeof command) == -1)
      return exec_ask_failed (call, "");
    code = started_emit (call, &command, NULL);
  }
  return code;
}

/* ---- small requests ----------------------------------------------------- */

int32_t
linux_exec_signal (struct coffer_call *call, void *self, const char *sandbox,
                   const char *exec, int32_t signal,
                   const struct coffer_exec_signal_opts *opts)
{
  struct init_command body = { .signal = signal };

  (void) opts;
  if (signal < 1 || signal > 64)
    return coffer_fail (call, COFFER_INVALID, "signal: 1 to 64");
  return command_ask (self, call, sandbox, exec, INIT_SIGNAL, &body);
}

int32_t
linux_exec_resize (struct coffer_call *call, void *self, const char *sandbox,
                   const char *exec, uint32_t rows, uint32_t columns,
                   const struct coffer_exec_resize_opts *opts)
{
  struct init_command body = { .rows = rows, .columns = columns };

  (void) opts;
  if (rows < 1 || rows > 4096 || columns < 1 || columns > 4096)
    return coffer_fail (call, COFFER_INVALID, "rows and columns: 1 to 4096");
  return command_ask (self, call, sandbox, exec, INIT_RESIZE, &body);
}

/* A pipe's end is its writer's to close, which is the host; a socket's reading
 * side is shut here. */
int32_t
linux_exec_stdin_close (struct coffer_call *call, void *self,
                        const char *sandbox, const char *exec,
                        const struct coffer_exec_stdin_close_opts *opts)
{
  struct init_command body = { 0 };

  (void) opts;
  return command_ask (self, call, sandbox, exec, INIT_STDIN, &body);
}
