/* SPDX-License-Identifier: Apache-2.0 */
/* Commands in the background of a daemon: their streams go into logs whether
 * anybody reads those or not, and their ends are found out.
 *
 * A pump thread moves bytes from all their pipes into the logs; others ask
 * providers how those ended whose streams have, each provider by one of them at a
 * time, so that one that hangs keeps only its own waiting; another one clears away
 * what is gone.  Their descriptors are with coffer-keeper too, so that the next daemon
 * goes on with what this one was killed at (exec-keeper.h). */

#ifndef SANDBOX_EXECS_H
#define SANDBOX_EXECS_H

#include "policy/shares.h"
#include "sandbox/exec-log.h"

struct execs;

struct execs_options {
  struct host *host;
  const struct place *place;
  struct shares *shares;        /* NULL: tenants have none */
  uint64_t cap, cap_all;        /* bytes of one log, and of all */
};

/* Opens the logs, takes over what runs still and clears away what is gone. */
int execs_start (const struct execs_options *options, struct execs **out,
                 struct error **err);
/* Commands run on; the next daemon finds them. */
void execs_stop (struct execs *execs);
DEFINE_CLEANUP (struct execs *, execs_stop, auto_execs)
#define auto_execs CLEANUP (auto_execs)
struct exec_logs *execs_logs (struct execs *execs);
/* How many there are whose end is not written yet. */
size_t execs_count (struct execs *execs);

struct execs_spec {
  const struct exec_request *request;
  int tty;                      /* rows and columns are the request's */
  int keeps_input;              /* standard input is a pipe, see execs_write */
  int attended;                 /* somebody waits: what the profile says of
                                 * such a command's timeout holds */
  const char *input;            /* or exactly this; NULL: /dev/null */
  size_t input_size;
};
/* At most so much may be given with it. */
#define EXECS_INPUT_MAX (64 << 10)

/* *info: as exec_log_info gives it.  E_LIMIT when its tenant has its share of
 * commands, or of room for logs. */
int execs_begin (struct execs *execs, const char *sandbox,
                 const struct execs_spec *spec, int cancel_fd, json_t **info,
                 struct error **err);

/* From `from` to the command's standard input, to its end.  E_BUSY while
 * another one writes; E_SANDBOX_STATE when the command has ended, takes no
 * more, or was given no standard input. */
int execs_write (struct execs *execs, const char *sandbox, const char *exec,
                 int from, int cancel_fd, uint64_t *written,
                 struct error **err);
/* The end of it: of a terminal, the character for that. */
int execs_close_input (struct execs *execs, const char *sandbox,
                       const char *exec, const struct provider_call *call,
                       struct error **err);
int execs_resize (struct execs *execs, const char *sandbox, const char *exec,
                  uint32_t rows, uint32_t columns,
                  const struct provider_call *call, struct error **err);
/* The sandbox was ended: its logs go. */
void execs_sandbox_gone (struct execs *execs, const char *sandbox);

#endif /* SANDBOX_EXECS_H */
