/* SPDX-License-Identifier: Apache-2.0 */
/* See execs.h: the object, its threads, and starting commands. */

#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/log.h"
#include "sandbox/execs-private.h"
#include "sandbox/signals.h"
#include "sandbox/terminal.h"

#define EXECS_MAX 4096
#define STACK_SIZE (256 << 10)
#define FIRST_LOOK_MS 1000
#define ROWS 24
#define COLUMNS 80

/* ---- those that run ------------------------------------------------------- */

static void
fds_close (int fds[KEEPER_FDS])
{
  int i;

  for (i = 0; i < KEEPER_FDS; i++)
    coffer_fd_close (&fds[i]);
}

static void
live_free (struct live_exec *live)
{
  share_hold_give (&live->place);
  exec_log_unref (live->log);
  fds_close (live->fds);
  json_decref (live->facts);
  pthread_mutex_destroy (&live->input_lock);
  free (live->provider);
  free (live);
}

void
live_unref (struct execs *execs, struct live_exec *live)
{
  unsigned refs;

  pthread_mutex_lock (&execs->lock);
  refs = --live->refs;
  pthread_mutex_unlock (&execs->lock);
  if (refs == 0)
    live_free (live);
}

static void
live_list (struct execs *execs, struct live_exec *live)
{
  pthread_mutex_lock (&execs->lock);
  live->next = execs->live;
  execs->live = live;
  execs->count++;
  pthread_cond_broadcast (&execs->changed);
  pthread_mutex_unlock (&execs->lock);
}

/* It was asked before whether there is room: what was begun is counted. */
static void
place_take (struct execs *execs, struct live_exec *live)
{
  live->place = (struct share_hold){ .shares = execs->options.shares,
                                     .share = SHARE_COMMANDS,
                                     .tenant = live->log->tenant,
                                     .taken = 1 };
  shares_add (execs->options.shares, SHARE_COMMANDS, live->log->tenant, 1);
}

int
live_new (struct execs *execs, struct exec_log *take_log,
          const char *provider, int fds[KEEPER_FDS], int keep,
          struct error **err)
{
  struct live_exec *live = calloc (1, sizeof *live);

  if (live)
    live->provider = strdup (provider);
  if (!live || !live->provider) {
    free (live);
    exec_log_unref (take_log);
    fds_close (fds);
    return error_set (err, E_NO_MEMORY, 0, "a command");
  }
  live->log = take_log;
  place_take (execs, live);
  live->refs = 1;
  pthread_mutex_init (&live->input_lock, NULL);
  memcpy (live->fds, fds, sizeof live->fds);
  live->tty = live->fds[KEEPER_MASTER] >= 0;
  live->through = live->fds[KEEPER_OUT] < 0 && live->fds[KEEPER_ERR] < 0;
  live->due_ns = live->through ? 1 : deadline_in (FIRST_LOOK_MS);
  live->done = exec_log_over (live->log);
  live->settled = live->done;
  if (keep)
    keeper_keep (execs, live);
  live_list (execs, live);
  /* The list holds it from here on. */
  if (pump_add (execs, live) < 0)
    log_event (LOG_LEVEL_ERROR, "exec", "%s %s is not listened to",
               live->log->sandbox, live->log->exec);
  pump_wake (execs);
  return 0;
}

struct live_exec *
live_find (struct execs *execs, const char *sandbox, const char *exec)
{
  struct live_exec *live;

  pthread_mutex_lock (&execs->lock);
  for (live = execs->live; live; live = live->next)
    if (strcmp (live->log->exec, exec) == 0
        && strcmp (live->log->sandbox, sandbox) == 0) {
      live->refs++;
      break;
    }
  pthread_mutex_unlock (&execs->lock);
  return live;
}

void
live_ask_now (struct execs *execs, struct live_exec *live)
{
  pthread_mutex_lock (&execs->lock);
  live->through = 1;
  live->due_ns = 1;
  live->pause_ms = 0;
  pthread_cond_broadcast (&execs->changed);
  pthread_mutex_unlock (&execs->lock);
}

/* ---- starting one --------------------------------------------------------- */

static int
pipe_new (int *mine, int *theirs, int i_write, struct error **err)
{
  int ends[2];

  if (pipe2 (ends, O_CLOEXEC) < 0)
    return error_set (err, E_IO, errno, "a pipe");
  *mine = ends[i_write];
  *theirs = ends[!i_write];
  if (fcntl (*mine, F_SETFL, O_NONBLOCK) < 0)
    return error_set (err, E_IO, errno, "a pipe");
  /* Fewer turns; no matter if refused. */
  if (!i_write)
    fcntl (*mine, F_SETPIPE_SZ, EXECS_PIPE_BYTES);
  return 0;
}

