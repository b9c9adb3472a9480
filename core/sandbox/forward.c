/* SPDX-License-Identifier: Apache-2.0 */
/* Connections here that are connections to a port of a sandbox.
 *
 * One loop moves the bytes of all of them, each direction with a buffer of its
 * own, so that a reader that does not read holds up nobody but its peer.  The
 * end of one direction is given on (shutdown), and a connection is over when
 * both have ended or either side is gone.  Each is dialled on a thread of its
 * own: a sandbox that does not answer holds up none of the others. */

#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "sandbox/dial.h"
#include "sandbox/host.h"
#include "sandbox/signals.h"

#define CONNECTIONS_MAX 256
#define DIALS_MAX 16            /* under way at once; others wait to be accepted */
#define BUFFER 65536
#define DIAL_MS 30000

/* One direction. */
struct way {
  int from, to;
  size_t start, size;           /* what waits in the buffer */
  int ended;                    /* nothing more comes, and that was given on */
  char *buffer;
};

struct connection {
  int here_in, here_out, there; /* here_in is here_out of a socket */
  struct way out, back;
};

/* One that was accepted here, until the sandbox has answered. */
struct begun {
  int used, here;
  struct dial dial;
};

struct forwarding {
  struct host *host;
  const struct port_forward *asked;
  size_t count, dials;
  struct connection connections[CONNECTIONS_MAX];
  struct begun begun[DIALS_MAX];
};

/* ---- one connection ----------------------------------------------------- */

static void
connection_close (struct connection *connection)
{
  free (connection->out.buffer);
  free (connection->back.buffer);
  if (connection->here_out != connection->here_in)
    coffer_fd_close (&connection->here_out);
  coffer_fd_close (&connection->here_in);
  coffer_fd_close (&connection->there);
}

/* Takes the descriptors on success. */
static int
connection_open (struct connection *connection, int take_in, int take_out,
                 int take_there, struct error **err)
{
  memset (connection, 0, sizeof *connection);
  connection->here_in = take_in;
  connection->here_out = take_out;
  connection->there = take_there;
  connection->out.from = take_in;
  connection->out.to = connection->back.from = take_there;
  connection->back.to = take_out;
  connection->out.buffer = malloc (BUFFER);
  connection->back.buffer = malloc (BUFFER);
  if (connection->out.buffer && connection->back.buffer
      && fcntl (take_there, F_SETFL, O_NONBLOCK) == 0)
    return 0;
  free (connection->out.buffer);
  free (connection->back.buffer);
  return error_set (err, E_NO_MEMORY, 0, "a connection");
}

static void
way_poll (const struct way *way, struct pollfd *pollfd)
{
  pollfd->fd = way->ended ? -1 : way->size > 0 ? way->to : way->from;
  pollfd->events = way->size > 0 ? POLLOUT : POLLIN;
  pollfd->revents = 0;
}

/* 0, or -1: the side that is read or written is gone. */
static int
way_step (struct way *way)
{
  /* What may block takes this much at once when poll says that it can. */
  size_t part = fcntl (way->to, F_GETFL) & O_NONBLOCK || way->size < PIPE_BUF
                  ? way->size : PIPE_BUF;
  ssize_t n;

  if (way->size > 0) {
    n = write (way->to, way->buffer + way->start, part);
    if (n > 0) {
      way->start += (size_t) n;
      way->size -= (size_t) n;
    }
  } else {
    n = read (way->from, way->buffer, BUFFER);
    way->start = 0;
    if (n > 0)
      way->size = (size_t) n;
    else if (n == 0) {
      way->ended = 1;
      /* What is no socket is closed with the rest. */
      shutdown (way->to, SHUT_WR);
    }
  }
  return n < 0 && errno != EINTR && errno != EAGAIN ? -1 : 0;
}

/* 1: it is over. */
static int
connection_step (struct connection *connection, const struct pollfd polls[2])
{
  if ((polls[0].revents && way_step (&connection->out) < 0)
      || (polls[1].revents && way_step (&connection->back) < 0))
    return 1;
  /* Nobody reads what would still be sent of standard input. */
  if (connection->here_in != connection->here_out && connection->back.ended)
    return 1;
  return connection->out.ended && connection->back.ended;
}

