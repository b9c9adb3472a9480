/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets are bound here and not by the HTTP library, so that a client for whom
 * there is no room is told so, and that a full table of descriptors is waited
 * for and not spun on. */

#include <config.h>

#include "server/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <microhttpd.h>

#include <coffer/address.h>
#include <coffer/fd.h>

#include "base/log.h"
#include "base/text.h"
#include "server/connections.h"
#include "server/systemd.h"

#define MAX_SOCKETS 16
#define BACKLOG 512
#define FULL_WAIT_MS 100
#define LOCK_NAME "serve.lock"

struct listener {
  struct server *server;
  int sockets[MAX_SOCKETS];
  size_t n;
  int lock;                     /* one daemon for a place */
  int folder;                   /* of the unix socket */
  char *name;                   /* of it there; NULL: not bound yet */
  char *path;                   /* of it, whole; NULL: there is none */
  int stop;                     /* an eventfd */
  uint64_t limit;
  int started;
  pthread_t thread;
};

/* ---- one daemon ------------------------------------------------------------ */

static int
lock_take (struct listener *listener, const struct place *place,
           struct error **err)
{
  coffer_autoclose int dir = place_open_dir (place->runtime, err);

  if (dir < 0)
    return -1;
  listener->lock = openat (dir, LOCK_NAME,
                           O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (listener->lock < 0)
    return error_set (err, E_IO, errno, "open %s/" LOCK_NAME, place->runtime);
  if (flock (listener->lock, LOCK_EX | LOCK_NB) == 0)
    return 0;
  if (errno != EWOULDBLOCK)
    return error_set (err, E_IO, errno, "lock %s/" LOCK_NAME, place->runtime);
  error_set (err, E_BUSY, 0, "another coffer serve runs with %s",
             place->runtime);
  error_hint (err, "end that one first, or give this one a COFFER_HOME of its"
                   " own");
  return -1;
}

/* ---- the unix socket -------------------------------------------------------- */

/* 107 bytes are all that an address holds: the folder goes by descriptor. */
static int
unix_address (struct sockaddr_un *address, int folder, const char *name)
{
  const int n = snprintf (address->sun_path, sizeof address->sun_path,
                          "/proc/self/fd/%d/%s", folder, name);

  address->sun_family = AF_UNIX;
  return n > 0 && (size_t) n < sizeof address->sun_path ? 0 : -1;
}

/* Whoever listens there is left alone; what nobody listens on goes away. */
static int
unix_clear (const struct sockaddr_un *address, int folder, const char *name,
            const char *shown, struct error **err)
{
  coffer_autoclose int fd = -1;
  struct stat st;

  if (fstatat (folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
    return errno == ENOENT ? 0
                           : error_set (err, E_IO, errno, "stat %s", shown);
  if (!S_ISSOCK (st.st_mode))
    return error_set (err, E_CONFIG, 0, "%s is there, and no socket", shown);
  fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd >= 0 && connect (fd, (const void *) address, sizeof *address) < 0
      && errno == ECONNREFUSED) {
    if (unlinkat (folder, name, 0) == 0)
      return 0;
    return error_set (err, E_IO, errno, "remove %s", shown);
  }
  return error_set (err, E_BUSY, 0, "another process listens on %s", shown);
}

/* Whoever is listed must be able to get there.  Who may do what is decided when
 * they are. */
static int
folder_admits (int folder, const struct serve_config *config,
               struct error **err)
{
  struct stat st;

  if (fstat (folder, &st) < 0)
    return error_set (err, E_IO, errno, "stat the folder of %s",
                      config->socket);
  if (st.st_mode & S_IXOTH)
    return 0;
  error_set (err, E_CONFIG, 0, "the users and groups that serve.socket lists"
             " cannot reach %s: its folder is closed to them", config->socket);
  error_hint (err, "set serve.socket.path to one in a folder that they may"
                   " search, such as /run/coffer-serve/serve.sock");
  return -1;
}

static int
unix_bind (struct listener *listener, const struct serve_config *config,
           struct error **err)
{
  auto_free char *path = strdup (config->socket);
  char *slash = path ? strrchr (path, '/') : NULL;
  struct sockaddr_un address = { 0 };
  coffer_autoclose int fd = -1;

  if (!slash)
    return error_set (err, E_NO_MEMORY, 0, "the socket");
  *slash = '\0';
  listener->folder = place_open_dir (slash == path ? "/" : path, err);
  if (listener->folder < 0)
    return -1;
  if (unix_address (&address, listener->folder, slash + 1) < 0)
    return error_set (err, E_CONFIG, 0, "the socket's name is too long: %s",
                      config->socket);
  if (config->n_logins && folder_admits (listener->folder, config, err) < 0)
    return -1;
  if (unix_clear (&address, listener->folder, slash + 1, config->socket, err)
      < 0)
    return -1;
  fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0 || fchmod (fd, 0600) < 0
      || bind (fd, (const void *) &address, sizeof address) < 0
      || (config->n_logins
          && fchmodat (listener->folder, slash + 1, 0666, 0) < 0)
      || listen (fd, BACKLOG) < 0)
    return error_set (err, E_IO, errno, "listen on %s", config->socket);
  listener->name = strdup (slash + 1);
  listener->path = strdup (config->socket);
  if (!listener->name || !listener->path)
    return error_set (err, E_NO_MEMORY, 0, "the socket");
  listener->sockets[listener->n++] = coffer_fd_steal (&fd);
  return 0;
}
/* ---- TCP --------------------------------------------------------------------- */

/* Of the command line or of a file. */
static int
no_address (const char *text, struct error **err)
{
  error_set (err, E_CONFIG, 0, "%s is no ADDRESS:PORT to listen on", text);
  error_hint (err, "such as 127.0.0.1:8000 or [::1]:8000; names are not looked"
              " up here");
  return -1;
}

int
listen_parse (const char *text, struct sockaddr_storage *out,
              struct error **err)
{
  const char *colon = strrchr (text, ':');
  const int bracket = text[0] == '[';
  struct sockaddr_in *four = (void *) out;
  struct sockaddr_in6 *six = (void *) out;
  auto_free char *host = NULL;
  uint64_t port;

