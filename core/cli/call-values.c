/* SPDX-License-Identifier: Apache-2.0 */
/* KEY=VALUE words to the JSON of an operation's arguments.  Only the form is
 * decided here, by the types of the table; ranges and names that the table
 * does not have are refused by contract_decode_args. */

#include <config.h>

#include "cli/call.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"

/* One word on its way. */
struct word {
  const char *key;              /* as given, for messages */
  const char *value;
  struct call_streams *streams;
  struct error **err;
};

static int
word_fail (const struct word *word, const char *wants)
{
  return error_set (word->err, E_INVALID, 0, "%s: wants %s", word->key,
                    wants);
}

static const struct contract_field *
field_find (const struct contract_field *fields, size_t count,
            const char *name)
{
  size_t i;

  for (i = 0; i < count; i++)
    if (!strcmp (fields[i].name, name))
      return &fields[i];
  return NULL;
}

/* ---- scalars ------------------------------------------------------------ */

static json_t *
signed_value (const struct word *word)
{
  char *end;
  long long number;

  errno = 0;
  number = strtoll (word->value, &end, 10);
  if (errno || *end || end == word->value
      || isspace ((unsigned char) word->value[0])) {
    word_fail (word, "an integer");
    return NULL;
  }
  return json_integer (number);
}

static int
ends_in (const char *name, const char *end)
{
  size_t n = strlen (name), m = strlen (end);

  return n > m && !strcmp (name + n - m, end);
}

/* Where the name says the unit, the value may have a suffix: 64M, 30s. */
static json_t *
unsigned_value (const struct word *word, const char *name)
{
  size_t size = strlen (word->value);
  int suffixed = size && !isdigit ((unsigned char) word->value[size - 1]);
  uint64_t number;
  int r;

  if (suffixed && ends_in (name, "_bytes"))
    r = text_parse_size (word->value, &number);
  else if (suffixed && ends_in (name, "_ms"))
    r = text_parse_duration (word->value, &number);
  else
    r = text_parse_u64 (word->value, 0, UINT64_MAX, &number);
  if (r < 0) {
    word_fail (word, "a non-negative integer");
    return NULL;
  }
  return json_u64 (number);
}

static json_t *
real_value (const struct word *word)
{
  auto_json json_t *number = NULL;

  if (json_parse (word->value, strlen (word->value), &number, NULL) < 0
      || !json_is_number (number)) {
    word_fail (word, "a number");
    return NULL;
  }
  return json_real (json_number_value (number));
}

static json_t *
flag_value (const struct word *word)
{
  if (!strcmp (word->value, "1") || !strcmp (word->value, "true")
      || !strcmp (word->value, "yes"))
    return json_true ();
  if (!strcmp (word->value, "0") || !strcmp (word->value, "false")
      || !strcmp (word->value, "no"))
    return json_false ();
  word_fail (word, "1 or 0");
  return NULL;
}

static json_t *
text_value (const struct word *word)
{
  if (!text_is_utf8 (word->value, strlen (word->value))) {
    word_fail (word, "UTF-8");
    return NULL;
  }
  return json_string_nocheck (word->value);
}

/* Records hold descriptors that only a host can make, such as folders that
 * were opened and checked. */
static json_t *
stream_value (const struct word *word, const char *name)
{
  int index;

  if (strchr (word->key, '.')) {
    error_set (word->err, E_INVALID, 0,
               "%s: a descriptor in a record cannot be given here",
               word->key);
    return NULL;
  }
  if (call_streams_add (word->streams, name, word->value, &index, word->err)
      < 0)
    return NULL;
  return json_integer (index);
}

static json_t *
parsed_value (const struct word *word)
{
  json_t *json;

  if (json_parse (word->value, strlen (word->value), &json, word->err) < 0) {
    error_wrap (word->err, "%s", word->key);
    return NULL;
  }
  return json;
}

