/* SPDX-License-Identifier: Apache-2.0 */
/* One client: what it asks for is read, looked up in the list, resolved once
 * and connected to; then bytes go both ways until both ends are through.  What
 * is refused is said to the client in the words of its own protocol, and the
 * client is heard out for a moment, so that the answer is not lost. */

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proxy.h"

#define BUFFER_SIZE 32768
#define ADDRESS_NS INT64_C (5000000000) /* of one address of several */
#define ROUNDS 4                /* of one direction, before others' turn */

enum state { ASKING, RESOLVING, CONNECTING, RELAYING, LEAVING };

/* One direction: filled when it is empty. */
struct flow {
  char *bytes;                  /* BUFFER_SIZE + HTTP_HEAD_MORE */
  size_t start, end;
  int eof;                      /* nothing more will be read */
  int shut;                     /* and all of it was passed on */
};

struct connection {
  enum state state;
  int client, server, lookup;   /* -1: none */
  int is_socks, greeted, is_plain;
  int hung_up;                  /* the client, after its request */
  struct flow up, down;
  struct http_head head;
  struct target target;
  struct resolved found;
  uint32_t next;                /* address to be tried */
  int last_error;               /* of those that were */
  int64_t deadline, connect_end;
};

static unsigned lookups;

/* ---- made and freed -------------------------------------------------------- */

static void
fd_close (int *fd)
{
  if (*fd >= 0)
    close (*fd);
  *fd = -1;
}

static void
lookup_end (struct connection *c)
{
  if (c->lookup >= 0)
    lookups--;
  fd_close (&c->lookup);
}

void
connection_free (struct connection *c)
{
  if (c == NULL)
    return;
  lookup_end (c);
  fd_close (&c->client);
  fd_close (&c->server);
  free (c->up.bytes);
  free (c->down.bytes);
  free (c);
}

