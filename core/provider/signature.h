/* SPDX-License-Identifier: Apache-2.0 */
/* Signatures of manifests: minisign, by a key that the operator trusts.  The
 * manifest pins module and files, so that one signature is of them all. */

#ifndef PROVIDER_SIGNATURE_H
#define PROVIDER_SIGNATURE_H

#include "provider/registry.h"

/* E_UNSIGNED where the entry asks for a signature and its receipt has none. */
int signature_demand (const struct registry_entry *entry, struct error **err);

#endif /* PROVIDER_SIGNATURE_H */
