/* SPDX-License-Identifier: Apache-2.0 */
/* Images: which one is meant, and how it comes to the engine. */

#define _GNU_SOURCE

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <coffer/fd.h>
#include <coffer/files.h>

#include "docker.h"

/* ---- which one ---------------------------------------------------------- */

/* The image that the configuration has for a template, its length in *size. */
static const char *
mapped (const char *images, const char *name, size_t *size)
{
  const size_t length = strlen (name);

  for (const char *at = images; at && *at; at += *size) {
    at += strspn (at, " ,");
    *size = strcspn (at, " ,");
    if (*size > length + 1 && strncmp (at, name, length) == 0
        && at[length] == '=') {
      *size -= length + 1;
      return at + length + 1;
    }
  }
  return NULL;
}

/* What stands in a query and in a path afterwards, and names no option. */
static int
is_name (const char *image)
{
  static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@";

  return *image && *image != '-' && strlen (image) < 512
         && strspn (image, allowed) == strlen (image);
}

int32_t
docker_image_name (struct coffer_call *call, const struct docker *docker,
                   const struct coffer_sandbox_spec *spec, char **image)
{
  const char *name = spec->image ? spec->image : docker->config.image;
  size_t size = name ? strlen (name) : 0;

  if (spec->template_name && spec->image)
    return coffer_fail (call, COFFER_INVALID, "a template and an image: one of "
                        "them, as either is the whole root");
  if (spec->template_name) {
    name = mapped (docker->config.images, spec->template_name, &size);
    if (!name)
      return coffer_fail (call, COFFER_INVALID, "no image stands for this "
                          "template: add TEMPLATE=IMAGE to the provider's "
                          "`images`, or name an image");
  }
  if (!name)
    return coffer_fail (call, COFFER_INVALID, "no image: name one with --image "
                        "or set the provider's `image`");
  *image = strndup (name, size);
  if (!*image)
    return coffer_fail_errno (call, ENOMEM, "the image's name");
  return is_name (*image) ? COFFER_OK
         : coffer_fail (call, COFFER_INVALID, "the image's name is none");
}

/* ---- its entrypoint ----------------------------------------------------- */

static void
add_words (json_t *list, const char *text)
{
  for (size_t size; *text; text += size) {
    text += strspn (text, " ");
    size = strcspn (text, " ");
    if (size)
      json_array_append_new (list, json_stringn (text, size));
  }
}

/* Its own entrypoint and what is given to that; one that the engine lacks is
 * pulled, as it would be at the create. */
static int32_t
add_own (struct coffer_call *call, struct docker *docker, const char *image,
         json_t *list)
{
  int32_t code = COFFER_OK;

  for (int tries = 0; code == COFFER_OK; tries++) {
    coffer_autoreply struct coffer_http_reply reply = {0};
    const json_t *config;

    code = docker_ask (call, docker, "GET", NULL, &reply, "/images/%s/json",
                       image);
    if (code == COFFER_OK && reply.status == 404 && tries == 0) {
      code = docker_image_pull (call, docker, image);
      continue;
    }
    if (code == COFFER_OK && reply.status >= 300)
      code = docker_fail (call, &reply, "look at the image");
    if (code != COFFER_OK)
      break;
    config = json_object_get (reply.json, "Config");
    json_array_extend (list, json_object_get (config, "Entrypoint"));
    json_array_extend (list, json_object_get (config, "Cmd"));
    return COFFER_OK;
  }
  return code;
}

int32_t
docker_image_entrypoint (struct coffer_call *call, struct docker *docker,
                         const char *image, json_t **words)
{
  const char *text = docker->config.entrypoint;
  int32_t code = COFFER_OK;

  if (!text)
    return COFFER_OK;
  *words = json_array ();
  if (strcmp (text, "image") == 0)
    code = add_own (call, docker, image, *words);
  else
    add_words (*words, text);
  if (code == COFFER_OK && json_array_size (*words) == 0)
    code = coffer_fail (call, COFFER_INVALID, "the image has no entrypoint and "
                        "no command: configure another one, or none");
  return code;
}

