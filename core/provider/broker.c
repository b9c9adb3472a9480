/* SPDX-License-Identifier: Apache-2.0 */
/* The host's end of coffer_connect.  A target is parsed into one form before
 * it is compared, and what was compared is what is connected to. */

#include "config.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <coffer/address.h>
#include <coffer/fd.h>
#include <coffer/provider.h>

#include "base/text.h"
#include "provider/broker.h"
#include "provider/proxy.h"

static int
denied (struct error **err, const char *why)
{
  return error_set (err, E_CONNECT_DENIED, 0, "connect target: %s", why);
}

/* A name or an address: what else could stand there is how filters are
 * fooled. */
static int
copy_host (const char *from, size_t size, char out[256])
{
  size_t i, dots = 0;
  int is_v6 = memchr (from, ':', size) != NULL;

  if (size > 1 && from[size - 1] == '.')
    size--;
  if (size == 0 || size > 253)
    return -1;
  for (i = 0; i < size; i++) {
    unsigned char c = (unsigned char) from[i];
    if (is_v6 ? !isxdigit (c) && c != ':' && c != '.'
              : !isalnum (c) && c != '.' && c != '-' && c != '_')
      return -1;
    dots = c == '.' && !is_v6 ? dots + 1 : 0;
    if (dots > 1)
      return -1;
    out[i] = (char) tolower (c);
  }
  out[size] = '\0';
  return 0;
}

/* HOST:PORT or [V6]:PORT, ending at `end`.  port 0: it must be there. */
static int
parse_host_port (const char *s, const char *end, uint16_t port,
                 struct broker_target *out)
{
  const char *close = *s == '[' ? memchr (s, ']', end - s) : NULL;
  const char *host = close ? s + 1 : s;
  const char *host_end = close, *digits;
  char number[8];
  uint64_t value;

  if (!close)
    host_end = memchr (s, ':', end - s);
  if (*s == '[' && !close)
    return -1;
  digits = close ? close + 1 : host_end ? host_end : end;
  if (!host_end)
    host_end = end;
  if (digits < end) {
    if (*digits != ':' || end - digits - 1 < 1 || end - digits - 1 > 5)
      return -1;
    memcpy (number, digits + 1, end - digits - 1);
    number[end - digits - 1] = '\0';
    if (text_parse_u64 (number, 1, 65535, &value) < 0)
      return -1;
    port = (uint16_t) value;
  }
  if (port == 0)
    return -1;
  out->is_unix = 0;
  out->port = port;
  return copy_host (host, host_end - host, out->host);
}

static int
parse_unix (const char *path, struct broker_target *out)
{
  if (!manifest_is_path (path) || strlen (path) >= sizeof out->path)
    return -1;
  out->is_unix = 1;
  memcpy (out->path, path, strlen (path) + 1);
  return 0;
}

static int
parse_url (const char *url, struct broker_target *out)
{
  static const struct {
    const char *scheme;
    uint16_t port;
  } schemes[] = { { "https://", 443 }, { "http://", 80 },   { "wss://", 443 },
                  { "ws://", 80 },     { "tcp://", 0 } };
  const char *rest, *end;
  size_t i;

  if (strncmp (url, "unix://", 7) == 0)
    return parse_unix (url + 7, out);
  for (i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
    if (strncasecmp (url, schemes[i].scheme, strlen (schemes[i].scheme)) != 0)
      continue;
    rest = url + strlen (schemes[i].scheme);
    end = rest + strcspn (rest, "/?#");
    return parse_host_port (rest, end, schemes[i].port, out);
  }
  return -1;
}

/* The value of KEY in KEY=VALUE strings. */
static const char *
config_value (char *const *config, const char *key)
{
  size_t size = strlen (key);

  for (; config && *config; config++)
    if (strncmp (*config, key, size) == 0 && (*config)[size] == '=')
      return *config + size + 1;
  return NULL;
}

int
broker_parse (const char *target, char *const *config,
              struct broker_target *out, struct error **err)
{
  struct broker_target parsed;
  const char *value;

