/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions by names that callers choose, each a sandbox that is made at its
 * first use, kept while it is used, and removed when it was not for long.
 *
 * A name belongs to a tenant and is never made into another: what tells
 * sandboxes apart is their own ids, and which session one is for is in a file of
 * STATE/box, so that a daemon that was restarted, or killed, goes on with it.
 * Any thread. */

#ifndef SERVER_BOX_H
#define SERVER_BOX_H

#include "server/box/config.h"
#include "server/route.h"

struct box;
struct server;

int box_open (struct server *server, const struct box_config *config,
              struct error **err);
void box_close (struct server *server);

extern const struct route box_routes[];

#endif /* SERVER_BOX_H */
