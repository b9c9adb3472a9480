/* SPDX-License-Identifier: Apache-2.0 */
/* Signals as descriptors.  Handlers rather than blocked or ignored signals:
 * a program that is executed inherits those two, and would run without
 * SIGINT or SIGPIPE for the rest of its life. */

#ifndef SANDBOX_SIGNALS_H
#define SANDBOX_SIGNALS_H

#include "base/error.h"

/* A write to a closed pipe is EPIPE from here on, not the end. */
void signals_no_sigpipe (void);

/* Readable after SIGWINCH; signals_winch_clear makes it wait again. */
int signals_winch (struct error **err);
void signals_winch_clear (void);

#endif /* SANDBOX_SIGNALS_H */
