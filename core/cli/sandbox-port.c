/* SPDX-License-Identifier: Apache-2.0 */
/* `coffer sandbox port`: a port of a sandbox, here.
 *
 * Where the provider has an address for it, that is printed.  Elsewhere this
 * process listens and forwards for as long as it runs: on 127.0.0.1 and the
 * same port, where --listen says, or, with --stdio, a single connection over
 * standard input and output. */

#include <config.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/json.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/host.h"

#define BACKLOG 64

union address {
  struct sockaddr any;
  struct sockaddr_in v4;
  struct sockaddr_in6 v6;
};

struct place_here {
  int fd;                       /* listens, -1 */
  char *shown;                  /* "127.0.0.1:8080", a path */
  int folder;                   /* of a socket with a name, -1 */
  char *name;                   /* in it: to be removed */
  dev_t device;                 /* the one that was made */
  ino_t inode;
};

static void
place_fini (struct place_here *here)
{
  struct stat st;

  /* Only our own. */
  if (here->name
      && fstatat (here->folder, here->name, &st, AT_SYMLINK_NOFOLLOW) == 0
      && st.st_dev == here->device && st.st_ino == here->inode)
    unlinkat (here->folder, here->name, 0);
  coffer_fd_close (&here->fd);
  coffer_fd_close (&here->folder);
  free (here->shown);
  free (here->name);
}
#define auto_place_here __attribute__ ((cleanup (place_fini)))

/* ---- where to listen ---------------------------------------------------- */

static int
port_read (const char *word, uint32_t least, uint32_t *out)
{
  char *end;
  unsigned long value = strtoul (word, &end, 10);

  if (*word < '0' || *word > '9' || *end || value < least || value > 65535)
    return -1;
  *out = (uint32_t) value;
  return 0;
}

static int
bad_listen (const char *word, struct error **err)
{
  error_set (err, E_INVALID, 0, "--listen %s is no place to listen", word);
  error_hint (err, "write a port (0 takes a free one), ADDRESS:PORT, or the "
              "path of a socket with a slash in it");
  return -1;
}

/* "8080", "127.0.0.1:8080", "[::1]:8080". */
static int
address_read (const char *word, union address *out, socklen_t *size,
              struct error **err)
{
  const char *colon = strrchr (word, ':');
  auto_free char *host = colon ? strndup (word, (size_t) (colon - word))
                               : strdup ("127.0.0.1");
  size_t n = host ? strlen (host) : 0;
  uint32_t port;

  memset (out, 0, sizeof *out);
  if (!host || port_read (colon ? colon + 1 : word, 0, &port) < 0)
    return bad_listen (word, err);
  if (n > 2 && host[0] == '[' && host[n - 1] == ']') {
    host[n - 1] = '\0';
    out->v6.sin6_family = AF_INET6;
    out->v6.sin6_port = htons ((uint16_t) port);
    *size = sizeof out->v6;
    return inet_pton (AF_INET6, host + 1, &out->v6.sin6_addr) == 1
             ? 0 : bad_listen (word, err);
  }
  out->v4.sin_family = AF_INET;
  out->v4.sin_port = htons ((uint16_t) port);
  *size = sizeof out->v4;
  return inet_pton (AF_INET, strcmp (host, "localhost") ? host : "127.0.0.1",
                    &out->v4.sin_addr) == 1
           ? 0 : bad_listen (word, err);
}

static int
is_loopback (const union address *address)
{
  return address->any.sa_family == AF_INET
           ? ntohl (address->v4.sin_addr.s_addr) >> 24 == 127
           : IN6_IS_ADDR_LOOPBACK (&address->v6.sin6_addr);
}

static char *
address_shown (const union address *address)
{
  char text[INET6_ADDRSTRLEN];

  if (address->any.sa_family == AF_INET)
    return text_printf ("%s:%u",
                        inet_ntop (AF_INET, &address->v4.sin_addr, text,
                                   sizeof text),
                        ntohs (address->v4.sin_port));
  return text_printf ("[%s]:%u",
                      inet_ntop (AF_INET6, &address->v6.sin6_addr, text,
                                 sizeof text),
                      ntohs (address->v6.sin6_port));
}

