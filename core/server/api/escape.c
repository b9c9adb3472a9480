/* SPDX-License-Identifier: Apache-2.0 */
/* See escape.h.  Eight bytes at a time, as long as none of them is special. */

#include <config.h>

#include <stdint.h>
#include <string.h>

#include "base/text.h"
#include "server/api/escape.h"

#define EACH(byte) (UINT64_C (0x0101010101010101) * (byte))
#define HIGH EACH (0x80)
#define ESCAPE_MAX 6            /* \u00XX */

/* The high bit of each byte that is zero, and maybe of ones above it: enough to
 * tell that there is none. */
static uint64_t
zeros (uint64_t word)
{
  return (word - EACH (1)) & ~word & HIGH;
}

/* 0: none of them is below a space, a quote or a backslash. */
static uint64_t
specials (uint64_t word)
{
  return ((word - EACH (0x20)) & ~word & HIGH)
         | zeros (word ^ EACH ('"')) | zeros (word ^ EACH ('\\'));
}

static size_t
escape_one (char *out, unsigned char c)
{
  static const char digits[] = "0123456789abcdef";
  static const char letters[] = "btn\0fr";      /* 8 to 13 */

  if (c >= 0x20 && c != '"' && c != '\\') {
    out[0] = (char) c;
    return 1;
  }
  out[0] = '\\';
  if (c == '"' || c == '\\') {
    out[1] = (char) c;
    return 2;
  }
  if (c >= 8 && c <= 13 && letters[c - 8]) {
    out[1] = letters[c - 8];
    return 2;
  }
  memcpy (out + 1, "u00", 3);
  out[4] = digits[c >> 4];
  out[5] = digits[c & 15];
  return 6;
}

size_t
escape_json (char *out, size_t room, const unsigned char *from, size_t size,
             size_t *used)
{
  size_t n = 0, at = 0;
  uint64_t word;

  while (at < size) {
    while (size - at >= sizeof word && room - n >= sizeof word) {
      memcpy (&word, from + at, sizeof word);
      if (specials (word))
        break;
      memcpy (out + n, &word, sizeof word);
      at += sizeof word;
      n += sizeof word;
    }
    if (at == size || room - n < ESCAPE_MAX)
      break;
    n += escape_one (out + n, from[at++]);
  }
  *used = at;
  return n;
}

size_t
escape_base64 (char *out, size_t room, const unsigned char *from, size_t size,
               size_t *used)
{
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                               "abcdefghijklmnopqrstuvwxyz0123456789+/";
  size_t n = 0, at = 0;
  uint32_t three;

  for (; size - at >= 3 && room - n >= 4; at += 3, n += 4) {
    three = (uint32_t) from[at] << 16 | (uint32_t) from[at + 1] << 8
            | from[at + 2];
    out[n] = digits[three >> 18];
    out[n + 1] = digits[three >> 12 & 63];
    out[n + 2] = digits[three >> 6 & 63];
    out[n + 3] = digits[three & 63];
  }
  if (at < size && size - at < 3 && room - n >= 4) {
    three = (uint32_t) from[at] << 16
            | (size - at == 2 ? (uint32_t) from[at + 1] << 8 : 0);
    out[n] = digits[three >> 18];
    out[n + 1] = digits[three >> 12 & 63];
    out[n + 2] = size - at == 2 ? digits[three >> 6 & 63] : '=';
    out[n + 3] = '=';
    at = size;
    n += 4;
  }
  *used = at;
  return n;
}

int
escape_is_text (const unsigned char *bytes, size_t size)
{
  size_t at = 0;
  uint64_t word;

  for (; size - at >= sizeof word; at += sizeof word) {
    memcpy (&word, bytes + at, sizeof word);
    if (word & HIGH)
      break;
  }
  return text_is_utf8 ((const char *) bytes + at, size - at);
}
