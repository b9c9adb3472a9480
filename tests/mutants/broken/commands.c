/* SPDX-License-Identifier: Apache-2.0 */
/* Mutants of commands: what they are given, how they end, what is kept. */

#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <coffer/buffer.h>
#include <coffer/fd.h>

#include "mutant.h"

/* What a command is started with, while it is changed. */
struct start {
  struct coffer_strings argv, env;
  const char *cwd;
  int32_t in, out, err;
  struct coffer_exec_start_opts opts;
  int own[3];                   /* descriptors to be closed */
};

static void
start_fini (struct start *start)
{
  coffer_strings_free (&start->argv);
  coffer_strings_free (&start->env);
  for (int i = 0; i < 3; i++)
    coffer_fd_close (&start->own[i]);
}

/* ---- arguments ----------------------------------------------------------- */

/* Words of a script, not the script. */
#define FIRST_WORD 4

static void
add_split (struct coffer_strings *argv, const char *text)
{
  size_t n;

  for (; *text; text += n) {
    text += strspn (text, " ");
    n = strcspn (text, " ");
    if (n > 0)
      coffer_strings_printf (argv, "%.*s", (int) n, text);
  }
}

static void
add_argument (struct coffer_strings *argv, size_t i, const char *text)
{
  if (i >= FIRST_WORD) {
    if (fault ("argv-empty-dropped") && !*text)
      return;
    if (fault ("argv-split") && strchr (text, ' ')) {
      add_split (argv, text);
      return;
    }
    if (fault ("argv-expanded") && text[0] == '$' && text[1] == 'x')
      text = "";
    if (fault ("argv-cut") && strlen (text) > 65536) {
      coffer_strings_printf (argv, "%.65536s", text);
      return;
    }
  }
  coffer_strings_add (argv, text);
}

static void
spoil_argv (struct start *start, const char *const *argv,
            const char *const *env)
{
  if (fault ("env-in-argv") && env && env[0]) {
    size_t n = 0;

    while (env[n])
      n++;
    coffer_strings_add (&start->argv, "sh");
    coffer_strings_add (&start->argv, "-c");
    coffer_strings_printf (&start->argv, "shift %zu; \"$@\"", n);
    coffer_strings_add (&start->argv, "sh");
    for (size_t i = 0; i < n; i++)
      coffer_strings_add (&start->argv, env[i]);
  }
  for (size_t i = 0; argv && argv[i]; i++)
    add_argument (&start->argv, i, argv[i]);
}

/* ---- environment --------------------------------------------------------- */

static void
spoil_env (struct start *start, const char *sandbox, const char *const *env)
{
  struct memory *memory = memory_of (sandbox);
  size_t n = 0;

  while (env && env[n])
    n++;
  if (fault ("env-kept") && memory->last_env[0])
    coffer_strings_add (&start->env, memory->last_env);
  for (size_t i = 0; i < n; i++)
    if (!fault ("env-last-dropped") || n == 1 || i + 1 < n)
      coffer_strings_add (&start->env, env[i]);
  if (fault ("env-without-home"))
    coffer_strings_add (&start->env, "HOME=");
  if (n == 1)
    snprintf (memory->last_env, sizeof memory->last_env, "%s", env[0]);
  memory_done ();
}

/* ---- folders, streams ---------------------------------------------------- */

static void
spoil_cwd (struct start *start)
{
  if (!start->cwd || start->cwd[0] != '/')
    return;
  if (fault ("cwd-ignored") && access (start->cwd, F_OK) == 0)
    start->cwd = NULL;
  else if (fault ("cwd-other") && access (start->cwd, F_OK) < 0)
    start->cwd = NULL;
}

/* A pipe of which the command has the writing end, too. */
static int
endless_input (void)
{
  char path[32];
  int ends[2], fd;

  if (pipe2 (ends, O_CLOEXEC) < 0)
    abort ();
  snprintf (path, sizeof path, "/proc/self/fd/%d", ends[0]);
  fd = open (path, O_RDWR | O_CLOEXEC);
  close (ends[0]);
  close (ends[1]);
  return fd;
}

static void
replace (struct start *start, int which, int32_t *fd, int by)
{
  if (by < 0)
    return;
  start->own[which] = by;
  *fd = by;
}

