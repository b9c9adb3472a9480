/* SPDX-License-Identifier: Apache-2.0 */
/* Growing buffers and string vectors.  Capacity doubles, is checked before it
 * is multiplied, and a buffer that failed once stays failed until it is freed
 * or stolen, so that half a text is never taken for a whole one. */

#define _GNU_SOURCE

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <coffer/buffer.h>

/* Room for `more` bytes and the NUL beyond them.  1: there is room. */
static int
buffer_reserve (struct coffer_buffer *buffer, size_t more)
{
  size_t need, capacity = buffer->capacity ? buffer->capacity : 64;
  char *data;

  if (buffer->failed)
    return 0;
  if (__builtin_add_overflow (buffer->size, more, &need) ||
      need >= (size_t) PTRDIFF_MAX) {
    buffer->failed = 1;
    return 0;
  }
  need++;
  if (need <= buffer->capacity)
    return 1;
  while (capacity < need)
    capacity = capacity > (size_t) PTRDIFF_MAX / 2 ? need : capacity * 2;
  data = realloc (buffer->data, capacity);
  if (!data) {
    buffer->failed = 1;
    return 0;
  }
  buffer->data = data;
  buffer->capacity = capacity;
  return 1;
}

void
coffer_buffer_add (struct coffer_buffer *buffer, const void *bytes,
                   size_t size)
{
  if (size == 0 || !buffer_reserve (buffer, size))
    return;
  memcpy (buffer->data + buffer->size, bytes, size);
  buffer->size += size;
  buffer->data[buffer->size] = '\0';
}

void
coffer_buffer_add_string (struct coffer_buffer *buffer, const char *s)
{
  coffer_buffer_add (buffer, s, strlen (s));
}

void
coffer_buffer_vprintf (struct coffer_buffer *buffer, const char *fmt,
                       va_list ap)
{
  va_list again;
  int size;

  va_copy (again, ap);
  size = vsnprintf (NULL, 0, fmt, again);
  va_end (again);
  if (size < 0) {
    buffer->failed = 1;
    return;
  }
  if (size == 0 || !buffer_reserve (buffer, (size_t) size))
    return;
  vsnprintf (buffer->data + buffer->size, (size_t) size + 1, fmt, ap);
  buffer->size += (size_t) size;
}

void
coffer_buffer_printf (struct coffer_buffer *buffer, const char *fmt, ...)
{
  va_list ap;

  va_start (ap, fmt);
  coffer_buffer_vprintf (buffer, fmt, ap);
  va_end (ap);
}

/* Forgets the bytes and keeps the room.  A failure is not forgotten: a caller
 * that clears between records must still learn that one was lost. */
void
coffer_buffer_clear (struct coffer_buffer *buffer)
{
  buffer->size = 0;
  if (buffer->data)
    buffer->data[0] = '\0';
}

void
coffer_buffer_free (struct coffer_buffer *buffer)
{
  int keep = errno;

  free (buffer->data);
  memset (buffer, 0, sizeof *buffer);
  errno = keep;
}

char *
coffer_buffer_steal (struct coffer_buffer *buffer)
{
  char *data;

  if (!buffer_reserve (buffer, 0)) {
    coffer_buffer_free (buffer);
    errno = ENOMEM;
    return NULL;
  }
  data = buffer->data;
  data[buffer->size] = '\0';
  memset (buffer, 0, sizeof *buffer);
  return data;
}

/* Appends `s`, which becomes the vector's; NULL is a failed allocation. */
static void
strings_take (struct coffer_strings *strings, char *s)
{
  size_t capacity = strings->capacity ? strings->capacity * 2 : 8;
  char **items;

  if (!s || strings->failed) {
    strings->failed = 1;
    free (s);
    return;
  }
  if (strings->count + 1 >= strings->capacity) {
    items = reallocarray (strings->items, capacity, sizeof *items);
    if (!items) {
      strings->failed = 1;
      free (s);
      return;
    }
    strings->items = items;
    strings->capacity = capacity;
  }
  strings->items[strings->count++] = s;
  strings->items[strings->count] = NULL;
}

void
coffer_strings_add (struct coffer_strings *strings, const char *s)
{
  strings_take (strings, strdup (s));
}

void
coffer_strings_printf (struct coffer_strings *strings, const char *fmt, ...)
{
  char *s = NULL;
  va_list ap;

  va_start (ap, fmt);
  if (vasprintf (&s, fmt, ap) < 0)
    s = NULL;
  va_end (ap);
  strings_take (strings, s);
}

void
coffer_strings_set (struct coffer_strings *strings, const char *entry)
{
  const char *end = strchr (entry, '=');
  size_t length = end ? (size_t) (end - entry) + 1 : strlen (entry) + 1;
  char *copy;

  for (size_t i = 0; i < strings->count; i++)
    if (strncmp (strings->items[i], entry, length) == 0) {
      copy = strdup (entry);
      if (copy)
        free (strings->items[i]);
      strings->failed |= !copy;
      strings->items[i] = copy ? copy : strings->items[i];
      return;
    }
  coffer_strings_add (strings, entry);
}

void
coffer_strings_free (struct coffer_strings *strings)
{
  int keep = errno;

  for (size_t i = 0; i < strings->count; i++)
    free (strings->items[i]);
  free (strings->items);
  memset (strings, 0, sizeof *strings);
  errno = keep;
}

const char *const *
coffer_strings_view (const struct coffer_strings *strings)
{
  static const char *const none[] = {NULL};

  return strings->count > 0 ? (const char *const *) strings->items : none;
}

/* -- strings one after the other ---- */

uint32_t
coffer_buffer_add_vector (struct coffer_buffer *buffer,
                          const char *const *strings)
{
  uint32_t n = 0;

  for (; strings && strings[n]; n++)
    coffer_buffer_add (buffer, strings[n], strlen (strings[n]) + 1);
  return n;
}

const char *
coffer_strings_next (const char **at, const char *end)
{
  const char *s = *at;
  const char *nul = s < end ? memchr (s, '\0', (size_t) (end - s)) : NULL;

  if (!nul)
    return NULL;
  *at = nul + 1;
  return s;
}

/* Each takes a byte at least: so no count asks for more memory than the bytes
 * are worth. */
const char **
coffer_strings_split (const char **at, const char *end, size_t n)
{
  const char *next = *at;
  const char **v;

  if (n > (size_t) (end - next)) {
    errno = EPROTO;
    return NULL;
  }
  v = calloc (n + 1, sizeof *v);
  for (size_t i = 0; v && i < n; i++) {
    v[i] = coffer_strings_next (&next, end);
    if (!v[i]) {
      free (v);
      errno = EPROTO;
      return NULL;
    }
  }
  if (v)
    *at = next;
  return v;
}
