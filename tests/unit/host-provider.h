/* SPDX-License-Identifier: Apache-2.0 */
/* plugins/host, called as a host calls it: by its table, with a fake host, each
 * test in a folder of its own, where it may leave nothing. */

#ifndef UNIT_HOST_PROVIDER_H
#define UNIT_HOST_PROVIDER_H

#include "fakehost.h"

#define OP (fixture->operations)
#define SANDBOX "sb-test"
/* How one begins. */
#define SPEC .size = sizeof (struct coffer_sandbox_spec), .lifeline = -1
#define SOON (coffer_now_ns () + HARNESS_PATIENCE_NS)

struct fixture {
  char *dir;
  int runtime, keeper;
  const struct coffer_operations *operations;
  void *self;
  struct fakehost host;
  int lifeline;                 /* write end; -1: none */
};

/* A command with its output on a pipe. */
struct run {
  int out;                      /* read end; -1: none */
  char exec[32];
  char *output;
  size_t size;
  struct coffer_exec_exit exit;
};

/* Descendants that try to get away: another session, a parent that ends,
 * signals ignored, stopped.  Each holds the output pipe. */
#define RUNAWAYS                                                              \
  "trap '' TERM HUP INT; "                                                    \
  "setsid sh -c 'trap \"\" TERM; echo 1; sleep 300' & "                       \
  "(setsid sh -c 'sleep 300 & echo 2; sleep 300' &) ; "                       \
  "sh -c 'echo 3; kill -STOP $$' & "                                          \
  "(sh -c '(setsid sh -c \"echo 4; sleep 300\" &)' &) ; "
#define N_RUNAWAYS 4

const struct coffer_operations *load_module (void);
void open_provider (struct fixture *fixture);
int fixture_new (void **state);
int32_t kill_sandbox (struct fixture *fixture, const char *id);
unsigned entries (const char *dir);
/* Nothing may be left by any test. */
int fixture_free (void **state);
int32_t create (struct fixture *fixture,
                const struct coffer_sandbox_spec *spec);
int32_t start_argv (struct fixture *fixture, const char *const *argv,
                    const char *const *env, const char *cwd, int32_t in,
                    const struct coffer_exec_start_opts *opts, struct run *run);
int32_t start_script (struct fixture *fixture, const char *script,
                      uint64_t timeout_ms, struct run *run);
void wait_run (struct fixture *fixture, struct run *run);
/* All that the command and whoever holds its pipe have written.  Fails when
 * somebody goes on holding it. */
void read_output (struct run *run);
void run_free (struct run *run);
void run_script (struct fixture *fixture, const char *script, struct run *run);
void read_line (struct run *run, char *line, size_t size);
void wait_for_runaways (struct run *run);

#endif /* UNIT_HOST_PROVIDER_H */
