/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to the engine, and which engine it is.
 *
 * /_ping tells the newest version of the API that the engine speaks and whether
 * it is Podman's; what is asked for after it names the version that was agreed
 * on, at least 1.41 and at most the newest that this was tried with. */

#define _GNU_SOURCE

#include <errno.h>
#include <stdlib.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <coffer/fd.h>
#include <coffer/files.h>

#include "docker.h"

#define API_LEAST 41
#define API_MOST 47

/* What is configured, else the path of a file in the folder of certificates; NULL:
 * there is none, and the system's are trusted, or no certificate of ours is
 * shown. */
static const char *
pem_of (const struct docker *docker, const char *pem,
        struct coffer_buffer *path, const char *name)
{
  if (strncmp (docker->config.engine, "https://", 8) != 0)
    return NULL;
  if (pem || !docker->config.tls)
    return pem;
  coffer_buffer_printf (path, "%s/%s", docker->config.tls, name);
  return path->data && access (path->data, R_OK) == 0 ? path->data : NULL;
}

int32_t
docker_engine_init (struct coffer_call *call, struct docker *docker)
{
  coffer_autobuffer struct coffer_buffer base = {0}, ca = {0}, own = {0},
                                         key = {0};
  const char *engine = docker->config.engine;
  const char *secrets[] = {docker->config.registry_auth, NULL};
  struct coffer_http_config config = {.idle = 8, .secrets = secrets};

  if (strncmp (engine, "tcp://", 6) == 0)
    coffer_buffer_printf (&base, "http://%s", engine + 6);
  else
    coffer_buffer_add_string (&base, engine);
  config.base = base.data;
  config.ca = pem_of (docker, docker->config.ca, &ca, "ca.pem");
  config.certificate = pem_of (docker, docker->config.certificate, &own,
                               "cert.pem");
  config.key = pem_of (docker, docker->config.key, &key, "key.pem");
  if (base.failed || ca.failed || own.failed || key.failed)
    return coffer_fail_errno (call, ENOMEM, "the engine's address");
  return coffer_http_new (call, &config, &docker->http);
}

void
docker_engine_fini (struct docker *docker)
{
  coffer_http_free (docker->http);
  docker->http = NULL;
}

/* ---- replies ------------------------------------------------------------ */

const char *
docker_words (const struct coffer_http_reply *reply)
{
  const char *words
    = reply->json ? json_string_value (json_object_get (reply->json,
                                                        "message")) : NULL;

  if (words && *words)
    return words;
  if (reply->said && *reply->said)
    return reply->said;
  return reply->message ? reply->message : "it does not say why";
}

static int32_t
fail_nothing (struct coffer_call *call, int32_t code, int32_t retryable,
              const char *message, const char *details)
{
  (void) call, (void) retryable, (void) message, (void) details;
  return code;
}

void
docker_hush (struct coffer_call *call, struct docker_hush *hush)
{
  hush->kept = call->host;
  hush->cancel_fd = call->cancel_fd;
  hush->deadline_ns = call->deadline_ns;
  hush->host = *call->host;
  hush->host.fail = fail_nothing;
  call->host = &hush->host;
}

#define UNDO_NS INT64_C (5000000000)
#define LATE_NS INT64_C (300000000)     /* what the host waits is half a second */

void
docker_hush_undo (struct coffer_call *call, struct docker_hush *hush,
                  int64_t deadline_ns)
{
  const int64_t now = coffer_now_ns ();
  const int given_up = call->cancel_fd >= 0
                       && coffer_wait_fd (call->cancel_fd, POLLIN, now, -1) > 0;
  int64_t until = given_up || deadline_ns < now ? now : deadline_ns;

  until = until < now + UNDO_NS ? until : now + UNDO_NS;
  docker_hush (call, hush);
  call->cancel_fd = -1;
  call->deadline_ns = until + LATE_NS;
}

void
docker_unhush (struct coffer_call *call, const struct docker_hush *hush)
{
  call->host = hush->kept;
  call->cancel_fd = hush->cancel_fd;
  call->deadline_ns = hush->deadline_ns;
}

