/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-1 and base64, for the handshake of WebSocket alone, where neither keeps
 * anything secret or whole: a library of cryptography would be one more that
 * every provider loads. */

#include <string.h>

#include "internal.h"

static uint32_t
rotate (uint32_t value, unsigned by)
{
  return value << by | value >> (32 - by);
}

static void
block_add (uint32_t state[5], const uint8_t *block)
{
  uint32_t w[80], a = state[0], b = state[1], c = state[2], d = state[3],
           e = state[4], f, k, next;

  for (int i = 0; i < 16; i++)
    w[i] = (uint32_t) block[4 * i] << 24 | (uint32_t) block[4 * i + 1] << 16
           | (uint32_t) block[4 * i + 2] << 8 | block[4 * i + 3];
  for (int i = 16; i < 80; i++)
    w[i] = rotate (w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
  for (int i = 0; i < 80; i++) {
    f = i < 20 ? (b & c) | (~b & d)
        : i >= 40 && i < 60 ? (b & c) | (b & d) | (c & d) : b ^ c ^ d;
    k = i < 20 ? 0x5a827999 : i < 40 ? 0x6ed9eba1
        : i < 60 ? 0x8f1bbcdc : 0xca62c1d6;
    next = rotate (a, 5) + f + e + k + w[i];
    e = d;
    d = c;
    c = rotate (b, 30);
    b = a;
    a = next;
  }
  state[0] += a;
  state[1] += b;
  state[2] += c;
  state[3] += d;
  state[4] += e;
}

void
http_sha1 (const void *bytes, size_t size, uint8_t out[20])
{
  uint32_t state[5] = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476,
                        0xc3d2e1f0 };
  const uint64_t bits = (uint64_t) size * 8;
  const uint8_t *at = bytes;
  uint8_t last[128] = { 0 };
  size_t n, total;

  for (n = size; n >= 64; n -= 64, at += 64)
    block_add (state, at);
  if (n > 0)
    memcpy (last, at, n);
  last[n] = 0x80;
  total = n < 56 ? 64 : 128;
  for (int i = 0; i < 8; i++)
    last[total - 1 - (size_t) i] = (uint8_t) (bits >> (8 * i));
  for (size_t i = 0; i < total; i += 64)
    block_add (state, last + i);
  for (int i = 0; i < 20; i++)
    out[i] = (uint8_t) (state[i / 4] >> (24 - 8 * (i % 4)));
}

void
http_base64 (const void *bytes, size_t size, char *out)
{
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                               "abcdefghijklmnopqrstuvwxyz0123456789+/";
  const uint8_t *at = bytes;
  uint32_t word;
  size_t n;

  for (; size > 0; size -= n, at += n) {
    n = size < 3 ? size : 3;
    word = (uint32_t) at[0] << 16 | (n > 1 ? (uint32_t) at[1] << 8 : 0)
           | (n > 2 ? at[2] : 0U);
    *out++ = digits[word >> 18];
    *out++ = digits[word >> 12 & 63];
    *out++ = n > 1 ? digits[word >> 6 & 63] : '=';
    *out++ = n > 2 ? digits[word & 63] : '=';
  }
  *out = '\0';
}
