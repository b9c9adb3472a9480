/* SPDX-License-Identifier: Apache-2.0 */
/* The layer that every call passes: state, arguments, capability, deadline,
 * thread model, trace, call, result. */

#include "config.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/log.h"
#include "base/text.h"
#include "provider/dispatch.h"

#define DEFAULT_DEADLINE_NS (60 * 1000000000LL)

/* Some wait for something inside the sandbox, so that they never hold the lock of
 * a serial module; and some last as long as a peer, a registry or a server inside
 * does. */
static unsigned
op_kind (const struct contract_op *op)
{
  switch (op->id) {
  case COFFER_OP_exec_wait:
  case COFFER_OP_exec_attach:
    return GATE_WAITS;
  case COFFER_OP_file_watch:
    return GATE_WAITS | GATE_ENDLESS;
  case COFFER_OP_sandbox_create:
  case COFFER_OP_file_read:
  case COFFER_OP_file_write:
  case COFFER_OP_archive_export:
  case COFFER_OP_archive_import:
  case COFFER_OP_snapshot_create:
  case COFFER_OP_port_dial:
    return GATE_LONG;
  default:
    return 0;
  }
}

static int
op_runs_commands (const struct contract_op *op)
{
  return op->id == COFFER_OP_exec_start || op->id == COFFER_OP_exec_attach;
}

/* With a file of the caller's as its output, a command could open it anew
 * through /proc and truncate it. */
int
fd_is_stream (int fd)
{
  struct stat st;
  int flags;

  if (fd == -1)
    return 1;
  flags = fd < 0 ? -1 : fcntl (fd, F_GETFL);
  if (flags < 0 || (flags & O_PATH) || fstat (fd, &st) < 0)
    return 0;
  return S_ISFIFO (st.st_mode) || S_ISSOCK (st.st_mode)
         || (S_ISCHR (st.st_mode) && isatty (fd));
}

static int
argument_is_text (const struct contract_field *field,
                  const union contract_value *value)
{
  return field->type != CONTRACT_TEXT || !value->str
         || text_is_utf8 (value->str, strlen (value->str));
}

static int
is_missing (const struct contract_field *field,
            const union contract_value *value)
{
  return !field->optional && !value->rec
         && (field->type == CONTRACT_STR || field->type == CONTRACT_TEXT
             || field->type == CONTRACT_REC);
}

static int
check_arguments (const struct provider *provider,
                 const struct contract_op *op,
                 const union contract_value *values, struct error **err)
{
  const struct contract_field *field;
  const char *wrong;
  uint16_t i;

  for (i = 0; i < op->n_args; i++) {
    field = &op->args[i];
    wrong = is_missing (field, &values[i]) ? "is missing"
            : !argument_is_text (field, &values[i]) ? "is not UTF-8"
            : op_runs_commands (op) && field->type == CONTRACT_FD
              && !fd_is_stream (values[i].i32)
            ? "is not a pipe, a socket or a terminal" : NULL;
    if (wrong)
      return error_set (err, E_INVALID, 0, "%s: %s: %s %s",
                        provider->manifest->id, op->name, field->name, wrong);
  }
  if (op->id == COFFER_OP_exec_start
      && (!values[1].strv || !values[1].strv[0]))
    return error_set (err, E_INVALID, 0, "%s: %s: the command is empty",
                      provider->manifest->id, op->name);
  return 0;
}

static void
trace (const struct invoke *invoke, int64_t began_ns)
{
  const char *code = contract_code_name (invoke->outcome.code);

  log_event (LOG_LEVEL_DEBUG, "dispatch", "%s #%llu %s: %s in %lld us",
             invoke->provider->manifest->id,
             (unsigned long long) invoke->request, invoke->op->name,
             invoke->outcome.error ? "FAULT" : code ? code : "?",
             (long long) ((coffer_now_ns () - began_ns) / 1000));
}

