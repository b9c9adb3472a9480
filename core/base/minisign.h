/* SPDX-License-Identifier: Apache-2.0 */
/* The files of minisign(1), taken apart: public keys, and signatures of what
 * was hashed first.  Nothing is verified here. */

#ifndef BASE_MINISIGN_H
#define BASE_MINISIGN_H

#include <stddef.h>
#include <stdint.h>

#define MINISIGN_MAX_BYTES 4096 /* of a file */
#define MINISIGN_COMMENT_MAX 1024
#define MINISIGN_ID_SIZE 17     /* of the id as text, with its NUL */

struct minisign_key {
  uint8_t id[8];
  uint8_t key[32];              /* Ed25519 */
};

struct minisign_signature {
  uint8_t id[8];
  uint8_t signature[64];        /* of the BLAKE2b-512 of the file */
  uint8_t global[64];           /* of `signature` and the trusted comment */
  size_t comment_size;
  char comment[MINISIGN_COMMENT_MAX + 1];
};

/* The whole file, exactly as minisign writes it.  NULL, or what is wrong. */
const char *minisign_read_key (const char *bytes, size_t size,
                               struct minisign_key *out);
const char *minisign_read_signature (const char *bytes, size_t size,
                                     struct minisign_signature *out);

/* As minisign shows it: a number, so without zeros at its left. */
void minisign_id_text (const uint8_t id[8], char out[MINISIGN_ID_SIZE]);

#endif /* BASE_MINISIGN_H */
