/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of the runner, from bytes that anybody may have written. */

#include <config.h>

#include <string.h>

#include "base/text.h"
#include "python/channel.h"

static size_t
number_at (const char *bytes, size_t n)
{
  size_t value = 0, i;

  for (i = 0; i < n; i++)
    value = value << 8 | (unsigned char) bytes[i];
  return value;
}

static size_t
frame_most (char kind)
{
  switch (kind) {
  case 'V': case 'R':
    return FRAME_JSON_MAX;
  case 'A':
    return 2 + ARTIFACT_NAME_MAX + ARTIFACT_MAX;
  default:
    return 0;
  }
}

static int
texts_only (const json_t *list, size_t most)
{
  const json_t *item;
  size_t i;

  if (!json_is_array (list) || json_array_size (list) > most)
    return 0;
  json_array_foreach (list, i, item)
    if (!json_is_string (item))
      return 0;
  return 1;
}

/* Null, or a text of at most `most` bytes. */
static int
text_or_null (const json_t *value, size_t most)
{
  return json_is_null (value)
         || (json_is_string (value) && json_string_length (value) <= most);
}

static int
take_verdict (struct frames *frames, const char *bytes, size_t size)
{
  auto_json json_t *json = NULL;

  if (frames->verdict || json_parse (bytes, size, &json, NULL) < 0
      || !json_is_boolean (json_object_get (json, "accepted"))
      || !texts_only (json_object_get (json, "violations"), 64)
      || !texts_only (json_object_get (json, "layers"), 8))
    return -1;
  frames->verdict = steal (json);
  return 0;
}

static int
take_told (struct frames *frames, const char *bytes, size_t size)
{
  auto_json json_t *json = NULL;

  if (!frames->verdict || frames->told
      || json_parse (bytes, size, &json, NULL) < 0
      || !text_or_null (json_object_get (json, "result"), RESULT_MAX)
      || !text_or_null (json_object_get (json, "error"), ERROR_TEXT_MAX)
      || !json_is_boolean (json_object_get (json, "cut"))
      || !json_is_boolean (json_object_get (json, "memory"))
      || !json_is_integer (json_object_get (json, "skipped")))
    return -1;
  frames->told = steal (json);
  return 0;
}

/* A relative path without components that lead elsewhere: somebody may save a
 * file by that name. */
static int
name_holds (const char *name, size_t size)
{
  size_t i, start = 0;

  if (size == 0 || size > ARTIFACT_NAME_MAX || memchr (name, '\0', size)
      || !text_is_utf8 (name, size))
    return 0;
  for (i = 0; i <= size; i++) {
    size_t length = i - start;

    if (i < size && name[i] != '/')
      continue;
    if (length == 0 || (length == 1 && name[start] == '.')
        || (length == 2 && memcmp (name + start, "..", 2) == 0))
      return 0;
    start = i + 1;
  }
  return 1;
}

static int
take_artifact (struct frames *frames, const char *bytes, size_t size)
{
  auto_free char *data = NULL;
  size_t name;

  if (size < 2 || !frames->verdict)
    return -1;
  name = number_at (bytes, 2);
  if (name > size - 2 || !name_holds (bytes + 2, name)
      || size - 2 - name > ARTIFACT_MAX
      || frames->artifact_bytes + size - 2 - name > ARTIFACTS_MAX
      || json_array_size (frames->artifacts) >= ARTIFACTS_COUNT)
    return -1;
  size -= 2 + name;
  data = text_base64_encode (bytes + 2 + name, size);
  if (!frames->artifacts)
    frames->artifacts = json_array ();
  if (!data)
    return -1;
  frames->artifact_bytes += size;
  return json_array_append_new (
    frames->artifacts,
    json_pack ("{s:o, s:I, s:s, s:s}", "name", json_stringn (bytes + 2, name),
               "size", (json_int_t) size, "encoding", "base64", "data", data));
}

static int
take_frame (struct frames *frames, const char *frame, size_t size)
{
  const char *payload = frame + FRAME_HEAD;

  switch (frame[0]) {
  case 'V':
    return take_verdict (frames, payload, size);
  case 'R':
    return take_told (frames, payload, size);
  default:
    return take_artifact (frames, payload, size);
  }
}

/* All whole frames of what is pending. */
static int
take_all (struct frames *frames)
{
  struct coffer_buffer *pending = &frames->pending;
  size_t at = 0, size;

  while (pending->size - at >= FRAME_HEAD) {
    size = number_at (pending->data + at + 1, 4);
    if (size > frame_most (pending->data[at]) || size == 0)
      return -1;
    if (pending->size - at - FRAME_HEAD < size)
      break;
    if (take_frame (frames, pending->data + at, size) < 0)
      return -1;
    at += FRAME_HEAD + size;
  }
  /* Not for each byte of a frame that comes in bytes. */
  if (at == 0)
    return 0;
  memmove (pending->data, pending->data + at, pending->size - at);
  pending->size -= at;
  return 0;
}

int
frames_add (struct frames *frames, const char *bytes, size_t size)
{
  if (frames->malformed)
    return -1;
  coffer_buffer_add (&frames->pending, bytes, size);
  if (size && (frames->pending.failed || take_all (frames) < 0))
    frames->malformed = 1;
  return frames->malformed ? -1 : 0;
}

void
frames_fini (struct frames *frames)
{
  coffer_buffer_free (&frames->pending);
  json_decref (frames->verdict);
  json_decref (frames->told);
  json_decref (frames->artifacts);
  memset (frames, 0, sizeof *frames);
}
