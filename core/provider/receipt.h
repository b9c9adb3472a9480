/* SPDX-License-Identifier: Apache-2.0 */
/* receipt.json of an installed provider: where it came from, which bytes were
 * meant, who signed them, and what the conformance kit said of them.  It is
 * written whole or not at all.  Whoever changes one holds the lock of the
 * folder of providers. */

#ifndef PROVIDER_RECEIPT_H
#define PROVIDER_RECEIPT_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/error.h"
#include "base/sha256.h"

#define RECEIPT_FILE "receipt.json"
#define RECEIPT_FORMAT 1

/* Texts are NULL, hashes "", where nothing is known. */
struct receipt_source {
  char *kind;                   /* folder, archive, url, git */
  char *location;               /* a path or an address, without userinfo */
  char *ref, *commit, *subdir;
  char sha256[SHA256_HEX_SIZE]; /* of the archive */
};

struct receipt_file {
  char *arch;                   /* of a module; NULL for other files */
  char *name;
  char sha256[SHA256_HEX_SIZE];
};

struct receipt_signature {      /* key_id NULL: none was verified */
  char *key_id, *comment;
};

struct receipt_conformance {    /* verdict NULL: none is known */
  char *verdict;                /* conformant, failed, incomplete */
  char *report;                 /* conformance.json */
  char report_sha256[SHA256_HEX_SIZE];
  char manifest_sha256[SHA256_HEX_SIZE];
  char module_sha256[SHA256_HEX_SIZE];
  char *kit;                    /* its version */
  uint16_t contract_major, contract_minor;
  char *mode;                   /* worker, in-process */
  char *time;                   /* RFC 3339, UTC */
  char *without;                /* claims given up, by blanks; NULL: none */
};

struct receipt {
  char *id;                     /* NULL in one that was written by hand */
  char *trust;                  /* local, pinned, signed */
  struct receipt_source source;
  char manifest_sha256[SHA256_HEX_SIZE];
  size_t n_modules, n_files;
  struct receipt_file *modules, *files;
  char *installed;              /* RFC 3339, UTC */
  struct receipt_signature signature;
  struct receipt_conformance conformance;
};

/* Of the provider's folder.  1: read; 0: there is none.  Owner and mode are
 * checked; E_INTEGRITY when it is malformed, or of a format that is newer. */
int receipt_read (int dir_fd, struct receipt **out, struct error **err);
int receipt_write (int dir_fd, const struct receipt *receipt,
                   struct error **err);
void receipt_free (struct receipt *receipt);
DEFINE_CLEANUP (struct receipt *, receipt_free, auto_receipt)
#define auto_receipt CLEANUP (auto_receipt)

void receipt_conformance_fini (struct receipt_conformance *conformance);

/* The same from and to JSON. */
int receipt_parse (const char *bytes, size_t size, struct receipt **out,
                   struct error **err);
json_t *receipt_to_json (const struct receipt *receipt);

/* Replaces what is known of conformance in the provider's folder, and the
 * report that it speaks of (`report` NULL: it stays), under the lock of the
 * folder that it lies in.  E_NOT_FOUND: there is no receipt. */
int receipt_set_conformance (int dir_fd, const char *report,
                             const struct receipt_conformance *conformance,
                             struct error **err);

/* The lock for whoever changes what is installed: closing the descriptor that
 * is returned ends it.  E_BUSY when another has it for too long. */
int receipt_lock (int providers_dir, struct error **err);

/* Now, as RFC 3339 in UTC; the caller frees. */
char *receipt_time (void);

/* The address without what stands before an "@" of its authority; the caller
 * frees. */
char *receipt_location (const char *address);

#endif /* PROVIDER_RECEIPT_H */
