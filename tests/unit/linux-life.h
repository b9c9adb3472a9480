/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the life of a sandbox of `linux` begin with. */

#ifndef UNIT_LINUX_LIFE_H
#define UNIT_LINUX_LIFE_H

#include "harness.h"

#include "linux-host.h"

#define SECOND INT64_C (1000000000)

static struct linux_host host;
static struct outcome outcome;

static const struct coffer_sandbox_spec lasting
  = { .size = sizeof lasting, .lifeline = -1 };

static inline void
create (const char *id, const struct coffer_sandbox_spec *spec)
{
  if (host_create (&host, id, spec) != COFFER_OK)
    fail_msg ("%s", host.error);
}

/* A script, which is to be started; what came of it is in `outcome`. */
static inline void
sh_in (const char *id, const char *script, uint64_t timeout_ms)
{
  const char *argv[] = { "sh", "-c", script, NULL };

  if (host_run (&host, id, argv, NULL, NULL, timeout_ms, &outcome)
        != COFFER_OK)
    fail_msg ("%s", host.error);
}

#endif /* UNIT_LINUX_LIFE_H */
