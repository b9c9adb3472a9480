/* SPDX-License-Identifier: Apache-2.0 */
/* Attaching to a process by WebSocket: a message is a line, both ways.
 *
 * What comes out is text, or binary where it is no UTF-8 or longer than a piece,
 * which then comes in fragments.  A thread of its own sends; the connection's
 * receives, and writes to the process, which may take its time: then nobody
 * asks whether the client is there.  The end of the process, and output that was
 * dropped, close the connection. */

#include <config.h>

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

#include <coffer/fd.h>
#include <coffer/http1.h>
#include <coffer/websocket.h>

#include "base/text.h"
#include "sandbox/host.h"
#include "server/box/attach.h"
#include "server/box/sessions.h"
#include "server/exchange.h"

#define MESSAGE_MAX (16 << 20)  /* of a client's */
#define PING_MS 30000           /* of silence, and once more is the end */
#define LOOK_MS 250             /* whether the daemon ends */
#define SEND_MS 60000           /* for what was made at once */
#define CLOSE_MS 2000           /* for the other side's close */
#define LINGER_MS 1000          /* so that it hears why */
#define BUSY_MS 20              /* until a line of somebody else is written */

struct socket {
  struct attach *attach;
  struct connection *connection;
  struct coffer_websocket websocket;
  int fd;
  int end_fd;                   /* a timer: CLOSE_MS after the output's end */
  pthread_mutex_t lock;         /* what is sent, and all below */
  int closed;                   /* nothing is sent any more */
};

/* ---- what is sent --------------------------------------------------------- */

static int
send_all_locked (struct socket *socket, const char *bytes, size_t size)
{
  const int64_t until = deadline_in (SEND_MS);
  ssize_t n;

  while (size > 0) {
    if (coffer_now_ns () >= until
        || coffer_wait_fd (socket->fd, POLLOUT, until,
                           socket->attach->cancel_fd) != 1)
      return -1;
    n = send (socket->fd, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN && errno != EINTR)
      return -1;
    bytes += n > 0 ? n : 0;
    size -= n > 0 ? (size_t) n : 0;
  }
  return 0;
}

/* Unless it is closed: frames that were made. */
static int
frames_send (struct socket *socket, const struct coffer_buffer *frames)
{
  int r = -1;

  pthread_mutex_lock (&socket->lock);
  if (!socket->closed && !frames->failed)
    r = send_all_locked (socket, frames->data, frames->size);
  /* A frame that was cut is the last. */
  socket->closed |= r < 0;
  pthread_mutex_unlock (&socket->lock);
  return r;
}

static int
control_send (struct socket *socket, enum coffer_websocket_kind kind,
              const void *bytes, size_t size)
{
  coffer_autobuffer struct coffer_buffer frame = { 0 };
  int r;

  pthread_mutex_lock (&socket->lock);
  r = coffer_websocket_write (&socket->websocket, kind, bytes, size, &frame);
  pthread_mutex_unlock (&socket->lock);
  return r < 0 ? -1 : frames_send (socket, &frame);
}

/* The first says why. */
static void
close_send (struct socket *socket, uint16_t code, const char *why)
{
  coffer_autobuffer struct coffer_buffer frame = { 0 };

  pthread_mutex_lock (&socket->lock);
  if (!socket->closed
      && coffer_websocket_write_close (&socket->websocket, code, why, &frame)
           == 0)
    send_all_locked (socket, frame.data, frame.size);
  socket->closed = 1;
  pthread_mutex_unlock (&socket->lock);
}

/* ---- the output's frames -------------------------------------------------- */

static void
socket_line (struct attach *attach, const char *bytes, size_t size,
             enum attach_part part)
{
  struct socket *socket = attach->data;
  struct coffer_websocket *websocket = &socket->websocket;
  const int last = part != ATTACH_PIECE;
  int first;

  pthread_mutex_lock (&socket->lock);
  first = !websocket->out_begun;
  if (coffer_websocket_write_part (
        websocket, first && last && text_is_utf8 (bytes, size)
                     ? COFFER_WEBSOCKET_TEXT : COFFER_WEBSOCKET_BINARY,
        first, last, bytes, size, &attach->out) < 0)
    attach->failed = 1;
  pthread_mutex_unlock (&socket->lock);
}

/* No message may have a hole that nobody sees: the next who attaches goes on
 * behind it. */
