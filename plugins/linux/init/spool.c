/* SPDX-License-Identifier: Apache-2.0 */
/* Output of a command in the background, kept until somebody reads it.
 *
 * The first half of the cap is the beginning and stays; the second is the
 * latest and goes round.  What was between is counted and not kept, so that a
 * command never waits for a reader that does not come. */

#include "init.h"

#define O_CLOEXEC_ 02000000
#define O_NONBLOCK_ 04000

void
spool_init (struct spool *spool)
{
  spool->pipe = spool->file = -1;
  spool->total = 0;
}

void
spool_close (struct spool *spool)
{
  fd_close (spool->pipe);
  fd_close (spool->file);
  spool_init (spool);
}

int
spool_open (struct spool *spool, int *writer)
{
  int ends[2];
  long r = SYS (memfd_create, "output", 1);

  *writer = -1;
  if (r < 0)
    return (int) r;
  spool->file = (int) r;
  r = SYS (pipe2, ends, O_CLOEXEC_);
  if (r < 0)
    return (int) r;
  spool->pipe = ends[0];
  *writer = ends[1];
  r = SYS (fcntl, spool->pipe, 4 /* F_SETFL */, O_NONBLOCK_);
  return r < 0 ? (int) r : 0;
}

/* Where a byte lies, and how many may follow it there. */
static uint64_t
spool_place (uint64_t at, uint64_t cap, uint64_t *room)
{
  const uint64_t tail = cap / 2, head = cap - tail;

  if (at < head) {
    *room = head - at;
    return at;
  }
  if (tail == 0) {
    *room = 0;
    return head;
  }
  *room = tail - (at - head) % tail;
  return head + (at - head) % tail;
}

/* Short of memory it is a hole, which reads as zeros: less would be a lie about
 * the bytes that follow. */
static void
spool_keep (struct spool *spool, uint64_t cap, const char *bytes, uint64_t n)
{
  uint64_t place, room, part;

  while (n > 0) {
    place = spool_place (spool->total, cap, &room);
    part = room < n ? room : n;
    if (room == 0) {            /* a cap of one byte has no latest */
      spool->total += n;
      return;
    }
    SYS (pwrite64, spool->file, bytes, part, place);
    spool->total += part;
    bytes += part;
    n -= part;
  }
}

void
spool_take (struct spool *spool, uint64_t cap, uint64_t most)
{
  static char bytes[65536];
  uint64_t taken = 0;
  long n;

  while (spool->pipe >= 0 && taken < most) {
    n = SYS (read, spool->pipe, bytes, sizeof bytes);
    if (n == -EAGAIN_ || n == -EINTR_)
      return;
    if (n <= 0) {
      fd_close (spool->pipe);
      spool->pipe = -1;
      return;
    }
    taken += (uint64_t) n;
    if (cap > 0)
      spool_keep (spool, cap, bytes, (uint64_t) n);
  }
}