  if (!target || strnlen (target, 8192) == 8192)
    return denied (err, "there is none");
  memset (&parsed, 0, sizeof parsed);
  if (strncmp (target, "config:", 7) == 0) {
    value = config_value (config, target + 7);
    if (!value || parse_url (value, &parsed) < 0)
      return denied (err, "no such url in the configuration");
  } else if (strncmp (target, "unix:", 5) == 0) {
    if (parse_unix (target + 5, &parsed) < 0)
      return denied (err, "the socket's path is not absolute and plain");
  } else if (strncmp (target, "tcp:", 4) != 0
             || parse_host_port (target + 4, target + strlen (target), 0,
                                 &parsed) < 0) {
    return denied (err, "it is not tcp:HOST:PORT, unix:PATH or config:KEY");
  }
  *out = parsed;
  return 0;
}

static int
same_target (const struct broker_target *a, const struct broker_target *b)
{
  if (a->is_unix != b->is_unix)
    return 0;
  return a->is_unix ? strcmp (a->path, b->path) == 0
                    : a->port == b->port && strcmp (a->host, b->host) == 0;
}

static int
parse_proxy (const char *value, struct broker_target *out)
{
  unsigned port;
  size_t size;
  const char *place = proxy_place (value, &size, &port);

  return place ? parse_host_port (place, place + size, (uint16_t) port, out)
               : -1;
}

/* Any url of the configuration, and the proxy. */
static int
config_allows (const struct manifest *manifest, char *const *config,
               const struct broker_target *target)
{
  struct broker_target granted;
  const char *value;
  size_t i;

  for (i = 0; i < manifest->n_config; i++) {
    const enum manifest_config_type type = manifest->config[i].type;

    if (type != CONFIG_URL && type != CONFIG_PROXY)
      continue;
    value = config_value (config, manifest->config[i].key);
    memset (&granted, 0, sizeof granted);
    if (value && (type == CONFIG_URL ? parse_url (value, &granted)
                                     : parse_proxy (value, &granted)) == 0
        && same_target (&granted, target))
      return 1;
  }
  return 0;
}

static int
is_address (const char *host)
{
  struct in_addr v4;

  return strchr (host, ':') || inet_aton (host, &v4);
}

/* NAME:PORT or *.NAME:PORT, where "*" is one label or more. */
static int
entry_allows (const char *entry, const struct broker_target *target)
{
  struct broker_target granted;
  int wild = strncmp (entry, "*.", 2) == 0;
  size_t have, want;

  memset (&granted, 0, sizeof granted);
  if (strncmp (entry, "unix:", 5) == 0)
    return parse_unix (entry + 5, &granted) == 0
           && same_target (&granted, target);
  if (target->is_unix
      || parse_host_port (entry + (wild ? 2 : 0), entry + strlen (entry), 0,
                          &granted) < 0
      || granted.port != target->port)
    return 0;
  if (!wild)
    return strcmp (granted.host, target->host) == 0;
  if (is_address (target->host))
    return 0;                   /* below a name there are names */
  have = strlen (target->host);
  want = strlen (granted.host);
  return have > want + 1 && target->host[have - want - 1] == '.'
         && strcmp (target->host + have - want, granted.host) == 0;
}

static int
is_configured (const struct manifest *manifest, char *const *config,
               const struct broker_target *target)
{
  char **entry = manifest->permissions.connect;

  for (; entry && *entry; entry++)
    if (strcmp (*entry, "config") == 0)
      return config_allows (manifest, config, target);
  return 0;
}

int
broker_allows (const struct manifest *manifest, char *const *config,
               const struct broker_target *target)
{
  char **entry = manifest->permissions.connect;

  for (; entry && *entry; entry++)
    if (strcmp (*entry, "config") == 0
        ? config_allows (manifest, config, target)
        : entry_allows (*entry, target))
      return 1;
  return 0;
}

/* This machine, whatever a file or a server says of the name. */
static int
is_localhost (const char *host)
{
  return strcasecmp (host, "localhost") == 0
         || strcasecmp (host, "localhost.") == 0;
}

/* ---- resolving, with a deadline -------------------------------------------
 * getaddrinfo has none, so that it runs in a thread of its own; one that comes
 * too late finds itself alone and frees what it found. */

struct lookup {
  pthread_mutex_t lock;
  char host[256], port[8];
  struct addrinfo *found;
  int result;
  int done_fd;                  /* pipe's write end: closed when done */
  int abandoned, finished;
};

static void
lookup_free (struct lookup *lookup)
{
  if (lookup->found)
    freeaddrinfo (lookup->found);
  pthread_mutex_destroy (&lookup->lock);
  free (lookup);
}

