/* SPDX-License-Identifier: Apache-2.0 */
/* See kept.h.  Behind the head lies what may still be the tail; when that is
 * twice as much as is kept its first half goes, so that each byte is moved once. */

#include <config.h>

#include <stdlib.h>
#include <string.h>

#include <coffer/buffer.h>

#include "python/kept.h"

#define KEPT_MOST (KEPT_HEAD + 2 * KEPT_TAIL)

static int
grow (struct kept *kept, size_t wanted)
{
  size_t room = kept->room ? kept->room : 1024;
  char *bytes;

  if (wanted <= kept->room)
    return 0;
  while (room < wanted)
    room *= 2;
  if (room > KEPT_MOST)
    room = KEPT_MOST;
  bytes = realloc (kept->bytes, room);
  if (!bytes)
    return -1;
  kept->bytes = bytes;
  kept->room = room;
  return 0;
}

void
kept_add (struct kept *kept, const char *bytes, size_t size)
{
  size_t n;

  while (size > 0 && !kept->failed) {
    if (kept->used == KEPT_MOST) {
      memmove (kept->bytes + KEPT_HEAD, kept->bytes + KEPT_HEAD + KEPT_TAIL,
               KEPT_TAIL);
      kept->used -= KEPT_TAIL;
      kept->dropped += KEPT_TAIL;
    }
    n = KEPT_MOST - kept->used;
    if (n > size)
      n = size;
    if (grow (kept, kept->used + n) < 0) {
      kept->failed = 1;
      return;
    }
    memcpy (kept->bytes + kept->used, bytes, n);
    kept->used += n;
    bytes += n;
    size -= n;
  }
}

static void
add_text (struct coffer_buffer *out, const char *bytes, size_t size)
{
  uint32_t point;
  size_t n, plain;

  while (size > 0) {
    for (plain = 0; plain < size && (unsigned char) bytes[plain] < 0x80;
         plain++)
      ;
    coffer_buffer_add (out, bytes, plain);
    bytes += plain;
    size -= plain;
    if (size == 0)
      return;
    n = coffer_utf8_decode (bytes, size, &point);
    if (n)
      coffer_buffer_add (out, bytes, n);
    else
      coffer_buffer_add_string (out, "\xef\xbf\xbd");
    bytes += n ? n : 1;
    size -= n ? n : 1;
  }
}

/* Bytes beyond the head and before the tail that is kept. */
static size_t
surplus (const struct kept *kept)
{
  return kept->used > KEPT_HEAD + KEPT_TAIL
           ? kept->used - KEPT_HEAD - KEPT_TAIL : 0;
}

json_t *
kept_json (const struct kept *kept, const char *note)
{
  coffer_autobuffer struct coffer_buffer out = { 0 };
  const uint64_t dropped = kept->dropped + surplus (kept);

  if (dropped) {
    add_text (&out, kept->bytes, KEPT_HEAD);
    coffer_buffer_printf (&out, "\n[%llu bytes are left out here]\n",
                          (unsigned long long) dropped);
    add_text (&out, kept->bytes + kept->used - KEPT_TAIL, KEPT_TAIL);
  } else {
    add_text (&out, kept->bytes, kept->used);
  }
  if (note && out.size && out.data[out.size - 1] != '\n')
    coffer_buffer_add_string (&out, "\n");
  if (note)
    coffer_buffer_printf (&out, "%s\n", note);
  return out.failed || kept->failed
           ? NULL : json_stringn (out.data ? out.data : "", out.size);
}

void
kept_fini (struct kept *kept)
{
  free (kept->bytes);
  memset (kept, 0, sizeof *kept);
}
