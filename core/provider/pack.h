/* SPDX-License-Identifier: Apache-2.0 */
/* From a built and sealed folder to the archive that an operator installs.
 * The same folder gives the same bytes: owners, modes and times are plain, the
 * time is SOURCE_DATE_EPOCH or else the beginning of 1970. */

#ifndef PROVIDER_PACK_H
#define PROVIDER_PACK_H

#include "base/helper.h"
#include "provider/receipt.h"

struct pack_request {
  const char *dir;              /* the provider's folder */
  const char *output;           /* where the archive goes; NULL: here */
  const char *key;              /* minisign(1)'s secret key; NULL: unsigned */
  const struct helper_watch *watch;
};

struct pack_report {
  char *id, *version;
  char *archive;                /* paths */
  char *sha256_file, *signature;        /* signature NULL: none */
  char sha256[SHA256_HEX_SIZE];
  uint64_t bytes;
};
void pack_report_fini (struct pack_report *report);
#define auto_pack_report __attribute__ ((cleanup (pack_report_fini)))

/* ID-VERSION-ARCH.tar.gz with .sha256 beside it and, with a key, .minisig;
 * then the manifest in it is signed too, which is what `install` looks at.
 * Whatever `install` would refuse is refused. */
int pack_provider (const struct place *place,
                   const struct pack_request *request,
                   struct pack_report *out, struct error **err);

#endif /* PROVIDER_PACK_H */
