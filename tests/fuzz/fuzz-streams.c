/* SPDX-License-Identifier: Apache-2.0 */
/* What services stream: lines, events and frames.  The first byte picks the
 * reader, the second in which steps the bytes come: how they are cut must change
 * nothing of what is understood. */

#include <config.h>

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <coffer/frames.h>

#define MOST 64

int LLVMFuzzerTestOneInput (const uint8_t *bytes, size_t size);

static void
must (int holds)
{
  if (!holds)
    abort ();
}

struct reader {
  struct coffer_lines lines;
  struct coffer_sse sse;
  struct coffer_frames frames;
};

static int
lines_step (struct reader *reader, const char *in, size_t size, size_t *used,
            struct coffer_buffer *out)
{
  const char *line;
  size_t n;
  int r = coffer_lines_read (&reader->lines, in, size, used, &line, &n);

  if (r == 1) {
    must (n <= MOST && !memchr (line, '\n', n));
    coffer_buffer_add (out, line, n);
    coffer_buffer_add_string (out, "\n");
  }
  return r;
}

static int
events_step (struct reader *reader, const char *in, size_t size, size_t *used,
             struct coffer_buffer *out)
{
  struct coffer_sse_event event;
  int r = coffer_sse_read (&reader->sse, in, size, used, &event);

  if (r == 1) {
    must (event.size <= 2 * MOST && event.data[event.size] == '\0');
    must (*event.name && !strpbrk (event.name, "\r\n"));
    coffer_buffer_printf (out, "%s#%s=", event.name, event.id);
    coffer_buffer_add (out, event.data, event.size);
    coffer_buffer_add_string (out, "\n");
  }
  return r;
}

static int
frames_step (struct reader *reader, const char *in, size_t size, size_t *used,
             struct coffer_buffer *out)
{
  struct coffer_frame_part part;
  int r = coffer_frames_read (&reader->frames, in, size, used, &part);

  if (r == 1) {
    must (part.bytes >= in && part.bytes + part.n <= in + size);
    must (part.size <= MOST && part.n <= part.size);
    must (part.n > 0 || part.size == 0);
    if (part.begins)
      coffer_buffer_printf (out, "%d/%d:", part.head[0], (int) part.size);
    coffer_buffer_add (out, part.bytes, part.n);
    if (part.ends)
      coffer_buffer_add_string (out, ";");
  }
  return r;
}

static int (*const steps[]) (struct reader *, const char *, size_t, size_t *,
                             struct coffer_buffer *)
  = { lines_step, events_step, frames_step };

static void
read_all (unsigned which, const char *in, size_t size, size_t step,
          struct coffer_buffer *out)
{
  struct reader reader = { .lines = { .most = MOST }, .sse = { .most = MOST },
                           .frames = { .format = coffer_frames_engine } };
  size_t at = 0, used, part;
  int r = 0;

  reader.frames.format.most = MOST;
  while (at < size && r >= 0) {
    part = size - at < step ? size - at : step;
    r = steps[which] (&reader, in + at, part, &used, out);
    must (used <= part && (r != 0 || used == part));
    must (r != 1 || used > 0);
    at += used;
  }
  if (r < 0)
    coffer_buffer_printf (out, "!%d", errno);
  coffer_lines_fini (&reader.lines);
  coffer_sse_fini (&reader.sse);
}

int
LLVMFuzzerTestOneInput (const uint8_t *bytes, size_t size)
{
  coffer_autobuffer struct coffer_buffer whole = { 0 }, parts = { 0 };
  const unsigned which = size > 0 ? bytes[0] % 3 : 0;

  if (size < 2)
    return 0;
  read_all (which, (const char *) bytes + 2, size - 2, SIZE_MAX, &whole);
  read_all (which, (const char *) bytes + 2, size - 2, 1 + bytes[1] % 16,
            &parts);
  must (whole.size == parts.size
        && (whole.size == 0
            || memcmp (whole.data, parts.data, whole.size) == 0));
  return 0;
}
