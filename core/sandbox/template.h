/* SPDX-License-Identifier: Apache-2.0 */
/* Templates where sandboxes are made of them. */

#ifndef SANDBOX_TEMPLATE_H
#define SANDBOX_TEMPLATE_H

#include "sandbox/sandbox.h"

/* Removes a template unless a sandbox that lives on was made of it: E_BUSY,
 * naming the sandbox.  What has expired is cleared away first. */
int sandbox_template_remove (struct host *host, const char *name,
                             struct error **err);

#endif /* SANDBOX_TEMPLATE_H */
