/* SPDX-License-Identifier: Apache-2.0 */
/* Files in and out of a sandbox.
 *
 * Both ways the bytes are hashed once while they pass, and then the
 * sandbox's side is read through the provider and compared: what a provider
 * says about itself is no proof that the bytes arrived.  An upload goes to a
 * temporary name beside its target and is renamed once it is known to be
 * right, so that neither a failure nor the end of this process shows a file
 * that is half there. */

#include "config.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/log.h"
#include "base/sha256.h"
#include "base/text.h"
#include "sandbox/async.h"
#include "sandbox/host.h"
#include "sandbox/info.h"
#include "sandbox/request.h"
#include "sandbox/signals.h"

#define CHUNK 65536
#define CLEANUP_MS 10000
/* A pause, not a whole copy, that ends a transfer without another deadline. */
#define IDLE_MS 60000
#define HOLE 4096

/* What passed: its length and hash. */
struct tally {
  uint64_t size;
  SHA2_CTX context;
  char sha256[SHA256_HEX_SIZE];
};

static void
tally_begin (struct tally *tally)
{
  tally->size = 0;
  sha256_begin (&tally->context);
}

static void
tally_add (struct tally *tally, const void *bytes, size_t size)
{
  tally->size += size;
  sha256_add (&tally->context, bytes, size);
}

static void
tally_end (struct tally *tally)
{
  sha256_end (&tally->context, tally->sha256);
}

static int
tally_equal (const struct tally *a, const struct tally *b)
{
  return a->size == b->size && strcmp (a->sha256, b->sha256) == 0;
}

/* One transfer: a provider call on its thread and our end of its pipe. */
struct transfer {
  struct provider *provider;
  const char *sandbox, *path;
  const struct provider_call *call;
  struct async_call async;
  int pipe;
  uint64_t total;               /* for progress; 0: not known */
  const char *what;
  char *buffer;
  json_t *stat;                 /* what the provider emitted last */
  uint64_t reported;            /* its moved_bytes */
};

/* Gives up.  A provider that takes the end of the pipe for the end of the file
 * has then written a temporary file, which is removed. */
static void
transfer_stop (struct transfer *transfer)
{
  async_cancel (&transfer->async);
  coffer_fd_close (&transfer->pipe);
  async_end (&transfer->async, NULL);
}

static void
transfer_fini (struct transfer *transfer)
{
  transfer_stop (transfer);
  free (transfer->buffer);
  json_decref (transfer->stat);
}
#define auto_transfer __attribute__ ((cleanup (transfer_fini)))

static int
sink_stat (void *data, const struct contract_record *type, void *record)
{
  struct transfer *transfer = data;
  const struct coffer_file_stat *stat = record;

  if (type->id != COFFER_REC_file_stat)
    return 0;
  json_decref (transfer->stat);
  transfer->stat = stat_to_json (stat);
  transfer->reported = stat->moved_bytes;
  return transfer->stat ? 0 : -1;
}

static int64_t
call_deadline (const struct provider_call *call)
{
  return call && call->deadline_ns ? call->deadline_ns
                                   : deadline_in (REQUEST_TTL_MAX_MS);
}

static int
call_cancel_fd (const struct provider_call *call)
{
  return call ? call->cancel_fd : -1;
}

/* A pipe for the call to read (reads) or write; *theirs is its end. */
static int
transfer_pipe (struct transfer *transfer, int reads, int *theirs,
               struct error **err)
{
  int ends[2];

  transfer->buffer = malloc (CHUNK);
  if (!transfer->buffer)
    return error_set (err, E_NO_MEMORY, 0, "a buffer");
  if (pipe2 (ends, O_CLOEXEC) < 0)
    return error_set (err, E_IO, errno, "a pipe");
  *theirs = ends[!reads];
  transfer->pipe = ends[reads];
  if (fcntl (transfer->pipe, F_SETFL, O_NONBLOCK) < 0)
    return error_set (err, E_IO, errno, "a pipe");
  return 0;
}

