/* SPDX-License-Identifier: Apache-2.0 */
/* Making a snapshot: the working folder is packed inside, goes through here in
 * pieces, and becomes an image while it comes, of which nothing is kept unless all
 * of it went well. */

#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include <coffer/fd.h>
#include <coffer/files.h>

#include "pieces.h"
#include "snapshot.h"
#include "stream.h"

#define SECOND_NS INT64_C (1000000000)
#define CLEANUP_NS (2 * SECOND_NS)

struct saving {
  struct coffer_call *call;
  struct docker *docker;
  const char *sandbox, *name;
  struct docker_snapshot made;
  int64_t deadline_ns;          /* the call's, with what taking back may last */
  char error[400];              /* the engine's, in a reply of 200 */
};

/* ---- from the sandbox to a pipe, in a thread ----------------------------- */

/* Has a call of its own, whose failure is told by the other thread. */
struct pump {
  struct coffer_call call;
  struct coffer_host host;
  pthread_t thread;
  struct stream stream;
  struct pieces_writer writer;
  int out, stop;
  int32_t code;                 /* the first failure */
  char text[400];
  char warning[400];
};

static int32_t
pump_fail (struct coffer_call *call, int32_t code, int32_t retryable,
           const char *message, const char *details)
{
  struct pump *pump = (struct pump *) (void *) call;

  (void) retryable, (void) details;
  if (pump->code == COFFER_OK) {
    snprintf (pump->text, sizeof pump->text, "%s", message ? message : "");
    __atomic_store_n (&pump->code, code, __ATOMIC_RELEASE);
  }
  return code;
}

static void
pump_log (struct coffer_call *call, int32_t level, const char *text)
{
  struct pump *pump = (struct pump *) (void *) call;

  (void) level;
  snprintf (pump->warning, sizeof pump->warning, "%s", text);
}

static int32_t
pump_write (void *data, const void *bytes, size_t size)
{
  struct pump *pump = data;

  if (coffer_write_until (pump->out, bytes, size, pump->call.deadline_ns,
                          pump->call.cancel_fd) < 0)
    return coffer_fail_errno (&pump->call, errno, "the engine");
  return COFFER_OK;
}

static int
pump_take (void *data, const char *bytes, size_t size)
{
  struct pump *pump = data;
  int32_t code = pieces_add (&pump->writer, bytes, size);

  if (code == COFFER_LIMIT || code == COFFER_INTERNAL)
    coffer_fail (&pump->call, code, "the snapshot is too large");
  return code;
}

static void *
pump_main (void *data)
{
  struct pump *pump = data;
  int32_t code = pieces_begin (&pump->writer, pump_write, pump);

  if (code == COFFER_OK)
    code = docker_work_on (&pump->call, &pump->stream, pump_take, pump);
  if (code == COFFER_OK)
    code = pieces_end (&pump->writer);
  if (code != COFFER_OK && pump->code == COFFER_OK)
    pump_fail (&pump->call, code, 0, "the snapshot could not be read", NULL);
  pieces_free (&pump->writer);
  coffer_fd_close (&pump->out);
  return NULL;
}

static int32_t
pump_start (struct saving *saving, struct pump *pump, int *body)
{
  struct wire_request request;
  coffer_autobuffer struct coffer_buffer block = {0};
  const int64_t left_ns = saving->call->deadline_ns - coffer_now_ns ();
  int ends[2], failed;
  int32_t code;

  stream_request (&request, WIRE_EXPORT);
  request.flags = WIRE_STILL;
  request.timeout_ms = left_ns > 0 ? (uint64_t) left_ns / 1000000 + 1 : 1;
  coffer_buffer_add (&block, SANDBOX_WORKSPACE, sizeof SANDBOX_WORKSPACE);
  code = stream_open (saving->call, saving->docker, saving->sandbox, &request,
                      &block, &pump->stream);
  if (code != COFFER_OK)
    return code;
  pump->host = *saving->call->host;
  pump->host.fail = pump_fail;
  pump->host.log = pump_log;
  pump->call = (struct coffer_call) {
    .size = sizeof pump->call, .host = &pump->host,
    .deadline_ns = saving->call->deadline_ns,
    .cancel_fd = pump->stop = eventfd (0, EFD_CLOEXEC),
  };
  if (pump->stop < 0 || pipe2 (ends, O_CLOEXEC) < 0)
    return coffer_fail_errno (saving->call, errno, "a snapshot");
  *body = ends[0];
  pump->out = ends[1];
  failed = pthread_create (&pump->thread, NULL, pump_main, pump);
  if (failed == 0)
    return COFFER_OK;
  coffer_fd_close (&pump->out);
  return coffer_fail_errno (saving->call, failed, "a snapshot");
}