/* ---- pulling ------------------------------------------------------------ */

#define LAYERS 128

#define BEAT_NS INT64_C (1000000000)

struct pull {
  struct coffer_call *call;
  const char *what;             /* for people */
  pthread_mutex_t lock;         /* of what is told: done and total */
  uint64_t done, total;
  int over;                     /* an eventfd, readable at the end */
  struct {
    char id[16];
    uint64_t done, total;
  } layers[LAYERS];
  size_t n_layers;
  char failed[512];
};

static void
tell_pull (struct pull *pull, uint64_t done, uint64_t total)
{
  pthread_mutex_lock (&pull->lock);
  pull->done = done;
  pull->total = total;
  coffer_progress (pull->call, done, total, pull->what);
  pthread_mutex_unlock (&pull->lock);
}

/* An engine says nothing while nothing comes: who waits is told that, too. */
static void *
beat (void *data)
{
  struct pull *pull = data;

  while (coffer_wait_fd (pull->over, POLLIN, coffer_now_ns () + BEAT_NS, -1)
         == 0) {
    pthread_mutex_lock (&pull->lock);
    coffer_progress (pull->call, pull->done, pull->total, pull->what);
    pthread_mutex_unlock (&pull->lock);
  }
  return NULL;
}

static void
take_layer (struct pull *pull, const char *id, const json_t *detail)
{
  json_int_t done = json_integer_value (json_object_get (detail, "current"));
  json_int_t total = json_integer_value (json_object_get (detail, "total"));
  uint64_t all_done = 0, all = 0;
  size_t i = 0;

  if (!id || total <= 0 || done < 0)
    return;
  while (i < pull->n_layers && strcmp (pull->layers[i].id, id) != 0)
    i++;
  if (i == LAYERS || strlen (id) >= sizeof pull->layers[i].id)
    return;
  if (i == pull->n_layers)
    memcpy (pull->layers[pull->n_layers++].id, id, strlen (id) + 1);
  pull->layers[i].done = (uint64_t) done;
  pull->layers[i].total = (uint64_t) total;
  for (i = 0; i < pull->n_layers; i++) {
    all_done += pull->layers[i].done;
    all += pull->layers[i].total;
  }
  tell_pull (pull, all_done, all);
}

/* The status has gone out as 200 before a pull fails. */
static int32_t
take_line (void *data, const json_t *value)
{
  struct pull *pull = data;
  const char *failed = json_string_value (json_object_get (value, "error"));

  if (failed)
    strncpy (pull->failed, failed, sizeof pull->failed - 1);
  else
    take_layer (pull, json_string_value (json_object_get (value, "id")),
                json_object_get (value, "progressDetail"));
  return COFFER_OK;
}

/* The registry has no such image.  One whose certificate is of an "unknown
 * authority" has said nothing of it. */
static int
is_absent (const char *why)
{
  return !strstr (why, "x509:")
         && (strcasestr (why, "not found") || strcasestr (why, "unknown"));
}

static int32_t
fail_pull (struct coffer_call *call, const char *image, const char *why)
{
  coffer_autobuffer struct coffer_buffer text = {0};
  int is_denied = strcasestr (why, "denied") || strcasestr (why, "unauthor")
                  || strcasestr (why, "no basic auth")
                  || strcasestr (why, "authentication required");

  coffer_buffer_printf (&text, "pull %s: ", image);
  coffer_buffer_add_escaped (&text, why, strnlen (why, 400));
  if (is_denied)
    coffer_buffer_add_string (&text, "; docker login, or the provider's "
                              "`registry_auth`, names credentials");
  return coffer_fail (call, is_denied ? COFFER_UNAUTHENTICATED
                      : is_absent (why) ? COFFER_INVALID : COFFER_UNAVAILABLE,
                      text.failed ? "the image cannot be pulled" : text.data);
}