static void
progress (const struct transfer *transfer, uint64_t done)
{
  if (transfer->call && transfer->call->sink.progress)
    transfer->call->sink.progress (transfer->call->sink.data, done,
                                   transfer->total, transfer->what);
}

/* Waits for `fd`: our end of the pipe, or where the bytes come from.  1: it
 * is ready; 0: the provider's call has returned; -1: given up. */
static int
transfer_wait (const struct transfer *transfer, int fd, short events,
               struct error **err)
{
  struct pollfd fds[3] = {
    { .fd = fd, .events = events },
    { .fd = transfer->async.done_fd, .events = POLLIN },
    { .fd = call_cancel_fd (transfer->call), .events = POLLIN }
  };
  int64_t left = (call_deadline (transfer->call) - coffer_now_ns ()) / 1000000;
  int n = 0;

  /* Somebody may type what is uploaded; a provider has no such excuse. */
  if (left > (fd == transfer->pipe ? IDLE_MS : INT_MAX))
    left = fd == transfer->pipe ? IDLE_MS : INT_MAX;
  if (left > 0)
    do
      n = poll (fds, 3, (int) left);
    while (n < 0 && errno == EINTR);
  if (n < 0)
    return error_set (err, E_IO, errno, "poll");
  if (n == 0)
    return error_set (err, E_PROVIDER_TIMEOUT, 0, "%s: not moved in time",
                      transfer->path);
  if (fds[2].revents)
    return error_set (err, E_EXEC_CANCELLED, 0, "%s: cancelled",
                      transfer->path);
  return fds[0].revents != 0;
}

/* ---- reading out of the sandbox ------------------------------------------ */

typedef int take_bytes (void *data, const char *bytes, size_t size,
                        struct error **err);

/* Reads our end until the call has returned and the pipe is empty: whatever
 * the provider wrote is in it by then. */
static int
drain_pipe (struct transfer *transfer, struct tally *tally, take_bytes *take,
            void *data, struct error **err)
{
  ssize_t n;
  int ready;

  for (;;) {
    ready = transfer_wait (transfer, transfer->pipe, POLLIN, err);
    if (ready < 0)
      return -1;
    n = read (transfer->pipe, transfer->buffer, CHUNK);
    if (n == 0 || (n < 0 && errno == EAGAIN && ready == 0))
      return 0;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
      continue;
    if (n < 0)
      return error_set (err, E_IO, errno, "a pipe");
    tally_add (tally, transfer->buffer, (size_t) n);
    if (take && take (data, transfer->buffer, (size_t) n, err) < 0)
      return -1;
    progress (transfer, tally->size);
  }
}

/* The whole file once through the provider. */
static int
read_out (struct transfer *transfer, struct tally *tally, take_bytes *take,
          void *data, struct error **err)
{
  const struct provider_sink sink = { .record = sink_stat, .data = transfer };
  struct contract_args_file_read args = {
    .sandbox = transfer->sandbox, .path = transfer->path
  };
  coffer_autoclose int theirs = -1;

  tally_begin (tally);
  if (transfer_pipe (transfer, 0, &theirs, err) < 0)
    return -1;
  args.out = theirs;
  if (async_begin (&transfer->async, transfer->provider, COFFER_OP_file_read,
                   &args, &sink, call_deadline (transfer->call), err) < 0)
    return -1;
  if (drain_pipe (transfer, tally, take, data, err) < 0) {
    transfer_stop (transfer);
    return -1;
  }
  if (async_end (&transfer->async, err) < 0)
    return -1;
  coffer_fd_close (&transfer->pipe);
  tally_end (tally);
  return 0;
}

/* Reads it back, to see what is really there. */
static int
read_back (const struct transfer *like, const char *path, struct tally *tally,
           struct error **err)
{
  auto_transfer struct transfer transfer = {
    .provider = like->provider, .sandbox = like->sandbox, .path = path,
    .call = like->call, .pipe = -1, .total = like->total, .what = "verifying"
  };

  return read_out (&transfer, tally, NULL, NULL, err);
}

/* ---- into the sandbox ---------------------------------------------------- */

