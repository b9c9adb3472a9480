/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of libcoffer-http.a share and no one else sees. */

#ifndef HTTP_INTERNAL_H
#define HTTP_INTERNAL_H

#include <stddef.h>
#include <stdint.h>

/* ---- websocket.c ---- */

int websocket_is_kind (unsigned kind);
int websocket_is_control (unsigned kind);
int websocket_is_utf8 (const char *text, size_t size);
/* One that may be sent. */
int websocket_is_close_code (uint16_t code);
/* The same masks and unmasks; `at` is where in the frame `bytes` are. */
void websocket_mask (char *bytes, size_t size, const uint8_t key[4],
                     uint64_t at);

/* ---- digest.c ---- */

void http_sha1 (const void *bytes, size_t size, uint8_t out[20]);
/* Writes 4 * ((size + 2) / 3) characters and a NUL. */
void http_base64 (const void *bytes, size_t size, char *out);

#endif /* HTTP_INTERNAL_H */
