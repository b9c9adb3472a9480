/* SPDX-License-Identifier: Apache-2.0 */
/* Starting a keeper: its socket, its plan, its descriptors. */

#define _GNU_SOURCE

#include <errno.h>
#include <string.h>

#include <coffer/buffer.h>
#include <coffer/fd.h>
#include <coffer/packet.h>
#include <coffer/process.h>

#include "host.h"

/* In a memory file and not in arguments: the environment may be secret. */
static int
make_plan (const char *sandbox, const struct coffer_sandbox_spec *spec)
{
  coffer_autobuffer struct coffer_buffer plan = {0};
  struct keeper_plan head = {
    .size = sizeof head,
    .flags = (spec->lifeline >= 0 ? KEEPER_HAS_LIFELINE : 0) |
             (spec->single_exec ? KEEPER_SINGLE : 0),
    .ttl_ms = spec->ttl_ms,
  };

  coffer_buffer_add (&plan, &head, sizeof head);
  coffer_buffer_add_vector (&plan, (const char *const[]) {
    sandbox, spec->workdir ? spec->workdir : "", NULL});
  head.n_env = coffer_buffer_add_vector (&plan, spec->env);
  if (!plan.failed)
    memcpy (plan.data, &head, sizeof head);
  if (plan.failed || plan.size > KEEPER_BLOCK_MAX) {
    errno = plan.failed ? ENOMEM : E2BIG;
    return -1;
  }
  return coffer_memfd_sealed ("coffer-plan", plan.data, plan.size);
}

int
keeper_spawn (const struct host *host, const char *sandbox, int folder,
              const struct coffer_sandbox_spec *spec)
{
  /* Listening before the keeper runs, so that whoever connects waits for it
   * instead of missing it. */
  coffer_autoclose int listener = coffer_socket_listen (folder, KEEPER_SOCKET);
  coffer_autoclose int plan = -1;

  if (listener < 0 || (plan = make_plan (sandbox, spec)) < 0)
    return errno;
  /* From KEEPER_FD_FOLDER on.  It forks the keeper and ends. */
  return coffer_process_start_helper (
    "coffer-keeper", host->keeper,
    (const int[]) {folder, host->runtime, listener, plan, spec->lifeline}, 5)
    < 0 ? errno : 0;
}
