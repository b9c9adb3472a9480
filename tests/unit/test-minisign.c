/* SPDX-License-Identifier: Apache-2.0 */
/* core/base/minisign.c: what minisign 0.11 wrote is taken, and nothing that
 * differs from it in anything but its comments. */

#include <config.h>

#include "harness.h"

#include "base/minisign.h"

#define KEY                                                                   \
  "untrusted comment: minisign public key A73ADE55F8D3F8BD\n"                 \
  "RWS9+NP4Vd46p5FaMx3eTrPLlnzjxiyXWn8eLofOwdxgDZv1RfaN+V4F\n"
#define LINE_1 "untrusted comment: signature from minisign secret key\n"
#define LINE_2                                                                \
  "RUS9+NP4Vd46pyyF7EdMUa/WTGV50pDeoI9QsRej4FiBHnPXDOj5vrIQ9OMBZ3w5VvyVS0Rs1" \
  "zBfusnEn5z4Jh8URgA3CtHpEw4=\n"
#define LINE_3 "trusted comment: caf\xc3\xa9 \xe2\x98\x83\n"
#define LINE_4                                                                \
  "fKtZML+lYmovL7MHMAVMruCIsYVeJGzErnmj9Xe86fiZihxWXT9oAhyxuuiSUC6JdOI7D4U5f" \
  "2ic90SKNU09Aw==\n"
#define SIGNATURE LINE_1 LINE_2 LINE_3 LINE_4
/* What minisign -l writes: the second letter is the difference. */
#define LEGACY                                                                \
  LINE_1                                                                      \
  "RWS9+NP4Vd46p12rtvY0qp7VM7XUEqq+mHEUP8sEgvuxrsXWstDYVoH4S1Z9fFuIBFHdt5SWb" \
  "LcY24vuW1hRTSw/cxitJWzMTwY=\n"                                             \
  LINE_3 LINE_4

static const char *
key_fault (const char *text)
{
  struct minisign_key key;

  return minisign_read_key (text, strlen (text), &key);
}

static const char *
fault (const char *text)
{
  struct minisign_signature signature;

  return minisign_read_signature (text, strlen (text), &signature);
}

static void
what_minisign_writes_is_read (void **state)
{
  struct minisign_signature signature;
  struct minisign_key key;
  char id[MINISIGN_ID_SIZE];

  (void) state;
  assert_null (minisign_read_key (KEY, strlen (KEY), &key));
  minisign_id_text (key.id, id);
  assert_string_equal (id, "A73ADE55F8D3F8BD");
  assert_int_equal (key.key[0], 0x91);
  assert_int_equal (key.key[31], 0x05);
  assert_null (minisign_read_signature (SIGNATURE, strlen (SIGNATURE),
                                        &signature));
  minisign_id_text (signature.id, id);
  assert_string_equal (id, "A73ADE55F8D3F8BD");
  assert_string_equal (signature.comment, "caf\xc3\xa9 \xe2\x98\x83");
  assert_int_equal (signature.comment_size, 9);
  assert_int_equal (signature.signature[0], 0x2c);
  assert_int_equal (signature.global[63], 0x03);
  minisign_id_text ((const uint8_t[8]){ 0xe3, 0x53, 0, 0, 0, 0, 0xf6, 6 }, id);
  assert_string_equal (id, "6F60000000053E3");
  assert_null (fault (LINE_1 LINE_2 "trusted comment: a\tb\n" LINE_4));
  assert_null (fault (LINE_1 LINE_2 "trusted comment: \n" LINE_4));
}

static void
the_old_kind_is_refused_and_says_so (void **state)
{
  (void) state;
  assert_non_null (strstr (fault (LEGACY), "minisign -H"));
}

static void
every_shorter_text_is_refused (void **state)
{
  struct minisign_signature signature;
  struct minisign_key key;
  size_t i;

  (void) state;
  /* Only the last newline may be missing. */
  for (i = 0; i < strlen (SIGNATURE) - 1; i++)
    assert_non_null (minisign_read_signature (SIGNATURE, i, &signature));
  assert_null (minisign_read_signature (SIGNATURE, i, &signature));
  for (i = 0; i < strlen (KEY) - 1; i++)
    assert_non_null (minisign_read_key (KEY, i, &key));
  assert_null (minisign_read_key (KEY, i, &key));
}

static void
what_differs_is_refused (void **state)
{
  static const char *const texts[] = {
    SIGNATURE "\n", SIGNATURE "x", "\n" SIGNATURE, LINE_2 LINE_3 LINE_4,
    LINE_1 LINE_2 LINE_4, LINE_1 LINE_1 LINE_2 LINE_3 LINE_4,
    LINE_1 " " LINE_2 LINE_3 LINE_4, LINE_1 LINE_2 LINE_3 " " LINE_4,
    LINE_1 LINE_4 LINE_3 LINE_2, LINE_1 LINE_2 "Trusted comment: x\n" LINE_4,
    LINE_1 LINE_2 "trusted comment: \x1b[2J\n" LINE_4,
    LINE_1 LINE_2 "trusted comment: \r\n" LINE_4,
    LINE_1 LINE_2 "trusted comment: \xff\n" LINE_4,
    "untrusted comment:\n" LINE_2 LINE_3 LINE_4, KEY, "", "\n", "{}"
  };
  size_t i;

  (void) state;
  for (i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    if (fault (texts[i]) == NULL)
      fail_msg ("taken as a signature: %s", texts[i]);
  }
  assert_non_null (key_fault (SIGNATURE));
  assert_non_null (key_fault (KEY "\n"));
  assert_non_null (key_fault (strchr (KEY, '\n') + 1));
}

static void
comments_and_files_have_caps (void **state)
{
  static char big[2 * MINISIGN_MAX_BYTES];
  int n;

  (void) state;
  n = snprintf (big, sizeof big, LINE_1 LINE_2 "trusted comment: ");
  memset (big + n, 'x', MINISIGN_COMMENT_MAX);
  snprintf (big + n + MINISIGN_COMMENT_MAX,
            sizeof big - (size_t) n - MINISIGN_COMMENT_MAX, "\n" LINE_4);
  assert_null (fault (big));
  memset (big + n, 'x', MINISIGN_COMMENT_MAX + 1);
  snprintf (big + n + MINISIGN_COMMENT_MAX + 1,
            sizeof big - (size_t) n - MINISIGN_COMMENT_MAX - 1, "\n" LINE_4);
  assert_non_null (fault (big));
  memset (big, 'x', sizeof big - 1);
  assert_non_null (strstr (fault (big), "4 KiB"));
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (what_minisign_writes_is_read),
    cmocka_unit_test (the_old_kind_is_refused_and_says_so),
    cmocka_unit_test (every_shorter_text_is_refused),
    cmocka_unit_test (what_differs_is_refused),
    cmocka_unit_test (comments_and_files_have_caps),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