/* Who waits longer may still get it. */
static int32_t
fail_slow (struct coffer_call *call, const char *image)
{
  coffer_autobuffer struct coffer_buffer text = {0};

  coffer_buffer_printf (&text, "pull %s: not there in time: its registry is "
                        "slow, or does not answer; a longer `pull_timeout` or "
                        "deadline waits longer, and docker pull goes before",
                        image);
  return coffer_fail (call, COFFER_TIMEOUT, text.failed
                      ? "the image was not pulled in time" : text.data);
}

/* The request, while another thread says that it is at work. */
static int32_t
ask_pull (struct docker *docker, struct pull *pull,
          const struct coffer_http_request *request,
          struct coffer_http_reply *reply)
{
  const uint64_t one = 1;
  pthread_t thread;
  int is_beating;
  int32_t code;

  pthread_mutex_init (&pull->lock, NULL);
  pull->over = eventfd (0, EFD_CLOEXEC);
  tell_pull (pull, 0, 0);
  is_beating = pull->over >= 0
               && pthread_create (&thread, NULL, beat, pull) == 0;
  code = coffer_http_do (docker->http, pull->call, request, reply);
  if (is_beating) {
    while (write (pull->over, &one, sizeof one) < 0 && errno == EINTR)
      ;
    pthread_join (thread, NULL);
  }
  coffer_fd_close (&pull->over);
  pthread_mutex_destroy (&pull->lock);
  return code;
}

static int32_t
pull_within (struct coffer_call *call, struct docker *docker,
             const char *image)
{
  coffer_autobuffer struct coffer_buffer path = {0}, what = {0};
  docker_autowiped struct coffer_buffer credentials = {0};
  coffer_autoreply struct coffer_http_reply reply = {0};
  struct pull pull = {.call = call};
  struct coffer_http_json_lines lines = {.take = take_line, .data = &pull};
  const char *headers[2] = {NULL, NULL};
  struct coffer_http_request request = {
    .method = "POST", .headers = headers, .flags = COFFER_HTTP_ANY_STATUS,
    .sink = coffer_http_json_lines, .sink_data = &lines,
  };
  int32_t code = docker_credentials (call, docker, image, &credentials), ended;

  if (code != COFFER_OK)
    return code;
  docker_path (docker, &path, "/images/create?fromImage=");
  coffer_http_add_encoded (&path, image);
  if (!strchr (image, '@') && !strchr (strrchr (image, '/')
                                       ? strrchr (image, '/') : image, ':'))
    coffer_buffer_add_string (&path, "&tag=latest");
  coffer_buffer_printf (&what, "pulling %s", image);
  if (path.failed || credentials.failed || what.failed)
    return coffer_fail_errno (call, ENOMEM, "a pull");
  headers[0] = credentials.data;
  request.path = path.data;
  pull.what = what.data;
  code = ask_pull (docker, &pull, &request, &reply);
  ended = coffer_http_json_lines_end (&lines);
  if (code == COFFER_TIMEOUT)
    return fail_slow (call, image);
  if (code != COFFER_OK)
    return coffer_http_fail (call, &reply);
  if (reply.status >= 400 || *pull.failed)
    return fail_pull (call, image, *pull.failed ? pull.failed
                                                : docker_words (&reply));
  return ended == COFFER_OK ? COFFER_OK
         : fail_pull (call, image, "the engine's report is no JSON");
}

int32_t
docker_image_pull (struct coffer_call *call, struct docker *docker,
                   const char *image)
{
  const int64_t deadline = call->deadline_ns;
  const int64_t own = coffer_now_ns () + docker->config.pull_timeout_ns;
  int32_t code;

  if (!docker->config.pull) {
    coffer_autobuffer struct coffer_buffer text = {0};

    coffer_buffer_printf (&text, "the engine has no image %s: pull or build it "
                          "there, or set the provider's `pull` to true", image);
    return coffer_fail (call, COFFER_INVALID,
                        text.failed ? "no such image" : text.data);
  }
  if (docker->config.pull_timeout_ns && own < deadline)
    call->deadline_ns = own;
  code = pull_within (call, docker, image);
  call->deadline_ns = deadline;
  return code;
}
