/* SPDX-License-Identifier: Apache-2.0 */
/* See pump.h.  One buffer for each direction: what is full is not read from.
 *
 * An end of what the caller sends goes on as TLS's close_notify, which libcurl
 * has no call for; its OpenSSL does, when that is what libcurl uses.  Where it is
 * not, the other end learns of it when the caller closes. */

#define _GNU_SOURCE

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "pump.h"

#define ROOM 65536

/* Of libcurl's own TLS library: there or not, and of no header of ours. */
extern int SSL_shutdown (void *ssl) __attribute__ ((weak));

struct flow {
  char *bytes;                  /* ROOM */
  size_t from, size;            /* what has come and not gone on */
  int ended;                    /* no more comes */
  int told;                     /* and the other end knows */
};

struct http_pump {
  struct http_pump *next;
  struct http_handle *handle;
  pthread_t thread;
  int fd;                       /* of the pair */
  curl_socket_t socket;         /* libcurl's, to wait for */
  int stop;                     /* eventfd */
  int done;                     /* atomic: the thread has nothing left to do */
  struct flow in, out;          /* to the caller, from the caller */
};

/* 1: something moved; 0: nothing can; -1: it is over. */
static int
receive (struct http_pump *pump)
{
  struct flow *in = &pump->in;
  size_t n = 0;
  CURLcode r;

  if (in->size > 0 || in->ended)
    return 0;
  r = curl_easy_recv (pump->handle->easy, in->bytes, ROOM, &n);
  if (r == CURLE_AGAIN)
    return 0;
  in->from = 0;
  in->size = r == CURLE_OK ? n : 0;
  in->ended = r != CURLE_OK || n == 0;
  return r == CURLE_OK ? 1 : -1;
}

static int
give (struct http_pump *pump)
{
  struct flow *in = &pump->in;
  ssize_t n;

  if (in->size == 0)
    return 0;
  n = send (pump->fd, in->bytes + in->from, in->size,
            MSG_DONTWAIT | MSG_NOSIGNAL);
  if (n < 0)
    return errno == EAGAIN || errno == EINTR ? 0 : -1;
  in->from += (size_t) n;
  in->size -= (size_t) n;
  return 1;
}

static int
take (struct http_pump *pump)
{
  struct flow *out = &pump->out;
  ssize_t n;

  if (out->size > 0 || out->ended)
    return 0;
  n = recv (pump->fd, out->bytes, ROOM, MSG_DONTWAIT);
  if (n < 0)
    return errno == EAGAIN || errno == EINTR ? 0 : -1;
  out->from = 0;
  out->size = (size_t) n;
  out->ended = n == 0;
  return 1;
}

static int
send_on (struct http_pump *pump)
{
  struct flow *out = &pump->out;
  size_t n = 0;
  CURLcode r;

  if (out->size == 0)
    return 0;
  r = curl_easy_send (pump->handle->easy, out->bytes + out->from, out->size,
                      &n);
  if (r != CURLE_OK)
    return r == CURLE_AGAIN ? 0 : -1;
  out->from += n;
  out->size -= n;
  return 1;
}

static void
tell_service (struct http_pump *pump)
{
  const struct curl_tlssessioninfo *tls = NULL;

  curl_easy_getinfo (pump->handle->easy, CURLINFO_TLS_SSL_PTR, &tls);
  if (!tls || tls->backend == CURLSSLBACKEND_NONE || !tls->internals)
    shutdown (pump->socket, SHUT_WR);
  else if (tls->backend == CURLSSLBACKEND_OPENSSL && SSL_shutdown)
    SSL_shutdown (tls->internals);
}

static void
tell_ends (struct http_pump *pump)
{
  if (pump->in.ended && pump->in.size == 0 && !pump->in.told) {
    shutdown (pump->fd, SHUT_WR);
    pump->in.told = 1;
  }
  if (pump->out.ended && pump->out.size == 0 && !pump->out.told) {
    tell_service (pump);
    pump->out.told = 1;
  }
}

/* As much as can be moved without waiting.  -1: it is over. */
static int
move (struct http_pump *pump)
{
  int a, b, c, d;

  do {
    a = receive (pump);
    b = give (pump);
    c = take (pump);
    d = send_on (pump);
    tell_ends (pump);
    if (b < 0 || c < 0 || d < 0)
      return -1;
  } while (a > 0 || b > 0 || c > 0 || d > 0);
  return pump->in.told && pump->out.told ? -1 : 0;
}

