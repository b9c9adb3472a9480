/* SPDX-License-Identifier: Apache-2.0 */
/* The contract's file operations over a folder's descriptor.
 *
 * Each is: look the path up beneath the root, do the one thing, emit what the
 * file is afterwards.  A write goes to a new file beside the name, so that a
 * reader sees the old bytes or all of the new ones and a failure leaves the
 * old file alone. */

#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <coffer/buffer.h>
#include <coffer/fd.h>
#include <coffer/files.h>
#include <coffer/path.h>

#include "internal.h"

/* A field of an options record, or 0 when there is none or it is too short. */
#define OPTION(opts, field) (COFFER_HAS (opts, field) ? (opts)->field : 0)

static const struct {
  int sys_errno;
  int32_t code;
} code_table[] = {
  {0, COFFER_OK},
  {ENOENT, COFFER_NOT_FOUND}, {ESRCH, COFFER_NOT_FOUND},
  {EEXIST, COFFER_EXISTS},
  {EACCES, COFFER_DENIED}, {EPERM, COFFER_DENIED}, {EROFS, COFFER_DENIED},
  {ELOOP, COFFER_DENIED}, {EXDEV, COFFER_DENIED},
  {EINVAL, COFFER_INVALID}, {ENAMETOOLONG, COFFER_INVALID},
  {EBADF, COFFER_INVALID}, {EFAULT, COFFER_INVALID}, {E2BIG, COFFER_INVALID},
  {ENXIO, COFFER_INVALID},
  {EISDIR, COFFER_CONFLICT}, {ENOTDIR, COFFER_CONFLICT},
  {ENOTEMPTY, COFFER_CONFLICT},
  {EBUSY, COFFER_BUSY}, {EAGAIN, COFFER_BUSY}, {ETXTBSY, COFFER_BUSY},
  {ENOSPC, COFFER_LIMIT}, {EDQUOT, COFFER_LIMIT}, {EFBIG, COFFER_LIMIT},
  {EMFILE, COFFER_LIMIT}, {ENFILE, COFFER_LIMIT}, {EMLINK, COFFER_LIMIT},
  {EOVERFLOW, COFFER_LIMIT},
  {ETIMEDOUT, COFFER_TIMEOUT}, {ECANCELED, COFFER_CANCELLED},
  {ENOSYS, COFFER_UNAVAILABLE}, {EOPNOTSUPP, COFFER_UNSUPPORTED},
  {ECONNREFUSED, COFFER_UNAVAILABLE}, {ECONNRESET, COFFER_UNAVAILABLE},
  {ENOMEM, COFFER_INTERNAL},
};

int32_t
coffer_code_from_errno (int sys_errno)
{
  for (size_t i = 0; i < sizeof code_table / sizeof code_table[0]; i++)
    if (code_table[i].sys_errno == sys_errno)
      return code_table[i].code;
  return COFFER_IO;
}

static const char *
errno_text (int sys_errno)
{
  const char *text = strerrordesc_np (sys_errno);

  switch (sys_errno) {
  case ELOOP: return "a symbolic link is in the way";
  case EXDEV: return "it would leave the folder";
  case ETIMEDOUT: return "the deadline passed";
  case ECANCELED: return "the caller gave up";
  default: return text ? text : "unknown error";
  }
}

int32_t
coffer_fail_errno (struct coffer_call *call, int sys_errno, const char *what)
{
  coffer_autobuffer struct coffer_buffer text = {0};
  int32_t code = coffer_code_from_errno (sys_errno);

  if (code == COFFER_OK)        /* a failure it is, whatever errno says */
    code = COFFER_INTERNAL;
  coffer_buffer_printf (&text, "%s: %s", what, errno_text (sys_errno));
  return coffer_fail (call, code, text.failed ? what : text.data);
}

int32_t
path_fail (struct coffer_call *call, int sys_errno, const char *path)
{
  coffer_autobuffer struct coffer_buffer text = {0};

  coffer_buffer_add_escaped (&text, path, strlen (path));
  if (text.failed || text.size == 0)
    return coffer_fail_errno (call, sys_errno,
                              text.failed ? "a path" : "empty path");
  return coffer_fail_errno (call, sys_errno, text.data);
}