/* All of the chunk into the pipe.  0 also when the provider has returned: its
 * own error says why. */
static int
feed (const struct transfer *transfer, const char *bytes, size_t size,
      int *ended, struct error **err)
{
  ssize_t n;
  int ready;

  while (size > 0) {
    ready = transfer_wait (transfer, transfer->pipe, POLLOUT, err);
    if (ready < 0)
      return -1;
    n = ready ? write (transfer->pipe, bytes, size) : -1;
    if (!ready || (n < 0 && errno == EPIPE)) {
      *ended = 1;
      return 0;
    }
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
      continue;
    if (n < 0)
      return error_set (err, E_IO, errno, "a pipe");
    bytes += n;
    size -= (size_t) n;
  }
  return 0;
}

static int
feed_all (struct transfer *transfer, int local, struct tally *tally,
          struct error **err)
{
  int ended = 0, ready;
  ssize_t n;

  while (!ended) {
    ready = transfer_wait (transfer, local, POLLIN, err);
    if (ready <= 0)
      return ready;
    n = read (local, transfer->buffer, CHUNK);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
      continue;
    if (n < 0)
      return error_set (err, E_IO, errno, "read what is uploaded");
    if (n == 0)
      return 0;
    tally_add (tally, transfer->buffer, (size_t) n);
    if (feed (transfer, transfer->buffer, (size_t) n, &ended, err) < 0)
      return -1;
    progress (transfer, tally->size);
  }
  return 0;
}

static int
write_in (struct transfer *transfer, int local, uint32_t mode, int parents,
          struct tally *tally, struct error **err)
{
  const struct provider_sink sink = { .record = sink_stat, .data = transfer };
  struct coffer_file_write_opts opts = {
    .size = sizeof opts, .mode = mode, .parents = parents != 0, .exclusive = 1
  };
  struct contract_args_file_write args = {
    .sandbox = transfer->sandbox, .path = transfer->path, .opts = &opts
  };
  coffer_autoclose int theirs = -1;

  tally_begin (tally);
  if (transfer_pipe (transfer, 1, &theirs, err) < 0)
    return -1;
  args.in = theirs;
  if (async_begin (&transfer->async, transfer->provider, COFFER_OP_file_write,
                   &args, &sink, call_deadline (transfer->call), err) < 0)
    return -1;
  if (feed_all (transfer, local, tally, err) < 0) {
    transfer_stop (transfer);
    return -1;
  }
  coffer_fd_close (&transfer->pipe);
  if (async_end (&transfer->async, err) < 0)
    return -1;
  tally_end (tally);
  return 0;
}

/* "DIR/.coffer-RANDOM" beside `path`. */
static char *
temporary_name (const char *path, struct error **err)
{
  const char *slash = strrchr (path, '/');
  char id[SANDBOX_ID_SIZE], *name;

  if (sandbox_id_new (id, err) < 0)
    return NULL;
  name = text_printf ("%.*s.coffer-%s",
                      slash ? (int) (slash - path + 1) : 0, path, id + 3);
  if (!name)
    error_set (err, E_NO_MEMORY, 0, "a name");
  return name;
}

static void
remove_temporary (const struct transfer *transfer)
{
  struct provider_call call = call_in (CLEANUP_MS, -1);
  auto_error struct error *error = NULL;

  if (INVOKE (transfer->provider, &call, &error, file_remove,
              .sandbox = transfer->sandbox, .path = transfer->path) < 0
      && error && error->number != E_FILE_NOT_FOUND
      && error->number != E_UNKNOWN_SANDBOX)
    log_event (LOG_LEVEL_WARNING, "files", "%s stays in the sandbox: %s",
               transfer->path, error_message (error));
}

static int
mismatch (const char *path, const struct tally *ours,
          const struct tally *theirs, struct error **err)
{
  error_set (err, E_FILE_MISMATCH, 0,
             "%s: %llu bytes went (sha256 %.16s…), %llu are there (%.16s…)",
             path, (unsigned long long) ours->size, ours->sha256,
             (unsigned long long) theirs->size, theirs->sha256);
  error_detail (err, "path", json_bytes (path, strlen (path)));
  return -1;
}

