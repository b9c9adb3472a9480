/* SPDX-License-Identifier: Apache-2.0 */
/* The loop that moves a command's bytes while it runs, and ends it when its
 * caller gives up or the provider lets its timeout pass. */

#include "config.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/log.h"
#include "sandbox/exec.h"
#include "sandbox/signals.h"
#include "sandbox/terminal.h"

/* Output that comes after the command's own end: from what it left running,
 * which holds the pipe. */
#define GRACE_MS 250
#define STAGE_MS 2000
#define SIGNAL_CALL_MS 2000
#define KILL_CALL_MS 10000
/* End-of-file character of a terminal in its usual mode. */
#define TERMINAL_EOF "\004"

enum {
  WATCH_IN, WATCH_OUT, WATCH_ERR, WATCH_IN_SINK, WATCH_DONE, WATCH_CANCEL,
  WATCH_WINCH, WATCH_COUNT
};

static void
end_signal (struct exec_run *run, int number)
{
  struct provider_call call = call_in (SIGNAL_CALL_MS, -1);
  auto_error struct error *error = NULL;

  if (INVOKE (run->provider, &call, &error, exec_signal,
              .sandbox = run->record->id, .exec = run->result->exec,
              .signal = number) < 0)
    log_event (LOG_LEVEL_INFO, "exec", "signal %d: %s", number,
               error_message (error));
}

static void
end_sandbox (struct exec_run *run)
{
  struct provider_call call = call_in (KILL_CALL_MS, -1);
  auto_error struct error *error = NULL;
  int gone;

  if (provider_kill (run->provider, run->record->id, &call, &gone, &error)
      < 0) {
    log_event (LOG_LEVEL_WARNING, "exec", "%s", error_message (error));
    async_cancel (&run->wait);
  }
}

void
exec_end (struct exec_run *run)
{
  int number = sandbox_signal_caught ();
  int stage = run->stage++;

  run->next_stage_ns = deadline_in (STAGE_MS);
  if (run->record->owner_pid != 0 && stage == 0) {
    end_sandbox (run);
  } else if (stage < 2 && run->record->owner_pid == 0
             && provider_claims (run->provider, "exec.signal")) {
    if (run->overdue || stage == 1)
      number = SIGKILL;
    end_signal (run, number ? number : SIGTERM);
  } else {
    async_cancel (&run->wait);
    run->next_stage_ns = 0;
  }
}

static void
on_winch (struct exec_run *run)
{
  struct provider_call call = call_in (SIGNAL_CALL_MS, -1);
  auto_error struct error *error = NULL;
  uint32_t rows, columns;

  signals_winch_clear ();
  terminal_size (run->streams->in, &rows, &columns);
  if (rows == 0 || columns == 0 || rows > 4096 || columns > 4096)
    return;
  terminal_resize (run->ours[EXEC_OUT], rows, columns);
  if (INVOKE (run->provider, &call, &error, exec_resize,
              .sandbox = run->record->id, .exec = run->result->exec,
              .rows = rows, .columns = columns) < 0)
    log_event (LOG_LEVEL_DEBUG, "exec", "resize: %s", error_message (error));
}

/* A stream that has ended is closed at once: the command then sees the end of
 * its input, or SIGPIPE at its next write. */
static void
close_ended (struct exec_run *run)
{
  struct relay *in = &run->relays[EXEC_IN];
  int i;

  if (in->from >= 0 && in->end != RELAY_OPEN) {
    if (run->streams->tty && in->end == RELAY_SOURCE_ENDED)
      coffer_write_all (in->to, TERMINAL_EOF, 1);
    coffer_fd_close (&run->ours[EXEC_IN]);
    in->from = -1;
  }
  for (i = EXEC_OUT; i <= EXEC_ERR; i++)
    if (run->relays[i].end != RELAY_OPEN && !run->streams->tty)
      coffer_fd_close (&run->ours[i]);
}

static int
output_active (const struct exec_run *run)
{
  return relay_active (&run->relays[EXEC_OUT])
         || relay_active (&run->relays[EXEC_ERR]);
}

