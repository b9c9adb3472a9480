/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the keeper.
 *
 *   keeper ── minder ── command ── its descendants
 *          ── minder ── command ── …
 *
 * The keeper holds the sandbox and answers requests; a minder holds one
 * command.  Both are subreapers: a descendant whose parent has ended becomes
 * the minder's child, so nothing that a command has started can get out from
 * under it, and when a minder is killed its orphans become the keeper's. */

#ifndef HOST_KEEPER_H
#define HOST_KEEPER_H

#include <stdint.h>

#include <coffer/process.h>

#include "../protocol.h"

/* ---- minder.c: one command ---------------------------------------------- */

/* What a command is started with; all of it is the keeper's memory. */
struct command {
  struct coffer_session session;
  int single;                   /* its end is the end of all it started */
  uint64_t timeout_ms;
};

/* The messages between keeper and minder, on a SOCK_SEQPACKET pair. */
enum minder_op { MINDER_SIGNAL = 1, MINDER_RESIZE = 2, MINDER_KILL = 3 };
struct minder_order {
  uint32_t op;
  int32_t signal;
  uint32_t rows, columns;
};
struct minder_report {          /* the command has ended */
  struct keeper_reply exit;
};

/* Runs in a process of its own, with `control` its only tie to the keeper;
 * never returns. */
void minder_main (const struct command *command, int control)
  __attribute__ ((noreturn));

#endif /* HOST_KEEPER_H */
