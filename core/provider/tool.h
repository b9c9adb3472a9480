/* SPDX-License-Identifier: Apache-2.0 */
/* Running a program of this machine (git, minisign, credential helpers) that is not
 * ours: with an environment from empty, in a process group of its own that does not
 * outlive the call, and with what it says kept up to a cap. */

#ifndef PROVIDER_TOOL_H
#define PROVIDER_TOOL_H

#include <stddef.h>
#include <stdint.h>

#include <coffer/buffer.h>

#include "base/error.h"

struct tool {
  const char *const *argv;      /* argv[0]: a name, looked for in fixed places */
  const char *path;             /* or where it is, whose folder PATH begins with */
  const char *const *env;       /* PATH is added */
  int dir;                      /* the folder it runs in; -1: this one */
  const char *input;            /* what it reads, at most 4 KiB; NULL: nothing */
  int out;                      /* its standard output; -1: kept in `said` */
  size_t said_most;             /* it is ended when it says more; 0: what is beyond
                                 * 1 MiB is dropped, and an error at its end */
  int *exit_status;             /* where it ends by itself that is no error, but
                                 * told here; NULL: one that is not 0 is */
  int terminal;                 /* it asks the user itself: streams are ours */
  uint64_t file_bytes;          /* the largest file it may write; 0: any */
  uint64_t data_bytes;          /* memory of a process of it; 0: any */
  int64_t deadline_ns;
  int cancel_fd;                /* -1: none */
};

/* 0, or -1 with the last line that it wrote as an error: the message begins
 * with `what`.  said: NULL, or what it wrote to standard output.  What is
 * kept of that here is wiped, but not what a buffer was copied from as it grew. */
int tool_run (const struct tool *tool, const char *what, int number,
              struct coffer_buffer *said, struct error **err);

#endif /* PROVIDER_TOOL_H */
