/* SPDX-License-Identifier: Apache-2.0 */
/* The caller's terminal: raw while a command on a terminal of its own is
 * relayed, and restored however this process ends, short of SIGKILL. */

#ifndef SANDBOX_TERMINAL_H
#define SANDBOX_TERMINAL_H

#include <stdint.h>

#include "base/error.h"

/* Puts the terminal into raw mode.  Not a terminal: success, nothing done. */
int terminal_raw (int fd, struct error **err);
/* Undoes it; harmless otherwise.  Safe in a signal handler. */
void terminal_restore (void);

/* 0 0 when it is not a terminal or has no size. */
void terminal_size (int fd, uint32_t *rows, uint32_t *columns);

/* A new terminal: its master, non-blocking, and its slave. */
int terminal_new (uint32_t rows, uint32_t columns, int *master, int *slave,
                  struct error **err);
void terminal_resize (int master, uint32_t rows, uint32_t columns);

#endif /* SANDBOX_TERMINAL_H */
