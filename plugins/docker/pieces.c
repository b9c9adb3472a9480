/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces: see pieces.h. */

#define _GNU_SOURCE

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <coffer/provider.h>

#include "pieces.h"

#define BLOCK 512u

struct header {
  char name[100];
  char mode[8], uid[8], gid[8];
  char size[12], mtime[12];
  char checksum[8];
  char type;
  char rest[355];
};

static void
digest_of (SHA2_CTX *hash, char text[2 * SHA256_DIGEST_LENGTH + 1])
{
  uint8_t digest[SHA256_DIGEST_LENGTH];

  SHA256Final (digest, hash);
  for (size_t i = 0; i < sizeof digest; i++)
    snprintf (text + 2 * i, 3, "%02x", digest[i]);
}

static void
end_text (SHA2_CTX *hash, uint64_t bytes, char text[PIECES_END_MAX])
{
  char digest[2 * SHA256_DIGEST_LENGTH + 1];

  digest_of (hash, digest);
  snprintf (text, PIECES_END_MAX, "1 %" PRIu64 " %s\n", bytes, digest);
}

/* ---- writing ------------------------------------------------------------ */

static unsigned
checksum_of (const struct header *header)
{
  const unsigned char *bytes = (const void *) header;
  unsigned sum = 8 * ' ';

  for (size_t i = 0; i < sizeof *header; i++)
    if (i < offsetof (struct header, checksum)
        || i >= offsetof (struct header, type))
      sum += bytes[i];
  return sum;
}

static int32_t
write_header (struct pieces_writer *writer, const char *name, char type,
              size_t size)
{
  struct header header = {.mode = "0000444", .uid = "0000000",
                          .gid = "0000000", .mtime = "00000000000",
                          .type = type};

  if (type == '5')
    memcpy (header.mode, "0000555", 8);
  snprintf (header.name, sizeof header.name, PIECES_FOLDER "/%s", name);
  snprintf (header.size, sizeof header.size, "%011zo", size);
  memcpy (header.rest + 100, "ustar\0" "00", 8);
  snprintf (header.checksum, sizeof header.checksum, "%06o",
            checksum_of (&header));
  header.checksum[7] = ' ';
  return writer->sink (writer->data, &header, sizeof header);
}

static int32_t
write_file (struct pieces_writer *writer, const char *name, const char *bytes,
            size_t size)
{
  static const char zeros[BLOCK];
  int32_t code = write_header (writer, name, '0', size);

  if (code == COFFER_OK)
    code = writer->sink (writer->data, bytes, size);
  return code == COFFER_OK && size % BLOCK
         ? writer->sink (writer->data, zeros, BLOCK - size % BLOCK) : code;
}

static int32_t
write_piece (struct pieces_writer *writer)
{
  char name[16];

  if (writer->number > PIECES_MAX)
    return COFFER_LIMIT;
  snprintf (name, sizeof name, "%06u", writer->number++);
  SHA256Update (&writer->hash, (const uint8_t *) writer->piece,
                writer->filled);
  writer->bytes += writer->filled;
  return write_file (writer, name, writer->piece, writer->filled);
}

int32_t
pieces_begin (struct pieces_writer *writer, pieces_sink sink, void *data)
{
  memset (writer, 0, sizeof *writer);
  writer->sink = sink;
  writer->data = data;
  writer->piece = malloc (PIECE_BYTES);
  SHA256Init (&writer->hash);
  return writer->piece ? write_header (writer, "", '5', 0) : COFFER_INTERNAL;
}

int32_t
pieces_add (struct pieces_writer *writer, const char *bytes, size_t size)
{
  int32_t code = COFFER_OK;
  size_t n;

  for (; size > 0 && code == COFFER_OK; bytes += n, size -= n) {
    n = PIECE_BYTES - writer->filled;
    n = size < n ? size : n;
    memcpy (writer->piece + writer->filled, bytes, n);
    writer->filled += n;
    if (writer->filled == PIECE_BYTES) {
      code = write_piece (writer);
      writer->filled = 0;
    }
  }
  return code;
}

int32_t
pieces_end (struct pieces_writer *writer)
{
  static const char zeros[2 * BLOCK];
  char text[PIECES_END_MAX];
  int32_t code = writer->filled ? write_piece (writer) : COFFER_OK;

  end_text (&writer->hash, writer->bytes, text);
  if (code == COFFER_OK)
    code = write_file (writer, "end", text, strlen (text));
  return code == COFFER_OK ? writer->sink (writer->data, zeros, sizeof zeros)
                           : code;
}

void
pieces_free (struct pieces_writer *writer)
{
  free (writer->piece);
  writer->piece = NULL;
}

/* ---- reading ------------------------------------------------------------ */

enum { OTHER, PIECE, END };

#define OTHER_BYTES (64u << 10) /* of what stands before a file */
#define OTHERS_MAX 16u          /* and of it in a row */
#define BEHIND_MAX (64u << 10)  /* zeros that end the tar */

void
pieces_open (struct pieces_reader *reader, pieces_sink sink, void *data)
{
  memset (reader, 0, sizeof *reader);
  reader->sink = sink;
  reader->data = data;
  SHA256Init (&reader->hash);
}

