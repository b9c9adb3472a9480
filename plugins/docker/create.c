/* SPDX-License-Identifier: Apache-2.0 */
/* Making a sandbox: volumes, container, what it is told, start.
 *
 * Of several that create one sandbox at once one makes it, and the others wait
 * for it (maker.c) and find that it runs.  What was begun and cannot be
 * finished is removed before the call ends; for that, a part of its time is kept
 * back. */

#define _GNU_SOURCE

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <coffer/fd.h>
#include <coffer/files.h>

#include "snapshot.h"

#define SECOND_NS INT64_C (1000000000)
#define CLEANUP_NS (2 * SECOND_NS)

struct making {
  struct coffer_call *call;
  struct docker *docker;
  struct docker_engine engine;
  enum docker_kernel kernel;    /* that the container has, or may well have */
  const char *sandbox;
  const struct coffer_sandbox_spec *spec;
  char *image;                  /* as it was asked for */
  struct docker_snapshot snapshot;      /* no id: of none */
  json_t *entrypoint;           /* NULL: none */
  struct answer answer;         /* of the first process */
  char name[DOCKER_NAME_MAX];
  char id[128];                 /* the engine's, of what was made */
  int64_t began_ns;             /* CLOCK_REALTIME, before it was made */
  int stream;                   /* to the first process; -1: none */
};

/* ---- cleaning up -------------------------------------------------------- */

/* A container that was begun here and never ran: what answered to nobody in time
 * may have been made all the same.  One that runs is not ours to undo. */
static int
is_begun (struct making *making)
{
  auto_sandbox struct docker_sandbox found = {0};

  return docker_sandbox_look (making->call, making->docker, making->sandbox,
                              &found) == COFFER_OK
         && !found.running && found.created_ns >= making->began_ns - SECOND_NS;
}

/* Whatever the caller wants by now; the host kills what is left. */
static void
undo (struct making *making, int64_t deadline_ns)
{
  struct coffer_call *call = making->call;
  struct docker_hush hush;

  docker_hush_undo (call, &hush, deadline_ns);
  if (making->id[0] || is_begun (making))
    docker_remove (call, making->docker, making->name);
  else if (making->engine.kind == ENGINE_PODMAN)
    docker_remove_volumes (call, making->docker, making->name);
  docker_unhush (call, &hush);
}

/* ---- steps -------------------------------------------------------------- */

/* The name is that of another: engines say so with 409, Podman sometimes with
 * 500. */
static int
is_taken (const struct coffer_http_reply *reply)
{
  return reply->status == 409
         || (reply->status == 500
             && (strstr (docker_words (reply), "already in use")
                 || strstr (docker_words (reply), "already exists")));
}

static int32_t
make_volumes (struct making *making)
{
  for (size_t n = 0;; n++) {
    coffer_autoreply struct coffer_http_reply reply = {0};
    json_t *body = docker_spec_volume (making->docker, &making->engine,
                                       making->name, n, making->spec);
    int32_t code;

    if (!body)
      return COFFER_OK;
    code = docker_ask (making->call, making->docker, "POST", body, &reply,
                       "/volumes/create");
    json_decref (body);
    if (code != COFFER_OK)
      return code;
    if (reply.status >= 300 && !is_taken (&reply))
      return docker_fail (making->call, &reply, "make a volume");
  }
}

static int
is_no_image (const struct coffer_http_reply *reply)
{
  return reply->status == 404
         || (reply->status == 500
             && strstr (docker_words (reply), "image not known"));
}

/* One try: EXISTS and NOT_FOUND (the image) without a failure. */
static int32_t
try_container (struct making *making)
{
  coffer_autoreply struct coffer_http_reply reply = {0};
  json_t *body = docker_spec_body (making->docker, &making->engine,
                                   making->kernel, making->name, making->sandbox,
                                   making->image, making->entrypoint,
                                   making->spec);
  const char *id;
  int32_t code;

  if (!body)
    return coffer_fail (making->call, COFFER_INVALID, "the specification is "
                        "no UTF-8, or a mount's source has gone");
  if (*making->snapshot.id)
    json_object_set_new (body, "Image", json_string (making->snapshot.base));
  code = docker_ask (making->call, making->docker, "POST", body, &reply,
                     "/containers/create?name=%s", making->name);
  json_decref (body);
  if (code != COFFER_OK)
    return code;
  id = json_string_value (json_object_get (reply.json, "Id"));
  if (reply.status < 300)
    snprintf (making->id, sizeof making->id, "%s", id ? id : "");
  if (reply.status < 300)
    return COFFER_OK;
  return is_taken (&reply) ? COFFER_EXISTS
         : is_no_image (&reply) ? COFFER_NOT_FOUND
         : docker_fail (making->call, &reply, "create a container");
}

