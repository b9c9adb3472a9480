/* SPDX-License-Identifier: Apache-2.0 */
/* See tally.h.  The buffers are a ring between the copier, who fills them in
 * order, and the thread, which works on them in that order. */

#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sandbox/tally.h"

/* From there on a thread pays for its start. */
#define LONG_BYTES (4 << 20)
#define STACK_SIZE (128 << 10)

static void
hash (void *data, const char *bytes, size_t size)
{
  struct tally *tally = data;

  sha256_add (&tally->context, bytes, size);
}

int
tally_begin_with (struct tally *tally, tally_work *work, void *data,
                  struct error **err)
{
  tally->work = work;
  tally->data = data;
  tally->buffers = malloc (TALLY_BUFFERS * TALLY_CHUNK);
  return tally->buffers ? 0 : error_set (err, E_NO_MEMORY, 0, "a buffer");
}

int
tally_begin (struct tally *tally, struct error **err)
{
  sha256_begin (&tally->context);
  return tally_begin_with (tally, hash, tally, err);
}

static void
sem_take (sem_t *sem)
{
  while (sem_wait (sem) < 0 && errno == EINTR)
    ;
}

static void *
work_run (void *data)
{
  struct tally *tally = data;
  unsigned at;

  for (at = 0;; at = (at + 1) % TALLY_BUFFERS) {
    sem_take (&tally->full);
    if (tally->filled[at] == 0)
      return NULL;
    tally->work (tally->data, tally->buffers + (size_t) at * TALLY_CHUNK,
                 tally->filled[at]);
    sem_post (&tally->empty);
  }
}

/* Without a thread to be had the work is done as it was until then. */
static void
work_beside (struct tally *tally)
{
  pthread_attr_t attr;

  tally->state = TALLY_ALONE;
  if (pthread_attr_init (&attr) != 0)
    return;
  pthread_attr_setstacksize (&attr, STACK_SIZE);
  sem_init (&tally->empty, 0, TALLY_BUFFERS);
  sem_init (&tally->full, 0, 0);
  if (pthread_create (&tally->thread, &attr, work_run, tally) == 0)
    tally->state = TALLY_WITH_THREAD;
  pthread_attr_destroy (&attr);
}

char *
tally_room (struct tally *tally)
{
  if (!tally->has_room && tally->state == TALLY_SHORT && tally->work
      && tally->size >= LONG_BYTES)
    work_beside (tally);
  if (!tally->has_room && tally->state == TALLY_WITH_THREAD)
    sem_take (&tally->empty);
  tally->has_room = 1;
  return tally->buffers + (size_t) tally->next * TALLY_CHUNK;
}

const char *
tally_add (struct tally *tally, size_t size)
{
  const char *bytes = tally_room (tally);

  tally->size += size;
  tally->has_room = 0;
  if (tally->state == TALLY_WITH_THREAD) {
    tally->filled[tally->next] = size;
    tally->next = (tally->next + 1) % TALLY_BUFFERS;
    sem_post (&tally->full);
  }
  else if (tally->work)
    tally->work (tally->data, bytes, size);
  return bytes;
}

/* What has been added is worked on first. */
static void
thread_end (struct tally *tally)
{
  if (tally->state != TALLY_WITH_THREAD)
    return;
  tally_room (tally);
  tally->filled[tally->next] = 0;
  sem_post (&tally->full);
  pthread_join (tally->thread, NULL);
  sem_destroy (&tally->empty);
  sem_destroy (&tally->full);
}

void
tally_end (struct tally *tally)
{
  thread_end (tally);
  tally->state = TALLY_ENDED;
  if (tally->work == hash)
    sha256_end (&tally->context, tally->sha256);
}

void
tally_fini (struct tally *tally)
{
  thread_end (tally);
  free (tally->buffers);
  tally->buffers = NULL;
  tally->state = TALLY_ENDED;
}

int
tally_equal (const struct tally *a, const struct tally *b)
{
  return a->size == b->size && strcmp (a->sha256, b->sha256) == 0;
}
