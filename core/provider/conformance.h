/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a provider has shown that it keeps the contract: what its receipt
 * records of the kit's report, held against the bytes that are there now. */

#ifndef PROVIDER_CONFORMANCE_H
#define PROVIDER_CONFORMANCE_H

#include "provider/registry.h"

#define CONFORMANCE_FILE "conformance.json"
#define CONFORMANCE_MAX_BYTES (4 * 1024 * 1024)

/* E_NOT_CONFORMANT, saying what is missing or for other bytes.  A provider
 * that is shipped with coffer is tested with coffer. */
int conformance_check (const struct registry_entry *entry,
                       struct error **err);

/* The same where the entry asks for it: for provider_open.  Who tries a
 * provider in order to judge it opens a copy of the entry that does not. */
int conformance_demand (const struct registry_entry *entry,
                        struct error **err);

/* What a receipt records of the report CONFORMANCE_FILE in a provider's folder;
 * whose report it is, is the caller's to know.  E_INVALID. */
int conformance_read (int dir_fd, struct receipt_conformance *out,
                      struct error **err);

#endif /* PROVIDER_CONFORMANCE_H */
