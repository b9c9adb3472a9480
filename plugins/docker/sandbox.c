/* SPDX-License-Identifier: Apache-2.0 */
/* Containers by the names of their sandboxes: found, told of, removed. */

#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <coffer/fd.h>
#include <coffer/files.h>
#include <coffer/path.h>
#include <coffer/spec.h>

#include "docker.h"

int32_t
docker_container_name (struct coffer_call *call, const struct docker *docker,
                       const char *sandbox, char name[DOCKER_NAME_MAX])
{
  if (!coffer_id_is_valid (sandbox))
    return coffer_fail (call, COFFER_INVALID, "a sandbox's id is 1 to 64 "
                        "letters, digits, dashes, dots and underlines");
  snprintf (name, DOCKER_NAME_MAX, "coffer-%s-%s", docker->host, sandbox);
  return COFFER_OK;
}

/* ---- ends that were set later ------------------------------------------- */

#define END_NAME_MAX (DOCKER_NAME_MAX + 8)

static void
end_name (const char *name, char file[END_NAME_MAX])
{
  snprintf (file, END_NAME_MAX, "%s.end", name);
}

int64_t
docker_end_read (const struct docker *docker, const char *name)
{
  char file[END_NAME_MAX], text[32] = "";
  coffer_autoclose int fd = -1;

  if (!docker_is_name (name))
    return 0;
  end_name (name, file);
  fd = openat (docker->runtime, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0 || coffer_read_all (fd, text, sizeof text - 1) <= 0)
    return 0;
  return strtoll (text, NULL, 10);
}

int
docker_end_write (const struct docker *docker, const char *name,
                  int64_t expires_ns)
{
  struct coffer_new_file new_file = {0};
  char file[END_NAME_MAX], text[32];
  int result;

  end_name (name, file);
  snprintf (text, sizeof text, "%" PRId64, expires_ns);
  result = coffer_new_file_begin (&new_file, docker->runtime, file, 0600, 0);
  if (result >= 0)
    result = coffer_write_all (new_file.fd, text, strlen (text)) < 0 ? -1
             : coffer_new_file_commit (&new_file, 0, 0);
  coffer_new_file_abort (&new_file);
  return result;
}

void
docker_end_forget (const struct docker *docker, const char *name)
{
  char file[END_NAME_MAX];

  end_name (name, file);
  unlinkat (docker->runtime, file, 0);
}

/* ---- what an engine says of one ----------------------------------------- */

