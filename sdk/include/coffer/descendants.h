/* SPDX-License-Identifier: Apache-2.0 */
/* All that a process has started, for a program that holds a sandbox by being
 * the parent of what runs in it: with PR_SET_CHILD_SUBREAPER, whoever below
 * loses its parent becomes a child of this process, so that nothing gets out
 * from under it.
 *
 * For a process of one thread, which has no children but such: every one of
 * them is reaped.  Part of libcoffer-provider.a. */

#ifndef COFFER_DESCENDANTS_H
#define COFFER_DESCENDANTS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rusage;

/* Called for each child that is reaped, with wait's status. */
typedef void coffer_reaped (void *data, pid_t pid, int status,
                            const struct rusage *usage);

/* Reaps what has ended.  1: children are left; 0: there are none. */
int coffer_descendants_reap (coffer_reaped *reaped, void *data);

/* Kills every descendant but `spared` children and what is below them, and
 * reaps until none is left.  How many withstood until the deadline, such as a
 * process of another user.  Reads /proc. */
unsigned coffer_descendants_kill (const pid_t *spared, size_t n_spared,
                                  int64_t deadline_ns, coffer_reaped *reaped,
                                  void *data);

#ifdef __cplusplus
}
#endif

#endif /* COFFER_DESCENDANTS_H */
