/* SPDX-License-Identifier: Apache-2.0 */
/* Mutants of files, archives, ports, metrics and snapshots. */

#define _GNU_SOURCE

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <coffer/buffer.h>
#include <coffer/fd.h>
#include <coffer/files.h>
#include <coffer/path.h>

#include "mutant.h"

/* ---- names --------------------------------------------------------------- */

static const char *
last_of (const char *path)
{
  const char *slash = strrchr (path, '/');

  return slash ? slash + 1 : path;
}

/* `from` in the last part of a path becomes `to`. */
static char *
name_replaced (const char *path, const char *from, const char *to)
{
  const char *at = strstr (last_of (path), from);
  char *out = NULL;

  if (!at)
    return strdup (path);
  if (asprintf (&out, "%.*s%s%s", (int) (at - path), path, to,
                at + strlen (from)) < 0)
    abort ();
  return out;
}

/* A path as a careless provider takes it; freed by the caller. */
static char *
name_of (const char *path)
{
  const char *last = last_of (path);

  if (fault ("names-formatted"))
    return name_replaced (path, "%s", "(null)");
  if (fault ("names-composed"))
    return name_replaced (path, "e\xcc\x81", "\xc3\xa9");
  if (fault ("names-printable"))
    return name_replaced (path, "\x7f", "_");
  if (fault ("names-shortened") && strlen (last) > 255) {
    char *cut = strdup (path);

    cut[last - path + 255] = '\0';
    return cut;
  }
  return strdup (path);
}

/* A name of one byte too many, and no other, is refused in a way of its own. */
static int32_t
refuse_long (struct coffer_call *call, const char *path)
{
  static const char *const why = "the name is too long";

  if (strlen (last_of (path)) != 256)
    return COFFER_OK;
  if (fault ("code-unknown"))
    return coffer_fail (call, 99, why);
  if (fault ("internal-told"))
    return coffer_fail (call, COFFER_INTERNAL, why);
  if (fault ("retry-odd"))
    return coffer_fail_with (call, COFFER_INVALID, 7, why, NULL);
  if (fault ("retry-in-vain"))
    return coffer_fail_with (call, COFFER_INVALID, COFFER_RETRY_YES, why,
                             NULL);
  return COFFER_OK;
}

/* ---- reading ------------------------------------------------------------- */