/* ---- from the pipe to the engine ----------------------------------------- */

static void
add_label (struct coffer_buffer *path, const char *key, const char *value)
{
  coffer_buffer_printf (path, "&changes=LABEL%%20%s%%3D%s", key, value);
}

/* What people wrote stands in an instruction: as digits it can be nothing else. */
static void
add_hex (struct coffer_buffer *path, const char *key, const char *text)
{
  add_label (path, key, "");
  for (; *text; text++)
    coffer_buffer_printf (path, "%02x", (unsigned) (unsigned char) *text);
}

static void
add_path (struct coffer_buffer *path, const struct saving *saving)
{
  const struct docker_snapshot *made = &saving->made;
  char created[24];

  snprintf (created, sizeof created, "%" PRId64, made->created_ns);
  docker_path (saving->docker, path, "/images/create?fromSrc=-");
  add_label (path, LABEL_HOST, saving->docker->host);
  add_label (path, LABEL_SNAPSHOT, made->id);
  add_label (path, LABEL_CREATED, created);
  add_label (path, LABEL_BASE, made->base);
  add_hex (path, LABEL_BASE_NAME, made->base_name);
  if (saving->name && *saving->name)
    add_hex (path, LABEL_NAME, saving->name);
}

static int32_t
take_line (void *data, const json_t *value)
{
  struct saving *saving = data;
  const char *error = json_string_value (json_object_get (value, "error"));
  const char *status = json_string_value (json_object_get (value, "status"));

  if (error)
    snprintf (saving->error, sizeof saving->error, "%s", error);
  else if (status && strncmp (status, "sha256:", 7) == 0
           && strlen (status) < sizeof saving->made.image)
    snprintf (saving->made.image, sizeof saving->made.image, "%s", status);
  return COFFER_OK;
}

static int32_t
send_image (struct saving *saving, int body)
{
  static const char *const headers[] = {"Content-Type: application/x-tar",
                                        NULL};
  coffer_autobuffer struct coffer_buffer path = {0};
  coffer_autoreply struct coffer_http_reply reply = {0};
  struct coffer_http_json_lines lines = {.take = take_line, .data = saving};
  struct coffer_http_request request = {
    .method = "POST", .headers = headers,
    .flags = COFFER_HTTP_ANY_STATUS | COFFER_HTTP_ONCE, .body_from_fd = 1,
    .body_fd = body, .body_size = -1, .sink = coffer_http_json_lines,
    .sink_data = &lines,
  };
  int32_t code, ended;

  add_path (&path, saving);
  if (path.failed)
    return COFFER_INTERNAL;
  request.path = path.data;
  code = coffer_http_do (saving->docker->http, saving->call, &request, &reply);
  ended = coffer_http_json_lines_end (&lines);
  if (code == COFFER_OK && reply.status < 300 && ended == COFFER_OK
      && !*saving->error && *saving->made.image)
    return COFFER_OK;
  if (!*saving->error)
    snprintf (saving->error, sizeof saving->error, "make an image: %s",
              code != COFFER_OK && reply.message ? reply.message
                                                 : docker_words (&reply));
  return code != COFFER_OK ? code : COFFER_IO;
}