static int32_t
code_of (int status)
{
  switch (status) {
  case 400: return COFFER_INVALID;
  case 401: return COFFER_UNAUTHENTICATED;
  case 403: return COFFER_DENIED;
  case 404: return COFFER_NOT_FOUND;
  case 409: return COFFER_CONFLICT;
  case 429: return COFFER_BUSY;
  case 503: return COFFER_UNAVAILABLE;
  default: return status >= 500 ? COFFER_IO : COFFER_INVALID;
  }
}

int32_t
docker_fail (struct coffer_call *call, const struct coffer_http_reply *reply,
             const char *what)
{
  coffer_autobuffer struct coffer_buffer text = {0};
  const char *words = docker_words (reply);

  coffer_buffer_printf (&text, "%s: the engine says ", what);
  coffer_buffer_add_escaped (&text, words, strnlen (words, 600));
  return coffer_fail (call, code_of (reply->status),
                      text.failed ? what : text.data);
}

/* ---- which engine ------------------------------------------------------- */

/* It is asked first which engine it is: whatever the call is to make was not
 * begun when that fails. */
static const char unbegun[] = "{\"begun\":false}";

/* Nothing where the reply says it best; but that there is no engine does not mean
 * that a sandbox has gone.  Before the first answer TLS is where it goes wrong: who
 * does not believe our certificate says so by hanging up. */
static void
tell_unreached (struct coffer_buffer *text, const char *engine,
                const struct coffer_http_reply *reply, int is_first)
{
  const char *why = reply->message ? reply->message : "no connection";
  const int tls = strncmp (engine, "https://", 8) == 0;

  if (!tls && reply->said && strstr (reply->said, "HTTPS server"))
    coffer_buffer_printf (text, "the engine at %s speaks TLS: set "
                          "DOCKER_TLS_VERIFY=1 and DOCKER_CERT_PATH, or the "
                          "provider's `engine` to https://", engine);
  else if (reply->code == COFFER_NOT_FOUND)
    coffer_buffer_printf (text, "what answers at %s is no container engine",
                          engine);
  else if (tls && (strstr (why, "client certificate")
                   || strcasestr (why, "private key"))
           && reply->code == COFFER_UNAVAILABLE)
    coffer_buffer_printf (text, "the certificate that is to be shown to the "
                          "engine at %s cannot be used (%s): cert.pem and "
                          "key.pem in DOCKER_CERT_PATH or the context, or the "
                          "provider's `certificate` and `key`, belong together",
                          engine, why);
  else if (tls && strstr (why, "SSL") && reply->code == COFFER_UNAVAILABLE)
    coffer_buffer_printf (text, "the engine at %s is not believed (%s): ca.pem "
                          "beside DOCKER_CERT_PATH's or the context's "
                          "certificates, or the provider's `ca`, says whom to "
                          "believe, and the certificate must be of that name",
                          engine, why);
  else if (tls && reply->code == COFFER_IO && is_first)
    coffer_buffer_printf (text, "the engine at %s ended the connection (%s): "
                          "it may want a client's certificate that it believes"
                          ", cert.pem and key.pem in DOCKER_CERT_PATH or the "
                          "context, or the provider's `certificate` and `key`",
                          engine, why);
  else if (reply->code == COFFER_UNAVAILABLE)
    coffer_buffer_printf (text, "no engine answers at %s (%s): start it, or set"
                          " DOCKER_HOST or the provider's `engine`", engine,
                          why);
}

static int32_t
fail_engine (struct coffer_call *call, const struct docker *docker,
             const struct coffer_http_reply *reply, const char *details)
{
  coffer_autobuffer struct coffer_buffer text = {0};

  tell_unreached (&text, docker->config.engine, reply, details != NULL);
  if (text.failed || !text.data)
    return coffer_fail_with (call, reply->code != COFFER_OK ? reply->code
                                                            : COFFER_INTERNAL,
                             reply->retryable, reply->message
                             ? reply->message : "the engine cannot be asked",
                             details);
  return coffer_fail_with (call, COFFER_UNAVAILABLE, reply->retryable,
                           text.data, details);
}

/* "1.41" */
static int
api_of (const char *text)
{
  int api;

  return text && sscanf (text, "1.%d", &api) == 1 ? api : 0;
}