static int
input_prepare (const struct execs_spec *spec, int fds[KEEPER_FDS], int *theirs,
               struct error **err)
{
  if (!spec->input && !spec->keeps_input)
    return 0;
  if (spec->input_size > EXECS_INPUT_MAX)
    return error_set (err, E_INVALID, 0,
                      "stdin: more than %d bytes, which are to be sent to it "
                      "once it runs", EXECS_INPUT_MAX);
  if (pipe_new (&fds[KEEPER_IN], theirs, 1, err) < 0)
    return -1;
  if (spec->input
      && write (fds[KEEPER_IN], spec->input, spec->input_size)
           != (ssize_t) spec->input_size)
    return error_set (err, E_IO, errno, "the command's standard input");
  if (!spec->keeps_input)
    coffer_fd_close (&fds[KEEPER_IN]);
  return 0;
}

static int
streams_prepare (const struct execs_spec *spec, int fds[KEEPER_FDS],
                 int theirs[EXEC_STREAMS], struct error **err)
{
  const struct exec_request *request = spec->request;

  if (!spec->tty)
    return input_prepare (spec, fds, &theirs[EXEC_IN], err) < 0
               || pipe_new (&fds[KEEPER_OUT], &theirs[EXEC_OUT], 0, err) < 0
               || pipe_new (&fds[KEEPER_ERR], &theirs[EXEC_ERR], 0, err) < 0
             ? -1 : 0;
  if (pipe_new (&fds[KEEPER_OUT], &fds[KEEPER_RELAY], 0, err) < 0)
    return -1;
  return terminal_new (request->rows ? request->rows : ROWS,
                       request->columns ? request->columns : COLUMNS,
                       &fds[KEEPER_MASTER], &theirs[EXEC_IN], err);
}

static void
begun_end (const char *sandbox, const struct exec_begun *begun)
{
  struct provider_call call = call_in (10000, -1);

  INVOKE (begun->provider, &call, NULL, exec_signal, .sandbox = sandbox,
          .exec = begun->exec, .signal = SIGKILL);
}

static json_t *
meta_new (const char *sandbox, const struct execs_spec *spec,
          const struct exec_begun *begun)
{
  return json_pack ("{s:s, s:s, s:s, s:I, s:b, s:b, s:I, s:s}", "sandbox",
                    sandbox, "exec", begun->exec, "state", "running",
                    "started_ns", (json_int_t) begun->started_ns, "background",
                    1, "tty", spec->tty, "timeout_ms",
                    (json_int_t) begun->timeout_ms, "provider",
                    provider_id (begun->provider));
}

/* What was over before anybody could wait for it may never have run: how it
 * ended belongs to the answer. */
static void
over_wait (struct exec_log *log, int cancel_fd)
{
  uint64_t seq = 1;
  struct exec_event event;
  int r;

  while ((r = exec_log_event (log, seq, &event)) >= 0)
    if (r > 0)
      seq++;
    else if (!exec_log_wait (log, seq, cancel_fd))
      return;
}

static int
begin_logged (struct execs *execs, const char *sandbox,
              const struct execs_spec *spec, struct exec_begun *begun,
              int fds[KEEPER_FDS], int cancel_fd, json_t **info,
              struct error **err)
{
  auto_exec_log struct exec_log *log = NULL;

  if (exec_log_new (execs->logs, sandbox, begun->exec,
                    meta_new (sandbox, spec, begun), &log, err) < 0
      || live_new (execs, exec_log_ref (log), provider_id (begun->provider),
                   fds, 1, err) < 0) {
    begun_end (sandbox, begun);
    return -1;
  }
  memset (fds, -1, KEEPER_FDS * sizeof *fds);
  log_event (LOG_LEVEL_INFO, "exec", "%s %s: started in the background",
             sandbox, begun->exec);
  if (begun->over)
    over_wait (log, cancel_fd);
  *info = exec_log_info (log);
  return 0;
}

/* One more, while it is begun. */
static int
has_room (struct execs *execs, struct share_hold *hold, struct error **err)
{
  if (!hold->shares && execs_count (execs) >= EXECS_MAX)
    return error_set (err, E_LIMIT, 0, "%d commands run in the background",
                      EXECS_MAX);
  return share_hold_more (hold, 1, err);
}

int
execs_begin (struct execs *execs, const char *sandbox,
             const struct execs_spec *spec, int cancel_fd, json_t **info,
             struct error **err)
{
  int fds[KEEPER_FDS], theirs[EXEC_STREAMS] = { -1, -1, -1 }, i, r;
  auto_free char *tenant = exec_logs_tenant (execs->logs, sandbox);
  struct share_hold hold = { .shares = execs->options.shares,
                             .share = SHARE_COMMANDS, .tenant = tenant };
  struct exec_begun begun = { 0 };

