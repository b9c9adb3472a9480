/* SPDX-License-Identifier: Apache-2.0 */
/* The list of connections, and the thread that keeps their deadlines and sees
 * who hangs up.  See connections.h. */

#include <config.h>

#include "server/connections.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/log.h"
#include "server/listen.h"

#define EVENTS_AT_ONCE 64
/* Deadlines are kept this exactly. */
#define GRAIN_NS 50000000
/* So often it is asked whether tokens count that somebody is at work with. */
#define TOKENS_NS 500000000

struct connections {
  pthread_mutex_t lock;         /* all below */
  struct tokens *tokens;
  struct connection *first;
  size_t count, entered;
  size_t with_token;            /* that are at work */
  int64_t look_ns;              /* when to ask for those */
  uint32_t serial;
  int64_t wake_ns;              /* until when the thread sleeps */
  int ending;
  int epoll, poke;
  pthread_t thread;
};

static void
poke (int fd)
{
  const uint64_t one = 1;

  while (write (fd, &one, sizeof one) < 0 && errno == EINTR)
    ;
}

static void
cancel_locked (struct connection *connection)
{
  if (!connection->cancelled && connection->cancel_fd >= 0)
    poke (connection->cancel_fd);
  connection->cancelled = 1;
}

/* ---- the thread ---------------------------------------------------------- */

/* An event names its connection by descriptor and serial: it may be gone. */
static void
hung_up_locked (struct connections *all, uint64_t what)
{
  struct connection *c;

  for (c = all->first; c; c = c->next)
    if (c->fd == (int) (uint32_t) what && c->serial == what >> 32) {
      if (c->phase == CONNECTION_WORKS)
        cancel_locked (c);
      return;
    }
}

static int64_t
expire_locked (struct connections *all)
{
  const int64_t now = coffer_now_ns ();
  int64_t next = INT64_MAX;
  struct connection *c;

  for (c = all->first; c; c = c->next) {
    if (c->deadline_ns <= now) {
      c->deadline_ns = INT64_MAX;
      if (c->phase == CONNECTION_WORKS)
        cancel_locked (c);
      else
        shutdown (c->fd, SHUT_RDWR);
    }
    if (c->deadline_ns < next)
      next = c->deadline_ns;
  }
  return next < now + GRAIN_NS ? now + GRAIN_NS : next;
}

static void
tokens_check_locked (struct connections *all)
{
  const int64_t now = coffer_now_ns ();
  struct connection *c;

  if (all->with_token == 0 || now < all->look_ns)
    return;
  all->look_ns = now + TOKENS_NS;
  tokens_look (all->tokens);
  for (c = all->first; c; c = c->next)
    if (c->token[0] && !tokens_valid (all->tokens, c->token)) {
      log_event (LOG_LEVEL_INFO, "http", "token %s does not count any more: a "
                 "connection is cut", c->token);
      cancel_locked (c);
      shutdown (c->fd, SHUT_RDWR);
    }
}

static void *
watch (void *data)
{
  struct connections *all = data;
  struct epoll_event events[EVENTS_AT_ONCE];
  uint64_t pokes;
  int64_t wake_ns;
  int i, n;

  pthread_mutex_lock (&all->lock);
  while (!all->ending) {
    tokens_check_locked (all);
    wake_ns = expire_locked (all);
    if (all->with_token && wake_ns > all->look_ns)
      wake_ns = all->look_ns;
    all->wake_ns = wake_ns;
    pthread_mutex_unlock (&all->lock);
    n = epoll_wait (all->epoll, events, EVENTS_AT_ONCE,
                    coffer_poll_ms (wake_ns));
    pthread_mutex_lock (&all->lock);
    for (i = 0; i < n; i++) {
      if (events[i].data.u64 != UINT64_MAX)
        hung_up_locked (all, events[i].data.u64);
      else if (read (all->poke, &pokes, sizeof pokes) < 0)
        continue;               /* somebody read it: nothing is lost */
    }
  }
  pthread_mutex_unlock (&all->lock);
  return NULL;
}