static json_t *
scalar_value (const struct word *word, const struct contract_field *field)
{
  switch (field->type) {
  case CONTRACT_STR:
  case CONTRACT_STRV:           /* one element of it */
    return json_bytes (word->value, strlen (word->value));
  case CONTRACT_TEXT:
    return text_value (word);
  case CONTRACT_I32:
  case CONTRACT_I64:
    return signed_value (word);
  case CONTRACT_U32:
  case CONTRACT_U64:
    return unsigned_value (word, field->name);
  case CONTRACT_F64:
    return real_value (word);
  case CONTRACT_FLAG:
    return flag_value (word);
  case CONTRACT_FD:
    return stream_value (word, field->name);
  case CONTRACT_REC:
  case CONTRACT_RECV:           /* one element of it, or all */
    break;
  }
  return parsed_value (word);
}

/* ---- setting ------------------------------------------------------------ */

static int
append (json_t *object, const char *name, json_t *take_item)
{
  auto_json json_t *item = take_item;
  json_t *array = json_object_get (object, name);

  if (!array) {
    array = json_array ();
    if (json_object_set_new (object, name, array) < 0)
      return -1;
  }
  return json_is_array (item) ? json_array_extend (array, item)
                              : json_array_append (array, item);
}

static int
set_field (const struct word *word, const struct contract_field *field,
           json_t *object)
{
  int vector = field->type == CONTRACT_STRV || field->type == CONTRACT_RECV;
  json_t *value;
  int r;

  if (!vector && json_object_get (object, field->name))
    return error_set (word->err, E_INVALID, 0, "%s: given twice", word->key);
  value = scalar_value (word, field);
  if (!value && word->err && *word->err)
    return -1;
  r = vector ? append (object, field->name, value)
             : json_object_set_new (object, field->name, value);
  return r < 0 ? error_set (word->err, E_NO_MEMORY, 0, "reading %s",
                            word->key)
               : 0;
}

/* A field of a record that the arguments hold under `name`. */
static int
set_below (const struct word *word, const struct contract_record *record,
           const char *name, const char *below, json_t *args)
{
  const struct contract_field *field
    = field_find (record->fields, record->n_fields, below);
  json_t *object = json_object_get (args, name);

  if (!object) {
    object = json_object ();
    if (json_object_set_new (args, name, object) < 0)
      return error_set (word->err, E_NO_MEMORY, 0, "reading %s", word->key);
  }
  if (field)
    return set_field (word, field, object);
  /* Unknown: its name alone, for the decoder to refuse. */
  return json_object_set_new (object, below, json_null ());
}

static int
set_word (const struct word *word, const struct contract_op *op,
          json_t *args)
{
  const struct contract_field opts
    = { .name = "opts", .type = CONTRACT_REC, .record = op->opts };
  const char *dot = strchr (word->key, '.');
  size_t length = dot ? (size_t) (dot - word->key) : strlen (word->key);
  auto_free char *name = strndup (word->key, length);
  const struct contract_field *field;

  if (!name)
    return error_set (word->err, E_NO_MEMORY, 0, "reading %s", word->key);
  field = !strcmp (name, "opts") ? &opts
                                 : field_find (op->args, op->n_args, name);
  if (!field)
    return json_object_set_new (args, name, json_null ());
  if (!dot)
    return set_field (word, field, args);
  if (field->type != CONTRACT_REC)
    return error_set (word->err, E_INVALID, 0, "%s: %s has no fields",
                      word->key, name);
  return set_below (word, field->record, name, dot + 1, args);
}

int
call_values (const struct contract_op *op, const char *const *words,
             struct call_streams *streams, json_t **out, struct error **err)
{
  auto_json json_t *args = json_object ();

  for (; *words; words++) {
    const char *equals = strchr (*words, '=');
    auto_free char *key = NULL;
    struct word word = { .streams = streams, .err = err };

    if (!equals || equals == *words) {
      error_set (err, E_USAGE, 0, "\"%s\" is not KEY=VALUE", *words);
      error_hint (err, "coffer contract %s lists the keys", op->name);
      return -1;
    }
    key = strndup (*words, equals - *words);
    word.key = key;
    word.value = equals + 1;
    if (!key || !args)
      return error_set (err, E_NO_MEMORY, 0, "reading arguments");
    if (set_word (&word, op, args) < 0)
      return -1;
  }
  *out = steal (args);
  return 0;
}