  memset (fds, -1, sizeof fds);
  r = has_room (execs, &hold, err) < 0 || streams_prepare (spec, fds, theirs, err) < 0
        ? -1 : sandbox_exec_begin (execs->options.host, sandbox, spec->request,
                                   theirs, spec->tty, !spec->attended,
                                   cancel_fd, &begun, err);
  for (i = 0; i < EXEC_STREAMS; i++)
    coffer_fd_close (&theirs[i]);
  if (r == 0)
    r = begin_logged (execs, sandbox, spec, &begun, fds, cancel_fd, info, err);
  share_hold_give (&hold);
  exec_begun_fini (&begun);
  fds_close (fds);
  return r;
}

void
execs_sandbox_gone (struct execs *execs, const char *sandbox)
{
  exec_logs_drop (execs->logs, sandbox);
}

struct exec_logs *
execs_logs (struct execs *execs)
{
  return execs->logs;
}

size_t
execs_count (struct execs *execs)
{
  size_t count;

  pthread_mutex_lock (&execs->lock);
  count = execs->count;
  pthread_mutex_unlock (&execs->lock);
  return count;
}

/* ---- the object ----------------------------------------------------------- */

static int
thread_start (struct execs *execs, void *(*run) (void *), struct error **err)
{
  pthread_attr_t attr;
  int code = pthread_attr_init (&attr);

  if (code == 0) {
    pthread_attr_setstacksize (&attr, STACK_SIZE);
    code = pthread_create (&execs->all[execs->threads], &attr, run, execs);
    pthread_attr_destroy (&attr);
  }
  if (code != 0)
    return error_set (err, E_INTERNAL, code, "a thread");
  execs->threads++;
  return 0;
}

static int
descriptors_open (struct execs *execs, struct error **err)
{
  struct epoll_event event = { .events = EPOLLIN, .data.ptr = NULL };

  execs->epoll = epoll_create1 (EPOLL_CLOEXEC);
  execs->wake_fd = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (execs->epoll < 0 || execs->wake_fd < 0
      || epoll_ctl (execs->epoll, EPOLL_CTL_ADD, execs->wake_fd, &event) < 0)
    return error_set (err, E_IO, errno, "listening to commands");
  return 0;
}

static void
condition_init (pthread_cond_t *condition)
{
  pthread_condattr_t attr;

  pthread_condattr_init (&attr);
  pthread_condattr_setclock (&attr, CLOCK_MONOTONIC);
  pthread_cond_init (condition, &attr);
  pthread_condattr_destroy (&attr);
}

/* Whose a sandbox is, for its logs. */
static char *
tenant_of (void *data, const char *sandbox)
{
  auto_sandbox_record struct sandbox_record *record = NULL;

  return host_find (data, sandbox, &record, NULL) < 0
           ? NULL : strdup (record->tenant);
}

int
execs_start (const struct execs_options *options, struct execs **out,
             struct error **err)
{
  auto_execs struct execs *execs = calloc (1, sizeof *execs);
  int i;

  if (!execs)
    return error_set (err, E_NO_MEMORY, 0, "the commands");
  execs->options = *options;
  execs->epoll = execs->wake_fd = execs->keeper = -1;
  pthread_mutex_init (&execs->lock, NULL);
  pthread_mutex_init (&execs->keeper_lock, NULL);
  condition_init (&execs->changed);
  signals_no_sigpipe ();
  if (options->shares)
    shares_set (options->shares, SHARE_LOGS, options->cap_all);
  if (exec_logs_open (options->place, options->cap, options->cap_all,
                      &(struct exec_log_owners){ options->shares, tenant_of,
                                                 options->host },
                      &execs->logs, err) < 0
      || descriptors_open (execs, err) < 0 || keeper_open (execs, err) < 0)
    return -1;
  execs_adopt (execs);
  if (thread_start (execs, pump_run, err) < 0
      || thread_start (execs, sweeper_run, err) < 0)
    return -1;
  for (i = 0; i < ASKERS; i++)
    if (thread_start (execs, asker_run, err) < 0)
      return -1;
  *out = steal (execs);
  return 0;
}

void
execs_stop (struct execs *execs)
{
  struct live_exec *live, *next;
  int i;

  if (!execs)
    return;
  pthread_mutex_lock (&execs->lock);
  execs->stopping = 1;
  pthread_cond_broadcast (&execs->changed);
  pthread_mutex_unlock (&execs->lock);
  if (execs->wake_fd >= 0)
    pump_wake (execs);
  for (i = 0; i < execs->threads; i++)
    pthread_join (execs->all[i], NULL);
  keeper_close (execs);
  for (live = execs->live; live; live = next) {
    next = live->next;
    live_free (live);
  }
  coffer_fd_close (&execs->epoll);
  coffer_fd_close (&execs->wake_fd);
  exec_logs_close (execs->logs);
  pthread_cond_destroy (&execs->changed);
  pthread_mutex_destroy (&execs->keeper_lock);
  pthread_mutex_destroy (&execs->lock);
  free (execs);
}
