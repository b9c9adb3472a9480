/* SPDX-License-Identifier: Apache-2.0 */
/* Frames with their length before them: see <coffer/frames.h>. */

#include <errno.h>
#include <string.h>

#include <coffer/frames.h>

const struct coffer_frame_format coffer_frames_engine = { 8, 4, 4, 0, 0 };
const struct coffer_frame_format coffer_frames_connect = { 5, 1, 4, 0, 0 };

static int
format_is_sound (const struct coffer_frame_format *format)
{
  const unsigned width = format->width;

  return format->head >= 1 && format->head <= 32
         && (width == 1 || width == 2 || width == 4 || width == 8)
         && format->at + width <= format->head;
}

static int
frames_fail (struct coffer_frames *frames, int code)
{
  frames->failed = code;
  errno = code;
  return -1;
}

static uint64_t
length_get (const struct coffer_frame_format *format, const uint8_t *head)
{
  uint64_t value = 0;

  for (unsigned i = 0; i < format->width; i++)
    value = value << 8
            | head[format->at + (format->little ? format->width - 1 - i : i)];
  return value;
}

int
coffer_frame_head (const struct coffer_frame_format *format, uint64_t size,
                   uint8_t *head)
{
  uint64_t rest = size;

  if (!format_is_sound (format)) {
    errno = EINVAL;
    return -1;
  }
  memset (head, 0, format->head);
  for (unsigned i = 0; i < format->width; i++, rest >>= 8)
    head[format->at + (format->little ? i : format->width - 1 - i)]
      = (uint8_t) rest;
  if (length_get (format, head) != size
      || (format->most > 0 && size > format->most)) {
    errno = EMSGSIZE;
    return -1;
  }
  return 0;
}

/* 1: the head is whole. */
static int
take_head (struct coffer_frames *frames, const char *in, size_t size,
           size_t *used)
{
  const size_t want = (size_t) (frames->format.head - frames->have);
  const size_t n = size < want ? size : want;

  if (n > 0)
    memcpy (frames->head + frames->have, in, n);
  frames->have = (uint8_t) (frames->have + n);
  *used = n;
  if (frames->have < frames->format.head)
    return 0;
  if (n == 0)
    return 1;                   /* it was before */
  frames->size = length_get (&frames->format, frames->head);
  frames->left = frames->size;
  if (frames->format.most > 0 && frames->size > frames->format.most)
    return frames_fail (frames, EMSGSIZE);
  return 1;
}

int
coffer_frames_read (struct coffer_frames *frames, const char *in, size_t size,
                    size_t *used, struct coffer_frame_part *part)
{
  uint64_t n;
  int r;

  *used = 0;
  if (frames->failed)
    return frames_fail (frames, frames->failed);
  if (!format_is_sound (&frames->format))
    return frames_fail (frames, EINVAL);
  if (frames->ended)
    frames->ended = frames->have = 0;
  r = take_head (frames, in, size, used);
  if (r <= 0)
    return r;
  n = size - *used < frames->left ? size - *used : frames->left;
  if (n == 0 && frames->size > 0)
    return 0;                   /* a part has bytes, if its frame has */
  *part = (struct coffer_frame_part) {
    .head = frames->head, .size = frames->size, .bytes = in + *used,
    .n = (size_t) n, .begins = frames->left == frames->size,
    .ends = n == frames->left,
  };
  *used += (size_t) n;
  frames->left -= n;
  frames->ended = frames->left == 0;
  return 1;
}

int
coffer_frames_cut (const struct coffer_frames *frames)
{
  return frames->have > 0 && !frames->ended;
}
