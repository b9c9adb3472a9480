/* SPDX-License-Identifier: Apache-2.0 */
/* Who vouches for a provider, found out when it is installed or enabled: the
 * answers are written into its receipt. */

#ifndef PROVIDER_TRUST_H
#define PROVIDER_TRUST_H

#include "provider/registry.h"

/* Verifies the signature of the manifest in a provider's folder, and of a
 * report of the kit beside it, and notes in the receipt what counts: the report
 * does when the same key signed it.  E_UNSIGNED for a signature that does not
 * fit; without one nothing is noted. */
int trust_record (const struct place *place, int dir_fd,
                  const struct manifest *manifest, struct receipt *receipt,
                  struct error **err);

/* One that was dropped in by hand: all that is checked before a provider is
 * loaded, then a receipt, `signed` or `local`.  Nothing of it runs. */
int trust_admit (const struct place *place, const struct registry_entry *entry,
                 struct error **err);
/* Takes that receipt back: it is as it was. */
int trust_dismiss (const struct registry_entry *entry, struct error **err);

/* Of an installed one whose receipt records no signature: looks again. */
int trust_renew (const struct place *place, const struct registry_entry *entry,
                 struct error **err);

#endif /* PROVIDER_TRUST_H */
