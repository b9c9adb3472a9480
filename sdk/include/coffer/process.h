/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that a provider starts itself: from argument vectors to an exit
 * status, by process descriptors, with threads around.
 *
 * What is written here goes through in a worker with `exec` in its manifest's
 * permissions, on every kernel that coffer runs on: neither sessions nor
 * process groups are to be had there, so processes are found by a mark in
 * their environment.  A process that gives itself another environment is not
 * found: this keeps order, and nobody in.
 *
 * No locks and no globals: any thread.  -1 with errno unless said otherwise.
 * Part of libcoffer-provider.a. */

#ifndef COFFER_PROCESS_H
#define COFFER_PROCESS_H

#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct coffer_process {
  const char *const *argv;      /* argv[0] is looked for along PATH of env */
  const char *const *env;       /* NAME=VALUE: all that it gets */
  const char *cwd;              /* NULL: stays where we are */
  int in, out, err;             /* become 0, 1 and 2; -1: /dev/null */
};

/* Starts it, with signals at their defaults and umask 022, and returns when it
 * runs: a process descriptor, readable once the process has ended.  -1: it
 * never ran; *failed (if not NULL) is then a word for people about what went
 * wrong with errno: "working folder", "program", "process". */
int coffer_process_start (const struct coffer_process *process,
                          const char **failed);

struct coffer_process_end {
  int code;                     /* of exit; -1 when a signal ended it */
  int signal;                   /* 0: none */
  uint64_t cpu_us;              /* user and system, with reaped children */
};

/* Collects what has ended; waits when it has not. */
int coffer_process_reap (int pidfd, struct coffer_process_end *end);

/* Sends a signal to every process of this user, but the caller, with an entry
 * of its environment that begins with `mark`, such as "MY_RUN=box-7/", and
 * returns how many got it.  0 only counts.  What starts meanwhile may be
 * missed: repeat until there is none.  Reads /proc. */
int coffer_process_signal_marked (const char *mark, int signal);

#ifdef __cplusplus
}
#endif

#endif /* COFFER_PROCESS_H */
