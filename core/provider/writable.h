/* SPDX-License-Identifier: Apache-2.0 */
/* The paths that a worker may write. */

#ifndef PROVIDER_WRITABLE_H
#define PROVIDER_WRITABLE_H

#include <coffer/buffer.h>

#include "provider/registry.h"

/* Those that are there, without links on the way.  E_DENIED: one of them is, or
 * holds, or lies in a folder of coffer's own, and the provider does not come
 * with coffer. */
int writable_resolve (const struct registry_entry *entry,
                      const struct place *place, struct coffer_strings *out,
                      struct error **err);

#endif /* PROVIDER_WRITABLE_H */