static int
listen_inet (const char *word, struct place_here *here, struct error **err)
{
  union address address;
  socklen_t size;
  const int one = 1;

  if (address_read (word, &address, &size, err) < 0)
    return -1;
  here->fd = socket (address.any.sa_family,
                     SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (here->fd >= 0)
    setsockopt (here->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (here->fd < 0 || bind (here->fd, &address.any, size) < 0
      || listen (here->fd, BACKLOG) < 0
      || getsockname (here->fd, &address.any, &size) < 0) {
    error_set (err, E_IO, errno, "listening on %s", word);
    error_hint (err, "--listen 0 takes a free port");
    return -1;
  }
  if (!is_loopback (&address))
    output_note ("warning: %s can be reached from other machines", word);
  here->shown = address_shown (&address);
  return here->shown ? 0 : error_set (err, E_NO_MEMORY, 0, "an address");
}

/* By way of the folder: an address holds no path beyond 107 bytes. */
static int
unix_bind (int fd, int folder, const char *name)
{
  struct sockaddr_un address = { .sun_family = AF_UNIX };

  if ((size_t) snprintf (address.sun_path, sizeof address.sun_path,
                         "/proc/self/fd/%d/%s", folder, name)
      >= sizeof address.sun_path) {
    errno = ENAMETOOLONG;
    return -1;
  }
  return bind (fd, (const struct sockaddr *) &address, sizeof address);
}

/* A socket that only its owner can connect to.  One that is there already is
 * not touched. */
static int
listen_path (const char *path, struct place_here *here, struct error **err)
{
  auto_free char *first = strdup (path), *second = strdup (path);
  struct stat st;
  mode_t before;

  if (!first || !second)
    return error_set (err, E_NO_MEMORY, 0, "a path");
  here->folder = open (dirname (first), O_PATH | O_DIRECTORY | O_CLOEXEC);
  here->fd = here->folder < 0
               ? -1 : socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC
                              | SOCK_NONBLOCK, 0);
  before = umask (0177);
  if (here->fd >= 0
      && unix_bind (here->fd, here->folder, basename (second)) == 0)
    here->name = strdup (basename (second));
  umask (before);
  if (!here->name || listen (here->fd, BACKLOG) < 0
      || fstatat (here->folder, here->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
    return error_set (err, E_IO, errno, "listening on %s", path);
  here->device = st.st_dev;
  here->inode = st.st_ino;
  here->shown = strdup (path);
  return here->shown ? 0 : error_set (err, E_NO_MEMORY, 0, "a path");
}

static int
listen_here (struct cli *cli, uint32_t port, struct place_here *here,
             struct error **err)
{
  const char *word = cli_value (cli, "listen");
  auto_free char *same = NULL;

  if (word && strchr (word, '/'))
    return listen_path (word, here, err);
  if (!word)
    word = same = text_printf ("127.0.0.1:%u", port);
  return word ? listen_inet (word, here, err)
              : error_set (err, E_NO_MEMORY, 0, "an address");
}

/* ---- forwarding --------------------------------------------------------- */

static void
say_failed (void *data, const struct error *error)
{
  (void) data;
  output_note ("%s", error_message (error));
}

static int
print_place (struct cli *cli, uint32_t port, const char *shown, int forwarded,
             struct error **err)
{
  if (cli->json)
    return output_json (json_pack ("{s:o, s:I, s:o, s:b}", "sandbox",
                                   json_bytes (cli->args[0],
                                               strlen (cli->args[0])),
                                   "port", (json_int_t) port, "address",
                                   json_bytes (shown, strlen (shown)),
                                   "forwarded", forwarded),
                        err);
  output_styled (cli, stdout, STYLE_PLAIN, shown);
  printf ("\n");
  return output_finish (err);
}

static int
forward (struct cli *cli, struct host *host, uint32_t port,
         struct error **err)
{
  auto_place_here struct place_here here = { .fd = -1, .folder = -1 };
  struct port_forward asked = { .sandbox = cli->args[0], .port = port,
                                .listener = -1, .in = STDIN_FILENO,
                                .out = STDOUT_FILENO,
                                .failed = say_failed };

  asked.cancel_fd = sandbox_signals_catch (err);
  if (asked.cancel_fd < 0)
    return -1;
  if (!cli_flag (cli, "stdio")) {
    if (listen_here (cli, port, &here, err) < 0
        || print_place (cli, port, here.shown, 1, err) < 0)
      return -1;
    asked.listener = here.fd;
  }
  return sandbox_forward (host, &asked, err);
}

static int
port_run (struct cli *cli, struct error **err)
{
  const int stdio = cli_flag (cli, "stdio");
  auto_free char *address = NULL;
  struct provider_call call;
  struct host *host;
  uint32_t port;

  if (port_read (cli->args[1], 1, &port) < 0)
    return error_set (err, E_INVALID, 0, "%s is no port from 1 to 65535",
                      cli->args[1]);
  if (stdio && (cli->json || cli_value (cli, "listen")))
    return error_set (err, E_USAGE, 0,
                      "--stdio does not go together with --listen or --json");
  if (cli_begin (cli, &host, &call, err) < 0
      || sandbox_port (host, cli->args[0], port, &call, &address, err) < 0)
    return -1;
  if (address && !stdio && !cli_value (cli, "listen"))
    return print_place (cli, port, address, 0, err);
  return forward (cli, host, port, err);
}

static const struct cli_option port_options[] = {
  { "listen", 0, "WHERE", 0,
    "PORT, ADDRESS:PORT or the path of a socket" },
  { "stdio", 0, NULL, 0,
    "one connection, over standard input and output" },
  { NULL }
};

const struct cli_command sandbox_port_commands[] = {
  { "sandbox port", "ID PORT",
    "reach a port of a sandbox from here, until interrupted", port_options, 2,
    2, -1, 0, port_run },
  { NULL }
};
