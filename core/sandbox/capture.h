/* SPDX-License-Identifier: Apache-2.0 */
/* What a command wrote, for one document at its end: the head and the tail up to a cap, and a
 * count of what lay between. */

#ifndef SANDBOX_CAPTURE_H
#define SANDBOX_CAPTURE_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "policy/shares.h"

#define CAPTURE_HEAD (512 * 1024)
#define CAPTURE_TAIL (512 * 1024)

struct capture {
  char *head, *tail;
  size_t head_size, head_room;
  size_t tail_at;               /* where the next byte of the ring goes */
  uint64_t total;
  struct share_hold *hold;      /* of whose share the memory is; NULL: nobody's */
  uint64_t lost;                /* bytes at the end for which that had no room */
  int failed;
};

void capture_add (struct capture *capture, const char *bytes, size_t size);
void capture_fini (struct capture *capture);

/* How many bytes there were. */
uint64_t capture_bytes (const struct capture *capture);

/* {"encoding","data","bytes"} and, when something was left out,
 * {"omitted":{"at","bytes"}}: `data` is head and tail without it. */
json_t *capture_json (const struct capture *capture);

#endif /* SANDBOX_CAPTURE_H */
