/* SPDX-License-Identifier: Apache-2.0 */
/* The contract's commands over processes of the worker itself: what
 * coffer/files.h is for files.  A provider resolves the sandbox to a set of
 * commands and calls these; they emit exec_info and exec_exit, keep the call's
 * deadline and cancel fd, and return a contract code after coffer_fail.
 *
 * Every command has a thread that waits for its end or its timeout, and a mark
 * in its environment by which its descendants are found (coffer/process.h).
 * Commands end with the worker.  Any thread.  Part of libcoffer-provider.a. */

#ifndef COFFER_COMMANDS_H
#define COFFER_COMMANDS_H

#include <coffer/process.h>
#include <coffer/provider.h>

#ifdef __cplusplus
extern "C" {
#endif

struct coffer_commands;

/* The commands of one sandbox.  `mark` is an entry of their environment that
 * no other sandbox has, "MY_RUN=box-7".  At the end of `lifeline` (borrowed
 * until free; -1: none) they are killed.  `single`: there is one, and what it
 * started ends with it.  NULL: out of memory. */
struct coffer_commands *coffer_commands_new (const char *mark, int lifeline,
                                             int single);

/* Nothing starts any more, everything is killed: OK when nothing is left.  The
 * call may be NULL: waits as long as it takes.  May be asked for again. */
int32_t coffer_commands_end (struct coffer_call *call,
                             struct coffer_commands *commands);

/* After an end that was OK, and when no call uses it. */
void coffer_commands_free (struct coffer_commands *commands);

/* As exec_start, _wait, _list and _signal.  The timeout is the only option that
 * start can keep: the caller refuses the others. */
int32_t coffer_commands_start (struct coffer_call *call,
                               struct coffer_commands *commands,
                               const struct coffer_process *process,
                               const struct coffer_exec_start_opts *opts);
int32_t coffer_commands_wait (struct coffer_call *call,
                              struct coffer_commands *commands,
                              const char *exec);
int32_t coffer_commands_list (struct coffer_call *call,
                              struct coffer_commands *commands);
/* Of the command and all that it started.  0: only whether it runs. */
int32_t coffer_commands_signal (struct coffer_call *call,
                                struct coffer_commands *commands,
                                const char *exec, int32_t number);

#ifdef __cplusplus
}
#endif

#endif /* COFFER_COMMANDS_H */
