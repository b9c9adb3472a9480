/* SPDX-License-Identifier: Apache-2.0 */
/* coffer-verify: says which key signed a file, in a process of its own, so that
 * coffer itself does without libcrypto and a signature, which is anybody's, is
 * read where nothing can be reached.
 *
 * Standard input is a file: the header below, the keys, the signature file, the
 * message.  One JSON object goes to descriptor 4: {"key_id", "comment"};
 * {"unknown": key id} when no key has that id; {"error"} with status 1. */

#ifndef VERIFY_VERIFY_H
#define VERIFY_VERIFY_H

#include <stdint.h>

#define VERIFY_MAX_KEYS 64
#define VERIFY_MAX_MESSAGE (4 * 1024 * 1024)
#define VERIFY_REPORT_FD 4

/* Of one machine's byte order: both ends are the same build. */
struct verify_header {
  uint32_t keys, signature_bytes, message_bytes;
};

#endif /* VERIFY_VERIFY_H */
