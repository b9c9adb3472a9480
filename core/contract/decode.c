/* SPDX-License-Identifier: Apache-2.0 */
/* JSON to values, by the table.  The JSON is hostile: it comes from a worker,
 * a client or a command line.  Nothing is converted that is not exactly of the
 * field's type, and no name is skipped. */

#include <config.h>

#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "contract/codec.h"
#include "contract/values.h"

struct decoder {
  const struct contract_fds *fds;
  struct contract_arena *arena;
  struct error **err;
  uint32_t used_fds;            /* bit N: index N was named */
};

_Static_assert (CONTRACT_MAX_FDS <= 32, "used_fds has a bit for each");

static int decode_value (struct decoder *decoder,
                         const struct contract_field *field,
                         const json_t *json, const struct codec_path *path,
                         union contract_value *value);

static const char *
json_type_name (const json_t *json)
{
  if (json == NULL)
    return "nothing";
  switch (json_typeof (json)) {
  case JSON_OBJECT:
    return "an object";
  case JSON_ARRAY:
    return "an array";
  case JSON_STRING:
    return "a string";
  case JSON_INTEGER:
    return "an integer";
  case JSON_REAL:
    return "a real number";
  case JSON_TRUE:
  case JSON_FALSE:
    return "a boolean";
  case JSON_NULL:
    break;
  }
  return "null";
}

static int
decode_mismatch (struct decoder *decoder, const struct codec_path *path,
                 const char *wanted, const json_t *json)
{
  return codec_fail (decoder->err, path, "wants %s, not %s", wanted,
                     json_type_name (json));
}

/* -- strings -------------------------------------------------------------- */

static int
decode_bytes (struct decoder *decoder, const char *bytes, size_t size,
              const struct codec_path *path, const char **out)
{
  if (memchr (bytes, 0, size) != NULL)
    return codec_fail (decoder->err, path, "contains a NUL byte");
  *out = arena_string (decoder->arena, bytes, size, decoder->err);
  return *out == NULL ? -1 : 0;
}

static int
decode_text (struct decoder *decoder, const json_t *json,
             const struct codec_path *path, const char **out)
{
  if (!json_is_string (json))
    return decode_mismatch (decoder, path, "a string", json);
  if (!text_is_utf8 (json_string_value (json), json_string_length (json)))
    return codec_fail (decoder->err, path, "is not UTF-8");
  return decode_bytes (decoder, json_string_value (json),
                       json_string_length (json), path, out);
}

/* Bytes that are no UTF-8 come as {"b64": "…"}. */
static int
decode_str (struct decoder *decoder, const json_t *json,
            const struct codec_path *path, const char **out)
{
  const json_t *b64;
  auto_free char *bytes = NULL;
  size_t size;

  if (json_is_string (json))
    return decode_text (decoder, json, path, out);
  b64 = json_object_get (json, "b64");
  if (!json_is_string (b64) || json_object_size (json) != 1)
    return decode_mismatch (decoder, path, "a string or {\"b64\": \"…\"}",
                            json);
  if (strlen (json_string_value (b64)) != json_string_length (b64)
      || text_base64_decode (json_string_value (b64), &bytes, &size) < 0)
    return codec_fail (decoder->err, path, "is not base64");
  return decode_bytes (decoder, bytes, size, path, out);
}

static int
decode_strv (struct decoder *decoder, const json_t *json,
             const struct codec_path *path, const char *const **out)
{
  size_t count = json_array_size (json), i;
  const char **strv;

  if (!json_is_array (json))
    return decode_mismatch (decoder, path, "an array of strings", json);
  strv = arena_alloc (decoder->arena, (count + 1) * sizeof *strv,
                      decoder->err);
  if (strv == NULL)
    return -1;
  for (i = 0; i < count; i++) {
    struct codec_path below = codec_path_item (path, i);

    if (decode_str (decoder, json_array_get (json, i), &below, &strv[i]) < 0)
      return -1;
  }
  *out = strv;
  return 0;
}

/* -- numbers, flags, descriptors ------------------------------------------ */

static int
decode_integer (struct decoder *decoder, const json_t *json, int64_t min,
                int64_t max, const struct codec_path *path, int64_t *out)
{
  int64_t number = json_integer_value (json);

  if (!json_is_integer (json))
    return decode_mismatch (decoder, path, "an integer", json);
  if (number < min || number > max)
    return codec_fail (decoder->err, path,
                       "%lld is out of range (%lld to %lld)",
                       (long long) number, (long long) min, (long long) max);
  *out = number;
  return 0;
}

