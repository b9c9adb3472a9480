/* SPDX-License-Identifier: Apache-2.0 */
/* Text for people: formatting, UTF-8, escaping, nearest names, tables.
 * Numbers and encodings are in number.c. */

#include <config.h>

#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <coffer/buffer.h>

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

int
text_is_utf8 (const char *bytes, size_t size)
{
  uint32_t point;

  for (size_t i = 0, n; i < size; i += n) {
    n = coffer_utf8_decode (bytes + i, size - i, &point);
    if (!n)
      return 0;
  }
  return 1;
}

char *
text_escape (const char *bytes, size_t size)
{
  struct coffer_buffer text = { 0 };

  coffer_buffer_add_escaped (&text, bytes, size);
  return coffer_buffer_steal (&text);
}

/* ---- names -------------------------------------------------------------- */

int
text_list_has (const char *const *list, const char *word)
{
  for (; list && *list; list++)
    if (strcmp (*list, word) == 0)
      return 1;
  return 0;
}

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
