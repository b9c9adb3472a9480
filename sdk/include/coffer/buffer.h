/* SPDX-License-Identifier: Apache-2.0 */
/* Growing buffers, string vectors, and text that is safe to show.
 *
 * A struct of zeros is an empty one: `struct coffer_buffer text = { 0 };`.  What
 * is added is copied.  A failed allocation sets `failed` and turns every later
 * call into a no-op, so that a builder checks once at the end; free and steal
 * make it an empty one again.  Free keeps errno.  No locks and no globals: any
 * thread, each object from one at a time.  Part of libcoffer-provider.a. */

#ifndef COFFER_BUFFER_H
#define COFFER_BUFFER_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct coffer_buffer {
  char *data;                   /* NUL-terminated beyond size; NULL at first */
  size_t size;                  /* bytes, without the NUL */
  size_t capacity;              /* of data; for these functions only */
  int failed;                   /* 1: an allocation failed, data is not whole */
};

/* Adds bytes, a string, a formatted text. */
void coffer_buffer_add (struct coffer_buffer *buffer, const void *bytes,
                        size_t size);
void coffer_buffer_add_string (struct coffer_buffer *buffer, const char *s);
void coffer_buffer_printf (struct coffer_buffer *buffer, const char *fmt, ...)
  __attribute__ ((format (printf, 2, 3)));
void coffer_buffer_vprintf (struct coffer_buffer *buffer, const char *fmt,
                            va_list ap) __attribute__ ((format (printf, 2, 0)));
/* Adds bytes of anybody as text for people: what is not UTF-8 becomes \xNN, and
 * characters that move the cursor, reorder or hide text become \n, \t, \r,
 * \xNN or \u{202e}; everything else stays. */
void coffer_buffer_add_escaped (struct coffer_buffer *buffer,
                                const void *bytes, size_t size);
/* Adds each string of a vector (NULL: none) with its NUL.  How many. */
uint32_t coffer_buffer_add_vector (struct coffer_buffer *buffer,
                                   const char *const *strings);
/* Empties it and keeps its memory; gives its memory back. */
void coffer_buffer_clear (struct coffer_buffer *buffer);
void coffer_buffer_free (struct coffer_buffer *buffer);
/* The bytes, which the caller frees, or NULL with errno ENOMEM when an
 * addition failed.  The buffer is empty afterwards. */
char *coffer_buffer_steal (struct coffer_buffer *buffer);

#define coffer_autobuffer __attribute__ ((cleanup (coffer_buffer_free)))

/* The length of the UTF-8 character that `bytes` begin with, and the character
 * itself; 0 when they are not UTF-8 (overlong, a surrogate, cut off) or none. */
size_t coffer_utf8_decode (const void *bytes, size_t size, uint32_t *point);

/* A NULL-terminated vector of strings that it owns. */
struct coffer_strings {
  char **items;                 /* NULL when empty and never added to */
  size_t count;                 /* without the NULL at the end */
  size_t capacity;              /* for these functions only */
  int failed;                   /* as above */
};

void coffer_strings_add (struct coffer_strings *strings, const char *s);
void coffer_strings_printf (struct coffer_strings *strings, const char *fmt,
                            ...) __attribute__ ((format (printf, 2, 3)));
/* Adds NAME=VALUE in the place of another of that name, as environments do. */
void coffer_strings_set (struct coffer_strings *strings, const char *entry);
void coffer_strings_free (struct coffer_strings *strings);
/* As a strv for the contract, until the next change: never NULL. */
const char *const *coffer_strings_view (const struct coffer_strings *strings);

/* What coffer_buffer_add_vector has added, from bytes of anybody: the string at
 * *at, which moves behind its NUL.  NULL: there is no whole one before `end`. */
const char *coffer_strings_next (const char **at, const char *end);
/* The next `n` as a vector, which the caller frees; the strings stay where they
 * are.  NULL with errno EPROTO: there are not so many.  *at moves on success. */
const char **coffer_strings_split (const char **at, const char *end, size_t n);

#define coffer_autostrings __attribute__ ((cleanup (coffer_strings_free)))

#ifdef __cplusplus
}
#endif

#endif /* COFFER_BUFFER_H */
