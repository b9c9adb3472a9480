/* SPDX-License-Identifier: Apache-2.0 */
/* Trees as tar files.
 *
 * Out: each entry is looked at when it is written, through its descriptor; what
 * cannot be in an archive as it is makes the export fail, but for pipes, sockets,
 * devices and what is mounted there, which a warning counts.
 *
 * In: everything is unpacked into a folder beside where it belongs while it
 * comes, and moves there when the end of the archive was as well as the rest.
 * Whoever may write there may change that folder meanwhile, and harms what is
 * theirs: no step leaves it. */

#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <coffer/buffer.h>
#include <coffer/fd.h>
#include <coffer/files.h>
#include <coffer/path.h>

#include "internal.h"
#include "tar.h"

/* That taking away what is left of an import may last, whatever its deadline:
 * whose files they are may go on making others. */
#define CLEAR_NS (INT64_C (30) * 1000000000)
#define PENDING_MAX (16u << 10)

/* -- writing ---- */

struct writer {
  struct coffer_call *call;
  int root;                     /* the folder that is exported */
  int out;
  struct coffer_buffer pending; /* headers that are not written yet */
  unsigned seen, skipped;
  const char *why;
  char at[PATH_LIMIT];          /* what could not be written */
};

static int
flush (struct writer *writer)
{
  if (writer->pending.failed) {
    errno = ENOMEM;
    return -1;
  }
  if (coffer_write_until (writer->out, writer->pending.data,
                          writer->pending.size, writer->call->deadline_ns,
                          writer->call->cancel_fd) < 0)
    return -1;
  coffer_buffer_clear (&writer->pending);
  return 0;
}

static const char zeros[2 * TAR_BLOCK];

static void
add_padding (struct writer *writer, uint64_t size)
{
  coffer_buffer_add (&writer->pending, zeros, tar_padding (size));
}

static void
add_header (struct writer *writer, const char *name, char type,
            const struct stat *st, uint64_t size, const char *link)
{
  struct tar_header header = {0};

  memcpy (header.name, name, strnlen (name, sizeof header.name));
  snprintf (header.mode, sizeof header.mode, "%07o", st->st_mode & 0777u);
  memcpy (header.uid, "0000000", 8);
  memcpy (header.gid, "0000000", 8);
  snprintf (header.size, sizeof header.size, "%011llo",
            (unsigned long long) size & 077777777777ULL);
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
  coffer_buffer_add (&writer->pending, &header, sizeof header);
}

/* "27 path=…\n": the length counts its own digits. */
static void
add_record (struct coffer_buffer *pax, const char *key, const char *value)
{
  size_t rest = strlen (key) + strlen (value) + 3, length = rest + 1;

  while (length != rest + (size_t) snprintf (NULL, 0, "%zu", length))
    length = rest + (size_t) snprintf (NULL, 0, "%zu", length);
  coffer_buffer_printf (pax, "%zu %s=%s\n", length, key, value);
}

/* A header of its own for what does not fit into the one that follows. */
static void
add_pax (struct writer *writer, const char *name, const struct stat *st,
         uint64_t size, const char *link)
{
  coffer_autobuffer struct coffer_buffer pax = {0};
  char text[24];

  if (strlen (name) > sizeof ((struct tar_header *) 0)->name)
    add_record (&pax, "path", name);
  if (strlen (link) > sizeof ((struct tar_header *) 0)->link)
    add_record (&pax, "linkpath", link);
  if (size > 077777777777) {
    snprintf (text, sizeof text, "%llu", (unsigned long long) size);
    add_record (&pax, "size", text);
  }
  writer->pending.failed |= pax.failed;
  if (pax.size == 0)
    return;
  add_header (writer, "pax", 'x', st, pax.size, "");
  coffer_buffer_add (&writer->pending, pax.data, pax.size);
  add_padding (writer, pax.size);
}

static void
add_entry (struct writer *writer, const char *name, char type,
           const struct stat *st, uint64_t size, const char *link)
{
  add_pax (writer, name, st, size, link);
  add_header (writer, name, type, st, size, link);
}

/* A file that was removed meanwhile is none; one that shrinks while it is
 * written makes the export fail, not lie. */
static int
write_file (struct writer *writer, const char *path)
{
  struct stat st;
  coffer_autoclose int fd = coffer_open_regular (writer->root, path, &st);
  uint64_t copied = 0, size;

  if (fd < 0)
    return errno == ENOENT ? 0 : -1;
  size = (uint64_t) st.st_size;
  add_entry (writer, path, '0', &st, size, "");
  if (size > 0
      && (flush (writer) < 0
          || coffer_copy (fd, writer->out, size, writer->call->deadline_ns,
                          writer->call->cancel_fd, &copied) < 0))
    return -1;
  if (copied != size) {
    errno = EBUSY;
    return -1;
  }
  add_padding (writer, size);
  return 0;
}

static int
write_link (struct writer *writer, const char *path, int dir,
            const char *name, const struct stat *st)
{
  char target[PATH_LIMIT];
  ssize_t n = readlinkat (dir, name, target, sizeof target - 1);

  if (n < 0)
    return errno == ENOENT ? 0 : -1;
  target[n] = '\0';
  add_entry (writer, path, '2', st, 0, target);
  return 0;
}

