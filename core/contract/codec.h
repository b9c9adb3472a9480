/* SPDX-License-Identifier: Apache-2.0 */
/* What encoding, decoding and copying share: where in a value they are, and
 * arena memory.  Private to core/contract. */

#ifndef CONTRACT_CODEC_H
#define CONTRACT_CODEC_H

#include "contract/contract.h"

#define CODEC_MAX_DEPTH 8
#define ARENA_MAX_BYTES (16 * 1024 * 1024)

/* A step on the way from the outermost value to the one at hand.  Lives on
 * the stack of the walker; rendered only when something is wrong. */
struct codec_path {
  const struct codec_path *parent;
  const char *name;             /* NULL: an element of a vector */
  size_t index;
  int depth;
};

struct codec_path codec_path_field (const struct codec_path *parent,
                                    const char *name);
struct codec_path codec_path_item (const struct codec_path *parent,
                                   size_t index);
/* E_INVALID: "spec.mounts[0].target: WHAT".  A path that is too deep says so
 * instead.  Returns -1. */
int codec_fail (struct error **err, const struct codec_path *path,
                const char *fmt, ...) __attribute__ ((format (printf, 3, 4)));
int codec_check_depth (const struct codec_path *path, struct error **err);

/* Zeroed memory, aligned for anything; NULL and *err when there is none. */
void *arena_alloc (struct contract_arena *arena, size_t size,
                   struct error **err);
/* A copy with a NUL behind it. */
char *arena_string (struct contract_arena *arena, const char *bytes,
                    size_t size, struct error **err);
/* A record of our own size with every field at its default. */
void *arena_record (struct contract_arena *arena,
                    const struct contract_record *record, struct error **err);

#endif /* CONTRACT_CODEC_H */
