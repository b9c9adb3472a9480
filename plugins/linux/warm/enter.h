/* SPDX-License-Identifier: Apache-2.0 */
/* How a copy of an interpreter that stands ready becomes a command of a
 * sandbox. */

#ifndef LINUX_WARM_ENTER_H
#define LINUX_WARM_ENTER_H

#include <stdint.h>

#include "../protocol.h"

/* What the copy has of the init's: within the packet, which is kept. */
struct warm_entered {
  uint32_t envc;
  const char *env;              /* a run of strings */
};

/* Forks the calling process, which has one thread, into the sandbox whose init
 * that process descriptor is, as its gate says.  1 in the copy, which is held
 * to all that a command there is but for the last filter; 0 in the calling
 * process, in which nothing has changed: whatever went wrong the init has been
 * told at the gate. */
int warm_enter (int pidfd, int gate);
/* In the copy: whether there is no command for it yet.  And then, or when there
 * is: it is the command, or ends. */
int warm_waits (void);
void warm_become (struct warm_entered *out);

#endif /* LINUX_WARM_ENTER_H */