/* A walk goes by what it may not enter: here that would be a hole. */
static int
write_folder (struct writer *writer, const char *path, int dir,
              const char *name, const struct stat *st)
{
  char slashed[PATH_LIMIT + 1];

  if (path_is_mounted (dir, name)) {
    writer->skipped++;
    return 0;
  }
  if (path_depth (path) >= TAR_DEPTH_MAX) {
    writer->why = "folders are more than 128 deep";
    return -1;
  }
  if (faccessat (dir, name, R_OK | X_OK, AT_EACCESS | AT_SYMLINK_NOFOLLOW) < 0)
    return errno == ENOENT ? 0 : -1;
  snprintf (slashed, sizeof slashed, "%s/", path);
  add_entry (writer, slashed, '5', st, 0, "");
  return 0;
}

static int
write_entry (void *data, const char *path, int dir, const char *name,
             const struct stat *st)
{
  struct writer *writer = data;
  int r = 0;

  if (++writer->seen % 64 == 0
      && path_check (writer->call->deadline_ns, writer->call->cancel_fd) < 0)
    return -1;
  path_sweep_one (writer->call, dir, name, st->st_mode);
  if (path_has_temporary (path, st->st_mode))
    return 0;
  if (S_ISREG (st->st_mode))
    r = write_file (writer, path);
  else if (S_ISDIR (st->st_mode))
    r = write_folder (writer, path, dir, name, st);
  else if (S_ISLNK (st->st_mode))
    r = write_link (writer, path, dir, name, st);
  else
    writer->skipped++;
  if (r == 0 && writer->pending.size > PENDING_MAX)
    r = flush (writer);
  if (r < 0)
    snprintf (writer->at, sizeof writer->at, "%s", path);
  return r;
}

static int
write_archive (struct writer *writer)
{
  if (coffer_walk (writer->root, "/", TAR_DEPTH_MAX, write_entry, writer) < 0)
    return -1;
  coffer_buffer_add (&writer->pending, zeros, sizeof zeros);
  return flush (writer);
}

int32_t
coffer_files_export (struct coffer_call *call, int root, const char *path,
                     int32_t out)
{
  coffer_unfilled struct writer writer;
  coffer_autoclose int folder = coffer_open_beneath (root, path, O_RDONLY
                                                     | O_DIRECTORY, 0);
  int r, keep;

  if (folder < 0)
    return path_fail (call, errno, path);
  writer.call = call;
  writer.root = folder;
  writer.out = out;
  writer.pending = (struct coffer_buffer) {0};
  writer.seen = writer.skipped = 0;
  writer.why = NULL;
  writer.at[0] = '\0';
  r = write_archive (&writer);
  keep = errno;
  coffer_buffer_free (&writer.pending);
  if (r < 0)
    return writer.why ? coffer_fail (call, COFFER_LIMIT, writer.why) :
      path_fail (call, keep, writer.at[0] ? writer.at : ".");
  if (writer.skipped > 0)
    coffer_log (call, COFFER_LOG_WARNING, "what is mounted there, pipes, "
                "sockets and devices are not in the archive");
  return COFFER_OK;
}

/* -- reading ---- */

/* "the archive: …", and what an import that was given up has left. */
static int32_t
fail_import (struct coffer_call *call, int sys_errno, const char *why,
             size_t left)
{
  coffer_autobuffer struct coffer_buffer text = {0};

  coffer_buffer_add_string (&text, "the archive");
  if (left > 0)
    coffer_buffer_printf (&text, " (%zu of its names are there, and could not "
                          "be taken back)", left);
  if (text.failed || (why && left == 0))
    return why ? coffer_fail (call, COFFER_INVALID, why) :
      coffer_fail_errno (call, sys_errno, "the archive");
  return coffer_fail_errno (call, sys_errno, text.data);
}

/* Beside what it is for, as only there the same file system is sure. */
static int
make_stage (int folder, char name[32])
{
  int tries = 16;

  do {
    coffer_autoclose int fd = -1;

    if (path_temporary (name, 32) < 0)
      return -1;
    if (mkdirat (folder, name, 0700) == 0)
      fd = openat (folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW
                                 | O_CLOEXEC);
    if (fd >= 0 && path_hold (fd) == 0)
      return coffer_fd_steal (&fd);
    /* Who takes it for left behind removes it, before or after it is open. */
  } while ((errno == EEXIST || errno == ENOENT || errno == EWOULDBLOCK)
           && --tries > 0);
  return -1;
}

static void
remove_stage (struct coffer_call *call, int folder, const char *name)
{
  if (path_remove (folder, name, 1, coffer_now_ns () + CLEAR_NS, -1, NULL) < 0
      && errno != ENOENT)
    coffer_log (call, COFFER_LOG_WARNING, "a folder of the import, .coffer-…, "
                "could not be removed");
}

static int32_t
import (struct coffer_call *call, int root, const char *path, int32_t in,
        int links_out)
{
  coffer_autoclose int stage = -1;
  coffer_autoclose int folder = coffer_open_beneath (root, path, O_RDONLY
                                                     | O_DIRECTORY, 0);
  const char *why = NULL;
  int32_t code = COFFER_OK;
  size_t left = 0;
  char name[32];

  if (folder < 0)
    return path_fail (call, errno, path);
  path_sweep (call, folder);
  stage = make_stage (folder, name);
  if (stage < 0)
    return coffer_fail_errno (call, errno, "a folder for what is unpacked");
  if (tar_unpack (call, in, stage, links_out, &why) < 0
      || tree_merge (call, stage, folder, &left) < 0)
    code = fail_import (call, errno, why, left);
  remove_stage (call, folder, name);
  return code;
}

int32_t
coffer_files_import (struct coffer_call *call, int root, const char *path,
                     int32_t in)
{
  return import (call, root, path, in, 0);
}

int32_t
coffer_files_restore (struct coffer_call *call, int root, const char *path,
                      int32_t in)
{
  return import (call, root, path, in, 1);
}