static void
spoil_input (struct start *start)
{
  if (start->in < 0 && fault ("stdin-endless"))
    replace (start, 0, &start->in, endless_input ());
  else if (start->in < 0 || start->opts.tty)
    return;
  else if (fault ("stdin-cut"))
    replace (start, 0, &start->in, pump_input (PUMP_INPUT_CUT, start->in));
  else if (fault ("stdin-nul-lost"))
    replace (start, 0, &start->in, pump_input (PUMP_INPUT_NUL, start->in));
  else if (fault ("stdin-never-ends"))
    replace (start, 0, &start->in, pump_input (PUMP_INPUT_OPEN, start->in));
}

static void
spoil_pair (struct start *start)
{
  int given[2];

  if (start->out < 0 || start->err < 0)
    return;
  if (fault ("streams-swapped"))
    pump_pair (PAIR_SWAPPED, start->out, start->err, given);
  else if (fault ("streams-merged"))
    pump_pair (PAIR_MERGED, start->out, start->err, given);
  else if (fault ("streams-reordered"))
    pump_pair (PAIR_REORDERED, start->out, start->err, given);
  else
    return;
  replace (start, 1, &start->out, given[0]);
  replace (start, 2, &start->err, given[1]);
}

static void
spoil_output (struct start *start, int first)
{
  if (start->out < 0 || start->opts.tty || start->opts.background)
    return;
  if (fault ("output-late") && first && start->in < 0)
    replace (start, 1, &start->out, pump_output (PUMP_LATE, start->out));
  else if (fault ("output-byte-lost") && start->in < 0)
    replace (start, 1, &start->out, pump_output (PUMP_BYTE_LOST, start->out));
  else if (fault ("output-cut") && start->in >= 0)
    replace (start, 1, &start->out, pump_output (PUMP_CUT, start->out));
  else if (fault ("stdin-cut") && start->in >= 0)
    replace (start, 1, &start->out, pump_output (PUMP_FLOOD_SWAPPED,
                                                 start->out));
}

/* ---- timeouts of our own ------------------------------------------------- */

struct timer {
  struct reference *self;
  uint64_t ms;
  char sandbox[80], exec[16];
  int only_group;
};

/* A call of nobody, for what is done behind the host's back. */
static int32_t
no_emit (struct coffer_call *call, uint32_t record, const void *data)
{
  (void) call, (void) record, (void) data;
  return COFFER_OK;
}

static int32_t
no_fail (struct coffer_call *call, int32_t code, int32_t retryable,
         const char *message, const char *details)
{
  (void) call, (void) retryable, (void) message, (void) details;
  return code;
}

static const struct coffer_host no_host = {
  .size = sizeof no_host, .emit = no_emit, .fail = no_fail,
};

static struct coffer_call
no_call (void)
{
  return (struct coffer_call) {
    .size = sizeof (struct coffer_call), .host = &no_host, .cancel_fd = -1,
    .deadline_ns = coffer_now_ns () + INT64_C (5000000000),
  };
}

/* Ends the command's process group, and nobody else. */
static void *
timer_run (void *data)
{
  struct timer *timer = data;
  struct coffer_call call = no_call ();
  struct memory *memory;

  usleep ((useconds_t) timer->ms * 1000);
  call = no_call ();
  if (reference_exec_signal (&call, timer->self, timer->sandbox, timer->exec,
                             SIGKILL, NULL) == COFFER_OK) {
    memory = memory_of (timer->sandbox);
    memory->late |= exec_bit (timer->exec);
    memory_done ();
  }
  free (timer);
  return NULL;
}

static int32_t
started_emit (struct wrapped *wrapped, uint32_t record, const void *data)
{
  const struct coffer_exec_info *info = data;
  struct start *start = wrapped->data;
  struct memory *memory = memory_of (wrapped->sandbox);

  memory->execs++;
  if (start->in >= 0 && !fault ("stdin-endless"))
    memory->inputs |= exec_bit (info->exec);
  memory_done ();
  wrapped->exec = strdup (info->exec);
  if (fault ("env-in-argv")) {
    struct coffer_exec_info own = *info;

    own.argv = NULL;
    return pass_on (wrapped, record, &own);
  }
  return pass_on (wrapped, record, data);
}

static void
start_timer (struct reference *self, const char *sandbox, const char *exec,
             uint64_t ms)
{
  struct timer *timer = calloc (1, sizeof *timer);

  if (!timer)
    abort ();
  timer->self = self;
  timer->ms = ms;
  snprintf (timer->sandbox, sizeof timer->sandbox, "%s", sandbox);
  snprintf (timer->exec, sizeof timer->exec, "%s", exec);
  if (thread_start (timer_run, timer))
    abort ();
}

