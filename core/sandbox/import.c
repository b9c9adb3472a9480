/* SPDX-License-Identifier: Apache-2.0 */
/* A tar into a folder of a sandbox.  It is the provider that unpacks it, all of
 * it or nothing; what is cut short is never let come to its end there. */

#include "config.h"

#include <coffer/fd.h>

#include "sandbox/request.h"
#include "sandbox/signals.h"
#include "sandbox/transfer.h"

static int
feed_whole (struct transfer *transfer, int local, int (*whole) (void *data),
            void *data, struct error **err)
{
  auto_tally struct tally tally = { 0 };
  int fed;

  if (tally_begin_with (&tally, NULL, NULL, err) < 0)
    return -1;
  fed = transfer_feed (transfer, local, &tally, err);
  if (fed > 0 && whole && !whole (data))
    fed = error_set (err, E_BODY, 0, "the archive ended before it was whole");
  if (fed < 0)
    transfer_stop (transfer);
  return fed;
}

int
sandbox_import (struct host *host, const char *id, const char *path,
                int local, int (*whole) (void *data), void *data,
                const struct provider_call *call, struct error **err)
{
  auto_sandbox_record struct sandbox_record *record = NULL;
  auto_transfer struct transfer transfer = {
    .sandbox = id, .path = path, .call = call, .pipe = -1,
    .what = "unpacking"
  };
  struct contract_args_archive_import args = { .sandbox = id, .path = path };
  coffer_autoclose int theirs = -1;
  int fed;

  if (files_check_path (path, err) < 0
      || host_reach (host, id, &record, &transfer.provider, err) < 0
      || claim_require (transfer.provider, "archives", err) < 0)
    return -1;
  signals_no_sigpipe ();
  if (transfer_pipe (&transfer, 1, &theirs, err) < 0)
    return -1;
  args.in = theirs;
  if (transfer_begin (&transfer, COFFER_OP_archive_import, &args, err) < 0)
    return -1;
  fed = feed_whole (&transfer, local, whole, data, err);
  if (fed < 0)
    return -1;
  coffer_fd_close (&transfer.pipe);
  if (async_end (&transfer.async, err) < 0)
    return -1;
  /* A tar may end before its file does: what follows is taken and dropped. */
  return 0;
}
