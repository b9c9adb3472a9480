/* SPDX-License-Identifier: Apache-2.0 */
/* What front.c tells begin.c of an init that it has begun: one packet, with the
 * connection to that init. */

#ifndef LINUX_BEGUN_H
#define LINUX_BEGUN_H

#include <stdint.h>
#include <string.h>

#include "begin.h"
#include "linux.h"

#define BEGUN_BUILD 64

struct begun {
  char build[BEGUN_BUILD];      /* of which both are: that much of the note */
  pid_t pid;
  int late_network;
  struct ids ids;
  uint64_t dev, ino;            /* of the runtime folder */
};

static inline void
begun_build (const void *note, size_t size, char out[BEGUN_BUILD])
{
  memset (out, 0, BEGUN_BUILD);
  memcpy (out, note, size < BEGUN_BUILD ? size : BEGUN_BUILD);
}

#endif /* LINUX_BEGUN_H */
