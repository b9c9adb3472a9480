/* SPDX-License-Identifier: Apache-2.0 */
/* See exec-capture.h.  Both streams' ends are the sign to ask how it ended; what
 * has left its streams open, or closed them early, is asked after now and
 * then. */

#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "sandbox/exec-capture.h"
#include "sandbox/exec.h"

#define MS 1000000LL
#define PIPE_BYTES (256 << 10)
/* Of its tenant's share, besides what it keeps. */
#define FIRST_OUTPUT (64 << 10)
/* How long the end is waited for in one call, once the streams are through. */
#define WAIT_MS 500
/* Between two looks, growing. */
#define LOOK_MIN_MS 20
#define LOOK_MAX_MS 1000
#define LOOK_CALL_MS 10000
/* From the first signal to the second, and from that to giving up. */
#define STAGE_MS 2000

struct waited {
  struct host *host;
  const char *id;
  struct exec_capture *capture;
  struct exec_begun begun;
  int ours[3], theirs[3];
  size_t written;               /* of the input */
  int cancel_fd;                /* -1 once it was heard */
  int over;                     /* the result is there */
  int64_t look_ns;              /* when to ask after it */
  int64_t pause_ms;
  int stage;                    /* of ending it */
  int64_t stage_ns;
};

static void
waited_fini (struct waited *waited)
{
  int i;

  for (i = 0; i < 3; i++) {
    coffer_fd_close (&waited->ours[i]);
    coffer_fd_close (&waited->theirs[i]);
  }
  exec_begun_fini (&waited->begun);
}
#define auto_waited __attribute__ ((cleanup (waited_fini)))

static int
pipe_new (struct waited *waited, int stream, struct error **err)
{
  int ends[2], mine = stream == EXEC_IN;

  if (pipe2 (ends, O_CLOEXEC) < 0)
    return error_set (err, E_IO, errno, "a pipe");
  waited->ours[stream] = ends[mine];
  waited->theirs[stream] = ends[!mine];
  if (fcntl (ends[mine], F_SETFL, O_NONBLOCK) < 0)
    return error_set (err, E_IO, errno, "a pipe");
  return 0;
}

static int
begin (struct waited *waited, struct error **err)
{
  struct exec_capture *capture = waited->capture;
  int i, r;

  /* Who has no room left for output is told before anything runs. */
  if (share_hold_more (capture->out.hold, FIRST_OUTPUT, err) < 0)
    return -1;
  if ((capture->input && pipe_new (waited, EXEC_IN, err) < 0)
      || pipe_new (waited, EXEC_OUT, err) < 0
      || pipe_new (waited, EXEC_ERR, err) < 0)
    return -1;
  r = sandbox_exec_begin (waited->host, waited->id, capture->request,
                          waited->theirs, 0, 0, waited->cancel_fd,
                          &waited->begun, err);
  for (i = 0; i < 3; i++)
    coffer_fd_close (&waited->theirs[i]);
  if (r == 0)
    capture->provider = provider_id (waited->begun.provider);
  return r;
}

/* ---- streams -------------------------------------------------------------- */

static void
feed (struct waited *waited)
{
  const struct exec_capture *capture = waited->capture;
  ssize_t n = write (waited->ours[EXEC_IN], capture->input + waited->written,
                     capture->input_size - waited->written);

  if (n > 0)
    waited->written += (size_t) n;
  if (waited->written == capture->input_size
      || (n < 0 && errno != EAGAIN && errno != EINTR))
    coffer_fd_close (&waited->ours[EXEC_IN]);
}

static ssize_t
drink (struct waited *waited, int stream)
{
  struct capture *to = stream == EXEC_OUT ? &waited->capture->out
                                          : &waited->capture->err;
  coffer_unfilled char bytes[16384];
  ssize_t n = read (waited->ours[stream], bytes, sizeof bytes);

  if (n > 0)
    capture_add (to, bytes, (size_t) n);
  else if (n == 0 || (errno != EAGAIN && errno != EINTR))
    coffer_fd_close (&waited->ours[stream]);
  /* Much of it comes in fewer turns. */
  if (n == (ssize_t) sizeof bytes && to->total == sizeof bytes)
    fcntl (waited->ours[stream], F_SETPIPE_SZ, PIPE_BYTES);
  return n;
}

/* What the pipes hold belongs to the command that has ended; what comes later
 * is of what it left running. */
static void
drain (struct waited *waited)
{
  int i, held;
  ssize_t n;

  for (i = EXEC_OUT; i <= EXEC_ERR; i++) {
    if (waited->ours[i] < 0 || ioctl (waited->ours[i], FIONREAD, &held) < 0)
      continue;
    for (; held > 0 && (n = drink (waited, i)) > 0; held -= (int) n)
      ;
  }
}

/* ---- its end -------------------------------------------------------------- */

struct look {
  const char *exec;
  int known, over;
};

static int
sink_look (void *data, const struct contract_record *type, void *record)
{
  struct look *look = data;
  const struct coffer_exec_info *info = record;

  if (type->id != COFFER_REC_exec_info || !info->exec
      || strcmp (info->exec, look->exec) != 0)
    return 0;
  look->known = 1;
  look->over = info->state && strcmp (info->state, "exited") == 0;
  return 0;
}

