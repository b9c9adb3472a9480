/* SPDX-License-Identifier: Apache-2.0 */
/* From a code of the contract to a public error: by the operation's family,
 * since NOT_FOUND of a file is another thing than NOT_FOUND of a sandbox. */

#include "config.h"

#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "provider/outcome.h"

enum family { FAMILY_OTHER, FAMILY_SANDBOX, FAMILY_EXEC, FAMILY_FILE };

void
outcome_fini (struct outcome *outcome)
{
  free (outcome->message);
  json_decref (outcome->details);
  error_free (outcome->error);
  memset (outcome, 0, sizeof *outcome);
}

void
outcome_fault (struct outcome *outcome, struct error *take_error)
{
  if (outcome->error)
    error_free (take_error);
  else
    outcome->error = take_error;
}

/* One line of UTF-8: anything else is escaped, and a long one is cut. */
static char *
clean_message (const char *message)
{
  size_t size = strnlen (message, OUTCOME_MAX_MESSAGE);

  while (size > 0 && !text_is_utf8 (message, size)
         && size > OUTCOME_MAX_MESSAGE - 4)
    size--;
  return text_escape (message, size);
}

void
outcome_fail (struct outcome *outcome, int32_t code, int32_t retryable,
              const char *message, const char *details)
{
  outcome->code = code;
  outcome->retryable = retryable;
  free (outcome->message);
  outcome->message = message ? clean_message (message) : NULL;
  json_decref (outcome->details);
  outcome->details = NULL;
  if (details && strnlen (details, OUTCOME_MAX_DETAILS) < OUTCOME_MAX_DETAILS
      && json_parse (details, strlen (details), &outcome->details, NULL) == 0
      && !json_is_object (outcome->details)) {
    json_decref (outcome->details);
    outcome->details = NULL;
  }
}

static enum family
op_family (const struct contract_op *op)
{
  static const struct {
    const char *prefix;
    enum family family;
  } table[] = {
    { "sandbox_", FAMILY_SANDBOX }, { "exec_", FAMILY_EXEC },
    { "warm_", FAMILY_EXEC },       { "file_", FAMILY_FILE },
    { "archive_", FAMILY_FILE },    { "port_", FAMILY_SANDBOX },
    { "metrics", FAMILY_SANDBOX },
  };
  size_t i;

  for (i = 0; i < sizeof table / sizeof table[0]; i++)
    if (strncmp (op->name, table[i].prefix, strlen (table[i].prefix)) == 0)
      return table[i].family;
  return FAMILY_OTHER;
}

/* An exec operation that names no exec can only miss the sandbox. */
static int
not_found (const struct contract_op *op, enum family family)
{
  uint16_t i;

  if (family == FAMILY_FILE)
    return E_FILE_NOT_FOUND;
  if (family == FAMILY_SANDBOX)
    return E_UNKNOWN_SANDBOX;
  if (family != FAMILY_EXEC)
    return E_NOT_FOUND;
  for (i = 0; i < op->n_args; i++)
    if (strcmp (op->args[i].name, "exec") == 0)
      return E_EXEC_UNKNOWN;
  return E_UNKNOWN_SANDBOX;
}

static int
public_number (int32_t code, const struct contract_op *op,
               const struct manifest *manifest)
{
  enum family family = op_family (op);
  int creates = op->id == COFFER_OP_sandbox_create;

  switch (code) {
  case COFFER_UNSUPPORTED:
    return E_CAPABILITY;
  case COFFER_INVALID:
    return creates ? E_SANDBOX_SPEC
           : op->id == COFFER_OP_archive_import ? E_ARCHIVE : E_INVALID;
  case COFFER_UNAUTHENTICATED:
    return E_CREDENTIALS_INVALID;
  case COFFER_DENIED:
    return family == FAMILY_FILE ? E_FILE_DENIED : E_DENIED;
  case COFFER_NOT_FOUND:
    return not_found (op, family);
  case COFFER_EXISTS:
    return family == FAMILY_FILE ? E_FILE_EXISTS
           : family == FAMILY_SANDBOX ? E_SANDBOX_EXISTS : E_PROVIDER_FAILED;
  case COFFER_CONFLICT:
    return family == FAMILY_FILE ? E_FILE_KIND
           : family == FAMILY_OTHER ? E_PROVIDER_FAILED : E_SANDBOX_STATE;
  case COFFER_BUSY:
    return E_BUSY;
  case COFFER_LIMIT:
    return family == FAMILY_FILE && op->id != COFFER_OP_file_watch
             ? E_FILE_SPACE : E_LIMIT;
  case COFFER_TIMEOUT:
    return E_PROVIDER_TIMEOUT;
  case COFFER_CANCELLED:
    return E_EXEC_CANCELLED;
  case COFFER_UNAVAILABLE:
    if (op->id == COFFER_OP_port_dial)
      return E_CONNECT_FAILED;
    return creates && manifest->isolation_kind
           && strcmp (manifest->isolation_kind, "namespaces") == 0
           ? E_ISOLATION_UNAVAILABLE : E_PROVIDER_FAILED;
  default:
    return E_PROVIDER_FAILED;
  }
}

static enum error_retryable
public_retryable (const struct outcome *outcome)
{
  switch (outcome->retryable) {
  case COFFER_RETRY_NO:
    return RETRY_NO;
  case COFFER_RETRY_YES:
    return RETRY_YES;
  case COFFER_RETRY_UNKNOWN:
    return RETRY_UNKNOWN;
  default:
    return contract_code_retryable (outcome->code);
  }
}

int
outcome_error (struct outcome *outcome, const struct manifest *manifest,
               const struct contract_op *op, struct error **err)
{
  const char *code = contract_code_name (outcome->code);
  const struct error_info *info;
  struct error *error = NULL;
  int number;

  if (outcome->error) {
    error = steal (outcome->error);
  } else if (outcome->code == COFFER_OK) {
    return 0;
  } else {
    number = public_number (outcome->code, op, manifest);
    info = error_lookup (number);
    error_set (&error, number, 0, "%s: %s: %s", manifest->id, op->name,
               outcome->message && *outcome->message ? outcome->message
               : info ? info->meaning : "failed");
    if (!error)
      return error_set (err, E_NO_MEMORY, 0, "out of memory");
    if (info && strstr (info->todo, "provider"))
      error_hint_id (&error, manifest->id);
    error->retryable = public_retryable (outcome);
    error_detail (&error, "code", json_string (code ? code : "INTERNAL"));
  }
  error_detail (&error, "provider", json_string (manifest->id));
  error_detail (&error, "operation", json_string (op->name));
  if (outcome->details)
    error_detail (&error, "reported", json_incref (outcome->details));
  return error_move (err, error);
}