static int
decode_u64 (struct decoder *decoder, const json_t *json,
            const struct codec_path *path, uint64_t *out)
{
  if (json_get_u64 (json, out) == 0)
    return 0;
  if (json_is_integer (json) || json_is_string (json))
    return codec_fail (decoder->err, path,
                       "is out of range (0 to 18446744073709551615)");
  return decode_mismatch (decoder, path, "a non-negative integer", json);
}

static int
decode_f64 (struct decoder *decoder, const json_t *json,
            const struct codec_path *path, double *out)
{
  if (!json_is_number (json))
    return decode_mismatch (decoder, path, "a number", json);
  *out = json_number_value (json);
  return 0;
}

/* true and false; people may write 1 and 0. */
static int
decode_flag (struct decoder *decoder, const json_t *json,
             const struct codec_path *path, uint32_t *out)
{
  int64_t number;

  if (json_is_boolean (json)) {
    *out = json_is_true (json);
    return 0;
  }
  if (!json_is_integer (json))
    return decode_mismatch (decoder, path, "true or false", json);
  if (decode_integer (decoder, json, 0, 1, path, &number) < 0)
    return -1;
  *out = number;
  return 0;
}

/* An index is used once: whoever takes a descriptor closes it. */
static int
decode_fd (struct decoder *decoder, const json_t *json,
           const struct codec_path *path, int32_t *out)
{
  const struct contract_fds *fds = decoder->fds;
  int64_t index;

  if (!json_is_integer (json))
    return decode_mismatch (decoder, path, "an index of a descriptor", json);
  index = json_integer_value (json);
  if (fds == NULL || index < 0 || index >= fds->count)
    return codec_fail (decoder->err, path, "there is no descriptor %lld",
                       (long long) index);
  if (decoder->used_fds & UINT32_C (1) << index)
    return codec_fail (decoder->err, path, "descriptor %lld is used twice",
                       (long long) index);
  decoder->used_fds |= UINT32_C (1) << index;
  *out = fds->fd[index];
  return 0;
}

/* -- records -------------------------------------------------------------- */

static const struct contract_field *
field_by_name (const struct contract_field *fields, size_t n_fields,
               const char *name)
{
  size_t i;

  for (i = 0; i < n_fields; i++)
    if (strcmp (fields[i].name, name) == 0)
      return &fields[i];
  return NULL;
}

#define KEY_SHOWN 64            /* bytes of an unknown name in a message */

static int
decode_unknown (struct decoder *decoder, const struct codec_path *path,
                const struct contract_field *fields, size_t n_fields,
                const char *key)
{
  const char *names[128], *nearest;
  auto_free char *shown = text_escape (key, strnlen (key, KEY_SHOWN));
  size_t i;

  for (i = 0; i < n_fields && i < 127; i++)
    names[i] = fields[i].name;
  names[i] = NULL;
  nearest = text_nearest (key, names);
  codec_fail (decoder->err, path, "there is no field \"%s\"",
              shown != NULL ? shown : "?");
  if (nearest != NULL)
    error_hint (decoder->err, "did you mean \"%s\"?", nearest);
  return -1;
}

static int
decode_record (struct decoder *decoder, const struct contract_record *record,
               const json_t *json, const struct codec_path *path, void **out)
{
  char *data;
  const char *key;
  json_t *value_json;
  union contract_value value;

  if (codec_check_depth (path, decoder->err) < 0)
    return -1;
  if (!json_is_object (json))
    return decode_mismatch (decoder, path, "an object", json);
  data = arena_record (decoder->arena, record, decoder->err);
  if (data == NULL)
    return -1;
  json_object_foreach ((json_t *) json, key, value_json) {
    const struct contract_field *field
      = field_by_name (record->fields, record->n_fields, key);
    struct codec_path below;

    if (field == NULL)
      return decode_unknown (decoder, path, record->fields, record->n_fields,
                             key);
    if (json_is_null (value_json))
      continue;
    below = codec_path_field (path, field->name);
    if (decode_value (decoder, field, value_json, &below, &value) < 0)
      return -1;
    contract_value_write (field->type, data + field->offset, &value);
  }
  *out = data;
  return 0;
}

static int
decode_recv (struct decoder *decoder, const struct contract_record *record,
             const json_t *json, const struct codec_path *path,
             const void *const **out)
{
  size_t count = json_array_size (json), i;
  void **recv;

  if (!json_is_array (json))
    return decode_mismatch (decoder, path, "an array of objects", json);
  recv = arena_alloc (decoder->arena, (count + 1) * sizeof *recv,
                      decoder->err);
  if (recv == NULL)
    return -1;
  for (i = 0; i < count; i++) {
    struct codec_path below = codec_path_item (path, i);

    if (decode_record (decoder, record, json_array_get (json, i), &below,
                       &recv[i]) < 0)
      return -1;
  }
  *out = (const void *const *) recv;
  return 0;
}

