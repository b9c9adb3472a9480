/* SPDX-License-Identifier: Apache-2.0 */
/* See http-peer.h.  A thread for each connection; all end with the peer. */

#define _GNU_SOURCE

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "http-peer.h"

struct peer *peer_of_host;
struct coffer_strings peer_targets;

struct connection {
  struct peer *peer;
  int fd;
};

static void
must (int holds, const char *what)
{
  if (holds)
    return;
  perror (what);
  abort ();
}

void
peer_say (int fd, const char *text)
{
  size_t left = strlen (text);
  ssize_t n = 1;

  for (; left > 0 && n > 0; text += n > 0 ? n : 0, left -= (size_t) n)
    n = send (fd, text, left, MSG_NOSIGNAL);
}

char *
peer_hear (int fd, const char *until)
{
  struct coffer_buffer text = { 0 };
  char byte;

  while (recv (fd, &byte, 1, 0) == 1) {
    coffer_buffer_add (&text, &byte, 1);
    if (until && text.size >= strlen (until)
        && strcmp (text.data + text.size - strlen (until), until) == 0)
      break;
  }
  return coffer_buffer_steal (&text);
}

/* The head, and the body as its length or its chunks say. */
static char *
request_read (int fd)
{
  struct coffer_buffer text = { 0 };
  char *part = peer_hear (fd, "\r\n\r\n"), *length, byte;
  size_t left = 0;

  coffer_buffer_add_string (&text, part);
  length = strcasestr (part, "\r\nContent-Length:");
  if (length)
    left = strtoul (length + 17, NULL, 10);
  while (left > 0 && recv (fd, &byte, 1, 0) == 1) {
    coffer_buffer_add (&text, &byte, 1);
    left--;
  }
  if (strcasestr (part, "\r\nTransfer-Encoding: chunked")) {
    free (part);
    part = peer_hear (fd, "0\r\n\r\n");
    coffer_buffer_add_string (&text, part);
  }
  free (part);
  return coffer_buffer_steal (&text);
}

static unsigned
keep (struct peer *peer, const char *request)
{
  unsigned n;

  pthread_mutex_lock (&peer->lock);
  coffer_strings_add (&peer->requests, request);
  n = (unsigned) peer->requests.count;
  pthread_mutex_unlock (&peer->lock);
  return n;
}

static void *
serve (void *data)
{
  struct connection *connection = data;
  struct peer *peer = connection->peer;
  char *request;
  int r = 0;

  if (peer->is_tunnel)
    r = peer->answer (peer, connection->fd, "", 0);
  while (r == 0) {
    request = request_read (connection->fd);
    r = *request ? peer->answer (peer, connection->fd, request,
                                 keep (peer, request)) : -1;
    free (request);
  }
  /* The descriptor is closed with the peer: its number stays its own. */
  shutdown (connection->fd, SHUT_RDWR);
  pthread_mutex_lock (&peer->lock);
  peer->closed++;
  pthread_mutex_unlock (&peer->lock);
  free (connection);
  return NULL;
}

static void
accept_one (struct peer *peer, int fd)
{
  struct connection *connection = malloc (sizeof *connection);

  must (connection != NULL, "malloc");
  *connection = (struct connection) { peer, fd };
  pthread_mutex_lock (&peer->lock);
  must (peer->connections < 64, "connections");
  peer->fds[peer->connections++] = fd;
  must (pthread_create (&peer->threads[peer->n_threads++], NULL, serve,
                        connection) == 0, "pthread_create");
  pthread_mutex_unlock (&peer->lock);
}

static void *
listen_on (void *data)
{
  struct connection *listener = data;
  int fd;

  while ((fd = accept4 (listener->fd, NULL, NULL, SOCK_CLOEXEC)) >= 0)
    accept_one (listener->peer, fd);
  free (listener);
  return NULL;
}

static void
begin_listening (struct peer *peer, int fd)
{
  struct connection *listener = malloc (sizeof *listener);

  must (listener != NULL && listen (fd, 64) == 0, "listen");
  *listener = (struct connection) { peer, fd };
  pthread_mutex_lock (&peer->lock);
  must (pthread_create (&peer->threads[peer->n_threads++], NULL, listen_on,
                        listener) == 0, "pthread_create");
  pthread_mutex_unlock (&peer->lock);
}

