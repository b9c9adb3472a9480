/* SPDX-License-Identifier: Apache-2.0 */
/* Growing buffers and string vectors.  A failed allocation sets `failed` and
 * turns every later call into a no-op, so that a builder checks once at the
 * end.  Part of libcoffer-provider.a; no locks, no globals. */

#ifndef COFFER_BUFFER_H
#define COFFER_BUFFER_H

#include <stdarg.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct coffer_buffer {
  char *data;                   /* NUL-terminated beyond size; NULL when empty */
  size_t size;
  size_t capacity;
  int failed;
};

void coffer_buffer_add (struct coffer_buffer *buffer, const void *bytes,
                        size_t size);
void coffer_buffer_add_string (struct coffer_buffer *buffer, const char *s);
void coffer_buffer_printf (struct coffer_buffer *buffer, const char *fmt, ...)
  __attribute__ ((format (printf, 2, 3)));
void coffer_buffer_vprintf (struct coffer_buffer *buffer, const char *fmt,
                            va_list ap) __attribute__ ((format (printf, 2, 0)));
void coffer_buffer_clear (struct coffer_buffer *buffer);
void coffer_buffer_free (struct coffer_buffer *buffer);
/* The bytes, which the caller frees, or NULL with errno ENOMEM when an
 * addition failed.  The buffer is empty afterwards. */
char *coffer_buffer_steal (struct coffer_buffer *buffer);

#define coffer_autobuffer __attribute__ ((cleanup (coffer_buffer_free)))

/* A NULL-terminated vector of strings that it owns. */
struct coffer_strings {
  char **items;                 /* NULL when empty and never added to */
  size_t count;
  size_t capacity;
  int failed;
};

void coffer_strings_add (struct coffer_strings *strings, const char *s);
void coffer_strings_printf (struct coffer_strings *strings, const char *fmt,
                            ...) __attribute__ ((format (printf, 2, 3)));
void coffer_strings_free (struct coffer_strings *strings);
/* As a strv for the contract: never NULL. */
const char *const *coffer_strings_view (const struct coffer_strings *strings);

#define coffer_autostrings __attribute__ ((cleanup (coffer_strings_free)))

#ifdef __cplusplus
}
#endif

#endif /* COFFER_BUFFER_H */
