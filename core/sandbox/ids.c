/* SPDX-License-Identifier: Apache-2.0 */
/* Sandbox ids: "sb-" and 26 characters of base32, 48 bits of milliseconds and
 * 82 random bits.  The alphabet is in byte order, so ids sort by time; within
 * a millisecond, and when the clock steps back, this process counts on from
 * its last id by a random step.  A child of fork starts afresh, since it
 * would otherwise repeat what its parent makes. */

#include "config.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "sandbox/sandbox.h"

#define ID_DIGITS 26

/* No i, l, o, u: ids are read aloud and typed. */
static const char alphabet[] = "0123456789abcdefghjkmnpqrstvwxyz";

/* The last id made. */
struct id_state {
  pid_t pid;
  uint64_t ms;
  unsigned __int128 random;     /* 82 bits */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct id_state last;

static int
random_bytes (void *out, size_t size)
{
  char *p = out;

  while (size > 0) {
    ssize_t n = getrandom (p, size, 0);

    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return -1;
    p += n;
    size -= (size_t) n;
  }
  return 0;
}

/* The next (ms, random) after `state`, whose time is at least now_ms. */
static int
id_advance_locked (struct id_state *state, uint64_t now_ms)
{
  const unsigned __int128 end = (unsigned __int128) 1 << 82;
  unsigned __int128 fresh = 0;
  uint32_t step;

  if (state->pid == getpid () && now_ms <= state->ms) {
    if (random_bytes (&step, sizeof step) < 0)
      return -1;
    fresh = state->random + step + 1;
    if (fresh < end) {
      state->random = fresh;
      return 0;
    }
    now_ms = state->ms + 1;
  }
  if (random_bytes (&fresh, 11) < 0)
    return -1;
  state->pid = getpid ();
  state->ms = now_ms & 0xffffffffffffULL;
  /* The upper half stays free, so that counting on seldom overflows. */
  state->random = fresh & ((end >> 1) - 1);
  return 0;
}

int
sandbox_id_new (char out[SANDBOX_ID_SIZE], struct error **err)
{
  unsigned __int128 rest;
  struct id_state made;
  uint64_t now_ms = (uint64_t) coffer_realtime_ns () / 1000000;
  int failed, i;

  pthread_mutex_lock (&lock);
  failed = id_advance_locked (&last, now_ms) < 0;
  made = last;
  pthread_mutex_unlock (&lock);
  if (failed)
    return error_set (err, E_INTERNAL, errno, "random bytes for an id");

  /* 130 bits: the 48 of time above the 82 random ones; the value needs two
   * bits more than fit, so the digits are taken from both parts. */
  memcpy (out, "sb-", 3);
  rest = made.random;
  for (i = ID_DIGITS - 1; i >= ID_DIGITS - 16; i--) {   /* 16 * 5 = 80 */
    out[3 + i] = alphabet[(int) (rest & 31)];
    rest >>= 5;
  }
  rest |= (unsigned __int128) made.ms << 2;             /* 2 + 48 = 50 */
  for (; i >= 0; i--) {
    out[3 + i] = alphabet[(int) (rest & 31)];
    rest >>= 5;
  }
  out[3 + ID_DIGITS] = '\0';
  return 0;
}

int
sandbox_id_valid (const char *id)
{
  return id && strlen (id) == SANDBOX_ID_SIZE - 1
         && memcmp (id, "sb-", 3) == 0
         && strspn (id + 3, alphabet) == ID_DIGITS;
}
