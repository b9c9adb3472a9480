/* SPDX-License-Identifier: Apache-2.0 */
/* What code wrote, for its reply: the head and the tail of a stream, and how
 * much lay between.  The reply is text, whatever was written. */

#ifndef PYTHON_KEPT_H
#define PYTHON_KEPT_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#define KEPT_HEAD (48 << 10)
#define KEPT_TAIL (16 << 10)

struct kept {
  char *bytes;                  /* head, then up to twice the tail */
  size_t used, room;
  uint64_t dropped;             /* of the middle */
  int failed;
};

void kept_add (struct kept *kept, const char *bytes, size_t size);
/* A string of JSON: what is no UTF-8 is U+FFFD, and a line says what was left
 * out.  `note` (NULL: none) comes behind it on a line of its own. */
json_t *kept_json (const struct kept *kept, const char *note);
void kept_fini (struct kept *kept);

#endif /* PYTHON_KEPT_H */
