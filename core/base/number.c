/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in text: sizes, durations, times, base64, hex.  Nothing wraps: what
 * does not fit is refused. */

#include <config.h>

#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"

#define VALUE_MAX ((uint64_t) INT64_MAX)

int
text_parse_u64 (const char *s, uint64_t min, uint64_t max, uint64_t *out)
{
  uint64_t value = 0;

  if (!*s)
    return -1;
  for (; *s; s++) {
    if (*s < '0' || *s > '9')
      return -1;
    if (__builtin_mul_overflow (value, (uint64_t) 10, &value)
        || __builtin_add_overflow (value, (uint64_t) (*s - '0'), &value))
      return -1;
  }
  if (value < min || value > max)
    return -1;
  *out = value;
  return 0;
}

/* "12" or "12.5": the whole part and thousandths.  Returns what follows. */
static const char *
decimal_read (const char *s, uint64_t *whole, uint64_t *milli)
{
  char digits[24];
  size_t n = strspn (s, "0123456789");
  uint64_t scale = 100;

  if (!n || n >= sizeof digits)
    return NULL;
  memcpy (digits, s, n);
  digits[n] = '\0';
  if (text_parse_u64 (digits, 0, VALUE_MAX, whole) < 0)
    return NULL;
  *milli = 0;
  s += n;
  if (*s != '.')
    return s;
  n = strspn (++s, "0123456789");
  if (n < 1 || n > 3)
    return NULL;
  for (; n; n--, s++, scale /= 10)
    *milli += (uint64_t) (*s - '0') * scale;
  return s;
}

struct unit {
  const char *name;
  uint64_t factor;
};

/* NUMBER UNIT, where the unit is in the list. */
static int
quantity_parse (const char *s, const struct unit *units, uint64_t *out)
{
  uint64_t whole, milli, value;

  s = decimal_read (s, &whole, &milli);
  if (!s)
    return -1;
  for (; units->name; units++) {
    if (strcmp (s, units->name) != 0)
      continue;
    if (milli && units->factor == 1)
      return -1;
    if (__builtin_mul_overflow (whole, units->factor, &value)
        || __builtin_add_overflow (value, units->factor / 1000 * milli
                                   + units->factor % 1000 * milli / 1000,
                                   &value)
        || value > VALUE_MAX)
      return -1;
    *out = value;
    return 0;
  }
  return -1;
}

#define KIB ((uint64_t) 1 << 10)
#define MIB ((uint64_t) 1 << 20)
#define GIB ((uint64_t) 1 << 30)
#define TIB ((uint64_t) 1 << 40)

int
text_parse_size (const char *s, uint64_t *bytes)
{
  static const struct unit units[] = {
    { "", 1 },       { "B", 1 },
    { "K", KIB },    { "k", KIB },   { "KB", KIB },  { "KiB", KIB },
    { "M", MIB },    { "m", MIB },   { "MB", MIB },  { "MiB", MIB },
    { "G", GIB },    { "g", GIB },   { "GB", GIB },  { "GiB", GIB },
    { "T", TIB },    { "t", TIB },   { "TB", TIB },  { "TiB", TIB },
    { NULL, 0 },
  };

  return quantity_parse (s, units, bytes);
}

int
text_parse_duration (const char *s, uint64_t *ms)
{
  static const struct unit units[] = {
    { "", 1000 },      { "ms", 1 },         { "s", 1000 },
    { "m", 60000 },    { "min", 60000 },    { "h", 3600000 },
    { "d", 86400000 }, { NULL, 0 },
  };

  return quantity_parse (s, units, ms);
}

int
text_parse_millis (const char *s, uint64_t *millis)
{
  static const struct unit units[] = { { "", 1000 }, { NULL, 0 } };

  return quantity_parse (s, units, millis);
}

char *
text_format_size (uint64_t bytes)
{
  static const char units[] = "KMGTPE";
  double value = (double) bytes;
  int unit = -1;

  if (bytes < KIB)
    return text_printf ("%u B", (unsigned) bytes);
  while (value >= 1023.95 && units[unit + 1]) {
    value /= 1024;
    unit++;
  }
  return text_printf ("%.1f %ciB", value, units[unit]);
}