static void
poll_prepare (const struct exec_run *run, int winch, struct pollfd *fds)
{
  int i;

  for (i = 0; i < EXEC_STREAMS; i++)
    relay_poll (&run->relays[i], &fds[i]);
  if (run->finished)            /* nobody is left to read it */
    fds[WATCH_IN].fd = -1;
  relay_poll_sink (&run->relays[EXEC_IN], &fds[WATCH_IN_SINK]);
  if (run->streams->tty || run->finished)
    fds[WATCH_IN_SINK].fd = -1;
  fds[WATCH_DONE] = (struct pollfd){
    .fd = run->finished || run->wait_at_ns ? -1 : run->wait.done_fd,
    .events = POLLIN
  };
  fds[WATCH_CANCEL] = (struct pollfd){
    .fd = run->cancelled ? -1 : run->cancel_fd, .events = POLLIN
  };
  fds[WATCH_WINCH] = (struct pollfd){ .fd = winch, .events = POLLIN };
}

/* The earliest of what is waited for, as poll's timeout. */
static int
poll_timeout (const struct exec_run *run)
{
  const int64_t times[] = {
    run->finished ? run->grace_end_ns : 0,
    run->finished ? 0 : run->next_stage_ns,
    run->finished || run->overdue ? 0 : run->backstop_ns,
    run->wait_at_ns
  };
  int64_t left, least = 3600000, now = coffer_now_ns ();
  size_t i;

  for (i = 0; i < sizeof times / sizeof times[0]; i++) {
    if (!times[i])
      continue;
    left = (times[i] - now + 999999) / 1000000;
    if (left < least)
      least = left < 0 ? 0 : left;
  }
  return (int) least;
}

static void
handle_clock (struct exec_run *run)
{
  int64_t now = coffer_now_ns ();

  if (run->finished)
    return;
  if (run->next_stage_ns && now >= run->next_stage_ns) {
    exec_end (run);
  } else if (run->backstop_ns && now >= run->backstop_ns && !run->overdue) {
    run->overdue = 1;
    log_event (LOG_LEVEL_WARNING, "exec", "provider %s let the timeout pass",
               run->record->provider);
    exec_end (run);
  }
}

static int
handle_poll (struct exec_run *run, const struct pollfd *fds,
             struct error **err)
{
  int i;

  for (i = 0; i < EXEC_STREAMS; i++)
    if (relay_step (&run->relays[i], &fds[i]) < 0)
      return error_set (err, E_NO_MEMORY, 0, "a buffer");
  if (fds[WATCH_IN_SINK].revents & (POLLERR | POLLNVAL)
      && relay_active (&run->relays[EXEC_IN]))
    run->relays[EXEC_IN].end = RELAY_SINK_GONE;
  close_ended (run);
  if (fds[WATCH_WINCH].revents)
    on_winch (run);
  if (fds[WATCH_DONE].revents) {
    run->finished = 1;
    run->grace_end_ns = deadline_in (GRACE_MS);
  } else if (fds[WATCH_CANCEL].revents) {
    run->cancelled = 1;
    if (exec_wait_begin (run, err) < 0)
      return -1;
    if (!run->finished)
      exec_end (run);
  }
  return 0;
}

/* Once the command has ended, what the pipes hold belongs to it, also when
 * the reader of our output takes its time; but not when our caller has given
 * up, whose reader may be stuck. */
static int
drain (struct exec_run *run, struct error **err)
{
  int i;

  for (i = EXEC_OUT; i <= EXEC_ERR && !run->cancelled; i++)
    if (relay_drain (&run->relays[i], run->cancel_fd) < 0)
      return error_set (err, E_NO_MEMORY, 0, "a buffer");
  return 0;
}

int
exec_relay (struct exec_run *run, struct error **err)
{
  struct pollfd fds[WATCH_COUNT];
  int winch = -1;

  if (run->streams->tty) {
    winch = signals_winch (err);
    if (winch < 0)
      return -1;
  }
  while (!run->finished
         || (output_active (run) && coffer_now_ns () < run->grace_end_ns)) {
    if (run->wait_at_ns && !output_active (run)) {
      exec_wait_here (run);
      continue;
    }
    poll_prepare (run, winch, fds);
    if (poll (fds, WATCH_COUNT, poll_timeout (run)) < 0) {
      if (errno != EINTR)
        return error_set (err, E_IO, errno, "poll");
      continue;
    }
    if (handle_poll (run, fds, err) < 0)
      return -1;
    handle_clock (run);
    if (run->wait_at_ns && coffer_now_ns () >= run->wait_at_ns
        && output_active (run) && exec_wait_begin (run, err) < 0)
      return -1;
  }
  return drain (run, err);
}
