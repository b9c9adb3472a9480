/* SPDX-License-Identifier: Apache-2.0 */
/* The connection to the server inside: the request goes in while its reply may
 * come out already.  Every wait has its bound, and the client's leaving ends
 * each.  See proxy.h. */

#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/text.h"
#include "server/api/proxy.h"

#define SEND_MS 60000           /* that it may take nothing of a request */
#define HEAD_MS 120000          /* until the head of its reply */
#define BODY_MS 600000          /* that it may say nothing of a reply */
#define EARLY_MS 2000           /* that it may take nothing more of a request
                                 * that it replies to already */
#define PART 32768
#define INTERIM_MAX 16          /* replies 1xx */

struct proxy *
proxy_new (struct request *request, uint32_t port, struct error **err)
{
  auto_proxy struct proxy *proxy = calloc (1, sizeof *proxy);
  const char *connection = request_header (request, "Connection");
  const char *upgrade = request_header (request, "Upgrade");

  if (proxy) {
    proxy->fd = -1;
    proxy->buffer = malloc (PROXY_BUFFER);
  }
  if (!proxy || !proxy->buffer) {
    error_set (err, E_NO_MEMORY, 0, "a proxy");
    return NULL;
  }
  proxy->request = request;
  proxy->port = port;
  if (upgrade && coffer_http1_list_has (connection, "upgrade")
      && coffer_http1_is_token (upgrade) && strcmp (request->method, "GET") == 0
      && !request->head)
    proxy->upgrade = upgrade;
  proxy->chunked = request_header (request, "Transfer-Encoding") != NULL;
  return steal (proxy);
}

void
proxy_free (struct proxy *proxy)
{
  if (!proxy)
    return;
  coffer_fd_close (&proxy->fd);
  coffer_http1_head_fini (&proxy->head);
  free (proxy->prefix);
  free (proxy->buffer);
  free (proxy);
}

/* ---- the request --------------------------------------------------------- */

/* What goes in. */
struct sending {
  char *text;                   /* the head, then parts of the body */
  size_t start, size;
  int body_ended;               /* there is no more of it */
  int over;                     /* and all of it was sent, or is not taken */
};

/* A part of the body, framed in the buffer that the head was in. */
static int
next_part (struct proxy *proxy, struct sending *sending, struct error **err)
{
  char part[PART], frame[32];
  size_t before = 0;
  ssize_t n;

  do
    n = read (proxy->request->body_fd, part, sizeof part);
  while (n < 0 && errno == EINTR);
  if (n < 0)
    return errno == EAGAIN ? 0 : error_set (err, E_IO, errno, "the body");
  sending->start = sending->size = 0;
  if (n == 0) {
    sending->body_ended = 1;
    if (!request_body_complete (proxy->request))
      return error_set (err, E_BODY, 0, "the body ended before it was whole");
  }
  if (proxy->chunked)
    before = (size_t) snprintf (frame, sizeof frame, "%zx\r\n", (size_t) n);
  memcpy (sending->text, frame, before);
  memcpy (sending->text + before, part, (size_t) n);
  sending->size = before + (size_t) n;
  if (proxy->chunked) {
    memcpy (sending->text + sending->size, "\r\n", 2);
    sending->size += 2;
  }
  return 0;
}

/* What it does not take any more, it does not want: its reply says why. */
static void
send_step (struct proxy *proxy, struct sending *sending)
{
  ssize_t n = write (proxy->fd, sending->text + sending->start,
                     sending->size - sending->start);

  if (n > 0)
    sending->start += (size_t) n;
  else if (n < 0 && errno != EAGAIN && errno != EINTR)
    sending->over = 1;
}

static int
receive_step (struct proxy *proxy)
{
  size_t used = proxy->start + proxy->size;
  ssize_t n;

  if (proxy->start > 0) {
    memmove (proxy->buffer, proxy->buffer + proxy->start, proxy->size);
    proxy->start = 0;
    used = proxy->size;
  }
  n = read (proxy->fd, proxy->buffer + used, PROXY_BUFFER - used);
  if (n > 0)
    proxy->size += (size_t) n;
  return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)) ? 1 : 0;
}

