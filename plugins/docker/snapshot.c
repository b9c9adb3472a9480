/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots as the engine has them: found, listed, deleted. */

#define _GNU_SOURCE

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <coffer/fd.h>
#include <coffer/files.h>

#include "snapshot.h"

int
docker_is_snapshot (const char *text)
{
  return strncmp (text, "snap-", 5) == 0
         && strlen (text) == SNAPSHOT_ID_MAX - 3
         && strspn (text + 5, "0123456789abcdef") == SNAPSHOT_ID_MAX - 8;
}

void
docker_snapshot_fini (struct docker_snapshot *snapshot)
{
  free (snapshot->base_name);
  free (snapshot->name);
  memset (snapshot, 0, sizeof *snapshot);
}

void
docker_snapshot_image (const struct docker *docker, const char *id,
                       char image[SNAPSHOT_IMAGE_MAX])
{
  snprintf (image, SNAPSHOT_IMAGE_MAX, "coffer-snapshot-%s:%s", docker->host,
            id);
}

/* ---- from labels -------------------------------------------------------- */

static const char *
label (const json_t *labels, const char *name)
{
  const char *text = json_string_value (json_object_get (labels, name));

  return text ? text : "";
}

/* NULL: it is no text, or there is no memory. */
static char *
unhex (const char *hex)
{
  const size_t size = strlen (hex);
  char *text = size % 2 == 0 ? malloc (size / 2 + 1) : NULL;

  for (size_t i = 0; text && i < size; i += 2)
    if (strspn (hex + i, "0123456789abcdef") < 2) {
      free (text);
      return NULL;
    } else {
      char pair[3] = {hex[i], hex[i + 1], '\0'};

      text[i / 2] = (char) strtol (pair, NULL, 16);
    }
  if (text)
    text[size / 2] = '\0';
  return text;
}

int
docker_is_image_id (const char *text)
{
  return strncmp (text, "sha256:", 7) == 0 && strlen (text) == 71
         && strspn (text + 7, "0123456789abcdef") == 64;
}

int
docker_snapshot_read (const struct docker *docker, const json_t *labels,
                      struct docker_snapshot *out)
{
  const char *id = label (labels, LABEL_SNAPSHOT);
  const char *base = label (labels, LABEL_BASE);
  const char *name = label (labels, LABEL_NAME);

  memset (out, 0, sizeof *out);
  if (strcmp (label (labels, LABEL_HOST), docker->host) != 0
      || !docker_is_snapshot (id) || !docker_is_image_id (base))
    return -1;
  snprintf (out->id, sizeof out->id, "%s", id);
  snprintf (out->base, sizeof out->base, "%s", base);
  out->created_ns = strtoll (label (labels, LABEL_CREATED), NULL, 10);
  out->base_name = unhex (label (labels, LABEL_BASE_NAME));
  out->name = *name ? unhex (name) : NULL;
  if (out->base_name && (out->name || !*name))
    return 0;
  docker_snapshot_fini (out);
  return -1;
}

static int32_t
emit (struct coffer_call *call, const struct docker_snapshot *snapshot)
{
  const struct coffer_snapshot record = {
    .size = sizeof record, .snapshot = snapshot->id, .name = snapshot->name,
    .size_bytes = snapshot->size_bytes, .created_ns = snapshot->created_ns,
  };

  return coffer_emit_snapshot (call, &record);
}

/* ---- one ---------------------------------------------------------------- */

static int32_t
fail_unknown (struct coffer_call *call)
{
  return coffer_fail (call, COFFER_NOT_FOUND, "no such snapshot of this host");
}

