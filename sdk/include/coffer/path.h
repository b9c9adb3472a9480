/* SPDX-License-Identifier: Apache-2.0 */
/* Paths below a folder, by descriptor, for callers that must not trust the
 * tree they look into: no link is followed, nothing above the folder is
 * reached, and what is opened is looked at before it is used.
 *
 * Paths are NUL-terminated bytes.  "a/./b//c" is allowed and means "a/b/c";
 * "..", an empty path and more than 4095 bytes are EINVAL.  A leading "/" is
 * the folder itself.  Unless said otherwise: 0 or more, or -1 with errno
 * (ELOOP: a link was in the way; EXDEV: it would have left the folder).
 * Descriptors that are returned are the caller's and close-on-exec; `root` is
 * borrowed.  No locks and no globals: any thread.  Needs Linux 5.6 (openat2).
 * Part of libcoffer-provider.a. */

#ifndef COFFER_PATH_H
#define COFFER_PATH_H

#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a path that a caller gives means below `folder`, which is absolute and
 * ends in no slash: a relative one is as it is, from an absolute one the folder
 * is cut off.  NULL: it is elsewhere, or NULL. */
const char *coffer_path_below (const char *folder, const char *path);

/* Opens `path` beneath `root`.  Always adds O_CLOEXEC, O_NOFOLLOW, O_NONBLOCK
 * (cleared again for a regular file) and refuses magic links. */
int coffer_open_beneath (int root, const char *path, int flags, mode_t mode);

/* Opens a regular file for reading: anything else is EINVAL (or EISDIR). */
int coffer_open_regular (int root, const char *path, struct stat *st);

/* Opens the folder that holds the last component, and points *name at that
 * component inside `path`.  parents: missing folders are made with 0755. */
int coffer_open_parent (int root, const char *path, int parents,
                        const char **name);

/* mkdir, with parents if asked; an existing folder is then success. */
int coffer_mkdir_beneath (int root, const char *path, mode_t mode,
                          int parents);

/* Removes a file, or an empty folder, or with `recursive` a whole tree, and
 * crosses no mount.  `removed` (may be NULL) counts entries. */
int coffer_remove_beneath (int root, const char *path, int recursive,
                           uint64_t *removed);

/* A file that appears under its name only when it is whole: written under a
 * temporary name beside it, then renamed.  Begin returns its descriptor, which
 * the struct owns; then comes commit, and abort where that was not reached or
 * failed.  `mode` is that of the file, whatever the umask; one that lets others
 * write is EOPNOTSUPP in a worker, which may not give that away. */
struct coffer_new_file {
  int dir;                      /* all of it is for these functions only */
  int fd;
  char temporary[32];
  char *name;
};
int coffer_new_file_begin (struct coffer_new_file *file, int root,
                           const char *path, mode_t mode, int parents);
/* sync: fsync file and folder.  exclusive: EEXIST when the name is taken. */
int coffer_new_file_commit (struct coffer_new_file *file, int sync,
                            int exclusive);
/* Safe after commit, and on a zeroed struct that never began. */
void coffer_new_file_abort (struct coffer_new_file *file);

/* Calls `entry` for each name in a folder, at most `depth` levels down (0 and
 * 1: the folder alone; above 128: EINVAL), without crossing mounts.  `path` is relative to the listed
 * folder.  A non-zero return of the callback ends the walk and is returned. */
typedef int coffer_walk_entry (void *data, const char *path, int dir,
                               const char *name, const struct stat *st);
int coffer_walk (int root, const char *path, uint32_t depth,
                 coffer_walk_entry *entry, void *data);

#ifdef __cplusplus
}
#endif

#endif /* COFFER_PATH_H */