/* Opens it the way nobody should. */
static int
open_carelessly (int root, const char *path)
{
  struct stat st;
  int fd = -1;

  if (fault ("read-follows-dots") && strstr (path, ".."))
    fd = openat (root, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fault ("read-follows-links") && fstatat (root, path, &st,
                                               AT_SYMLINK_NOFOLLOW) == 0
      && S_ISLNK (st.st_mode)) {
    char target[PATH_MAX] = "";

    if (readlinkat (root, path, target, sizeof target - 1) > 0
        && target[0] == '/')
      fd = openat (root, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  }
  return fd;
}

/* Looks first and opens later. */
static int
open_after_look (int root, const char *path)
{
  coffer_autoclose int seen = coffer_open_beneath (root, path, O_PATH, 0);
  char *folder = NULL;
  struct stat st;

  if (!fault ("read-looks-first") || seen < 0 || !strchr (path, '/'))
    return -1;
  folder = strndup (path, strcspn (path, "/"));
  /* The worst of moments. */
  for (int i = 0; folder && i < 200; i++, usleep (100))
    if (fstatat (root, folder, &st, AT_SYMLINK_NOFOLLOW) == 0
        && S_ISLNK (st.st_mode))
      break;
  free (folder);
  return openat (root, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

static int32_t
give (struct coffer_call *call, const char *path, int fd, int32_t out)
{
  struct coffer_file_stat record = {.size = sizeof record, .path = path,
                                    .kind = "file"};

  coffer_copy (fd, out, 0, call->deadline_ns, call->cancel_fd,
               &record.moved_bytes);
  close (fd);
  return coffer_emit_file_stat (call, &record);
}

static int32_t
read_emit (struct wrapped *wrapped, uint32_t record, const void *data)
{
  struct coffer_file_stat stat = *(const struct coffer_file_stat *) data;

  if (fault ("read-count-wrong") && stat.moved_bytes > 0)
    stat.moved_bytes--;
  return pass_on (wrapped, record, &stat);
}

static int32_t
read_plainly (struct coffer_call *call, void *self, const char *sandbox,
              const char *path, int32_t out,
              const struct coffer_file_read_opts *opts)
{
  struct coffer_file_read_opts own = {.size = sizeof own};
  struct wrapped wrapped;

  if (opts)
    own = *opts;
  if (fault ("range-ignored"))
    own.offset_bytes = own.length_bytes = 0;
  if (fault ("read-cut") && !own.length_bytes)
    own.length_bytes = 16 << 20;
  wrap (&wrapped, call, read_emit);
  if (fault ("read-deaf"))
    wrapped.call.cancel_fd = -1;
  if (fault ("read-endless"))
    wrap_endless (&wrapped);
  return reference_file_read (&wrapped.call, self, sandbox, path, out, &own);
}

int32_t
broken_file_read (struct coffer_call *call, void *self, const char *sandbox,
                  const char *path, int32_t out,
                  const struct coffer_file_read_opts *opts)
{
  const struct coffer_file_stat unread = {.size = sizeof unread, .path = path,
                                          .kind = "file"};
  auto_place struct place place = PLACE (".", NULL);
  char *name = name_of (path);
  int32_t code = place_find (call, self, sandbox, &place);
  int fd = -1;

  if (code == COFFER_OK) {
    fd = open_carelessly (place.root, name);
    if (fd < 0)
      fd = open_after_look (place.root, name);
    code = fd >= 0 ? give (call, name, fd, out) :
      read_plainly (call, self, sandbox, name, out, opts);
  }
  free (name);
  if (code == COFFER_DENIED && fault ("denied-hidden"))
    return coffer_fail (call, COFFER_NOT_FOUND, "there is no such file");
  if (code == COFFER_IO && fault ("unread-done"))
    return coffer_emit_file_stat (call, &unread);
  return code;
}

/* ---- writing ------------------------------------------------------------- */

/* Over the file that is there, a piece at a time. */
static int32_t
write_in_place (struct coffer_call *call, int root, const char *path,
                int32_t in)
{
  struct coffer_file_stat record = {.size = sizeof record, .path = path,
                                    .kind = "file"};
  char *bytes;
  size_t size;
  int fd;

  if (coffer_read_whole (in, 1 << 24, &bytes, &size) < 0)
    return coffer_fail_errno (call, errno, "the input");
  fd = openat (root, path, O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOFOLLOW);
  for (size_t at = 0; fd >= 0 && at < size; at += 60000) {
    coffer_write_all (fd, bytes + at, size - at < 60000 ? size - at : 60000);
    usleep (2000);
  }
  free (bytes);
  if (fd < 0)
    return coffer_fail_errno (call, errno, "the file");
  close (fd);
  record.size_bytes = record.moved_bytes = size;
  return coffer_emit_file_stat (call, &record);
}

static int32_t
write_emit (struct wrapped *wrapped, uint32_t record, const void *data)
{
  struct coffer_file_stat stat = *(const struct coffer_file_stat *) data;

  if (fault ("write-count-wrong") && stat.moved_bytes > 100000)
    stat.moved_bytes--;
  return pass_on (wrapped, record, &stat);
}

static int
is_large_file (int root, const char *path)
{
  struct stat st;

  return fstatat (root, path, &st, AT_SYMLINK_NOFOLLOW) == 0
         && S_ISREG (st.st_mode) && st.st_size > 100000;
}

/* Before any command has run. */
static int
is_untouched (const char *sandbox)
{
  const struct memory *memory = memory_of (sandbox);
  const int untouched = memory->execs == 0;

  memory_done ();
  return untouched;
}

static int
is_silent (int32_t in)
{
  return coffer_wait_fd (in, POLLIN, coffer_now_ns () + 150000000, -1) != 1;
}

/* At its end already. */
static int
is_empty (int32_t in)
{
  int bytes = 0;

  return coffer_wait_fd (in, POLLIN, coffer_now_ns () + 500000000, -1) == 1
         && ioctl (in, FIONREAD, &bytes) == 0 && bytes == 0;
}

static int32_t
write_plainly (struct coffer_call *call, void *self, const char *sandbox,
               const char *path, int32_t in,
               const struct coffer_file_write_opts *opts)
{
  struct coffer_file_write_opts own = {.size = sizeof own};
  struct wrapped wrapped;

  if (opts)
    own = *opts;
  if (fault ("mode-ignored"))
    own.mode = 0644;
  if (fault ("exclusive-ignored"))
    own.exclusive = 0;
  if (fault ("parents-always") && !strstr (path, ".."))
    own.parents = 1;
  wrap (&wrapped, call, write_emit);
  if (fault ("write-deaf") && is_silent (in))
    wrapped.call.cancel_fd = -1;
  if (fault ("write-endless"))
    wrap_endless (&wrapped);
  return reference_file_write (&wrapped.call, self, sandbox, path, in, &own);
}

int32_t
broken_file_write (struct coffer_call *call, void *self, const char *sandbox,
                   const char *path, int32_t in,
                   const struct coffer_file_write_opts *opts)
{
  auto_place struct place place = PLACE (".", NULL);
  char *name = name_of (path);
  int32_t code = place_find (call, self, sandbox, &place);

  if (code == COFFER_OK)
    code = refuse_long (call, name);
  if (code != COFFER_OK)
    ;
  else if (fault ("write-empty-refused") && is_untouched (sandbox)
           && is_empty (in))
    code = coffer_fail (call, COFFER_INVALID, "there are no bytes");
  else if (fault ("write-in-place") && is_large_file (place.root, name))
    code = write_in_place (call, place.root, name, in);
  else
    code = write_plainly (call, self, sandbox, name, in, opts);
  if (code == COFFER_CANCELLED && fault ("write-truncates"))
    close (openat (place.root, name, O_WRONLY | O_TRUNC | O_CLOEXEC
                                     | O_NOFOLLOW));
  free (name);
  return code;
}

/* ---- looking ------------------------------------------------------------- */

int32_t
broken_file_stat (struct coffer_call *call, void *self, const char *sandbox,
                  const char *path, const struct coffer_file_stat_opts *opts)
{
  auto_place struct place place = PLACE (".", NULL);
  struct stat st, target;

  if (fault ("stat-follows") && place_find (call, self, sandbox, &place) == 0
      && fstatat (place.root, path, &st, AT_SYMLINK_NOFOLLOW) == 0
      && S_ISLNK (st.st_mode) && fstatat (place.root, path, &target, 0) < 0)
    return coffer_fail_errno (call, errno, "the file");
  return reference_file_stat (call, self, sandbox, path, opts);
}

static int32_t
list_emit (struct wrapped *wrapped, uint32_t record, const void *data)
{
  const struct coffer_file_stat *stat = data;

  if (fault ("list-hides-dots") && stat->path[0] == '.'
      && strcmp (stat->kind, "directory") == 0)
    return COFFER_OK;
  if (fault ("list-stops") && wrapped->records > 400)
    return COFFER_OK;
  return pass_on (wrapped, record, data);
}

int32_t
broken_file_list (struct coffer_call *call, void *self, const char *sandbox,
                  const char *path, const struct coffer_file_list_opts *opts)
{
  struct wrapped wrapped;

  return reference_file_list (wrap (&wrapped, call, list_emit), self, sandbox,
                              path, fault ("list-shallow") ? NULL : opts);
}

static int32_t
quiet_emit (struct wrapped *wrapped, uint32_t record, const void *data)
{
  (void) wrapped, (void) record, (void) data;
  return COFFER_OK;
}

/* Who was deaf hears again once something has happened. */
static int32_t
heard_emit (struct wrapped *wrapped, uint32_t record, const void *data)
{
  wrapped->call.cancel_fd = wrapped->real->cancel_fd;
  return pass_on (wrapped, record, data);
}

int32_t
broken_file_watch (struct coffer_call *call, void *self, const char *sandbox,
                   const char *path, const struct coffer_file_watch_opts *opts)
{
  struct wrapped wrapped;

  wrap (&wrapped, call, fault ("watch-silent") ? quiet_emit : heard_emit);
  if (fault ("watch-deaf"))
    wrapped.call.cancel_fd = -1;
  if (fault ("watch-endless"))
    wrap_endless (&wrapped);
  return reference_file_watch (&wrapped.call, self, sandbox, path, opts);
}

/* ---- changing ------------------------------------------------------------ */

int32_t
broken_file_mkdir (struct coffer_call *call, void *self, const char *sandbox,
                   const char *path, const struct coffer_file_mkdir_opts *opts)
{
  struct coffer_file_mkdir_opts own = {.size = sizeof own, .parents = 1};
  char *name = name_of (path);
  int32_t code = reference_file_mkdir (
    call, self, sandbox, name,
    fault ("mkdir-parents-always") && strchr (path, '/') ? &own : opts);

  free (name);
  return code;
}

/* Empties what a link below leads to, as long as that is in the workspace. */
static int
empty_target (void *data, const char *path, int dir, const char *name,
              const struct stat *st)
{
  char target[PATH_MAX], *real = NULL, *base = data;
  struct dirent *entry;
  DIR *folder = NULL;
  ssize_t n;

  (void) path;
  if (!S_ISLNK (st->st_mode))
    return 0;
  n = readlinkat (dir, name, target, sizeof target - 1);
  target[n < 0 ? 0 : n] = '\0';
  if (target[0] == '/')
    real = realpath (target, NULL);
  if (real && strncmp (real, base, strlen (base)) == 0)
    folder = opendir (real);
  while (folder && (entry = readdir (folder)))
    unlinkat (dirfd (folder), entry->d_name, 0);
  if (folder)
    closedir (folder);
  free (real);
  return 0;
}

static void
remove_targets (struct coffer_call *call, void *self, const char *sandbox,
                const char *path)
{
  auto_place struct place place = PLACE (".", NULL);
  char *base;

  if (place_find (call, self, sandbox, &place) != COFFER_OK)
    return;
  base = coffer_fd_path (place.root);
  if (base)
    coffer_walk (place.root, path, 100, empty_target, base);
  free (base);
}

static int
is_full (struct coffer_call *call, void *self, const char *sandbox,
         const char *path)
{
  auto_place struct place place = PLACE (".", NULL);
  coffer_autoclose int folder = -1;
  struct stat st;

  if (place_find (call, self, sandbox, &place) != COFFER_OK)
    return 0;
  folder = coffer_open_beneath (place.root, path, O_PATH, 0);
  return folder >= 0 && fstat (folder, &st) == 0 && S_ISDIR (st.st_mode);
}

int32_t
broken_file_remove (struct coffer_call *call, void *self, const char *sandbox,
                    const char *path,
                    const struct coffer_file_remove_opts *opts)
{
  const struct coffer_file_remove_opts all = {.size = sizeof all,
                                              .recursive = 1};
  char *name = name_of (path);
  int32_t code;

  if (fault ("remove-follows") && OPTION (opts, recursive))
    remove_targets (call, self, sandbox, name);
  if (fault ("remove-always-all") && !is_untouched (sandbox)
      && is_full (call, self, sandbox, name))
    opts = &all;
  code = reference_file_remove (call, self, sandbox, name, opts);
  free (name);
  if (code == COFFER_BUSY && fault ("busy-other"))
    return coffer_fail (call, COFFER_CONFLICT, "the folder is not empty");
  return code;
}

int32_t
broken_file_rename (struct coffer_call *call, void *self, const char *sandbox,
                    const char *from, const char *to,
                    const struct coffer_file_rename_opts *opts)
{
  auto_place struct place place = PLACE (from, to);

  if (fault ("rename-never-replaces")
      && place_find (call, self, sandbox, &place) == COFFER_OK
      && faccessat (place.root, place.other, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
    return coffer_fail (call, COFFER_EXISTS, "there is one of that name");
  return reference_file_rename (call, self, sandbox, from, to, opts);
}