int
connections_new (struct tokens *tokens, struct connections **out,
                 struct error **err)
{
  struct epoll_event event = { .events = EPOLLIN, .data.u64 = UINT64_MAX };
  struct connections *all = calloc (1, sizeof *all);
  int failed = ENOMEM;

  if (!all)
    return error_set (err, E_NO_MEMORY, 0, "the list of connections");
  pthread_mutex_init (&all->lock, NULL);
  all->tokens = tokens;
  all->wake_ns = INT64_MAX;
  all->epoll = epoll_create1 (EPOLL_CLOEXEC);
  all->poke = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (all->epoll < 0 || all->poke < 0
      || epoll_ctl (all->epoll, EPOLL_CTL_ADD, all->poke, &event) < 0)
    failed = errno;
  else
    failed = pthread_create (&all->thread, NULL, watch, all);
  if (failed) {
    coffer_fd_close (&all->epoll);
    coffer_fd_close (&all->poke);
    pthread_mutex_destroy (&all->lock);
    free (all);
    return error_set (err, E_IO, failed, "watch connections");
  }
  *out = all;
  return 0;
}

void
connections_free (struct connections *all)
{
  if (!all)
    return;
  pthread_mutex_lock (&all->lock);
  all->ending = 1;
  pthread_mutex_unlock (&all->lock);
  poke (all->poke);
  pthread_join (all->thread, NULL);
  coffer_fd_close (&all->epoll);
  coffer_fd_close (&all->poke);
  pthread_mutex_destroy (&all->lock);
  free (all);
}

/* ---- one connection ------------------------------------------------------ */

static int
arrived_on_loopback (int fd)
{
  struct sockaddr_storage address = { 0 };
  socklen_t size = sizeof address;

  return getsockname (fd, (void *) &address, &size) == 0
         && listen_is_loopback (&address);
}