/* The words are the engine's. */
static int32_t
fail_escaped (struct coffer_call *call, int32_t code, const char *words)
{
  coffer_autobuffer struct coffer_buffer text = {0};

  coffer_buffer_add_escaped (&text, words, strlen (words));
  return coffer_fail (call, code, text.failed ? "make an image" : text.data);
}

/* The other end sees whatever failed here as something broken off: what was first
 * is told.  Until `body` is closed the thread cannot fail because of this one. */
static int32_t
stream_image (struct saving *saving)
{
  struct pump pump = {.stream = {.fd = -1}, .out = -1, .stop = -1};
  coffer_autoclose int body = -1;
  uint64_t one = 1;
  int32_t code = pump_start (saving, &pump, &body), first;

  if (code == COFFER_OK) {
    code = send_image (saving, body);
    first = __atomic_load_n (&pump.code, __ATOMIC_ACQUIRE);
    (void) !write (pump.stop, &one, sizeof one);
    coffer_fd_close (&body);
    pthread_join (pump.thread, NULL);
    if (first != COFFER_OK || (code == COFFER_OK && pump.code != COFFER_OK))
      code = coffer_fail (saving->call, pump.code, pump.text);
    else if (code != COFFER_OK)
      code = fail_escaped (saving->call, code, saving->error);
    else if (*pump.warning)
      coffer_log (saving->call, COFFER_LOG_WARNING, pump.warning);
  }
  stream_fini (&pump.stream);
  coffer_fd_close (&pump.stop);
  return code;
}

/* ---- the whole ------------------------------------------------------------ */

/* With its name it is there. */
static int32_t
name_image (struct saving *saving)
{
  coffer_autoreply struct coffer_http_reply reply = {0};
  int32_t code = docker_ask (saving->call, saving->docker, "POST", NULL,
                             &reply, "/images/%s/tag?repo=coffer-snapshot-%s"
                             "&tag=%s", saving->made.image,
                             saving->docker->host, saving->made.id);

  return code == COFFER_OK && reply.status >= 300
         ? docker_fail (saving->call, &reply, "name a snapshot") : code;
}

/* Images that carry this id, whatever the engine has said of them. */
static void
remove_begun (struct saving *saving)
{
  json_t *images = NULL;
  const json_t *entry;
  size_t i;

  docker_snapshot_images (saving->call, saving->docker, &images);
  json_array_foreach (images, i, entry) {
    auto_snapshot struct docker_snapshot one = {0};
    coffer_autoreply struct coffer_http_reply reply = {0};
    const char *id = json_string_value (json_object_get (entry, "Id"));

    if (id && docker_snapshot_read (saving->docker, json_object_get (
                                      entry, "Labels"), &one) == 0
        && strcmp (one.id, saving->made.id) == 0)
      docker_ask (saving->call, saving->docker, "DELETE", NULL, &reply,
                  "/images/%s", id);
  }
  json_decref (images);
}

static void
undo (struct saving *saving)
{
  struct coffer_call *call = saving->call;
  struct docker_hush hush;

  docker_hush_undo (call, &hush, saving->deadline_ns);
  remove_begun (saving);
  docker_unhush (call, &hush);
}

/* The caller's own folder is the workspace, of which the sandbox's user may see
 * only a part, and which is as it is whatever becomes of the sandbox. */
static int
is_shown (const json_t *container)
{
  const json_t *entry;
  size_t i;

  json_array_foreach (json_object_get (container, "Mounts"), i, entry) {
    const char *type = json_string_value (json_object_get (entry, "Type"));
    const char *place
      = json_string_value (json_object_get (entry, "Destination"));

    if (type && strcmp (type, "bind") == 0
        && place && strcmp (place, SANDBOX_WORKSPACE) == 0)
      return 1;
  }
  return 0;
}

/* What a snapshot of this sandbox is to say of it.  A root that may be written has
 * files that are not in its working folder. */
