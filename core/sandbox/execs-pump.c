/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that moves what commands write into their logs.  It alone closes
 * what it watches. */

#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/log.h"
#include "sandbox/execs-private.h"

#define EVENTS 64
/* How long the rest of a character is waited for. */
#define PENDING_MS 50
/* A pipe's worth, in chunks, and some more. */
#define DRAIN_TURNS 20
/* Little that comes often is let come together: each turn wakes this thread,
 * whoever reads the log and that one's client.  What comes after more than
 * QUIET_NS is taken at once, and what fills the pipe as fast as it goes. */
#define GATHER_NS 250000
#define GATHER_BYTES (32 << 10)
#define QUIET_NS 1000000

struct pace {
  int64_t looked_ns;            /* when something had come */
  uint64_t bytes;               /* then */
  uint64_t lately;              /* and before it, the longer ago the less */
};

void
pump_wake (struct execs *execs)
{
  const uint64_t one = 1;

  coffer_write_all (execs->wake_fd, &one, sizeof one);
}

int
pump_add (struct execs *execs, struct live_exec *live)
{
  static const enum keeper_fd watched[] = { KEEPER_MASTER, KEEPER_OUT,
                                            KEEPER_ERR };
  size_t i;

  for (i = 0; i < sizeof watched / sizeof watched[0]; i++) {
    struct live_stream *stream = &live->streams[watched[i]];
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = stream };

    *stream = (struct live_stream){ live, watched[i] };
    /* What comes out of a terminal goes through a pipe of our own. */
    if (live->fds[watched[i]] < 0 || (live->tty && watched[i] == KEEPER_OUT))
      continue;
    if (epoll_ctl (execs->epoll, EPOLL_CTL_ADD, live->fds[watched[i]], &event)
        < 0)
      return -1;
  }
  return 0;
}

static int
is_through (const struct live_exec *live)
{
  return live->fds[KEEPER_OUT] < 0 && live->fds[KEEPER_ERR] < 0
         && live->fds[KEEPER_MASTER] < 0;
}

/* ---- one stream ----------------------------------------------------------- */

static void
stream_close (struct execs *execs, struct live_exec *live,
              enum keeper_fd which)
{
  if (live->fds[which] >= 0)
    epoll_ctl (execs->epoll, EPOLL_CTL_DEL, live->fds[which], NULL);
  if (which != KEEPER_MASTER) {
    coffer_fd_close (&live->fds[which]);
    return;
  }
  /* Somebody may be writing to it. */
  pthread_mutex_lock (&live->input_lock);
  coffer_fd_close (&live->fds[which]);
  pthread_mutex_unlock (&live->input_lock);
  coffer_fd_close (&live->fds[KEEPER_OUT]);
  coffer_fd_close (&live->fds[KEEPER_RELAY]);
}

/* From a terminal into the pipe behind it, where it is safe, and from there into
 * the log.  As exec_log_take. */
static int
terminal_take (struct live_exec *live)
{
  char bytes[4096];
  ssize_t n = splice (live->fds[KEEPER_MASTER], NULL, live->fds[KEEPER_RELAY],
                      NULL, EXEC_LOG_CHUNK, SPLICE_F_NONBLOCK);
  int again;

  if (n < 0 && errno == EINVAL) {
    n = read (live->fds[KEEPER_MASTER], bytes, sizeof bytes);
    if (n > 0)
      n = coffer_write_all (live->fds[KEEPER_RELAY], bytes, (size_t) n);
  }
  /* EIO: its other side is closed. */
  again = n < 0 && (errno == EAGAIN || errno == EINTR);
  while (exec_log_take (live->log, 0, live->fds[KEEPER_OUT]) > 0)
    ;
  return n > 0 ? 1 : again ? 0 : -1;
}

static int
stream_take (struct live_exec *live, enum keeper_fd which)
{
  return which == KEEPER_MASTER
           ? terminal_take (live)
           : exec_log_take (live->log, which == KEEPER_ERR, live->fds[which]);
}

/* What it holds now, so that nobody else waits for what comes meanwhile. */
static int
stream_drain (struct live_exec *live, enum keeper_fd which, struct pace *pace)
{
  int held, turns, r;

  if (ioctl (live->fds[which], FIONREAD, &held) < 0 || held < 0)
    held = 0;
  pace->bytes += (uint64_t) held;
  turns = held / EXEC_LOG_CHUNK + 1;
  do
    r = stream_take (live, which);
  while (r > 0 && --turns > 0);
  return r;
}

static void
stream_ready (struct execs *execs, const struct live_stream *stream,
              struct pace *pace)
{
  struct live_exec *live = stream->live;

  if (live->fds[stream->which] < 0)
    return;
  if (stream_drain (live, stream->which, pace) < 0) {
    stream_close (execs, live, stream->which);
    if (is_through (live) && !live->done)
      live_ask_now (execs, live);
  }
  if (live->done)
    return;
  if (!exec_log_pending (live->log))
    live->pending_ns = 0;
  else if (!live->pending_ns)
    live->pending_ns = deadline_in (PENDING_MS);
}

