/* SPDX-License-Identifier: Apache-2.0 */
/* A folder as a tar stream, sorted by name: folders, regular files and links.
 * Nothing is followed, no mount is crossed; devices, sockets and fifos are
 * left to the other end to judge. */

#include <config.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <archive.h>
#include <archive_entry.h>

#include <coffer/fd.h>

#include "archive.h"
#include "base/cleanup.h"
#include "base/text.h"

struct packer {
  struct archive *out;
  struct archive_entry_linkresolver *links;
  struct report *report;
  dev_t device;
  int package;
  int64_t time;
  char buffer[65536];
};

static int pack_folder (struct packer *packer, int dir, const char *path,
                        int depth);

static int
fail_out (struct packer *packer, const char *path)
{
  const char *why = archive_error_string (packer->out);

  return report_fail (packer->report, path, "%s", why ? why : "not written");
}

static int
pack_body (struct packer *packer, int fd, const char *path, int64_t size)
{
  while (size > 0) {
    size_t want = size < (int64_t) sizeof packer->buffer
                    ? (size_t) size : sizeof packer->buffer;
    ssize_t n = coffer_read_all (fd, packer->buffer, want);

    if (n <= 0)
      return report_fail (packer->report, path, "%s",
                          n < 0 ? strerror (errno) : "it became shorter");
    if (archive_write_data (packer->out, packer->buffer, (size_t) n) != n)
      return fail_out (packer, path);
    size -= n;
  }
  return 0;
}

static int
entry_write (struct packer *packer, struct archive_entry *entry, int fd,
             const char *path)
{
  if (archive_write_header (packer->out, entry) != ARCHIVE_OK)
    return fail_out (packer, path);
  packer->report->files++;
  return fd < 0 ? 0 : pack_body (packer, fd, path,
                                 archive_entry_size (entry));
}

/* Nothing of who packs, when and where: the same bytes each time. */
static void
stat_plain (const struct packer *packer, struct stat *st)
{
  const mode_t mode = S_ISDIR (st->st_mode) || (st->st_mode & S_IXUSR)
                        ? 0755 : 0644;
  const struct stat plain = {
    .st_mode = (st->st_mode & S_IFMT) | mode, .st_size = st->st_size,
    .st_nlink = 1, .st_mtim.tv_sec = packer->time, .st_dev = st->st_dev
  };

  *st = plain;
}

/* `dir` and `name` are where it lies, `path` what it is called. */
static int
pack_one (struct packer *packer, int dir, const char *name, const char *path,
          int depth)
{
  struct archive_entry *entry = archive_entry_new (), *spare = NULL;
  char target[ARCHIVE_PATH_MAX + 1];
  coffer_autoclose int fd = -1;
  struct stat st;
  ssize_t n;
  int r = -1;

  if (!entry)
    return report_fail (packer->report, path, "out of memory");
  if (fstatat (dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
    report_fail (packer->report, path, "%s", strerror (errno));
    goto end;
  }
  if (S_ISREG (st.st_mode) || S_ISDIR (st.st_mode)) {
    fd = openat (dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || fstat (fd, &st) < 0) {
      report_fail (packer->report, path, "%s", strerror (errno));
      goto end;
    }
  }
  if (packer->package)
    stat_plain (packer, &st);
  archive_entry_copy_stat (entry, &st);
  archive_entry_copy_pathname (entry, path);
  if (S_ISLNK (st.st_mode)) {
    n = readlinkat (dir, name, target, sizeof target - 1);
    if (n < 0) {
      report_fail (packer->report, path, "%s", strerror (errno));
      goto end;
    }
    target[n] = '\0';
    archive_entry_copy_symlink (entry, target);
  }
  if (!S_ISDIR (st.st_mode))
    archive_entry_linkify (packer->links, &entry, &spare);
  if (!S_ISREG (st.st_mode))
    archive_entry_set_size (entry, 0);
  r = entry_write (packer, entry,
                   S_ISREG (st.st_mode) && !archive_entry_hardlink (entry)
                     ? fd : -1, path);
  /* Another file system is not part of it: its folder is. */
  if (r == 0 && S_ISDIR (st.st_mode) && st.st_dev == packer->device)
    r = pack_folder (packer, fd, path, depth + 1);
end:
  archive_entry_free (entry);
  archive_entry_free (spare);
  return r;
}

static int
by_name (const struct dirent **a, const struct dirent **b)
{
  return strcmp ((*a)->d_name, (*b)->d_name);
}

static int
not_dots (const struct dirent *entry)
{
  return strcmp (entry->d_name, ".") != 0 && strcmp (entry->d_name, "..") != 0;
}

static int
pack_folder (struct packer *packer, int dir, const char *path, int depth)
{
  struct dirent **names = NULL;
  int n, i, r = 0;

  if (depth > ARCHIVE_DEPTH_MAX)
    return report_fail (packer->report, path, "more than %d folders deep",
                        ARCHIVE_DEPTH_MAX);
  n = scandirat (dir, ".", &names, not_dots, by_name);
  if (n < 0)
    return report_fail (packer->report, path, "%s", strerror (errno));
  for (i = 0; i < n; i++) {
    auto_free char *below = text_printf ("%s%s%s", path, *path ? "/" : "",
                                         names[i]->d_name);

    if (r == 0)
      r = below ? pack_one (packer, dir, names[i]->d_name, below, depth)
                : report_fail (packer->report, path, "out of memory");
    free (names[i]);
  }
  free (names);
  return r;
}

/* A stream of tar, or a file that people get. */
static int
out_begin (struct packer *packer)
{
  struct archive *out = packer->out;

  if (!packer->package)
    return archive_write_set_format_pax (out) == ARCHIVE_OK
             && archive_write_set_options (out, "hdrcharset=BINARY")
                  == ARCHIVE_OK
             && archive_write_open_fd (out, STDOUT_FILENO) == ARCHIVE_OK;
  return archive_write_set_format_ustar (out) == ARCHIVE_OK
         && archive_write_add_filter_gzip (out) == ARCHIVE_OK
         && archive_write_set_bytes_in_last_block (out, 1) == ARCHIVE_OK
         && archive_write_set_options (out, "gzip:compression-level=9,"
                                       "gzip:!timestamp") == ARCHIVE_OK
         && archive_write_open_fd (out, STDOUT_FILENO) == ARCHIVE_OK;
}

int
pack (int package, int64_t time, struct report *report)
{
  struct packer *packer = calloc (1, sizeof *packer);
  struct stat st;
  int r = -1;

  if (!packer)
    return report_fail (report, NULL, "out of memory");
  packer->report = report;
  packer->package = package;
  packer->time = time;
  packer->out = archive_write_new ();
  packer->links = archive_entry_linkresolver_new ();
  if (!packer->out || !packer->links || fstat (ARCHIVE_FOLDER_FD, &st) < 0)
    report_fail (report, NULL, "out of memory");
  else if (!out_begin (packer))
    fail_out (packer, NULL);
  else {
    packer->device = st.st_dev;
    archive_entry_linkresolver_set_strategy (
      packer->links, ARCHIVE_FORMAT_TAR_PAX_INTERCHANGE);
    r = pack_folder (packer, ARCHIVE_FOLDER_FD, "", 0);
    if (r == 0 && archive_write_close (packer->out) != ARCHIVE_OK)
      r = fail_out (packer, NULL);
  }
  archive_entry_linkresolver_free (packer->links);
  archive_write_free (packer->out);
  free (packer);
  return r;
}
