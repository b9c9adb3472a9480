/* SPDX-License-Identifier: Apache-2.0 */
/* `coffer call`: one operation of one provider, by the table alone.  For
 * authors and for finding faults: no records are kept of what it makes. */

#include <config.h>

#include "cli/commands.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "cli/call.h"
#include "cli/operation.h"
#include "cli/host.h"

struct printer {
  FILE *stream;
  struct error *error;
};

/* One emit: {"NAME": {…}} on a line. */
static int
print_record (void *data, const struct contract_record *type, void *record)
{
  struct printer *printer = data;
  struct contract_fds fds = { .count = 0 };
  auto_json json_t *line = json_object ();
  auto_free char *text = NULL;
  json_t *fields;

  if (contract_encode_record (type, record, &fields, &fds, &printer->error)
      < 0)
    return -1;
  json_object_set_new (line, type->name, fields);
  text = json_text (line);
  if (!text)
    return error_set (&printer->error, E_NO_MEMORY, 0, "printing");
  if (fprintf (printer->stream, "%s\n", text) < 0
      || fflush (printer->stream) == EOF)
    return error_set (&printer->error, E_IO, errno, "printing");
  return 0;
}

static int
find_op (const char *name, const struct contract_op **op, struct error **err)
{
  if (operation_find (contract_builtin (), name, op, err) < 0)
    return -1;
  if ((*op)->id != COFFER_OP_open && (*op)->id != COFFER_OP_close)
    return 0;
  error_set (err, E_USAGE, 0, "%s is part of every call", name);
  error_hint (err, "coffer provider info ID shows what open was given");
  return -1;
}

/* The call itself, with its streams. */
static int
call_invoke (struct provider *provider, const struct contract_op *op,
             const union contract_value *values,
             struct call_streams *streams, const struct provider_call *call,
             struct error **err)
{
  auto_error struct error *copying = NULL;
  int r = call_streams_start (streams, call->cancel_fd, err);

  if (r == 0)
    r = provider_invoke (provider, op->id, values, call, err);
  if (call_streams_finish (streams, r < 0, &copying) < 0 && r == 0)
    r = error_move (err, steal (copying));
  /* The call may be over and a stream of it not. */
  if (r == 0 && sandbox_signal_caught ())
    r = error_set (err, E_EXEC_CANCELLED, 0, "%s: ended by a signal",
                   op->name);
  return r;
}

static int
call_provider (struct cli *cli, struct provider *provider,
               const struct contract_op *op,
               const union contract_value *values,
               struct call_streams *streams, struct error **err)
{
  struct printer printer = { streams->writes_stdout ? stderr : stdout, NULL };
  struct provider_call call;
  uint64_t timeout_ms = 0;
  int r;

  if (cli_duration (cli, "timeout", PROFILE_TIMEOUT, &timeout_ms, err) < 0
      || cli_call (timeout_ms, NULL, &call, err) < 0)
    return -1;
  call.sink.record = print_record;
  call.sink.data = &printer;
  r = call_invoke (provider, op, values, streams, &call, err);
  if (printer.error)
    return error_move (err, printer.error);
  return r;
}

static int
call_open (struct cli *cli, const struct contract_op *op,
           const union contract_value *values, struct call_streams *streams,
           struct error **err)
{
  auto_registry struct registry *registry = NULL;
  auto_provider struct provider *provider = NULL;
  const struct registry_entry *entry;
  const struct place *place;

  if (cli_place (cli, &place, err) < 0
      || registry_load_one (place, cli->args[0], &registry, err) < 0
      || registry_find (registry, cli->args[0], &entry, err) < 0
      || provider_open (entry, place,
                        cli_flag (cli, "in-process") ? PROVIDER_IN_PROCESS
                                                     : PROVIDER_WORKER,
                        &provider, err) < 0)
    return -1;
  return call_provider (cli, provider, op, values, streams, err);
}

/* All that can be wrong with the words is found before anything is run. */
static int
call_words (struct cli *cli, const struct contract_op *op,
            struct call_streams *streams, struct error **err)
{
  union contract_value values[CONTRACT_MAX_ARGS + 1];
  auto_arena struct contract_arena *arena = contract_arena_new ();
  auto_json json_t *args = NULL;

  if (!arena)
    return error_set (err, E_NO_MEMORY, 0, "calling %s", op->name);
  if (call_values (op, cli->args + 2, streams, &args, err) < 0
      || contract_decode_args (op, args, &streams->fds, arena, values, err)
           < 0)
    return -1;
  return call_open (cli, op, values, streams, err);
}

static int
call_run (struct cli *cli, struct error **err)
{
  const struct contract_op *op;
  struct call_streams streams;
  int r;

  if (find_op (cli->args[1], &op, err) < 0)
    return -1;
  call_streams_init (&streams);
  r = call_words (cli, op, &streams, err);
  call_streams_fini (&streams);
  return r < 0 ? -1 : output_finish (err);
}

static const struct cli_option call_options[] = {
  { "timeout", 0, "TIME", 0, "give the call this long; 60s unless said" },
  { "in-process", 0, NULL, 0, "without a worker; only for shipped modules" },
  { NULL }
};

const struct cli_command call_commands[] = {
  { "call", "PROVIDER OPERATION [KEY=VALUE…]",
    "call one operation of a provider and print what it emits", call_options,
    2, -1, -1, 0, call_run },
  { NULL }
};
