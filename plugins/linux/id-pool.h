/* SPDX-License-Identifier: Apache-2.0 */
/* Ids of root's sandboxes: one for each, as a user and as a group. */

#ifndef LINUX_ID_POOL_H
#define LINUX_ID_POOL_H

#include <stdint.h>
#include <sys/types.h>

#include "linux.h"

#define POOL_SLOTS 16384u       /* sandboxes at once, of one runtime folder */

struct pool_window {
  uint32_t first, count;
};

/* What decides about windows, as the files have it: see user_namespaces(7),
 * subuid(5). */
struct pool_files {
  const char *uid_map, *gid_map, *subuid, *subgid;
};

/* few: where there are too few to be choosy. */
int pool_window_good (const struct pool_files *files, uint32_t first,
                      uint32_t count, int few);
/* 0, or -1: there is none. */
int pool_window_choose (const struct pool_files *files, uint32_t random,
                        struct pool_window *out);

struct id_pool;

/* Of a runtime folder, or (-1) of this process alone.  NULL with errno. */
struct id_pool *pool_new (int runtime);
void pool_free (struct id_pool *pool);
/* A place, which this process has until it is noted to be another's or given
 * back, and the id that belongs to it.  -1 with errno: EUSERS when all are in
 * use, ENOENT when there are none here. */
int pool_take (struct id_pool *pool, uint32_t *place, uint32_t *id);
int pool_window (struct id_pool *pool, struct pool_window *out);
/* Its owner from now on. */
void pool_note (struct id_pool *pool, uint32_t place, pid_t pid);
/* When that owner is seen to have ended, and has not been waited for yet:
 * until then nobody else can have got the place, or the number. */
void pool_give (struct id_pool *pool, uint32_t place, pid_t pid);

#endif /* LINUX_ID_POOL_H */
