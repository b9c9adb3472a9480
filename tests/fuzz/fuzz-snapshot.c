/* SPDX-License-Identifier: Apache-2.0 */
/* What an engine says of images and containers, as the snapshots of the provider
 * read it: a line of the input is a reply, "STATUS JSON".  Whatever it says, what
 * the engine is then asked for, and what the host is told, is of a snapshot. */

#include <config.h>

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "snapshot.h"

#define CHECK(condition) do { if (!(condition)) abort (); } while (0)
#define HOST "0123456789abcdef"
#define ID "snap-00112233445566778899aabbccddeeff"
#define ASKED_MAX 100           /* and then the engine is gone */

int LLVMFuzzerTestOneInput (const uint8_t *bytes, size_t size);

static const char *at, *end;    /* the rest of the input */
static unsigned asked;

/* ---- what stands beside it --------------------------------------------------- */

static int
begins (const char *text, const char *with)
{
  return strncmp (text, with, strlen (with)) == 0;
}

static void
look_at_request (const char *method, const char *path)
{
  CHECK (strspn (path, "abcdefghijklmnopqrstuvwxyz0123456789_.-/:?=&%"
                 "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == strlen (path));
  CHECK (!strstr (path, "/.") && !strstr (path, "//"));
  if (strcmp (method, "DELETE") != 0)
    CHECK (strcmp (method, "GET") == 0);
  else if (begins (path, "/containers/"))
    CHECK (begins (path, "/containers/coffer." HOST "."));
  else
    CHECK (strcmp (path, "/images/coffer-snapshot-" HOST ":" ID) == 0
           || (begins (path, "/images/sha256:") && strlen (path) == 8 + 71));
}

static int32_t
answer (struct coffer_http_reply *reply)
{
  const char *line = at, *next;

  if (at == end || ++asked > ASKED_MAX)
    return COFFER_UNAVAILABLE;
  next = memchr (line, '\n', (size_t) (end - line));
  at = next ? next + 1 : end;
  next = next ? next : end;
  if (next - line < 4)
    return COFFER_UNAVAILABLE;
  reply->status = 100 * (line[0] & 7) + 10 * (line[1] & 7) + (line[2] & 15);
  reply->json = json_loadb (line + 4, (size_t) (next - line) - 4,
                            JSON_DECODE_ANY, NULL);
  return COFFER_OK;
}

int32_t
docker_ask (struct coffer_call *call, struct docker *docker,
            const char *method, const json_t *body,
            struct coffer_http_reply *reply, const char *format, ...)
{
  char path[1024];
  va_list list;
  int n;

  (void) call, (void) docker, (void) body;
  va_start (list, format);
  n = vsnprintf (path, sizeof path, format, list);
  va_end (list);
  CHECK (n > 0 && n < (int) sizeof path);
  look_at_request (method, path);
  return answer (reply);
}

int32_t
docker_fail (struct coffer_call *call, const struct coffer_http_reply *reply,
             const char *what)
{
  (void) reply;
  return coffer_fail (call, COFFER_IO, what);
}

void
docker_hush (struct coffer_call *call, struct docker_hush *hush)
{
  (void) call, (void) hush;
}

void
docker_unhush (struct coffer_call *call, const struct docker_hush *hush)
{
  (void) call, (void) hush;
}

int
docker_is_name (const char *text)
{
  return *text != '.' && !strpbrk (text, "/ \t\n?#")
         && strspn (text, "abcdefghijklmnopqrstuvwxyz0123456789_.-")
            == strlen (text);
}

int
docker_maker_try (const struct docker *docker, const char *name)
{
  (void) docker;
  CHECK (*name && !strchr (name, '/'));
  return asked % 3 == 0 ? -1 : 0;
}

void
docker_maker_end (const struct docker *docker, const char *name, int *lock)
{
  (void) docker, (void) name;
  *lock = -1;
}

void
coffer_http_reply_fini (struct coffer_http_reply *reply)
{
  json_decref (reply->json);
  memset (reply, 0, sizeof *reply);
}

/* ---- the host ------------------------------------------------------------------ */

static int32_t
failed (struct coffer_call *call, int32_t code, int32_t retryable,
        const char *message, const char *details)
{
  (void) call, (void) retryable, (void) details;
  CHECK (code > COFFER_OK && code <= COFFER_INTERNAL && message);
  return code;
}

static int32_t
emitted (struct coffer_call *call, uint32_t id, const void *record)
{
  const struct coffer_snapshot *snapshot = record;

  (void) call, (void) id;
  CHECK (snapshot->size == sizeof *snapshot);
  CHECK (docker_is_snapshot (snapshot->snapshot));
  CHECK (!snapshot->name || strlen (snapshot->name) < 1u << 20);
  return COFFER_OK;
}

int
LLVMFuzzerTestOneInput (const uint8_t *bytes, size_t size)
{
  static const struct coffer_host host = {
    .size = sizeof host, .fail = failed, .emit = emitted
  };
  static struct docker docker = {.host = HOST};
  struct coffer_call call = {
    .size = sizeof call, .host = &host, .deadline_ns = INT64_MAX,
    .cancel_fd = -1
  };
  struct docker_snapshot found = {0};

  for (int i = 0; i < 3; i++) {
    at = (const char *) bytes;
    end = at + size;
    asked = 0;
    if (i == 0)
      docker_snapshot_list (&call, &docker, NULL);
    else if (i == 1)
      docker_snapshot_delete (&call, &docker, ID, NULL);
    else if (docker_snapshot_find (&call, &docker, ID, &found) == COFFER_OK)
      CHECK (strcmp (found.id, ID) == 0 && docker_is_image_id (found.base));
    docker_snapshot_fini (&found);
  }
  return 0;
}
