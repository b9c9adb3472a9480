/* SPDX-License-Identifier: Apache-2.0 */
/* The tar format as the provider writes and reads it: ustar, and pax headers
 * for what does not fit.  Numbers are octal text. */

#ifndef REFERENCE_ARCHIVE_H
#define REFERENCE_ARCHIVE_H

#include "files.h"

#define TAR_BLOCK 512
#define TAR_BYTES_MAX (UINT64_C (1) << 30)      /* of an archive */
#define TAR_ENTRIES_MAX 100000
#define TAR_DEPTH_MAX 128

struct tar_header {
  char name[100];
  char mode[8], uid[8], gid[8];
  char size[12], mtime[12];
  char checksum[8];
  char type;
  char link[100];
  char magic[6], version[2];
  char user[32], group[32];
  char major[8], minor[8];
  char prefix[155];
  char padding[12];
};

/* Over all bytes, with the checksum's own as spaces. */
static inline unsigned
tar_checksum (const struct tar_header *header)
{
  const unsigned char *bytes = (const void *) header;
  unsigned sum = 8 * ' ';

  for (size_t i = 0; i < TAR_BLOCK; i++)
    if (i < offsetof (struct tar_header, checksum)
        || i >= offsetof (struct tar_header, type))
      sum += bytes[i];
  return sum;
}

/* ---- archive-read.c ---- */

/* Unpacks the archive behind `file` into the empty folder `to`: -1 when it is
 * not all well, with *why, or NULL and errno. */
int tar_unpack (struct coffer_call *call, int file, int to, const char **why);

/* ---- archive-merge.c ---- */

/* Moves what lies in `from` to the same names in `to`, all of it or, when
 * something is in the way, nothing: -1 with errno. */
int tree_merge (int from, int to);

#endif /* REFERENCE_ARCHIVE_H */
