/* SPDX-License-Identifier: Apache-2.0 */
/* A command that somebody waits for, whose output is kept in memory, head and
 * tail.  Needs no thread, and holds none of the calls that a provider takes at
 * once while the command runs: so many may be waited for at the same time. */

#ifndef SANDBOX_EXEC_CAPTURE_H
#define SANDBOX_EXEC_CAPTURE_H

#include "sandbox/capture.h"
#include "sandbox/sandbox.h"

struct exec_capture {
  const struct exec_request *request;
  const char *input;            /* its standard input; NULL: /dev/null */
  size_t input_size;
  struct capture out, err;      /* with capture_fini by the caller, who may have
                                 * set `hold` of both to one */
  struct exec_result result;    /* with exec_result_fini */
  const char *provider;         /* whose it was, once it was started */
};

/* cancel_fd readable: the command is ended, E_EXEC_CANCELLED. */
int sandbox_exec_capture (struct host *host, const char *id,
                          struct exec_capture *capture, int cancel_fd,
                          struct error **err);

#endif /* SANDBOX_EXEC_CAPTURE_H */
