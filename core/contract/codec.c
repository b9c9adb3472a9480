/* SPDX-License-Identifier: Apache-2.0 */
/* Paths for messages, and the arena that decoded values live in. */

#include <config.h>

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <coffer/buffer.h>

#include "contract/codec.h"
#include "contract/values.h"

/* -- paths ---------------------------------------------------------------- */

static int
path_depth (const struct codec_path *path)
{
  return path == NULL ? 0 : path->depth;
}

struct codec_path
codec_path_field (const struct codec_path *parent, const char *name)
{
  return (struct codec_path){ parent, name, 0, path_depth (parent) + 1 };
}

struct codec_path
codec_path_item (const struct codec_path *parent, size_t index)
{
  return (struct codec_path){ parent, NULL, index, path_depth (parent) + 1 };
}

static void
path_render (const struct codec_path *path, struct coffer_buffer *buffer)
{
  if (path == NULL)
    return;
  path_render (path->parent, buffer);
  if (path->name == NULL)
    coffer_buffer_printf (buffer, "[%zu]", path->index);
  else
    coffer_buffer_printf (buffer, "%s%s", buffer->size > 0 ? "." : "",
                          path->name);
}

int
codec_fail (struct error **err, const struct codec_path *path,
            const char *fmt, ...)
{
  coffer_autobuffer struct coffer_buffer text = { NULL };
  va_list ap;

  path_render (path, &text);
  if (text.size > 0)
    coffer_buffer_add_string (&text, ": ");
  va_start (ap, fmt);
  coffer_buffer_vprintf (&text, fmt, ap);
  va_end (ap);
  if (text.failed)
    return error_set (err, E_NO_MEMORY, 0, "a message");
  return error_set (err, E_INVALID, 0, "%s", text.data);
}

int
codec_check_depth (const struct codec_path *path, struct error **err)
{
  if (path_depth (path) > CODEC_MAX_DEPTH)
    return error_set (err, E_INVALID, 0,
                      "values are nested deeper than %d", CODEC_MAX_DEPTH);
  return 0;
}

/* -- arena ---------------------------------------------------------------- */

#define CHUNK_BYTES 4096

struct chunk {
  struct chunk *next;
  size_t size, used;
  _Alignas (max_align_t) char bytes[];
};

struct contract_arena {
  struct chunk *chunks;         /* the newest first */
  size_t total;
};

struct contract_arena *
contract_arena_new (void)
{
  return calloc (1, sizeof (struct contract_arena));
}

void
contract_arena_free (struct contract_arena *arena)
{
  struct chunk *chunk, *next;

  if (arena == NULL)
    return;
  for (chunk = arena->chunks; chunk != NULL; chunk = next) {
    next = chunk->next;
    free (chunk);
  }
  free (arena);
}

static struct chunk *
chunk_add (struct contract_arena *arena, size_t least, struct error **err)
{
  size_t size = least > CHUNK_BYTES ? least : CHUNK_BYTES;
  struct chunk *chunk;

  if (least > ARENA_MAX_BYTES || arena->total + size > ARENA_MAX_BYTES) {
    error_set (err, E_LIMIT, 0, "values take more than %d MiB",
               ARENA_MAX_BYTES / 1024 / 1024);
    return NULL;
  }
  chunk = calloc (1, sizeof *chunk + size);
  if (chunk == NULL) {
    error_set (err, E_NO_MEMORY, 0, "%zu bytes for values", size);
    return NULL;
  }
  chunk->size = size;
  chunk->next = arena->chunks;
  arena->chunks = chunk;
  arena->total += size;
  return chunk;
}

void *
arena_alloc (struct contract_arena *arena, size_t size, struct error **err)
{
  struct chunk *chunk = arena->chunks;
  const size_t align = _Alignof (max_align_t);
  void *found;

  if (size <= ARENA_MAX_BYTES)
    size = (size + align - 1) / align * align;
  if (chunk == NULL || chunk->size - chunk->used < size) {
    chunk = chunk_add (arena, size, err);
    if (chunk == NULL)
      return NULL;
  }
  found = chunk->bytes + chunk->used;
  chunk->used += size;
  return found;
}

char *
arena_string (struct contract_arena *arena, const char *bytes, size_t size,
              struct error **err)
{
  char *copy;

  if (size >= ARENA_MAX_BYTES) {
    error_set (err, E_LIMIT, 0, "a string of %zu bytes", size);
    return NULL;
  }
  copy = arena_alloc (arena, size + 1, err);
  if (copy != NULL && size > 0)
    memcpy (copy, bytes, size);
  return copy;
}

void *
arena_record (struct contract_arena *arena,
              const struct contract_record *record, struct error **err)
{
  char *data = arena_alloc (arena, record->size, err);
  union contract_value value;
  size_t i;

  if (data == NULL)
    return NULL;
  memcpy (data, &record->size, sizeof record->size);
  for (i = 0; i < record->n_fields; i++) {
    const struct contract_field *field = &record->fields[i];

    contract_value_default (field->type, &value);
    contract_value_write (field->type, data + field->offset, &value);
  }
  return data;
}
