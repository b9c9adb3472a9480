/* SPDX-License-Identifier: Apache-2.0 */
/* Python code, looked at and run: one engine for `coffer run --python` and for
 * the service.
 *
 * Each run has a sandbox of its own, made by the profile and gone when the code
 * has ended.  The runner (runner.py) is the first program in it: it looks at the
 * code with the guard, says what it found, and only then runs those same bytes.
 * Nothing of the code is parsed in this process. */

#ifndef PYTHON_EXECUTE_H
#define PYTHON_EXECUTE_H

#include "sandbox/sandbox.h"

#define EXECUTE_PROFILE "minimal"
#define EXECUTE_CODE_MAX (1 << 20)
#define EXECUTE_TIMEOUT_MS 10000
#define EXECUTE_TIMEOUT_MAX_MS 30000
#define EXECUTE_FILES_COUNT 64
#define EXECUTE_FILES_MAX (8 << 20)     /* bytes of all */

/* Put into the working folder; the path is relative and has no ".". */
struct execute_file {
  const char *path, *bytes;
  size_t size;
};

struct execute_request {
  const char *profile;          /* NULL: minimal */
  const char *provider;         /* NULL: the default */
  const char *tenant;           /* whose the sandbox is; NULL: "default" */
  int isolated;                 /* not where a provider isolates nothing */
  const char *code;             /* UTF-8 is for the runner to find out */
  size_t code_size;
  const struct execute_file *files;
  size_t n_files;
  uint64_t timeout_ms;          /* 0: EXECUTE_TIMEOUT_MS */
  /* Without a sandbox of a provider: the operator has declared the container
   * around as the fifth layer; see contained.h. */
  int contained;
};

struct execute_result {
  int rejected;                 /* by the guard; nothing has run */
  int status;                   /* as exec_exit_status says; 0: rejected */
  char *provider, *sandbox;     /* also of a run that failed; NULL: none */
  /* {"stdout", "stderr", "exit_code", "timed_out", "result", "error",
   * "truncated", "duration_ms", "cpu_ms", "oom", "signal", "limits_hit",
   * "layers_applied", "artifacts", "profile"}, or, rejected,
   * {"error", "violations"}. */
  json_t *document;
};

/* Everything that can be refused before a sandbox is made: E_INVALID, its
 * detail `field` being the request's; E_NOT_FOUND for a profile, and E_PROFILE
 * for one that has no imports. */
int execute_check (struct host *host, const struct execute_request *request,
                   struct error **err);
/* cancel_fd readable (-1: none): the sandbox is ended, E_EXEC_CANCELLED. */
int execute_run (struct host *host, const struct execute_request *request,
                 int cancel_fd, struct execute_result *out,
                 struct error **err);
void execute_result_fini (struct execute_result *result);

/* {"name", "description", "allowed_imports", "layers", …}: what the service says
 * of a profile. */
int execute_describe (const struct place *place, const char *profile,
                      json_t **out, struct error **err);

#endif /* PYTHON_EXECUTE_H */