static void *
lookup_run (void *data)
{
  const struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
                                  .ai_flags = AI_ADDRCONFIG
                                              | AI_NUMERICSERV };
  struct lookup *lookup = data;
  struct addrinfo *found = NULL;
  int result = getaddrinfo (lookup->host, lookup->port, &hints, &found);
  int alone;

  pthread_mutex_lock (&lookup->lock);
  lookup->result = result;
  lookup->found = result == 0 ? found : NULL;
  lookup->finished = 1;
  alone = lookup->abandoned;
  close (lookup->done_fd);
  pthread_mutex_unlock (&lookup->lock);
  if (alone)
    lookup_free (lookup);
  return NULL;
}

/* Numeric addresses and localhost need no thread: without a name getaddrinfo
 * gives the loopback. */
static int
resolve_numeric (const struct broker_target *target, struct addrinfo **out)
{
  const struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
                                  .ai_flags = AI_NUMERICHOST
                                              | AI_NUMERICSERV };
  char port[8];

  snprintf (port, sizeof port, "%u", target->port);
  return getaddrinfo (is_localhost (target->host) ? NULL : target->host, port,
                      &hints, out) == 0 ? 0 : -1;
}

static int
start_lookup (struct lookup *lookup)
{
  pthread_attr_t attributes;
  pthread_t thread;
  int result;

  pthread_attr_init (&attributes);
  pthread_attr_setdetachstate (&attributes, PTHREAD_CREATE_DETACHED);
  result = pthread_create (&thread, &attributes, lookup_run, lookup);
  pthread_attr_destroy (&attributes);
  return result;
}

static int
resolve (const struct broker_target *target, int64_t deadline_ns,
         int cancel_fd, struct addrinfo **out, struct error **err)
{
  coffer_autoclose int done = -1;
  struct lookup *lookup;
  int ends[2], result, finished;

  if (resolve_numeric (target, out) == 0)
    return 0;
  if (pipe2 (ends, O_CLOEXEC) < 0)
    return error_set (err, E_IO, errno, "pipe");
  done = ends[0];
  lookup = calloc (1, sizeof *lookup);
  if (lookup) {
    pthread_mutex_init (&lookup->lock, NULL);
    memcpy (lookup->host, target->host, sizeof lookup->host);
    snprintf (lookup->port, sizeof lookup->port, "%u", target->port);
    lookup->done_fd = ends[1];
  }
  if (!lookup || start_lookup (lookup) != 0) {
    close (ends[1]);
    if (lookup)
      lookup_free (lookup);
    return error_set (err, E_NO_MEMORY, 0, "no thread to resolve a name");
  }
  coffer_wait_fd (done, POLLIN, deadline_ns, cancel_fd);
  pthread_mutex_lock (&lookup->lock);
  finished = lookup->finished;
  lookup->abandoned = !finished;
  result = lookup->result;
  *out = finished ? steal (lookup->found) : NULL;
  pthread_mutex_unlock (&lookup->lock);
  if (!finished)
    return error_set (err, E_CONNECT_FAILED, 0, "resolve %s: no answer in time",
                      target->host);
  lookup_free (lookup);
  if (result != 0)
    return error_set (err, E_CONNECT_FAILED, 0, "resolve %s: %s",
                      target->host, gai_strerror (result));
  return 0;
}

/* ---- where a name may lead -------------------------------------------------
 * Whoever owns a name decides what it resolves to: the grant of a name is none
 * of what answers on this machine only, or on the link, as the services do
 * that give a machine its credentials. */

int
broker_name_may_lead (const struct sockaddr *address, int loopback)
{
  switch (coffer_address_kind (address, NULL)) {
  case COFFER_ADDRESS_PUBLIC:
  case COFFER_ADDRESS_PRIVATE:
  case COFFER_ADDRESS_SHARED:
  case COFFER_ADDRESS_SPECIAL:
    return 1;
  case COFFER_ADDRESS_LOOPBACK:
    return loopback;
  default:
    return 0;
  }
}

static int
is_local (const char *host)
{
  static const char local[] = ".localhost";
  size_t size = strlen (host), want = sizeof local - 1;

  return strcmp (host, local + 1) == 0
         || (size > want && strcmp (host + size - want, local) == 0);
}

/* ---- connecting ---------------------------------------------------------- */

static int
finish_connect (int fd, int64_t deadline_ns, int cancel_fd)
{
  socklen_t size = sizeof (int);
  int failed = 0, ready;

  ready = coffer_wait_fd (fd, POLLOUT, deadline_ns, cancel_fd);
  if (ready <= 0)
    return -1;
  if (getsockopt (fd, SOL_SOCKET, SO_ERROR, &failed, &size) < 0)
    return -1;
  errno = failed;
  return failed == 0 ? 0 : -1;
}