static uint64_t
local_size (int local)
{
  struct stat st;

  return fstat (local, &st) == 0 && S_ISREG (st.st_mode)
           ? (uint64_t) st.st_size : 0;
}

/* Is ".." one of its components? */
static int
path_climbs (const char *path)
{
  const char *at;

  for (at = path; (at = strstr (at, "..")); at += 2)
    if ((at == path || at[-1] == '/') && (!at[2] || at[2] == '/'))
      return 1;
  return 0;
}

static int
check_path (const char *path, struct error **err)
{
  size_t size = path ? strlen (path) : 0;

  if (size == 0 || size > 4095)
    return error_set (err, E_INVALID, 0,
                      "a path in a sandbox has 1 to 4095 bytes");
  if (path[size - 1] == '/')
    return error_set (err, E_FILE_KIND, 0, "%s names a folder", path);
  if (path_climbs (path))
    return error_set (err, E_FILE_DENIED, 0, "%s: no path leads upwards",
                      path);
  return 0;
}

static int
reach_files (struct host *host, const char *id, const char *path,
             struct sandbox_record **record, struct provider **provider,
             struct error **err)
{
  if (check_path (path, err) < 0
      || host_reach (host, id, record, provider, err) < 0)
    return -1;
  if (!provider_claims (*provider, "files"))
    return error_set (err, E_CAPABILITY, 0, "provider %s does not claim files",
                      (*record)->provider);
  signals_no_sigpipe ();
  return 0;
}

static json_t *
report (const char *path, const struct tally *tally)
{
  json_t *object = json_object ();

  json_object_set_new (object, "path", json_bytes (path, strlen (path)));
  json_object_set_new (object, "size_bytes", json_u64 (tally->size));
  json_object_set_new (object, "sha256", json_string (tally->sha256));
  return object;
}

static int
upload_verified (struct transfer *transfer, int local, const char *path,
                 uint32_t mode, int parents, struct tally *sent,
                 struct error **err)
{
  struct provider_call call = { .deadline_ns = 0,
                                .cancel_fd = call_cancel_fd (transfer->call) };
  struct tally found;

  if (write_in (transfer, local, mode, parents, sent, err) < 0
      || read_back (transfer, transfer->path, &found, err) < 0)
    return -1;
  if (!tally_equal (sent, &found) || transfer->reported != sent->size)
    return mismatch (path, sent, &found, err);
  return INVOKE (transfer->provider, &call, err, file_rename,
                 .sandbox = transfer->sandbox, .from = transfer->path,
                 .to = path);
}

int
sandbox_upload (struct host *host, const char *id, int local,
                const char *path, uint32_t mode, int parents,
                const struct provider_call *call, json_t **out,
                struct error **err)
{
  auto_sandbox_record struct sandbox_record *record = NULL;
  auto_transfer struct transfer transfer = {
    .sandbox = id, .call = call, .pipe = -1, .total = local_size (local),
    .what = "uploading"
  };
  auto_free char *temporary = NULL;
  struct tally sent;

  if (mode > 07777)
    return error_set (err, E_INVALID, 0, "mode: not between 0 and 07777");
  if (reach_files (host, id, path, &record, &transfer.provider, err) < 0
      || !(temporary = temporary_name (path, err)))
    return -1;
  transfer.path = temporary;
  if (upload_verified (&transfer, local, path, mode, parents, &sent, err)
      < 0) {
    remove_temporary (&transfer);
    return -1;
  }
  *out = report (path, &sent);
  return 0;
}

/* ---- and out, to a local file -------------------------------------------- */

struct local_file {
  int fd;
  int regular;
  off_t start;                  /* where our bytes begin */
  uint64_t size;
};

