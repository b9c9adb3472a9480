/* SPDX-License-Identifier: Apache-2.0 */
/* See fields.h. */

#include <config.h>

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "server/api/fields.h"

#define FIELDS_MAX 64
#define NUMBER_TEXT 32

int
field_fail (const char *name, struct error **err, const char *fmt, ...)
{
  coffer_autobuffer struct coffer_buffer text = { 0 };
  va_list ap;

  va_start (ap, fmt);
  coffer_buffer_vprintf (&text, fmt, ap);
  va_end (ap);
  error_set (err, E_SANDBOX_SPEC, 0, "%s: %s", name,
             text.data ? text.data : "not valid");
  error_detail (err, "field", json_string (name));
  return -1;
}

static int
field_unknown (const char *name, const struct field *table,
               struct error **err)
{
  const char *known[FIELDS_MAX + 1] = { NULL }, *nearest;
  auto_free char *shown = text_escape (name, strnlen (name, 64));
  size_t i;

  for (i = 0; table[i].name && i < FIELDS_MAX; i++)
    known[i] = table[i].name;
  nearest = text_nearest (name, known);
  error_set (err, E_SANDBOX_SPEC, 0, "there is no field %s",
             shown ? shown : "of that name");
  error_detail (err, "field", json_string (name));
  if (nearest)
    error_hint (err, "did you mean %s?", nearest);
  return -1;
}

int
fields_read (const json_t *body, const struct field *table, void *out,
             struct error **err)
{
  const struct field *field;
  const char *name;
  json_t *value;

  json_object_foreach ((json_t *) body, name, value) {
    for (field = table; field->name && strcmp (field->name, name) != 0;
         field++)
      ;
    if (!field->name)
      return field_unknown (name, table, err);
    /* As if it were not there. */
    if (json_is_null (value))
      continue;
    if (field->read (name, value, (char *) out + field->offset, err) < 0)
      return -1;
  }
  return 0;
}

int
fields_none (const json_t *body, struct error **err)
{
  static const struct field nothing[] = { { NULL, NULL, 0 } };

  return fields_read (body, nothing, NULL, err);
}

/* ---- texts ---------------------------------------------------------------- */

int
field_bytes (const char *name, const json_t *value, char **out, size_t *size,
             struct error **err)
{
  const char *b64 = json_string_value (json_object_get (value, "b64"));
  const char *encoding
    = json_string_value (json_object_get (value, "encoding"));
  const json_t *data = json_object_get (value, "data");

  if (encoding && strcmp (encoding, "base64") == 0)
    b64 = json_string_value (data);
  else if (encoding && strcmp (encoding, "utf-8") == 0)
    value = data;
  if (b64)
    return text_base64_decode (b64, out, size) < 0
             ? field_fail (name, err, "is no base64") : 0;
  if (!json_is_string (value))
    return field_fail (name, err, "must be a string, or {\"encoding\":"
                       " \"base64\", \"data\": …}");
  *size = json_string_length (value);
  *out = malloc (*size + 1);
  if (!*out)
    return error_set (err, E_NO_MEMORY, 0, "%s", name);
  memcpy (*out, json_string_value (value), *size + 1);
  return 0;
}

/* NUL-terminated, and none inside. */
static int
field_string (const char *name, const json_t *value, char **out,
              struct error **err)
{
  char *bytes = NULL, *text;
  size_t size = 0;

  if (field_bytes (name, value, &bytes, &size, err) < 0)
    return -1;
  if (memchr (bytes, '\0', size)) {
    free (bytes);
    return field_fail (name, err, "has a NUL");
  }
  text = realloc (bytes, size + 1);
  if (!text) {
    free (bytes);
    return error_set (err, E_NO_MEMORY, 0, "%s", name);
  }
  text[size] = '\0';
  *out = text;
  return 0;
}

int
field_text (const char *name, const json_t *value, void *out,
            struct error **err)
{
  if (!json_is_string (value)
      || strlen (json_string_value (value)) != json_string_length (value))
    return field_fail (name, err, "must be a string");
  *(const char **) out = json_string_value (value);
  return 0;
}

int
field_path (const char *name, const json_t *value, void *out,
            struct error **err)
{
  return field_string (name, value, out, err);
}

