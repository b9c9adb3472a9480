/* SPDX-License-Identifier: Apache-2.0 */
/* An archive into an empty folder, strictly.  Every entry's name is taken
 * apart, each folder on its way opened by itself without following a link,
 * and what is not a folder, a regular file or a link inside is refused; so is
 * what is there already.  Owners, access lists and attributes are not taken
 * over, and of the mode only what a reader needs. */

#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <archive.h>
#include <archive_entry.h>

#include <coffer/fd.h>

#include "archive.h"
#include "base/sha256.h"

struct unpacker {
  struct archive *in;
  const struct caps *caps;
  struct report *report;
  SHA2_CTX hash;
  uint64_t entries;
  int64_t end;                  /* of the last entry, in what is unpacked */
  char block[65536];
};

/* One entry: its name in the archive, and taken apart. */
struct item {
  struct archive_entry *entry;
  const char *shown;
  char path[ARCHIVE_PATH_MAX + 1];      /* without leading "./" */
  int depth;
  int dir;                      /* the folder that holds it */
  const char *name;             /* in it */
  mode_t mode;
};

static int
fail_in (struct unpacker *unpacker, const char *entry)
{
  const char *why = archive_error_string (unpacker->in);

  return report_fail (unpacker->report, entry, "%s",
                      why ? why : "it cannot be read");
}

static int
fail_errno (struct unpacker *unpacker, const struct item *item,
            const char *what)
{
  return report_fail (unpacker->report, item->shown, "%s: %s", what,
                      strerror (errno));
}

static int
refuse (struct unpacker *unpacker, const struct item *item, const char *why)
{
  return report_fail (unpacker->report, item->shown, "%s", why);
}

/* ---- names --------------------------------------------------------------- */

/* "a/b" of "./a//b/"; 0: the folder itself.  NULL-free by being a string. */
static int
path_read (struct unpacker *unpacker, const struct item *item,
           const char *from, char *out, int *depth)
{
  size_t used = 0, n;

  *depth = 0;
  if (from[0] == '/')
    return refuse (unpacker, item, "the name is absolute");
  while (*from) {
    n = strcspn (from, "/");
    if (n == 2 && from[0] == '.' && from[1] == '.')
      return refuse (unpacker, item, "the name has a component \"..\"");
    if (n > 255)
      return refuse (unpacker, item, "a component is longer than 255 bytes");
    if (n > 0 && !(n == 1 && from[0] == '.')) {
      if (used + n + 2 > ARCHIVE_PATH_MAX)
        return refuse (unpacker, item, "the name is too long");
      if (++*depth > ARCHIVE_DEPTH_MAX)
        return refuse (unpacker, item, "too many folders deep");
      if (used)
        out[used++] = '/';
      memcpy (out + used, from, n);
      used += n;
    }
    from += n;
    from += *from == '/';
  }
  out[used] = '\0';
  return 0;
}

/* Where other systems see a folder, and what a terminal or a list of lines would
 * make something else of. */
static int
name_is_plain (const char *path)
{
  for (; *path; path++)
    if ((unsigned char) *path < ' ' || *path == 0x7f || *path == '\\')
      return 0;
  return 1;
}

/* What it makes counts, named by an entry or not. */
static int
entry_count (struct unpacker *unpacker, const struct item *item)
{
  if (++unpacker->entries > unpacker->caps->entries)
    return refuse (unpacker, item, "too many entries");
  return 0;
}

/* A folder that no entry has named yet. */
static int
folder_make (struct unpacker *unpacker, const struct item *item, int dir,
             const char *name)
{
  if (mkdirat (dir, name, 0755) == 0)
    return entry_count (unpacker, item);
  return errno == EEXIST ? 0
                         : fail_errno (unpacker, item, "making a folder");
}

