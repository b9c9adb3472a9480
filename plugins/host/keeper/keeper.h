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

#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "../protocol.h"

/* ---- tree.c: ending processes ------------------------------------------- */

/* Called for each child that is reaped. */
typedef void tree_reaped (void *data, pid_t pid, int status,
                          const struct rusage *usage);

/* Reaps what has ended.  1: children are left; 0: there are none. */
int tree_reap (tree_reaped *reaped, void *data);

/* Kills every descendant but `spared` children (and what is below them) and
 * reaps until none is left.  Returns how many withstood until the deadline,
 * such as a process of another user. */
unsigned tree_kill (const pid_t *spared, size_t n_spared, int64_t deadline_ns,
                    tree_reaped *reaped, void *data);

/* ---- minder.c: one command ---------------------------------------------- */

/* What a command is started with; all of it is the keeper's memory. */
struct command {
  const char *const *argv, *const *env;
  const char *cwd;              /* absolute; NULL: the folder below */
  int folder;
  int in, out, err;             /* -1: /dev/null */
  int tty;
  int single;                   /* its end is the end of all it started */
  uint32_t rows, columns;
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

/* ---- start.c: from fork to the program ---------------------------------- */

struct start_failure {
  int32_t sys_errno;            /* 0: the program runs */
  uint32_t stage;
};

/* Forks the command.  *report reads a start_failure, or end of file when the
 * program runs.  -1 with errno when there was no fork. */
pid_t command_start (const struct command *command, int *report);

/* The environment of a command: a base, then the sandbox's, then its own; a
 * later value takes an earlier one's place.  NULL: out of memory.  The vector
 * is the caller's, the strings are borrowed. */
const char **environment_merge (const char *const *base,
                                const char *const *sandbox,
                                const char *const *own);

#endif /* HOST_KEEPER_H */
