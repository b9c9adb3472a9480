/* SPDX-License-Identifier: Apache-2.0 */
/* Text: formatting, UTF-8, escaping, nearest names, sizes and durations.
 * Pure functions; what they return is the caller's unless it is const. */

#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* asprintf that returns the string, or NULL when memory is out. */
char *text_printf (const char *fmt, ...)
  __attribute__ ((format (printf, 1, 2)));

/* 1 when all `size` bytes are valid UTF-8 (no surrogates, no overlong). */
int text_is_utf8 (const char *bytes, size_t size);

/* For people: control characters, bidi overrides and bytes that are not UTF-8
 * become \n, \t, \xNN, \u{202e}; everything else stays. */
char *text_escape (const char *bytes, size_t size);

/* The candidate closest to `word` (edit distance at most a third of its
 * length, at least 1), or NULL. */
const char *text_nearest (const char *word, const char *const *candidates);

/* Whether a list of words that ends with NULL (or is NULL) has that one. */
int text_list_has (const char *const *list, const char *word);

/* [a-z][a-z0-9-]{0,31} */
int text_is_id (const char *s);

/* "512", "512K", "64MiB", "1.5G": powers of 1024.  -1: malformed, or beyond
 * 2^63-1; never wraps. */
int text_parse_size (const char *s, uint64_t *bytes);
/* "500ms", "30", "30s", "5m", "2h", "1d"; a bare number is seconds. */
int text_parse_duration (const char *s, uint64_t *ms);
/* "2", "1.5", "0.001": in thousandths. */
int text_parse_millis (const char *s, uint64_t *millis);
/* Decimal digits only, within the bounds. */
int text_parse_u64 (const char *s, uint64_t min, uint64_t max, uint64_t *out);

/* "64.0 MiB", "1h 3m", "2026-01-31 12:00:00": for tables. */
char *text_format_size (uint64_t bytes);
char *text_format_duration (uint64_t ms);
char *text_format_time (int64_t realtime_ns);

/* RFC 4648 base64 with padding.  decode: -1 when malformed. */
char *text_base64_encode (const void *bytes, size_t size);
int text_base64_decode (const char *s, char **bytes, size_t *size);

/* Lower-case hex of `size` bytes into out[2*size+1]. */
void text_hex (const uint8_t *bytes, size_t size, char *out);

#endif /* BASE_TEXT_H */
