/* SPDX-License-Identifier: Apache-2.0 */
/* Values to JSON, by the table.  What is at its default is left out, so that
 * frames are short and an older reader is not told of fields it cannot know
 * unless they matter. */

#include <config.h>

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "contract/codec.h"
#include "contract/values.h"

struct encoder {
  struct contract_fds *fds;
  struct error **err;
};

static int encode_value (struct encoder *encoder,
                         const struct contract_field *field,
                         const union contract_value *value,
                         const struct codec_path *path, json_t **out);

static int
encode_out (struct encoder *encoder, json_t *take_json, json_t **out)
{
  if (take_json == NULL)
    return error_set (encoder->err, E_NO_MEMORY, 0, "a JSON value");
  *out = take_json;
  return 0;
}

static int
encode_text (struct encoder *encoder, const char *text,
             const struct codec_path *path, json_t **out)
{
  size_t size = strlen (text);

  if (!text_is_utf8 (text, size))
    return codec_fail (encoder->err, path, "is not UTF-8");
  return encode_out (encoder, json_stringn_nocheck (text, size), out);
}

static int
encode_strv (struct encoder *encoder, const char *const *strv, json_t **out)
{
  auto_json json_t *array = json_array ();
  size_t i;

  for (i = 0; strv[i] != NULL; i++)
    if (json_array_append_new (array, json_bytes (strv[i], strlen (strv[i])))
        < 0)
      return encode_out (encoder, NULL, out);
  return encode_out (encoder, steal (array), out);
}

static int
encode_fd (struct encoder *encoder, int32_t fd, const struct codec_path *path,
           json_t **out)
{
  struct contract_fds *fds = encoder->fds;

  if (fd < -1)
    return codec_fail (encoder->err, path, "%d is no descriptor", fd);
  if (fd == -1)
    return encode_out (encoder, json_null (), out);
  if (fds == NULL)
    return codec_fail (encoder->err, path, "no descriptors can be given here");
  if (fds->count >= CONTRACT_MAX_FDS)
    return codec_fail (encoder->err, path, "more than %d descriptors",
                       CONTRACT_MAX_FDS);
  fds->fd[fds->count] = fd;
  return encode_out (encoder, json_integer (fds->count++), out);
}

static int
encode_flag (struct encoder *encoder, uint32_t flag,
             const struct codec_path *path, json_t **out)
{
  if (flag > 1)
    return codec_fail (encoder->err, path, "a flag is 0 or 1, not %u", flag);
  return encode_out (encoder, json_boolean (flag), out);
}

static int
encode_f64 (struct encoder *encoder, double number,
            const struct codec_path *path, json_t **out)
{
  if (!isfinite (number))
    return codec_fail (encoder->err, path, "is not a finite number");
  return encode_out (encoder, json_real (number), out);
}

static int
encode_record (struct encoder *encoder, const struct contract_record *record,
               const void *data, const struct codec_path *path, json_t **out)
{
  auto_json json_t *object = json_object ();
  union contract_value value;
  size_t i;

  if (object == NULL)
    return encode_out (encoder, NULL, out);
  if (codec_check_depth (path, encoder->err) < 0)
    return -1;
  for (i = 0; i < record->n_fields; i++) {
    const struct contract_field *field = &record->fields[i];
    struct codec_path below = codec_path_field (path, field->name);
    json_t *json;

    contract_field_read (field, data, &value);
    if (contract_value_is_default (field->type, &value))
      continue;
    if (encode_value (encoder, field, &value, &below, &json) < 0)
      return -1;
    if (json_object_set_new_nocheck (object, field->name, json) < 0)
      return encode_out (encoder, NULL, out);
  }
  return encode_out (encoder, steal (object), out);
}

