/* SPDX-License-Identifier: Apache-2.0 */
/* A module in the host's own process: the host table over invoke_*.  Only for
 * what coffer ships: nothing contains a crash here, and a deadline is the
 * module's own to keep. */

#include "config.h"

#include <string.h>

#include "provider/dispatch.h"
#include "provider/loader.h"
#include "provider/opening.h"

struct in_process {
  struct module *module;
  void *self;
};

/* The call as the module sees it, and the one behind it. */
struct local_call {
  struct coffer_call call;      /* first */
  struct invoke *invoke;
  void *self;                   /* from `opened` */
};

static struct local_call *
local_call (struct coffer_call *call)
{
  return (struct local_call *) (void *) call;
}

static int32_t
host_emit (struct coffer_call *call, uint32_t record, const void *data)
{
  return invoke_emit (local_call (call)->invoke, record, data);
}

static int32_t
host_fail (struct coffer_call *call, int32_t code, int32_t retryable,
           const char *message, const char *details)
{
  return invoke_fail (local_call (call)->invoke, code, retryable, message,
                      details);
}

static void
host_log (struct coffer_call *call, int32_t level, const char *text)
{
  invoke_log (local_call (call)->invoke, level, text);
}

static void
host_progress (struct coffer_call *call, uint64_t done, uint64_t total,
               const char *what)
{
  invoke_progress (local_call (call)->invoke, done, total, what);
}

static int32_t
host_connect (struct coffer_call *call, const char *target)
{
  return invoke_connect (local_call (call)->invoke, target);
}

static int32_t
host_file (struct coffer_call *call, const char *name)
{
  return invoke_file (local_call (call)->invoke, name);
}

static int32_t
host_opened (struct coffer_call *call, void *self)
{
  local_call (call)->self = self;
  return COFFER_OK;
}

static const struct coffer_host host_table = {
  .size = sizeof host_table, .emit = host_emit, .fail = host_fail,
  .log = host_log, .progress = host_progress, .connect = host_connect,
  .opened = host_opened, .file = host_file
};

static void
in_process_call (struct provider *provider, struct invoke *invoke)
{
  struct in_process *state = provider->state;
  struct local_call local = {
    .call = { .size = sizeof local.call, .host = &host_table,
              .request = invoke->request, .deadline_ns = invoke->deadline_ns,
              .cancel_fd = invoke->cancel_fd },
    .invoke = invoke
  };
  int32_t code = contract_invoke (state->module->calls, invoke->op,
                                  state->module->operations, &local.call,
                                  state->self, invoke->values);

  if (local.self)
    state->self = local.self;
  invoke_return (invoke, code);
}

static void
in_process_close (struct provider *provider)
{
  union contract_value none[1] = { { .rec = NULL } };
  struct in_process *state = provider->state;
  struct invoke invoke = {
    .op = contract_op_by_id (provider->contract, COFFER_OP_close),
    .values = none, .cancel_fd = -1
  };

  if (state->self) {
    invoke_run (provider, &invoke);
    outcome_fini (&invoke.outcome);
  }
  module_free (state->module);
  free (state);
}

static int
in_process_pid (const struct provider *provider)
{
  (void) provider;
  return 0;
}

const struct backend backend_in_process = {
  .call = in_process_call, .close = in_process_close, .pid = in_process_pid
};

static int
call_open (struct provider *provider, struct error **err)
{
  struct opening *opening = provider->opening;
  struct in_process *state = provider->state;
  union contract_value values[2] = {
    { .strv = (const char *const *) opening->config },
    { .rec = &opening->opts }
  };
  struct invoke invoke = {
    .op = contract_op_by_id (provider->contract, COFFER_OP_open),
    .values = values, .cancel_fd = -1
  };
  int result;

  invoke_run (provider, &invoke);
  result = outcome_error (&invoke.outcome, provider->manifest, invoke.op,
                          err);
  outcome_fini (&invoke.outcome);
  if (result == 0 && !state->self)
    return error_set (err, E_MODULE, 0,
                      "open succeeded but gave no instance");
  return result;
}

int
in_process_start (struct provider *provider, struct error **err)
{
  struct opening *opening = provider->opening;
  auto_free struct in_process *state = calloc (1, sizeof *state);
  int fd = opening->module_fd, bad;

  if (!state)
    return error_set (err, E_NO_MEMORY, 0, "out of memory");
  opening->module_fd = -1;
  if (opening->built_in)
    bad = module_built_in (provider->contract, opening->built_in->entry (),
                           &opening->claim, &state->module, err);
  else
    bad = module_load (provider->contract, fd, &opening->note,
                       &opening->claim, &state->module, err);
  if (bad)
    return error_wrap (err, "handshake with %s", opening->claim.file);
  provider->state = state;
  provider->backend = &backend_in_process;
  if (call_open (provider, err) < 0) {
    provider->backend = NULL;
    provider->state = NULL;
    module_free (state->module);
    return -1;
  }
  (void) steal (state);
  return 0;
}
