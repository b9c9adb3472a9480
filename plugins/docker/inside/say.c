/* SPDX-License-Identifier: Apache-2.0 */
/* Frames to the provider, on standard error; and the request from it. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "work.h"

/* Whoever reads may have gone: the command goes on, and its end is kept. */
void
say (uint32_t kind, const void *bytes, size_t size)
{
  const struct wire_frame frame = {kind, (uint32_t) size};
  coffer_unfilled char whole[sizeof frame + 512];

  if (size > sizeof whole - sizeof frame) {
    if (coffer_write_all (2, &frame, sizeof frame) >= 0)
      (void) !coffer_write_all (2, bytes, size);
    return;
  }
  memcpy (whole, &frame, sizeof frame);
  memcpy (whole + sizeof frame, bytes, size);
  (void) !coffer_write_all (2, whole, sizeof frame + size);
}

void
say_failed (int32_t code, int32_t retryable, const char *text)
{
  coffer_autobuffer struct coffer_buffer out = {0};
  const struct wire_failure failure = {code, retryable};
  size_t size = strlen (text);

  coffer_buffer_add (&out, &failure, sizeof failure);
  coffer_buffer_add (&out, text, size < 4000 ? size : 4000);
  coffer_buffer_add (&out, "", 1);
  if (!out.failed)
    say (WIRE_FAILED, out.data, out.size);
}

static int
id_is_good (const char *id)
{
  size_t n = strnlen (id, WIRE_ID_MAX);

  return n > 0 && n < WIRE_ID_MAX
         && strspn (id, "abcdefghijklmnopqrstuvwxyz0123456789") == n;
}

/* -1: there is none that makes sense, and nobody to tell. */
int
hear (struct wire_request *request, char **block)
{
  ssize_t n;

  *block = NULL;
  if (coffer_read_all (0, request, sizeof *request) != sizeof *request
      || request->magic != WIRE_MAGIC || request->block > WIRE_BLOCK_MAX)
    return -1;
  if (request->op <= WIRE_TELL && request->op != WIRE_LIST
      && !id_is_good (request->id))
    return -1;
  *block = malloc ((size_t) request->block + 1);
  if (!*block)
    return -1;
  n = coffer_read_all (0, *block, request->block);
  (*block)[request->block] = '\0';
  if (n == (ssize_t) request->block)
    return 0;
  free (*block);
  *block = NULL;
  return -1;
}