/* ---- all of them -------------------------------------------------------- */

static int
is_gone (const struct error *error)
{
  return error && error->number == E_UNKNOWN_SANDBOX;
}

/* What could not be connected is said; -1: the sandbox is gone. */
static int
forward_failed (struct forwarding *f, struct error *error, struct error **err)
{
  if (is_gone (error))
    return error_move (err, error);
  if (f->asked->failed)
    f->asked->failed (f->asked->data, error);
  error_free (error);
  return 0;
}

static int
forward_begin (struct forwarding *f, int take_here, struct error **err)
{
  struct error *error = NULL;
  struct begun *begun = f->begun;

  while (begun->used)
    begun++;
  if (dial_begin (&begun->dial, f->host, f->asked->sandbox, f->asked->port,
                  coffer_now_ns () + DIAL_MS * INT64_C (1000000), &error)
        == 0) {
    begun->used = 1;
    begun->here = take_here;
    f->dials++;
    return 0;
  }
  close (take_here);
  return forward_failed (f, error, err);
}

/* The sandbox has answered, or failed to. */
static int
forward_dialled (struct forwarding *f, struct begun *begun,
                 struct error **err)
{
  struct error *error = NULL;
  int here = begun->here, there = -1;

  begun->used = 0;
  f->dials--;
  if (dial_end (&begun->dial, &there, &error) == 0
      && connection_open (&f->connections[f->count], here, here, there, &error)
           == 0) {
    f->count++;
    return 0;
  }
  coffer_fd_close (&there);
  close (here);
  return forward_failed (f, error, err);
}

static void
forward_end_dials (struct forwarding *f)
{
  size_t i;

  for (i = 0; i < DIALS_MAX; i++)
    if (f->begun[i].used)
      dial_cancel (&f->begun[i].dial);
  for (i = 0; i < DIALS_MAX; i++)
    if (f->begun[i].used) {
      int there = -1;

      dial_end (&f->begun[i].dial, &there, NULL);
      coffer_fd_close (&there);
      coffer_fd_close (&f->begun[i].here);
    }
}

static int
forward_accept (struct forwarding *f, struct error **err)
{
  int fd = accept4 (f->asked->listener, NULL, NULL,
                    SOCK_CLOEXEC | SOCK_NONBLOCK);

  if (fd >= 0)
    return forward_begin (f, fd, err);
  if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)
    return 0;
  return error_set (err, E_IO, errno, "accepting a connection");
}

/* The only one, over two descriptors: there is nobody that it holds up. */
static int
forward_only (struct forwarding *f, struct error **err)
{
  struct provider_call call = call_in (DIAL_MS, f->asked->cancel_fd);
  coffer_autoclose int in = fcntl (f->asked->in, F_DUPFD_CLOEXEC, 3);
  coffer_autoclose int out = fcntl (f->asked->out, F_DUPFD_CLOEXEC, 3);
  coffer_autoclose int there = -1;

  if (in < 0 || out < 0)
    return error_set (err, E_IO, errno, "standard input and output");
  if (sandbox_dial (f->host, f->asked->sandbox, f->asked->port, &call, &there,
                    err) < 0
      || connection_open (&f->connections[0], in, out, there, err) < 0)
    return -1;
  in = out = there = -1;
  f->count = 1;
  return 0;
}

/* What is over is taken out. */
static void
forward_step (struct forwarding *f, const struct pollfd *polls)
{
  size_t i, kept = 0;

  for (i = 0; i < f->count; i++) {
    if (connection_step (&f->connections[i], &polls[2 * i])) {
      connection_close (&f->connections[i]);
      continue;
    }
    if (kept != i)
      f->connections[kept] = f->connections[i];
    kept++;
  }
  f->count = kept;
}

/* What is waited for: an end, somebody who comes, ends of dials, bytes. */
enum { CANCEL, LISTENER, DIALS, WAYS = DIALS + DIALS_MAX,
       WAITS = WAYS + 2 * CONNECTIONS_MAX };

