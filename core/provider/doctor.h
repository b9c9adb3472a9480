/* SPDX-License-Identifier: Apache-2.0 */
/* A provider examined on this machine. */

#ifndef PROVIDER_DOCTOR_H
#define PROVIDER_DOCTOR_H

#include "provider/registry.h"

/* {"id", "ok", "checks": as registry_check, "facts": [fact] or null}.  One that
 * passes the checks and is enabled is started, in a worker of its own; call 1:
 * and makes one call that needs its credentials. */
int provider_examine (const struct registry_entry *entry,
                      const struct place *place, int call, json_t **out,
                      struct error **err);

#endif /* PROVIDER_DOCTOR_H */
