/* SPDX-License-Identifier: Apache-2.0 */
/* Files between the caller and a sandbox: what upload.c and download.c share.
 *
 * Both ways the bytes are hashed once while they pass, and then the sandbox's
 * side is read through the provider and compared: what a provider says about
 * itself is no proof that the bytes arrived.  Where the local side is a file it
 * is compared with that; else, and where these differ, by its hash. */

#ifndef SANDBOX_TRANSFER_H
#define SANDBOX_TRANSFER_H

#include "sandbox/async.h"
#include "sandbox/host.h"
#include "sandbox/tally.h"

/* One transfer: a provider call on its thread and our end of its pipe. */
struct transfer {
  struct provider *provider;
  const char *sandbox, *path;
  const struct provider_call *call;
  struct async_call async;
  int pipe;
  uint64_t total;               /* for progress; 0: not known */
  const char *what;
  json_t *stat;                 /* what the provider emitted last */
  uint64_t reported;            /* its moved_bytes */
};

/* Gives up.  A provider that takes the end of the pipe for the end of the file
 * has then written a temporary file, which is removed. */
void transfer_stop (struct transfer *transfer);
void transfer_fini (struct transfer *transfer);
#define auto_transfer __attribute__ ((cleanup (transfer_fini)))

/* Our end of a new pipe, and *theirs, which the call reads or writes. */
int transfer_pipe (struct transfer *transfer, int reads, int *theirs,
                   struct error **err);
/* Starts the call that takes the other end. */
int transfer_begin (struct transfer *transfer, uint32_t op, const void *args,
                    struct error **err);
/* The sink of its file_stat: data is the transfer. */
int transfer_take_stat (void *data, const struct contract_record *type,
                        void *record);
/* Waits for `fd`: our end of the pipe, or where the bytes come from.  1: it
 * is ready; 0: the provider's call has returned; -1: given up. */
int transfer_wait (const struct transfer *transfer, int fd, short events,
                   struct error **err);
void transfer_progress (const struct transfer *transfer, uint64_t done);
int transfer_cancel_fd (const struct transfer *transfer);

/* What `local` has into our end of the pipe, through a tally that has begun.  1: all of it; 0: the provider has
 * returned before that, and its own error says why. */
int transfer_feed (struct transfer *transfer, int local, struct tally *tally,
                   struct error **err);

/* The whole file once through the provider, each piece to `take`.  The tally is
 * zero before, and the caller's to end also when it fails (auto_tally). */
typedef int take_bytes (void *data, const char *bytes, size_t size,
                        struct error **err);
int transfer_read (struct transfer *transfer, struct tally *tally,
                   take_bytes *take, void *data, struct error **err);
/* The same again, to see what is really there. */
int transfer_read_back (const struct transfer *like, const char *path,
                        struct tally *tally, struct error **err);

/* The same, byte by byte against a local file from `at` on, which takes less
 * than to hash them: 1 when all `size` bytes are the same, 0 when they are not,
 * -1 when it cannot be read. */
int transfer_is_like (const struct transfer *like, const char *path, int local,
                      off_t at, uint64_t size, struct error **err);

/* E_FILE_MISMATCH.  Returns -1. */
int transfer_mismatch (const char *path, const struct tally *ours,
                       const struct tally *theirs, struct error **err);
/* {"path","size_bytes","sha256"} */
json_t *transfer_report (const char *path, const struct tally *tally);

/* 1 to 4095 bytes, and none of it leads upwards. */
int files_check_path (const char *path, struct error **err);
/* The sandbox's provider, which must claim files; the path is checked, and is
 * not that of a folder. */
int files_reach (struct host *host, const char *id, const char *path,
                 struct sandbox_record **record, struct provider **provider,
                 struct error **err);

#endif /* SANDBOX_TRANSFER_H */