static int
connect_address (const struct sockaddr *address, socklen_t size,
                 int64_t deadline_ns, int cancel_fd)
{
  coffer_autoclose int fd = socket (address->sa_family,
                                    SOCK_STREAM | SOCK_CLOEXEC
                                      | SOCK_NONBLOCK, 0);

  if (fd < 0)
    return -1;
  if (connect (fd, address, size) < 0
      && ((errno != EINPROGRESS && errno != EINTR)
          || finish_connect (fd, deadline_ns, cancel_fd) < 0))
    return -1;
  if (fcntl (fd, F_SETFL, fcntl (fd, F_GETFL) & ~O_NONBLOCK) < 0)
    return -1;
  return coffer_fd_steal (&fd);
}

static int
connect_tcp (const struct broker_target *target, int is_configured,
             int64_t deadline_ns, int cancel_fd, struct error **err)
{
  struct addrinfo *found = NULL, *ai;
  int fd = -1, keep = 0, loopback = is_configured || is_local (target->host);

  if (resolve (target, deadline_ns, cancel_fd, &found, err) < 0)
    return -1;
  for (ai = found; ai && fd < 0; ai = ai->ai_next) {
    if (!is_address (target->host)
        && !broker_name_may_lead (ai->ai_addr, loopback))
      continue;
    fd = connect_address (ai->ai_addr, ai->ai_addrlen, deadline_ns,
                          cancel_fd);
    keep = errno;
    if (fd < 0 && (keep == ECANCELED || keep == ETIMEDOUT))
      break;
  }
  freeaddrinfo (found);
  if (fd < 0 && keep == 0)
    return error_set (err, E_CONNECT_DENIED, 0,
                      "%s leads to this machine or to a service of its link, "
                      "which only an address grants", target->host);
  if (fd < 0)
    return error_set (err, E_CONNECT_FAILED, keep, "connect %s:%u",
                      target->host, target->port);
  return fd;
}

/* Through a descriptor: what was looked at is what is connected to, and
 * sun_path is short. */
static int
connect_unix (const struct broker_target *target, char *const *writable,
              int64_t deadline_ns, int cancel_fd, struct error **err)
{
  struct sockaddr_un address = { .sun_family = AF_UNIX };
  coffer_autoclose int found = broker_open_socket (target->path, writable,
                                                   err);
  int fd;

  if (found < 0)
    return -1;
  snprintf (address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d",
            found);
  fd = connect_address ((struct sockaddr *) (void *) &address, sizeof address,
                        deadline_ns, cancel_fd);
  if (fd < 0)
    return error_set (err, E_CONNECT_FAILED, errno, "connect unix:%s",
                      target->path);
  return fd;
}

int
broker_connect (const struct manifest *manifest, char *const *config,
                const char *target, int64_t deadline_ns, int cancel_fd,
                struct error **err)
{
  auto_free struct broker_target *parsed = malloc (sizeof *parsed);

  if (!parsed)
    return error_set (err, E_NO_MEMORY, 0, "out of memory");
  if (broker_parse (target, config, parsed, err) < 0)
    return -1;
  if (!broker_allows (manifest, config, parsed)) {
    if (parsed->is_unix)
      return error_set (err, E_CONNECT_DENIED, 0,
                        "unix:%s is not in permissions.connect",
                        parsed->path);
    return error_set (err, E_CONNECT_DENIED, 0,
                      "%s:%u is not in permissions.connect", parsed->host,
                      parsed->port);
  }
  return parsed->is_unix
         ? connect_unix (parsed, manifest->permissions.write, deadline_ns,
                         cancel_fd, err)
         : connect_tcp (parsed, is_configured (manifest, config, parsed),
                        deadline_ns, cancel_fd, err);
}

int32_t
broker_code (const struct error *error)
{
  if (!error)
    return COFFER_INTERNAL;
  if (error->number == E_CONNECT_DENIED)
    return COFFER_DENIED;
  if (error->sys_errno == ETIMEDOUT)
    return COFFER_TIMEOUT;
  if (error->sys_errno == ECANCELED)
    return COFFER_CANCELLED;
  return error->number == E_CONNECT_FAILED ? COFFER_UNAVAILABLE
                                           : COFFER_INTERNAL;
}
