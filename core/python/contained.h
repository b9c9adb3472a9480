/* SPDX-License-Identifier: Apache-2.0 */
/* A run without namespaces, for machines that have none: the operator has said
 * that the container around the daemon is the layer in their place. */

#ifndef PYTHON_CONTAINED_H
#define PYTHON_CONTAINED_H

#include "policy/profile.h"
#include "python/kept.h"
#include "sandbox/sandbox.h"

struct contained_request {
  const struct profile *profile;        /* its limits of each process */
  const char *const *argv;              /* after its name: the arguments */
  int *channel;                 /* standard input: closed here once it has it */
  uint64_t timeout_ms;
  int cancel_fd;                /* -1: none */
  struct kept *out, *err;
};

/* One at a time: who comes while another one runs waits, and E_LIMIT after a
 * while.  *facts: what holds, as sandbox_create gives it.
 * E_ISOLATION_UNAVAILABLE where a layer does not hold: nothing has run. */
int contained_run (const struct place *place,
                   const struct contained_request *request,
                   struct exec_result *result, json_t **facts,
                   struct error **err);

#endif /* PYTHON_CONTAINED_H */
