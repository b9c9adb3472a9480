/* SPDX-License-Identifier: Apache-2.0 */
/* One command while it runs: what exec.c prepares and exec-relay.c moves. */

#ifndef SANDBOX_EXEC_H
#define SANDBOX_EXEC_H

#include "sandbox/async.h"
#include "sandbox/host.h"
#include "sandbox/relay.h"

enum { EXEC_IN, EXEC_OUT, EXEC_ERR, EXEC_STREAMS };

struct exec_run {
  struct host *host;
  struct provider *provider;
  const struct sandbox_record *record;
  const struct exec_request *request;
  const struct exec_streams *streams;
  struct exec_result *result;
  int cancel_fd;
  /* Ours, and the command's until exec_start has returned.  With a terminal
   * ours[EXEC_IN] is -1 and ours[EXEC_OUT] its master. */
  int ours[EXEC_STREAMS], theirs[EXEC_STREAMS];
  struct relay relays[EXEC_STREAMS];
  /* exec_wait: on a thread, or, when a brief command's streams have ended
   * before there was one, by who relayed them. */
  struct contract_args_exec_wait wait_args;
  int64_t wait_limit_ns;
  int64_t wait_at_ns;           /* when to start the thread; 0: it was */
  struct async_call wait;
  struct error *waited;         /* what it said without the thread */
  int over;                     /* it had ended when it was started */
  int finished;                 /* it has returned */
  int cancelled, overdue;       /* why the command is being ended */
  int stage;                    /* how hard it was tried to end it */
  int64_t next_stage_ns;        /* 0: nothing to do */
  int64_t grace_end_ns;
  int64_t backstop_ns;          /* 0: no timeout */
};

#define EXEC_START_MS 60000

/* Whether the provider claims all that such a command needs. */
int exec_check_claims (const struct provider *provider, int has_stdin, int tty,
                       int background, struct error **err);
/* Has it started, on the caller's descriptors (-1: none; with a terminal the
 * first is its slave).  *over: it has ended already, or never ran. */
int exec_start (struct provider *provider, const struct sandbox_record *record,
                const struct exec_request *request, const int fds[EXEC_STREAMS],
                int tty, int cancel_fd, char **exec, int *over,
                struct error **err);
/* How it ended, by `deadline_ns`. */
int exec_wait_until (struct provider *provider, const char *id,
                     const char *exec, int64_t deadline_ns, int cancel_fd,
                     struct exec_result *result, struct error **err);

/* Whether it has: E_EXEC_UNKNOWN when its provider has forgotten it. */
int exec_is_over (struct provider *provider, const char *id,
                  const char *exec, int *over, struct error **err);

/* Starts the thread that waits, unless it was. */
int exec_wait_begin (struct exec_run *run, struct error **err);
/* Waits without one, for a command whose streams are through. */
void exec_wait_here (struct exec_run *run);

/* Relays until the command has ended and its output has been moved.  -1 when
 * the host itself failed; what the provider said is in run->wait or waited. */
int exec_relay (struct exec_run *run, struct error **err);

/* How a command ended, that was started before. */
int exec_end_wait (struct provider *provider, const char *id,
                   const char *exec, int cancel_fd,
                   struct exec_result *result, struct error **err);

/* Ends the command, harder with each call: the ephemeral sandbox at once, in
 * another one the signal that was caught, then SIGKILL, then letting go. */
void exec_end (struct exec_run *run);

#endif /* SANDBOX_EXEC_H */
