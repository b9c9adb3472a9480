/* SPDX-License-Identifier: Apache-2.0 */
/* One copy's machinery: the call on its thread, our end of its pipe, waiting
 * with a deadline, reading back.  See transfer.h. */

#include "config.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "sandbox/info.h"
#include "sandbox/request.h"
#include "sandbox/signals.h"
#include "sandbox/transfer.h"

/* A pause, not a whole copy, that ends a transfer without another deadline. */
#define IDLE_MS 60000
#define PIPE_BYTES (1 << 20)

void
transfer_stop (struct transfer *transfer)
{
  async_cancel (&transfer->async);
  coffer_fd_close (&transfer->pipe);
  async_end (&transfer->async, NULL);
}

void
transfer_fini (struct transfer *transfer)
{
  transfer_stop (transfer);
  json_decref (transfer->stat);
}
int
transfer_take_stat (void *data, const struct contract_record *type,
                    void *record)
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

int
transfer_cancel_fd (const struct transfer *transfer)
{
  return transfer->call ? transfer->call->cancel_fd : -1;
}

int
transfer_begin (struct transfer *transfer, uint32_t op, const void *args,
                struct error **err)
{
  const struct provider_sink sink = { .record = transfer_take_stat,
                                      .data = transfer };

  return async_begin (&transfer->async, transfer->provider, op, args, &sink,
                      call_deadline (transfer->call), err);
}

int
transfer_pipe (struct transfer *transfer, int reads, int *theirs,
               struct error **err)
{
  int ends[2];

  if (pipe2 (ends, O_CLOEXEC) < 0)
    return error_set (err, E_IO, errno, "a pipe");
  *theirs = ends[!reads];
  transfer->pipe = ends[reads];
  if (fcntl (transfer->pipe, F_SETFL, O_NONBLOCK) < 0)
    return error_set (err, E_IO, errno, "a pipe");
  /* Fewer turns for both sides; no matter if refused. */
  fcntl (transfer->pipe, F_SETPIPE_SZ, PIPE_BYTES);
  return 0;
}

void
transfer_progress (const struct transfer *transfer, uint64_t done)
{
  if (transfer->call && transfer->call->sink.progress)
    transfer->call->sink.progress (transfer->call->sink.data, done,
                                   transfer->total, transfer->what);
}

int
transfer_wait (const struct transfer *transfer, int fd, short events,
               struct error **err)
{
  struct pollfd fds[3] = {
    { .fd = fd, .events = events },
    { .fd = transfer->async.done_fd, .events = POLLIN },
    { .fd = transfer_cancel_fd (transfer), .events = POLLIN }
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

int
transfer_feed (struct transfer *transfer, int local, struct tally *tally,
               struct error **err)
{
  int ended = 0, ready;
  const char *bytes;
  ssize_t n;