/* It did not begin. */
static void
turn_away (const struct provider *provider, struct invoke *invoke,
           int32_t code)
{
  auto_free char *why = NULL;

  if (code == COFFER_LIMIT)
    why = text_printf ("%" PRIu64 " such calls run already, or nearly all that "
                       "it may run at once (limits.calls): end one of them",
                       gate_most_endless (&provider->gate));
  outcome_fail (&invoke->outcome, code, COFFER_RETRY_YES,
                why ? why : "the call did not begin: the provider was busy",
                NULL);
}

/* The thread model, the call, and a line of what came of it. */
void
invoke_run (struct provider *provider, struct invoke *invoke)
{
  int traced = log_enabled (LOG_LEVEL_DEBUG, "dispatch");
  unsigned kind = op_kind (invoke->op);
  int64_t now = coffer_now_ns ();
  int32_t code;

  invoke->provider = provider;
  invoke->request = atomic_fetch_add (&provider->requests, 1) + 1;
  if (invoke->deadline_ns == 0)
    invoke->deadline_ns = now + DEFAULT_DEADLINE_NS;
  if (now >= invoke->deadline_ns)
    code = COFFER_TIMEOUT;
  else
    code = gate_enter (&provider->gate, kind, invoke->deadline_ns,
                       invoke->cancel_fd);
  if (code != COFFER_OK) {
    turn_away (provider, invoke, code);
    return;
  }
  invoke->first_line = journal_mark (&provider->journal);
  provider->backend->call (provider, invoke);
  gate_leave (&provider->gate, kind);
  if (traced)
    trace (invoke, now);
}

int
provider_invoke (struct provider *provider, uint32_t id,
                 const union contract_value *values,
                 const struct provider_call *call, struct error **err)
{
  const struct contract_op *op = contract_op_by_id (provider->contract, id);
  struct invoke invoke = { .op = op, .values = values, .cancel_fd = -1 };
  int result;

  if (!op || id == COFFER_OP_open || id == COFFER_OP_close)
    return error_set (err, E_INTERNAL, 0, "operation %u is not for callers",
                      id);
  if (check_arguments (provider, op, values, err) < 0)
    return -1;
  if (*op->capability && !provider_claims (provider, op->capability)) {
    error_set (err, E_CAPABILITY, 0, "%s does not have %s (%s)",
               provider->manifest->id, op->capability, op->name);
    error_hint_id (err, provider->manifest->id);
    error_detail (err, "provider", json_string (provider->manifest->id));
    error_detail (err, "capability", json_string (op->capability));
    return -1;
  }
  if (call) {
    invoke.sink = call->sink;
    invoke.deadline_ns = call->deadline_ns;
    invoke.cancel_fd = call->cancel_fd;
  }
  invoke_run (provider, &invoke);
  result = outcome_error (&invoke.outcome, provider->manifest, op, err);
  outcome_fini (&invoke.outcome);
  return result;
}

int
provider_invoke_args (struct provider *provider, uint32_t id,
                      const void *args, const struct provider_call *call,
                      struct error **err)
{
  const struct contract_op *op = contract_op_by_id (provider->contract, id);
  union contract_value values[CONTRACT_MAX_ARGS + 1];

  if (!op)
    return error_set (err, E_INTERNAL, 0, "no operation %u", id);
  contract_args_values (op, args, values);
  return provider_invoke (provider, id, values, call, err);
}

int
provider_try (struct provider *provider, uint32_t id,
              const union contract_value *values,
              const struct provider_call *call, struct outcome *outcome,
              struct error **err)
{
  const struct contract_op *op = contract_op_by_id (provider->contract, id);
  struct invoke invoke = {
    .op = op, .values = values, .sink = call->sink,
    .deadline_ns = call->deadline_ns, .cancel_fd = call->cancel_fd
  };

  if (!op || id == COFFER_OP_open || id == COFFER_OP_close)
    return error_set (err, E_INTERNAL, 0, "operation %u is not for callers",
                      id);
  if (check_arguments (provider, op, values, err) < 0)
    return -1;
  invoke_run (provider, &invoke);
  *outcome = invoke.outcome;
  return 0;
}