/* ---- its reply ----------------------------------------------------------- */

static int
no_reply (struct error **err)
{
  return error_set (err, E_UPSTREAM, 0,
                    "the connection ended before a reply was whole");
}

/* 1: the head of a last reply, or of another protocol, is there; 0: not yet. */
static int
look_for_head (struct proxy *proxy, int *interim, struct error **err)
{
  struct coffer_http1_head *head = &proxy->head;
  const char *wrong;
  ssize_t n;

  for (;;) {
    n = coffer_http1_head_length (proxy->buffer + proxy->start, proxy->size);
    if (n < 0)
      return error_set (err, E_UPSTREAM, 0,
                        "what answers is refused: its head has no end");
    if (n == 0)
      return 0;
    wrong = coffer_http1_head_parse (proxy->buffer + proxy->start, (size_t) n,
                                     proxy->request->head, head);
    if (wrong)
      return error_set (err, E_UPSTREAM, 0, "what answers is refused: %s",
                        wrong);
    proxy->start += (size_t) n;
    proxy->size -= (size_t) n;
    if (head->status >= 200)
      return 1;
    if (head->status == 101)
      return proxy->upgrade ? 1
                            : error_set (err, E_UPSTREAM, 0, "what answers is"
                                         " refused: nobody asked for another"
                                         " protocol");
    coffer_http1_head_fini (head);
    if (++*interim > INTERIM_MAX)
      return error_set (err, E_UPSTREAM, 0,
                        "what answers is refused: it never says the last");
  }
}

/* ---- both at once -------------------------------------------------------- */

struct turn {
  struct sending *sending;
  int headed;                   /* the head is there: only the body still goes
                                 * in */
  int ended;                    /* it sends no more */
  int interim;
  int64_t progress_ns;          /* when something moved last */
};

static int
waits_for_body (const struct turn *turn)
{
  return !turn->sending->over && !turn->sending->body_ended
         && turn->sending->start == turn->sending->size;
}

/* 1: something can be done; 0: nothing moves any more. */
static int
turn_wait (struct proxy *proxy, const struct turn *turn, struct pollfd fds[3],
           struct error **err)
{
  const struct sending *sending = turn->sending;
  const int body = waits_for_body (turn);
  const int sends = !sending->over && !body && sending->start < sending->size;
  const int full = proxy->size == PROXY_BUFFER;
  /* The client's own time to send is the server's to bound. */
  const int limit = turn->headed ? EARLY_MS : sends ? SEND_MS : HEAD_MS;
  const int64_t deadline
    = body ? INT64_MAX : turn->progress_ns + (int64_t) limit * 1000000;
  int n;

  fds[0] = (struct pollfd){ .fd = body ? proxy->request->body_fd : -1,
                            .events = POLLIN };
  fds[1] = (struct pollfd){
    .events = (short) ((sends ? POLLOUT : 0)
                       | (turn->ended || full ? 0 : POLLIN))
  };
  fds[1].fd = fds[1].events ? proxy->fd : -1;
  fds[2] = (struct pollfd){ .fd = proxy->request->cancel_fd,
                            .events = POLLIN };
  do
    n = poll (fds, 3, coffer_poll_ms (deadline));
  while (n < 0 && errno == EINTR);
  if (n < 0)
    return error_set (err, E_IO, errno, "poll");
  if (fds[2].revents)
    return error_set (err, E_EXEC_CANCELLED, 0, "the request was left");
  return n > 0;
}

static int
turn_move (struct proxy *proxy, struct turn *turn, const struct pollfd fds[3],
           struct error **err)
{
  struct sending *sending = turn->sending;
  const size_t before = sending->start, had = proxy->size;
  int r = 0;

