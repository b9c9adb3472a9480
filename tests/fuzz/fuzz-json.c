/* SPDX-License-Identifier: Apache-2.0 */
/* JSON and text from outside: what is accepted must come out again the same,
 * and what is shown to people must be text. */

#include <config.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"

int LLVMFuzzerTestOneInput (const uint8_t *bytes, size_t size);

static void
must (int holds)
{
  if (!holds)
    abort ();
}

static void
parse_twice (const char *bytes, size_t size)
{
  auto_error struct error *err = NULL;
  auto_json json_t *json = NULL;
  auto_json json_t *again = NULL;
  auto_free char *text = NULL;

  if (json_parse (bytes, size, &json, &err) < 0) {
    must (err && *error_message (err) && !strchr (error_message (err), '\n'));
    return;
  }
  must (!err);
  text = json_text (json);
  must (text && json_parse (text, strlen (text), &again, NULL) == 0);
  must (json_equal (json, again));
}

static void
show (const char *bytes, size_t size)
{
  auto_free char *text = text_escape (bytes, size);
  auto_free char *again = NULL;
  auto_json json_t *json = json_bytes (bytes, size);

  must (text && text_is_utf8 (text, strlen (text)));
  again = text_escape (text, strlen (text));
  must (again && strcmp (text, again) == 0);
  must (json != NULL);
}

static void
scalars (const char *bytes, size_t size)
{
  auto_free char *s = malloc (size + 1);
  auto_free char *decoded = NULL;
  auto_free char *coded = NULL;
  size_t n;
  uint64_t value = 0;

  must (s != NULL);
  memcpy (s, bytes, size);
  s[size] = '\0';
  if (text_parse_size (s, &value) == 0)
    must (value <= INT64_MAX);
  if (text_parse_duration (s, &value) == 0)
    must (value <= INT64_MAX);
  if (text_base64_decode (s, &decoded, &n) == 0) {
    coded = text_base64_encode (decoded, n);
    must (coded && strcmp (coded, s) == 0);
  }
}

int
LLVMFuzzerTestOneInput (const uint8_t *bytes, size_t size)
{
  parse_twice ((const char *) bytes, size);
  show ((const char *) bytes, size);
  scalars ((const char *) bytes, size);
  return 0;
}
