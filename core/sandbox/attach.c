/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that were started before: which there are, what they have written,
 * how they ended, and signals to them. */

#include "config.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/json.h"
#include "sandbox/exec.h"
#include "sandbox/request.h"
#include "sandbox/signals.h"

/* ---- which there are ---------------------------------------------------- */

static int
sink_exec (void *data, const struct contract_record *type, void *record)
{
  const struct coffer_exec_info *info = record;
  json_t *object;

  if (type->id != COFFER_REC_exec_info || !info->exec)
    return 0;
  object = json_object ();
  json_put_text (object, "exec", info->exec);
  json_put_text (object, "state", info->state);
  if (info->started_ns)
    json_object_set_new (object, "started_ns",
                         json_integer (info->started_ns));
  json_object_set_new (object, "background",
                       json_boolean (info->background));
  return json_array_append_new (data, object);
}

int
sandbox_exec_list (struct host *host, const char *id,
                   const struct provider_call *call, json_t **out,
                   struct error **err)
{
  auto_sandbox_record struct sandbox_record *record = NULL;
  struct provider_call inner = call ? *call : call_in (60000, -1);
  auto_json json_t *list = json_array ();
  struct provider *provider;

  if (host_reach (host, id, &record, &provider, err) < 0
      || claim_require (provider, "exec", err) < 0)
    return -1;
  inner.sink.record = sink_exec;
  inner.sink.data = list;
  if (INVOKE (provider, &inner, err, exec_list, .sandbox = id) < 0)
    return -1;
  *out = steal (list);
  return 0;
}

int
exec_signal_number (const char *word)
{
  const char *name = strncmp (word, "SIG", 3) == 0 ? word + 3 : word;
  char *end;
  long value = strtol (word, &end, 10);
  int i;

  if (*word >= '0' && *word <= '9')
    return *end == '\0' && value >= 1 && value <= 64 ? (int) value : 0;
  for (i = 1; i < 32; i++) {
    const char *known_name = sigabbrev_np (i);

    if (known_name && strcmp (known_name, name) == 0)
      return i;
  }
  return 0;
}

int
sandbox_exec_signal (struct host *host, const char *id, const char *exec,
                     int number, const struct provider_call *call,
                     struct error **err)
{
  auto_sandbox_record struct sandbox_record *record = NULL;
  struct provider *provider;

  if (number < 1 || number > 64)
    return error_set (err, E_INVALID, 0, "signal %d is not between 1 and 64",
                      number);
  if (host_reach (host, id, &record, &provider, err) < 0
      || claim_require (provider, "exec.signal", err) < 0)
    return -1;
  return INVOKE (provider, call, err, exec_signal, .sandbox = id,
                 .exec = exec, .signal = number);
}

/* ---- what one of them has written --------------------------------------- */

struct attach {
  struct provider *provider;
  struct contract_args_exec_attach args;
  struct async_call call;
  int ours[2], theirs[2];
  struct relay relays[2];
};

static int
stream_prepare (struct attach *attach, int i,
                const struct exec_streams *streams, struct error **err)
{
  const int to = i == 0 ? streams->out : streams->err;
  struct relay *relay = &attach->relays[i];
  int ends[2];

  if (pipe2 (ends, O_CLOEXEC) < 0)
    return error_set (err, E_IO, errno, "a pipe");
  attach->ours[i] = ends[0];
  attach->theirs[i] = ends[1];
  if (fcntl (ends[0], F_SETFL, O_NONBLOCK) < 0)
    return error_set (err, E_IO, errno, "a pipe");
  relay_init (relay, ends[0], to, streams->output ? RELAY_CALL : RELAY_SPLICE);
  relay->output = streams->output;
  relay->data = streams->data;
  relay->stream = i + 1;
  return 0;
}

