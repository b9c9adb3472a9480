/* SPDX-License-Identifier: Apache-2.0 */
/* A file out of a sandbox into a local descriptor, and looking into its
 * folders. */

#include "config.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/log.h"
#include "sandbox/info.h"
#include "sandbox/transfer.h"

#define HOLE 4096

struct local_file {
  int fd;
  int regular;
  off_t start;                  /* where our bytes begin */
  uint64_t size;
};

static int
is_zero (const char *bytes)
{
  static const char zeros[HOLE];

  return bytes[0] == 0 && memcmp (bytes, zeros, HOLE) == 0;
}

/* How much of it is written at once, or left as a hole: whole blocks of the
 * file, all of the same kind, after what is missing of a begun one. */
static size_t
run_length (const struct local_file *local, const char *bytes, size_t size,
            int *hole)
{
  size_t part = HOLE - (size_t) (local->size % HOLE);

  *hole = 0;
  if (!local->regular || part > size)
    return size;
  if (part < HOLE)
    return part;
  *hole = is_zero (bytes);
  while (size - part >= HOLE && is_zero (bytes + part) == *hole)
    part += HOLE;
  return *hole || size - part >= HOLE ? part : size;
}

/* Writes at the place that is ours; long runs of zeros become holes. */
static int
local_take (void *data, const char *bytes, size_t size, struct error **err)
{
  struct local_file *local = data;
  size_t part;
  int hole;

  for (; size > 0; bytes += part, size -= part) {
    part = run_length (local, bytes, size, &hole);
    local->size += part;
    if (hole && lseek (local->fd, (off_t) part, SEEK_CUR) < 0)
      return error_set (err, E_IO, errno, "seek in what is downloaded");
    if (!hole && coffer_write_all (local->fd, bytes, part) < 0)
      return error_set (err, E_IO, errno, "write what is downloaded");
  }
  return 0;
}

/* A hole at the end is there only once the file is that long. */
static int
local_end (struct local_file *local, struct error **err)
{
  off_t end = local->start + (off_t) local->size;

  if (local->regular && ftruncate (local->fd, end) < 0)
    return error_set (err, E_IO, errno, "the length of what is downloaded");
  return 0;
}

static void
local_begin (struct local_file *local, int fd)
{
  struct stat st;
  int flags = fcntl (fd, F_GETFL);

  memset (local, 0, sizeof *local);
  local->fd = fd;
  local->start = lseek (fd, 0, SEEK_CUR);
  /* Only into nothing may holes be left. */
  local->regular = fstat (fd, &st) == 0 && S_ISREG (st.st_mode)
                   && local->start >= 0 && st.st_size <= local->start
                   && flags >= 0 && !(flags & O_APPEND);
}

/* For reading, whatever it was opened for; -1: it is no file. */
static int
local_open (const struct local_file *local)
{
  char name[64];

  if (!local->regular)
    return -1;
  snprintf (name, sizeof name, "/proc/self/fd/%d", local->fd);
  return open (name, O_RDONLY | O_CLOEXEC);
}

/* What is on the local side, when that can be read. */
static int
local_check (const struct local_file *local, const struct tally *passed,
             const char *path, struct error **err)
{
  coffer_autoclose int fd = -1;
  auto_tally struct tally found = { 0 };
  off_t at = local->start;
  ssize_t n;

  if (!local->regular)
    return 0;
  fd = local_open (local);
  if (fd < 0)
    return error_set (err, E_IO, errno, "read what was downloaded");
  if (tally_begin (&found, err) < 0)
    return -1;
  while ((n = pread (fd, tally_room (&found), TALLY_CHUNK, at)) != 0) {
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return error_set (err, E_IO, errno, "read what was downloaded");
    tally_add (&found, (size_t) n);
    at += n;
  }
  tally_end (&found);
  if (!tally_equal (passed, &found))
    return transfer_mismatch (path, passed, &found, err);
  return 0;
}

static int
download_verified (struct transfer *transfer, struct local_file *local,
                   struct tally *passed, struct error **err)
{
  coffer_autoclose int fd = -1;
  auto_tally struct tally again = { 0 };
  struct stat st;
  int same = 0;

