/* SPDX-License-Identifier: Apache-2.0 */
/* What an engine gives back as a snapshot's image.  The first byte says in which
 * steps it comes, which must change nothing of what is understood, and whether the
 * sums of headers are made right, without which little of them is looked at; what
 * was taken as whole is what its writer would have written of the same bytes. */

#include <config.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <coffer/buffer.h>
#include <coffer/provider.h>

#include "pieces.h"

#define CHECK(condition) do { if (!(condition)) abort (); } while (0)

int LLVMFuzzerTestOneInput (const uint8_t *bytes, size_t size);

static int32_t
gather (void *data, const void *bytes, size_t size)
{
  struct coffer_buffer *out = data;

  CHECK (size > 0 && size <= PIECE_BYTES);
  coffer_buffer_add (out, bytes, size);
  return COFFER_OK;
}

/* 1: whole; 0: there could be more; -1: refused. */
static int
read_all (const uint8_t *bytes, size_t size, size_t step,
          struct coffer_buffer *out)
{
  struct pieces_reader reader;
  int32_t code = COFFER_OK;

  pieces_open (&reader, gather, out);
  for (size_t at = 0; at < size && code == COFFER_OK; at += step) {
    size_t n = size - at < step ? size - at : step;
    uint8_t *copy = malloc (n);

    CHECK (copy);
    memcpy (copy, bytes + at, n);
    code = pieces_read (&reader, copy, n);
    free (copy);
  }
  CHECK (code == COFFER_OK || code == COFFER_IO);
  CHECK (reader.number <= PIECES_MAX + 1 && out->size <= size);
  return code != COFFER_OK ? -1 : reader.has_ended;
}

/* The last file holds count and hash: only with those was it whole. */
static void
look_again (const uint8_t *bytes, size_t size, const struct coffer_buffer *out)
{
  coffer_autobuffer struct coffer_buffer tar = {0};
  struct pieces_writer writer;
  const char *end;
  size_t length;

  CHECK (pieces_begin (&writer, gather, &tar) == COFFER_OK);
  CHECK (pieces_add (&writer, out->data, out->size) == COFFER_OK);
  CHECK (pieces_end (&writer) == COFFER_OK);
  pieces_free (&writer);
  end = tar.data + tar.size - 3 * 512;
  length = strnlen (end, 512);
  CHECK (length > 64 && memmem (bytes, size, end, length));
}

static void
put_sums (uint8_t *bytes, size_t size)
{
  for (; size >= 512; bytes += 512, size -= 512) {
    unsigned sum = 8 * ' ';
    char text[8];

    if (memcmp (bytes + 257, "ustar", 5) != 0)
      continue;
    for (size_t i = 0; i < 512; i++)
      sum += i < 148 || i >= 156 ? bytes[i] : 0u;
    snprintf (text, sizeof text, "%06o", sum);
    memcpy (bytes + 148, text, 7);
  }
}

static void
look (const uint8_t *bytes, size_t size, size_t step)
{
  coffer_autobuffer struct coffer_buffer whole = {0}, parts = {0};
  int first = read_all (bytes, size, size, &whole);
  int second = read_all (bytes, size, step, &parts);

  CHECK (first == second);
  if (first >= 0)
    CHECK (whole.size == parts.size
           && (whole.size == 0
               || memcmp (whole.data, parts.data, whole.size) == 0));
  if (first == 1)
    look_again (bytes, size, &whole);
}

int
LLVMFuzzerTestOneInput (const uint8_t *bytes, size_t size)
{
  coffer_autobuffer struct coffer_buffer tar = {0};

  if (size < 2)
    return 0;
  coffer_buffer_add (&tar, bytes + 1, size - 1);
  CHECK (!tar.failed);
  if (bytes[0] & 1)
    put_sums ((uint8_t *) tar.data, tar.size);
  look ((const uint8_t *) tar.data, tar.size, 1 + bytes[0] * 7u);
  return 0;
}
