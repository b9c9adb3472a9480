/* SPDX-License-Identifier: Apache-2.0 */
/* A stream of bytes as the files of an image.
 *
 * An engine takes an image as tar, whose headers have sizes, and unpacks it as
 * root: so what is kept is cut into pieces, files 000000, 000001, … of PIECE_BYTES
 * but the last, in one folder, and never is what a sandbox has called its files a
 * name of the engine's.  The last file, "end", holds the count of bytes and their
 * SHA-256: without it, or with another, there is nothing to be had. */

#ifndef DOCKER_PIECES_H
#define DOCKER_PIECES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <sha2.h>

#define PIECES_FOLDER "coffer-snapshot"
#define PIECE_BYTES (1u << 20)
#define PIECES_MAX 999999u
#define PIECES_END_MAX 128      /* bytes of the last file */

/* Takes bytes, all of them: 0, or what ends the work. */
typedef int32_t (*pieces_sink) (void *data, const void *bytes, size_t size);

struct pieces_writer {
  pieces_sink sink;
  void *data;
  SHA2_CTX hash;
  uint64_t bytes;
  unsigned number;
  size_t filled;
  char *piece;
};

/* Each gives back what the sink did, or COFFER_LIMIT or COFFER_INTERNAL (no
 * memory); the last frees as well. */
int32_t pieces_begin (struct pieces_writer *writer, pieces_sink sink,
                      void *data);
int32_t pieces_add (struct pieces_writer *writer, const char *bytes,
                    size_t size);
int32_t pieces_end (struct pieces_writer *writer);
void pieces_free (struct pieces_writer *writer);

/* Of the same as an engine gives it back, with headers of its own: few and small
 * ones, and one folder.  Whoever has the engine may have changed any of it. */
struct pieces_reader {
  pieces_sink sink;
  void *data;
  SHA2_CTX hash;
  uint64_t bytes;
  unsigned number;              /* of the next piece */
  uint64_t left, padding;       /* of the entry that is being read */
  int what;                     /* for these functions only, as the next three */
  int is_last;                  /* a piece was shorter than PIECE_BYTES */
  unsigned others;              /* entries since a file that were none */
  size_t behind;                /* bytes of the tar's end */
  int has_ended;                /* the last file was there, and right */
  int is_spoilt;                /* the caller's: it was found to be wrong */
  size_t head_size, end_size;
  char head[512], end[PIECES_END_MAX + 1];
};

void pieces_open (struct pieces_reader *reader, pieces_sink sink, void *data);
/* COFFER_OK, what the sink gave back, or COFFER_IO: these are no pieces, or not
 * as they were. */
int32_t pieces_read (struct pieces_reader *reader, const void *bytes,
                     size_t size);

#endif /* DOCKER_PIECES_H */