static const char *
kind_name (mode_t mode)
{
  if (S_ISREG (mode))
    return "file";
  if (S_ISDIR (mode))
    return "directory";
  if (S_ISLNK (mode))
    return "symlink";
  if (S_ISFIFO (mode))
    return "fifo";
  return S_ISSOCK (mode) ? "socket" : "device";
}

/* A file system may claim any time; what does not fit is pinned. */
static int64_t
modified_ns (const struct stat *st)
{
  int64_t ns;

  if (__builtin_mul_overflow ((int64_t) st->st_mtim.tv_sec, 1000000000, &ns) ||
      __builtin_add_overflow (ns, (int64_t) st->st_mtim.tv_nsec, &ns))
    return st->st_mtim.tv_sec < 0 ? INT64_MIN : INT64_MAX;
  return ns;
}

static int32_t
emit_stat (struct coffer_call *call, const char *path, const struct stat *st,
           const char *target, uint64_t moved)
{
  struct coffer_file_stat record = {
    .size = sizeof record,
    .path = path,
    .kind = kind_name (st->st_mode),
    .size_bytes = st->st_size < 0 ? 0 : (uint64_t) st->st_size,
    .mode = st->st_mode & 07777,
    .modified_ns = modified_ns (st),
    .target = target,
    .moved_bytes = moved,
  };

  return coffer_emit_file_stat (call, &record);
}

/* Far beyond a file's end some file systems refuse to read, instead of reading
 * nothing. */
static int
ends_before (const struct stat *st, uint64_t offset, int sys_errno)
{
  return offset >= (uint64_t) st->st_size
         && (sys_errno == EINVAL || sys_errno == EOVERFLOW);
}

int32_t
coffer_files_read (struct coffer_call *call, int root, const char *path,
                   int32_t out, const struct coffer_file_read_opts *opts)
{
  uint64_t offset = OPTION (opts, offset_bytes), moved = 0;
  uint64_t length = OPTION (opts, length_bytes);
  coffer_autoclose int fd = -1;
  struct stat st;

  if (offset > INT64_MAX)
    return coffer_fail (call, COFFER_INVALID, "offset_bytes is out of range");
  fd = coffer_open_regular (root, path, &st);
  if (fd < 0)
    return path_fail (call, errno, path);
  if (offset > 0 && lseek (fd, (off_t) offset, SEEK_SET) < 0) {
    if (errno == EINVAL)        /* beyond what a file of its kind can hold */
      return emit_stat (call, path, &st, NULL, 0);
    return path_fail (call, errno, path);
  }
  if (coffer_copy (fd, out, length, call->deadline_ns, call->cancel_fd,
                   &moved) < 0
      && !ends_before (&st, offset, errno))
    return path_fail (call, errno, path);
  return emit_stat (call, path, &st, NULL, moved);
}

/* The mode of the file that is replaced, unless the caller has named one. */
static mode_t
write_mode (int root, const char *path, uint32_t asked)
{
  coffer_autoclose int fd = -1;
  struct stat st;

  if (asked)
    return asked;
  fd = coffer_open_beneath (root, path, O_PATH, 0);
  if (fd < 0 || fstat (fd, &st) < 0 || !S_ISREG (st.st_mode))
    return 0644;
  return st.st_mode & 0777;
}

/* Fills the new file and looks at what has become of it. */
static int
write_bytes (struct coffer_call *call, struct coffer_new_file *file,
             int32_t in, struct stat *st, uint64_t *moved)
{
  if (coffer_copy (in, file->fd, 0, call->deadline_ns, call->cancel_fd,
                   moved) < 0 || fstat (file->fd, st) < 0)
    return -1;
  if ((uint64_t) st->st_size != *moved) {
    errno = EIO;
    return -1;
  }
  return 0;
}

int32_t
coffer_files_write (struct coffer_call *call, int root, const char *path,
                    int32_t in, const struct coffer_file_write_opts *opts)
{
  uint32_t mode = OPTION (opts, mode);
  int parents = OPTION (opts, parents) != 0;
  int exclusive = OPTION (opts, exclusive) != 0;
  struct coffer_new_file file = {0};
  uint64_t moved = 0;
  struct stat st;

  if (mode & ~0777u)
    return coffer_fail (call, COFFER_INVALID,
                        "mode has bits beyond rwxrwxrwx");
  if (coffer_new_file_begin (&file, root, path,
                             write_mode (root, path, mode), parents) < 0)
    return path_fail (call, errno, path);
  if (write_bytes (call, &file, in, &st, &moved) < 0 ||
      coffer_new_file_commit (&file, 0, exclusive) < 0) {
    coffer_new_file_abort (&file);
    return path_fail (call, errno, path);
  }
  return emit_stat (call, path, &st, NULL, moved);
}

