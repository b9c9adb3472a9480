/* SPDX-License-Identifier: Apache-2.0 */
/* minisign's files are lines: a comment that nobody signed, base64 of a fixed
 * length, and in a signature a comment that is signed and the signature of
 * that.  Anything else is refused: there is one way to write each file. */

#include <config.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/minisign.h"
#include "base/text.h"

#define UNTRUSTED "untrusted comment: "
#define TRUSTED "trusted comment: "

struct lines {
  const char *at, *end;
};

/* The next line without its newline, which only the last one may lack. */
static int
next_line (struct lines *lines, const char **line, size_t *size)
{
  const char *newline;

  if (lines->at == lines->end)
    return -1;
  newline = memchr (lines->at, '\n', (size_t) (lines->end - lines->at));
  *line = lines->at;
  *size = (size_t) ((newline ? newline : lines->end) - lines->at);
  lines->at = newline ? newline + 1 : lines->end;
  return 0;
}

/* What stands after a prefix. */
static int
next_comment (struct lines *lines, const char *prefix, const char **text,
              size_t *size)
{
  const size_t length = strlen (prefix);

  if (next_line (lines, text, size) < 0 || *size < length
      || memcmp (*text, prefix, length) != 0)
    return -1;
  *text += length;
  *size -= length;
  return *size <= MINISIGN_COMMENT_MAX ? 0 : -1;
}

/* Exactly `size` bytes; text_base64_decode knows one spelling for them. */
static int
next_bytes (struct lines *lines, uint8_t *out, size_t size)
{
  auto_free char *text = NULL, *bytes = NULL;
  const char *line;
  size_t length, n = 0;

  if (next_line (lines, &line, &length) < 0 || length != (size + 2) / 3 * 4)
    return -1;
  text = strndup (line, length);
  if (text == NULL || strlen (text) != length
      || text_base64_decode (text, &bytes, &n) < 0 || n != size)
    return -1;
  memcpy (out, bytes, size);
  return 0;
}

static const char *
check_size (size_t size)
{
  return size <= MINISIGN_MAX_BYTES ? NULL : "it is larger than 4 KiB";
}

const char *
minisign_read_key (const char *bytes, size_t size, struct minisign_key *out)
{
  struct lines lines = { bytes, bytes + size };
  uint8_t raw[42];
  const char *comment;
  size_t length;

  if (check_size (size))
    return check_size (size);
  if (next_comment (&lines, UNTRUSTED, &comment, &length) < 0
      || next_bytes (&lines, raw, sizeof raw) < 0 || lines.at != lines.end
      || memcmp (raw, "Ed", 2) != 0)
    return "it is no public key of minisign";
  memcpy (out->id, raw + 2, sizeof out->id);
  memcpy (out->key, raw + 10, sizeof out->key);
  return NULL;
}

/* One line of text: it is shown, and kept in receipts. */
static const char *
take_comment (struct lines *lines, struct minisign_signature *out)
{
  const char *text;
  size_t i, size;

  if (next_comment (lines, TRUSTED, &text, &size) < 0)
    return "it is no signature of minisign";
  for (i = 0; i < size; i++) {
    if (((unsigned char) text[i] < 0x20 && text[i] != '\t') || text[i] == 0x7f)
      return "its trusted comment has control characters";
  }
  if (!text_is_utf8 (text, size))
    return "its trusted comment is not UTF-8";
  memcpy (out->comment, text, size);
  out->comment[size] = '\0';
  out->comment_size = size;
  return NULL;
}

const char *
minisign_read_signature (const char *bytes, size_t size,
                         struct minisign_signature *out)
{
  struct lines lines = { bytes, bytes + size };
  uint8_t raw[74];
  const char *comment, *wrong;
  size_t length;

  if (check_size (size))
    return check_size (size);
  if (next_comment (&lines, UNTRUSTED, &comment, &length) < 0
      || next_bytes (&lines, raw, sizeof raw) < 0)
    return "it is no signature of minisign";
  if (memcmp (raw, "Ed", 2) == 0)
    return "it is of the old kind, which does not hash first: sign with "
           "minisign -H";
  if (memcmp (raw, "ED", 2) != 0)
    return "it is of an unknown kind";
  wrong = take_comment (&lines, out);
  if (wrong)
    return wrong;
  if (next_bytes (&lines, out->global, sizeof out->global) < 0
      || lines.at != lines.end)
    return "it is no signature of minisign";
  memcpy (out->id, raw + 2, sizeof out->id);
  memcpy (out->signature, raw + 10, sizeof out->signature);
  return NULL;
}

void
minisign_id_text (const uint8_t id[8], char out[MINISIGN_ID_SIZE])
{
  uint64_t value = 0;
  size_t i;

  for (i = 8; i-- > 0;)
    value = value << 8 | id[i];
  snprintf (out, MINISIGN_ID_SIZE, "%" PRIX64, value);
}
