/* SPDX-License-Identifier: Apache-2.0 */
/* A sandbox that begins with what a snapshot has: its image lies in a container
 * that never runs, out of which the engine gives the pieces, and what they were is
 * unpacked inside by the sandbox's user, all of it or nothing. */

#define _GNU_SOURCE

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include <coffer/fd.h>
#include <coffer/files.h>

#include "pieces.h"
#include "snapshot.h"
#include "stream.h"

struct restoring {
  struct coffer_call *call;
  struct docker *docker;
  const struct docker_snapshot *snapshot;
  struct stream stream;         /* to the program inside */
  struct pieces_reader reader;
  int refused;                  /* who is inside takes no more, and says why */
  char carrier[DOCKER_NAME_MAX];
};

/* ---- the image it was made with ------------------------------------------ */

static int32_t
look_for_base (struct coffer_call *call, struct docker *docker,
               const struct docker_snapshot *snapshot)
{
  coffer_autoreply struct coffer_http_reply reply = {0};
  int32_t code = docker_ask (call, docker, "GET", NULL, &reply,
                             "/images/%s/json", snapshot->base);

  if (code != COFFER_OK || reply.status < 300)
    return code;
  return reply.status == 404 ? COFFER_NOT_FOUND
                             : docker_fail (call, &reply, "look at an image");
}

int32_t
docker_snapshot_base (struct coffer_call *call, struct docker *docker,
                      const struct docker_snapshot *snapshot)
{
  struct docker_hush hush;
  int32_t code = look_for_base (call, docker, snapshot);

  if (code != COFFER_NOT_FOUND)
    return code;
  if (*snapshot->base_name) {
    docker_hush (call, &hush);
    code = docker_image_pull (call, docker, snapshot->base_name);
    docker_unhush (call, &hush);
    if (code == COFFER_TIMEOUT || code == COFFER_CANCELLED)
      return coffer_fail (call, code, code == COFFER_TIMEOUT
                          ? "the image that the snapshot was made with was not "
                            "pulled in time" : "pulling the image that the "
                                               "snapshot was made with");
    code = look_for_base (call, docker, snapshot);
  }
  return code != COFFER_NOT_FOUND && code != COFFER_OK ? code
         : code == COFFER_OK ? COFFER_OK
         : coffer_fail (call, COFFER_INVALID, "the engine no longer has the "
                        "image that this snapshot was made with, and by its "
                        "name there is another one or none to be had");
}

/* ---- pieces --------------------------------------------------------------- */

static int32_t
send_piece (void *data, const void *bytes, size_t size)
{
  struct restoring *restoring = data;
  struct {
    uint32_t size;
    char bytes[WIRE_PIECE_MAX];
  } piece;
  int32_t code = COFFER_OK;
  size_t n;

  for (; size > 0 && code == COFFER_OK;
       bytes = (const char *) bytes + n, size -= n) {
    n = size < sizeof piece.bytes ? size : sizeof piece.bytes;
    piece.size = (uint32_t) n;
    memcpy (piece.bytes, bytes, n);
    code = docker_work_send (restoring->call, restoring->stream.fd,
                             (const char *) &piece, sizeof piece.size + n);
  }
  restoring->refused = code == COFFER_IO;
  return code;
}

static int32_t
take_body (void *data, const void *bytes, size_t size)
{
  struct restoring *restoring = data;
  int32_t code = pieces_read (&restoring->reader, bytes, size);

  restoring->reader.is_spoilt |= code == COFFER_IO && !restoring->refused;
  return code;
}

/* COFFER_IO without a failure when it was refused. */
static int32_t
read_pieces (struct restoring *restoring)
{
  coffer_autobuffer struct coffer_buffer path = {0};
  coffer_autoreply struct coffer_http_reply reply = {0};
  struct coffer_http_request request = {
    .flags = COFFER_HTTP_ANY_STATUS | COFFER_HTTP_ONCE, .sink = take_body,
    .sink_data = restoring,
  };
  int32_t code;

  docker_path (restoring->docker, &path, "/containers/%s/archive?path=%%2F"
               PIECES_FOLDER, restoring->carrier);
  if (path.failed)
    return coffer_fail_errno (restoring->call, ENOMEM, "a snapshot");
  request.path = path.data;
  pieces_open (&restoring->reader, send_piece, restoring);
  code = coffer_http_do (restoring->docker->http, restoring->call, &request,
                         &reply);
  if (restoring->refused)
    return COFFER_IO;
  if (code == COFFER_OK && reply.status >= 300)
    return docker_fail (restoring->call, &reply, "read a snapshot");
  if (restoring->reader.is_spoilt
      || (code == COFFER_OK && !restoring->reader.has_ended))
    return coffer_fail (restoring->call, COFFER_IO, "the snapshot is not as "
                        "it was made: its pieces or their digest are others");
  return code == COFFER_OK ? COFFER_OK
                           : coffer_http_fail (restoring->call, &reply);
}