int32_t
coffer_files_stat (struct coffer_call *call, int root, const char *path)
{
  coffer_autoclose int fd = coffer_open_beneath (root, path, O_PATH, 0);
  char target[PATH_LIMIT];
  struct stat st;
  ssize_t n;

  if (fd < 0 || fstat (fd, &st) < 0)
    return path_fail (call, errno, path);
  if (!S_ISLNK (st.st_mode))
    return emit_stat (call, path, &st, NULL, 0);
  n = readlinkat (fd, "", target, sizeof target - 1);
  if (n < 0)
    return path_fail (call, errno, path);
  target[n] = '\0';
  return emit_stat (call, path, &st, target, 0);
}

struct listing {
  struct coffer_call *call;
  int32_t code;                 /* why the walk was ended */
  unsigned seen;
};

static int
list_entry (void *data, const char *path, int dir, const char *name,
            const struct stat *st)
{
  struct listing *listing = data;
  char target[PATH_LIMIT];
  ssize_t n = -1;

  if (++listing->seen % 64 == 0 &&
      path_check (listing->call->deadline_ns, listing->call->cancel_fd) < 0)
    return -1;
  if (path_sweep_one (listing->call, dir, name, st->st_mode))
    return 0;
  if (S_ISLNK (st->st_mode)) {
    n = readlinkat (dir, name, target, sizeof target - 1);
    target[n < 0 ? 0 : n] = '\0';
  }
  listing->code = emit_stat (listing->call, path, st, n < 0 ? NULL : target,
                             0);
  return listing->code == COFFER_OK ? 0 : 1;
}

int32_t
coffer_files_list (struct coffer_call *call, int root, const char *path,
                   const struct coffer_file_list_opts *opts)
{
  struct listing listing = {.call = call, .code = COFFER_OK};
  uint32_t depth = OPTION (opts, depth);
  int r;

  if (depth > WALK_DEPTH_MAX)
    return coffer_fail (call, COFFER_INVALID, "depth is more than 128");
  r = coffer_walk (root, path, depth, list_entry, &listing);
  if (r < 0)
    return path_fail (call, errno, path);
  return r == 0 ? COFFER_OK : listing.code;
}

int32_t
coffer_files_mkdir (struct coffer_call *call, int root, const char *path,
                    const struct coffer_file_mkdir_opts *opts)
{
  if (coffer_mkdir_beneath (root, path, 0755, OPTION (opts, parents) != 0) < 0)
    return path_fail (call, errno, path);
  return COFFER_OK;
}

int32_t
coffer_files_remove (struct coffer_call *call, int root, const char *path,
                     const struct coffer_file_remove_opts *opts)
{
  if (path_remove (root, path, OPTION (opts, recursive) != 0,
                   call->deadline_ns, call->cancel_fd, NULL) < 0)
    return path_fail (call, errno, path);
  return COFFER_OK;
}

/* open_parent of a path that may end in a slash. */
static int
open_named (int root, const char *path, char normal[PATH_LIMIT],
            const char **name)
{
  if (path_normalise (path, normal) < 0)
    return -1;
  if (*normal == '\0') {
    errno = EBUSY;
    return -1;
  }
  return coffer_open_parent (root, normal, 0, name);
}

int32_t
coffer_files_rename (struct coffer_call *call, int root, const char *from,
                     const char *to)
{
  char normal_from[PATH_LIMIT], normal_to[PATH_LIMIT];
  coffer_autoclose int from_dir = -1, to_dir = -1;
  const char *from_name, *to_name;

  from_dir = open_named (root, from, normal_from, &from_name);
  if (from_dir < 0)
    return path_fail (call, errno, from);
  to_dir = open_named (root, to, normal_to, &to_name);
  if (to_dir < 0)
    return path_fail (call, errno, to);
  if (path_is_mounted (from_dir, from_name))
    return path_fail (call, EBUSY, from);
  if (path_is_mounted (to_dir, to_name))
    return path_fail (call, EBUSY, to);
  if (renameat (from_dir, from_name, to_dir, to_name) < 0)
    return path_fail (call, errno, from);
  return COFFER_OK;
}
