/* SPDX-License-Identifier: Apache-2.0 */
/* The scripted engine. */

#define _GNU_SOURCE

#include "harness.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <coffer/fd.h>

#include "docker-engine.h"

static const struct engine_line *script;
static json_t *sent;
static struct coffer_buffer told;
static int told_from = -1;

void
engine_script (const struct engine_line *lines)
{
  script = lines;
  json_decref (sent);
  sent = NULL;
  coffer_buffer_clear (&told);
}

static void
collect_told (void)
{
  char bytes[4096];
  ssize_t n;

  while (told_from >= 0
         && (n = recv (told_from, bytes, sizeof bytes, MSG_DONTWAIT)) > 0)
    coffer_buffer_add (&told, bytes, (size_t) n);
}

void
engine_done (void)
{
  collect_told ();
  coffer_fd_close (&told_from);
  if (script && script->request)
    fail_msg ("the engine was not asked for %s", script->request);
}

const json_t *
engine_sent (void)
{
  return sent;
}

const struct coffer_buffer *
engine_told (void)
{
  collect_told ();
  return &told;
}

int
engine_ended (int ms)
{
  struct pollfd wait = {told_from, POLLIN, 0};
  char bytes[4096];

  while (poll (&wait, 1, ms) > 0)
    if (recv (told_from, bytes, sizeof bytes, MSG_DONTWAIT) <= 0)
      return 1;
  return 0;
}

/* ---- the library's functions -------------------------------------------- */

static const struct engine_line *
next_line (const struct coffer_http_request *request)
{
  char *asked;
  const struct engine_line *line = script;

  assert_true (asprintf (&asked, "%s %s", request->method ? request->method
                                                          : "GET",
                         request->path) > 0);
  if (!line || !line->request
      || strncmp (asked, line->request, strlen (line->request)) != 0)
    fail_msg ("the engine was asked for %s instead of %s", asked,
              line && line->request ? line->request : "nothing");
  free (asked);
  script++;
  if (request->json) {
    json_decref (sent);
    sent = json_deep_copy (request->json);
  }
  return line;
}

static int32_t
answer (const struct engine_line *line, struct coffer_http_reply *reply)
{
  reply->status = line->status;
  reply->code = line->status ? COFFER_OK : line->code;
  if (line->body)
    reply->json = json_loads (line->body, JSON_DECODE_ANY, NULL);
  if (reply->code != COFFER_OK)
    reply->message = strdup ("the connection was cut");
  return reply->code;
}

int32_t
coffer_http_do (struct coffer_http *http, struct coffer_call *call,
                const struct coffer_http_request *request,
                struct coffer_http_reply *reply)
{
  const struct engine_line *line = next_line (request);

  (void) http, (void) call;
  if (strstr (line->request, "/_ping")) {
    coffer_strings_add (&reply->headers, "Api-Version: 1.41");
    if (line->body)
      coffer_strings_printf (&reply->headers, "Libpod-Api-Version: 4.3.1");
    reply->status = line->status;
    return reply->code = line->status ? COFFER_OK : line->code;
  }
  if (request->sink && line->status == 200 && line->body) {
    struct coffer_http_json_lines *lines = request->sink_data;
    json_t *value = json_loads (line->body, 0, NULL);

    lines->take (lines->data, value);
    json_decref (value);
    reply->status = 200;
    return COFFER_OK;
  }
  return answer (line, reply);
}

/* One piece of the first process's output, as engines frame it. */
static void
say (int fd, const char *text)
{
  const unsigned char head[8] = {1, 0, 0, 0, 0, 0, 0,
                                 (unsigned char) (strlen (text) + 1)};

  assert_true (coffer_write_all (fd, head, sizeof head) > 0);
  assert_true (coffer_write_all (fd, text, strlen (text)) > 0);
  assert_true (coffer_write_all (fd, "\n", 1) > 0);
}

int32_t
coffer_http_upgrade (struct coffer_http *http, struct coffer_call *call,
                     const char *protocol,
                     const struct coffer_http_request *request,
                     struct coffer_http_reply *reply, int *fd)
{
  const struct engine_line *line = next_line (request);
  int ends[2];

  (void) http, (void) call;
  assert_string_equal (protocol, "tcp");
  *fd = -1;
  if (line->status != 101)
    return reply->code = answer (line, reply) ? reply->code : COFFER_IO;
  assert_int_equal (socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends),
                    0);
  if (line->said)
    say (ends[1], line->said);
  else
    shutdown (ends[1], SHUT_WR);
  told_from = ends[1];
  *fd = ends[0];
  return COFFER_OK;
}

void
coffer_http_reply_fini (struct coffer_http_reply *reply)
{
  json_decref (reply->json);
  free (reply->message);
  coffer_strings_free (&reply->headers);
  memset (reply, 0, sizeof *reply);
}

const char *
coffer_http_header (const struct coffer_http_reply *reply, const char *name)
{
  for (size_t i = 0; i < reply->headers.count; i++)
    if (strncasecmp (reply->headers.items[i], name, strlen (name)) == 0)
      return reply->headers.items[i] + strlen (name) + 2;
  return NULL;
}

int32_t
coffer_http_fail (struct coffer_call *call,
                  const struct coffer_http_reply *reply)
{
  return coffer_fail (call, reply->code, reply->message);
}

void
coffer_http_add_encoded (struct coffer_buffer *out, const char *text)
{
  coffer_buffer_add_string (out, text);
}

int32_t
coffer_http_json_lines (void *lines, const void *bytes, size_t size)
{
  (void) lines, (void) bytes, (void) size;
  return COFFER_OK;
}

int32_t
coffer_http_json_lines_end (struct coffer_http_json_lines *lines)
{
  (void) lines;
  return COFFER_OK;
}

int32_t
coffer_http_new (struct coffer_call *call,
                 const struct coffer_http_config *config,
                 struct coffer_http **out)
{
  (void) call;
  assert_non_null (config->base);
  *out = NULL;
  return COFFER_OK;
}

void
coffer_http_free (struct coffer_http *http)
{
  (void) http;
}

/* Nothing is run here. */
void
docker_execs_forget (struct docker *docker, const char *sandbox)
{
  (void) docker, (void) sandbox;
}

/* ---- a provider --------------------------------------------------------- */

struct docker *
engine_open (struct fakehost *host, const char *folder,
             const char *const *config)
{
  struct docker *docker = calloc (1, sizeof *docker);

  assert_non_null (docker);
  pthread_mutex_init (&docker->lock, NULL);
  strcpy (docker->host, "0123456789abcdef");
  docker->stop = eventfd (0, EFD_CLOEXEC);
  docker->runtime = open (folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  docker->program_path = strdup ("/somewhere/coffer-inside");
  assert_int_equal (docker_configure (&host->call, docker, config),
                    COFFER_OK);
  return docker;
}

void
engine_close (struct docker *docker)
{
  docker_keeps_end (docker);
  docker_config_fini (&docker->config);
  coffer_fd_close (&docker->stop);
  coffer_fd_close (&docker->runtime);
  free (docker->program_path);
  pthread_mutex_destroy (&docker->lock);
  free (docker);
  json_decref (sent);
  sent = NULL;
  coffer_buffer_free (&told);
}
