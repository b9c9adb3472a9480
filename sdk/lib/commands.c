/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of a sandbox: each a process, and a thread that attends its end.
 *
 * A command that was started stays in the set until that is freed, so that its
 * exit can be asked for at any time.  Attendants hold the set: the last of
 * them, or `free`, gives it back. */

#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <coffer/buffer.h>
#include <coffer/commands.h>
#include <coffer/fd.h>
#include <coffer/files.h>

#define COMMANDS_MAX 4096       /* of one set, in its whole life */
#define LOOK_AGAIN_NS 2000000
#define LOOKS 2                 /* without finding any: then there is none */

struct command {
  struct command *next;
  char id[16];
  int64_t started_ns;           /* since the epoch */
  int64_t begun_ns, timeout_at_ns;      /* CLOCK_MONOTONIC */
  int pidfd;                    /* the attendant's */
  int done;                     /* lock: readable once ended; then -1 */
  int ended;                    /* lock; `how` is fixed by then */
  struct coffer_exec_exit how;
  char failure[128];
};

struct coffer_commands {
  char *mark;
  int lifeline;
  int single;
  pthread_mutex_t lock;         /* of all below and of what says so above */
  unsigned references;          /* the maker's, and one each attendant */
  unsigned running;
  unsigned count;
  int ending;
  struct command *commands;     /* the newest first */
};

/* What an attendant is given. */
struct attended {
  struct coffer_commands *commands;
  struct command *command;
};

/* -- the set ---- */

struct coffer_commands *
coffer_commands_new (const char *mark, int lifeline, int single)
{
  struct coffer_commands *commands = calloc (1, sizeof *commands);

  if (commands)
    commands->mark = strdup (mark);
  if (!commands || !commands->mark) {
    free (commands);
    return NULL;
  }
  commands->lifeline = lifeline;
  commands->single = single;
  commands->references = 1;
  pthread_mutex_init (&commands->lock, NULL);
  return commands;
}

static void
command_free (struct command *command)
{
  coffer_fd_close (&command->pidfd);
  coffer_fd_close (&command->done);
  free (command);
}

void
coffer_commands_free (struct coffer_commands *commands)
{
  struct command *command;
  unsigned left;

  if (!commands)
    return;
  pthread_mutex_lock (&commands->lock);
  left = --commands->references;
  pthread_mutex_unlock (&commands->lock);
  if (left > 0)
    return;
  while ((command = commands->commands)) {
    commands->commands = command->next;
    command_free (command);
  }
  pthread_mutex_destroy (&commands->lock);
  free (commands->mark);
  free (commands);
}

/* Of one command, or of all.  -1 with errno. */
static int
signal_marked (const struct coffer_commands *commands, const char *id,
               int number)
{
  coffer_autobuffer struct coffer_buffer mark = {0};

  coffer_buffer_printf (&mark, "%s/%s%s", commands->mark, id ? id : "",
                        id ? "/" : "");
  errno = ENOMEM;
  return mark.failed ? -1 : coffer_process_signal_marked (mark.data, number);
}

/* As a signal to a process group does, SIGKILL ends all of them: what is being
 * started while we look, or has no environment for a moment as it executes a
 * program, is looked for again. */
static int
kill_all_marked (const struct coffer_commands *commands, const char *id,
                 int64_t deadline_ns)
{
  int looks = 0, n;

  while (looks < LOOKS) {
    n = signal_marked (commands, id, SIGKILL);
    if (n < 0)
      return -1;
    looks = n == 0 ? looks + 1 : 0;
    if (coffer_now_ns () >= deadline_ns) {
      errno = ETIMEDOUT;
      return -1;
    }
    poll (NULL, 0, 1);
  }
  return 0;
}

static unsigned
count_running (struct coffer_commands *commands)
{
  unsigned running;

  pthread_mutex_lock (&commands->lock);
  commands->ending = 1;
  running = commands->running;
  pthread_mutex_unlock (&commands->lock);
  return running;
}

/* One that has just been forked is not marked yet, and what starts while we
 * look may be missed: until there is none. */
int32_t
coffer_commands_end (struct coffer_call *call,
                     struct coffer_commands *commands)
{
  unsigned running;
  int left, quiet = 0;

  for (;;) {
    running = count_running (commands);
    left = signal_marked (commands, NULL, SIGKILL);
    if (left < 0)
      return call ? coffer_fail_errno (call, errno, "the commands")
                  : COFFER_IO;
    quiet = running == 0 && left == 0 ? quiet + 1 : 0;
    if (quiet == LOOKS)
      return COFFER_OK;
    if (call && !quiet && coffer_now_ns () >= call->deadline_ns)
      return coffer_fail_errno (call, ETIMEDOUT, "the commands");
    poll (NULL, 0, 2);
  }
}

/* -- the end of one ---- */