/* TLS may have to read in order to write, so that the service's socket is
 * waited for whenever something could be done with what it says. */
static void *
pump_run (void *data)
{
  struct http_pump *pump = data;
  struct pollfd p[3];

  while (move (pump) == 0) {
    p[0] = (struct pollfd) { pump->stop, POLLIN, 0 };
    p[1] = (struct pollfd) { pump->fd, 0, 0 };
    p[2] = (struct pollfd) { pump->socket, 0, 0 };
    p[1].events = (short) ((pump->in.size > 0 ? POLLOUT : 0)
                           | (!pump->out.ended && pump->out.size == 0
                                ? POLLIN : 0));
    p[2].events = (short) ((pump->out.size > 0 ? POLLOUT : 0)
                           | (!pump->in.ended && pump->in.size == 0
                                ? POLLIN : 0));
    /* What nothing is wanted of would say for ever that it has gone. */
    if (p[2].events == 0)
      p[2].fd = -1;
    if (poll (p, 3, -1) < 0 && errno != EINTR)
      break;
    if (p[0].revents || (p[1].revents & (POLLHUP | POLLERR)
                         && pump->out.ended))
      break;
  }
  coffer_fd_close (&pump->fd);
  __atomic_store_n (&pump->done, 1, __ATOMIC_RELEASE);
  return NULL;
}

static void
pump_free (struct http_pump *pump)
{
  http_handle_free (pump->handle);
  coffer_fd_close (&pump->fd);
  coffer_fd_close (&pump->stop);
  free (pump->in.bytes);
  free (pump->out.bytes);
  free (pump);
}

/* Those whose thread has ended; all: after they were told to. */
static void
pumps_join (struct coffer_http *http, int all)
{
  struct http_pump **at = &http->pumps, *pump;

  while ((pump = *at)) {
    if (!all && !__atomic_load_n (&pump->done, __ATOMIC_ACQUIRE)) {
      at = &pump->next;
      continue;
    }
    *at = pump->next;
    pthread_join (pump->thread, NULL);
    pump_free (pump);
  }
}

static struct http_pump *
pump_new (struct http_handle *handle, const char *early, size_t n, int *ours)
{
  struct http_pump *pump = calloc (1, sizeof *pump);
  int ends[2] = { -1, -1 };

  if (!pump) {
    http_handle_free (handle);
    errno = ENOMEM;
    return NULL;
  }
  pump->handle = handle;
  pump->fd = -1;
  pump->stop = eventfd (0, EFD_CLOEXEC);
  pump->in.bytes = malloc (ROOM > n ? ROOM : n);
  pump->out.bytes = malloc (ROOM);
  if (pump->stop < 0 || !pump->in.bytes || !pump->out.bytes
      || curl_easy_getinfo (handle->easy, CURLINFO_ACTIVESOCKET,
                            &pump->socket) != CURLE_OK
      || socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
    pump_free (pump);
    errno = ENOMEM;
    return NULL;
  }
  memcpy (pump->in.bytes, early, n);
  pump->in.size = n;
  pump->fd = ends[0];
  *ours = ends[1];
  return pump;
}

int
http_pump_start (struct coffer_http *http, struct http_handle *handle,
                 const char *early, size_t n)
{
  coffer_autoclose int ours = -1;
  struct http_pump *pump = pump_new (handle, early, n, &ours);

  if (!pump)
    return -1;
  pthread_mutex_lock (&http->lock);
  pumps_join (http, 0);
  if (pthread_create (&pump->thread, NULL, pump_run, pump) != 0) {
    pthread_mutex_unlock (&http->lock);
    pump_free (pump);
    errno = EAGAIN;
    return -1;
  }
  pump->next = http->pumps;
  http->pumps = pump;
  pthread_mutex_unlock (&http->lock);
  return coffer_fd_steal (&ours);
}

void
http_pumps_end (struct coffer_http *http)
{
  const uint64_t one = 1;

  for (struct http_pump *pump = http->pumps; pump; pump = pump->next)
    while (write (pump->stop, &one, sizeof one) < 0 && errno == EINTR)
      ;
  pumps_join (http, 1);
}
