/* SPDX-License-Identifier: Apache-2.0 */
/* The kit's report as a receipt records it. */

#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/place.h"
#include "provider/conformance.h"

static const char *
text_of (const json_t *object, const char *key)
{
  return json_string_value (json_object_get (object, key));
}

static int
hash_of (const json_t *object, const char *key, char out[SHA256_HEX_SIZE])
{
  const char *text = text_of (object, key);

  if (text == NULL || !sha256_is_hex (text))
    return -1;
  memcpy (out, text, SHA256_HEX_SIZE);
  return 0;
}

static int
number_of (const json_t *object, const char *key, uint16_t *out)
{
  const json_t *value = json_object_get (object, key);
  const json_int_t number = json_integer_value (value);

  if (!json_is_integer (value) || number < 0 || number > UINT16_MAX)
    return -1;
  *out = (uint16_t) number;
  return 0;
}

/* A run of some cases alone says nothing of the others. */
static const char *
verdict_of (const json_t *report)
{
  static const char *const words[] = { "conformant", "failed", "incomplete" };
  const char *verdict = text_of (report, "verdict");
  size_t i;

  for (i = 0; verdict && i < 3; i++)
    if (strcmp (verdict, words[i]) == 0)
      return i == 0 && json_is_true (json_object_get (report, "partial"))
               ? words[2] : words[i];
  return NULL;
}

static int
fill (const json_t *report, struct receipt_conformance *out,
      struct error **err)
{
  const json_t *provider = json_object_get (report, "provider");
  const json_t *contract = json_object_get (report, "contract");
  const char *verdict = verdict_of (report), *kit = text_of (report, "kit");
  const char *mode = text_of (report, "mode"), *time = text_of (report, "time");
  const char *without = text_of (report, "without");

  if (verdict == NULL || kit == NULL || mode == NULL || time == NULL
      || hash_of (provider, "manifest_sha256", out->manifest_sha256) < 0
      || hash_of (provider, "module_sha256", out->module_sha256) < 0
      || number_of (contract, "major", &out->contract_major) < 0
      || number_of (contract, "minor", &out->contract_minor) < 0)
    return error_set (err, E_INVALID, 0,
                      CONFORMANCE_FILE " is no report of the kit");
  out->verdict = strdup (verdict);
  out->report = strdup (CONFORMANCE_FILE);
  out->kit = strdup (kit);
  out->mode = strdup (mode);
  out->time = strdup (time);
  if (without && (out->without = strdup (without)) == NULL)
    return error_set (err, E_NO_MEMORY, 0, CONFORMANCE_FILE);
  return out->verdict && out->report && out->kit && out->mode && out->time
           ? 0 : error_set (err, E_NO_MEMORY, 0, CONFORMANCE_FILE);
}

int
conformance_read (int dir_fd, struct receipt_conformance *out,
                  struct error **err)
{
  struct receipt_conformance read = { .verdict = NULL };
  auto_json json_t *report = NULL;
  auto_free char *bytes = NULL;
  size_t size = 0;

  if (place_read_trusted (dir_fd, CONFORMANCE_FILE, CONFORMANCE_FILE,
                          CONFORMANCE_MAX_BYTES, E_INVALID, &bytes, &size,
                          err) < 0
      || json_parse (bytes, size, &report, err) < 0)
    return -1;
  sha256_hex (bytes, size, read.report_sha256);
  if (fill (report, &read, err) < 0) {
    receipt_conformance_fini (&read);
    return -1;
  }
  receipt_conformance_fini (out);
  *out = read;
  return 0;
}
