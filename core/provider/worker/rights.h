/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker may do, taken on before any code of the module runs.
 *
 * A strict worker lives in a Landlock domain, under a seccomp allow-list and
 * hard limits, without capabilities.  A worker with `namespaces` or `exec:
 * any` makes sandboxes, which inherit all of that: it gets soft limits and a
 * deny-list that leaves clone, unshare, setns, mount and pivot_root free. */

#ifndef WORKER_RIGHTS_H
#define WORKER_RIGHTS_H

#include <stdint.h>

#include <jansson.h>

#include "base/error.h"

struct rights {
  int strict;
  int hold;                     /* a debugger may attach, and will */
  int allow_degraded;
  int cgroup;
  char **read, **write, **exec;
  uint64_t memory_bytes, files, processes, calls;
  int runtime_dir, state_dir;   /* always writable; state_dir may be -1 */
};

/* E_PERMISSION when this kernel cannot enforce what strict means, unless that
 * is allowed.  `applied` gets what was done. */
int rights_apply (const struct rights *rights, json_t *applied,
                  struct error **err);

/* Its parts.  landlock_apply returns the ABI, 0 when there is none. */
int landlock_apply (const struct rights *rights, struct error **err);
int filter_apply (const struct rights *rights, int landlock_abi,
                  struct error **err);

/* Before rights are given up: what tells whether there is a debugger; -1 when
 * none is waited for.  After: waits for one, some minutes. */
int hold_open (const struct rights *rights);
void hold_wait (int status);

/* From here on nobody sees a command line of this process. */
void title_hide (void);

#endif /* WORKER_RIGHTS_H */
