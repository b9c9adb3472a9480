/* SPDX-License-Identifier: Apache-2.0 */
/* Interpreters that providers keep ready for profiles: by their handles, asked
 * for once and remembered as long as the process lives. */

#ifndef PYTHON_WARM_H
#define PYTHON_WARM_H

#include <jansson.h>

#include "policy/profile.h"
#include "sandbox/sandbox.h"

/* The handle of an interpreter that has the runner loaded and what the profile
 * names imported, the caller's to free; the first to ask waits for it.  NULL:
 * the provider has none, or not yet, and the run is a cold one. */
char *warm_handle (struct host *host, const char *provider,
                   const struct profile *profile, const char *runner,
                   size_t runner_size);
/* Calls back for each that there is with what it takes, as its provider counts
 * (the operation `metrics`); providers that do not are left out. */
void warm_each (struct host *host,
                void (*visit) (void *data, const char *provider,
                               const char *profile, const json_t *uses),
                void *data);
/* The provider does not know it any more: it is asked for anew. */
void warm_forget (struct host *host, const char *provider,
                  const char *handle);

#endif /* PYTHON_WARM_H */
