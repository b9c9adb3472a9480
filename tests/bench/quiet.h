/* SPDX-License-Identifier: Apache-2.0 */
/* Whether this process still works at something behind its caller's back. */

#ifndef BENCH_QUIET_H
#define BENCH_QUIET_H

/* Waits until every other thread of this process sleeps and every child sleeps
 * or is gone: a child that is on its way out still takes its namespaces down.
 * -1: they do not within some seconds, or the kernel does not tell. */
int quiet_await (void);

#endif /* BENCH_QUIET_H */