/* ---- start --------------------------------------------------------------- */

static void
say_env (struct coffer_call *call, const char *const *env)
{
  coffer_autobuffer struct coffer_buffer text = {0};

  for (; env && *env; env++)
    coffer_buffer_printf (&text, "%s ", *env);
  if (text.size > 0 && text.size < 4000)
    coffer_log (call, COFFER_LOG_DEBUG, text.data);
}

/* As if the sandbox were not paused. */
static int32_t
start_unpaused (struct coffer_call *call, void *self, const char *sandbox,
                struct start *start)
{
  struct coffer_call quiet = no_call ();
  struct wrapped wrapped;
  int32_t code;

  reference_sandbox_resume (&quiet, self, sandbox, NULL);
  wrap (&wrapped, call, NULL);
  code = reference_exec_start (&wrapped.call, self, sandbox,
                               coffer_strings_view (&start->argv),
                               coffer_strings_view (&start->env), start->cwd,
                               start->in, start->out, start->err, &start->opts);
  reference_sandbox_pause (&quiet, self, sandbox, NULL);
  return code;
}

static int
is_paused (const char *sandbox)
{
  const struct memory *memory = memory_of (sandbox);
  const int paused = memory->paused;

  memory_done ();
  return paused;
}

static void
spoil (struct start *start, const char *sandbox, const char *const *argv,
       const char *const *env)
{
  struct memory *memory = memory_of (sandbox);
  const int first = memory->execs == 0;

  memory_done ();
  pump_flush ();
  note_op (COFFER_OP_exec_start, sandbox);
  spoil_argv (start, argv, env);
  spoil_env (start, sandbox, env);
  spoil_cwd (start);
  spoil_input (start);
  spoil_pair (start);
  spoil_output (start, first);
}

/* ---- what stands ready ------------------------------------------------- */

int32_t
broken_warm_open (struct coffer_call *call, void *self, const char *profile,
                  int32_t in, const struct coffer_warm_open_opts *opts)
{
  struct coffer_warm_open_opts own = {.size = sizeof own};

  if (fault ("unclaimed-warm"))
    return coffer_fail (call, COFFER_UNSUPPORTED, "nothing stands ready");
  static unsigned given;

  if (opts)
    own = *opts;
  if (fault ("warm-few") && given++ >= 10)
    return coffer_fail (call, COFFER_LIMIT, "warm: no more");
  if (fault ("warm-modules"))
    own.modules = NULL;
  return reference_warm_open (call, self, profile, in, &own);
}

/* The handle that is passed on; NULL: the command runs. */
static const char *
spoil_warm (struct start *start, void *self, const char *handle)
{
  static unsigned runs;
  struct coffer_strings argv = {0};
  const char *const before
    = fault ("warm-left") && runs++ > 0 ? "count = 1\n" : "";

  if (!handle || !(fault ("warm-any") || fault ("warm-left")
                   || fault ("warm-command")))
    return handle;
  if (warm_command (self, handle, before, &argv) == 0) {
    if (fault ("warm-command")) {
      coffer_strings_free (&argv);
      return NULL;
    }
    coffer_strings_free (&start->argv);
    start->argv = argv;
    return NULL;
  }
  return fault ("warm-any") ? NULL : handle;
}

int32_t
broken_exec_start (struct coffer_call *call, void *self, const char *sandbox,
                   const char *const *argv, const char *const *env,
                   const char *cwd, int32_t in, int32_t out, int32_t err,
                   const struct coffer_exec_start_opts *opts)
{
  struct start start = {.cwd = cwd, .in = in, .out = out, .err = err,
                        .own = {-1, -1, -1}};
  const uint64_t timeout = OPTION (opts, timeout_ms);
  struct wrapped wrapped;
  int32_t code;

  start.opts = opts ? *opts : (struct coffer_exec_start_opts) {0};
  start.opts.size = sizeof start.opts;
  if (fault ("timeout-of-group"))
    start.opts.timeout_ms = 0;
  if (fault ("background-untold"))
    start.opts.background = start.opts.background;
  spoil (&start, sandbox, argv, env);
  start.opts.warm = spoil_warm (&start, self, OPTION (opts, warm));
  if (fault ("warm-ahead") && made_for[0])
    start.opts.warm = made_for;
  if (fault ("env-logged"))
    say_env (call, env);
  if (fault ("exec-while-paused") && is_paused (sandbox)) {
    code = start_unpaused (call, self, sandbox, &start);
    start_fini (&start);
    return code;
  }
  wrap (&wrapped, call, started_emit);
  wrapped.sandbox = sandbox;
  wrapped.data = &start;
  code = reference_exec_start (&wrapped.call, self, sandbox,
                               coffer_strings_view (&start.argv),
                               coffer_strings_view (&start.env), start.cwd,
                               start.in, start.out, start.err, &start.opts);
  if (code == COFFER_OK && fault ("timeout-of-group") && timeout)
    start_timer (self, sandbox, wrapped.exec, timeout);
  free ((char *) wrapped.exec);
  start_fini (&start);
  return code;
}