  *out = (struct sockaddr_storage){ 0 };
  if (!colon || text_parse_u64 (colon + 1, 0, 65535, &port) < 0
      || colon == text || (bracket && colon[-1] != ']'))
    return no_address (text, err);
  host = strndup (text + bracket, (size_t) (colon - text) - 2 * bracket);
  if (!host)
    return error_set (err, E_NO_MEMORY, 0, "an address");
  if (!bracket && inet_pton (AF_INET, host, &four->sin_addr) == 1) {
    four->sin_family = AF_INET;
    four->sin_port = htons ((uint16_t) port);
    return 0;
  }
  if (bracket && inet_pton (AF_INET6, host, &six->sin6_addr) == 1) {
    six->sin6_family = AF_INET6;
    six->sin6_port = htons ((uint16_t) port);
    return 0;
  }
  return no_address (text, err);
}

int
listen_is_loopback (const struct sockaddr_storage *address)
{
  return address->ss_family != AF_UNIX
         && coffer_address_kind ((const void *) address, NULL)
              == COFFER_ADDRESS_LOOPBACK;
}

static int
tcp_bind (struct listener *listener, const char *text, struct error **err)
{
  struct sockaddr_storage address;
  coffer_autoclose int fd = -1;
  const int one = 1;

  if (listen_parse (text, &address, err) < 0)
    return -1;
  fd = socket (address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
               0);
  if (fd < 0 || setsockopt (fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) < 0
      || (address.ss_family == AF_INET6
          && setsockopt (fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one) < 0)
      || bind (fd, (const void *) &address,
               address.ss_family == AF_INET ? sizeof (struct sockaddr_in)
                                            : sizeof (struct sockaddr_in6))
           < 0
      || listen (fd, BACKLOG) < 0) {
    error_set (err, E_IO, errno, "listen on %s", text);
    if (errno == EADDRINUSE)
      error_hint (err, "another program has that port: name another one by"
                       " --listen, or end that one");
    return -1;
  }
  listener->sockets[listener->n++] = coffer_fd_steal (&fd);
  return 0;
}

static int
bind_all (struct listener *listener, const struct serve_config *config,
          struct error **err)
{
  size_t i;