static void
no_delay (int fd)
{
  const int one = 1;

  setsockopt (fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

struct connection *
connection_new (int client)
{
  struct connection *c = calloc (1, sizeof *c);

  if (c != NULL) {
    c->up.bytes = malloc (BUFFER_SIZE + HTTP_HEAD_MORE);
    c->down.bytes = malloc (BUFFER_SIZE + HTTP_HEAD_MORE);
    c->client = client;
    c->server = c->lookup = -1;
  }
  if (c == NULL || c->up.bytes == NULL || c->down.bytes == NULL) {
    if (c == NULL)
      close (client);
    connection_free (c);
    return NULL;
  }
  no_delay (client);
  c->deadline = now_ns () + REQUEST_NS;
  return c;
}

/* ---- answers --------------------------------------------------------------- */

static void
say (struct connection *c, const char *bytes, size_t size)
{
  memcpy (c->down.bytes + c->down.end, bytes, size);
  c->down.end += size;
}

static const char *
status_phrase (int status)
{
  switch (status) {
  case 400: return "Bad Request";
  case 403: return "Forbidden";
  case 408: return "Request Timeout";
  case 431: return "Request Header Fields Too Large";
  case 501: return "Not Implemented";
  case 502: return "Bad Gateway";
  case 503: return "Service Unavailable";
  default: return "Gateway Timeout";
  }
}

/* The end of it, in one line. */
static void
leave (struct connection *c, int status, enum socks_reply reply,
       const char *why)
{
  char text[TARGET_TEXT_MAX + 256], body[TARGET_TEXT_MAX + 128];
  int size;

  fd_close (&c->server);
  lookup_end (c);
  c->down.eof = 1;
  if (c->is_socks) {
    socks_answer (reply, text);
    say (c, text, SOCKS_ANSWER_SIZE);
  } else {
    size = snprintf (body, sizeof body, "coffer: %s\n", why);
    size = snprintf (text, sizeof text,
                     "HTTP/1.1 %d %s\r\nContent-Type: text/plain\r\n"
                     "Content-Length: %d\r\nConnection: close\r\n\r\n%s",
                     status, status_phrase (status), size, body);
    say (c, text, (size_t) size);
  }
  c->state = LEAVING;
  c->deadline = now_ns () + LINGER_NS;
}

static void
leave_about (struct connection *c, int status, enum socks_reply reply,
             const char *why)
{
  char host[TARGET_TEXT_MAX], text[TARGET_TEXT_MAX + 96];

  target_text (&c->target, 1, host);
  snprintf (text, sizeof text, "%s %s", host, why);
  leave (c, status, reply, text);
}

/* ---- to the server --------------------------------------------------------- */

static int
address_fill (const struct resolved *found, uint32_t i, uint16_t port,
              struct sockaddr_storage *out)
{
  struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons (port) };
  struct sockaddr_in6 v6 = { .sin6_family = AF_INET6,
                             .sin6_port = htons (port) };

  memset (out, 0, sizeof *out);
  if (found->addresses[i].family == AF_INET) {
    memcpy (&v4.sin_addr, found->addresses[i].bytes, 4);
    memcpy (out, &v4, sizeof v4);
    return (int) sizeof v4;
  }
  memcpy (&v6.sin6_addr, found->addresses[i].bytes, 16);
  memcpy (out, &v6, sizeof v6);
  return (int) sizeof v6;
}

static void
unreached (struct connection *c)
{
  int error = c->last_error;

  if (error == ETIMEDOUT)
    leave_about (c, 504, SOCKS_TIMEOUT, "did not answer in time");
  else if (error == ECONNREFUSED)
    leave_about (c, 502, SOCKS_REFUSED, "refused the connection");
  else
    leave_about (c, 502, SOCKS_UNREACHABLE, "cannot be reached");
}

/* The next address that there is; else the client is told. */
static void
connect_next (struct connection *c)
{
  struct sockaddr_storage address;
  int64_t now = now_ns ();
  int size;

  fd_close (&c->server);
  c->state = CONNECTING;
  for (; c->next < c->found.count && now < c->connect_end; c->next++) {
    size = address_fill (&c->found, c->next, c->target.port, &address);
    c->server = socket (address.ss_family,
                        SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (c->server < 0) {
      c->last_error = errno;
      continue;
    }
    if (connect (c->server, (const struct sockaddr *) &address,
                 (socklen_t) size) == 0
        || errno == EINPROGRESS) {
      c->next++;
      c->deadline = now + ADDRESS_NS;
      if (c->next == c->found.count || c->deadline > c->connect_end)
        c->deadline = c->connect_end;
      return;
    }
    c->last_error = errno;
    fd_close (&c->server);
  }
  unreached (c);
}

static void
connect_begin (struct connection *c)
{
  c->next = 0;
  c->connect_end = now_ns () + CONNECT_NS;
  connect_next (c);
}

/* Of what a name leads to, that which is public; else the client is told. */
static void
addresses_judge (struct connection *c)
{
  const char *kind = NULL, *word;
  struct sockaddr_storage address;
  char why[96];
  uint32_t i, kept = 0;

  for (i = 0; i < c->found.count; i++) {
    address_fill (&c->found, i, c->target.port, &address);
    word = policy_forbids ((const struct sockaddr *) &address);
    if (word == NULL)
      c->found.addresses[kept++] = c->found.addresses[i];
    else
      kind = word;
  }
  c->found.count = kept;
  if (kept > 0)
    connect_begin (c);
  else if (kind != NULL) {
    denied_note (&c->target, DENIAL_ADDRESS);
    snprintf (why, sizeof why,
              "leads to a %s address, which only the address itself grants",
              kind);
    leave_about (c, 403, SOCKS_DENIED, why);
  } else
    leave_about (c, 502, SOCKS_UNREACHABLE, "cannot be resolved");
}

static void
go (struct connection *c)
{
  if (!policy_allows (&policy, &c->target)) {
    denied_note (&c->target, DENIAL_NOT_LISTED);
    leave_about (c, 403, SOCKS_DENIED,
                 "is not in the list of what this sandbox may reach");
    return;
  }
  if (c->target.family != 0) {
    c->found.count = 1;
    c->found.addresses[0].family = (uint16_t) c->target.family;
    memcpy (c->found.addresses[0].bytes, c->target.address, 16);
    connect_begin (c);
    return;
  }
  c->lookup = lookups < LOOKUPS_MAX ? resolve_begin (c->target.name) : -1;
  if (c->lookup < 0) {
    leave_about (c, 503, SOCKS_FAILED, "cannot be looked up just now");
    return;
  }
  lookups++;
  c->state = RESOLVING;
  c->deadline = now_ns () + RESOLVE_NS;
}

static void
resolve_step (struct connection *c)
{
  int r = resolve_take (c->lookup, &c->found);

  if (r == 0)
    return;
  lookup_end (c);
  if (r < 0)
    c->found.count = 0;
  addresses_judge (c);
}

/* ---- the request ----------------------------------------------------------- */

static void
ask_socks (struct connection *c)
{
  static const char no_method[2] = { 5, (char) 0xff }, none[2] = { 5, 0 };
  enum socks_reply reply;
  size_t used = 0;
  int r;

  c->is_socks = 1;
  if (!c->greeted) {
    r = socks_greeting (c->up.bytes, c->up.end, &used);
    if (r == 0)
      return;
    if (r < 0) {
      leave (c, 400, SOCKS_FAILED, "");
      c->down.end = c->down.start;
      say (c, no_method, sizeof no_method);
      return;
    }
    c->greeted = 1;
    c->up.start = used;
    say (c, none, sizeof none);
  }
  r = socks_request (c->up.bytes + c->up.start, c->up.end - c->up.start,
                     &used, &c->target, &reply);
  if (r < 0)
    leave (c, 400, reply, "");
  if (r <= 0)
    return;
  c->up.start += used;
  go (c);
}

static void
ask_http (struct connection *c)
{
  int r = http_read (c->up.bytes, c->up.end, &c->head);

  if (r < 0)
    leave (c, c->head.status, SOCKS_FAILED, c->head.why);
  if (r <= 0)
    return;
  c->target = c->head.target;
  c->is_plain = !c->head.is_connect;
  go (c);
}

/* The answer to a greeting, if it goes at once; else with the next one. */
static void
greeting_flush (struct connection *c)
{
  ssize_t n = send (c->client, c->down.bytes + c->down.start,
                    c->down.end - c->down.start, MSG_NOSIGNAL);

  if (n > 0)
    c->down.start += (size_t) n;
}

/* 1: the client has gone. */
static int
ask_step (struct connection *c)
{
  const size_t had = c->up.end;
  ssize_t n = recv (c->client, c->up.bytes + had, BUFFER_SIZE - had, 0);

  if (n < 0)
    return errno != EAGAIN && errno != EINTR;
  if (n == 0)
    return 1;
  c->up.end += (size_t) n;
  if (c->up.bytes[0] == 5)
    ask_socks (c);
  else if (c->up.end >= HTTP_HEAD_MAX
           || memchr (c->up.bytes + had, '\n', (size_t) n) != NULL
           || c->up.bytes[0] < 'A' || c->up.bytes[0] > 'z')
    ask_http (c);
  if (c->state == ASKING && c->down.end > c->down.start)
    greeting_flush (c);
  return 0;
}

/* ---- connected ------------------------------------------------------------- */

/* What of the client's first bytes is for the server. */
static int
first_bytes (struct connection *c)
{
  static const char established[]
    = "HTTP/1.1 200 Connection established\r\n\r\n";
  char answer[SOCKS_ANSWER_SIZE], *bytes;
  size_t size, more;

  if (c->is_socks) {
    socks_answer (SOCKS_OK, answer);
    say (c, answer, sizeof answer);
    return 0;
  }
  if (!c->is_plain) {
    c->up.start = c->head.size;
    say (c, established, sizeof established - 1);
    return 0;
  }
  bytes = malloc (BUFFER_SIZE + HTTP_HEAD_MORE);
  if (bytes == NULL)
    return -1;
  size = http_rewrite (c->up.bytes, &c->head, bytes);
  more = http_body_take (&c->head.body, c->up.bytes + c->head.size,
                         c->up.end - c->head.size);
  memcpy (bytes + size, c->up.bytes + c->head.size, more);
  free (c->up.bytes);
  c->up.bytes = bytes;
  c->up.start = 0;
  c->up.end = size + more;
  c->up.eof = c->head.body.done;
  return c->head.body.bad || size == 0 ? -1 : 0;
}

static void
connect_step (struct connection *c)
{
  int error = 0;
  socklen_t size = sizeof error;

  if (getsockopt (c->server, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
    error = errno;
  if (error != 0) {
    c->last_error = error;
    connect_next (c);
    return;
  }
  no_delay (c->server);
  if (first_bytes (c) < 0) {
    leave (c, 400, SOCKS_FAILED, "the body is malformed");
    return;
  }
  c->state = RELAYING;
  c->deadline = now_ns () + IDLE_NS;
}

/* ---- bytes both ways ------------------------------------------------------- */

/* 1: some were read; 0: none now; -1: it is over with this connection. */
static int
flow_fill (struct flow *flow, int from, struct http_body *body)
{
  ssize_t n = recv (from, flow->bytes, BUFFER_SIZE, 0);

  if (n < 0)
    return errno == EAGAIN || errno == EINTR ? 0 : -1;
  flow->start = 0;
  flow->end = (size_t) n;
  if (n == 0)
    flow->eof = 1;
  if (body == NULL)
    return 1;
  if (n == 0)
    return -1;                  /* the request is not whole */
  flow->end = http_body_take (body, flow->bytes, (size_t) n);
  flow->eof = body->done;
  return body->bad ? -1 : 1;
}

/* 1: some went or came; 0: nothing can just now; -1: no more comes; -2: no more
 * is taken. */
static int
flow_move (struct flow *flow, int from, int to, struct http_body *body)
{
  int moved = 0, round, r;
  ssize_t n;

  for (round = 0; round < ROUNDS; round++) {
    if (flow->start == flow->end && !flow->eof) {
      r = flow_fill (flow, from, body);
      if (r < 0)
        return -1;
      if (r == 0)
        break;
      moved = 1;
    }
    if (flow->start == flow->end)
      break;
    n = send (to, flow->bytes + flow->start, flow->end - flow->start,
              MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN && errno != EINTR)
      return -2;
    if (n <= 0)
      break;
    flow->start += (size_t) n;
    moved = 1;
  }
  if (flow->eof && flow->start == flow->end && !flow->shut) {
    flow->shut = 1;
    /* After a request of HTTP its sender is still there: a half-closed
     * connection would be taken for one that was given up. */
    if (body == NULL)
      shutdown (to, SHUT_WR);
    moved = 1;
  }
  return moved;
}

/* After a request of HTTP: whether its sender is still there.  What more it
 * sends is nobody's.  1: it has gone with a bang. */
static int
client_watch (struct connection *c)
{
  char dropped[4096];
  ssize_t n;

  if (!c->is_plain || !c->up.shut || c->hung_up)
    return 0;
  n = recv (c->client, dropped, sizeof dropped, 0);
  c->hung_up = n == 0;
  return n < 0 && errno != EAGAIN && errno != EINTR;
}

/* One end is through: the other may take its time, but not all of it. */
static int64_t
idle_ns (const struct connection *c)
{
  return c->hung_up || c->down.shut || (c->up.shut && !c->is_plain)
    ? HALF_NS : IDLE_NS;
}

static int
relay_step (struct connection *c, int64_t now)
{
  int gone = client_watch (c);
  int up = flow_move (&c->up, c->client, c->server,
                      c->is_plain ? &c->head.body : NULL);
  int down = up == -1 ? -1 : flow_move (&c->down, c->server, c->client, NULL);

  if (gone || up == -1 || down < 0)
    return 1;
  /* A server that has heard enough may still have something to say. */
  if (up == -2) {
    c->up.start = c->up.end;
    c->up.eof = c->up.shut = 1;
  }
  if (up > 0 || down > 0 || c->deadline > now + idle_ns (c))
    c->deadline = now + idle_ns (c);
  if (c->down.shut && c->is_plain) {
    fd_close (&c->server);
    c->state = LEAVING;
    c->deadline = now + LINGER_NS;
    return 0;
  }
  return c->down.shut && c->up.shut;
}

/* The answer goes out, and what still comes in is dropped. */
static int
leave_step (struct connection *c)
{
  char dropped[4096];
  ssize_t n;
  int round;

  if (flow_move (&c->down, -1, c->client, NULL) < 0)
    return 1;
  for (round = 0; round < ROUNDS; round++) {
    n = recv (c->client, dropped, sizeof dropped, 0);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
      return c->down.shut || n < 0;
    if (n < 0)
      break;
  }
  return 0;
}

/* ---- steps ----------------------------------------------------------------- */

static int
late (struct connection *c)
{
  switch (c->state) {
  case ASKING:
    leave (c, 408, SOCKS_FAILED, "the request did not come in time");
    return c->up.end == 0;
  case RESOLVING:
    lookup_end (c);
    leave_about (c, 504, SOCKS_TIMEOUT, "was not resolved in time");
    return 0;
  case CONNECTING:
    c->last_error = ETIMEDOUT;
    connect_next (c);
    return 0;
  default:
    return 1;
  }
}

int
connection_step (struct connection *c, int64_t now)
{
  if (now >= c->deadline)
    return late (c);
  switch (c->state) {
  case ASKING:
    return ask_step (c);
  case RESOLVING:
    resolve_step (c);
    return 0;
  case CONNECTING:
    connect_step (c);
    return 0;
  case RELAYING:
    return relay_step (c, now);
  default:
    return leave_step (c);
  }
}

int64_t
connection_deadline (const struct connection *c)
{
  return c->deadline;
}

static int
flow_is_empty (const struct flow *flow)
{
  return flow->start == flow->end;
}

/* A descriptor that nothing is wanted of is not in the list: its hang-up would
 * be news for ever. */
static size_t
polls_add (struct pollfd *polls, size_t n, int fd, int in, int out)
{
  if (fd < 0 || (!in && !out))
    return n;
  polls[n].fd = fd;
  polls[n].events = (short) ((in ? POLLIN : 0) | (out ? POLLOUT : 0));
  polls[n].revents = 0;
  return n + 1;
}

size_t
connection_polls (const struct connection *c, struct pollfd polls[2])
{
  size_t n = 0;

  switch (c->state) {
  case ASKING:
    return polls_add (polls, 0, c->client, 1, 0);
  case RESOLVING:
    return polls_add (polls, 0, c->lookup, 1, 0);
  case CONNECTING:
    return polls_add (polls, 0, c->server, 0, 1);
  case RELAYING:
    n = polls_add (polls, n, c->client,
                   (!c->up.eof && flow_is_empty (&c->up))
                     || (c->is_plain && c->up.shut && !c->hung_up),
                   !flow_is_empty (&c->down));
    return polls_add (polls, n, c->server,
                      !c->down.eof && flow_is_empty (&c->down),
                      !flow_is_empty (&c->up));
  default:
    return polls_add (polls, 0, c->client, 1, !flow_is_empty (&c->down));
  }
}
