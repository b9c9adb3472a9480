/* SPDX-License-Identifier: Apache-2.0 */
/* Small helpers over jansson. */

#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <jansson.h>

#include "base/error.h"

DEFINE_CLEANUP (json_t *, json_decref, auto_json)
#define auto_json CLEANUP (auto_json)

/* Gives it up as json_decref does, with every string in it overwritten before:
 * nobody else may look at what it holds.  NULL is fine. */
void json_wipe (json_t *take_json);
DEFINE_CLEANUP (json_t *, json_wipe, auto_json_wiped)
#define auto_json_wiped CLEANUP (auto_json_wiped)

/* Strict: one value, no duplicate keys, no trailing bytes, no \u0000,
 * at most 32 deep and 2^18 values. */
int json_parse (const char *bytes, size_t size, json_t **out,
                struct error **err);
/* The same; *count is at least how many values it has. */
int json_parse_counted (const char *bytes, size_t size, json_t **out,
                        size_t *count, struct error **err);

/* Bytes as a JSON string when they are UTF-8 without NUL, else
 * {"b64": "…"}; NULL becomes null. */
json_t *json_bytes (const char *bytes, size_t size);

/* {"encoding":"utf-8"|"base64","data":…}: how bytes leave coffer. */
json_t *json_encoded (const char *bytes, size_t size);
/* Every {"b64": …} in a value as the second of those. */
void json_name_encodings (json_t *value);

/* A vector of strings, each by json_bytes; NULL is an empty one. */
json_t *json_texts (const char *const *texts);

/* A u64: a number up to 2^53, above that a decimal string. */
json_t *json_u64 (uint64_t value);
/* The other way: -1 when it is neither. */
int json_get_u64 (const json_t *value, uint64_t *out);

/* Sets a key only where there is something: a text, a number above 0, a
 * vector that is not empty. */
void json_put_text (json_t *object, const char *key, const char *text);
void json_put_u64 (json_t *object, const char *key, uint64_t value);
void json_put_texts (json_t *object, const char *key,
                     const char *const *texts);

/* Compact text, keys in insertion order; the caller frees. */
char *json_text (const json_t *value);

#endif /* BASE_JSON_H */
