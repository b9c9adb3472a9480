/* SPDX-License-Identifier: Apache-2.0 */
/* Running coffer-archive: it is executed from a descriptor that was checked,
 * with an empty environment and the few descriptors that it is given. */

#ifndef STORE_HELPER_H
#define STORE_HELPER_H

#include <sys/types.h>

#include "base/place.h"

struct helper {
  pid_t pid;                    /* 0: none */
  int report;                   /* its JSON is read here */
};

/* `mode`: "pack" or "unpack", with `in` (-1: none), `out` (-1: none) and the
 * folder.  The descriptors stay the caller's. */
int helper_start (const struct place *place, const char *mode, int in, int out,
                  int folder, struct helper *helper, struct error **err);

/* Somebody who waits: may give up, and may want to see how far it is. */
struct helper_watch {
  int cancel_fd;                /* -1: none */
  void (*progress) (void *data, uint64_t done, uint64_t total,
                    const char *what);  /* NULL: nobody looks */
  void *data;
};

/* Reads the report and waits for the end; the watch's cancel_fd ends it.  How
 * far it is says the place in `source`, a file of `size` bytes (0: not known).
 * E_ARCHIVE with what it reported as its error. */
int helper_finish (struct helper *helper, const struct helper_watch *watch,
                   int source, uint64_t size, json_t **report,
                   struct error **err);

/* Kills what still runs. */
void helper_fini (struct helper *helper);

#endif /* STORE_HELPER_H */