/* ---- ends ---------------------------------------------------------------- */

static void
spoil_exit (struct memory *memory, struct coffer_exec_exit *exit)
{
  if (fault ("exit-code-short") && exit->code >= 128)
    exit->code &= 0x7f;
  if (fault ("exit-signal-as-code")
      && (exit->signal == SIGTERM || exit->signal == SIGHUP
          || exit->signal == SIGUSR1)) {
    exit->code = 128 + exit->signal;
    exit->signal = 0;
  }
  if (fault ("exit-failure-as-code") && exit->failure
      && strncmp (exit->failure, "the program", 11) == 0) {
    exit->code = exit->failure_errno == EACCES ? 126 : 127;
    exit->failure = NULL;
    exit->failure_errno = 0;
  }
  if (fault ("timeout-untold") && exit->killed <= 3)
    exit->timed_out = 0;
  if (fault ("timeout-of-group") && memory->late & exec_bit (exit->exec))
    exit->timed_out = 1;
  if (fault ("exit-time-in-ms"))
    exit->duration_us /= 1000;
}

static int32_t
exit_emit (struct wrapped *wrapped, uint32_t record, const void *data)
{
  struct coffer_exec_exit exit = *(const struct coffer_exec_exit *) data;
  struct memory *memory = memory_of (wrapped->sandbox);

  spoil_exit (memory, &exit);
  memory->told |= exec_bit (exit.exec);
  memory_done ();
  if (exit.timed_out)
    wrapped->data = wrapped;    /* said so */
  return pass_on (wrapped, record, &exit);
}

/* Ends the others of the sandbox. */
static int32_t
other_emit (struct wrapped *wrapped, uint32_t record, const void *data)
{
  const struct coffer_exec_info *info = data;
  struct coffer_call quiet = no_call ();

  (void) record;
  if (strcmp (info->state, "running") == 0)
    reference_exec_signal (&quiet, wrapped->data, wrapped->sandbox, info->exec,
                           SIGKILL, NULL);
  return COFFER_OK;
}

static int
was_told (const char *sandbox, const char *exec)
{
  const struct memory *memory = memory_of (sandbox);
  const int told = (memory->told & exec_bit (exec)) != 0;

  memory_done ();
  return told;
}

static int
has_input (const char *sandbox, const char *exec)
{
  const struct memory *memory = memory_of (sandbox);
  const int has = (memory->inputs & exec_bit (exec)) != 0;

  memory_done ();
  return has;
}

/* A wait that does not hear, or hears and does more than it should. */
static void
spoil_wait (struct wrapped *wrapped, int input)
{
  struct pollfd now = {.fd = wrapped->call.cancel_fd, .events = POLLIN};

  if (fault ("wait-deaf") && !input && poll (&now, 1, 20) == 0)
    wrapped->call.cancel_fd = -1;
  if (fault ("wait-endless") && !input)
    wrap_endless (wrapped);
}

/* At a deadline the host cancels too, and either may be what the call sees. */
static int
ends_command (const struct coffer_call *call, int32_t code)
{
  const int late = coffer_now_ns () >= call->deadline_ns;

  if (code == COFFER_TIMEOUT || (code == COFFER_CANCELLED && late))
    return fault ("wait-deadline-kills");
  return code == COFFER_CANCELLED && fault ("wait-cancel-kills");
}