/* Opens the folder that holds the last component, making what is missing. */
static int
parent_open (struct unpacker *unpacker, const struct item *item,
             const char *path, int make, const char **name)
{
  coffer_autoclose int dir = fcntl (ARCHIVE_FOLDER_FD, F_DUPFD_CLOEXEC, 0);
  const char *at = path;
  char component[256];
  size_t n;
  int next;

  while (dir >= 0 && at[n = strcspn (at, "/")] == '/') {
    memcpy (component, at, n);
    component[n] = '\0';
    if (make && folder_make (unpacker, item, dir, component) < 0)
      return -1;
    next = openat (dir, component,
                   O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (next < 0 && (errno == ELOOP || errno == ENOTDIR))
      return refuse (unpacker, item, "it lies below what is no folder");
    if (next < 0)
      return fail_errno (unpacker, item, "opening a folder");
    coffer_fd_close (&dir);
    dir = next;
    at += n + 1;
  }
  *name = at;
  return dir < 0 ? fail_errno (unpacker, item, "opening the folder")
                 : coffer_fd_steal (&dir);
}

/* ---- the kinds ----------------------------------------------------------- */

static int
unpack_folder (struct unpacker *unpacker, struct item *item)
{
  coffer_autoclose int fd = -1;

  if (mkdirat (item->dir, item->name, 0755) < 0 && errno != EEXIST)
    return fail_errno (unpacker, item, "making the folder");
  fd = openat (item->dir, item->name,
               O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0 && (errno == ELOOP || errno == ENOTDIR))
    return refuse (unpacker, item, "a folder and something else in one place");
  if (fd < 0 || fchmod (fd, item->mode) < 0)
    return fail_errno (unpacker, item, "the folder");
  return 0;
}

/* Up to the end of the file nothing more is to come: what is left out counts as
 * if it were there, as whoever copies it makes it so. */
static int
hole_check (struct unpacker *unpacker, const struct item *item, int64_t end)
{
  const int64_t hole = archive_entry_size (item->entry) - end;

  if (hole > 0)
    unpacker->report->bytes += (uint64_t) hole;
  if (unpacker->report->bytes > unpacker->caps->bytes)
    return refuse (unpacker, item, "all files together are too large");
  return 0;
}

static int
body_write (struct unpacker *unpacker, struct item *item, int fd)
{
  const void *block;
  size_t size;
  int64_t offset, end = 0;
  int r;

  while ((r = archive_read_data_block (unpacker->in, &block, &size, &offset))
         == ARCHIVE_OK) {
    const char *bytes = block;

    if (offset < end || size > INT64_MAX - (uint64_t) offset
        || (uint64_t) offset + size > unpacker->caps->file_bytes)
      return refuse (unpacker, item, "the file is too large");
    unpacker->report->bytes += (uint64_t) offset + size - (uint64_t) end;
    if (unpacker->report->bytes > unpacker->caps->bytes)
      return refuse (unpacker, item, "all files together are too large");
    /* How the bytes are cut into blocks is chance; where none are is not. */
    if (offset > end)
      sha256_add (&unpacker->hash, &offset, sizeof offset);
    end = offset + (int64_t) size;
    sha256_add (&unpacker->hash, bytes, size);
    while (size > 0) {
      ssize_t n = pwrite (fd, bytes, size, offset);

      if (n < 0 && errno == EINTR)
        continue;
      if (n <= 0)
        return fail_errno (unpacker, item, "writing");
      bytes += n;
      offset += n;
      size -= (size_t) n;
    }
  }
  if (r != ARCHIVE_EOF)
    return fail_in (unpacker, item->shown);
  return hole_check (unpacker, item, end);
}

static int
unpack_file (struct unpacker *unpacker, struct item *item)
{
  const int64_t size = archive_entry_size (item->entry);
  struct timespec times[2] = { { .tv_nsec = UTIME_NOW } };
  coffer_autoclose int fd = -1;

  if (size < 0 || (uint64_t) size > unpacker->caps->file_bytes)
    return refuse (unpacker, item, "the file is too large");
  fd = openat (item->dir, item->name,
               O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0 && errno == EEXIST)
    return refuse (unpacker, item, "it is there twice");
  if (fd < 0)
    return fail_errno (unpacker, item, "making the file");
  if (body_write (unpacker, item, fd) < 0)
    return -1;
  if (ftruncate (fd, size) < 0 || fchmod (fd, item->mode) < 0)
    return fail_errno (unpacker, item, "the file");
  /* Compiled files of interpreters are compared with it. */
  times[1].tv_sec = archive_entry_mtime (item->entry);
  if (times[1].tv_sec < 0)
    times[1].tv_sec = 0;
  futimens (fd, times);
  return 0;
}

/* Up to the root and not above it; what is absolute is of the root inside. */
static int
link_stays_inside (const char *target, int depth)
{
  int level = target[0] == '/' ? 0 : depth - 1;
  size_t n;

  for (; *target; target += n, target += *target == '/') {
    n = strcspn (target, "/");
    if (n == 0 || (n == 1 && target[0] == '.'))
      continue;
    if (n == 2 && target[0] == '.' && target[1] == '.')
      level--;
    else
      level++;
    if (level < 0)
      return 0;
  }
  return 1;
}

static int
unpack_symlink (struct unpacker *unpacker, struct item *item)
{
  const char *target = archive_entry_symlink (item->entry);

  if (!target || !*target || strlen (target) > ARCHIVE_PATH_MAX)
    return refuse (unpacker, item, "a link without a usable target");
  if (!link_stays_inside (target, item->depth))
    return refuse (unpacker, item, "the link leads out of the archive");
  sha256_add (&unpacker->hash, target, strlen (target) + 1);
  if (symlinkat (target, item->dir, item->name) == 0)
    return 0;
  if (errno == EEXIST)
    return refuse (unpacker, item, "it is there twice");
  return fail_errno (unpacker, item, "making the link");
}

/* Landlock of the first ABI (Linux 5.13 to 5.18) has no links from one folder to
 * another: then it is a file of its own, and counted as one. */
static int
link_copy (struct unpacker *unpacker, struct item *item, int dir,
           const char *name, const struct stat *st)
{
  const struct timespec times[2] = { { .tv_nsec = UTIME_NOW }, st->st_mtim };
  coffer_autoclose int from = -1, to = -1;
  char block[16384];
  ssize_t n;

  unpacker->report->bytes += (uint64_t) st->st_size;
  if (unpacker->report->bytes > unpacker->caps->bytes)
    return refuse (unpacker, item, "all files together are too large");
  from = openat (dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  to = openat (item->dir, item->name,
               O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (from < 0 || to < 0)
    return fail_errno (unpacker, item, "copying what is linked");
  while ((n = read (from, block, sizeof block)) > 0)
    if (coffer_write_all (to, block, (size_t) n) < 0)
      return fail_errno (unpacker, item, "writing");
  if (n < 0 || fchmod (to, st->st_mode & 0777) < 0)
    return fail_errno (unpacker, item, "copying what is linked");
  futimens (to, times);
  return 0;
}

static int
unpack_hardlink (struct unpacker *unpacker, struct item *item)
{
  const char *target = archive_entry_hardlink (item->entry), *name;
  char path[ARCHIVE_PATH_MAX + 1];
  coffer_autoclose int dir = -1;
  struct stat st;
  int depth;

  if (path_read (unpacker, item, target, path, &depth) < 0)
    return -1;
  dir = *path ? parent_open (unpacker, item, path, 0, &name) : -1;
  if (dir < 0)
    return refuse (unpacker, item, "a link to what is not there");
  sha256_add (&unpacker->hash, path, strlen (path) + 1);
  if (fstatat (dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0
      || !S_ISREG (st.st_mode))
    return refuse (unpacker, item, "a link to what is no file of the archive");
  if (linkat (dir, name, item->dir, item->name, 0) == 0)
    return 0;
  if (errno == EEXIST)
    return refuse (unpacker, item, "it is there twice");
  if (errno == EXDEV)
    return link_copy (unpacker, item, dir, name, &st);
  return fail_errno (unpacker, item, "making the link");
}

/* ---- one entry ----------------------------------------------------------- */

/* A sandbox has devices of its own: those of a system's /dev are left out. */
static int
unpack_special (struct unpacker *unpacker, struct item *item)
{
  if (strncmp (item->path, "dev/", 4) != 0)
    return refuse (unpacker, item,
                   "neither a folder, a regular file nor a link");
  unpacker->report->left_out++;
  return 0;
}

static int
unpack_kind (struct unpacker *unpacker, struct item *item)
{
  if (unpacker->caps->package
      && (archive_entry_hardlink (item->entry)
          || (archive_entry_filetype (item->entry) != AE_IFREG
              && archive_entry_filetype (item->entry) != AE_IFDIR)))
    return refuse (unpacker, item, "neither a folder nor a regular file");
  if (unpacker->caps->package && archive_entry_sparse_count (item->entry) > 0)
    return refuse (unpacker, item, "a file with holes");
  if (archive_entry_hardlink (item->entry))
    return unpack_hardlink (unpacker, item);
  switch (archive_entry_filetype (item->entry)) {
  case AE_IFREG:
    return unpack_file (unpacker, item);
  case AE_IFDIR:
    return unpack_folder (unpacker, item);
  case AE_IFLNK:
    return unpack_symlink (unpacker, item);
  default:
    return unpack_special (unpacker, item);
  }
}

static void
mode_read (struct unpacker *unpacker, struct item *item)
{
  const mode_t given = archive_entry_mode (item->entry);

  if (archive_entry_filetype (item->entry) == AE_IFREG
      && (given & (S_ISUID | S_ISGID)))
    unpacker->report->stripped++;
  /* The owner's own, so that what is here can be read and removed again. */
  item->mode = given & 0755;
  item->mode |= archive_entry_filetype (item->entry) == AE_IFDIR ? 0700 : 0400;
}

static int
unpack_entry (struct unpacker *unpacker, struct archive_entry *entry)
{
  struct item item = { .entry = entry, .dir = -1,
                       .shown = archive_entry_pathname (entry) };
  char line[64];
  int r;

  if (!item.shown)
    return report_fail (unpacker->report, NULL, "a name cannot be read");
  if (entry_count (unpacker, &item) < 0
      || path_read (unpacker, &item, item.shown, item.path, &item.depth) < 0)
    return -1;
  if (!*item.path && archive_entry_filetype (entry) == AE_IFDIR)
    return 0;                   /* the folder itself */
  if (!*item.path)
    return refuse (unpacker, &item, "the name is empty");
  if (unpacker->caps->package && !name_is_plain (item.path))
    return refuse (unpacker, &item, "the name has a backslash or a control"
                   " character");
  mode_read (unpacker, &item);
  snprintf (line, sizeof line, "%o %o %lld",
            (unsigned) archive_entry_filetype (entry), (unsigned) item.mode,
            (long long) archive_entry_size (entry));
  sha256_add (&unpacker->hash, line, strlen (line) + 1);
  sha256_add (&unpacker->hash, item.path, strlen (item.path) + 1);
  item.dir = parent_open (unpacker, &item, item.path, 1, &item.name);
  if (item.dir < 0)
    return -1;
  r = unpack_kind (unpacker, &item);
  coffer_fd_close (&item.dir);
  if (r == 0)
    unpacker->report->files++;
  return r;
}

/* ---- all of it ----------------------------------------------------------- */

/* What a sandbox lays its own files over must be there to be covered, as plain
 * files: a link there could lead anywhere. */
static int
covers_make (struct unpacker *unpacker)
{
  static const char *const names[]
    = { "passwd", "group", "nsswitch.conf", "hosts", "resolv.conf" };
  struct item item = { .shown = "etc" };
  coffer_autoclose int etc = -1;
  struct stat st;
  size_t i;

  if (mkdirat (ARCHIVE_FOLDER_FD, "etc", 0755) < 0 && errno != EEXIST)
    return fail_errno (unpacker, &item, "making the folder");
  etc = openat (ARCHIVE_FOLDER_FD, "etc",
                O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (etc < 0)
    return refuse (unpacker, &item, "it is no folder");
  for (i = 0; i < sizeof names / sizeof names[0]; i++) {
    coffer_autoclose int fd = -1;

    if (fstatat (etc, names[i], &st, AT_SYMLINK_NOFOLLOW) == 0) {
      if (S_ISREG (st.st_mode))
        continue;
      if (unlinkat (etc, names[i], 0) < 0)
        return fail_errno (unpacker, &item, names[i]);
    }
    fd = openat (etc, names[i], O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
    if (fd < 0)
      return fail_errno (unpacker, &item, names[i]);
  }
  return 0;
}

/* Also ends when nobody waits for the report any more: the archive may come from
 * somebody who never ends. */
static la_ssize_t
read_more (struct archive *in, void *data, const void **block)
{
  struct unpacker *unpacker = data;
  struct pollfd polls[2] = { { STDIN_FILENO, POLLIN, 0 },
                             { ARCHIVE_REPORT_FD, 0, 0 } };
  ssize_t n;

  while (poll (polls, 2, -1) < 0)
    if (errno != EINTR)
      break;
  if (polls[1].revents) {
    archive_set_error (in, ECANCELED, "nobody waits for it any more");
    return -1;
  }
  do
    n = read (STDIN_FILENO, unpacker->block, sizeof unpacker->block);
  while (n < 0 && errno == EINTR);
  if (n < 0)
    archive_set_error (in, errno, "%s", strerror (errno));
  *block = unpacker->block;
  return n;
}

static int
archive_open (struct archive *in, struct unpacker *unpacker)
{
  /* Only what needs no other program. */
  return archive_read_support_filter_gzip (in) != ARCHIVE_OK
             || archive_read_support_filter_bzip2 (in) != ARCHIVE_OK
             || archive_read_support_filter_xz (in) != ARCHIVE_OK
             || archive_read_support_filter_zstd (in) != ARCHIVE_OK
             || archive_read_open (in, unpacker, NULL, read_more, NULL)
                  != ARCHIVE_OK
           ? fail_in (unpacker, NULL) : 0;
}

static int
archive_begin (struct unpacker *unpacker)
{
  if (archive_read_support_format_tar (unpacker->in) != ARCHIVE_OK)
    return fail_in (unpacker, NULL);
  return archive_open (unpacker->in, unpacker);
}

/* Two blocks of zeros end it, and more may fill the record of a tape. */
#define END_LEAST 1024
#define END_MOST (1024 * 1024)

static int
zeros_check (struct unpacker *unpacker)
{
  static const char zeros[4096];
  const void *block;
  int64_t offset, end = 0;
  size_t size;
  int r;

  while ((r = archive_read_data_block (unpacker->in, &block, &size, &offset))
         == ARCHIVE_OK) {
    const char *bytes = block;
    size_t at, n;

    end = offset + (int64_t) size;
    at = offset < unpacker->end ? (size_t) (unpacker->end - offset) : 0;
    for (; at < size; at += n) {
      n = size - at < sizeof zeros ? size - at : sizeof zeros;
      if (memcmp (bytes + at, zeros, n) != 0)
        return report_fail (unpacker->report, NULL,
                            "there is something behind its end");
    }
    if (end > unpacker->end + END_MOST)
      return report_fail (unpacker->report, NULL, "its end has no end");
  }
  if (r != ARCHIVE_EOF)
    return fail_in (unpacker, NULL);
  if (end < unpacker->end + END_LEAST)
    return report_fail (unpacker->report, NULL,
                        "the blocks that end it are missing: it was cut off");
  return 0;
}

/* Another archive behind the first, or anything else, is one that two readers
 * could take for two things: it is looked at a second time, as bytes. */
static int
end_check (struct unpacker *unpacker)
{
  struct archive_entry *entry;
  struct stat st;

  archive_read_free (unpacker->in);
  unpacker->in = archive_read_new ();
  if (unpacker->in == NULL)
    return report_fail (unpacker->report, NULL, "out of memory");
  if (fstat (STDIN_FILENO, &st) < 0 || !S_ISREG (st.st_mode)
      || lseek (STDIN_FILENO, 0, SEEK_SET) < 0)
    return report_fail (unpacker->report, NULL, "it is no regular file");
  if (archive_read_support_format_raw (unpacker->in) != ARCHIVE_OK)
    return fail_in (unpacker, NULL);
  if (archive_open (unpacker->in, unpacker) < 0)
    return -1;
  if (archive_read_next_header (unpacker->in, &entry) != ARCHIVE_OK)
    return fail_in (unpacker, NULL);
  if (zeros_check (unpacker) < 0)
    return -1;
  if (archive_filter_bytes (unpacker->in, -1) != st.st_size)
    return report_fail (unpacker->report, NULL,
                        "there is something behind its end");
  return 0;
}

int
unpack (const struct caps *caps, struct report *report)
{
  struct unpacker *unpacker = calloc (1, sizeof *unpacker);
  struct archive_entry *entry;
  int r;

  if (unpacker)
    unpacker->in = archive_read_new ();
  if (!unpacker || !unpacker->in) {
    free (unpacker);
    return report_fail (report, NULL, "out of memory");
  }
  unpacker->caps = caps;
  unpacker->report = report;
  sha256_begin (&unpacker->hash);
  r = archive_begin (unpacker);
  while (r == 0) {
    int next = archive_read_next_header (unpacker->in, &entry);

    if (next == ARCHIVE_EOF)
      break;
    r = next == ARCHIVE_OK ? unpack_entry (unpacker, entry)
                           : fail_in (unpacker, NULL);
    unpacker->end = (archive_filter_bytes (unpacker->in, 0) + 511) / 512 * 512;
  }
  if (r == 0 && unpacker->entries == 0)
    r = report_fail (report, NULL, "there is nothing in it");
  if (r == 0)
    r = caps->package ? end_check (unpacker) : covers_make (unpacker);
  if (r == 0 && syncfs (ARCHIVE_FOLDER_FD) < 0)
    r = report_fail (report, NULL, "sync: %s", strerror (errno));
  sha256_end (&unpacker->hash, report->digest);
  archive_read_free (unpacker->in);
  free (unpacker);
  return r;
}
