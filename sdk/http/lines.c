/* SPDX-License-Identifier: Apache-2.0 */
/* Lines out of bytes that come in pieces: see <coffer/frames.h>. */

#include <errno.h>
#include <string.h>

#include <coffer/frames.h>

#define MOST_BY_DEFAULT (1024 * 1024)

static int
lines_fail (struct coffer_lines *lines, int code)
{
  lines->failed = code;
  errno = code;
  return -1;
}

/* A line that lies in one piece is given on where it is. */
static int
lines_give (struct coffer_lines *lines, const char *part, size_t n,
            const char **line, size_t *length)
{
  if (lines->kept.size > 0) {
    coffer_buffer_add (&lines->kept, part, n);
    if (lines->kept.failed)
      return lines_fail (lines, ENOMEM);
    part = lines->kept.data;
    n = lines->kept.size;
    lines->taken = 1;
  }
  *line = part;
  *length = n > 0 && part[n - 1] == '\r' ? n - 1 : n;
  return 1;
}

int
coffer_lines_read (struct coffer_lines *lines, const char *in, size_t size,
                   size_t *used, const char **line, size_t *length)
{
  const size_t most = lines->most > 0 ? lines->most : MOST_BY_DEFAULT;
  const char *end;
  size_t n;

  *used = 0;
  if (lines->failed)
    return lines_fail (lines, lines->failed);
  if (lines->taken)
    coffer_buffer_clear (&lines->kept);
  lines->taken = 0;
  if (size == 0)
    return 0;
  end = memchr (in, '\n', size);
  n = end ? (size_t) (end - in) : size;
  if (n > most || lines->kept.size > most - n)
    return lines_fail (lines, EMSGSIZE);
  *used = end ? n + 1 : n;
  if (end)
    return lines_give (lines, in, n, line, length);
  coffer_buffer_add (&lines->kept, in, n);
  return lines->kept.failed ? lines_fail (lines, ENOMEM) : 0;
}

int
coffer_lines_end (struct coffer_lines *lines, const char **line,
                  size_t *length)
{
  if (lines->failed || lines->taken || lines->kept.size == 0)
    return 0;
  return lines_give (lines, "", 0, line, length);
}

void
coffer_lines_fini (struct coffer_lines *lines)
{
  coffer_buffer_free (&lines->kept);
}