/* Writes at the place that is ours; long runs of zeros become holes. */
static int
local_take (void *data, const char *bytes, size_t size, struct error **err)
{
  struct local_file *local = data;
  static const char zeros[HOLE];
  size_t part;

  for (; size > 0; bytes += part, size -= part) {
    part = HOLE - (size_t) (local->size % HOLE);
    if (!local->regular)
      part = size;
    if (part > size)
      part = size;
    local->size += part;
    if (local->regular && part == HOLE && memcmp (bytes, zeros, HOLE) == 0) {
      if (lseek (local->fd, HOLE, SEEK_CUR) < 0)
        return error_set (err, E_IO, errno, "seek in what is downloaded");
    } else if (coffer_write_all (local->fd, bytes, part) < 0) {
      return error_set (err, E_IO, errno, "write what is downloaded");
    }
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

/* What is on the local side, when that can be read. */
static int
local_check (const struct local_file *local, const struct tally *passed,
             const char *path, struct error **err)
{
  coffer_autoclose int fd = -1;
  auto_free char *buffer = malloc (CHUNK);
  struct tally found;
  char name[64];
  off_t at = local->start;
  ssize_t n;

  if (!local->regular)
    return 0;
  if (!buffer)
    return error_set (err, E_NO_MEMORY, 0, "a buffer");
  snprintf (name, sizeof name, "/proc/self/fd/%d", local->fd);
  fd = open (name, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return error_set (err, E_IO, errno, "read what was downloaded");
  tally_begin (&found);
  while ((n = pread (fd, buffer, CHUNK, at)) != 0) {
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return error_set (err, E_IO, errno, "read what was downloaded");
    tally_add (&found, buffer, (size_t) n);
    at += n;
  }
  tally_end (&found);
  return tally_equal (passed, &found) ? 0
                                      : mismatch (path, passed, &found, err);
}

static int
download_verified (struct transfer *transfer, struct local_file *local,
                   struct tally *passed, struct error **err)
{
  struct tally again;

  if (read_out (transfer, passed, local_take, local, err) < 0
      || local_end (local, err) < 0
      || local_check (local, passed, transfer->path, err) < 0
      || read_back (transfer, transfer->path, &again, err) < 0)
    return -1;
  if (!tally_equal (passed, &again)
      || (transfer->stat && transfer->reported != passed->size))
    return mismatch (transfer->path, passed, &again, err);
  return 0;
}

/* What is there, so that a fifo is refused by its name rather than read, and
 * how much for progress; the read itself decides. */
static int
remote_look (struct transfer *transfer, struct error **err)
{
  auto_transfer struct transfer asked = { .pipe = -1 };
  struct provider_call call = { .cancel_fd = call_cancel_fd (transfer->call),
                                .sink = { .record = sink_stat,
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
  struct local_file file;
  struct tally passed;

  if (reach_files (host, id, path, &record, &transfer.provider, err) < 0)
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
  *out = report (path, &passed);
  return 0;
}

/* ---- looking ------------------------------------------------------------- */

static int
sink_entry (void *data, const struct contract_record *type, void *record)
{
  if (type->id != COFFER_REC_file_stat)
    return 0;
  return json_array_append_new (data, stat_to_json (record));
}

int
sandbox_ls (struct host *host, const char *id, const char *path,
            uint32_t depth, const struct provider_call *call, json_t **out,
            struct error **err)
{
  auto_sandbox_record struct sandbox_record *record = NULL;
  auto_json json_t *entries = json_array ();
  struct coffer_file_list_opts opts = { .size = sizeof opts, .depth = depth };
  struct provider_call inner = { .cancel_fd = -1 };
  struct provider *provider;
  size_t size = path ? strlen (path) : 0;

  if (size == 0 || size > 4095)
    return error_set (err, E_INVALID, 0,
                      "a path in a sandbox has 1 to 4095 bytes");
  if (reach_files (host, id, "-", &record, &provider, err) < 0)
    return -1;
  if (call)
    inner = *call;
  inner.sink.record = sink_entry;
  inner.sink.data = entries;
  inner.sink.progress = NULL;
  if (INVOKE (provider, &inner, err, file_list, .sandbox = id, .path = path,
              .opts = &opts) < 0)
    return -1;
  *out = json_incref (entries);
  return 0;
}