  if (unix_bind (listener, config, err) < 0)
    return -1;
  for (i = 0; config->listen[i]; i++) {
    if (listener->n == MAX_SOCKETS)
      return error_set (err, E_CONFIG, 0, "more than %d addresses to listen"
                        " on", MAX_SOCKETS - 1);
    if (tcp_bind (listener, config->listen[i], err) < 0)
      return -1;
  }
  return 0;
}

/* The path of a unix socket that was handed over; NULL: it has none. */
static char *
given_path (int fd)
{
  struct sockaddr_un address = { 0 };
  socklen_t size = sizeof address;

  if (getsockname (fd, (void *) &address, &size) < 0
      || address.sun_family != AF_UNIX || address.sun_path[0] != '/')
    return NULL;
  return strndup (address.sun_path, sizeof address.sun_path);
}

static int
take_given (struct listener *listener, size_t given)
{
  size_t i;

  for (i = 0; i < given; i++) {
    listener->sockets[i] = SYSTEMD_FIRST_FD + (int) i;
    listener->n++;
    if (!listener->path)
      listener->path = given_path (listener->sockets[i]);
  }
  return 0;
}

static int
open_all (struct listener *listener, const struct place *place,
          const struct serve_config *config, size_t given, struct error **err)
{
  listener->stop = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (listener->stop < 0)
    return error_set (err, E_IO, errno, "an event");
  if (lock_take (listener, place, err) < 0)
    return -1;
  return given ? take_given (listener, given)
               : bind_all (listener, config, err);
}

int
listener_open (const struct place *place, const struct serve_config *config,
               size_t given, struct listener **out, struct error **err)
{
  struct listener *listener = calloc (1, sizeof *listener);

  if (!listener)
    return error_set (err, E_NO_MEMORY, 0, "the sockets");
  listener->lock = listener->folder = listener->stop = -1;
  listener->limit = config->limits.connections;
  if (open_all (listener, place, config, given, err) < 0) {
    listener_free (listener);
    return -1;
  }
  *out = listener;
  return 0;
}

static char *
address_text (int fd)
{
  struct sockaddr_storage address = { 0 };
  struct sockaddr_in *four = (void *) &address;
  struct sockaddr_in6 *six = (void *) &address;
  socklen_t size = sizeof address;
  char host[INET6_ADDRSTRLEN] = "";

  if (getsockname (fd, (void *) &address, &size) < 0)
    return NULL;
  if (address.ss_family == AF_INET
      && inet_ntop (AF_INET, &four->sin_addr, host, sizeof host))
    return text_printf ("%s:%u", host, ntohs (four->sin_port));
  if (address.ss_family == AF_INET6
      && inet_ntop (AF_INET6, &six->sin6_addr, host, sizeof host))
    return text_printf ("[%s]:%u", host, ntohs (six->sin6_port));
  return NULL;
}

json_t *
listener_addresses (const struct listener *listener)
{
  json_t *list = json_array ();
  size_t i;

  for (i = 0; list && i < listener->n; i++) {
    auto_free char *text = address_text (listener->sockets[i]);

    if (text)
      json_array_append_new (list, json_string (text));
  }
  return list;
}

const char *
listener_path (const struct listener *listener)
{
  return listener->path;
}

/* ---- accepting ---------------------------------------------------------------- */

/* A client beyond the limit is told so, if it takes it at once. */
static void
turn_away (int fd)
{
  static const char reply[]
    = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n"
      "Retry-After: 1\r\nConnection: close\r\n\r\n";

  send (fd, reply, sizeof reply - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
  shutdown (fd, SHUT_WR);
  close (fd);
}

/* Those of TCP, where anybody may come from, leave room for the unix socket's. */
static size_t
limit_of (const struct listener *listener, int local)
{
  return listener->limit - (local ? 0 : listener->limit / 4);
}

static void
accept_one (struct listener *listener, int from)
{
  struct connections *all = listener->server->connections;
  struct sockaddr_storage address = { 0 };
  socklen_t size = sizeof address;
  const int fd = accept4 (from, (void *) &address, &size,
                          SOCK_CLOEXEC | SOCK_NONBLOCK);

  if (fd < 0) {
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS
        || errno == ENOMEM)
      poll (NULL, 0, FULL_WAIT_MS);
    return;
  }
  if (!connections_enter (all, limit_of (listener,
                                         address.ss_family == AF_UNIX))) {
    turn_away (fd);
    return;
  }
  if (MHD_add_connection (listener->server->http, fd, (void *) &address, size)
      == MHD_YES)
    return;
  connections_leave (all);
  log_event (LOG_LEVEL_WARNING, "http", "a connection was dropped: there is no"
             " room for it");
}

static void *
accept_all (void *data)
{
  struct listener *listener = data;
  struct pollfd fds[MAX_SOCKETS + 1];
  size_t i;

  for (i = 0; i < listener->n; i++)
    fds[i] = (struct pollfd){ listener->sockets[i], POLLIN, 0 };
  fds[listener->n] = (struct pollfd){ listener->stop, POLLIN, 0 };
  while (!fds[listener->n].revents) {
    if (poll (fds, listener->n + 1, -1) < 0)
      continue;
    for (i = 0; i < listener->n; i++)
      if (fds[i].revents)
        accept_one (listener, listener->sockets[i]);
  }
  return NULL;
}

int
listener_start (struct listener *listener, struct server *server,
                struct error **err)
{
  int failed;

  listener->server = server;
  failed = pthread_create (&listener->thread, NULL, accept_all, listener);
  if (failed)
    return error_set (err, E_IO, failed, "a thread for connections");
  listener->started = 1;
  return 0;
}

void
listener_stop (struct listener *listener)
{
  const uint64_t one = 1;
  size_t i;

  if (listener->started
      && write (listener->stop, &one, sizeof one) == (ssize_t) sizeof one)
    pthread_join (listener->thread, NULL);
  listener->started = 0;
  if (listener->name)
    unlinkat (listener->folder, listener->name, 0);
  free (listener->name);
  listener->name = NULL;
  for (i = 0; i < listener->n; i++)
    coffer_fd_close (&listener->sockets[i]);
  listener->n = 0;
}

void
listener_free (struct listener *listener)
{
  if (!listener)
    return;
  listener_stop (listener);
  coffer_fd_close (&listener->stop);
  coffer_fd_close (&listener->folder);
  coffer_fd_close (&listener->lock);
  free (listener->path);
  free (listener);
}