/* ---- one command ---------------------------------------------------------- */

/* What its pipes hold now was written before it ended, or at the same time. */
static void
command_end (struct execs *execs, struct live_exec *live, json_t *take_facts)
{
  static const enum keeper_fd streams[] = { KEEPER_MASTER, KEEPER_OUT,
                                            KEEPER_ERR };
  size_t i;
  int turns;

  for (i = 0; i < sizeof streams / sizeof streams[0]; i++)
    for (turns = 0; turns < DRAIN_TURNS && live->fds[streams[i]] >= 0
                    && stream_take (live, streams[i]) > 0; turns++)
      ;
  exec_log_end (live->log, take_facts);
  live->done = 1;
  live->pending_ns = 0;
  pthread_mutex_lock (&live->input_lock);
  coffer_fd_close (&live->fds[KEEPER_IN]);
  pthread_mutex_unlock (&live->input_lock);
  log_event (LOG_LEVEL_INFO, "exec", "%s %s: ended", live->log->sandbox,
             live->log->exec);
  (void) execs;
}

/* Out of the list, when nothing is left to do for it.  What it left running may
 * still write, which is read and thrown away. */
static struct live_exec *
finished_take_locked (struct execs *execs)
{
  struct live_exec **p, *live;

  for (p = &execs->live; (live = *p); p = &live->next)
    if (live->done && is_through (live)) {
      *p = live->next;
      execs->count--;
      return live;
    }
  return NULL;
}

static void
finished_remove (struct execs *execs)
{
  struct live_exec *live;

  for (;;) {
    pthread_mutex_lock (&execs->lock);
    live = finished_take_locked (execs);
    pthread_mutex_unlock (&execs->lock);
    if (!live)
      return;
    keeper_tell (execs, live, KEEPER_FORGET);
    live_unref (execs, live);
  }
}

/* One whose end is known and not written yet. */
static struct live_exec *
settled_locked (struct execs *execs, json_t **facts)
{
  struct live_exec *live;

  for (live = execs->live; live; live = live->next)
    if (live->facts) {
      *facts = steal (live->facts);
      return live;
    }
  return NULL;
}

static void
settled_end (struct execs *execs)
{
  struct live_exec *live;
  json_t *facts;

  for (;;) {
    pthread_mutex_lock (&execs->lock);
    live = settled_locked (execs, &facts);
    pthread_mutex_unlock (&execs->lock);
    if (!live)
      return;
    /* The list holds it, and only this thread takes it from there. */
    command_end (execs, live, facts);
  }
}

/* ---- the loop ------------------------------------------------------------- */

/* The parts of characters whose rest has not come; until when for the others. */
static int64_t
pending_tell (struct execs *execs)
{
  int64_t until = INT64_MAX, now = coffer_now_ns ();
  struct live_exec *live;

  pthread_mutex_lock (&execs->lock);
  for (live = execs->live; live; live = live->next) {
    if (live->pending_ns && live->pending_ns <= now) {
      exec_log_flush (live->log);
      live->pending_ns = 0;
    }
    if (live->pending_ns && live->pending_ns < until)
      until = live->pending_ns;
  }
  pthread_mutex_unlock (&execs->lock);
  return until;
}

static void
wake_hear (struct execs *execs)
{
  uint64_t count;

  while (read (execs->wake_fd, &count, sizeof count) < 0 && errno == EINTR)
    ;
}

static int
is_stopping (struct execs *execs)
{
  int stopping;

  pthread_mutex_lock (&execs->lock);
  stopping = execs->stopping;
  pthread_mutex_unlock (&execs->lock);
  return stopping;
}

static void
gather (struct pace *pace)
{
  const struct timespec pause = { .tv_nsec = GATHER_NS };
  const int64_t now = coffer_now_ns ();
  const int often = now - pace->looked_ns < QUIET_NS;

  if (pace->bytes == 0)
    return;
  pace->lately = pace->lately / 2 + pace->bytes;
  pace->looked_ns = now;
  pace->bytes = 0;
  if (often && pace->lately < GATHER_BYTES)
    nanosleep (&pause, NULL);
}

void *
pump_run (void *data)
{
  struct execs *execs = data;
  struct pace pace = { 0 };
  struct epoll_event events[EVENTS];
  int64_t until = INT64_MAX;
  int i, n, lost;

  while (!is_stopping (execs)) {
    lost = 0;
    n = epoll_wait (execs->epoll, events, EVENTS, coffer_poll_ms (until));
    for (i = 0; i < n; i++) {
      const struct live_stream *stream = events[i].data.ptr;

      if (!stream)
        wake_hear (execs);
      else if (stream->live)
        stream_ready (execs, stream, &pace);
      else
        lost = 1;
    }
    if (lost || keeper_is_lost (execs))
      keeper_lost (execs);
    settled_end (execs);
    finished_remove (execs);
    gather (&pace);
    until = pending_tell (execs);
  }
  return NULL;
}
