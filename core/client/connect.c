/* SPDX-License-Identifier: Apache-2.0 */
/* Where the daemon listens, and who it is. */

#include <config.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/text.h"
#include "client/private.h"

/* Until it takes a connection: it is busy, or stopped. */
#define ACCEPT_SECONDS 10

void
client_free (struct client *client)
{
  if (!client)
    return;
  coffer_fd_close (&client->folder);
  coffer_fd_close (&client->connected);
  free (client->name);
  free (client->shown);
  free (client);
}

/* An address holds 107 bytes, a path many more. */
static int
socket_address (const struct client *client, struct sockaddr_un *out)
{
  int n;

  out->sun_family = AF_UNIX;
  n = snprintf (out->sun_path, sizeof out->sun_path, "/proc/self/fd/%d/%s",
                client->folder, client->name);
  if (n < 0 || (size_t) n >= sizeof out->sun_path) {
    errno = ENAMETOOLONG;
    return -1;
  }
  return 0;
}

/* A socket in our own folder that another user listens at is not ours. */
static int
check_peer (const struct client *client, int fd, struct error **err)
{
  struct ucred peer;
  socklen_t size = sizeof peer;

  if (getsockopt (fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
    return error_set (err, E_CONNECT_FAILED, errno, "%s", client->shown);
  if (client->own && peer.uid != geteuid ())
    return error_set (err, E_CONNECT_DENIED, 0,
                      "%s: the daemon there is of another user, %u",
                      client->shown, (unsigned) peer.uid);
  return 0;
}

/* 0 with *out -1: nobody is there. */
static int
try_connect (const struct client *client, int *out, struct error **err)
{
  const struct timeval patience = { .tv_sec = ACCEPT_SECONDS };
  coffer_autoclose int fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  struct sockaddr_un address = { 0 };

  *out = -1;
  if (fd < 0 || socket_address (client, &address) < 0
      || setsockopt (fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience)
           < 0)
    return error_set (err, E_CONNECT_FAILED, errno, "%s", client->shown);
  if (connect (fd, (struct sockaddr *) &address, sizeof address) < 0) {
    if (errno == ENOENT || errno == ECONNREFUSED)
      return 0;
    return error_set (err, errno == EACCES ? E_CONNECT_DENIED
                                           : E_CONNECT_FAILED,
                      errno, "%s", client->shown);
  }
  if (check_peer (client, fd, err) < 0)
    return -1;
  if (fcntl (fd, F_SETFL, O_NONBLOCK) < 0)
    return error_set (err, E_CONNECT_FAILED, errno, "%s", client->shown);
  *out = coffer_fd_steal (&fd);
  return 0;
}

static int
nobody (const struct client *client, struct error **err)
{
  error_set (err, E_CONNECT_FAILED, 0, "%s: no daemon listens there",
             client->shown);
  error_hint (err, "coffer serve starts one; without --host this machine is "
              "used directly");
  return -1;
}

int
client_connect (struct client *client, int *out, struct error **err)
{
  *out = client->connected;
  client->connected = -1;
  if (*out >= 0)
    return 0;
  if (try_connect (client, out, err) < 0)
    return -1;
  return *out >= 0 ? 0 : nobody (client, err);
}

/* Takes the folder. */
static int
client_new (int take_folder, const char *folder, const char *name,
            struct client **out, struct error **err)
{
  struct client *client = calloc (1, sizeof *client);

  if (client) {
    client->folder = take_folder;
    client->connected = -1;
    client->name = strdup (name);
    client->shown = text_printf ("%s/%s", folder, name);
  }
  if (client && client->name && client->shown) {
    *out = client;
    return 0;
  }
  if (client)
    client_free (client);
  else
    coffer_fd_close (&take_folder);
  return error_set (err, E_NO_MEMORY, 0, "the daemon's address");
}

int
client_find (const struct place *place, struct client **out,
             struct error **err)
{
  auto_client struct client *client = NULL;
  auto_error struct error *error = NULL;
  int folder = place_open_trusted_dir (place->runtime, &error);

  *out = NULL;
  /* Nobody else's folder is asked, and what is wrong with ours is said by who
   * must use it. */
  if (folder < 0)
    return 0;
  if (client_new (folder, place->runtime, CLIENT_SOCKET, &client, err) < 0)
    return -1;
  client->own = 1;
  if (try_connect (client, &client->connected, err) < 0)
    return -1;
  if (client->connected >= 0)
    *out = steal (client);
  return 0;
}

int
client_open (const char *path, struct client **out, struct error **err)
{
  auto_client struct client *client = NULL;
  auto_free char *folder = strdup (path);
  char *slash = folder ? strrchr (folder, '/') : NULL;
  int fd;

  if (!folder)
    return error_set (err, E_NO_MEMORY, 0, "the daemon's address");
  if (!slash || !slash[1])
    return error_set (err, E_INVALID, 0, "%s is not the path of a socket",
                      path);
  *slash = '\0';
  fd = open (*folder ? folder : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0)
    return error_set (err, E_CONNECT_FAILED, errno, "%s", path);
  if (client_new (fd, folder, slash + 1, &client, err) < 0
      || try_connect (client, &client->connected, err) < 0)
    return -1;
  if (client->connected < 0)
    return nobody (client, err);
  *out = steal (client);
  return 0;
}