/* "2026-11-30T14:08:18.71207773Z", or with +01:00 at its end; 0. */
int64_t
docker_time_ns (const char *text)
{
  struct tm tm = {0};
  const char *at = text ? strptime (text, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;
  int64_t ns = 0, unit = 100000000;
  int hours, minutes;

  if (!at || tm.tm_year < 70)
    return 0;
  if (*at == '.')
    for (at++; *at >= '0' && *at <= '9'; at++, unit /= 10)
      ns += (*at - '0') * unit;
  ns += (int64_t) timegm (&tm) * 1000000000;
  if ((*at == '+' || *at == '-')
      && sscanf (at + 1, "%2d:%2d", &hours, &minutes) == 2)
    ns += (*at == '+' ? -60 : 60) * INT64_C (1000000000)
          * (hours * 60 + minutes);
  return ns;
}

static const char *
label (const json_t *labels, const char *name)
{
  return json_string_value (json_object_get (labels, name));
}

static void
take_labels (const struct docker *docker, const char *name,
             const json_t *labels, struct docker_sandbox *out)
{
  const char *expires = label (labels, LABEL_EXPIRES);
  int64_t later = docker_end_read (docker, name);

  out->labels = labels;
  out->expires_ns = later ? later : expires ? strtoll (expires, NULL, 10) : 0;
}

static void
take_inspect (const struct docker *docker, const char *name, json_t *answer,
              struct docker_sandbox *out)
{
  const json_t *state = json_object_get (answer, "State");

  out->answer = json_incref (answer);
  out->id = json_string_value (json_object_get (answer, "Id"));
  out->image_id = json_string_value (json_object_get (answer, "Image"));
  out->paused = json_is_true (json_object_get (state, "Paused"));
  out->running = out->paused
                 || json_is_true (json_object_get (state, "Running"));
  out->created_ns = docker_time_ns (json_string_value (json_object_get (
    answer, "Created")));
  take_labels (docker, name, json_object_get (json_object_get (answer,
                                                               "Config"),
                                              "Labels"), out);
}

void
docker_sandbox_listed (const struct docker *docker, const json_t *entry,
                       struct docker_sandbox *out)
{
  const char *state = json_string_value (json_object_get (entry, "State"));
  const char *name = json_string_value (json_array_get (
    json_object_get (entry, "Names"), 0));

  memset (out, 0, sizeof *out);
  out->id = json_string_value (json_object_get (entry, "Id"));
  out->image_id = json_string_value (json_object_get (entry, "ImageID"));
  out->paused = state && strcmp (state, "paused") == 0;
  out->running = out->paused || (state && strcmp (state, "running") == 0);
  out->created_ns = json_integer_value (json_object_get (entry, "Created"))
                    * INT64_C (1000000000);
  take_labels (docker, name && *name ? name + 1 : "",
               json_object_get (entry, "Labels"), out);
}

void
docker_sandbox_fini (struct docker_sandbox *sandbox)
{
  json_decref (sandbox->answer);
  memset (sandbox, 0, sizeof *sandbox);
}

/* ---- finding ------------------------------------------------------------ */

int32_t
docker_fail_gone (struct coffer_call *call, const char *sandbox)
{
  coffer_autobuffer struct coffer_buffer text = {0};

  coffer_buffer_printf (&text, "no sandbox %s", sandbox);
  return coffer_fail (call, COFFER_NOT_FOUND,
                      text.failed ? "no such sandbox" : text.data);
}

static int
is_ours (const struct docker *docker, const struct docker_sandbox *found)
{
  const char *host = label (found->labels, LABEL_HOST);

  return host && strcmp (host, docker->host) == 0;
}

int32_t
docker_sandbox_look (struct coffer_call *call, struct docker *docker,
                     const char *sandbox, struct docker_sandbox *out)
{
  coffer_autoreply struct coffer_http_reply reply = {0};
  char name[DOCKER_NAME_MAX];
  int32_t code = docker_container_name (call, docker, sandbox, name);

  if (code == COFFER_OK)
    code = docker_ask (call, docker, "GET", NULL, &reply,
                       "/containers/%s/json", name);
  if (code != COFFER_OK)
    return code;
  if (reply.status == 404)
    return docker_fail_gone (call, sandbox);
  if (reply.status >= 300 || !json_is_object (reply.json))
    return docker_fail (call, &reply, "look at a container");
  take_inspect (docker, name, reply.json, out);
  if (is_ours (docker, out))
    return COFFER_OK;
  docker_sandbox_fini (out);
  return docker_fail_gone (call, sandbox);
}

static int
is_over (const struct docker_sandbox *found)
{
  return !found->running
         || (found->expires_ns && found->expires_ns <= coffer_realtime_ns ());
}

/* Looked at once more below the lock: it may have been made since. */
void
docker_clear (struct coffer_call *call, struct docker *docker,
              const char *name, const char *sandbox)
{
  auto_sandbox struct docker_sandbox found = {0};
  struct docker_hush hush;
  int lock = docker_maker_try (docker, name);

  if (lock < 0)
    return;
  docker_hush (call, &hush);
  if (docker_sandbox_look (call, docker, sandbox, &found) == COFFER_OK
      && is_over (&found)) {
    if (found.paused)
      docker_kernel_wake (call, docker, name);
    docker_remove (call, docker, name);
  }
  docker_unhush (call, &hush);
  docker_maker_end (docker, name, &lock);
}

/* A container that is past its time is frozen, or just ending: its time runs on
 * while it is paused, and its first process's does not. */
int32_t
docker_sandbox_find (struct coffer_call *call, struct docker *docker,
                     const char *sandbox, struct docker_sandbox *out)
{
  char name[DOCKER_NAME_MAX];
  int32_t code = docker_sandbox_look (call, docker, sandbox, out);

  if (code != COFFER_OK || !is_over (out))
    return code;
  docker_sandbox_fini (out);
  code = docker_container_name (call, docker, sandbox, name);
  if (code == COFFER_OK)
    docker_clear (call, docker, name, sandbox);
  return code == COFFER_OK ? docker_fail_gone (call, sandbox) : code;
}

int32_t
docker_fail_sandbox (struct coffer_call *call, struct docker *docker,
                     const struct coffer_http_reply *reply,
                     const char *sandbox, const char *what)
{
  auto_sandbox struct docker_sandbox found = {0};
  int32_t code;

  if (reply->status == 404)
    return docker_fail_gone (call, sandbox);
  if (reply->status != 409 && reply->status < 500)
    return docker_fail (call, reply, what);
  code = docker_sandbox_find (call, docker, sandbox, &found);
  if (code != COFFER_OK)
    return code;
  return found.paused
         ? coffer_fail (call, COFFER_CONFLICT, "the sandbox is paused: resume "
                        "it first")
         : docker_fail (call, reply, what);
}

/* ---- telling ------------------------------------------------------------ */

static void
take_metadata (const struct docker_sandbox *found, struct coffer_strings *out)
{
  const char *text = label (found->labels, LABEL_METADATA);
  json_t *list = text ? json_loads (text, 0, NULL) : NULL;
  const json_t *entry;
  size_t i;

  json_array_foreach (list, i, entry)
    if (json_is_string (entry))
      coffer_strings_add (out, json_string_value (entry));
  json_decref (list);
}

int32_t
docker_emit (struct coffer_call *call, const char *sandbox,
             const struct docker_sandbox *found)
{
  coffer_autostrings struct coffer_strings metadata = {0};
  coffer_autobuffer struct coffer_buffer image = {0};
  const char *name = label (found->labels, LABEL_IMAGE);
  struct coffer_sandbox_info info = {
    .size = sizeof info, .sandbox = sandbox, .native_id = found->id,
    .state = found->paused ? "paused" : "running",
    .created_ns = found->created_ns, .expires_ns = found->expires_ns,
    .isolation = "container", .workspace = SANDBOX_WORKSPACE,
  };

  take_metadata (found, &metadata);
  coffer_buffer_printf (&image, "%s@%s", name ? name : "",
                        found->image_id ? found->image_id : "");
  if (metadata.failed || image.failed)
    return coffer_fail_errno (call, ENOMEM, "a sandbox's description");
  info.metadata = coffer_strings_view (&metadata);
  info.template_name = image.data;
  return coffer_emit_sandbox_info (call, &info);
}

/* ---- removing ----------------------------------------------------------- */

/* What is being removed already is waited for. */
static int32_t
wait_removed (struct coffer_call *call, struct docker *docker,
              const char *name, const struct coffer_http_reply *first)
{
  for (int tries = 0; tries < 400; tries++) {
    coffer_autoreply struct coffer_http_reply reply = {0};
    int32_t code = docker_ask (call, docker, "DELETE", NULL, &reply,
                               "/containers/%s?force=1&v=1", name);

    if (code != COFFER_OK)
      return code;
    if (reply.status < 300 || reply.status == 404)
      return COFFER_OK;
    if (coffer_wait_fd (call->cancel_fd, POLLIN,
                        coffer_now_ns () + 25000000, -1) > 0)
      return coffer_fail (call, COFFER_CANCELLED, "the removal of a container");
  }
  return docker_fail (call, first, "remove a container");
}

void
docker_remove_volumes (struct coffer_call *call, struct docker *docker,
                       const char *name)
{
  static const char *const suffixes[] = {"w", "t"};

  for (size_t i = 0; i < 2; i++) {
    coffer_autoreply struct coffer_http_reply reply = {0};

    docker_ask (call, docker, "DELETE", NULL, &reply, "/volumes/%s-%s", name,
                suffixes[i]);
  }
}

int32_t
docker_remove (struct coffer_call *call, struct docker *docker,
               const char *name)
{
  coffer_autoreply struct coffer_http_reply reply = {0};
  struct docker_engine engine = {0};
  int32_t code = docker_engine (call, docker, &engine);

  if (code == COFFER_OK)
    code = docker_ask (call, docker, "DELETE", NULL, &reply,
                       "/containers/%s?force=1&v=1", name);
  if (code == COFFER_OK && reply.status >= 300)
    code = reply.status == 404 ? COFFER_NOT_FOUND
           : wait_removed (call, docker, name, &reply);
  if (engine.kind == ENGINE_PODMAN
      && (code == COFFER_OK || code == COFFER_NOT_FOUND))
    docker_remove_volumes (call, docker, name);
  docker_end_forget (docker, name);
  return code;
}
