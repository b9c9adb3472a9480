/* SPDX-License-Identifier: Apache-2.0 */
/* Server-sent events out of bytes that come in pieces: see <coffer/frames.h>.
 *
 * A line ends with LF, CR or CR LF, and is over at the CR: whoever waited for a
 * LF behind it would hold an event back until the next one. */

#include <errno.h>
#include <string.h>

#include <coffer/frames.h>

#define MOST_BY_DEFAULT (1024 * 1024)
#define RETRY_MOST_MS INT64_C (86400000)

static const char byte_order_mark[] = "\xef\xbb\xbf";

static int
sse_fail (struct coffer_sse *sse, int code)
{
  sse->failed = code;
  errno = code;
  return -1;
}

static int
is_field (const char *line, size_t n, const char *name)
{
  return n == strlen (name) && memcmp (line, name, n) == 0;
}

/* With a NUL in it it is none, and what was there stays. */
static void
set_text (struct coffer_buffer *buffer, const char *value, size_t n)
{
  if (n > 0 && memchr (value, '\0', n))
    return;
  coffer_buffer_clear (buffer);
  coffer_buffer_add (buffer, value, n);
}

/* Digits and nothing else; what is more than a day is a day. */
static void
set_retry (struct coffer_sse *sse, const char *value, size_t n)
{
  int64_t ms = 0;

  for (size_t i = 0; i < n; i++) {
    if (value[i] < '0' || value[i] > '9')
      return;
    ms = ms * 10 + (value[i] - '0');
    if (ms > RETRY_MOST_MS)
      ms = RETRY_MOST_MS;
  }
  if (n > 0)
    sse->retry_ms = ms;
}

/* NAME, or NAME:VALUE with one space before the value that is not part of it.
 * A line that begins with the colon is a comment. */
static void
take_field (struct coffer_sse *sse, const char *line, size_t n)
{
  const char *colon = memchr (line, ':', n);
  const size_t name = colon ? (size_t) (colon - line) : n;
  const char *value = colon ? colon + 1 : line + n;

  if (colon && value < line + n && *value == ' ')
    value++;
  n -= (size_t) (value - line);
  if (is_field (line, name, "data")) {
    coffer_buffer_add (&sse->data, value, n);
    coffer_buffer_add (&sse->data, "\n", 1);
  } else if (is_field (line, name, "event")) {
    set_text (&sse->name, value, n);
  } else if (is_field (line, name, "id")) {
    set_text (&sse->id, value, n);
  } else if (is_field (line, name, "retry")) {
    set_retry (sse, value, n);
  }
}

static const char *
text (const struct coffer_buffer *buffer, const char *otherwise)
{
  return buffer->size > 0 ? buffer->data : otherwise;
}

/* At an empty line: 1 when there is an event, which then is whole. */
static int
dispatch (struct coffer_sse *sse, struct coffer_sse_event *event)
{
  sse->taken = 1;
  if (sse->data.size == 0)
    return 0;
  sse->data.data[--sse->data.size] = '\0';
  event->name = text (&sse->name, "message");
  event->data = sse->data.data;
  event->size = sse->data.size;
  event->id = text (&sse->id, "");
  return 1;
}

/* One line without its end, wherever it lies. */
static int
take_line (struct coffer_sse *sse, const char *line, size_t n,
           struct coffer_sse_event *event)
{
  const size_t mark = sizeof byte_order_mark - 1;

  if (!sse->begun && n >= mark && memcmp (line, byte_order_mark, mark) == 0) {
    line += mark;
    n -= mark;
  }
  sse->begun = 1;
  if (n == 0)
    return dispatch (sse, event);
  take_field (sse, line, n);
  return 0;
}

static int
is_out_of_memory (const struct coffer_sse *sse)
{
  return sse->line.failed || sse->data.failed || sse->name.failed
         || sse->id.failed;
}

/* What begins at `in` up to an end of line, or to the end of the bytes.
 * *used: with that end. */
static int
take_part (struct coffer_sse *sse, const char *in, size_t size, size_t *used,
           struct coffer_sse_event *event)
{
  const size_t most = sse->most > 0 ? sse->most : MOST_BY_DEFAULT;
  size_t n = 0;
  int r;

  while (n < size && in[n] != '\n' && in[n] != '\r')
    n++;
  if (n > most || sse->line.size + sse->data.size + sse->name.size > most - n)
    return sse_fail (sse, EMSGSIZE);
  *used = n < size ? n + 1 : n;
  if (n == size || sse->line.size > 0)
    coffer_buffer_add (&sse->line, in, n);
  if (n == size)
    return 0;
  sse->after_cr = in[n] == '\r';
  r = sse->line.size > 0 ? take_line (sse, sse->line.data, sse->line.size,
                                      event)
                         : take_line (sse, in, n, event);
  coffer_buffer_clear (&sse->line);
  return r;
}

int
coffer_sse_read (struct coffer_sse *sse, const char *in, size_t size,
                 size_t *used, struct coffer_sse_event *event)
{
  size_t part;
  int r = 0;

  *used = 0;
  if (sse->failed)
    return sse_fail (sse, sse->failed);
  while (r == 0 && *used < size) {
    if (sse->taken) {
      coffer_buffer_clear (&sse->data);
      coffer_buffer_clear (&sse->name);
    }
    sse->taken = 0;
    if (sse->after_cr && in[*used] == '\n')
      ++*used;
    sse->after_cr = 0;
    if (*used == size)
      break;
    r = take_part (sse, in + *used, size - *used, &part, event);
    if (r >= 0)
      *used += part;
    if (is_out_of_memory (sse))
      return sse_fail (sse, ENOMEM);
  }
  return r;
}

void
coffer_sse_fini (struct coffer_sse *sse)
{
  coffer_buffer_free (&sse->line);
  coffer_buffer_free (&sse->data);
  coffer_buffer_free (&sse->name);
  coffer_buffer_free (&sse->id);
}
