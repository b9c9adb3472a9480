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

#include <stddef.h>
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

/* User and system time of what was reaped. */
struct rusage;
uint64_t coffer_usage_us (const struct rusage *usage);

/* Sends a signal to every process of this user, but the caller, with an entry
 * of its environment that begins with `mark`, such as "MY_RUN=box-7/", and
 * returns how many got it.  0 only counts.  What starts meanwhile may be
 * missed: repeat until there is none.  Reads /proc. */
int coffer_process_signal_marked (const char *mark, int signal);

/* For a module that is no worker's, and for its helper programs: */

/* Starts the program that is open as `program` with nothing of ours: fds[i]
 * becomes descriptor 3 + i, or is closed when it is -1, and the program itself
 * the one after them; 0 to 2 are /dev/null, there is no environment, and signals
 * are at their defaults.  Returns at its end: one that is to stay forks and
 * leaves.  -1 with EAGAIN: it did not end with 0. */
int coffer_process_start_helper (const char *name, int program, const int *fds,
                                 size_t n_fds);

/* A command that leads a session of its own, with no descriptor but three and
 * the soft limits of address space, data, processes, time and file size lifted.
 * For a helper of one thread, which reaps it as a child
 * (coffer/descendants.h). */
struct coffer_session {
  struct coffer_process process;
  int folder;                   /* where it begins when cwd is NULL; -1: here */
  int tty;                      /* 1: `in` is its terminal, and all three */
  uint32_t rows, columns;       /* of that; 0: as they are */
  int joins;                    /* 1: it leads a process group alone, in our
                                 * session; not with a terminal */
};

enum coffer_stage {
  COFFER_STAGE_PROCESS = 1,
  COFFER_STAGE_FOLDER = 2,
  COFFER_STAGE_PROGRAM = 3
};

/* Why a program never ran, which *report reads; it reads the end of file when
 * the program runs. */
struct coffer_start_failure {
  int32_t sys_errno;
  uint32_t stage;               /* enum coffer_stage */
};
pid_t coffer_session_start (const struct coffer_session *session, int *report);

#ifdef __cplusplus
}
#endif

#endif /* COFFER_PROCESS_H */
