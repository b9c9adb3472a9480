/* SPDX-License-Identifier: Apache-2.0 */
/* Setting a key in any text: what comes out reads as the text with that key,
 * and setting it again, or taking out what is not there, changes nothing. */

#include <config.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/yaml.h"

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size);

static const struct yaml_source source = { "text", E_CONFIG };

static void
must (int holds)
{
  if (!holds)
    abort ();
}

static void
edit_twice (const char *bytes, size_t size, const char *value)
{
  auto_free char *out = NULL, *again = NULL;
  auto_yaml struct yaml_node *root = NULL;
  auto_error struct error *err = NULL;
  size_t n = 0, m = 0;

  if (yaml_edit (bytes, size, &source, "key", value, &out, &n, &err) < 0) {
    must (err && !strchr (error_message (err), '\n'));
    return;
  }
  must (yaml_edit (out, n, &source, "key", value, &again, &m, NULL) == 0);
  must (n == m && memcmp (out, again, n) == 0);
  if (!yaml_is_blank (out, n))
    must (yaml_read (out, n, "text", E_CONFIG, &root, NULL) == 0);
  must ((yaml_get (root, "key") != NULL) == (value != NULL));
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  char *bytes = malloc (size + 1);      /* as a file is read: with a NUL */

  must (bytes != NULL);
  if (size > 0)
    memcpy (bytes, data, size);
  bytes[size] = '\0';
  edit_twice (bytes, size, "word");
  edit_twice (bytes, size, NULL);
  free (bytes);
  return 0;
}
