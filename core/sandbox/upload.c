/* SPDX-License-Identifier: Apache-2.0 */
/* A file into a sandbox.  It goes to a temporary name beside its target and is
 * renamed once it is known to be right, so that neither a failure nor the end
 * of this process shows a file that is half there. */

#include "config.h"

#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/log.h"
#include "base/text.h"
#include "sandbox/transfer.h"

#define CLEANUP_MS 10000

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
    n = read (local, transfer->buffer, TRANSFER_CHUNK);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
      continue;
    if (n < 0)
      return error_set (err, E_IO, errno, "read what is uploaded");
    if (n == 0)
      return 0;
    tally_add (tally, transfer->buffer, (size_t) n);
    if (feed (transfer, transfer->buffer, (size_t) n, &ended, err) < 0)
      return -1;
    transfer_progress (transfer, tally->size);
  }
  return 0;
}

static int
write_in (struct transfer *transfer, int local, uint32_t mode, int parents,
          struct tally *tally, struct error **err)
{
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
  if (transfer_begin (transfer, COFFER_OP_file_write, &args, err) < 0)
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
      && error->number != E_FILE_DENIED         /* as was making it */
      && error->number != E_UNKNOWN_SANDBOX)
    log_event (LOG_LEVEL_WARNING, "files", "%s stays in the sandbox: %s",
               transfer->path, error_message (error));
}

/* The caller never heard of the temporary name: messages speak of `path`. */
static void
name_target (struct error **err, const char *temporary, const char *path)
{
  char *at, *message;

  if (!err || !*err || !(at = strstr ((*err)->message, temporary)))
    return;
  message = text_printf ("%.*s%s%s", (int) (at - (*err)->message),
                         (*err)->message, path, at + strlen (temporary));
  if (!message)
    return;
  free ((*err)->message);
  (*err)->message = message;
}

static uint64_t
local_size (int local)
{
  struct stat st;
  off_t at = lseek (local, 0, SEEK_CUR);

  return fstat (local, &st) == 0 && S_ISREG (st.st_mode) && at < st.st_size
           ? (uint64_t) (st.st_size - (at > 0 ? at : 0)) : 0;
}

/* Where in a file that can be read again what is uploaded begins, or -1. */
static off_t
local_start (int local)
{
  struct stat st;

  return fstat (local, &st) == 0 && S_ISREG (st.st_mode)
           ? lseek (local, 0, SEEK_CUR) : -1;
}

/* A file that was cut while it was read is not what was asked for.  Some have
 * less in them than their size says, always. */
static int
check_whole (const struct transfer *transfer, int local,
             const struct tally *sent, const char *path, struct error **err)
{
  off_t at = lseek (local, 0, SEEK_CUR);
  struct stat st;

  if (sent->size >= transfer->total || fstat (local, &st) < 0
      || (uint64_t) st.st_size >= (uint64_t) at + transfer->total - sent->size)
    return 0;
  return error_set (err, E_FILE_MISMATCH, 0,
                    "%s: the local file became shorter while it was read",
                    path);
}

static int
upload_verified (struct transfer *transfer, int local, const char *path,
                 uint32_t mode, int parents, struct tally *sent,
                 struct error **err)
{
  struct provider_call call = { .deadline_ns = 0,
                                .cancel_fd = transfer_cancel_fd (transfer) };
  struct tally found;
  const off_t start = local_start (local);
  int same = 0;

  if (write_in (transfer, local, mode, parents, sent, err) < 0
      || check_whole (transfer, local, sent, path, err) < 0)
    return -1;
  if (start >= 0 && transfer->reported == sent->size)
    same = transfer_is_like (transfer, transfer->path, local, start,
                             sent->size, err);
  if (same < 0)
    return -1;
  if (!same) {
    if (transfer_read_back (transfer, transfer->path, &found, err) < 0)
      return -1;
    if (!tally_equal (sent, &found) || transfer->reported != sent->size)
      return transfer_mismatch (path, sent, &found, err);
  }
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
  if (files_reach (host, id, path, &record, &transfer.provider, err) < 0
      || !(temporary = temporary_name (path, err)))
    return -1;
  transfer.path = temporary;
  if (upload_verified (&transfer, local, path, mode, parents, &sent, err)
      < 0) {
    remove_temporary (&transfer);
    name_target (err, temporary, path);
    return -1;
  }
  *out = transfer_report (path, &sent);
  return 0;
}

