/* SPDX-License-Identifier: Apache-2.0 */
/* The table for people and programs: the reference manual's part in Markdown,
 * and the whole of it as JSON. */

#include <config.h>

#include <ctype.h>

#include <coffer/buffer.h>

#include "base/json.h"
#include "contract/contract.h"

static const struct {
  const char *word, *doc;
} capabilities[] = {
#define X(name, word, doc) { word, doc },
  COFFER_CAPABILITIES (X)
#undef X
};

static const struct {
  int32_t number;
  const char *name, *retryable, *doc;
} codes[] = {
#define X(number, name, retryable, doc) { number, #name, #retryable, doc },
  COFFER_CODES (X)
#undef X
};

static const struct {
  const char *name, *c, *doc;
} types[] = {
  { "str", "const char *", "NUL-terminated bytes; NULL is \"not given\"" },
  { "text", "const char *", "UTF-8; NULL is \"not given\"" },
  { "strv", "const char *const *",
    "NULL-terminated vector of str; NULL is the empty vector" },
  { "i32", "int32_t", "the unit is in the name, as for all numbers" },
  { "i64", "int64_t", "likewise" },
  { "u32", "uint32_t", "likewise" },
  { "u64", "uint64_t", "likewise" },
  { "f64", "double", "finite" },
  { "flag", "uint32_t", "0 or 1" },
  { "fd", "int32_t",
    "a descriptor, -1 for none; borrowed for the call, dup it to keep it" },
  { "rec", "const struct coffer_NAME *",
    "one record; NULL is \"all defaults\"" },
  { "recv", "const struct coffer_NAME *const *",
    "NULL-terminated vector of records" },
};

#define COUNT(array) (sizeof (array) / sizeof (array)[0])

/* ---- Markdown ----------------------------------------------------------- */

/* Text in a cell of a table. */
static void
add_cell (struct coffer_buffer *buffer, const char *text)
{
  for (; *text != '\0'; text++) {
    if (*text == '|')
      coffer_buffer_add_string (buffer, "\\");
    coffer_buffer_add (buffer, text, 1);
  }
  coffer_buffer_add_string (buffer, " |\n");
}

static void
add_field (struct coffer_buffer *buffer, const struct contract *contract,
           const struct contract_field *field)
{
  coffer_buffer_printf (buffer, "| `%s` | %s", field->name,
                        contract_type_name (field->type));
  if (field->record != NULL)
    coffer_buffer_printf (buffer, " `%s`", field->record->name);
  if (field->since > 1)
    coffer_buffer_printf (buffer, ", since %u.%u", contract->major,
                          field->since);
  coffer_buffer_add_string (buffer, " | ");
  add_cell (buffer, field->doc);
}

static void
add_fields (struct coffer_buffer *buffer, const struct contract *contract,
            const char *head, const struct contract_field *fields,
            size_t count)
{
  size_t i;

  if (count == 0)
    return;
  coffer_buffer_printf (buffer, "\n| %s | type | |\n|---|---|---|\n", head);
  for (i = 0; i < count; i++)
    add_field (buffer, contract, &fields[i]);
}

static void
add_operation (struct coffer_buffer *buffer, const struct contract *contract,
               const struct contract_op *op)
{
  coffer_buffer_printf (buffer, "\n### %s\n\n%c%s.\n\nId %u, since %u.%u, ",
                        op->name, toupper ((unsigned char) op->doc[0]),
                        op->doc + 1, op->id, contract->major, op->since);
  if (*op->capability != '\0')
    coffer_buffer_printf (buffer, "capability `%s`.\n", op->capability);
  else
    coffer_buffer_add_string (buffer, "every provider has it.\n");
  add_fields (buffer, contract, "argument", op->args, op->n_args);
  add_fields (buffer, contract, "option", op->opts->fields,
              op->opts->n_fields);
}

static void
add_lists (struct coffer_buffer *buffer)
{
  size_t i;

  coffer_buffer_add_string (buffer, "\n## Capabilities\n\n| word | |\n"
                                    "|---|---|\n");
  for (i = 0; i < COUNT (capabilities); i++) {
    coffer_buffer_printf (buffer, "| `%s` | ", capabilities[i].word);
    add_cell (buffer, capabilities[i].doc);
  }
  coffer_buffer_add_string (buffer, "\n## Codes\n\n| | code | again? | |\n"
                                    "|---|---|---|---|\n");
  for (i = 0; i < COUNT (codes); i++) {
    coffer_buffer_printf (buffer, "| %d | `%s` | %s | ", codes[i].number,
                          codes[i].name, codes[i].retryable);
    add_cell (buffer, codes[i].doc);
  }
  coffer_buffer_add_string (buffer, "\n## Types\n\n| type | in C | |\n"
                                    "|---|---|---|\n");
  for (i = 0; i < COUNT (types); i++) {
    coffer_buffer_printf (buffer, "| %s | `%s` | ", types[i].name, types[i].c);
    add_cell (buffer, types[i].doc);
  }
}