static void
finish (struct coffer_commands *commands, struct command *command,
        const struct coffer_exec_exit *how)
{
  uint64_t one = 1;

  pthread_mutex_lock (&commands->lock);
  command->how = *how;
  command->how.duration_us
    = (uint64_t) (coffer_now_ns () - command->begun_ns) / 1000;
  command->ended = 1;
  commands->running--;
  coffer_write_all (command->done, &one, sizeof one);
  coffer_fd_close (&command->done);     /* who waits has a copy */
  pthread_mutex_unlock (&commands->lock);
  coffer_commands_free (commands);
}

/* Kills it and all that it started, whose number goes up: 1 until there is
 * nothing more to kill. */
static int
kill_marked (const struct coffer_commands *commands,
             const struct command *command, struct coffer_exec_exit *how)
{
  int n = signal_marked (commands, command->id, SIGKILL);

  how->killed += n > 0 ? (uint32_t) n : 0;
  return n > 0;
}

/* Waits for its end, or makes it when its time or the lifeline is over: 1. */
static int
await_end (const struct coffer_commands *commands,
           const struct command *command, struct coffer_exec_exit *how)
{
  if (coffer_wait_fd (command->pidfd, POLLIN, command->timeout_at_ns,
                      commands->lifeline) == 1)
    return 0;
  how->timed_out = errno == ETIMEDOUT;
  do
    kill_marked (commands, command, how);
  while (coffer_wait_fd (command->pidfd, POLLIN,
                         coffer_now_ns () + LOOK_AGAIN_NS, -1) != 1);
  how->killed -= how->killed > 0;       /* itself is no descendant */
  return 1;
}

static void *
attend (void *data)
{
  struct coffer_commands *commands = ((struct attended *) data)->commands;
  struct command *command = ((struct attended *) data)->command;
  struct coffer_exec_exit how = {.size = sizeof how, .exec = command->id};
  struct coffer_process_end end = {.code = -1};
  int all, quiet = 0;

  free (data);
  all = await_end (commands, command, &how) || commands->single;
  coffer_process_reap (command->pidfd, &end);
  coffer_fd_close (&command->pidfd);
  while (all && quiet < LOOKS) {
    quiet = kill_marked (commands, command, &how) ? 0 : quiet + 1;
    poll (NULL, 0, 1);
  }
  how.code = end.code;
  how.signal = end.signal;
  how.cpu_us = end.cpu_us;
  finish (commands, command, &how);
  return NULL;
}

/* -- the start of one ---- */

static struct command *
command_new (const struct coffer_exec_start_opts *opts)
{
  struct command *command = calloc (1, sizeof *command);
  uint64_t ms = COFFER_HAS (opts, timeout_ms) ? opts->timeout_ms : 0;

  if (!command)
    return NULL;
  command->pidfd = -1;
  command->done = eventfd (0, EFD_CLOEXEC);
  command->started_ns = coffer_realtime_ns ();
  command->begun_ns = coffer_now_ns ();
  command->timeout_at_ns = INT64_MAX;
  if (ms > 0 && ms < INT64_MAX / 2000000)
    command->timeout_at_ns = command->begun_ns + (int64_t) ms * 1000000;
  return command;
}

/* Counted as running from here on. */
static int32_t
add (struct coffer_call *call, struct coffer_commands *commands,
     struct command *command)
{
  int32_t code = COFFER_OK;

  pthread_mutex_lock (&commands->lock);
  if (commands->ending)
    code = coffer_fail (call, COFFER_NOT_FOUND, "the sandbox has ended");
  else if (commands->single && commands->count > 0)
    code = coffer_fail (call, COFFER_CONFLICT, "the sandbox was made for a "
                        "single command");
  else if (commands->count == COMMANDS_MAX)
    code = coffer_fail (call, COFFER_LIMIT, "too many commands");
  if (code == COFFER_OK) {
    snprintf (command->id, sizeof command->id, "x%u", ++commands->count);
    commands->running++;
    commands->references++;
    command->next = commands->commands;
    commands->commands = command;
  }
  pthread_mutex_unlock (&commands->lock);
  return code;
}