static int32_t
unpack (struct restoring *restoring)
{
  const uint32_t end = 0;
  int32_t code = read_pieces (restoring);

  if (code == COFFER_OK) {
    code = docker_work_send (restoring->call, restoring->stream.fd,
                             (const char *) &end, sizeof end);
    restoring->refused = code == COFFER_IO;
  }
  if (code != COFFER_OK && !restoring->refused)
    return code;
  code = docker_work_on (restoring->call, &restoring->stream, NULL, NULL);
  return code == COFFER_OK && restoring->refused
         ? coffer_fail (restoring->call, COFFER_IO, "the snapshot broke off")
         : code;
}

static int32_t
fill (struct restoring *restoring, const char *sandbox)
{
  coffer_autobuffer struct coffer_buffer block = {0};
  struct wire_request request;
  int32_t code;

  stream_request (&request, WIRE_IMPORT);
  request.flags = WIRE_LINKS;
  coffer_buffer_add (&block, SANDBOX_WORKSPACE, sizeof SANDBOX_WORKSPACE);
  code = stream_open (restoring->call, restoring->docker, sandbox, &request,
                      &block, &restoring->stream);
  if (code == COFFER_OK)
    code = unpack (restoring);
  stream_fini (&restoring->stream);
  return code;
}

/* ---- the carrier ------------------------------------------------------------ */

static int32_t
make_carrier (struct restoring *restoring)
{
  coffer_autoreply struct coffer_http_reply reply = {0};
  json_t *body = json_pack ("{s:s, s:[s], s:{s:s, s:s}, s:{s:s}}",
                            "Image", restoring->snapshot->image, "Cmd",
                            "/never", "Labels", LABEL_HOST,
                            restoring->docker->host, LABEL_CARRIER,
                            restoring->snapshot->id, "HostConfig",
                            "NetworkMode", "none");
  int32_t code = docker_ask (restoring->call, restoring->docker, "POST", body,
                             &reply, "/containers/create?name=%s",
                             restoring->carrier);

  json_decref (body);
  return code == COFFER_OK && reply.status >= 300
         ? docker_fail (restoring->call, &reply, "read a snapshot") : code;
}

/* In half of the time: the sandbox may have to be taken back after it. */
static void
remove_carrier (struct restoring *restoring)
{
  struct coffer_call *call = restoring->call;
  coffer_autoreply struct coffer_http_reply reply = {0};
  struct docker_hush hush;

  docker_hush_undo (call, &hush, call->deadline_ns);
  call->deadline_ns -= (call->deadline_ns - coffer_now_ns ()) / 2;
  docker_ask (call, restoring->docker, "DELETE", NULL, &reply,
              "/containers/%s?force=1", restoring->carrier);
  docker_unhush (call, &hush);
}

int32_t
docker_snapshot_restore (struct coffer_call *call, struct docker *docker,
                         const char *sandbox,
                         const struct docker_snapshot *snapshot)
{
  struct restoring restoring = {.call = call, .docker = docker,
                                .snapshot = snapshot, .stream = {.fd = -1}};
  int lock = -1;
  uint64_t random;
  int32_t code;

  if (getrandom (&random, sizeof random, 0) != sizeof random)
    return coffer_fail_errno (call, errno, "a carrier's name");
  snprintf (restoring.carrier, sizeof restoring.carrier,
            "coffer.%s.%s.%08" PRIx32, docker->host, snapshot->id,
            (uint32_t) random);
  code = docker_maker_take (call, docker, restoring.carrier, &lock);
  if (code != COFFER_OK)
    return code;
  code = make_carrier (&restoring);
  if (code == COFFER_OK)
    code = fill (&restoring, sandbox);
  remove_carrier (&restoring);
  docker_maker_end (docker, restoring.carrier, &lock);
  return code;
}