static int
encode_recv (struct encoder *encoder, const struct contract_record *record,
             const void *const *recv, const struct codec_path *path,
             json_t **out)
{
  auto_json json_t *array = json_array ();
  json_t *item;
  size_t i;

  for (i = 0; recv[i] != NULL; i++) {
    struct codec_path below = codec_path_item (path, i);

    if (encode_record (encoder, record, recv[i], &below, &item) < 0)
      return -1;
    if (json_array_append_new (array, item) < 0)
      return encode_out (encoder, NULL, out);
  }
  return encode_out (encoder, steal (array), out);
}

/* Never called with NULL in `value`: the default is left out before. */
static int
encode_value (struct encoder *encoder, const struct contract_field *field,
              const union contract_value *value,
              const struct codec_path *path, json_t **out)
{
  switch (field->type) {
  case CONTRACT_STR:
    return encode_out (encoder, json_bytes (value->str, strlen (value->str)),
                       out);
  case CONTRACT_TEXT:
    return encode_text (encoder, value->str, path, out);
  case CONTRACT_STRV:
    return encode_strv (encoder, value->strv, out);
  case CONTRACT_I32:
    return encode_out (encoder, json_integer (value->i32), out);
  case CONTRACT_I64:
    return encode_out (encoder, json_integer (value->i64), out);
  case CONTRACT_U32:
    return encode_out (encoder, json_integer (value->u32), out);
  case CONTRACT_U64:
    return encode_out (encoder, json_u64 (value->u64), out);
  case CONTRACT_F64:
    return encode_f64 (encoder, value->f64, path, out);
  case CONTRACT_FLAG:
    return encode_flag (encoder, value->u32, path, out);
  case CONTRACT_FD:
    return encode_fd (encoder, value->i32, path, out);
  case CONTRACT_REC:
    return encode_record (encoder, field->record, value->rec, path, out);
  case CONTRACT_RECV:
    return encode_recv (encoder, field->record, value->recv, path, out);
  }
  return codec_fail (encoder->err, path, "has no type");
}

static int
encode_argument (struct encoder *encoder, const struct contract_field *arg,
                 const union contract_value *value, json_t *object)
{
  struct codec_path path = codec_path_field (NULL, arg->name);
  json_t *json;

  if (contract_value_is_default (arg->type, value)) {
    if (contract_argument_required (arg))
      return codec_fail (encoder->err, &path, "must be given");
    return 0;
  }
  if (encode_value (encoder, arg, value, &path, &json) < 0)
    return -1;
  if (json_object_set_new_nocheck (object, arg->name, json) < 0)
    return error_set (encoder->err, E_NO_MEMORY, 0, "a JSON value");
  return 0;
}

static int
encode_opts (struct encoder *encoder, const struct contract_record *opts,
             const void *data, json_t *object)
{
  struct codec_path path = codec_path_field (NULL, "opts");
  auto_json json_t *json = NULL;

  if (data == NULL)
    return 0;
  if (encode_record (encoder, opts, data, &path, &json) < 0)
    return -1;
  if (json_object_size (json) > 0
      && json_object_set_nocheck (object, "opts", json) < 0)
    return error_set (encoder->err, E_NO_MEMORY, 0, "a JSON value");
  return 0;
}

int
contract_encode_args (const struct contract_op *op,
                      const union contract_value *values, json_t **out,
                      struct contract_fds *fds, struct error **err)
{
  struct encoder encoder = { fds, err };
  auto_json json_t *object = json_object ();
  size_t i;

  if (object == NULL)
    return error_set (err, E_NO_MEMORY, 0, "a JSON value");
  for (i = 0; i < op->n_args; i++)
    if (encode_argument (&encoder, &op->args[i], &values[i], object) < 0)
      return -1;
  if (encode_opts (&encoder, op->opts, values[op->n_args].rec, object) < 0)
    return -1;
  *out = steal (object);
  return 0;
}

int
contract_encode_record (const struct contract_record *record,
                        const void *data, json_t **out,
                        struct contract_fds *fds, struct error **err)
{
  struct encoder encoder = { fds, err };

  return encode_record (&encoder, record, data, NULL, out);
}
