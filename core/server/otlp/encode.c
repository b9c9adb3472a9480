/* SPDX-License-Identifier: Apache-2.0 */
/* The two forms of OTLP/HTTP.  Spans are kept in the JSON one, so that it takes
 * only its frame; the other is written by hand, being ten messages that do not
 * change (opentelemetry.proto.trace.v1). */

#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "otlp.h"

/* ---- JSON ---------------------------------------------------------------- */

int
otlp_json (const struct otlp_origin *origin, const json_t *spans,
           struct coffer_buffer *out)
{
  json_t *whole = json_pack (
    "{s:[{s:{s:O}, s:[{s:{s:s, s:s}, s:O}]}]}", "resourceSpans", "resource",
    "attributes", origin->resource, "scopeSpans", "scope", "name",
    origin->scope, "version", origin->version, "spans", spans);
  char *text = whole ? json_dumps (whole, JSON_COMPACT) : NULL;

  json_decref (whole);
  if (text == NULL)
    return -1;
  coffer_buffer_add_string (out, text);
  free (text);
  return out->failed ? -1 : 0;
}

/* ---- protobuf ------------------------------------------------------------ */

enum wire { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2 };

static void
varint (struct coffer_buffer *out, uint64_t value)
{
  uint8_t byte;

  do {
    byte = value & 0x7f;
    value >>= 7;
    if (value)
      byte |= 0x80;
    coffer_buffer_add (out, &byte, 1);
  } while (value);
}

static void
tag (struct coffer_buffer *out, unsigned field, enum wire wire)
{
  varint (out, field << 3 | wire);
}

static void
bytes (struct coffer_buffer *out, unsigned field, const void *data,
       size_t size)
{
  tag (out, field, WIRE_BYTES);
  varint (out, size);
  coffer_buffer_add (out, data, size);
}

/* An absent text is its default, "", which is not written. */
static void
text (struct coffer_buffer *out, unsigned field, const json_t *value)
{
  size_t size = json_string_length (value);

  if (size > 0)
    bytes (out, field, json_string_value (value), size);
}

static void
fixed64 (struct coffer_buffer *out, unsigned field, uint64_t value)
{
  uint8_t little[8];
  int i;

  for (i = 0; i < 8; i++)
    little[i] = (uint8_t) (value >> (8 * i));
  tag (out, field, WIRE_FIXED64);
  coffer_buffer_add (out, little, sizeof little);
}

/* A message within a message; what it had room in is given back. */
static void
message (struct coffer_buffer *out, unsigned field,
         struct coffer_buffer *take_inner)
{
  if (take_inner->failed)
    out->failed = 1;
  bytes (out, field, take_inner->data ? take_inner->data : "",
         take_inner->size);
  coffer_buffer_free (take_inner);
}

/* An id in hex; one that is not there is not written. */
static int
id (struct coffer_buffer *out, unsigned field, const json_t *value,
    size_t size)
{
  const char *hex = json_string_value (value);
  uint8_t raw[16];
  size_t i;

  if (value == NULL)
    return 0;
  if (hex == NULL || strlen (hex) != 2 * size || size > sizeof raw
      || strspn (hex, "0123456789abcdef") != 2 * size)
    return -1;
  for (i = 0; i < size; i++) {
    const char pair[3] = { hex[2 * i], hex[2 * i + 1], '\0' };

    raw[i] = (uint8_t) strtoul (pair, NULL, 16);
  }
  bytes (out, field, raw, size);
  return 0;
}

/* Numbers of 64 bits are texts in OTLP's JSON. */
static uint64_t
number (const json_t *value)
{
  const char *s = json_string_value (value);

  return s ? strtoull (s, NULL, 10) : (uint64_t) json_integer_value (value);
}

static void
any_value (struct coffer_buffer *out, unsigned field, const json_t *value)
{
  struct coffer_buffer any = { 0 };
  const json_t *string = json_object_get (value, "stringValue");
  const json_t *integer = json_object_get (value, "intValue");
  const json_t *flag = json_object_get (value, "boolValue");

  if (string)
    bytes (&any, 1, json_string_value (string), json_string_length (string));
  else if (flag) {
    tag (&any, 2, WIRE_VARINT);
    varint (&any, json_is_true (flag));
  } else if (integer) {
    tag (&any, 3, WIRE_VARINT);
    varint (&any, number (integer));
  }
  message (out, field, &any);
}

static void
attributes (struct coffer_buffer *out, unsigned field, const json_t *list)
{
  const json_t *item;
  size_t i;

  json_array_foreach (list, i, item) {
    struct coffer_buffer pair = { 0 };

    text (&pair, 1, json_object_get (item, "key"));
    any_value (&pair, 2, json_object_get (item, "value"));
    message (out, field, &pair);
  }
}

static void
status (struct coffer_buffer *out, unsigned field, const json_t *value)
{
  struct coffer_buffer inner = { 0 };
  uint64_t code = number (json_object_get (value, "code"));

  text (&inner, 2, json_object_get (value, "message"));
  if (code) {
    tag (&inner, 3, WIRE_VARINT);
    varint (&inner, code);
  }
  message (out, field, &inner);
}

static int
span (struct coffer_buffer *out, unsigned field, const json_t *value)
{
  struct coffer_buffer inner = { 0 };
  const json_t *state = json_object_get (value, "status");

  if (json_object_get (value, "traceId") == NULL
      || id (&inner, 1, json_object_get (value, "traceId"), 16) < 0
      || json_object_get (value, "spanId") == NULL
      || id (&inner, 2, json_object_get (value, "spanId"), 8) < 0
      || id (&inner, 4, json_object_get (value, "parentSpanId"), 8) < 0) {
    coffer_buffer_free (&inner);
    return -1;
  }
  text (&inner, 5, json_object_get (value, "name"));
  tag (&inner, 6, WIRE_VARINT);
  varint (&inner, number (json_object_get (value, "kind")));
  fixed64 (&inner, 7, number (json_object_get (value, "startTimeUnixNano")));
  fixed64 (&inner, 8, number (json_object_get (value, "endTimeUnixNano")));
  attributes (&inner, 9, json_object_get (value, "attributes"));
  if (state)
    status (&inner, 15, state);
  message (out, field, &inner);
  return 0;
}

int
otlp_protobuf (const struct otlp_origin *origin, const json_t *spans,
               struct coffer_buffer *out)
{
  struct coffer_buffer whole = { 0 }, resource = { 0 };
  struct coffer_buffer scope_spans = { 0 }, scope = { 0 };
  const json_t *item;
  size_t i;
  int r = 0;

  bytes (&scope, 1, origin->scope, strlen (origin->scope));
  bytes (&scope, 2, origin->version, strlen (origin->version));
  message (&scope_spans, 1, &scope);
  json_array_foreach (spans, i, item)
    r |= span (&scope_spans, 2, item);
  attributes (&resource, 1, origin->resource);
  message (&whole, 1, &resource);
  message (&whole, 2, &scope_spans);
  message (out, 1, &whole);
  return r < 0 || out->failed ? -1 : 0;
}
