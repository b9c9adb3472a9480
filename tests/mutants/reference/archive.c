/* SPDX-License-Identifier: Apache-2.0 */
/* Trees as archives.  Both ways go through a file in the sandbox's folder: what
 * is exported is whole before its first byte is sent, and what is imported is
 * whole before its first byte is looked at. */

#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <coffer/buffer.h>
#include <coffer/fd.h>
#include <coffer/files.h>
#include <coffer/path.h>

#include "archive.h"

/* A file that has no name any more. */
static int
scratch_file (int folder)
{
  static const char name[] = ".archive";
  int fd, tries = 100;

  do
    fd = openat (folder, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  while (fd < 0 && errno == EEXIST && --tries > 0
         && usleep (1000) == 0);
  if (fd >= 0)
    unlinkat (folder, name, 0);
  return fd;
}

/* -- writing ---- */

struct writer {
  struct coffer_call *call;
  int root;                     /* the folder that is exported */
  int file;
  int skipped;                  /* sockets and devices */
};

static int
write_header (struct writer *writer, const char *name, char type,
              const struct stat *st, uint64_t size, const char *link)
{
  struct tar_header header = {0};

  memcpy (header.name, name, strnlen (name, sizeof header.name));
  snprintf (header.mode, sizeof header.mode, "%07o", st->st_mode & 0777u);
  memcpy (header.uid, "0000000", 8);
  memcpy (header.gid, "0000000", 8);
  snprintf (header.size, sizeof header.size, "%011llo",
            (unsigned long long) size);
  snprintf (header.mtime, sizeof header.mtime, "%011llo",
            st->st_mtim.tv_sec < 0 ? 0ULL :
            (unsigned long long) st->st_mtim.tv_sec & 077777777777ULL);
  header.type = type;
  memcpy (header.link, link, strnlen (link, sizeof header.link));
  memcpy (header.magic, "ustar", 6);
  memcpy (header.version, "00", 2);
  snprintf (header.checksum, sizeof header.checksum, "%06o",
            tar_checksum (&header));
  header.checksum[7] = ' ';
  return coffer_write_all (writer->file, &header, sizeof header) < 0 ? -1 : 0;
}

static int
write_padding (struct writer *writer, uint64_t size)
{
  static const char zeros[TAR_BLOCK];
  size_t rest = (size_t) (size % TAR_BLOCK);

  return rest == 0
         || coffer_write_all (writer->file, zeros, TAR_BLOCK - rest) >= 0 ?
    0 : -1;
}

/* "27 path=…\n": the length counts its own digits. */
static void
add_pax (struct coffer_buffer *pax, const char *key, const char *value)
{
  size_t rest = strlen (key) + strlen (value) + 3, length = rest + 1;

  while (length != rest + (size_t) snprintf (NULL, 0, "%zu", length))
    length = rest + (size_t) snprintf (NULL, 0, "%zu", length);
  coffer_buffer_printf (pax, "%zu %s=%s\n", length, key, value);
}

/* A header of its own for what does not fit into the one that follows. */
static int
write_pax (struct writer *writer, const char *name, const char *link,
           const struct stat *st)
{
  coffer_autobuffer struct coffer_buffer pax = {0};

  if (strlen (name) > sizeof ((struct tar_header *) 0)->name)
    add_pax (&pax, "path", name);
  if (strlen (link) > sizeof ((struct tar_header *) 0)->link)
    add_pax (&pax, "linkpath", link);
  if (pax.failed) {
    errno = ENOMEM;
    return -1;
  }
  if (pax.size == 0)
    return 0;
  if (write_header (writer, "pax", 'x', st, pax.size, "") < 0
      || coffer_write_all (writer->file, pax.data, pax.size) < 0)
    return -1;
  return write_padding (writer, pax.size);
}

/* A file that shrinks or grows meanwhile makes the export fail, not lie. */
static int
write_bytes (struct writer *writer, const char *path, uint64_t size)
{
  coffer_autoclose int fd = coffer_open_regular (writer->root, path, NULL);
  uint64_t copied = 0;

  if (fd < 0)
    return -1;
  if (size > 0
      && coffer_copy (fd, writer->file, size, writer->call->deadline_ns,
                      writer->call->cancel_fd, &copied) < 0)
    return -1;
  if (copied != size) {
    errno = EBUSY;
    return -1;
  }
  return write_padding (writer, size);
}

static int
write_entry (void *data, const char *path, int dir, const char *name,
             const struct stat *st)
{
  struct writer *writer = data;
  char full[PATH_MAX + 1], link[PATH_MAX] = "";
  uint64_t size = S_ISREG (st->st_mode) ? (uint64_t) st->st_size : 0;
  char type = S_ISREG (st->st_mode) ? '0' : S_ISDIR (st->st_mode) ? '5' : '2';
  ssize_t n;

  if (!S_ISREG (st->st_mode) && !S_ISDIR (st->st_mode)
      && !S_ISLNK (st->st_mode)) {
    writer->skipped++;
    return 0;
  }
  if (type == '2') {
    n = readlinkat (dir, name, link, sizeof link - 1);
    if (n < 0)
      return -1;
    link[n] = '\0';
  }
  snprintf (full, sizeof full, type == '5' ? "%s/" : "%s", path);
  if (write_pax (writer, full, link, st) < 0
      || write_header (writer, full, type, st, size, link) < 0)
    return -1;
  return type == '0' ? write_bytes (writer, path, size) : 0;
}

static int
write_archive (struct writer *writer)
{
  static const char zeros[2 * TAR_BLOCK];

  if (coffer_walk (writer->root, "/", TAR_DEPTH_MAX, write_entry, writer) < 0
      || coffer_write_all (writer->file, zeros, sizeof zeros) < 0)
    return -1;
  return lseek (writer->file, 0, SEEK_SET) < 0 ? -1 : 0;
}

int32_t
reference_archive_export (struct coffer_call *call, void *self,
                          const char *sandbox, const char *path, int32_t out,
                          const struct coffer_archive_export_opts *opts)
{
  auto_place struct place place = PLACE (path, NULL);
  coffer_autoclose int root = -1, file = -1;
  struct writer writer = {.call = call};
  uint64_t copied;
  int32_t code = place_find (call, self, sandbox, &place);

  (void) opts;
  if (code != COFFER_OK)
    return code;
  writer.root = root = coffer_open_beneath (place.root, place.path,
                                            O_RDONLY | O_DIRECTORY, 0);
  if (root < 0)
    return coffer_fail_errno (call, errno, "the folder");
  writer.file = file = scratch_file (place.folder);
  if (file < 0 || write_archive (&writer) < 0
      || coffer_copy (file, out, 0, call->deadline_ns, call->cancel_fd,
                      &copied) < 0)
    return coffer_fail_errno (call, errno, "the archive");
  if (writer.skipped > 0)
    coffer_log (call, COFFER_LOG_WARNING, "sockets, devices and pipes are not "
                "in the archive");
  return COFFER_OK;
}

/* -- reading ---- */

/* Where it is unpacked: beside the workspace, out of the commands' sight. */
static int
make_stage (int folder, char name[32])
{
  static _Atomic unsigned number;
  int tries = 100;

  do {
    snprintf (name, 32, ".import-%d-%u", (int) getpid (), ++number);
    if (mkdirat (folder, name, 0700) == 0)
      return openat (folder, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  } while (errno == EEXIST && --tries > 0);
  return -1;
}

static int32_t
fail_import (struct coffer_call *call, const char *why)
{
  return why ? coffer_fail (call, COFFER_INVALID, why) :
    coffer_fail_errno (call, errno, "the archive");
}

/* One byte more than the cap is one too many. */
static int
receive_archive (struct coffer_call *call, int in, int file)
{
  uint64_t copied;

  if (coffer_copy (in, file, TAR_BYTES_MAX + 1, call->deadline_ns,
                   call->cancel_fd, &copied) < 0)
    return -1;
  if (copied <= TAR_BYTES_MAX)
    return 0;
  errno = EFBIG;
  return -1;
}

int32_t
reference_archive_import (struct coffer_call *call, void *self,
                          const char *sandbox, const char *path, int32_t in,
                          const struct coffer_archive_import_opts *opts)
{
  auto_place struct place place = PLACE (path, NULL);
  coffer_autoclose int target = -1, file = -1, stage = -1;
  const char *why = NULL;
  char name[32];
  int32_t code = place_find (call, self, sandbox, &place);

  (void) opts;
  if (code != COFFER_OK)
    return code;
  target = coffer_open_beneath (place.root, place.path, O_RDONLY | O_DIRECTORY,
                                0);
  if (target < 0)
    return coffer_fail_errno (call, errno, "the folder");
  file = scratch_file (place.folder);
  if (file < 0 || receive_archive (call, in, file) < 0)
    return fail_import (call, NULL);
  stage = make_stage (place.folder, name);
  if (stage < 0)
    return fail_import (call, NULL);
  if (tar_unpack (call, file, stage, &why) < 0
      || tree_merge (stage, target) < 0)
    code = fail_import (call, why);
  coffer_remove_beneath (place.folder, name, 1, NULL);
  return code;
}