/* Until both streams have ended.  1: our caller has given up. */
static int
attach_relay (struct attach *attach, int cancel_fd, struct error **err)
{
  struct pollfd fds[4];
  int i;

  while (relay_active (&attach->relays[0])
         || relay_active (&attach->relays[1])) {
    for (i = 0; i < 2; i++)
      relay_poll (&attach->relays[i], &fds[i]);
    fds[2] = (struct pollfd){
      .fd = attach->theirs[0] >= 0 ? attach->call.done_fd : -1,
      .events = POLLIN
    };
    fds[3] = (struct pollfd){ .fd = cancel_fd, .events = POLLIN };
    if (poll (fds, 4, -1) < 0) {
      if (errno != EINTR)
        return error_set (err, E_IO, errno, "poll");
      continue;
    }
    if (fds[3].revents)
      return 1;
    for (i = 0; i < 2; i++) {
      if (relay_step (&attach->relays[i], &fds[i]) < 0)
        return error_set (err, E_NO_MEMORY, 0, "a buffer");
      /* A reader that is gone: the provider is to hear of it. */
      if (attach->relays[i].end == RELAY_SINK_GONE)
        coffer_fd_close (&attach->ours[i]);
    }
    /* It has written all: without our copies the pipes end. */
    if (fds[2].revents) {
      coffer_fd_close (&attach->theirs[0]);
      coffer_fd_close (&attach->theirs[1]);
    }
  }
  return 0;
}

static int
attach_run (struct attach *attach, int cancel_fd, struct error **err)
{
  struct error *error = NULL, *call_error = NULL;
  int r, broken;

  if (async_begin (&attach->call, attach->provider, COFFER_OP_exec_attach,
                   &attach->args, NULL,
                   deadline_in ((int64_t) REQUEST_TTL_MAX_MS), err) < 0)
    return -1;
  r = attach_relay (attach, cancel_fd, &error);
  if (r != 0)
    async_cancel (&attach->call);
  broken = attach->relays[0].end == RELAY_SINK_GONE
           || attach->relays[1].end == RELAY_SINK_GONE;
  if (async_end (&attach->call, &call_error) < 0 && r == 0 && !broken)
    return error_move (err, call_error);
  error_free (call_error);
  if (r < 0)
    return error_move (err, error);
  return r;
}

static void
attach_fini (struct attach *attach)
{
  int i;

  for (i = 0; i < 2; i++) {
    relay_fini (&attach->relays[i]);
    coffer_fd_close (&attach->ours[i]);
    coffer_fd_close (&attach->theirs[i]);
  }
}

static int
let_go (const char *id, const char *exec, struct error **err)
{
  error_set (err, E_EXEC_CANCELLED, 0,
             "no longer listening to %s; it runs on", exec);
  error_hint (err, "coffer sandbox attach %s %s goes on from its beginning",
              id, exec);
  return -1;
}

int
sandbox_attach (struct host *host, const char *id, const char *exec,
                const struct exec_streams *streams, int cancel_fd,
                struct exec_result *result, struct error **err)
{
  auto_sandbox_record struct sandbox_record *record = NULL;
  struct attach attach = { .ours = { -1, -1 }, .theirs = { -1, -1 },
                           .relays = { { .from = -1 }, { .from = -1 } } };
  int r;

  memset (result, 0, sizeof *result);
  result->code = -1;
  signals_no_sigpipe ();
  if (host_reach (host, id, &record, &attach.provider, err) < 0
      || claim_require (attach.provider, "exec.background", err) < 0)
    return -1;
  r = stream_prepare (&attach, 0, streams, err) < 0
          || stream_prepare (&attach, 1, streams, err) < 0
        ? -1 : 0;
  attach.args.sandbox = id;
  attach.args.exec = exec;
  attach.args.out = attach.theirs[0];
  attach.args.err = attach.theirs[1];
  if (r == 0)
    r = attach_run (&attach, cancel_fd, err);
  result->out_bytes = attach.relays[0].moved;
  result->err_bytes = attach.relays[1].moved;
  attach_fini (&attach);
  if (r > 0)
    return let_go (id, exec, err);
  return r < 0 ? -1 : exec_end_wait (attach.provider, id, exec, cancel_fd,
                                     result, err);
}
