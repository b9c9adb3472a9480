/* SPDX-License-Identifier: Apache-2.0 */
/* core/base/sha256.c: published vectors, and the same as libmd alone whatever
 * the length and however the bytes come. */

#include <config.h>

#include "harness.h"

#include "base/sha256.h"
#include "base/text.h"

static void
published_vectors_hold (void **state)
{
  static const struct {
    const char *text, *hash;
  } vectors[] = {
    { "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
    { "abc",
      "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
    { "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
    { "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmno"
      "ijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
      "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1" },
  };
  char hash[SHA256_HEX_SIZE];
  char *million;
  size_t i;

  (void) state;
  for (i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
    sha256_hex (vectors[i].text, strlen (vectors[i].text), hash);
    assert_string_equal (hash, vectors[i].hash);
  }
  million = malloc (1000000);
  assert_non_null (million);
  memset (million, 'a', 1000000);
  sha256_hex (million, 1000000, hash);
  free (million);
  assert_string_equal (hash, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e"
                             "046d39ccc7112cd0");
}

static void
by_libmd (const uint8_t *bytes, size_t size, char *out)
{
  uint8_t digest[SHA256_DIGEST_LENGTH];
  SHA2_CTX context;

  SHA256Init (&context);
  SHA256Update (&context, bytes, size);
  SHA256Final (digest, &context);
  text_hex (digest, sizeof digest, out);
}

static void
pieces_of_any_length_give_the_hash_of_the_whole (void **state)
{
  uint8_t bytes[700];
  char want[SHA256_HEX_SIZE], got[SHA256_HEX_SIZE];
  size_t size, step, at;
  uint32_t x = 1;

  (void) state;
  for (size = 0; size < sizeof bytes; size++)
    bytes[size] = (uint8_t) ((x = x * 1103515245u + 12345u) >> 16);
  for (size = 0; size <= sizeof bytes; size++) {
    by_libmd (bytes, size, want);
    for (step = 1; step <= 300; step += step < 5 ? 1 : 59) {
      SHA2_CTX context;

      sha256_begin (&context);
      for (at = 0; at < size; at += step)
        sha256_add (&context, bytes + at,
                    size - at < step ? size - at : step);
      sha256_end (&context, got);
      assert_string_equal (got, want);
    }
    sha256_hex (bytes, size, got);
    assert_string_equal (got, want);
  }
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (published_vectors_hold),
    cmocka_unit_test (pieces_of_any_length_give_the_hash_of_the_whole),
  };

  return cmocka_run_group_tests_name ("sha256", tests, NULL, NULL);
}