void
peer_begin (struct peer *peer, peer_answer *answer, const void *data)
{
  struct sockaddr_in v4 = { .sin_family = AF_INET,
                            .sin_addr.s_addr = htonl (INADDR_LOOPBACK) };
  struct sockaddr_un local = { .sun_family = AF_UNIX };
  socklen_t size = sizeof v4;

  memset (peer, 0, sizeof *peer);
  pthread_mutex_init (&peer->lock, NULL);
  peer->answer = answer;
  peer->data = data;
  peer->tcp = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  must (bind (peer->tcp, (struct sockaddr *) &v4, sizeof v4) == 0, "bind");
  must (getsockname (peer->tcp, (struct sockaddr *) &v4, &size) == 0, "name");
  peer->port = ntohs (v4.sin_port);
  snprintf (peer->path, sizeof peer->path, "/tmp/coffer-peer-%d-%u.sock",
            (int) getpid (), peer->port);
  memcpy (local.sun_path, peer->path, strlen (peer->path) + 1);
  peer->local = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  must (bind (peer->local, (struct sockaddr *) &local, sizeof local) == 0,
        "bind");
  begin_listening (peer, peer->tcp);
  begin_listening (peer, peer->local);
  peer_of_host = peer;
  coffer_strings_free (&peer_targets);
}

void
peer_end (struct peer *peer)
{
  shutdown (peer->tcp, SHUT_RDWR);
  shutdown (peer->local, SHUT_RDWR);
  pthread_join (peer->threads[0], NULL);
  pthread_join (peer->threads[1], NULL);
  for (unsigned i = 0; i < peer->connections; i++)
    shutdown (peer->fds[i], SHUT_RDWR);
  for (unsigned i = 2; i < peer->n_threads; i++)
    pthread_join (peer->threads[i], NULL);
  for (unsigned i = 0; i < peer->connections; i++)
    close (peer->fds[i]);
  close (peer->tcp);
  close (peer->local);
  unlink (peer->path);
  coffer_strings_free (&peer->requests);
  pthread_mutex_destroy (&peer->lock);
}

unsigned
peer_requests (struct peer *peer)
{
  unsigned n;

  pthread_mutex_lock (&peer->lock);
  n = (unsigned) peer->requests.count;
  pthread_mutex_unlock (&peer->lock);
  return n;
}

const char *
peer_request (struct peer *peer, unsigned n)
{
  const char *text;

  pthread_mutex_lock (&peer->lock);
  text = n < peer->requests.count ? peer->requests.items[n] : "";
  pthread_mutex_unlock (&peer->lock);
  return text;
}

unsigned
peer_connections (struct peer *peer)
{
  unsigned n;

  pthread_mutex_lock (&peer->lock);
  n = peer->connections;
  pthread_mutex_unlock (&peer->lock);
  return n;
}

unsigned
peer_closed (struct peer *peer)
{
  unsigned n;

  pthread_mutex_lock (&peer->lock);
  n = peer->closed;
  pthread_mutex_unlock (&peer->lock);
  return n;
}

int
peer_dial (const struct peer *peer, int is_unix)
{
  struct sockaddr_in v4 = { .sin_family = AF_INET,
                            .sin_port = htons ((uint16_t) peer->port),
                            .sin_addr.s_addr = htonl (INADDR_LOOPBACK) };
  struct sockaddr_un local = { .sun_family = AF_UNIX };
  int fd = socket (is_unix ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

  memcpy (local.sun_path, peer->path, sizeof peer->path);
  must (connect (fd, is_unix ? (struct sockaddr *) &local
                             : (struct sockaddr *) &v4,
                 is_unix ? sizeof local : sizeof v4) == 0, "connect");
  return fd;
}

int32_t
peer_connect (struct fakehost *host, const char *target)
{
  (void) host;
  coffer_strings_add (&peer_targets, target);
  return peer_dial (peer_of_host, strncmp (target, "unix:", 5) == 0);
}