static int32_t
make_container (struct making *making)
{
  int32_t code = try_container (making);

  if (code != COFFER_NOT_FOUND)
    return code;
  code = *making->snapshot.id
         ? docker_snapshot_base (making->call, making->docker,
                                 &making->snapshot)
         : docker_image_pull (making->call, making->docker, making->image);
  if (code == COFFER_OK)
    code = try_container (making);
  return code == COFFER_NOT_FOUND
         ? coffer_fail (making->call, COFFER_INVALID, "the image was pulled, "
                        "and the engine does not find it by that name")
         : code;
}

/* What was made is made anew for a kernel of its own that nobody has told of: as
 * one program of the machine's it needs more threads than a sandbox does.  And
 * mounts are looked at by numbers that the machine's kernel alone has. */
static int32_t
fit_kernel (struct making *making)
{
  const struct coffer_sandbox_spec *spec = making->spec;
  const enum docker_kernel guess = making->kernel;
  const int has_mounts = spec->mounts && spec->mounts[0];
  int32_t code;

  if (!has_mounts && (spec->pids || guess != KERNEL_UNKNOWN))
    return COFFER_OK;
  code = docker_kernel_of (making->call, making->docker, &making->engine,
                           making->name, &making->kernel);
  if (code != COFFER_OK || spec->pids
      || (making->kernel == KERNEL_GVISOR) == (guess == KERNEL_GVISOR))
    return code;
  code = docker_remove (making->call, making->docker, making->name);
  if (code == COFFER_OK || code == COFFER_NOT_FOUND)
    code = make_volumes (making);
  return code == COFFER_OK ? make_container (making) : code;
}

/* Of a runtime that nobody here knows, its operator has named it. */
static int
is_kernel_shared (const struct making *making)
{
  return making->kernel == KERNEL_SHARED
         || (making->kernel == KERNEL_OTHER
             && !making->docker->config.runtime);
}

/* The first process waits for it, and ends where this process does meanwhile. */
static int32_t
restore (struct making *making)
{
  int32_t code = docker_snapshot_restore (making->call, making->docker,
                                          making->sandbox, &making->snapshot);

  return code == COFFER_OK
         ? docker_tell_restored (making->call, making->stream, &making->answer)
         : code;
}

static int32_t
start (struct making *making)
{
  coffer_autoreply struct coffer_http_reply reply = {0};
  int32_t code = docker_attach (making->call, making->docker, making->name,
                                &making->stream);

  if (code == COFFER_OK)
    code = docker_ask (making->call, making->docker, "POST", NULL, &reply,
                       "/containers/%s/start", making->name);
  if (code == COFFER_OK && reply.status >= 400)
    code = docker_fail (making->call, &reply, "start a container");
  if (code == COFFER_OK)
    code = docker_tell (making->call, is_kernel_shared (making),
                        making->stream, making->spec, *making->snapshot.id != '\0',
                        &making->answer);
  if (code == COFFER_OK && *making->snapshot.id)
    code = restore (making);
  if (code == COFFER_OK && making->spec->lifeline >= 0
      && docker_keep (making->docker, &making->stream,
                      making->spec->lifeline) < 0)
    code = coffer_fail_errno (making->call, errno, "the lifeline");
  return code;
}

/* ---- telling ------------------------------------------------------------ */

static int32_t
emit_fact (struct making *making, const char *name, const char *value,
           const char *how)
{
  const struct coffer_fact fact = {
    .size = sizeof fact, .name = name, .state = "ok", .value = value,
    .how = how,
  };

  return coffer_emit_fact (making->call, &fact);
}

