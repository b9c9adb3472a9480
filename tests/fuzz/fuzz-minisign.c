/* SPDX-License-Identifier: Apache-2.0 */
/* Keys and signatures of minisign: what is taken has one spelling, so that no
 * other bytes of the same length say the same. */

#include <config.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/minisign.h"
#include "base/text.h"

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size);

static void
must (int holds)
{
  if (!holds)
    abort ();
}

/* The base64 of what was read stands in the text. */
static void
is_written (const char *bytes, size_t size, const char *kind,
            const uint8_t id[8], const uint8_t *rest, size_t n)
{
  uint8_t raw[74];
  auto_free char *coded = NULL;

  memcpy (raw, kind, 2);
  memcpy (raw + 2, id, 8);
  memcpy (raw + 10, rest, n);
  coded = text_base64_encode (raw, 10 + n);
  must (coded && memmem (bytes, size, coded, strlen (coded)));
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  char *bytes = malloc (size ? size : 1);       /* its end is the sanitizer's */
  struct minisign_signature signature;
  struct minisign_key key;
  char id[MINISIGN_ID_SIZE];

  must (bytes != NULL);
  if (size > 0)
    memcpy (bytes, data, size);
  if (minisign_read_key (bytes, size, &key) == NULL)
    is_written (bytes, size, "Ed", key.id, key.key, sizeof key.key);
  if (minisign_read_signature (bytes, size, &signature) == NULL) {
    must (signature.comment_size == strlen (signature.comment));
    must (text_is_utf8 (signature.comment, signature.comment_size));
    must (strchr (signature.comment, '\n') == NULL);
    is_written (bytes, size, "ED", signature.id, signature.signature,
                sizeof signature.signature);
    minisign_id_text (signature.id, id);
    must (strlen (id) > 0 && strlen (id) < sizeof id);
  }
  free (bytes);
  return 0;
}
