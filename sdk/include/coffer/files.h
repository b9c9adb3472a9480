/* SPDX-License-Identifier: Apache-2.0 */
/* The contract's file operations over a folder that this process can reach by
 * descriptor.  A provider resolves the sandbox to a root descriptor and calls
 * these; they emit file_stat, keep the call's deadline and cancel fd, and
 * return a contract code after coffer_fail.  They do not change credentials:
 * a caller that is root sets its fsuid and fsgid to the sandbox's user first.
 * `root`, `out` and `in` stay the caller's.  No locks and no globals: any
 * thread.  Part of libcoffer-provider.a. */

#ifndef COFFER_FILES_H
#define COFFER_FILES_H

#include <coffer/provider.h>

#ifdef __cplusplus
extern "C" {
#endif

/* As the operation of the name, with the same records and codes; `path` as in
 * coffer/path.h, opts NULL: defaults. */
int32_t coffer_files_read (struct coffer_call *call, int root,
                           const char *path, int32_t out,
                           const struct coffer_file_read_opts *opts);
int32_t coffer_files_write (struct coffer_call *call, int root,
                            const char *path, int32_t in,
                            const struct coffer_file_write_opts *opts);
int32_t coffer_files_stat (struct coffer_call *call, int root,
                           const char *path);
int32_t coffer_files_list (struct coffer_call *call, int root,
                           const char *path,
                           const struct coffer_file_list_opts *opts);
int32_t coffer_files_mkdir (struct coffer_call *call, int root,
                            const char *path,
                            const struct coffer_file_mkdir_opts *opts);
int32_t coffer_files_remove (struct coffer_call *call, int root,
                             const char *path,
                             const struct coffer_file_remove_opts *opts);
int32_t coffer_files_rename (struct coffer_call *call, int root,
                             const char *from, const char *to);

/* A folder as tar, and a tar into a folder: all of it or nothing, by way of a
 * folder .coffer-… there, and where that could not be, it is said.  INVALID is
 * what is no file, folder or link, what leads out, is there twice, is sparse,
 * has setuid, setgid or sticky bits or is deeper than 128 folders; LIMIT more
 * than 500000 names, 32 MiB of names or 64 GiB.  Kept are names, bits rwxrwxrwx
 * (a folder is its owner's to use), links and the times of files.  What is being
 * written or unpacked meanwhile is in no archive: a file or folder whose name is
 * .coffer- and 16 hexadecimal digits.  One that was left by somebody that was killed
 * is removed by _export, _import and _list, where it is theirs to remove. */
int32_t coffer_files_export (struct coffer_call *call, int root,
                             const char *path, int32_t out);
int32_t coffer_files_import (struct coffer_call *call, int root,
                             const char *path, int32_t in);
/* The same of what _export has packed, for a snapshot: links lead where they led,
 * also out of the folder.  For whom that is, and nobody else, to follow. */
int32_t coffer_files_restore (struct coffer_call *call, int root,
                              const char *path, int32_t in);

/* A folder's changes as an inotify descriptor, which the caller closes: -1 with
 * errno.  Then, with nothing else of the sandbox held open, the operation
 * file_watch; `ended` becomes readable when the sandbox has ended (-1: none).
 * Names that begin with .coffer- are not told.  Not in a worker, unless its
 * provider's permissions are `namespaces` or `exec: any`. */
int coffer_watch_open (int root, const char *path);
int32_t coffer_files_watch (struct coffer_call *call, int watch, int ended);

/* Maps errno to a contract code: ENOENT is NOT_FOUND, EACCES DENIED, ENOSPC
 * LIMIT, ELOOP and EXDEV DENIED, ...; what it does not know is IO, 0 is OK. */
int32_t coffer_code_from_errno (int sys_errno);

/* coffer_fail with "WHAT: strerror"; returns the code for sys_errno. */
int32_t coffer_fail_errno (struct coffer_call *call, int sys_errno,
                           const char *what);

#ifdef __cplusplus
}
#endif

#endif /* COFFER_FILES_H */
