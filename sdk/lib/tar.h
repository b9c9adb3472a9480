/* SPDX-License-Identifier: Apache-2.0 */
/* The tar format as the library writes and reads it: ustar, pax headers for
 * what does not fit, and the long names of GNU tar.  Numbers are octal text. */

#ifndef SDK_TAR_H
#define SDK_TAR_H

#include <limits.h>
#include <stddef.h>

#include <coffer/provider.h>

#define TAR_BLOCK 512
#define TAR_BYTES_MAX (UINT64_C (1) << 36)      /* of an archive */
#define TAR_ENTRIES_MAX 500000
#define TAR_NAMES_MAX (UINT64_C (32) << 20)     /* bytes of all names */
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

/* The bytes after `size` up to a whole block. */
static inline size_t
tar_padding (uint64_t size)
{
  return (size_t) (-size % TAR_BLOCK);
}

/* Unpacks what comes from `in`, up to its end, into the empty folder `to`: -1
 * when it is not all well, with *why, or NULL and errno.  `links_out`: links may
 * lead out of it; none is ever followed. */
int tar_unpack (struct coffer_call *call, int in, int to, int links_out,
                const char **why);

/* Moves what lies in `from` to the same names in `to`, all of it or, when
 * something is in the way, nothing: -1 with errno.  *left counts what was moved
 * and could not be taken back. */
int tree_merge (struct coffer_call *call, int from, int to, size_t *left);

#endif /* SDK_TAR_H */
