/* SPDX-License-Identifier: Apache-2.0 */
/* What was refused: each name, port and reason once, with its count.  The file
 * holds no more than its head and its places, whatever is asked for. */

#include <stddef.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "proxy.h"

static struct denials denials;

static void
write_back (const void *part, size_t size)
{
  size_t offset = (size_t) ((const char *) part - (const char *) &denials);

  /* A full disk takes the news away, not the refusal. */
  if (pwrite (PROXY_DENIALS, part, size, (off_t) offset) < 0)
    return;
}

static struct denial *
place_for (const struct target *target, enum denial_reason reason)
{
  struct denial *place;
  uint32_t i;

  for (i = 0; i < denials.count; i++) {
    place = &denials.places[i];
    if (place->port == target->port && place->reason == reason
        && strcmp (place->host, target->name) == 0)
      return place;
  }
  if (denials.count == DENIALS_MAX)
    return NULL;
  place = &denials.places[denials.count++];
  memcpy (place->host, target->name, sizeof target->name);
  place->port = target->port;
  place->reason = (uint16_t) reason;
  return place;
}

void
denied_note (const struct target *target, enum denial_reason reason)
{
  struct denial *place = place_for (target, reason);
  struct timespec now;

  clock_gettime (CLOCK_REALTIME, &now);
  if (place != NULL) {
    place->last_ns = (int64_t) now.tv_sec * 1000000000 + now.tv_nsec;
    place->count += place->count < UINT32_MAX;
    write_back (place, sizeof *place);
  } else {
    denials.others_ns = (int64_t) now.tv_sec * 1000000000 + now.tv_nsec;
    denials.others += denials.others < UINT32_MAX;
  }
  write_back (&denials, offsetof (struct denials, places));
}
