/* SPDX-License-Identifier: Apache-2.0 */
/* What a service manager and the daemon tell each other: sockets that are handed
 * over, and the state.  Both protocols are a few lines, which is why no library
 * is linked for them. */

#ifndef SERVER_SYSTEMD_H
#define SERVER_SYSTEMD_H

#include <stddef.h>

#include "base/error.h"

/* How many descriptors from SYSTEMD_FIRST_FD on were handed over, each a
 * listening stream socket of the machine or the network, now close-on-exec.
 * Before anything else opens descriptors. */
#define SYSTEMD_FIRST_FD 3
int systemd_sockets (size_t *n, struct error **err);

/* "READY=1", "STOPPING=1": to whom NOTIFY_SOCKET names, if anybody. */
void systemd_notify (const char *state);
/* "RELOADING=1", with the time that goes with it. */
void systemd_notify_reload (void);

#endif /* SERVER_SYSTEMD_H */
