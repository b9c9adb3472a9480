/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of libcoffer-provider.a share and no one else sees. */

#ifndef SDK_INTERNAL_H
#define SDK_INTERNAL_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <coffer/path.h>
#include <coffer/provider.h>

#define PATH_LIMIT 4096         /* with the NUL */
#define WALK_DEPTH_MAX 128      /* a descriptor a level is held */

/* A path with no empty or "." components and no slash at either end; "" is
 * the root itself.  -1 with errno: EINVAL ("..", empty, too long). */
int path_normalise (const char *path, char out[PATH_LIMIT]);

/* coffer_remove_beneath that gives up (ETIMEDOUT, ECANCELED). */
int path_remove (int root, const char *path, int recursive,
                 int64_t deadline_ns, int cancel_fd, uint64_t *removed);

/* 0: go on; -1 with errno. */
int path_check (int64_t deadline_ns, int cancel_fd);
/* Is something mounted there?  0 on a kernel before 5.8. */
int path_is_mounted (int dir, const char *name);

/* How many names it has, as what is walked has them. */
unsigned path_depth (const char *path);
/* A name that nothing else has, for what is not whole yet: ".coffer-…". */
int path_temporary (char *out, size_t size);
/* ---- left.c: those that nobody works at any more ---- */
/* Held until fd is closed: at once when it is made.  -1, EWOULDBLOCK: it is gone
 * or going. */
int path_hold (int fd);
/* Is the path of such a file or folder, or below one? */
int path_has_temporary (const char *path, mode_t mode);
/* 1: it was one, and is removed. */
int path_sweep_one (struct coffer_call *call, int dir, const char *name,
                    mode_t mode);
/* All that lie in a folder. */
void path_sweep (struct coffer_call *call, int folder);

/* coffer_fail_errno with the path, escaped. */
int32_t path_fail (struct coffer_call *call, int sys_errno, const char *path);

/* `size` bytes, or fewer at the end; -1 with errno. */
ssize_t fd_take (int from, void *bytes, size_t size, int64_t deadline_ns,
                 int cancel_fd);

#endif /* SDK_INTERNAL_H */
