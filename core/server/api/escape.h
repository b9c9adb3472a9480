/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes into the text of a JSON string, at the rate of memory: for streams.
 * Each writes at most `room` bytes of what is whole, says in *used how many of
 * `from` they stand for, and returns how many they are. */

#ifndef SERVER_API_ESCAPE_H
#define SERVER_API_ESCAPE_H

#include <stddef.h>

/* What must not stand in a JSON string as it is becomes an escape.  The bytes
 * are UTF-8. */
size_t escape_json (char *out, size_t room, const unsigned char *from,
                    size_t size, size_t *used);
/* `size` bytes in all as base64: the last of them are padded. */
size_t escape_base64 (char *out, size_t room, const unsigned char *from,
                      size_t size, size_t *used);
/* Whether it is UTF-8. */
int escape_is_text (const unsigned char *bytes, size_t size);

#endif /* SERVER_API_ESCAPE_H */
