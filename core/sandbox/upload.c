/* SPDX-License-Identifier: Apache-2.0 */
/* A file into a sandbox.  It goes to a temporary name beside its target and is
 * renamed once it is known to be right, so that neither a failure nor the end
 * of this process shows a file that is half there. */

#include "config.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "sandbox/transfer.h"

#define CLEANUP_MS 10000

/* Whether what came is all, and what its sender says that it is. */
static int
check_sent (const struct upload *upload, struct tally *tally,
            struct error **err)
{
  if (upload->whole && !upload->whole (upload->data))
    return error_set (err, E_BODY, 0, "%s: it ended before it was whole",
                      upload->path);
  tally_end (tally);
  if (upload->sha256 && strcmp (upload->sha256, tally->sha256) != 0)
    return error_set (err, E_BODY, 0, "%s: %llu bytes came, and their sha256 "
                      "is %.16s…, not %.16s…", upload->path,
                      (unsigned long long) tally->size, tally->sha256,
                      upload->sha256);
  return 0;
}

static int
write_in (struct transfer *transfer, const struct upload *upload,
          struct tally *tally, struct error **err)
{
  struct coffer_file_write_opts opts = {
    .size = sizeof opts, .mode = upload->mode,
    .parents = upload->parents != 0, .exclusive = 1
  };
  struct contract_args_file_write args = {
    .sandbox = transfer->sandbox, .path = transfer->path, .opts = &opts
  };
  coffer_autoclose int theirs = -1;
  int fed;

  if (tally_begin (tally, err) < 0
      || transfer_pipe (transfer, 1, &theirs, err) < 0)
    return -1;
  args.in = theirs;
  if (transfer_begin (transfer, COFFER_OP_file_write, &args, err) < 0)
    return -1;
  fed = transfer_feed (transfer, upload->local, tally, err);
  if (fed < 0 || (fed > 0 && check_sent (upload, tally, err) < 0)) {
    transfer_stop (transfer);
    return -1;
  }
  coffer_fd_close (&transfer->pipe);
  if (async_end (&transfer->async, err) < 0)
    return -1;
  if (!fed)
    return error_set (err, E_FILE_MISMATCH, 0,
                      "%s: the provider did not wait for all of it",
                      upload->path);
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

/* The mode of the file that is to be replaced, where nobody names one. */
static uint32_t
mode_there (struct host *host, const char *id, const struct upload *upload,
            const struct provider_call *call)
{
  auto_error struct error *error = NULL;
  auto_json json_t *stat = NULL;
  const char *kind;

  if (sandbox_stat (host, id, upload->path, call, &stat, &error) < 0)
    return 0;
  kind = json_string_value (json_object_get (stat, "kind"));
  return kind && strcmp (kind, "file") == 0
           ? json_integer_value (json_object_get (stat, "mode")) & 0777 : 0;
}

/* An empty file of that name which was not there before: what has been sent
 * then takes its place. */
static int
claim_name (const struct transfer *transfer, const struct upload *upload,
            struct error **err)
{
  struct coffer_file_write_opts opts = { .size = sizeof opts,
                                         .exclusive = 1 };
  struct provider_call call = { .cancel_fd = transfer_cancel_fd (transfer) };
  int ends[2], bad;

  if (pipe2 (ends, O_CLOEXEC) < 0)
    return error_set (err, E_IO, errno, "a pipe");
  close (ends[1]);
  bad = INVOKE (transfer->provider, &call, err, file_write,
                .sandbox = transfer->sandbox, .path = upload->path,
                .in = ends[0], .opts = &opts);
  close (ends[0]);
  return bad;
}

static void
remove_file (const struct transfer *transfer, const char *path)
{
  struct transfer like = { .provider = transfer->provider,
                           .sandbox = transfer->sandbox, .path = path };

  remove_temporary (&like);
}

/* To its name, in one step. */
static int
upload_commit (const struct transfer *transfer, const struct upload *upload,
               struct error **err)
{
  struct provider_call call = { .cancel_fd = transfer_cancel_fd (transfer) };

  if (upload->exclusive && claim_name (transfer, upload, err) < 0)
    return -1;
  if (INVOKE (transfer->provider, &call, err, file_rename,
              .sandbox = transfer->sandbox, .from = transfer->path,
              .to = upload->path) == 0)
    return 0;
  if (upload->exclusive)
    remove_file (transfer, upload->path);
  return -1;
}

static int
upload_verified (struct transfer *transfer, const struct upload *upload,
                 struct tally *sent, struct error **err)
{
  auto_tally struct tally found = { 0 };
  const off_t start = local_start (upload->local);
  int same = 0;

  if (write_in (transfer, upload, sent, err) < 0
      || check_whole (transfer, upload->local, sent, upload->path, err) < 0)
    return -1;
  if (start >= 0 && transfer->reported == sent->size)
    same = transfer_is_like (transfer, transfer->path, upload->local, start,
                             sent->size, err);
  if (same < 0)
    return -1;
  if (!same) {
    if (transfer_read_back (transfer, transfer->path, &found, err) < 0)
      return -1;
    if (!tally_equal (sent, &found) || transfer->reported != sent->size)
      return transfer_mismatch (upload->path, sent, &found, err);
  }
  return upload_commit (transfer, upload, err);
}

int
sandbox_upload_as (struct host *host, const char *id,
                   const struct upload *asked,
                   const struct provider_call *call, json_t **out,
                   struct error **err)
{
  auto_sandbox_record struct sandbox_record *record = NULL;
  auto_transfer struct transfer transfer = {
    .sandbox = id, .call = call, .pipe = -1,
    .total = local_size (asked->local), .what = "uploading"
  };
  auto_free char *temporary = NULL;
  struct upload upload = *asked;
  auto_tally struct tally sent = { 0 };

  if (upload.mode > 07777)
    return error_set (err, E_INVALID, 0, "mode: not between 0 and 07777");
  if (files_reach (host, id, upload.path, &record, &transfer.provider, err)
        < 0
      || !(temporary = temporary_name (upload.path, err)))
    return -1;
  transfer.path = temporary;
  if (upload.mode == 0)
    upload.mode = mode_there (host, id, &upload, call);
  if (upload_verified (&transfer, &upload, &sent, err) < 0) {
    remove_temporary (&transfer);
    name_target (err, temporary, upload.path);
    return -1;
  }
  *out = transfer_report (upload.path, &sent);
  return 0;
}

int
sandbox_upload (struct host *host, const char *id, int local,
                const char *path, uint32_t mode, int parents,
                const struct provider_call *call, json_t **out,
                struct error **err)
{
  const struct upload upload = { .local = local, .path = path, .mode = mode,
                                 .parents = parents };

  return sandbox_upload_as (host, id, &upload, call, out, err);
}