/* As the first process has read it of itself, before anything of the image was
 * run: a value that is none of a confined process is no fact. */
static int32_t
emit_confined (struct making *making)
{
  static const struct {
    const char *line, *name, *value;
  } rows[] = {
    {"CapBnd:\t0000000000000000\n", "capabilities", "none, and none to be had"},
    {"NoNewPrivs:\t1\n", "no_new_privs", "set"},
    {"Seccomp:\t2\n", "seccomp", "the engine's filter"},
  };
  int32_t code = COFFER_OK;

  for (size_t i = 0; code == COFFER_OK && i < sizeof rows / sizeof rows[0];
       i++)
    if (strstr (making->answer.text, rows[i].line))
      code = emit_fact (making, rows[i].name, rows[i].value,
                        "/proc/self/status of the first process");
  return code;
}

static int32_t
emit_facts (struct making *making)
{
  const char *runtime = making->docker->config.runtime;
  int32_t code = emit_fact (making, "engine", making->engine.version,
                            "the engine's own word");

  if (code == COFFER_OK && runtime)
    code = emit_fact (making, "runtime", runtime, "configuration");
  return code == COFFER_OK ? emit_confined (making) : code;
}

static int32_t
tell (struct making *making, const struct docker_sandbox *found)
{
  int32_t code = docker_emit (making->call, making->sandbox, found);

  return code == COFFER_OK ? emit_facts (making) : code;
}

/* It was there, and its time was over before it could be looked at. */
static int32_t
tell_gone (struct making *making)
{
  const struct coffer_sandbox_info info = {
    .size = sizeof info, .sandbox = making->sandbox, .native_id = making->id,
    .state = "gone", .isolation = "container",
    .workspace = SANDBOX_WORKSPACE, .metadata = making->spec->metadata,
  };
  int32_t code = coffer_emit_sandbox_info (making->call, &info);

  return code == COFFER_OK ? emit_facts (making) : code;
}

static int32_t
tell_made (struct making *making)
{
  auto_sandbox struct docker_sandbox found = {0};
  const uint64_t ttl_ms = making->spec->ttl_ms;
  struct docker_hush hush;
  int32_t code;

  docker_hush (making->call, &hush);
  code = docker_sandbox_find (making->call, making->docker, making->sandbox,
                              &found);
  docker_unhush (making->call, &hush);
  if (code == COFFER_OK)
    return tell (making, &found);
  if (code != COFFER_NOT_FOUND)
    return coffer_fail (making->call, code, "the container was started, and "
                        "the engine does not tell of it");
  if (ttl_ms && coffer_realtime_ns () - making->began_ns
                >= (int64_t) ttl_ms * 1000000)
    return tell_gone (making);
  return coffer_fail (making->call, COFFER_UNAVAILABLE, "the container ended "
                      "as soon as it was started: the image may be of another "
                      "architecture, or the runtime refuses the program");
}

/* ---- one that is there -------------------------------------------------- */

/* OK: told of; NOT_FOUND without a failure: it has gone, so that the name is
 * free.  One that does not run has ended, or was left by a maker that has. */
static int32_t
take_existing (struct making *making)
{
  auto_sandbox struct docker_sandbox found = {0};
  struct docker_hush hush;
  int32_t code;

  docker_hush (making->call, &hush);
  code = docker_sandbox_look (making->call, making->docker, making->sandbox,
                              &found);
  docker_unhush (making->call, &hush);
  if (code == COFFER_OK && found.running)
    return tell (making, &found);
  if (code == COFFER_OK)
    code = docker_remove (making->call, making->docker, making->name);
  else if (code != COFFER_NOT_FOUND)
    return coffer_fail (making->call, code, "the engine does not tell of the "
                        "container that has the name");
  return code == COFFER_OK ? COFFER_NOT_FOUND : code;
}

static int32_t
make_new (struct making *making, int64_t deadline_ns)
{
  int32_t code = start (making);

  if (code == COFFER_OK)
    code = tell_made (making);
  coffer_fd_close (&making->stream);
  if (code != COFFER_OK)
    undo (making, deadline_ns);
  return code;
}

