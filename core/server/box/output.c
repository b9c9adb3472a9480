/* SPDX-License-Identifier: Apache-2.0 */
/* See output.h. */

#include <config.h>

#include <stdio.h>
#include <string.h>

#include <coffer/buffer.h>

#include "server/box/output.h"

#define NOTICE_ROOM 64

/* A byte of the stream by its place, of those that are kept. */
static char
byte_at (const struct capture *capture, uint64_t at)
{
  uint64_t in_tail;

  if (at < capture->head_size)
    return capture->head[at];
  in_tail = at - capture->head_size;
  if (capture->total - capture->head_size <= CAPTURE_TAIL)
    return capture->tail[in_tail];
  /* The ring's oldest is where the next byte goes. */
  in_tail = CAPTURE_TAIL - (capture->total - at);
  return capture->tail[(capture->tail_at + in_tail) % CAPTURE_TAIL];
}

/* As text: what is not UTF-8, and NUL, is replaced.  A character that was cut at
 * the beginning or at the end is left out. */
static void
add_text (struct coffer_buffer *out, const char *bytes, size_t size,
          int cut_before, int cut_behind)
{
  size_t i = 0, n;
  uint32_t point;

  while (cut_before && i < size && i < 3
         && ((unsigned char) bytes[i] & 0xc0) == 0x80)
    i++;
  while (i < size) {
    n = coffer_utf8_decode (bytes + i, size - i, &point);
    if (n > 0 && point != 0)
      coffer_buffer_add (out, bytes + i, n);
    else if (n == 0 && cut_behind && size - i < 4
             && ((unsigned char) bytes[i] & 0xc0) == 0xc0)
      break;
    else
      coffer_buffer_add_string (out, "\xef\xbf\xbd");
    i += n ? n : 1;
  }
}

static int
add_part (struct coffer_buffer *out, const struct capture *capture,
          uint64_t from, uint64_t to, int cut_before, int cut_behind)
{
  const size_t size = (size_t) (to - from);
  char *bytes = malloc (size + 1);
  size_t i;

  if (bytes == NULL)
    return -1;
  for (i = 0; i < size; i++)
    bytes[i] = byte_at (capture, from + i);
  add_text (out, bytes, size, cut_before, cut_behind);
  free (bytes);
  return 0;
}

json_t *
box_output (const struct capture *capture, size_t limit, int *truncated)
{
  coffer_autobuffer struct coffer_buffer out = { 0 };
  const uint64_t total = capture->total;
  size_t room, head;
  int r;

  *truncated = total > limit || capture->lost > 0;
  if (total <= limit) {
    r = add_part (&out, capture, 0, total, 0, *truncated);
    if (capture->lost)
      coffer_buffer_printf (&out, "\n[%llu bytes truncated]\n",
                            (unsigned long long) capture->lost);
  } else {
    room = limit > 2 * NOTICE_ROOM ? limit - NOTICE_ROOM : limit / 2;
    head = room / 5 * 3;
    r = add_part (&out, capture, 0, head, 0, 1);
    coffer_buffer_printf (&out, "\n[%llu bytes truncated]\n",
                          (unsigned long long) (capture_bytes (capture)
                                                - room));
    r |= add_part (&out, capture, total - (room - head), total, 1, 0);
  }
  if (r < 0 || out.failed || capture->failed)
    return NULL;
  return json_stringn (out.data ? out.data : "", out.size);
}
