/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 as lower-case hex, by libmd: no start-up cost, unlike libcrypto. */

#ifndef BASE_SHA256_H
#define BASE_SHA256_H

#include <stddef.h>

#include <sha2.h>

#define SHA256_HEX_SIZE 65      /* with the NUL */

void sha256_hex (const void *bytes, size_t size, char out[SHA256_HEX_SIZE]);

/* A running hash. */
void sha256_begin (SHA2_CTX *context);
void sha256_add (SHA2_CTX *context, const void *bytes, size_t size);
void sha256_end (SHA2_CTX *context, char out[SHA256_HEX_SIZE]);

/* 64 lower-case hex digits? */
int sha256_is_hex (const char *s);

#endif /* BASE_SHA256_H */