static int
start_thread (void *data)
{
  pthread_attr_t attributes;
  pthread_t thread;
  int r;

  pthread_attr_init (&attributes);
  pthread_attr_setdetachstate (&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize (&attributes, 256 * 1024);
  r = pthread_create (&thread, &attributes, attend, data);
  pthread_attr_destroy (&attributes);
  return r;
}

/* 0, or errno with *failed set.  The mark goes over whatever is called so. */
static int
start (struct coffer_commands *commands, struct command *command,
       const struct coffer_process *process, const char **failed)
{
  coffer_autostrings struct coffer_strings env = {0};
  coffer_autobuffer struct coffer_buffer mark = {0};
  struct attended *attended = malloc (sizeof *attended);
  struct coffer_process marked = *process;
  struct coffer_process_end end;
  int r;

  *failed = "process";
  for (size_t i = 0; process->env && process->env[i]; i++)
    coffer_strings_set (&env, process->env[i]);
  coffer_buffer_printf (&mark, "%s/%s/", commands->mark, command->id);
  if (!mark.failed)
    coffer_strings_set (&env, mark.data);
  if (!attended || env.failed || mark.failed) {
    free (attended);
    return ENOMEM;
  }
  *attended = (struct attended) {commands, command};
  marked.env = coffer_strings_view (&env);
  command->pidfd = coffer_process_start (&marked, failed);
  r = command->pidfd < 0 ? errno : start_thread (attended);
  if (r == 0)
    return 0;
  free (attended);
  if (command->pidfd >= 0) {    /* and nobody attends it */
    signal_marked (commands, command->id, SIGKILL);
    coffer_process_reap (command->pidfd, &end);
  }
  return r;
}

static int32_t
emit (struct coffer_call *call, struct coffer_commands *commands,
      const struct command *command, const char *const *argv)
{
  struct coffer_exec_info info = {
    .size = sizeof info, .exec = command->id, .argv = argv,
    .started_ns = command->started_ns,
  };

  pthread_mutex_lock (&commands->lock);
  info.state = command->ended ? "exited" : "running";
  pthread_mutex_unlock (&commands->lock);
  return coffer_emit_exec_info (call, &info);
}

/* One that never ran is told by `wait`, as the end of any other. */
int32_t
coffer_commands_start (struct coffer_call *call,
                       struct coffer_commands *commands,
                       const struct coffer_process *process,
                       const struct coffer_exec_start_opts *opts)
{
  struct command *command = command_new (opts);
  struct coffer_exec_exit how = {.size = sizeof how, .code = -1};
  const char *failed, *why;
  int32_t code;

  if (!command)
    return coffer_fail_errno (call, ENOMEM, "the command");
  code = command->done < 0 ? coffer_fail_errno (call, errno, "the command")
                           : add (call, commands, command);
  if (code != COFFER_OK) {
    command_free (command);
    return code;
  }
  how.exec = command->id;
  how.failure_errno = start (commands, command, process, &failed);
  if (how.failure_errno) {
    why = strerrordesc_np (how.failure_errno);
    snprintf (command->failure, sizeof command->failure, "the %s: %s", failed,
              why ? why : "unknown error");
    how.failure = command->failure;
    finish (commands, command, &how);
  }
  return emit (call, commands, command, process->argv);
}

/* -- those that there are ---- */

static struct command *
find (struct coffer_call *call, struct coffer_commands *commands,
      const char *exec, int *ended, int32_t *code)
{
  struct command *command;

  pthread_mutex_lock (&commands->lock);
  command = commands->commands;
  while (command && strcmp (command->id, exec) != 0)
    command = command->next;
  if (command)
    *ended = command->ended;
  pthread_mutex_unlock (&commands->lock);
  if (!command)
    *code = coffer_fail (call, COFFER_NOT_FOUND, "no such command");
  return command;
}

/* A descriptor of the caller's that is readable once it has ended; -1 with
 * errno 0 when it has. */
static int
copy_done (struct coffer_commands *commands, const struct command *command)
{
  int fd = -1;

  pthread_mutex_lock (&commands->lock);
  errno = 0;
  if (!command->ended)
    fd = fcntl (command->done, F_DUPFD_CLOEXEC, 3);
  pthread_mutex_unlock (&commands->lock);
  return fd;
}

int32_t
coffer_commands_wait (struct coffer_call *call,
                      struct coffer_commands *commands, const char *exec)
{
  coffer_autoclose int done = -1;
  struct command *command;
  int32_t code;
  int ended;

  command = find (call, commands, exec, &ended, &code);
  if (!command)
    return code;
  done = copy_done (commands, command);
  if ((done < 0 && errno)
      || (done >= 0 && coffer_wait_fd (done, POLLIN, call->deadline_ns,
                                       call->cancel_fd) != 1))
    return coffer_fail_errno (call, errno, "the command's end");
  return coffer_emit_exec_exit (call, &command->how);
}

int32_t
coffer_commands_list (struct coffer_call *call,
                      struct coffer_commands *commands)
{
  int32_t code = COFFER_OK;
  struct command *command;

  pthread_mutex_lock (&commands->lock);
  command = commands->commands;
  pthread_mutex_unlock (&commands->lock);
  for (; command && code == COFFER_OK; command = command->next)
    code = emit (call, commands, command, NULL);
  return code;
}

int32_t
coffer_commands_signal (struct coffer_call *call,
                        struct coffer_commands *commands, const char *exec,
                        int32_t number)
{
  int32_t code;
  int ended;

  if (number < 0 || number >= NSIG)
    return coffer_fail (call, COFFER_INVALID, "no such signal");
  if (!find (call, commands, exec, &ended, &code))
    return code;
  if (ended)
    return coffer_fail (call, COFFER_CONFLICT, "the command has ended");
  if ((number == SIGKILL
       ? kill_all_marked (commands, exec, call->deadline_ns)
       : signal_marked (commands, exec, number)) < 0)
    return coffer_fail_errno (call, errno, "the command");
  return COFFER_OK;
}
