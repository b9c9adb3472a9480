/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 by libmd. */

#include <config.h>

#include "base/sha256.h"

#include <stdint.h>
#include <string.h>

#include "base/text.h"

void
sha256_begin (SHA2_CTX *context)
{
  SHA256Init (context);
}

void
sha256_add (SHA2_CTX *context, const void *bytes, size_t size)
{
  if (size)
    SHA256Update (context, bytes, size);
}

void
sha256_end (SHA2_CTX *context, char out[SHA256_HEX_SIZE])
{
  uint8_t digest[SHA256_DIGEST_LENGTH];

  SHA256Final (digest, context);
  text_hex (digest, sizeof digest, out);
}

void
sha256_hex (const void *bytes, size_t size, char out[SHA256_HEX_SIZE])
{
  SHA2_CTX context;

  sha256_begin (&context);
  sha256_add (&context, bytes, size);
  sha256_end (&context, out);
}

int
sha256_is_hex (const char *s)
{
  return s && strlen (s) == SHA256_HEX_SIZE - 1
         && strspn (s, "0123456789abcdef") == SHA256_HEX_SIZE - 1;
}