/* By its name, which an image gets when all of it is there. */
int32_t
docker_snapshot_find (struct coffer_call *call, struct docker *docker,
                      const char *id, struct docker_snapshot *out)
{
  coffer_autoreply struct coffer_http_reply reply = {0};
  char image[SNAPSHOT_IMAGE_MAX];
  int32_t code;

  if (!docker_is_snapshot (id))
    return fail_unknown (call);
  docker_snapshot_image (docker, id, image);
  code = docker_ask (call, docker, "GET", NULL, &reply, "/images/%s/json",
                     image);
  if (code != COFFER_OK)
    return code;
  if (reply.status == 404)
    return fail_unknown (call);
  if (reply.status >= 300)
    return docker_fail (call, &reply, "look at a snapshot");
  if (docker_snapshot_read (docker, json_object_get (
        json_object_get (reply.json, "Config"), "Labels"), out) < 0
      || strcmp (out->id, id) != 0)
    return fail_unknown (call);
  snprintf (out->image, sizeof out->image, "%s",
            label (reply.json, "Id"));
  out->size_bytes = (uint64_t) json_integer_value (
    json_object_get (reply.json, "Size"));
  return COFFER_OK;
}

/* ---- the list ----------------------------------------------------------- */

#define LIST_TRIES 20           /* Podman's fails when one goes meanwhile */

int32_t
docker_snapshot_images (struct coffer_call *call, struct docker *docker,
                        json_t **images)
{
  for (int tries = 0;; tries++) {
    coffer_autoreply struct coffer_http_reply reply = {0};
    int32_t code = docker_ask (call, docker, "GET", NULL, &reply,
                               "/images/json?filters=%%7B%%22label%%22%%3A"
                               "%%5B%%22" LABEL_HOST "%%3D%s%%22%%5D%%7D",
                               docker->host);

    if (code != COFFER_OK)
      return code;
    if (reply.status < 300 && json_is_array (reply.json)) {
      *images = json_incref (reply.json);
      return COFFER_OK;
    }
    if (reply.status < 500 || tries >= LIST_TRIES)
      return docker_fail (call, &reply, "list images");
  }
}

/* Engines put a registry of their own before the name. */
static int
has_name (const json_t *entry, const char *name)
{
  const size_t size = strlen (name);
  const json_t *tag;
  size_t i;

  json_array_foreach (json_object_get (entry, "RepoTags"), i, tag) {
    const char *text = json_string_value (tag);
    size_t length = text ? strlen (text) : 0;

    if (length >= size && strcmp (text + length - size, name) == 0
        && (length == size || text[length - size - 1] == '/'))
      return 1;
  }
  return 0;
}

static int
are_none (const json_t *names)
{
  const json_t *entry;
  size_t i;

  json_array_foreach (names, i, entry)
    if (!json_is_string (entry)
        || strncmp (json_string_value (entry), "<none>", 6) != 0)
      return 0;
  return 1;
}

/* What has any name is somebody's, whatever its labels say; one that was pulled by
 * its digest has that alone. */
static int
is_nameless (const json_t *entry)
{
  return json_is_object (entry)
         && are_none (json_object_get (entry, "RepoTags"))
         && are_none (json_object_get (entry, "RepoDigests"));
}

/* It may have got its name since it was listed: below the lock none does. */
static int
is_begun (struct coffer_call *call, struct docker *docker, const char *image)
{
  coffer_autoreply struct coffer_http_reply reply = {0};

  return docker_is_image_id (image)
         && docker_ask (call, docker, "GET", NULL, &reply, "/images/%s/json",
                        image) == COFFER_OK
         && reply.status < 300 && is_nameless (reply.json);
}

/* One whose maker has ended before it was whole. */
static void
clear_begun (struct coffer_call *call, struct docker *docker,
             const struct docker_snapshot *snapshot, const char *image)
{
  coffer_autoreply struct coffer_http_reply reply = {0};
  struct docker_hush hush;
  int lock = docker_maker_try (docker, snapshot->id);

  if (lock < 0)
    return;
  docker_hush (call, &hush);
  if (is_begun (call, docker, image))
    docker_ask (call, docker, "DELETE", NULL, &reply, "/images/%s", image);
  docker_unhush (call, &hush);
  docker_maker_end (docker, snapshot->id, &lock);
}