static int
add_words (const char *name, const json_t *value, int numbers,
           struct coffer_strings *out, struct error **err)
{
  const json_t *item;
  size_t i;

  if (!json_is_array (value))
    return field_fail (name, err, "must be a list");
  json_array_foreach (value, i, item) {
    auto_free char *text = NULL;

    if (numbers && json_is_integer (item)) {
      coffer_strings_printf (out, "%" JSON_INTEGER_FORMAT,
                             json_integer_value (item));
      continue;
    }
    if (field_string (name, item, &text, err) < 0)
      return -1;
    coffer_strings_add (out, text);
  }
  return out->failed ? error_set (err, E_NO_MEMORY, 0, "%s", name) : 0;
}

int
field_words (const char *name, const json_t *value, void *out,
             struct error **err)
{
  return add_words (name, value, 0, out, err);
}

int
field_numbers (const char *name, const json_t *value, void *out,
               struct error **err)
{
  return add_words (name, value, 1, out, err);
}

int
field_pairs (const char *name, const json_t *value, void *out,
             struct error **err)
{
  struct coffer_strings *strings = out;
  const char *key;
  json_t *item;

  if (!json_is_object (value))
    return add_words (name, value, 0, out, err);
  json_object_foreach ((json_t *) value, key, item) {
    auto_free char *text = NULL;

    if (!*key || strchr (key, '='))
      return field_fail (name, err, "a name is empty or has a =");
    if (field_string (name, item, &text, err) < 0)
      return -1;
    coffer_strings_printf (strings, "%s=%s", key, text);
  }
  return strings->failed ? error_set (err, E_NO_MEMORY, 0, "%s", name) : 0;
}

/* ---- numbers -------------------------------------------------------------- */

int
field_flag (const char *name, const json_t *value, void *out,
            struct error **err)
{
  if (!json_is_boolean (value))
    return field_fail (name, err, "must be true or false");
  *(int *) out = json_is_true (value);
  return 0;
}

int
field_u64 (const char *name, const json_t *value, void *out,
           struct error **err)
{
  if (json_get_u64 (value, out) < 0)
    return field_fail (name, err, "must be a whole number from 0 on");
  return 0;
}

int
field_u32 (const char *name, const json_t *value, void *out,
           struct error **err)
{
  uint64_t number = 0;

  if (field_u64 (name, value, &number, err) < 0)
    return -1;
  if (number > UINT32_MAX)
    return field_fail (name, err, "is too large");
  *(uint32_t *) out = (uint32_t) number;
  return 0;
}

/* A number as it would be written in a file, for the same reader. */
static const char *
number_text (const json_t *value, char out[NUMBER_TEXT])
{
  if (json_is_integer (value))
    snprintf (out, NUMBER_TEXT, "%" JSON_INTEGER_FORMAT,
              json_integer_value (value));
  else if (json_is_real (value) && fabs (json_real_value (value)) < 1e12)
    snprintf (out, NUMBER_TEXT, "%.3f", json_real_value (value));
  else
    return json_string_value (value);
  return out;
}

int
field_size (const char *name, const json_t *value, void *out,
            struct error **err)
{
  char text[NUMBER_TEXT];
  const char *word = number_text (value, text);

  if (!word || text_parse_size (word, out) < 0)
    return field_fail (name, err, "must be a number of bytes, or a size such"
                       " as \"512M\"");
  return 0;
}

int
field_duration (const char *name, const json_t *value, void *out,
                struct error **err)
{
  char text[NUMBER_TEXT];
  const char *word = number_text (value, text);

  if (json_is_real (value) && json_real_value (value) >= 0
      && json_real_value (value) < 1e11) {
    *(uint64_t *) out = (uint64_t) (json_real_value (value) * 1000);
    return 0;
  }
  if (!word || text_parse_duration (word, out) < 0)
    return field_fail (name, err, "must be a number of seconds, or a time"
                       " such as \"30m\"");
  return 0;
}

int
field_millis (const char *name, const json_t *value, void *out,
              struct error **err)
{
  char text[NUMBER_TEXT];
  const char *word = number_text (value, text);
  uint64_t millis;

  if (!word || text_parse_millis (word, &millis) < 0 || millis > UINT32_MAX)
    return field_fail (name, err, "must be a number such as 1.5");
  *(uint32_t *) out = (uint32_t) millis;
  return 0;
}
