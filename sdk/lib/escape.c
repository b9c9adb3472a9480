/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8, and bytes of anybody as text that is safe to show. */

#include <stddef.h>
#include <stdint.h>

#include <coffer/buffer.h>

size_t
coffer_utf8_decode (const void *bytes, size_t size, uint32_t *point)
{
  static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  const unsigned char *s = bytes;
  size_t length;
  uint32_t value;

  if (size == 0)
    return 0;
  length = s[0] < 0x80 ? 1
           : (s[0] & 0xe0) == 0xc0 ? 2
           : (s[0] & 0xf0) == 0xe0 ? 3
           : (s[0] & 0xf8) == 0xf0 ? 4 : 0;
  if (length == 0 || length > size)
    return 0;
  value = length == 1 ? s[0] : s[0] & (0xffu >> (length + 1));
  for (size_t i = 1; i < length; i++) {
    if ((s[i] & 0xc0) != 0x80)
      return 0;
    value = value << 6 | (s[i] & 0x3fu);
  }
  if (value < least[length] || value > 0x10ffff ||
      (value >= 0xd800 && value <= 0xdfff))
    return 0;
  *point = value;
  return length;
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
add_point (struct coffer_buffer *buffer, uint32_t p)
{
  if (p == '\n')
    coffer_buffer_add_string (buffer, "\\n");
  else if (p == '\t')
    coffer_buffer_add_string (buffer, "\\t");
  else if (p == '\r')
    coffer_buffer_add_string (buffer, "\\r");
  else if (p < 0x80)
    coffer_buffer_printf (buffer, "\\x%02x", p);
  else
    coffer_buffer_printf (buffer, "\\u{%x}", p);
}

void
coffer_buffer_add_escaped (struct coffer_buffer *buffer, const void *bytes,
                           size_t size)
{
  const unsigned char *s = bytes;
  uint32_t point;
  size_t plain = 0;             /* where a run begins that stays as it is */

  for (size_t i = 0, n; i < size; i += n) {
    n = coffer_utf8_decode (s + i, size - i, &point);
    if (n > 0 && !point_is_unsafe (point))
      continue;
    coffer_buffer_add (buffer, s + plain, i - plain);
    if (n == 0) {
      coffer_buffer_printf (buffer, "\\x%02x", s[i]);
      n = 1;
    } else
      add_point (buffer, point);
    plain = i + n;
  }
  if (size > plain)
    coffer_buffer_add (buffer, s + plain, size - plain);
}