char *
contract_markdown (const struct contract *contract)
{
  coffer_autobuffer struct coffer_buffer buffer = { NULL };
  size_t i;

  coffer_buffer_printf (
    &buffer,
    "# Operations and records of contract %u.%u\n\n"
    "Made from the table in `<coffer/contract.h>` by "
    "`coffer contract --markdown`;\nchange it there.  coffer-provider(3) has "
    "the rules.\n\n## Operations\n",
    contract->major, contract->minor);
  for (i = 0; i < contract->n_ops; i++)
    add_operation (&buffer, contract, &contract->ops[i]);
  coffer_buffer_add_string (&buffer, "\n## Records\n");
  for (i = 0; i < contract->n_records; i++) {
    const struct contract_record *record = &contract->records[i];

    coffer_buffer_printf (&buffer, "\n### record %s\n\nId %u, since %u.%u: "
                          "%s.\n", record->name, record->id, contract->major,
                          record->since, record->doc);
    add_fields (&buffer, contract, "field", record->fields, record->n_fields);
  }
  add_lists (&buffer);
  return coffer_buffer_steal (&buffer);
}

/* ---- JSON --------------------------------------------------------------- */

static json_t *
json_fields (const struct contract_field *fields, size_t count)
{
  json_t *array = json_array ();
  size_t i;

  for (i = 0; i < count; i++) {
    const struct contract_field *field = &fields[i];
    json_t *row = json_pack ("{s:s, s:s, s:s*, s:s}", "name", field->name,
                             "type", contract_type_name (field->type),
                             "record",
                             field->record ? field->record->name : NULL,
                             "doc", field->doc);

    /* An argument is as old as its operation, and only an argument can be
     * one that must be given. */
    if (field->since > 0)
      json_object_set_new (row, "since", json_integer (field->since));
    else if (field->optional)
      json_object_set_new (row, "optional", json_true ());
    json_array_append_new (array, row);
  }
  return array;
}

static json_t *
json_operations (const struct contract *contract)
{
  json_t *array = json_array ();
  size_t i;

  for (i = 0; i < contract->n_ops; i++) {
    const struct contract_op *op = &contract->ops[i];

    json_array_append_new (
      array,
      json_pack ("{s:i, s:s, s:i, s:s, s:s, s:o, s:o}", "id", (int) op->id,
                 "name", op->name, "since", op->since, "capability",
                 op->capability, "doc", op->doc, "args",
                 json_fields (op->args, op->n_args), "opts",
                 json_fields (op->opts->fields, op->opts->n_fields)));
  }
  return array;
}

static json_t *
json_records (const struct contract *contract)
{
  json_t *array = json_array ();
  size_t i;

  for (i = 0; i < contract->n_records; i++) {
    const struct contract_record *record = &contract->records[i];

    json_array_append_new (
      array, json_pack ("{s:i, s:s, s:i, s:s, s:i, s:o}", "id",
                        (int) record->id, "name", record->name, "since",
                        record->since, "doc", record->doc, "size",
                        (int) record->size, "fields",
                        json_fields (record->fields, record->n_fields)));
  }
  return array;
}

static json_t *
json_capabilities (void)
{
  json_t *array = json_array ();
  size_t i;

  for (i = 0; i < COUNT (capabilities); i++)
    json_array_append_new (array, json_pack ("{s:s, s:s}", "word",
                                             capabilities[i].word, "doc",
                                             capabilities[i].doc));
  return array;
}

static json_t *
json_codes (void)
{
  json_t *array = json_array ();
  size_t i;

  for (i = 0; i < COUNT (codes); i++)
    json_array_append_new (
      array, json_pack ("{s:i, s:s, s:s, s:s}", "number", codes[i].number,
                        "name", codes[i].name, "retryable",
                        codes[i].retryable, "doc", codes[i].doc));
  return array;
}

json_t *
contract_json (const struct contract *contract)
{
  return json_pack ("{s:i, s:i, s:o, s:o, s:o, s:o}", "major",
                    contract->major, "minor", contract->minor, "operations",
                    json_operations (contract), "records",
                    json_records (contract), "capabilities",
                    json_capabilities (), "codes",
                    json_codes ());
}
