/* SPDX-License-Identifier: Apache-2.0 */
/* The buffers that a copy goes through, its length, and its SHA-256.
 *
 *   while ((n = read (fd, tally_room (&tally), TALLY_CHUNK)) > 0)
 *     use (tally_add (&tally, n), n);
 *
 * What is long is hashed by a thread of its own while its copier is in the
 * kernel: that is a third of what a large copy takes.  A tally belongs to one
 * thread, and is not moved while it is used. */

#ifndef SANDBOX_TALLY_H
#define SANDBOX_TALLY_H

#include <pthread.h>
#include <semaphore.h>

#include "base/error.h"
#include "base/sha256.h"

#define TALLY_CHUNK (256 << 10)
#define TALLY_BUFFERS 4

/* What is done with the bytes, in their order; by the tally's thread also. */
typedef void tally_work (void *data, const char *bytes, size_t size);

struct tally {
  uint64_t size;
  char sha256[SHA256_HEX_SIZE]; /* from tally_end on; empty: not hashed */
  /* private: */
  tally_work *work;             /* NULL: none */
  void *data;
  SHA2_CTX context;
  char *buffers;                /* TALLY_BUFFERS of TALLY_CHUNK */
  unsigned next;                /* which of them is filled next */
  size_t filled[TALLY_BUFFERS]; /* 0: no more comes */
  int has_room;                 /* ours is the buffer that is next */
  enum { TALLY_SHORT, TALLY_ALONE, TALLY_WITH_THREAD, TALLY_ENDED } state;
  pthread_t thread;
  sem_t empty, full;
};

/* All of it is zero before. */
int tally_begin (struct tally *tally, struct error **err);
/* With other work than to hash; NULL: they are only counted. */
int tally_begin_with (struct tally *tally, tally_work *work, void *data,
                      struct error **err);
/* TALLY_CHUNK bytes to be filled: the same until something is added. */
char *tally_room (struct tally *tally);
/* The first `size` bytes of what tally_room gave, at least one.  They are
 * returned, to be read until tally_room is called again. */
const char *tally_add (struct tally *tally, size_t size);
/* All work is done when it returns. */
void tally_end (struct tally *tally);
void tally_fini (struct tally *tally);
#define auto_tally __attribute__ ((cleanup (tally_fini)))

/* Of two that have ended, and were hashed. */
int tally_equal (const struct tally *a, const struct tally *b);

#endif /* SANDBOX_TALLY_H */