/* -1: it is no number of a header. */
static int64_t
octal_of (const char *text, size_t size)
{
  int64_t value = 0;
  size_t i = 0;

  while (i < size && text[i] == ' ')
    i++;
  for (; i < size && text[i] >= '0' && text[i] <= '7'; i++)
    value = value << 3 | (text[i] - '0');
  return i == size || text[i] == '\0' || text[i] == ' ' ? value : -1;
}

/* "coffer-snapshot/BASE", and no other folder's. */
static const char *
base_of (const struct header *header)
{
  const size_t size = strlen (PIECES_FOLDER "/");

  return memcmp (header->name, PIECES_FOLDER "/", size) == 0
         && memchr (header->name, '\0', sizeof header->name)
         ? header->name + size : "";
}

/* Pieces in their order, full but for the last, then the end. */
static int32_t
take_file (struct pieces_reader *reader, const struct header *header)
{
  const char *base = base_of (header);
  char wanted[16];

  snprintf (wanted, sizeof wanted, "%06u", reader->number);
  reader->others = 0;
  if (reader->left == 0)
    return COFFER_IO;
  if (strcmp (base, wanted) == 0 && reader->left <= PIECE_BYTES
      && !reader->is_last && reader->number++ <= PIECES_MAX) {
    reader->is_last = reader->left < PIECE_BYTES;
    reader->what = PIECE;
  } else if (strcmp (base, "end") == 0 && reader->left <= PIECES_END_MAX)
    reader->what = END;
  else
    return COFFER_IO;
  return COFFER_OK;
}

/* The folder, and what says more of an entry than its header has room for, all of
 * which is left out: but there is no end to what could be. */
static int32_t
take_other (struct pieces_reader *reader, char type)
{
  reader->what = OTHER;
  return (type == '5' || type == 'x' || type == 'g')
         && reader->left <= (type == '5' ? 0 : OTHER_BYTES)
         && ++reader->others <= OTHERS_MAX ? COFFER_OK : COFFER_IO;
}

static int
is_zero (const char *bytes, size_t size)
{
  return size == 0 || (bytes[0] == '\0'
                       && memcmp (bytes, bytes + 1, size - 1) == 0);
}

/* Behind the end there is nothing more, of whatever kind. */
static int32_t
take_header (struct pieces_reader *reader)
{
  const struct header *header = (const void *) reader->head;
  int64_t size = octal_of (header->size, sizeof header->size);
  char type = header->type ? header->type : '0';

  reader->head_size = 0;
  if (is_zero (reader->head, sizeof reader->head)) {
    reader->behind = BLOCK;
    return COFFER_OK;
  }
  if (reader->has_ended || size < 0
      || octal_of (header->checksum, sizeof header->checksum)
         != (int64_t) checksum_of (header))
    return COFFER_IO;
  reader->left = (uint64_t) size;
  reader->padding = (uint64_t) -size % BLOCK;
  return type == '0' ? take_file (reader, header)
                     : take_other (reader, type);
}

static int32_t
take_end (struct pieces_reader *reader)
{
  char text[PIECES_END_MAX];

  end_text (&reader->hash, reader->bytes, text);
  if (reader->end_size != strlen (text)
      || memcmp (reader->end, text, reader->end_size) != 0)
    return COFFER_IO;
  reader->has_ended = 1;
  return COFFER_OK;
}

static int32_t
take_bytes (struct pieces_reader *reader, const char *bytes, size_t size)
{
  reader->left -= size;
  if (reader->what == PIECE) {
    SHA256Update (&reader->hash, (const uint8_t *) bytes, size);
    reader->bytes += size;
    return reader->sink (reader->data, bytes, size);
  }
  if (reader->what == END) {
    memcpy (reader->end + reader->end_size, bytes, size);
    reader->end_size += size;
    return reader->left == 0 ? take_end (reader) : COFFER_OK;
  }
  return COFFER_OK;
}

static int32_t
take_behind (struct pieces_reader *reader, const char *bytes, size_t size)
{
  reader->behind += size < BEHIND_MAX ? size : BEHIND_MAX;
  return is_zero (bytes, size) && reader->behind <= BEHIND_MAX ? COFFER_OK
                                                               : COFFER_IO;
}

int32_t
pieces_read (struct pieces_reader *reader, const void *from, size_t size)
{
  const char *bytes = from;
  int32_t code = COFFER_OK;
  size_t n;

  for (; size > 0 && code == COFFER_OK; bytes += n, size -= n)
    if (reader->behind > 0) {
      n = size;
      code = take_behind (reader, bytes, n);
    } else if (reader->left > 0) {
      n = reader->left < size ? (size_t) reader->left : size;
      code = take_bytes (reader, bytes, n);
    } else if (reader->padding > 0) {
      n = reader->padding < size ? (size_t) reader->padding : size;
      reader->padding -= n;
    } else {
      n = sizeof reader->head - reader->head_size;
      n = n < size ? n : size;
      memcpy (reader->head + reader->head_size, bytes, n);
      reader->head_size += n;
      if (reader->head_size == sizeof reader->head)
        code = take_header (reader);
    }
  return code;
}