static int32_t
learn (struct coffer_call *call, const struct docker *docker,
       const struct coffer_http_reply *reply, struct docker_engine *engine)
{
  const char *podman = coffer_http_header (reply, "Libpod-Api-Version");
  const char *server = coffer_http_header (reply, "Server");
  int api = api_of (coffer_http_header (reply, "Api-Version"));
  coffer_autobuffer struct coffer_buffer text = {0};

  if (reply->status != 200 || api < API_LEAST) {
    coffer_buffer_printf (&text, "what answers at %s %s: this provider needs "
                          "Docker 20.10 or Podman 4, or newer (API 1.%d)",
                          docker->config.engine,
                          api ? "is too old" : "is no container engine",
                          API_LEAST);
    return coffer_fail_with (call, COFFER_UNSUPPORTED, COFFER_RETRY_DEFAULT,
                             text.failed ? "the engine is too old" : text.data,
                             unbegun);
  }
  engine->kind = podman ? ENGINE_PODMAN : ENGINE_DOCKER;
  engine->api = api < API_MOST ? api : API_MOST;
  if (podman)
    snprintf (engine->version, sizeof engine->version, "Podman %.40s", podman);
  else
    snprintf (engine->version, sizeof engine->version, "%.60s",
              server ? server : "Docker");
  return COFFER_OK;
}

static int32_t
ping (struct coffer_call *call, struct docker *docker,
      struct docker_engine *engine)
{
  const struct coffer_http_request request = {.path = "/_ping"};
  coffer_autoreply struct coffer_http_reply reply = {0};

  if (coffer_http_do (docker->http, call, &request, &reply) != COFFER_OK)
    return fail_engine (call, docker, &reply, unbegun);
  return learn (call, docker, &reply, engine);
}

int32_t
docker_engine (struct coffer_call *call, struct docker *docker,
               struct docker_engine *out)
{
  struct docker_engine engine;
  int32_t code;

  pthread_mutex_lock (&docker->lock);
  engine = docker->engine;
  pthread_mutex_unlock (&docker->lock);
  if (engine.kind == ENGINE_UNKNOWN) {
    code = ping (call, docker, &engine);
    if (code != COFFER_OK)
      return code;
    pthread_mutex_lock (&docker->lock);
    docker->engine = engine;
    pthread_mutex_unlock (&docker->lock);
  }
  if (out)
    *out = engine;
  return COFFER_OK;
}

/* ---- requests ----------------------------------------------------------- */

static void
add_version (struct docker *docker, struct coffer_buffer *path)
{
  int api;

  pthread_mutex_lock (&docker->lock);
  api = docker->engine.api;
  pthread_mutex_unlock (&docker->lock);
  coffer_buffer_printf (path, "/v1.%d", api);
}

void
docker_path (struct docker *docker, struct coffer_buffer *path,
             const char *format, ...)
{
  va_list ap;

  add_version (docker, path);
  va_start (ap, format);
  coffer_buffer_vprintf (path, format, ap);
  va_end (ap);
}

int32_t
docker_ask (struct coffer_call *call, struct docker *docker,
            const char *method, const json_t *body,
            struct coffer_http_reply *reply, const char *format, ...)
{
  coffer_autobuffer struct coffer_buffer path = {0};
  struct coffer_http_request request = {
    .method = method, .json = body, .flags = COFFER_HTTP_ANY_STATUS,
  };
  int32_t code = docker_engine (call, docker, NULL);
  va_list ap;

  if (code != COFFER_OK)
    return code;
  add_version (docker, &path);
  va_start (ap, format);
  coffer_buffer_vprintf (&path, format, ap);
  va_end (ap);
  if (path.failed)
    return coffer_fail_errno (call, ENOMEM, "a request");
  request.path = path.data;
  if (coffer_http_do (docker->http, call, &request, reply) != COFFER_OK)
    return fail_engine (call, docker, reply, NULL);
  /* Podman says of some of its JSON that it is text. */
  if (!reply->json && reply->body && reply->body[0] == '{')
    reply->json = json_loadb (reply->body, reply->size, 0, NULL);
  return COFFER_OK;
}
