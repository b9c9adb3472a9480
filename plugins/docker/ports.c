/* SPDX-License-Identifier: Apache-2.0 */
/* Ports of a sandbox.  None is published: a sandbox has no network, and what
 * listens on its loopback is reached through the program inside, which the
 * engine relays as it does a command. */

#define _GNU_SOURCE

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <coffer/fd.h>
#include <coffer/files.h>

#include "stream.h"

#define PIECE 65536
#define STACK_BYTES (256 << 10)

struct port {
  struct docker *docker;
  struct port *next;            /* docker's list, below its lock */
  struct stream stream;
  int local;                    /* our end; the host has the other */
  int answered;                 /* WIRE_STARTED came */
  int has_ended;                /* WIRE_OUT_ENDED came, with out_all */
  uint64_t out, out_all;        /* bytes that came, and that there are */
  pthread_t reader;             /* of the stream; the other thread joins it */
  struct coffer_call *call;     /* until it is answered */
};

static int32_t
check (struct coffer_call *call, uint32_t port)
{
  return port >= 1 && port <= 65535
         ? COFFER_OK
         : coffer_fail (call, COFFER_INVALID, "a port is from 1 to 65535");
}

int32_t
docker_port_resolve (struct coffer_call *call, void *self,
                     const char *sandbox, uint32_t port,
                     const struct coffer_port_resolve_opts *opts)
{
  const struct coffer_port record = {.size = sizeof record, .port = port};
  auto_sandbox struct docker_sandbox found = {0};
  int32_t code = check (call, port);

  (void) opts;
  if (code == COFFER_OK)
    code = docker_sandbox_find (call, self, sandbox, &found);
  return code == COFFER_OK ? coffer_emit_port (call, &record) : code;
}

/* ---- relaying ------------------------------------------------------------- */

/* Codes of the reading that end it and are none of an operation. */
#define ANSWERED 1000

/* Bytes and the word that they end come by two ways, in any order. */
static void
end_out (struct port *port)
{
  if (port->has_ended && port->out >= port->out_all)
    shutdown (port->local, SHUT_WR);
}

static int
take_out (void *data, const char *bytes, size_t size)
{
  struct port *port = data;

  port->out += size;
  while (size > 0) {
    ssize_t n = send (port->local, bytes, size, MSG_NOSIGNAL);

    if (n < 0 && errno != EINTR)
      return -1;
    bytes += n > 0 ? n : 0;
    size -= n > 0 ? (size_t) n : 0;
  }
  end_out (port);
  return 0;
}

static int
take_frame (void *data, uint32_t kind, const void *bytes, size_t size)
{
  struct port *port = data;

  if (kind == WIRE_OUT_ENDED && size == sizeof port->out_all) {
    memcpy (&port->out_all, bytes, size);
    port->has_ended = 1;
    end_out (port);
  }
  if (kind == WIRE_STARTED)
    port->answered = 1;
  if (kind == WIRE_FAILED && !port->answered)
    return stream_fail_frame (port->call, bytes, size);
  return 0;
}

static void *
read_stream (void *data)
{
  struct port *port = data;
  const struct stream_sink sink = {take_out, take_frame, port};

  while (stream_read (&port->stream, &sink) == 1)
    ;
  shutdown (port->local, SHUT_RDWR);
  return NULL;
}

/* ---- the list, for the instance's end --------------------------------------- */

static void
port_link (struct port *port)
{
  struct docker *docker = port->docker;

  pthread_mutex_lock (&docker->lock);
  port->next = docker->ports;
  docker->ports = port;
  pthread_mutex_unlock (&docker->lock);
}

static void
port_unlink (struct port *port)
{
  struct docker *docker = port->docker;
  struct port **at;

  pthread_mutex_lock (&docker->lock);
  for (at = &docker->ports; *at && *at != port; at = &(*at)->next)
    ;
  if (*at)
    *at = port->next;
  pthread_mutex_unlock (&docker->lock);
}

static int
ports_cut (struct docker *docker)
{
  int any;

  pthread_mutex_lock (&docker->lock);
  any = docker->ports != NULL;
  for (struct port *port = docker->ports; port; port = port->next) {
    shutdown (port->local, SHUT_RDWR);
    shutdown (port->stream.fd, SHUT_RDWR);
  }
  pthread_mutex_unlock (&docker->lock);
  return any;
}