static void
forward_poll (const struct forwarding *f, struct pollfd *polls)
{
  const int room = f->dials < DIALS_MAX
                   && f->count + f->dials < CONNECTIONS_MAX;
  size_t i;

  polls[CANCEL].fd = f->asked->cancel_fd;
  polls[LISTENER].fd = room ? f->asked->listener : -1;
  for (i = 0; i < DIALS_MAX; i++)
    polls[DIALS + i].fd = f->begun[i].used ? f->begun[i].dial.call.done_fd : -1;
  for (i = 0; i < WAYS; i++) {
    polls[i].events = POLLIN;
    polls[i].revents = 0;
  }
  for (i = 0; i < f->count; i++) {
    way_poll (&f->connections[i].out, &polls[WAYS + 2 * i]);
    way_poll (&f->connections[i].back, &polls[WAYS + 2 * i + 1]);
  }
}

static int
forward_run (struct forwarding *f, struct error **err)
{
  struct pollfd polls[WAITS];
  size_t i;

  while (f->asked->listener >= 0 || f->count > 0) {
    forward_poll (f, polls);
    if (poll (polls, WAYS + 2 * f->count, -1) < 0) {
      if (errno != EINTR)
        return error_set (err, E_IO, errno, "poll");
      continue;
    }
    if (polls[CANCEL].revents)
      return 0;
    forward_step (f, polls + WAYS);
    for (i = 0; i < DIALS_MAX; i++)
      if (polls[DIALS + i].revents
          && forward_dialled (f, &f->begun[i], err) < 0)
        return -1;
    if (polls[LISTENER].revents && forward_accept (f, err) < 0)
      return -1;
  }
  return 0;
}

int
sandbox_forward (struct host *host, const struct port_forward *asked,
                 struct error **err)
{
  struct forwarding *f = calloc (1, sizeof *f);
  int r = 0;
  size_t i;

  if (!f)
    return error_set (err, E_NO_MEMORY, 0, "connections");
  signals_no_sigpipe ();
  f->host = host;
  f->asked = asked;
  if (asked->listener < 0)
    r = forward_only (f, err);
  if (r == 0)
    r = forward_run (f, err);
  forward_end_dials (f);
  for (i = 0; i < f->count; i++)
    connection_close (&f->connections[i]);
  free (f);
  return r;
}

/* ---- two that are there -------------------------------------------------- */

static int
join_open (const struct port_join *join, struct connection *connection,
           struct error **err)
{
  if (join->from_here_size > BUFFER || join->from_there_size > BUFFER)
    return error_set (err, E_INTERNAL, 0, "a connection begins with too much");
  if (connection_open (connection, join->here, join->here, join->there, err)
        < 0)
    return -1;
  if (join->from_here_size)
    memcpy (connection->out.buffer, join->from_here, join->from_here_size);
  if (join->from_there_size)
    memcpy (connection->back.buffer, join->from_there, join->from_there_size);
  connection->out.size = join->from_here_size;
  connection->back.size = join->from_there_size;
  return 0;
}

static int
join_run (const struct port_join *join, struct connection *connection,
          struct error **err)
{
  struct pollfd polls[3];
  int n, half;

  for (;;) {
    half = connection->out.ended || connection->back.ended;
    way_poll (&connection->out, &polls[0]);
    way_poll (&connection->back, &polls[1]);
    polls[2] = (struct pollfd){ .fd = join->cancel_fd, .events = POLLIN };
    n = poll (polls, 3, half ? join->half_ms : join->idle_ms);
    if (n < 0 && errno != EINTR)
      return error_set (err, E_IO, errno, "poll");
    if (n == 0 || (n > 0 && (polls[2].revents
                             || connection_step (connection, polls))))
      return 0;
  }
}

int
sandbox_join (const struct port_join *join, struct error **err)
{
  struct connection connection = { .there = -1 };
  int r;

  signals_no_sigpipe ();
  if (join_open (join, &connection, err) < 0)
    return -1;
  r = join_run (join, &connection, err);
  free (connection.out.buffer);
  free (connection.back.buffer);
  return r;
}
