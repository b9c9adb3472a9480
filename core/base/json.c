/* SPDX-License-Identifier: Apache-2.0 */
/* Small helpers over jansson. */

#include <config.h>

#include "base/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define JSON_MAX_DEPTH 32
/* Each takes a hundred bytes and more in memory, and two in a text. */
#define JSON_MAX_VALUES (1 << 18)
#define JSON_EXACT_MAX ((uint64_t) 1 << 53)

/* jansson's own bound on depth is 2048 levels of recursion, and it has none on
 * how many values there are; these are counted on the text, before it begins.
 * A comma or a bracket stands before each value but the first. */
static int
text_fits (const char *bytes, size_t size, size_t *count, const char **what)
{
  size_t depth = 0, values = 1;
  int in_string = 0;

  for (size_t i = 0; i < size; i++) {
    char c = bytes[i];

    if (in_string) {
      if (c == '\\')
        i++;
      else if (c == '"')
        in_string = 0;
    } else if (c == '"')
      in_string = 1;
    else if (c == '[' || c == '{' || c == ',')
      values++, depth += c != ',';
    else if ((c == ']' || c == '}') && depth)
      depth--;
    if (depth > JSON_MAX_DEPTH || values > JSON_MAX_VALUES) {
      *what = depth > JSON_MAX_DEPTH ? "is nested too deep"
                                     : "has too many values";
      return 0;
    }
  }
  *count = values;
  return 1;
}

int
json_parse_counted (const char *bytes, size_t size, json_t **out,
                    size_t *count, struct error **err)
{
  json_error_t where;
  const char *what;
  json_t *value;

  if (!text_fits (bytes, size, count, &what))
    return error_set (err, E_INVALID, 0, "JSON that %s: at most %d levels and "
                      "%d values", what, JSON_MAX_DEPTH, JSON_MAX_VALUES);
  value = json_loadb (bytes, size,
                      JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &where);
  if (!value)
    return error_set (err, E_INVALID, 0, "not JSON: line %d, column %d: %s",
                      where.line, where.column, where.text);
  *out = value;
  return 0;
}

int
json_parse (const char *bytes, size_t size, json_t **out, struct error **err)
{
  size_t count;

  return json_parse_counted (bytes, size, out, &count, err);
}

json_t *
json_bytes (const char *bytes, size_t size)
{
  auto_free char *coded = NULL;

  if (!bytes)
    return json_null ();
  if (!memchr (bytes, '\0', size) && text_is_utf8 (bytes, size))
    return json_stringn_nocheck (bytes, size);
  coded = text_base64_encode (bytes, size);
  return coded ? json_pack ("{s:s}", "b64", coded) : NULL;
}

json_t *
json_encoded (const char *bytes, size_t size)
{
  auto_free char *encoded = NULL;

  if (text_is_utf8 (bytes, size))
    return json_pack ("{s:s, s:s%}", "encoding", "utf-8", "data", bytes, size);
  encoded = text_base64_encode (bytes, size);
  if (!encoded)
    return NULL;
  return json_pack ("{s:s, s:s}", "encoding", "base64", "data", encoded);
}

/* Inside coffer, bytes that are no text are {"b64": …}; outside they name
 * their encoding. */
void
json_name_encodings (json_t *value)
{
  json_t *item, *b64;
  const char *key;
  size_t i;
  void *next;

  if (json_is_array (value))
    json_array_foreach (value, i, item)
      json_name_encodings (item);
  if (!json_is_object (value))
    return;
  b64 = json_object_get (value, "b64");
  if (json_object_size (value) == 1 && json_is_string (b64)) {
    json_incref (b64);
    json_object_clear (value);
    json_object_set_new (value, "encoding", json_string ("base64"));
    json_object_set_new (value, "data", b64);
    return;
  }
  json_object_foreach_safe (value, next, key, item)
    json_name_encodings (item);
}

json_t *
json_texts (const char *const *texts)
{
  json_t *array = json_array ();

  for (; texts && *texts; texts++)
    json_array_append_new (array, json_bytes (*texts, strlen (*texts)));
  return array;
}

json_t *
json_u64 (uint64_t value)
{
  char digits[24];

  if (value <= JSON_EXACT_MAX)
    return json_integer ((json_int_t) value);
  snprintf (digits, sizeof digits, "%" PRIu64, value);
  return json_string (digits);
}

int
json_get_u64 (const json_t *value, uint64_t *out)
{
  if (json_is_integer (value) && json_integer_value (value) >= 0) {
    *out = (uint64_t) json_integer_value (value);
    return 0;
  }
  if (json_is_string (value)
      && strlen (json_string_value (value)) == json_string_length (value))
    return text_parse_u64 (json_string_value (value), 0, UINT64_MAX, out);
  return -1;
}

void
json_put_text (json_t *object, const char *key, const char *text)
{
  if (text)
    json_object_set_new (object, key, json_bytes (text, strlen (text)));
}

void
json_put_u64 (json_t *object, const char *key, uint64_t value)
{
  if (value)
    json_object_set_new (object, key, json_u64 (value));
}

void
json_put_texts (json_t *object, const char *key, const char *const *texts)
{
  if (texts && *texts)
    json_object_set_new (object, key, json_texts (texts));
}

char *
json_text (const json_t *value)
{
  return json_dumps (value, JSON_COMPACT | JSON_ENCODE_ANY);
}

/* It is the value's own memory, and nobody's constant. */
static void
wipe_text (const char *text, size_t size)
{
  explicit_bzero ((char *) (uintptr_t) text, size);
}

static void
wipe_value (json_t *value)
{
  const char *key;
  json_t *item;
  size_t i;

  if (json_is_string (value))
    wipe_text (json_string_value (value), json_string_length (value));
  json_array_foreach (value, i, item)
    wipe_value (item);
  json_object_foreach (value, key, item)
    wipe_value (item);
}

void
json_wipe (json_t *take_json)
{
  wipe_value (take_json);
  json_decref (take_json);
}
