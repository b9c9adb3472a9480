/* SPDX-License-Identifier: Apache-2.0 */
/* `coffer contract`: the operation table that this coffer was built with. */

#include <config.h>

#include "cli/commands.h"

#include <stdlib.h>
#include <string.h>

#include "cli/operation.h"
#include "cli/output.h"
#include "contract/contract.h"

static int
print_markdown (const struct contract *contract, struct error **err)
{
  auto_free char *text = contract_markdown (contract);

  if (!text)
    return error_set (err, E_NO_MEMORY, 0, "writing the reference");
  fputs (text, stdout);
  return output_finish (err);
}

static int
print_list (struct cli *cli, const struct contract *contract,
            struct error **err)
{
  static const char *const heads[] = { "ID", "OPERATION", "CAPABILITY",
                                       "WHAT IT DOES" };
  auto_output_table struct output_table *table = output_table_new (4, heads);
  size_t i;

  for (i = 0; i < contract->n_ops; i++) {
    const struct contract_op *op = &contract->ops[i];
    char id[16];
    const char *cells[] = { id, op->name,
                            *op->capability ? op->capability : "-", op->doc };

    snprintf (id, sizeof id, "%u", op->id);
    output_table_row (table, cells);
  }
  return output_table_print (table, cli, err);
}

static void
add_field_row (struct output_table *table, const char *prefix,
               const struct contract_field *field)
{
  char name[96], type[64];
  const char *cells[] = { name, type, field->doc };

  snprintf (name, sizeof name, "%s%s", prefix, field->name);
  snprintf (type, sizeof type, "%s%s%s", contract_type_name (field->type),
            field->record ? " " : "",
            field->record ? field->record->name : "");
  output_table_row (table, cells);
}

/* The fields of the records that an argument consists of are set by key, so
 * they are shown as `coffer call` takes them. */
static void
add_record_rows (struct output_table *table, const char *name,
                 const struct contract_record *record)
{
  char prefix[64];
  size_t i;

  snprintf (prefix, sizeof prefix, "%s.", name);
  for (i = 0; i < record->n_fields; i++)
    add_field_row (table, prefix, &record->fields[i]);
}

static int
print_operation (struct cli *cli, const struct contract_op *op,
                 struct error **err)
{
  static const char *const heads[] = { "KEY", "TYPE", "WHAT" };
  auto_output_table struct output_table *table = output_table_new (3, heads);
  size_t i;

  printf ("%s: %s\n", op->name, op->doc);
  if (*op->capability)
    printf ("needs the capability %s\n", op->capability);
  for (i = 0; i < op->n_args; i++) {
    add_field_row (table, "", &op->args[i]);
    if (op->args[i].type == CONTRACT_REC)
      add_record_rows (table, op->args[i].name, op->args[i].record);
  }
  add_record_rows (table, "opts", op->opts);
  if (op->n_args + op->opts->n_fields == 0)
    return output_finish (err);
  return output_table_print (table, cli, err);
}

static json_t *
operation_json (const struct contract *contract, const struct contract_op *op)
{
  json_t *all = contract_json (contract), *found;

  found = json_incref (json_array_get (json_object_get (all, "operations"),
                                       op - contract->ops));
  json_decref (all);
  return found;
}

static int
contract_run (struct cli *cli, struct error **err)
{
  const struct contract *contract = contract_builtin ();
  const struct contract_op *op = NULL;

  if (cli_flag (cli, "markdown") && (cli->json || cli->n_args))
    return error_set (err, E_USAGE, 0, "--markdown prints the whole "
                      "reference and goes with nothing else");
  if (cli->n_args && operation_find (contract, cli->args[0], &op, err) < 0)
    return -1;
  if (cli_flag (cli, "markdown"))
    return print_markdown (contract, err);
  if (cli->json)
    return output_json (op ? operation_json (contract, op)
                           : contract_json (contract), err);
  return op ? print_operation (cli, op, err)
            : print_list (cli, contract, err);
}

static const struct cli_option contract_options[] = {
  { "markdown", 0, NULL, 0, "print the reference of operations and records" },
  { NULL }
};

const struct cli_command contract_commands[] = {
  { "contract", "[OPERATION]", "show the operations that providers implement",
    contract_options, 0, 1, -1, 0, contract_run },
  { NULL }
};