static int
decode_rec (struct decoder *decoder, const struct contract_record *record,
            const json_t *json, const struct codec_path *path,
            union contract_value *value)
{
  void *data;

  if (decode_record (decoder, record, json, path, &data) < 0)
    return -1;
  value->rec = data;
  return 0;
}

/* json is not null. */
static int
decode_value (struct decoder *decoder, const struct contract_field *field,
              const json_t *json, const struct codec_path *path,
              union contract_value *value)
{
  int64_t number = 0;

  memset (value, 0, sizeof *value);
  switch (field->type) {
  case CONTRACT_STR:
    return decode_str (decoder, json, path, &value->str);
  case CONTRACT_TEXT:
    return decode_text (decoder, json, path, &value->str);
  case CONTRACT_STRV:
    return decode_strv (decoder, json, path, &value->strv);
  case CONTRACT_I32:
    if (decode_integer (decoder, json, INT32_MIN, INT32_MAX, path, &number)
        < 0)
      return -1;
    value->i32 = number;
    return 0;
  case CONTRACT_I64:
    return decode_integer (decoder, json, INT64_MIN, INT64_MAX, path,
                           &value->i64);
  case CONTRACT_U32:
    if (decode_integer (decoder, json, 0, UINT32_MAX, path, &number) < 0)
      return -1;
    value->u32 = number;
    return 0;
  case CONTRACT_U64:
    return decode_u64 (decoder, json, path, &value->u64);
  case CONTRACT_F64:
    return decode_f64 (decoder, json, path, &value->f64);
  case CONTRACT_FLAG:
    return decode_flag (decoder, json, path, &value->u32);
  case CONTRACT_FD:
    return decode_fd (decoder, json, path, &value->i32);
  case CONTRACT_REC:
    return decode_rec (decoder, field->record, json, path, value);
  case CONTRACT_RECV:
    return decode_recv (decoder, field->record, json, path, &value->recv);
  }
  return codec_fail (decoder->err, path, "has no type");
}

int
contract_decode_record (const struct contract_record *record,
                        const json_t *json, const struct contract_fds *fds,
                        struct contract_arena *arena, void **out,
                        struct error **err)
{
  struct decoder decoder = { fds, arena, err, 0 };

  return decode_record (&decoder, record, json, NULL, out);
}

/* -- arguments ------------------------------------------------------------ */

static int
decode_argument (struct decoder *decoder, const struct contract_field *arg,
                 const json_t *json, union contract_value *value)
{
  struct codec_path path = codec_path_field (NULL, arg->name);

  if (json != NULL && !json_is_null (json))
    return decode_value (decoder, arg, json, &path, value);
  contract_value_default (arg->type, value);
  if (!contract_argument_required (arg))
    return 0;
  if (arg->type != CONTRACT_REC)
    return codec_fail (decoder->err, &path, "must be given");
  value->rec = arena_record (decoder->arena, arg->record, decoder->err);
  return value->rec == NULL ? -1 : 0;
}

static int
decode_opts (struct decoder *decoder, const struct contract_record *opts,
             const json_t *json, union contract_value *value)
{
  struct codec_path path = codec_path_field (NULL, "opts");

  value->rec = NULL;
  if (json == NULL || json_is_null (json))
    return 0;
  return decode_rec (decoder, opts, json, &path, value);
}

static int
decode_check_names (struct decoder *decoder, const struct contract_op *op,
                    const json_t *json)
{
  const char *key;
  json_t *ignored;

  json_object_foreach ((json_t *) json, key, ignored)
    if (strcmp (key, "opts") != 0
        && field_by_name (op->args, op->n_args, key) == NULL)
      return decode_unknown (decoder, NULL, op->args, op->n_args, key);
  return 0;
}

int
contract_decode_args (const struct contract_op *op, const json_t *json,
                      const struct contract_fds *fds,
                      struct contract_arena *arena,
                      union contract_value *values, struct error **err)
{
  struct decoder decoder = { fds, arena, err, 0 };
  size_t i;

  if (!json_is_object (json))
    return codec_fail (err, NULL, "arguments are an object");
  if (decode_check_names (&decoder, op, json) < 0)
    return -1;
  for (i = 0; i < op->n_args; i++)
    if (decode_argument (&decoder, &op->args[i],
                         json_object_get (json, op->args[i].name), &values[i])
        < 0)
      return -1;
  return decode_opts (&decoder, op->opts, json_object_get (json, "opts"),
                      &values[op->n_args]);
}
