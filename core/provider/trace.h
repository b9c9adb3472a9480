/* SPDX-License-Identifier: Apache-2.0 */
/* What an author sees of a worker: its frames in the log (COFFER_LOG=
 * debug:channel), and the worker itself in a debugger (COFFER_WORKER_HOLD). */

#ifndef PROVIDER_TRACE_H
#define PROVIDER_TRACE_H

#include <jansson.h>

#include "provider/dispatch.h"

#define TRACE_HOLD_NS (INT64_C (600) * 1000000000)

/* One line of the log: the frame as JSON, without secrets, values of
 * environments and configurations, and what is long.  `way` is "->" for what
 * goes to the worker.  Keeps errno. */
void trace_frame (const struct provider *provider, const char *way,
                  const json_t *frame, int n_fds);

/* Whether this provider's worker is to wait for a debugger before it loads its
 * module. */
int trace_holds (const struct provider *provider);

#endif /* PROVIDER_TRACE_H */
