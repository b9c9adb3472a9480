/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of records that a module emits: from its size to ours, with all that
 * they point at, so that nothing of the module's is kept past its call. */

#include <config.h>

#include <math.h>
#include <string.h>

#include "base/text.h"
#include "contract/codec.h"
#include "contract/values.h"

struct copier {
  struct contract_arena *arena;
  struct error **err;
};

static int copy_record (struct copier *copier,
                        const struct contract_record *record,
                        const void *data, const struct codec_path *path,
                        void **out);

static int
copy_string (struct copier *copier, const char *string, const char **out)
{
  *out = arena_string (copier->arena, string, strlen (string), copier->err);
  return *out == NULL ? -1 : 0;
}

static int
copy_text (struct copier *copier, const char *text,
           const struct codec_path *path, const char **out)
{
  if (!text_is_utf8 (text, strlen (text)))
    return codec_fail (copier->err, path, "is not UTF-8");
  return copy_string (copier, text, out);
}

static int
copy_strv (struct copier *copier, const char *const *strv,
           const char *const **out)
{
  const char **copy;
  size_t count = 0, i;

  while (strv[count] != NULL)
    count++;
  copy = arena_alloc (copier->arena, (count + 1) * sizeof *copy, copier->err);
  if (copy == NULL)
    return -1;
  for (i = 0; i < count; i++)
    if (copy_string (copier, strv[i], &copy[i]) < 0)
      return -1;
  *out = copy;
  return 0;
}

static int
copy_recv (struct copier *copier, const struct contract_record *record,
           const void *const *recv, const struct codec_path *path,
           const void *const **out)
{
  void **copy;
  size_t count = 0, i;

  while (recv[count] != NULL)
    count++;
  copy = arena_alloc (copier->arena, (count + 1) * sizeof *copy, copier->err);
  if (copy == NULL)
    return -1;
  for (i = 0; i < count; i++) {
    struct codec_path below = codec_path_item (path, i);

    if (copy_record (copier, record, recv[i], &below, &copy[i]) < 0)
      return -1;
  }
  *out = (const void *const *) copy;
  return 0;
}

static int
copy_rec (struct copier *copier, const struct contract_record *record,
          const void *data, const struct codec_path *path, const void **out)
{
  void *copy;

  if (copy_record (copier, record, data, path, &copy) < 0)
    return -1;
  *out = copy;
  return 0;
}

/* In place: the value's pointers are the module's before, ours after. */
static int
copy_value (struct copier *copier, const struct contract_field *field,
            union contract_value *value, const struct codec_path *path)
{
  if (contract_value_is_default (field->type, value)) {
    contract_value_default (field->type, value);
    return 0;
  }
  switch (field->type) {
  case CONTRACT_STR:
    return copy_string (copier, value->str, &value->str);
  case CONTRACT_TEXT:
    return copy_text (copier, value->str, path, &value->str);
  case CONTRACT_STRV:
    return copy_strv (copier, value->strv, &value->strv);
  case CONTRACT_REC:
    return copy_rec (copier, field->record, value->rec, path, &value->rec);
  case CONTRACT_RECV:
    return copy_recv (copier, field->record, value->recv, path, &value->recv);
  case CONTRACT_FLAG:
    if (value->u32 > 1)
      return codec_fail (copier->err, path, "a flag is 0 or 1, not %u",
                         value->u32);
    return 0;
  case CONTRACT_FD:
    if (value->i32 < -1)
      return codec_fail (copier->err, path, "%d is no descriptor",
                         value->i32);
    return 0;
  case CONTRACT_F64:
    if (!isfinite (value->f64))
      return codec_fail (copier->err, path, "is not a finite number");
    return 0;
  case CONTRACT_I32:
  case CONTRACT_I64:
  case CONTRACT_U32:
  case CONTRACT_U64:
    break;
  }
  return 0;
}

static int
copy_record (struct copier *copier, const struct contract_record *record,
             const void *data, const struct codec_path *path, void **out)
{
  union contract_value value;
  uint32_t size;
  char *copy;
  size_t i;

  if (codec_check_depth (path, copier->err) < 0)
    return -1;
  memcpy (&size, data, sizeof size);
  if (size < 2 * sizeof size)
    return codec_fail (copier->err, path, "%s says that its size is %u",
                       record->name, size);
  copy = arena_record (copier->arena, record, copier->err);
  if (copy == NULL)
    return -1;
  for (i = 0; i < record->n_fields; i++) {
    const struct contract_field *field = &record->fields[i];
    struct codec_path below = codec_path_field (path, field->name);

    contract_field_read (field, data, &value);
    if (copy_value (copier, field, &value, &below) < 0)
      return -1;
    contract_value_write (field->type, copy + field->offset, &value);
  }
  *out = copy;
  return 0;
}

int
contract_copy_record (const struct contract_record *record, const void *data,
                      struct contract_arena *arena, void **out,
                      struct error **err)
{
  struct copier copier = { arena, err };

  if (data == NULL)
    return codec_fail (err, NULL, "%s is NULL", record->name);
  return copy_record (&copier, record, data, NULL, out);
}