  while (!ended) {
    ready = transfer_wait (transfer, local, POLLIN, err);
    if (ready <= 0)
      return ready;
    n = read (local, tally_room (tally), TALLY_CHUNK);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
      continue;
    if (n < 0)
      return error_set (err, E_IO, errno, "read what is sent");
    if (n == 0)
      return 1;
    bytes = tally_add (tally, (size_t) n);
    if (feed (transfer, bytes, (size_t) n, &ended, err) < 0)
      return -1;
    transfer_progress (transfer, tally->size);
  }
  return 0;
}

/* Reads our end until the call has returned and the pipe is empty: whatever
 * the provider wrote is in it by then. */
static int
drain_pipe (struct transfer *transfer, struct tally *tally, take_bytes *take,
            void *data, struct error **err)
{
  const char *bytes;
  ssize_t n;
  int ready;

  for (;;) {
    ready = transfer_wait (transfer, transfer->pipe, POLLIN, err);
    if (ready < 0)
      return -1;
    n = read (transfer->pipe, tally_room (tally), TALLY_CHUNK);
    if (n == 0 || (n < 0 && errno == EAGAIN && ready == 0))
      return 0;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
      continue;
    if (n < 0)
      return error_set (err, E_IO, errno, "a pipe");
    bytes = tally_add (tally, (size_t) n);
    if (take && take (data, bytes, (size_t) n, err) < 0)
      return -1;
    transfer_progress (transfer, tally->size);
  }
}

static int
read_all (struct transfer *transfer, struct tally *tally, take_bytes *take,
          void *data, struct error **err)
{
  struct contract_args_file_read args = {
    .sandbox = transfer->sandbox, .path = transfer->path
  };
  coffer_autoclose int theirs = -1;

  if (transfer_pipe (transfer, 0, &theirs, err) < 0)
    return -1;
  args.out = theirs;
  if (transfer_begin (transfer, COFFER_OP_file_read, &args, err) < 0)
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

int
transfer_read (struct transfer *transfer, struct tally *tally,
               take_bytes *take, void *data, struct error **err)
{
  if (tally_begin (tally, err) < 0)
    return -1;
  return read_all (transfer, tally, take, data, err);
}

/* What a local file is compared with, as it comes. */
struct likeness {
  int local;
  off_t at;
  int differs;
  char *buffer;                 /* TALLY_CHUNK */
};

static void
likeness_look (void *data, const char *bytes, size_t size)
{
  struct likeness *likeness = data;
  size_t got = 0;
  ssize_t n = 1;

  while (!likeness->differs && got < size && n > 0) {
    n = pread (likeness->local, likeness->buffer + got, size - got,
               likeness->at + (off_t) got);
    got += n > 0 ? (size_t) n : 0;
  }
  likeness->at += (off_t) size;
  likeness->differs |= got < size
                       || memcmp (likeness->buffer, bytes, size) != 0;
}

int
transfer_is_like (const struct transfer *like, const char *path, int local,
                  off_t at, uint64_t size, struct error **err)
{
  auto_transfer struct transfer transfer = {
    .provider = like->provider, .sandbox = like->sandbox, .path = path,
    .call = like->call, .pipe = -1, .total = like->total, .what = "verifying"
  };
  auto_free char *buffer = malloc (TALLY_CHUNK);
  struct likeness likeness = { .local = local, .at = at, .buffer = buffer };
  auto_tally struct tally tally = { 0 };

  if (!buffer)
    return error_set (err, E_NO_MEMORY, 0, "a buffer");
  if (tally_begin_with (&tally, likeness_look, &likeness, err) < 0
      || read_all (&transfer, &tally, NULL, NULL, err) < 0)
    return -1;
  return !likeness.differs && tally.size == size;
}

int
transfer_read_back (const struct transfer *like, const char *path,
                    struct tally *tally, struct error **err)
{
  auto_transfer struct transfer transfer = {
    .provider = like->provider, .sandbox = like->sandbox, .path = path,
    .call = like->call, .pipe = -1, .total = like->total, .what = "verifying"
  };

  return transfer_read (&transfer, tally, NULL, NULL, err);
}

int
transfer_mismatch (const char *path, const struct tally *ours,
          const struct tally *theirs, struct error **err)
{
  error_set (err, E_FILE_MISMATCH, 0,
             "%s: %llu bytes went (sha256 %.16s…), %llu are there (%.16s…)",
             path, (unsigned long long) ours->size, ours->sha256,
             (unsigned long long) theirs->size, theirs->sha256);
  error_detail (err, "path", json_bytes (path, strlen (path)));
  return -1;
}

json_t *
transfer_report (const char *path, const struct tally *tally)
{
  json_t *object = json_object ();

  json_object_set_new (object, "path", json_bytes (path, strlen (path)));
  json_object_set_new (object, "size_bytes", json_u64 (tally->size));
  json_object_set_new (object, "sha256", json_string (tally->sha256));
  return object;
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

int
files_check_path (const char *path, struct error **err)
{
  size_t size = path ? strlen (path) : 0;

  if (size == 0 || size > 4095)
    return error_set (err, E_INVALID, 0,
                      "a path in a sandbox has 1 to 4095 bytes");
  if (path_climbs (path))
    return error_set (err, E_FILE_DENIED, 0, "%s: no path leads upwards",
                      path);
  return 0;
}

int
files_reach (struct host *host, const char *id, const char *path,
             struct sandbox_record **record, struct provider **provider,
             struct error **err)
{
  if (files_check_path (path, err) < 0)
    return -1;
  if (path[strlen (path) - 1] == '/')
    return error_set (err, E_FILE_KIND, 0, "%s names a folder", path);
  if (host_reach (host, id, record, provider, err) < 0)
    return -1;
  if (claim_require (*provider, "files", err) < 0)
    return -1;
  signals_no_sigpipe ();
  return 0;
}