static void
peer_find (struct connection *connection)
{
  struct ucred peer;
  socklen_t size = sizeof peer;
  int domain = 0;
  socklen_t domain_size = sizeof domain;

  if (getsockopt (connection->fd, SOL_SOCKET, SO_DOMAIN, &domain, &domain_size)
        < 0
      || domain != AF_UNIX) {
    connection->loopback = arrived_on_loopback (connection->fd);
    return;
  }
  if (getsockopt (connection->fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
    return;
  connection->local = 1;
  connection->uid = peer.uid;
  connection->gid = peer.gid;
}

static void
deadline_locked (struct connection *connection, int64_t deadline_ns)
{
  struct connections *all = connection->connections;

  connection->deadline_ns = deadline_ns;
  if (deadline_ns >= all->wake_ns)
    return;
  all->wake_ns = deadline_ns;
  poke (all->poke);
}

struct connection *
connection_new (struct connections *all, int fd, int64_t deadline_ns)
{
  struct connection *connection = calloc (1, sizeof *connection);

  if (!connection)
    return NULL;
  connection->connections = all;
  connection->fd = fd;
  connection->cancel_fd = -1;
  peer_find (connection);
  pthread_mutex_lock (&all->lock);
  connection->serial = ++all->serial;
  connection->next = all->first;
  connection->link = &all->first;
  if (all->first)
    all->first->link = &connection->next;
  all->first = connection;
  all->count++;
  deadline_locked (connection, deadline_ns);
  pthread_mutex_unlock (&all->lock);
  return connection;
}

static void
watch_locked (struct connection *connection, int on)
{
  struct epoll_event event = {
    .events = EPOLLRDHUP | EPOLLONESHOT,
    .data.u64 = (uint64_t) connection->serial << 32 | (uint32_t) connection->fd
  };

  if (connection->watched == on)
    return;
  connection->watched = on;
  epoll_ctl (connection->connections->epoll, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL,
             connection->fd, &event);
}

void
connection_free (struct connection *connection)
{
  struct connections *all = connection->connections;

  pthread_mutex_lock (&all->lock);
  watch_locked (connection, 0);
  all->with_token -= connection->token[0] != '\0';
  *connection->link = connection->next;
  if (connection->next)
    connection->next->link = connection->link;
  all->count--;
  pthread_mutex_unlock (&all->lock);
  coffer_fd_close (&connection->cancel_fd);
  free (connection);
}

void
connection_set (struct connection *connection, enum connection_phase phase,
                int64_t deadline_ns)
{
  struct connections *all = connection->connections;

  pthread_mutex_lock (&all->lock);
  connection->phase = phase;
  watch_locked (connection, phase == CONNECTION_WORKS);
  deadline_locked (connection, deadline_ns);
  pthread_mutex_unlock (&all->lock);
}

int
connection_begin (struct connection *connection, struct error **err)
{
  struct connections *all = connection->connections;
  uint64_t pokes;
  int failed = 0;

  pthread_mutex_lock (&all->lock);
  if (connection->cancel_fd < 0) {
    connection->cancel_fd = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
    failed = connection->cancel_fd < 0 ? errno : 0;
  } else if (connection->cancelled
             && read (connection->cancel_fd, &pokes, sizeof pokes) < 0)
    failed = errno;
  connection->cancelled = 0;
  pthread_mutex_unlock (&all->lock);
  return failed ? error_set (err, E_IO, failed, "begin a request") : 0;
}

static void
token_locked (struct connection *connection, const char *id)
{
  struct connections *all = connection->connections;

  all->with_token -= connection->token[0] != '\0';
  all->with_token += id[0] != '\0';
  snprintf (connection->token, sizeof connection->token, "%s", id);
  /* The thread may be asleep for longer. */
  if (id[0] && all->wake_ns > coffer_now_ns () + TOKENS_NS) {
    all->wake_ns = 0;
    poke (all->poke);
  }
}

void
connection_hold (struct connection *connection, struct exchange *exchange)
{
  struct connections *all = connection->connections;

  pthread_mutex_lock (&all->lock);
  connection->exchange = exchange;
  if (!exchange)
    token_locked (connection, "");
  pthread_mutex_unlock (&all->lock);
}

void
connection_token (struct connection *connection, const char *id)
{
  struct connections *all = connection->connections;

  pthread_mutex_lock (&all->lock);
  token_locked (connection, id);
  pthread_mutex_unlock (&all->lock);
}

void
connection_cancel (struct connection *connection)
{
  struct connections *all = connection->connections;

  pthread_mutex_lock (&all->lock);
  cancel_locked (connection);
  pthread_mutex_unlock (&all->lock);
}

int
connections_enter (struct connections *all, size_t limit)
{
  int room;

  pthread_mutex_lock (&all->lock);
  room = all->entered < limit;
  all->entered += (size_t) room;
  pthread_mutex_unlock (&all->lock);
  return room;
}

void
connections_leave (struct connections *all)
{
  pthread_mutex_lock (&all->lock);
  all->entered--;
  pthread_mutex_unlock (&all->lock);
}

/* ---- all of them ---------------------------------------------------------- */

size_t
connections_count (struct connections *all)
{
  size_t n;

  pthread_mutex_lock (&all->lock);
  n = all->count;
  pthread_mutex_unlock (&all->lock);
  return n;
}

size_t
connections_working (struct connections *all)
{
  struct connection *c;
  size_t n = 0;

  pthread_mutex_lock (&all->lock);
  for (c = all->first; c; c = c->next)
    n += c->exchange != NULL;
  pthread_mutex_unlock (&all->lock);
  return n;
}

static void
for_each (struct connections *all, int waiting, int working, int cancel)
{
  struct connection *c;

  pthread_mutex_lock (&all->lock);
  for (c = all->first; c; c = c->next) {
    if (!(c->exchange ? working : waiting))
      continue;
    if (cancel)
      cancel_locked (c);
    else
      shutdown (c->fd, SHUT_RDWR);
  }
  pthread_mutex_unlock (&all->lock);
}

void
connections_shut_waiting (struct connections *all)
{
  for_each (all, 1, 0, 0);
}

void
connections_cancel_all (struct connections *all)
{
  for_each (all, 0, 1, 1);
}

void
connections_shut_all (struct connections *all)
{
  for_each (all, 1, 1, 0);
}