static void
socket_dropped (struct attach *attach, uint64_t bytes)
{
  auto_free char *why = text_printf ("%ju bytes of output were dropped",
                                     (uintmax_t) bytes);

  coffer_buffer_clear (&attach->line);
  attach->made = (struct box_mark){ attach->seq + 1, 0 };
  if (frames_send (attach->data, &attach->out) == 0)
    attach->seen = attach->made;
  coffer_buffer_clear (&attach->out);
  close_send (attach->data, COFFER_WEBSOCKET_BROKEN, why);
  attach->ended = 1;
}

static void
socket_exited (struct attach *attach, const json_t *code)
{
  auto_free char *why
    = json_is_integer (code)
        ? text_printf ("the process has ended with %lld",
                       (long long) json_integer_value (code))
        : strdup ("the process has ended");

  if (frames_send (attach->data, &attach->out) == 0)
    attach->seen = attach->made;
  coffer_buffer_clear (&attach->out);
  close_send (attach->data, COFFER_WEBSOCKET_NORMAL, why);
}

static const struct attach_framing socket_framing = {
  socket_line, socket_dropped, socket_exited
};

/* Whatever ends it, the receiver has a moment for what is still coming. */
static void *
output_thread (void *data)
{
  struct socket *socket = data;
  const struct itimerspec soon = { .it_value.tv_sec = CLOSE_MS / 1000 };

  while (attach_next (socket->attach) == 1
         && frames_send (socket, &socket->attach->out) == 0)
    ;
  close_send (socket, COFFER_WEBSOCKET_GOING_AWAY, NULL);
  timerfd_settime (socket->end_fd, 0, &soon, NULL);
  return NULL;
}

/* ---- what is received ----------------------------------------------------- */

/* A moment later: 1, unless the output has ended long enough ago. */
static int
is_again (const struct socket *socket)
{
  return coffer_wait_fd (-1, 0, deadline_in (BUSY_MS), socket->end_fd) == 0
         && errno == ETIMEDOUT;
}

/* Of a process that is ending anyhow its output says so. */
static int
is_ending (const struct socket *socket)
{
  const int64_t until = deadline_in (CLOSE_MS);

  while (!exec_log_over (socket->attach->log))
    if (coffer_now_ns () >= until || !is_again (socket))
      return 0;
  return 1;
}

static int
input_write (struct socket *socket, const char *bytes, size_t size)
{
  const struct attach *attach = socket->attach;

  for (;;) {
    auto_error struct error *error = NULL;

    if (box_line_write (attach->box, attach->session, attach->exec, bytes,
                        size, socket->end_fd, &error) == 0)
      return 0;
    if (error->number == E_BUSY && is_again (socket))
      continue;
    if (error->number == E_SANDBOX_STATE && is_ending (socket))
      return 0;
    close_send (socket, COFFER_WEBSOCKET_BROKEN, error_message (error));
    return -1;
  }
}

/* 1: go on. */
static int
event_take (struct socket *socket, const struct coffer_websocket_event *event)
{
  switch (event->kind) {
  case COFFER_WEBSOCKET_TEXT:
  case COFFER_WEBSOCKET_BINARY:
    return input_write (socket, event->bytes, event->size) == 0;
  case COFFER_WEBSOCKET_PING:
    control_send (socket, COFFER_WEBSOCKET_PONG, event->bytes, event->size);
    return 1;
  case COFFER_WEBSOCKET_PONG:
    return 1;
  default:
    close_send (socket, event->code, NULL);
    return 0;
  }
}

