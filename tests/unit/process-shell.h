/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of sdk/lib/process.c do with a process. */

#ifndef UNIT_PROCESS_SHELL_H
#define UNIT_PROCESS_SHELL_H

#include "harness.h"

#include <coffer/process.h>

#define SECOND INT64_C (1000000000)
#define PATH_ENTRY "PATH=/usr/local/bin:/usr/bin:/bin"

extern const char *const plain_env[];
extern char mark[64];
int start (const char *const *argv, const char *const *env, int out,
           const char **failed);
/* How it ended, within ten seconds. */
struct coffer_process_end end_of (int pidfd);
void assert_no_children (void);
/* Whatever else a test does, nobody is left. */
int clear (void **state);
void handle (int number);

#endif /* UNIT_PROCESS_SHELL_H */