void
docker_ports_end (struct docker *docker)
{
  while (ports_cut (docker))
    poll (NULL, 0, 5);
}

static void
port_free (struct port *port)
{
  port_unlink (port);
  stream_fini (&port->stream);
  coffer_fd_close (&port->local);
  free (port);
}

static void *
write_stream (void *data)
{
  struct port *port = data;
  coffer_unfilled char bytes[PIECE];
  ssize_t n;

  while ((n = recv (port->local, bytes, sizeof bytes, 0)) > 0
         || (n < 0 && errno == EINTR))
    for (ssize_t at = 0; at < n;) {
      ssize_t sent = send (port->stream.fd, bytes + at, (size_t) (n - at),
                           MSG_NOSIGNAL);

      if (sent < 0 && errno != EINTR)
        goto out;
      at += sent > 0 ? sent : 0;
    }
out:
  shutdown (port->stream.fd, SHUT_WR);
  pthread_join (port->reader, NULL);
  port_free (port);
  return NULL;
}

/* Both threads, or neither. */
static int
port_start (struct port *port)
{
  pthread_attr_t attributes;
  pthread_t writer;
  int failed;

  pthread_attr_init (&attributes);
  pthread_attr_setstacksize (&attributes, STACK_BYTES);
  failed = pthread_create (&port->reader, &attributes, read_stream, port);
  if (failed) {
    pthread_attr_destroy (&attributes);
    return failed;
  }
  pthread_attr_setdetachstate (&attributes, PTHREAD_CREATE_DETACHED);
  failed = pthread_create (&writer, &attributes, write_stream, port);
  pthread_attr_destroy (&attributes);
  if (failed) {
    shutdown (port->stream.fd, SHUT_RDWR);
    pthread_join (port->reader, NULL);
  }
  return failed;
}

/* ---- dialling --------------------------------------------------------------- */

static int32_t
wait_answer (struct port *port, const char *sandbox)
{
  const struct stream_sink sink = {take_out, take_frame, port};
  struct coffer_call *call = port->call;

  while (!port->answered) {
    int r;

    if (coffer_wait_fd (port->stream.fd, POLLIN, call->deadline_ns,
                        call->cancel_fd) != 1)
      return coffer_fail_errno (call, errno, "the engine");
    r = stream_read (&port->stream, &sink);
    if (r == 0 && !port->answered)
      return stream_fail_sandbox (call, port->docker, sandbox, &port->stream);
    if (r < 0)
      return coffer_fail_errno (call, errno, "the engine's stream");
    if (r > 1)
      return r;
  }
  return COFFER_OK;
}

/* What a server says at once is in the pair before anybody has its other end. */
#define PAIR_BYTES (512 << 10)

static int32_t
open_port (struct port *port, const char *sandbox, uint32_t number, int *fd)
{
  struct wire_request request;
  int ends[2], size = PAIR_BYTES;
  int32_t code;

  if (socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
    return coffer_fail_errno (port->call, errno, "a connection");
  port->local = ends[0];
  *fd = ends[1];
  setsockopt (ends[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
  stream_request (&request, WIRE_DIAL);
  request.port = number;
  code = stream_open (port->call, port->docker, sandbox, &request, NULL,
                      &port->stream);
  return code == COFFER_OK ? wait_answer (port, sandbox) : code;
}

int32_t
docker_port_dial (struct coffer_call *call, void *self, const char *sandbox,
                  uint32_t number, const struct coffer_port_dial_opts *opts)
{
  struct coffer_stream record = {.size = sizeof record};
  coffer_autoclose int fd = -1;
  struct port *port;
  int32_t code = check (call, number);
  int failed;

  (void) opts;
  if (code != COFFER_OK)
    return code;
  port = calloc (1, sizeof *port);
  if (!port)
    return coffer_fail_errno (call, ENOMEM, "a connection");
  port->docker = self;
  port->call = call;
  port->local = port->stream.fd = -1;
  code = open_port (port, sandbox, number, &fd);
  record.fd = fd;
  if (code == COFFER_OK)
    code = coffer_emit_stream (call, &record);
  if (code != COFFER_OK) {
    port_free (port);
    return code;
  }
  port_link (port);
  failed = port_start (port);
  if (failed) {
    port_free (port);
    return coffer_fail_errno (call, failed, "a connection");
  }
  return COFFER_OK;
}
