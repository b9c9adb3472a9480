/* SPDX-License-Identifier: Apache-2.0 */
/* Starting a keeper: its socket, its plan, its descriptors. */

#define _GNU_SOURCE

#include <errno.h>
#include <string.h>

#include <coffer/buffer.h>
#include <coffer/fd.h>
#include <coffer/packet.h>
#include <coffer/process.h>

#include "reference.h"

/* In a memory file and not in arguments: the environment may be secret. */
static int
make_plan (const char *sandbox, const struct coffer_sandbox_spec *spec)
{
  coffer_autobuffer struct coffer_buffer bytes = {0};
  struct plan plan = {
    .flags = (spec->lifeline >= 0 ? PLAN_LIFELINE : 0)
             | (spec->single_exec ? PLAN_SINGLE : 0),
    .ttl_ms = spec->ttl_ms,
  };

  coffer_buffer_add (&bytes, &plan, sizeof plan);
  coffer_buffer_add_vector (&bytes, (const char *const[]) {
    sandbox, spec->workdir ? spec->workdir : "", NULL});
  plan.n_env = coffer_buffer_add_vector (&bytes, spec->env);
  if (!bytes.failed)
    memcpy (bytes.data, &plan, sizeof plan);
  if (bytes.failed || bytes.size > BLOCK_MAX) {
    errno = bytes.failed ? ENOMEM : E2BIG;
    return -1;
  }
  return coffer_memfd_sealed ("plan", bytes.data, bytes.size);
}

int
keeper_spawn (const struct reference *self, const char *sandbox, int folder,
              const struct coffer_sandbox_spec *spec)
{
  /* Listening before the keeper runs: whoever connects waits for it instead of
   * taking the sandbox for one that is gone. */
  coffer_autoclose int listener = coffer_socket_listen (folder, KEEPER_SOCKET);
  coffer_autoclose int plan = -1;

  if (listener < 0 || (plan = make_plan (sandbox, spec)) < 0)
    return errno;
  /* From KEEPER_FD_FOLDER on.  It forks the keeper, which is nobody's child,
   * and ends. */
  return coffer_process_start_helper (
    "reference-keeper", self->keeper,
    (const int[]) {folder, self->runtime, listener, plan, spec->lifeline}, 5)
    < 0 ? errno : 0;
}
