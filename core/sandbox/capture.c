/* SPDX-License-Identifier: Apache-2.0 */
/* Head and tail of a stream.  The tail is a ring, made when the head is
 * full. */

#include "config.h"

#include "sandbox/capture.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"

/* The head grows by doubling: most commands print little.  As much as was taken:
 * what did not grow is full. */
static size_t
add_to_head (struct capture *capture, const char *bytes, size_t size)
{
  size_t room = CAPTURE_HEAD - capture->head_size;
  size_t n = size < room ? size : room, wanted = capture->head_size + n;
  char *grown;

  if (n == 0)
    return 0;
  if (wanted > capture->head_room) {
    size_t next = capture->head_room ? capture->head_room * 2 : 4096;

    while (next < wanted)
      next *= 2;
    if (share_hold_more (capture->hold, next - capture->head_room, NULL) < 0)
      return 0;
    grown = realloc (capture->head, next);
    if (!grown) {
      capture->failed = 1;
      return 0;
    }
    capture->head = grown;
    capture->head_room = next;
  }
  memcpy (capture->head + capture->head_size, bytes, n);
  capture->head_size += n;
  return n;
}

static void
add_to_tail (struct capture *capture, const char *bytes, size_t size)
{
  size_t n;

  if (!capture->tail && !(capture->tail = malloc (CAPTURE_TAIL))) {
    capture->failed = 1;
    return;
  }
  capture->total += size;
  if (size > CAPTURE_TAIL) {
    bytes += size - CAPTURE_TAIL;
    size = CAPTURE_TAIL;
    capture->tail_at = 0;
  }
  while (size) {
    n = CAPTURE_TAIL - capture->tail_at;
    if (n > size)
      n = size;
    memcpy (capture->tail + capture->tail_at, bytes, n);
    capture->tail_at = (capture->tail_at + n) % CAPTURE_TAIL;
    bytes += n;
    size -= n;
  }
}

/* One whose head could not grow has none. */
static int
has_tail (struct capture *capture)
{
  return capture->tail
         || (capture->head_size == CAPTURE_HEAD
             && share_hold_more (capture->hold, CAPTURE_TAIL, NULL) == 0);
}

void
capture_add (struct capture *capture, const char *bytes, size_t size)
{
  size_t taken;

  if (capture->failed)
    return;
  taken = capture->lost ? 0 : add_to_head (capture, bytes, size);
  capture->total += taken;
  if (taken == size || capture->failed)
    return;
  if (!capture->lost && has_tail (capture))
    add_to_tail (capture, bytes + taken, size - taken);
  else
    capture->lost += size - taken;
}

uint64_t
capture_bytes (const struct capture *capture)
{
  return capture->total + capture->lost;
}

void
capture_fini (struct capture *capture)
{
  free (capture->head);
  free (capture->tail);
  memset (capture, 0, sizeof *capture);
}

/* ---- as JSON ------------------------------------------------------------ */

/* Bytes at the end that begin a character and do not end it. */
static size_t
unfinished (const char *bytes, size_t size)
{
  size_t back;
  unsigned char c;

  for (back = 1; back <= 3 && back <= size; back++) {
    c = (unsigned char) bytes[size - back];
    if (c < 0x80)
      return 0;
    if (c >= 0xc0)
      return back < (c >= 0xf0 ? 4u : c >= 0xe0 ? 3u : 2u) ? back : 0;
  }
  return 0;
}

/* Bytes at the start that belong to a character begun before. */
static size_t
orphaned (const char *bytes, size_t size)
{
  size_t n = 0;

  while (n < 3 && n < size && ((unsigned char) bytes[n] & 0xc0) == 0x80)
    n++;
  return n;
}

/* The ring in order; *size says how much of it is filled. */
static char *
tail_in_order (const struct capture *capture, size_t *size)
{
  uint64_t beyond = capture->total - capture->head_size;
  size_t kept = beyond < CAPTURE_TAIL ? (size_t) beyond : CAPTURE_TAIL;
  size_t start = kept < CAPTURE_TAIL ? 0 : capture->tail_at;
  char *out = malloc (kept + 1);

  if (!out)
    return NULL;
  memcpy (out, capture->tail + start, kept - start);
  memcpy (out + kept - start, capture->tail, start);
  *size = kept;
  return out;
}

static json_t *
joined_json (const struct capture *capture)
{
  auto_free char *tail = NULL, *joined = NULL;
  size_t size, skip = 0, keep = capture->head_size;
  uint64_t gap;
  json_t *json;

  if (!(tail = tail_in_order (capture, &size)))
    return NULL;
  gap = capture->total - capture->head_size - size;
  /* A character is not cut in two where the gap is: text stays text. */
  if (gap) {
    keep -= unfinished (capture->head, keep);
    skip = orphaned (tail, size);
    gap += capture->head_size - keep + skip;
  }
  joined = malloc (keep + size - skip + 1);
  if (!joined)
    return NULL;
  memcpy (joined, capture->head, keep);
  memcpy (joined + keep, tail + skip, size - skip);
  json = json_encoded (joined, keep + size - skip);
  if (json && gap)
    json_object_set_new (json, "omitted",
                         json_pack ("{s:I, s:I}", "at", (json_int_t) keep,
                                    "bytes", (json_int_t) gap));
  return json;
}

/* What is kept of one that was given up is its beginning. */
static json_t *
head_json (const struct capture *capture)
{
  size_t keep = capture->head_size;
  json_t *json;

  if (capture->lost)
    keep -= unfinished (capture->head, keep);
  json = json_encoded (capture->head ? capture->head : "", keep);
  if (json && capture->lost)
    json_object_set_new (json, "omitted",
                         json_pack ("{s:I, s:I}", "at", (json_int_t) keep,
                                    "bytes",
                                    (json_int_t) (capture_bytes (capture)
                                                  - keep)));
  return json;
}

json_t *
capture_json (const struct capture *capture)
{
  json_t *json;

  if (capture->failed)
    return NULL;
  json = capture->total > capture->head_size ? joined_json (capture)
                                             : head_json (capture);
  if (json)
    json_object_set_new (json, "bytes",
                         json_integer ((json_int_t) capture_bytes (capture)));
  return json;
}