int
exec_is_over (struct provider *provider, const char *id, const char *exec,
              int *over, struct error **err)
{
  struct look look = { exec, 0, 0 };
  struct provider_call call = call_in (LOOK_CALL_MS, -1);

  call.sink.record = sink_look;
  call.sink.data = &look;
  if (INVOKE (provider, &call, err, exec_list, .sandbox = id) < 0)
    return -1;
  if (!look.known)
    return error_set (err, E_EXEC_UNKNOWN, 0, "%s of %s is not known any more",
                      exec, id);
  *over = look.over;
  return 0;
}

/* Not now is no error, nor is a worker that ends: the next one knows of it. */
static int
is_passing (const struct error *error)
{
  return error->number == E_PROVIDER_TIMEOUT
         || error->number == E_PROVIDER_EXITED
         || error->number == E_PROVIDER_BREAKER;
}

static int
ask (struct waited *waited, struct error **err)
{
  struct exec_result *result = &waited->capture->result;
  const char *exec = waited->begun.exec;
  auto_error struct error *error = NULL;
  int streams_open = waited->ours[EXEC_OUT] >= 0 || waited->ours[EXEC_ERR] >= 0;
  int over = 1;

  if (streams_open && !waited->begun.over)
    exec_is_over (waited->begun.provider, waited->id, exec, &over, &error);
  if (over && !error
      && sandbox_exec_end (waited->begun.provider, waited->id, exec,
                           deadline_in (WAIT_MS), waited->cancel_fd, result,
                           &error) == 0) {
    waited->over = 1;
    return 0;
  }
  waited->pause_ms = waited->pause_ms ? waited->pause_ms * 2 : LOOK_MIN_MS;
  if (waited->pause_ms > LOOK_MAX_MS)
    waited->pause_ms = LOOK_MAX_MS;
  waited->look_ns = deadline_in (waited->pause_ms);
  if (!error || is_passing (error) || error->number == E_EXEC_CANCELLED) {
    exec_result_fini (result);
    return 0;
  }
  return error_move (err, steal (error));
}

/* ---- giving up ------------------------------------------------------------ */

/* 1: there is nothing left to try. */
static int
end_harder (struct waited *waited)
{
  static const int signals[] = { SIGTERM, SIGKILL };
  struct provider_call call = call_in (STAGE_MS, -1);

  if (waited->stage >= 2)
    return 1;
  INVOKE (waited->begun.provider, &call, NULL, exec_signal,
          .sandbox = waited->id, .exec = waited->begun.exec,
          .signal = signals[waited->stage]);
  waited->stage++;
  waited->stage_ns = deadline_in (STAGE_MS);
  waited->look_ns = deadline_in (LOOK_MIN_MS);
  waited->pause_ms = LOOK_MIN_MS;
  return 0;
}

static int
cancelled (const struct waited *waited, struct error **err)
{
  error_set (err, E_EXEC_CANCELLED, 0, "interrupted; %s was ended",
             waited->begun.exec);
  return -1;
}

/* ---- all of it ------------------------------------------------------------ */

static int
poll_once (struct waited *waited)
{
  struct pollfd fds[] = {
    { .fd = waited->ours[EXEC_IN], .events = POLLOUT },
    { .fd = waited->ours[EXEC_OUT], .events = POLLIN },
    { .fd = waited->ours[EXEC_ERR], .events = POLLIN },
    { .fd = waited->cancel_fd, .events = POLLIN }
  };
  int64_t until = waited->look_ns;

  if (waited->stage > 0 && waited->stage_ns < until)
    until = waited->stage_ns;
  if (poll (fds, 4, coffer_poll_ms (until)) <= 0)
    return 0;
  if (fds[0].revents)
    feed (waited);
  if (fds[1].revents)
    drink (waited, EXEC_OUT);
  if (fds[2].revents)
    drink (waited, EXEC_ERR);
  return fds[3].revents != 0;
}

static int
wait_for_it (struct waited *waited, struct error **err)
{
  int64_t now;

  waited->look_ns = deadline_in (LOOK_MAX_MS);
  while (!waited->over) {
    int streams_open = waited->ours[EXEC_OUT] >= 0
                       || waited->ours[EXEC_ERR] >= 0;

    now = coffer_now_ns ();
    if (((!streams_open || waited->begun.over) && !waited->pause_ms)
        || now >= waited->look_ns) {
      if (ask (waited, err) < 0)
        return -1;
      continue;
    }
    if (waited->stage > 0 && now >= waited->stage_ns && end_harder (waited))
      return cancelled (waited, err);
    if (poll_once (waited)) {
      waited->cancel_fd = -1;
      end_harder (waited);
    }
  }
  drain (waited);
  return waited->stage > 0 ? cancelled (waited, err) : 0;
}

int
sandbox_exec_capture (struct host *host, const char *id,
                      struct exec_capture *capture, int cancel_fd,
                      struct error **err)
{
  auto_waited struct waited waited = {
    .host = host, .id = id, .capture = capture, .cancel_fd = cancel_fd,
    .ours = { -1, -1, -1 }, .theirs = { -1, -1, -1 }
  };

  if (begin (&waited, err) < 0 || wait_for_it (&waited, err) < 0)
    return -1;
  capture->result.timeout_ms = waited.begun.timeout_ms;
  capture->result.out_bytes = capture_bytes (&capture->out);
  capture->result.err_bytes = capture_bytes (&capture->err);
  return 0;
}
