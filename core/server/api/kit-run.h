/* SPDX-License-Identifier: Apache-2.0 */
/* The conformance kit as a child of the daemon, one at a time. */

#ifndef SERVER_API_KIT_RUN_H
#define SERVER_API_KIT_RUN_H

#include "base/json.h"
#include "server/http.h"

struct kit_run;

struct kit_options {
  const char *provider;         /* its id */
  const char *only;             /* a glob over cases, or NULL */
  const char *seed;             /* NULL: any */
  int record;
};

/* E_BUSY while another one runs. */
int kit_run_begin (const struct place *place,
                   const struct kit_options *options, struct kit_run **out,
                   struct error **err);
/* Waits at most wait_ms.  1: it has ended, and *report is what it said, an
 * object; 0: it still runs; -1: it said nothing, or cancel_fd is readable. */
int kit_run_wait (struct kit_run *run, int wait_ms, int cancel_fd,
                  json_t **report, struct error **err);
/* Ends it: it clears away what it has made, and is killed where that takes
 * long. */
void kit_run_free (struct kit_run *run);
DEFINE_CLEANUP (struct kit_run *, kit_run_free, auto_kit_run)
#define auto_kit_run CLEANUP (auto_kit_run)

#endif /* SERVER_API_KIT_RUN_H */