static int32_t
list_one (struct coffer_call *call, struct docker *docker,
          const json_t *entry)
{
  auto_snapshot struct docker_snapshot snapshot = {0};
  char name[SNAPSHOT_IMAGE_MAX];

  if (docker_snapshot_read (docker, json_object_get (entry, "Labels"),
                            &snapshot) < 0)
    return COFFER_OK;
  docker_snapshot_image (docker, snapshot.id, name);
  if (is_nameless (entry))
    clear_begun (call, docker, &snapshot, label (entry, "Id"));
  if (!has_name (entry, name))
    return COFFER_OK;
  snapshot.size_bytes = (uint64_t) json_integer_value (
    json_object_get (entry, "Size"));
  return emit (call, &snapshot);
}

int32_t
docker_snapshot_list (struct coffer_call *call, void *self,
                      const struct coffer_snapshot_list_opts *opts)
{
  json_t *images = NULL;
  const json_t *entry;
  int32_t code = docker_snapshot_images (call, self, &images);
  size_t i;

  (void) opts;
  json_array_foreach (images, i, entry)
    if (code == COFFER_OK)
      code = list_one (call, self, entry);
  json_decref (images);
  return code;
}

/* ---- deleting ----------------------------------------------------------- */

/* By its name, as labels are those of any image too. */
int
docker_is_carrier (const struct docker *docker, const char *name)
{
  char begin[32];

  snprintf (begin, sizeof begin, "coffer.%s.", docker->host);
  return strncmp (name, begin, strlen (begin)) == 0 && docker_is_name (name);
}

void
docker_carrier_clear (struct coffer_call *call, struct docker *docker,
                      const char *name)
{
  coffer_autoreply struct coffer_http_reply reply = {0};
  struct docker_hush hush;
  int lock = docker_is_carrier (docker, name) ? docker_maker_try (docker, name)
                                              : -1;

  if (lock < 0)
    return;
  docker_hush (call, &hush);
  docker_ask (call, docker, "DELETE", NULL, &reply, "/containers/%s?force=1",
              name);
  docker_unhush (call, &hush);
  docker_maker_end (docker, name, &lock);
}

/* Carriers of it that were left hold it; those that are read do as well. */
static void
clear_carriers (struct coffer_call *call, struct docker *docker,
                const char *id)
{
  coffer_autoreply struct coffer_http_reply reply = {0};
  const json_t *entry;
  size_t i;

  if (docker_ask (call, docker, "GET", NULL, &reply,
                  "/containers/json?all=1&filters=%%7B%%22label%%22%%3A%%5B"
                  "%%22" LABEL_HOST "%%3D%s%%22%%2C%%22" LABEL_CARRIER
                  "%%3D%s%%22%%5D%%7D", docker->host, id) != COFFER_OK)
    return;
  json_array_foreach (reply.json, i, entry) {
    const char *name = json_string_value (json_array_get (
      json_object_get (entry, "Names"), 0));

    if (name && *name)
      docker_carrier_clear (call, docker, name + 1);
  }
}

int32_t
docker_snapshot_delete (struct coffer_call *call, void *self,
                        const char *snapshot,
                        const struct coffer_snapshot_delete_opts *opts)
{
  auto_snapshot struct docker_snapshot found = {0};
  struct docker *docker = self;
  char image[SNAPSHOT_IMAGE_MAX];
  int32_t code = docker_snapshot_find (call, docker, snapshot, &found);

  (void) opts;
  docker_snapshot_image (docker, found.id, image);
  for (int tries = 0; code == COFFER_OK; tries++) {
    coffer_autoreply struct coffer_http_reply reply = {0};

    code = docker_ask (call, docker, "DELETE", NULL, &reply, "/images/%s",
                       image);
    if (code != COFFER_OK || reply.status < 300)
      break;
    if (reply.status == 404)
      return fail_unknown (call);
    if (reply.status != 409 || tries > 0)
      return reply.status == 409
             ? coffer_fail (call, COFFER_BUSY, "a sandbox is just made of this "
                            "snapshot, or somebody's container is")
             : docker_fail (call, &reply, "delete a snapshot");
    clear_carriers (call, docker, found.id);
  }
  return code;
}