  if (fds[0].revents && next_part (proxy, sending, err) < 0)
    return -1;
  if (fds[1].revents & (POLLOUT | POLLERR | POLLHUP)
      && sending->start < sending->size && !sending->over)
    send_step (proxy, sending);
  if (fds[1].revents & (POLLIN | POLLHUP | POLLERR) && !turn->ended
      && proxy->size < PROXY_BUFFER)
    turn->ended = !receive_step (proxy);
  if (sending->body_ended && sending->start == sending->size)
    sending->over = 1;
  if (fds[0].revents || sending->start != before || proxy->size != had)
    turn->progress_ns = coffer_now_ns ();
  if (!turn->headed)
    r = look_for_head (proxy, &turn->interim, err);
  if (r > 0)
    turn->headed = 1;
  return r < 0 ? -1 : 0;
}

static int
turns (struct proxy *proxy, struct turn *turn, struct error **err)
{
  int r;

  while (!turn->headed || !turn->sending->over) {
    if (turn->ended && !turn->headed)
      return no_reply (err);
    /* Nobody is there to send it to. */
    if (turn->ended)
      return 0;
    r = turn_wait (proxy, turn, proxy->fds, err);
    if (r < 0)
      return -1;
    if (r == 0 && turn->headed)
      return 0;
    if (r == 0)
      return error_set (err, E_UPSTREAM_TIMEOUT, 0,
                        "what listens at port %u did not answer in time",
                        proxy->port);
    if (turn_move (proxy, turn, proxy->fds, err) < 0)
      return -1;
  }
  return 0;
}

int
proxy_exchange (struct proxy *proxy, struct error **err)
{
  struct sending sending = { 0 };
  struct turn turn = { .sending = &sending,
                       .progress_ns = coffer_now_ns () };
  auto_free char *text = proxy_request_head (proxy, &sending.size, err);
  char *grown;

  if (!text)
    return -1;
  grown = realloc (text, (sending.size > PART ? sending.size : PART) + 64);
  if (!grown)
    return error_set (err, E_NO_MEMORY, 0, "a request");
  sending.text = text = grown;
  if (fcntl (proxy->fd, F_SETFL, O_NONBLOCK) < 0)
    return error_set (err, E_IO, errno, "a connection");
  if (turns (proxy, &turn, err) < 0)
    return -1;
  coffer_http1_body_init (&proxy->body, &proxy->head);
  return 0;
}

/* ---- the body ------------------------------------------------------------ */

/* What waits of it. */
static ssize_t
take_buffered (struct proxy *proxy, char *out, size_t max)
{
  const char *data;
  size_t used, n;

  if (coffer_http1_body_read (&proxy->body, proxy->buffer + proxy->start,
                       proxy->size < max ? proxy->size : max, &used, &data, &n)
        < 0)
    return -1;
  memcpy (out, data, n);
  proxy->start += used;
  proxy->size -= used;
  return (ssize_t) n;
}

ssize_t
proxy_body (struct proxy *proxy, char *out, size_t max)
{
  const struct request *request = proxy->request;
  ssize_t n;

  for (;;) {
    if (proxy->size > 0 && !coffer_http1_body_over (&proxy->body)
        && (n = take_buffered (proxy, out, max)) != 0)
      return n;
    if (coffer_http1_body_over (&proxy->body))
      return 0;
    if (proxy->size > 0)
      continue;
    if (coffer_wait_fd (proxy->fd, POLLIN,
                        coffer_now_ns () + (int64_t) BODY_MS * 1000000,
                        request->cancel_fd) != 1)
      return -1;
    proxy->start = 0;
    n = read (proxy->fd, proxy->buffer, PROXY_BUFFER);
    if (n > 0)
      proxy->size = (size_t) n;
    else if (n == 0)
      return coffer_http1_body_may_end (&proxy->body) ? 0 : -1;
    else if (errno != EAGAIN && errno != EINTR)
      return -1;
  }
}