  if (transfer_read (transfer, passed, local_take, local, err) < 0
      || local_end (local, err) < 0)
    return -1;
  fd = local_open (local);
  if (fd >= 0 && fstat (fd, &st) == 0
      && st.st_size == local->start + (off_t) passed->size
      && (!transfer->stat || transfer->reported == passed->size))
    same = transfer_is_like (transfer, transfer->path, fd, local->start,
                             passed->size, err);
  if (same != 0)
    return same < 0 ? -1 : 0;
  if (local_check (local, passed, transfer->path, err) < 0
      || transfer_read_back (transfer, transfer->path, &again, err) < 0)
    return -1;
  if (!tally_equal (passed, &again)
      || (transfer->stat && transfer->reported != passed->size))
    return transfer_mismatch (transfer->path, passed, &again, err);
  return 0;
}

/* What is there, so that a fifo is refused by its name rather than read, and
 * how much for progress; the read itself decides. */
static int
remote_look (struct transfer *transfer, struct error **err)
{
  auto_transfer struct transfer asked = { .pipe = -1 };
  struct provider_call call = { .cancel_fd = transfer_cancel_fd (transfer),
                                .sink = { .record = transfer_take_stat,
                                          .data = &asked } };
  const char *kind;

  if (INVOKE (transfer->provider, &call, err, file_stat,
              .sandbox = transfer->sandbox, .path = transfer->path) < 0)
    return -1;
  kind = json_string_value (json_object_get (asked.stat, "kind"));
  /* A link is the provider's to refuse: it knows where it leads. */
  if (kind && strcmp (kind, "file") && strcmp (kind, "symlink"))
    return error_set (err, E_FILE_KIND, 0, "%s is a %s, not a file",
                      transfer->path, kind);
  json_get_u64 (json_object_get (asked.stat, "size_bytes"), &transfer->total);
  return 0;
}

int
sandbox_download (struct host *host, const char *id, const char *path,
                  int local, const struct provider_call *call, json_t **out,
                  struct error **err)
{
  auto_sandbox_record struct sandbox_record *record = NULL;
  auto_transfer struct transfer transfer = {
    .sandbox = id, .path = path, .call = call, .pipe = -1,
    .what = "downloading"
  };
  auto_tally struct tally passed = { 0 };
  struct local_file file;

  if (files_reach (host, id, path, &record, &transfer.provider, err) < 0)
    return -1;
  if (remote_look (&transfer, err) < 0)
    return -1;
  local_begin (&file, local);
  if (download_verified (&transfer, &file, &passed, err) < 0) {
    if (file.regular && ftruncate (local, file.start) < 0)
      log_event (LOG_LEVEL_WARNING, "files",
                 "what was downloaded so far could not be removed");
    return -1;
  }
  *out = transfer_report (path, &passed);
  return 0;
}

/* ---- looking ------------------------------------------------------------- */

struct listing {
  json_t *entries;
  size_t most;                  /* 0: any number */
  int too_many;
};

static int
sink_entry (void *data, const struct contract_record *type, void *record)
{
  struct listing *listing = data;

  if (type->id != COFFER_REC_file_stat)
    return 0;
  listing->too_many = listing->most
                      && json_array_size (listing->entries) >= listing->most;
  return listing->too_many
           ? -1 : json_array_append_new (listing->entries,
                                         stat_to_json (record));
}

int
sandbox_ls (struct host *host, const char *id, const char *path,
            uint32_t depth, size_t most, const struct provider_call *call,
            json_t **out, struct error **err)
{
  auto_sandbox_record struct sandbox_record *record = NULL;
  auto_json json_t *entries = json_array ();
  struct listing listing = { .entries = entries, .most = most };
  struct coffer_file_list_opts opts = { .size = sizeof opts, .depth = depth };
  struct provider_call inner = { .cancel_fd = -1 };
  auto_error struct error *error = NULL;
  struct provider *provider;
  size_t size = path ? strlen (path) : 0;

  if (size == 0 || size > 4095)
    return error_set (err, E_INVALID, 0,
                      "a path in a sandbox has 1 to 4095 bytes");
  if (files_reach (host, id, "-", &record, &provider, err) < 0)
    return -1;
  if (call)
    inner = *call;
  inner.sink = (struct provider_sink){ .record = sink_entry,
                                       .data = &listing };
  if (INVOKE (provider, &inner, &error, file_list, .sandbox = id,
              .path = path, .opts = &opts) < 0)
    return listing.too_many
             ? error_set (err, E_LIMIT, 0, "%s has more than %zu entries",
                          path, most)
             : error_move (err, steal (error));
  *out = json_incref (entries);
  return 0;
}
