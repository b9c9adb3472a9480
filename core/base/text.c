/* SPDX-License-Identifier: Apache-2.0 */
/* Text for people: formatting, UTF-8, escaping, nearest names, tables.
 * Numbers and encodings are in number.c. */

#include <config.h>

#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

char *
text_printf (const char *fmt, ...)
{
  char *text;
  va_list args;
  int n;

  va_start (args, fmt);
  n = vasprintf (&text, fmt, args);
  va_end (args);
  return n < 0 ? NULL : text;
}

/* ---- UTF-8 -------------------------------------------------------------- */

/* Decodes one character: its length, or 0 when the bytes are not UTF-8. */
static size_t
utf8_decode (const unsigned char *s, size_t size, uint32_t *point)
{
  static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
  size_t length = s[0] < 0x80 ? 1
                  : (s[0] & 0xe0) == 0xc0 ? 2
                  : (s[0] & 0xf0) == 0xe0 ? 3
                  : (s[0] & 0xf8) == 0xf0 ? 4 : 0;
  uint32_t value;

  if (!length || length > size)
    return 0;
  value = length == 1 ? s[0] : s[0] & (0xffu >> (length + 1));
  for (size_t i = 1; i < length; i++) {
    if ((s[i] & 0xc0) != 0x80)
      return 0;
    value = value << 6 | (s[i] & 0x3fu);
  }
  if (value < least[length] || value > 0x10ffff
      || (value >= 0xd800 && value <= 0xdfff))
    return 0;
  *point = value;
  return length;
}

int
text_is_utf8 (const char *bytes, size_t size)
{
  const unsigned char *s = (const unsigned char *) bytes;
  uint32_t point;

  for (size_t i = 0, n; i < size; i += n) {
    n = utf8_decode (s + i, size - i, &point);
    if (!n)
      return 0;
  }
  return 1;
}

/* Characters that move the cursor, reorder or hide text. */
static int
point_is_unsafe (uint32_t p)
{
  return p < 0x20 || (p >= 0x7f && p <= 0x9f) || p == 0xad || p == 0x61c
         || (p >= 0x200b && p <= 0x200f) || (p >= 0x2028 && p <= 0x202e)
         || (p >= 0x2060 && p <= 0x206f) || p == 0xfeff
         || (p >= 0xfff9 && p <= 0xfffb) || (p >= 0xe0000 && p <= 0xe0fff);
}

static void
escape_point (FILE *out, uint32_t p)
{
  if (p == '\n')
    fputs ("\\n", out);
  else if (p == '\t')
    fputs ("\\t", out);
  else if (p == '\r')
    fputs ("\\r", out);
  else if (p < 0x80)
    fprintf (out, "\\x%02x", p);
  else
    fprintf (out, "\\u{%x}", p);
}

char *
text_escape (const char *bytes, size_t size)
{
  const unsigned char *s = (const unsigned char *) bytes;
  char *text = NULL;
  size_t text_size;
  FILE *out = open_memstream (&text, &text_size);

  if (!out)
    return NULL;
  for (size_t i = 0, n; i < size; i += n) {
    uint32_t point;

    n = utf8_decode (s + i, size - i, &point);
    if (!n) {
      fprintf (out, "\\x%02x", s[i]);
      n = 1;
    } else if (point_is_unsafe (point))
      escape_point (out, point);
    else
      fwrite (s + i, 1, n, out);
  }
  if (fclose (out) == 0)
    return text;
  free (text);
  return NULL;
}

/* ---- names -------------------------------------------------------------- */

#define NEAREST_MAX 64

/* Edit distance with adjacent swaps as one edit: the usual slips of a hand.
 * Both words are at most NEAREST_MAX bytes. */
static size_t
distance (const char *a, size_t na, const char *b, size_t nb)
{
  size_t rows[3][NEAREST_MAX + 1];
  size_t *before = rows[0], *last = rows[1], *now = rows[2], *spare;

  for (size_t j = 0; j <= nb; j++)
    last[j] = j;
  for (size_t i = 1; i <= na; i++) {
    now[0] = i;
    for (size_t j = 1; j <= nb; j++) {
      size_t best = last[j - 1] + (a[i - 1] != b[j - 1]);

      if (last[j] + 1 < best)
        best = last[j] + 1;
      if (now[j - 1] + 1 < best)
        best = now[j - 1] + 1;
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]
          && before[j - 2] + 1 < best)
        best = before[j - 2] + 1;
      now[j] = best;
    }
    spare = before;
    before = last;
    last = now;
    now = spare;
  }
  return last[nb];
}

const char *
text_nearest (const char *word, const char *const *candidates)
{
  size_t length = strlen (word);
  size_t best = length / 3 > 1 ? length / 3 : 1;
  const char *nearest = NULL;

  if (length > NEAREST_MAX)
    return NULL;
  for (; *candidates; candidates++) {
    size_t n = strlen (*candidates);
    size_t d;

    if (n > NEAREST_MAX)
      continue;
    d = distance (word, length, *candidates, n);
    if (d < best || (d == best && !nearest)) {
      best = d;
      nearest = *candidates;
    }
  }
  return nearest;
}

int
text_is_id (const char *s)
{
  size_t n = strlen (s);

  return n >= 1 && n <= 32 && *s >= 'a' && *s <= 'z'
         && strspn (s, "abcdefghijklmnopqrstuvwxyz0123456789-") == n;
}
