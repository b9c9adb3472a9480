/* SPDX-License-Identifier: Apache-2.0 */
/* Which signature a provider has. */

#include <config.h>

#include "provider/signature.h"

static int
fail_unsigned (const struct registry_entry *entry, struct error **err)
{
  return error_set (err, E_UNSIGNED, 0,
                    "provider %s is not signed by a key of trusted.d",
                    entry->id);
}

int
signature_demand (const struct registry_entry *entry, struct error **err)
{
  if (!entry->require_signature)
    return 0;
  if (entry->receipt == NULL || entry->receipt->signature.key_id == NULL)
    return fail_unsigned (entry, err);
  return 0;
}