char *
text_format_duration (uint64_t ms)
{
  uint64_t s = ms / 1000;
  unsigned long long days = s / 86400, hours = s / 3600 % 24;
  unsigned long long minutes = s / 60 % 60, seconds = s % 60;

  if (days)
    return text_printf ("%llud %lluh", days, hours);
  if (hours)
    return text_printf ("%lluh %llum", hours, minutes);
  if (minutes)
    return text_printf ("%llum %llus", minutes, seconds);
  if (s || !ms)
    return text_printf ("%llus", seconds);
  return text_printf ("%llums", (unsigned long long) ms);
}

char *
text_format_time (int64_t realtime_ns)
{
  time_t seconds = (time_t) (realtime_ns / 1000000000);
  char text[32];
  struct tm local;

  if (!localtime_r (&seconds, &local)
      || !strftime (text, sizeof text, "%Y-%m-%d %H:%M:%S", &local))
    return NULL;
  return strdup (text);
}

/* ---- base64, hex -------------------------------------------------------- */

static const char base64_digits[] =
  "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

char *
text_base64_encode (const void *bytes, size_t size)
{
  const uint8_t *in = bytes;
  char *text, *out;

  if (size > SIZE_MAX / 2)
    return NULL;
  text = out = malloc ((size + 2) / 3 * 4 + 1);
  if (!text)
    return NULL;
  for (; size >= 3; size -= 3, in += 3) {
    *out++ = base64_digits[in[0] >> 2];
    *out++ = base64_digits[(in[0] & 3) << 4 | in[1] >> 4];
    *out++ = base64_digits[(in[1] & 15) << 2 | in[2] >> 6];
    *out++ = base64_digits[in[2] & 63];
  }
  if (size) {
    unsigned second = size == 2 ? in[1] : 0;

    *out++ = base64_digits[in[0] >> 2];
    *out++ = base64_digits[(in[0] & 3) << 4 | second >> 4];
    *out++ = size == 2 ? base64_digits[(second & 15) << 2] : '=';
    *out++ = '=';
  }
  *out = '\0';
  return text;
}

/* Four digits into up to three bytes: how many, or 0 when malformed.  The bits
 * that padding leaves over must be zero: one text for each value. */
static size_t
base64_group (const char *s, uint8_t out[3])
{
  uint32_t value = 0;
  size_t n = s[3] != '=' ? 3 : s[2] != '=' ? 2 : 1;

  for (size_t i = 0; i < n + 1; i++) {
    const char *digit = s[i] ? strchr (base64_digits, s[i]) : NULL;

    if (!digit)
      return 0;
    value |= (uint32_t) (digit - base64_digits) << (18 - 6 * i);
  }
  out[0] = (uint8_t) (value >> 16);
  out[1] = (uint8_t) (value >> 8);
  out[2] = (uint8_t) value;
  for (size_t i = n; i < 3; i++) {
    if (out[i])
      return 0;
  }
  return n;
}

int
text_base64_decode (const char *s, char **bytes, size_t *size)
{
  size_t length = strlen (s), used = 0;
  auto_free char *out = NULL;

  if (length % 4)
    return -1;
  out = malloc (length / 4 * 3 + 1);
  if (!out)
    return -1;
  for (size_t i = 0; i < length; i += 4) {
    uint8_t group[3];
    size_t n = base64_group (s + i, group);

    if (!n || (n < 3 && i + 4 < length))
      return -1;
    memcpy (out + used, group, n);
    used += n;
  }
  out[used] = '\0';
  *size = used;
  *bytes = steal (out);
  return 0;
}

void
text_hex (const uint8_t *bytes, size_t size, char *out)
{
  static const char digits[] = "0123456789abcdef";

  for (size_t i = 0; i < size; i++) {
    *out++ = digits[bytes[i] >> 4];
    *out++ = digits[bytes[i] & 15];
  }
  *out = '\0';
}
