/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 by libmd, and whole blocks by the processor's own instructions where
 * it has them: hashing the module is a good part of the start of `coffer run`,
 * and libmd takes seven times as long. */

#include <config.h>

#include "base/sha256.h"

#include <stdint.h>
#include <string.h>

#ifdef __x86_64__
#include <immintrin.h>
#if __has_include (<sys/platform/x86.h>)
#include <sys/platform/x86.h>
#define HAVE_X86_FEATURES 1
#else
#include <cpuid.h>
#endif
#endif

#include "base/text.h"

#ifdef __x86_64__

static const uint32_t round_constants[64] __attribute__ ((aligned (16))) = {
  0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
  0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
  0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
  0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
  0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
  0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
  0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
  0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
  0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
  0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
  0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2
};

/* By what the C library found out at its start, where it tells: in a virtual
 * machine each question to the processor itself takes some 20 µs. */
#ifdef HAVE_X86_FEATURES

static int
has_instructions (void)
{
  return CPU_FEATURE_PRESENT (SSSE3) && CPU_FEATURE_PRESENT (SSE4_1)
         && CPU_FEATURE_PRESENT (SHA);
}

#else

static int
has_instructions (void)
{
  static _Atomic int known;     /* 1: no, 2: yes; every thread finds the same */
  int answer = known;
  unsigned a, b, c, d, c1;

  if (answer == 0) {
    answer = __get_cpuid (1, &a, &b, &c1, &d) && (c1 & bit_SSSE3)
             && (c1 & bit_SSE4_1) && __get_cpuid_count (7, 0, &a, &b, &c, &d)
             && (b & (1u << 29)) ? 2 : 1;
    known = answer;
  }
  return answer == 2;
}

#endif

/* Two rounds are one instruction, whose operands hold the eight working words
 * as A B E F and C D G H; after it the old A B E F are the new C D G H. */
__attribute__ ((target ("ssse3,sse4.1,sha"))) static void
add_blocks (uint32_t *state, const uint8_t *bytes, size_t blocks)
{
  const __m128i swap = _mm_set_epi32 (0x0c0d0e0f, 0x08090a0b, 0x04050607,
                                      0x00010203);
  __m128i abef = _mm_set_epi32 ((int) state[0], (int) state[1],
                                (int) state[4], (int) state[5]);
  __m128i cdgh = _mm_set_epi32 ((int) state[2], (int) state[3],
                                (int) state[6], (int) state[7]);

  for (; blocks; blocks--, bytes += 64) {
    const __m128i abef_before = abef, cdgh_before = cdgh;
    __m128i w[4];
    unsigned i;

    for (i = 0; i < 4; i++)
      w[i] = _mm_shuffle_epi8 (
        _mm_loadu_si128 ((const __m128i_u *) (bytes + 16 * i)), swap);
#pragma GCC unroll 16
    for (i = 0; i < 16; i++) {
      __m128i *now = &w[i & 3], next;
      const void *constants = &round_constants[4 * i];
      __m128i sum = _mm_add_epi32 (*now, _mm_load_si128 (constants));

      next = _mm_sha256rnds2_epu32 (cdgh, abef, sum);
      cdgh = _mm_sha256rnds2_epu32 (abef, next, _mm_shuffle_epi32 (sum, 0x0e));
      /* cdgh is now the newest A B E F, and `next` what C D G H must be. */
      abef = cdgh;
      cdgh = next;
      if (i < 12) {             /* the words of four groups later */
        const __m128i last = w[(i + 3) & 3];

        next = _mm_sha256msg1_epu32 (*now, w[(i + 1) & 3]);
        next = _mm_add_epi32 (next,
                              _mm_alignr_epi8 (last, w[(i + 2) & 3], 4));
        *now = _mm_sha256msg2_epu32 (next, last);
      }
    }
    abef = _mm_add_epi32 (abef, abef_before);
    cdgh = _mm_add_epi32 (cdgh, cdgh_before);
  }
  state[0] = (uint32_t) _mm_extract_epi32 (abef, 3);
  state[1] = (uint32_t) _mm_extract_epi32 (abef, 2);
  state[4] = (uint32_t) _mm_extract_epi32 (abef, 1);
  state[5] = (uint32_t) _mm_extract_epi32 (abef, 0);
  state[2] = (uint32_t) _mm_extract_epi32 (cdgh, 3);
  state[3] = (uint32_t) _mm_extract_epi32 (cdgh, 2);
  state[6] = (uint32_t) _mm_extract_epi32 (cdgh, 1);
  state[7] = (uint32_t) _mm_extract_epi32 (cdgh, 0);
}

/* Takes as many whole blocks as there are between two of libmd's. */
static size_t
take_blocks (SHA2_CTX *context, const uint8_t *bytes, size_t size)
{
  const size_t blocks = size / 64;

  if (blocks == 0 || context->bitcount[0] % 512 != 0 || !has_instructions ())
    return 0;
  add_blocks (context->state.st32, bytes, blocks);
  context->bitcount[0] += (uint64_t) blocks * 512;
  return blocks * 64;
}

#else

static size_t
take_blocks (SHA2_CTX *context, const uint8_t *bytes, size_t size)
{
  (void) context;
  (void) bytes;
  (void) size;
  return 0;
}

#endif

void
sha256_begin (SHA2_CTX *context)
{
  SHA256Init (context);
}

void
sha256_add (SHA2_CTX *context, const void *bytes, size_t size)
{
  const uint8_t *p = bytes;
  size_t begun = (size_t) (context->bitcount[0] / 8 % 64), taken;

  if (begun && begun + size >= 64) {    /* up to the next whole block */
    SHA256Update (context, p, 64 - begun);
    p += 64 - begun;
    size -= 64 - begun;
  }
  taken = take_blocks (context, p, size);
  if (size > taken)
    SHA256Update (context, p + taken, size - taken);
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