int32_t
broken_exec_wait (struct coffer_call *call, void *self, const char *sandbox,
                  const char *exec, const struct coffer_exec_wait_opts *opts)
{
  const int input = has_input (sandbox, exec);
  struct coffer_call quiet = no_call ();
  struct wrapped wrapped;
  int32_t code;

  note_op (COFFER_OP_exec_wait, sandbox);
  if (fault ("exit-told-once") && was_told (sandbox, exec))
    return coffer_fail (call, COFFER_NOT_FOUND, "no such command");
  wrap (&wrapped, call, exit_emit);
  wrapped.sandbox = sandbox;
  spoil_wait (&wrapped, input);
  code = reference_exec_wait (&wrapped.call, self, sandbox, exec, opts);
  if (input && ends_command (call, code))
    reference_exec_signal (&quiet, self, sandbox, exec, SIGKILL, NULL);
  if (code == COFFER_OK && wrapped.data && fault ("timeout-of-all")) {
    wrap (&wrapped, call, other_emit);
    wrapped.sandbox = sandbox;
    wrapped.data = self;
    reference_exec_list (&wrapped.call, self, sandbox, NULL);
  }
  return code;
}

/* ---- the others ---------------------------------------------------------- */

static int32_t
exec_list_emit (struct wrapped *wrapped, uint32_t record, const void *data)
{
  struct coffer_exec_info info = *(const struct coffer_exec_info *) data;

  if (fault ("exec-list-stale"))
    info.state = "running";
  if (fault ("background-untold"))
    info.background = 0;
  return pass_on (wrapped, record, &info);
}

int32_t
broken_exec_list (struct coffer_call *call, void *self, const char *sandbox,
                  const struct coffer_exec_list_opts *opts)
{
  struct wrapped wrapped;

  return reference_exec_list (wrap (&wrapped, call, exec_list_emit), self,
                              sandbox, opts);
}

/* Output from the first byte that comes after the call. */
static int32_t
attach_later (struct coffer_call *call, void *self, const char *sandbox,
              const char *exec, int32_t out, int32_t err)
{
  const int given = pump_output (PUMP_LATE, out);
  int32_t code;

  code = reference_exec_attach (call, self, sandbox, exec,
                                fault ("attach-out-lost") ? -1 : given, err,
                                NULL);
  close (given);
  return code;
}

/* Both streams were written to. */
static int
has_errors (const struct reference *self, const char *sandbox,
            const char *exec)
{
  coffer_autoclose int folder = sandbox_open (self, sandbox);
  char path[64];
  struct stat st;

  snprintf (path, sizeof path, EXECS "/%.16s/err", exec[0] ? exec + 1 : "");
  return folder >= 0 && fstatat (folder, path, &st, 0) == 0 && st.st_size > 0;
}

int32_t
broken_exec_attach (struct coffer_call *call, void *self, const char *sandbox,
                    const char *exec, int32_t out, int32_t err,
                    const struct coffer_exec_attach_opts *opts)
{
  struct wrapped wrapped;

  wrap (&wrapped, call, NULL);
  if (fault ("attach-deaf"))
    wrapped.call.cancel_fd = -1;
  if (fault ("attach-endless"))
    wrap_endless (&wrapped);
  if (fault ("attach-swapped") && has_errors (self, sandbox, exec))
    return reference_exec_attach (&wrapped.call, self, sandbox, exec, err, out,
                                  opts);
  if (fault ("attach-out-lost"))
    return attach_later (&wrapped.call, self, sandbox, exec, out, err);
  return reference_exec_attach (&wrapped.call, self, sandbox, exec, out, err,
                                opts);
}

int32_t
broken_exec_signal (struct coffer_call *call, void *self, const char *sandbox,
                    const char *exec, int32_t number,
                    const struct coffer_exec_signal_opts *opts)
{
  int32_t code;

  if (fault ("signal-ignored") && number == SIGTERM)
    number = 0;
  if (fault ("signal-clamped") && (number < 0 || number > 64))
    number = 0;
  code = reference_exec_signal (call, self, sandbox, exec, number, opts);
  return code;
}

int32_t
broken_exec_resize (struct coffer_call *call, void *self, const char *sandbox,
                    const char *exec, uint32_t rows, uint32_t columns,
                    const struct coffer_exec_resize_opts *opts)
{
  if (fault ("resize-clamped") && columns > 4096)
    columns = 4096;
  if (fault ("resize-ignored") && rows > 0 && columns <= 4096)
    return reference_exec_signal (call, self, sandbox, exec, 0, NULL);
  return reference_exec_resize (call, self, sandbox, exec, rows, columns, opts);
}

int32_t
broken_exec_stdin_close (struct coffer_call *call, void *self,
                         const char *sandbox, const char *exec,
                         const struct coffer_exec_stdin_close_opts *opts)
{
  return reference_exec_stdin_close (call, self, sandbox, exec, opts);
}