/* Once more for the other side to hear what it was told last. */
static void
linger (struct socket *socket)
{
  const int64_t until = deadline_in (LINGER_MS);
  char coffer_unfilled bytes[16384];

  shutdown (socket->fd, SHUT_WR);
  while (coffer_now_ns () < until
         && coffer_wait_fd (socket->fd, POLLIN, until, -1) == 1
         && recv (socket->fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
    ;
}

/* After a while of nothing.  1: go on. */
static int
silence (struct socket *socket, int64_t *heard_ns, int *asked)
{
  if (atomic_load (&socket->attach->box->server->draining)) {
    close_send (socket, COFFER_WEBSOCKET_GOING_AWAY, "this server is going");
    return 0;
  }
  if (coffer_now_ns () - *heard_ns < PING_MS * INT64_C (1000000))
    return 1;
  if (*asked || control_send (socket, COFFER_WEBSOCKET_PING, "", 0) < 0)
    return 0;
  *heard_ns = coffer_now_ns ();
  *asked = 1;
  return 1;
}

static void
input_run (struct socket *socket)
{
  struct coffer_websocket_event event = { 0 };
  int64_t heard_ns = coffer_now_ns ();
  int asked = 0, r;

  do {
    r = coffer_websocket_receive (&socket->websocket, socket->fd, &event,
                                  deadline_in (LOOK_MS), socket->end_fd);
    if (r == 1) {
      r = event_take (socket, &event);
      heard_ns = coffer_now_ns ();
      asked = 0;
    } else if (r < 0 && errno == ETIMEDOUT)
      r = silence (socket, &heard_ns, &asked);
    else if (r < 0 && (errno == EPROTO || errno == EMSGSIZE))
      close_send (socket, event.code, NULL);
  } while (r == 1);
}

static void
socket_run (void *data, int fd, const char *early, size_t size)
{
  struct socket *socket = data;
  pthread_t output;

  socket->fd = fd;
  /* A client who hangs up is noticed also while its input waits. */
  connection_set (socket->connection, CONNECTION_WORKS, INT64_MAX);
  if (coffer_websocket_early (&socket->websocket, early, size) < 0
      || pthread_create (&output, NULL, output_thread, socket) != 0)
    return;
  input_run (socket);
  connection_cancel (socket->connection);
  pthread_join (output, NULL);
  linger (socket);
}

/* ---- the handshake -------------------------------------------------------- */

static void
socket_free (void *data)
{
  struct socket *socket = data;

  attach_free (socket->attach);
  coffer_websocket_fini (&socket->websocket);
  coffer_fd_close (&socket->end_fd);
  pthread_mutex_destroy (&socket->lock);
  free (socket);
}

static int
header_has (const struct request *request, const char *name, const char *word)
{
  const char *value = request_header (request, name);

  return value && coffer_http1_list_has (value, word);
}

int
socket_is_wanted (const struct request *request)
{
  return header_has (request, "Connection", "upgrade")
         && header_has (request, "Upgrade", "websocket");
}

static int
handshake (struct request *request, struct error **err)
{
  const char *version = request_header (request, "Sec-WebSocket-Version");
  const char *key = request_header (request, "Sec-WebSocket-Key");
  char accept[COFFER_WEBSOCKET_ACCEPT_SIZE];

  if (!version || strcmp (version, "13") != 0) {
    reply_header (request, "Sec-WebSocket-Version", "13", NULL);
    return error_set (err, E_REQUEST, 0, "WebSocket is spoken in version 13");
  }
  if (!key || coffer_websocket_accept (key, accept) < 0)
    return error_set (err, E_REQUEST, 0,
                      "the header Sec-WebSocket-Key has no 16 bytes");
  if (header_has (request, "Sec-WebSocket-Protocol", "mcp")
      && reply_header (request, "Sec-WebSocket-Protocol", "mcp", err) < 0)
    return -1;
  return reply_header (request, "Sec-WebSocket-Accept", accept, err);
}

static struct socket *
socket_new (struct attach *take_attach, const struct request *request)
{
  struct socket *socket = calloc (1, sizeof *socket);

  if (socket)
    *socket = (struct socket){
      .attach = take_attach,
      .connection = exchange_of (request)->connection,
      .websocket = { .is_server = 1, .most = MESSAGE_MAX },
      .fd = -1,
      .end_fd = timerfd_create (CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)
    };
  if (socket && socket->end_fd >= 0) {
    pthread_mutex_init (&socket->lock, NULL);
    take_attach->data = socket;
    return socket;
  }
  free (socket);
  attach_free (take_attach);
  return NULL;
}

int
box_process_socket (struct box *box, struct request *request,
                    struct box_session *session, const char *id,
                    struct error **err)
{
  struct reply_upgrade upgrade = { socket_run, socket_free, NULL };
  struct attach *attach;

  if (handshake (request, err) < 0) {
    box_session_leave (box, session);
    return -1;
  }
  attach = attach_new (box, request, session, id, &socket_framing, err);
  if (attach == NULL)
    return -1;
  upgrade.data = socket_new (attach, request);
  if (upgrade.data == NULL)
    return error_set (err, E_NO_MEMORY, 0, "out of memory");
  return reply_upgrade (request, "websocket", &upgrade, err);
}
