/* SPDX-License-Identifier: Apache-2.0 */
/* Signatures of manifests: minisign, by a key that the operator trusts.  The
 * manifest pins module and files, so that one signature is of them all. */

#ifndef PROVIDER_SIGNATURE_H
#define PROVIDER_SIGNATURE_H

#include "base/sha256.h"
#include "provider/registry.h"

struct signature {
  char *key_id;                 /* as minisign shows it */
  char *comment;                /* the trusted one, one line for people */
  char *unknown;                /* the key of one that does not count */
  char sha256[SHA256_HEX_SIZE]; /* of the bytes that were signed */
};

void signature_fini (struct signature *signature);
#define auto_signature __attribute__ ((cleanup (signature_fini)))

/* Verifies NAME in a trusted folder by NAME.minisig beside it.  1: signed by a
 * key of trusted.d; 0: there is no signature, or one by a key that is not
 * there, which is `unknown` then; -1: E_UNSIGNED for a signature that is not one.
 * Runs coffer-verify: nothing for a hot path. */
int signature_check (const struct place *place, int dir_fd, const char *name,
                     struct signature *out, struct error **err);

/* Is a key of that id in trusted.d now?  1, 0; -1: trusted.d cannot be read. */
int signature_key_is_trusted (const struct place *place, const char *key_id,
                              struct error **err);

/* E_UNSIGNED where the entry asks for a signature and its receipt has none by
 * a key that is trusted now. */
int signature_demand (const struct registry_entry *entry,
                      const struct place *place, struct error **err);

#endif /* PROVIDER_SIGNATURE_H */