static int32_t
make (struct making *making, int64_t deadline_ns)
{
  int32_t code = COFFER_NOT_FOUND;

  /* A name is taken a moment before there is a container of it. */
  while (code == COFFER_NOT_FOUND
         && making->call->deadline_ns > coffer_now_ns ()) {
    code = make_volumes (making);
    if (code == COFFER_OK)
      code = make_container (making);
    if (code == COFFER_OK)
      code = fit_kernel (making);
    if (code == COFFER_OK)
      return make_new (making, deadline_ns);
    if (code != COFFER_EXISTS) {
      undo (making, deadline_ns);
      return code;
    }
    code = take_existing (making);
    if (code == COFFER_NOT_FOUND
        && coffer_wait_fd (making->call->cancel_fd, POLLIN,
                           coffer_now_ns () + 10000000, -1) > 0)
      return coffer_fail (making->call, COFFER_CANCELLED, "waiting for a "
                          "sandbox that another call makes");
  }
  return code == COFFER_NOT_FOUND
         ? coffer_fail (making->call, COFFER_TIMEOUT, "the name of the "
                        "container is taken, and there is none of it") : code;
}

/* ---- the operation ------------------------------------------------------ */

/* A snapshot's template has that of its sandbox. */
static int32_t
find_image (struct making *making)
{
  const char *name = making->spec->template_name;
  int32_t code;

  if (!name || !docker_is_snapshot (name) || making->spec->image)
    return docker_image_name (making->call, making->docker, making->spec,
                              &making->image);
  if (docker_spec_shows (making->spec, SANDBOX_WORKSPACE))
    return coffer_fail (making->call, COFFER_UNSUPPORTED, "mounts: a snapshot "
                        "is not unpacked into a folder that is shown as the "
                        "workspace: show that in another place");
  code = docker_snapshot_find (making->call, making->docker, name,
                               &making->snapshot);
  if (code == COFFER_OK)
    code = docker_snapshot_base (making->call, making->docker,
                                 &making->snapshot);
  if (code != COFFER_OK)
    return code;
  making->image = strdup (making->snapshot.base_name);
  return making->image ? COFFER_OK
         : coffer_fail_errno (making->call, ENOMEM, "the image's name");
}

static int32_t
prepare (struct making *making)
{
  int32_t code = docker_spec_check (making->call, making->docker,
                                    making->sandbox, making->spec);

  if (code == COFFER_OK)
    code = docker_container_name (making->call, making->docker,
                                  making->sandbox, making->name);
  if (code == COFFER_OK)
    code = find_image (making);
  if (code == COFFER_OK && !making->docker->program_path)
    code = coffer_fail (making->call, COFFER_UNAVAILABLE, "the program for "
                        "containers could not be put into the provider's "
                        "runtime folder");
  if (code == COFFER_OK)
    code = docker_engine (making->call, making->docker, &making->engine);
  return code == COFFER_OK
         ? docker_image_entrypoint (making->call, making->docker,
                                    *making->snapshot.id
                                    ? making->snapshot.base : making->image,
                                    &making->entrypoint)
         : code;
}

int32_t
docker_sandbox_create (struct coffer_call *call, void *self,
                       const char *sandbox,
                       const struct coffer_sandbox_spec *spec,
                       const struct coffer_sandbox_create_opts *opts)
{
  struct making making = {.call = call, .docker = self, .sandbox = sandbox,
                          .spec = spec, .stream = -1,
                          .began_ns = coffer_realtime_ns ()};
  const int64_t deadline_ns = call->deadline_ns;
  int lock = -1;
  int32_t code;

  (void) opts;
  if (deadline_ns > coffer_now_ns () + 2 * CLEANUP_NS)
    call->deadline_ns = deadline_ns - CLEANUP_NS;
  making.kernel = docker_kernel_guess (self);
  code = prepare (&making);
  if (code == COFFER_OK)
    code = docker_maker_take (call, making.docker, making.name, &lock);
  if (code == COFFER_OK)
    code = make (&making, deadline_ns);
  docker_maker_end (making.docker, making.name, &lock);
  call->deadline_ns = deadline_ns;
  json_decref (making.entrypoint);
  docker_snapshot_fini (&making.snapshot);
  free (making.image);
  return code;
}
