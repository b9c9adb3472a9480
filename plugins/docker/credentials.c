/* SPDX-License-Identifier: Apache-2.0 */
/* What an engine is told about who pulls: the header X-Registry-Auth, from a store
 * of the kind of ~/.docker/config.json, or from the credential helper that it names,
 * which the host runs.  It is wiped once it is sent, but for what the libraries of
 * JSON and HTTP have copied. */

#define _GNU_SOURCE

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <coffer/fd.h>
#include <coffer/files.h>

#include "docker.h"

#define KEPT_MOST (64 << 10)

/* ---- wiping ------------------------------------------------------------- */

void
docker_buffer_wipe (struct coffer_buffer *buffer)
{
  if (buffer->data)
    explicit_bzero (buffer->data, buffer->capacity);
  coffer_buffer_free (buffer);
}

void
docker_json_wipe (json_t **json)
{
  const char *key;
  json_t *item;

  if (json_is_string (*json))
    explicit_bzero ((char *) (uintptr_t) json_string_value (*json),
                    json_string_length (*json));
  json_object_foreach (*json, key, item) {
    json_incref (item);
    docker_json_wipe (&item);
  }
  json_decref (*json);
}

/* ---- the registry, and base64 ------------------------------------------- */

/* What Docker's own registry is called where credentials are kept. */
#define HUB "https://index.docker.io/v1/"
#define HUB_SHORT "docker.io"

/* "quay.io/a/b" is of quay.io; "a/b" and "docker.io/a/b" are of Docker's own. */
static void
registry_of (const char *image, struct coffer_buffer *out)
{
  size_t size = strcspn (image, "/");

  if (strncmp (image, HUB_SHORT "/", sizeof HUB_SHORT) == 0
      || strncmp (image, "index." HUB_SHORT "/",
                  sizeof "index." HUB_SHORT) == 0)
    size = strlen (image);
  if (image[size] == '/' && (memchr (image, '.', size)
                             || memchr (image, ':', size)
                             || strncmp (image, "localhost/", 10) == 0))
    coffer_buffer_add (out, image, size);
  else
    coffer_buffer_add_string (out, HUB);
}

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
  "abcdefghijklmnopqrstuvwxyz0123456789-_";

static void
add_base64url (struct coffer_buffer *out, const char *text)
{
  size_t size = strlen (text);

  for (size_t i = 0; i < size; i += 3) {
    uint32_t bits = 0;
    char four[4];

    for (size_t k = 0; k < 3; k++)
      bits = bits << 8 | (i + k < size ? (unsigned char) text[i + k] : 0u);
    for (size_t k = 0; k < 4; k++)
      four[k] = i + k > size ? '=' : alphabet[bits >> (18 - 6 * k) & 63];
    coffer_buffer_add (out, four, sizeof four);
  }
}

static int
digit_of (char c)
{
  const char *at;

  c = c == '+' ? '-' : c == '/' ? '_' : c;
  at = c ? strchr (alphabet, c) : NULL;
  return at ? (int) (at - alphabet) : -1;
}

/* "user:password" from the store's base64. */
static void
add_decoded (struct coffer_buffer *out, const char *text)
{
  uint32_t bits = 0;
  int count = 0;

  for (; *text && *text != '='; text++) {
    int digit = digit_of (*text);
    char byte;

    if (digit < 0)
      return;
    bits = bits << 6 | (uint32_t) digit;
    count += 6;
    if (count >= 8) {
      count -= 8;
      byte = (char) (bits >> count);
      coffer_buffer_add (out, &byte, 1);
    }
  }
}

/* ---- where they are kept ------------------------------------------------ */

/* The host says so of those that it has read itself: true or false of a server, or
 * of all others. */
static int
is_helped (const json_t *store, const char *registry)
{
  const json_t *helped = json_object_get (store, "helped");
  const json_t *own = json_object_get (helped, registry);

  return json_is_true (own ? own : json_object_get (helped, "*"));
}

/* What a helper keeps; nothing is no error, as the image may be anybody's. */
static int32_t
ask_helper (struct coffer_call *call, const char *registry, json_t **out)
{
  docker_autowiped struct coffer_buffer target = {0};
  coffer_autoclose int fd = -1;
  char *text = NULL;
  size_t size = 0;

  coffer_buffer_printf (&target, "credential:registry_auth:%s", registry);
  if (target.failed)
    return coffer_fail_errno (call, ENOMEM, "credentials");
  fd = coffer_connect (call, target.data);
  if (fd < 0)
    return fd == -COFFER_NOT_FOUND ? COFFER_OK
           : coffer_fail (call, -fd, "the registry's credential helper gave "
                          "no credentials");
  if (coffer_read_whole (fd, KEPT_MOST, &text, &size) < 0)
    return coffer_fail_errno (call, errno, "credentials");
  *out = json_loadb (text, size, 0, NULL);
  explicit_bzero (text, size);
  free (text);
  return *out ? COFFER_OK
         : coffer_fail (call, COFFER_IO, "what a credential helper gave is not "
                        "what was expected");
}

static const json_t *
entry_of (const json_t *store, const char *registry)
{
  const json_t *auths = json_object_get (store, "auths");
  const json_t *entry = json_object_get (auths, registry);

  return entry || strcmp (registry, HUB) != 0
         ? entry : json_object_get (auths, HUB_SHORT);
}

static json_t *
of_entry (const json_t *entry)
{
  const char *auth = json_string_value (json_object_get (entry, "auth"));
  json_t *token = json_object_get (entry, "identitytoken");
  docker_autowiped struct coffer_buffer pair = {0};
  char *colon;

  if (json_is_string (token) && json_string_length (token) > 0)
    return json_pack ("{s:s}", "identitytoken", json_string_value (token));
  if (auth)
    add_decoded (&pair, auth);
  colon = pair.data ? strchr (pair.data, ':') : NULL;
  if (!colon)
    return NULL;
  *colon++ = '\0';
  return json_pack ("{s:s, s:s}", "username", pair.data, "password", colon);
}

int32_t
docker_credentials (struct coffer_call *call, const struct docker *docker,
                    const char *image, struct coffer_buffer *header)
{
  const char *text = docker->config.registry_auth;
  docker_autowiped_json json_t *store = text ? json_loads (text, 0, NULL) : NULL;
  docker_autowiped_json json_t *kept = NULL;
  coffer_autobuffer struct coffer_buffer registry = {0};
  int32_t code = COFFER_OK;
  char *line;

  registry_of (image, &registry);
  if (registry.failed)
    return coffer_fail_errno (call, ENOMEM, "credentials");
  if (is_helped (store, registry.data))
    code = ask_helper (call, registry.data, &kept);
  else
    kept = of_entry (entry_of (store, registry.data));
  if (code != COFFER_OK || !kept)
    return code;
  json_object_set_new (kept, "serveraddress", json_string (registry.data));
  line = json_dumps (kept, JSON_COMPACT);
  if (!line)
    return coffer_fail_errno (call, ENOMEM, "credentials");
  coffer_buffer_add_string (header, "X-Registry-Auth: ");
  add_base64url (header, line);
  explicit_bzero (line, strlen (line));
  free (line);
  return COFFER_OK;
}