static int32_t
look (struct saving *saving)
{
  auto_sandbox struct docker_sandbox found = {0};
  struct docker_snapshot *made = &saving->made;
  const char *name;
  int32_t code = docker_sandbox_find (saving->call, saving->docker,
                                      saving->sandbox, &found);

  if (code != COFFER_OK)
    return code;
  if (found.paused)
    return coffer_fail (saving->call, COFFER_CONFLICT, "the sandbox is paused: "
                        "resume it first");
  if (!json_is_true (json_object_get (json_object_get (found.answer,
                                                       "HostConfig"),
                                      "ReadonlyRootfs")))
    return coffer_fail (saving->call, COFFER_UNSUPPORTED, "the sandbox's root "
                        "may be written, which no snapshot would have");
  if (is_shown (found.answer))
    return coffer_fail (saving->call, COFFER_UNSUPPORTED, "the sandbox's "
                        "workspace is a folder that is shown there, of which "
                        "no snapshot is made: keep that folder");
  name = json_string_value (json_object_get (found.labels, LABEL_IMAGE));
  made->base_name = strdup (name ? name : "");
  snprintf (made->base, sizeof made->base, "%s%s",
            found.image_id && strncmp (found.image_id, "sha256:", 7) != 0
            ? "sha256:" : "", found.image_id ? found.image_id : "");
  if (!made->base_name)
    return coffer_fail_errno (saving->call, ENOMEM, "a snapshot");
  return docker_is_image_id (made->base) ? COFFER_OK
         : coffer_fail (saving->call, COFFER_IO, "the engine says of no image "
                        "that this sandbox was made of it");
}

static int32_t
make_id (struct saving *saving)
{
  uint64_t random[2];

  if (getrandom (random, sizeof random, 0) != sizeof random)
    return coffer_fail_errno (saving->call, errno, "a snapshot's id");
  snprintf (saving->made.id, sizeof saving->made.id, "snap-%016llx%016llx",
            (unsigned long long) random[0], (unsigned long long) random[1]);
  saving->made.created_ns = coffer_realtime_ns ();
  return COFFER_OK;
}

static int32_t
emit_made (struct saving *saving)
{
  auto_snapshot struct docker_snapshot found = {0};
  struct coffer_snapshot record = {.size = sizeof record};
  int32_t code = docker_snapshot_find (saving->call, saving->docker,
                                       saving->made.id, &found);

  if (code != COFFER_OK)
    return code;
  record.snapshot = found.id;
  record.name = saving->name ? saving->name : found.name;
  record.size_bytes = found.size_bytes;
  record.created_ns = found.created_ns;
  return coffer_emit_snapshot (saving->call, &record);
}

static int32_t
make (struct saving *saving)
{
  int lock = -1;
  int32_t code = docker_maker_take (saving->call, saving->docker,
                                    saving->made.id, &lock);

  if (code != COFFER_OK)
    return code;
  code = stream_image (saving);
  if (code == COFFER_OK)
    code = name_image (saving);
  if (code == COFFER_OK)
    code = emit_made (saving);
  if (code != COFFER_OK)
    undo (saving);
  docker_maker_end (saving->docker, saving->made.id, &lock);
  return code;
}

int32_t
docker_snapshot_create (struct coffer_call *call, void *self,
                        const char *sandbox, const char *name,
                        const struct coffer_snapshot_create_opts *opts)
{
  struct saving saving = {.call = call, .docker = self, .sandbox = sandbox,
                          .name = name, .deadline_ns = call->deadline_ns};
  int32_t code;

  (void) opts;
  if (name && strlen (name) > SNAPSHOT_NAME_MAX)
    return coffer_fail (call, COFFER_INVALID, "name: more than 256 bytes");
  if (saving.deadline_ns > coffer_now_ns () + 2 * CLEANUP_NS)
    call->deadline_ns = saving.deadline_ns - CLEANUP_NS;
  code = look (&saving);
  if (code == COFFER_OK)
    code = make_id (&saving);
  if (code == COFFER_OK)
    code = make (&saving);
  call->deadline_ns = saving.deadline_ns;
  docker_snapshot_fini (&saving.made);
  return code;
}
