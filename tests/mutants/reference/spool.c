/* SPDX-License-Identifier: Apache-2.0 */
/* Output of a command in the background: the beginning is kept, up to a cap,
 * and the rest counted, so that a command never waits for a reader that does
 * not come. */

#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "keeper.h"

int
spool_open (struct spool *spool, int folder, const char *name, uint64_t cap,
            int *writer)
{
  int ends[2];

  spool->cap = cap;
  spool->file = openat (folder, name, O_WRONLY | O_CLOEXEC);
  if (spool->file < 0 || pipe2 (ends, O_CLOEXEC) < 0)
    return -1;
  spool->pipe = ends[0];
  *writer = ends[1];
  return fcntl (spool->pipe, F_SETFL, O_NONBLOCK);
}

static void
spool_keep (struct spool *spool, const char *bytes, size_t size)
{
  const uint64_t room = spool->cap - spool->kept;
  const size_t part = size < room ? size : (size_t) room;

  if (part > 0 && coffer_write_all (spool->file, bytes, part) >= 0)
    spool->kept += part;
  else if (part > 0)
    spool->cap = spool->kept;   /* no room on the disk: that was all */
  spool->dropped += size - part;
}

/* A fair part: a command that never stops writing does not keep its minder from
 * hearing of other things. */
int
spool_take (struct spool *spool)
{
  char bytes[65536];
  int some = 0;
  ssize_t n;

  for (int turn = 0; turn < 16 && spool->pipe >= 0; turn++) {
    n = read (spool->pipe, bytes, sizeof bytes);
    if (n > 0) {
      spool_keep (spool, bytes, (size_t) n);
      some = 1;
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
      coffer_fd_close (&spool->pipe);
    } else {
      break;
    }
  }
  return some;
}

void
spool_close (struct spool *spool)
{
  coffer_fd_close (&spool->pipe);
  coffer_fd_close (&spool->file);
}
