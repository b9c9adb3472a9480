/* SPDX-License-Identifier: Apache-2.0 */
/* Streams that go through the provider, as a careless one would have them: a
 * thread each, which ends with its stream. */

#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <coffer/buffer.h>
#include <coffer/fd.h>

#include "mutant.h"

#define MIB ((uint64_t) 1 << 20)

struct pump {
  int from, to;
  int fault;
  uint64_t moved;
  int output_seen;              /* of the command whose input this is */
};

static volatile unsigned flushes;
static _Atomic unsigned long outputs;   /* bytes that came out of commands */

int
thread_start (void *(*run) (void *), void *data)
{
  pthread_attr_t attr;
  pthread_t thread;
  int r;

  pthread_attr_init (&attr);
  pthread_attr_setstacksize (&attr, 256 << 10);
  pthread_attr_setdetachstate (&attr, PTHREAD_CREATE_DETACHED);
  r = pthread_create (&thread, &attr, run, data);
  pthread_attr_destroy (&attr);
  return r;
}

void
pump_flush (void)
{
  flushes++;
}

/* ---- outputs ------------------------------------------------------------- */

/* A short first piece stays until the end of the stream or the next call. */
static void
hold (const struct pump *pump)
{
  struct pollfd more = {.fd = pump->from, .events = 0};
  const unsigned before = flushes;

  while (before == flushes && poll (&more, 1, 20) == 0)
    ;
}

static void
output_spoil (struct pump *pump, char *bytes, ssize_t *n)
{
  const uint64_t end = pump->moved + (uint64_t) *n;
  size_t at;

  switch (pump->fault) {
  case PUMP_LATE:
    if (pump->moved == 0 && *n > 8 && *n < 64)
      hold (pump);
    break;
  case PUMP_BYTE_LOST:
    if (pump->moved < MIB && end >= MIB) {
      at = (size_t) (MIB - pump->moved) - 1;
      memmove (bytes + at, bytes + at + 1, (size_t) *n - at - 1);
      --*n;
    }
    break;
  case PUMP_CUT:
    if (end > 64 << 10)
      *n = pump->moved < 64 << 10 ? (ssize_t) ((64 << 10) - pump->moved) : 0;
    break;
  default:
    break;
  }
  pump->moved = end;
}

static void *
output_run (void *data)
{
  struct pump *pump = data;
  char bytes[65536];
  ssize_t n;

  while ((n = read (pump->from, bytes, sizeof bytes)) > 0) {
    output_spoil (pump, bytes, &n);
    outputs += (unsigned long) n;
    if (coffer_write_all (pump->to, bytes, (size_t) n) < 0)
      break;
  }
  coffer_fd_close (&pump->from);
  coffer_fd_close (&pump->to);
  free (pump);
  return NULL;
}

/* ---- inputs -------------------------------------------------------------- */

static ssize_t
without_nul (char *bytes, ssize_t n)
{
  ssize_t kept = 0;

  for (ssize_t i = 0; i < n; i++)
    if (bytes[i])
      bytes[kept++] = bytes[i];
  return kept;
}

/* All of a short input that comes at once: 1 when that was its end. */
static int
gather (const struct pump *pump, char *bytes, size_t size, ssize_t *total)
{
  struct pollfd in = {.fd = pump->from, .events = POLLIN};
  ssize_t n;

  *total = 0;
  while ((size_t) *total < size && poll (&in, 1, 100) > 0) {
    n = read (pump->from, bytes + *total, size - (size_t) *total);
    if (n <= 0)
      return 1;
    *total += n;
  }
  return 0;
}

static void
input_rest (struct pump *pump)
{
  char bytes[65536];
  ssize_t n;

  while ((n = read (pump->from, bytes, sizeof bytes)) > 0) {
    pump->moved += (uint64_t) n;
    /* The end of what fits, where nothing has come back. */
    if (pump->fault == PUMP_INPUT_CUT && pump->moved > MIB && outputs == 0)
      continue;
    if (coffer_write_all (pump->to, bytes, (size_t) n) < 0)
      return;
  }
}

static void *
input_run (void *data)
{
  struct pump *pump = data;
  char bytes[40000];
  ssize_t n;
  int ended = gather (pump, bytes, sizeof bytes, &n);

  pump->moved = (uint64_t) n;
  if (ended && pump->fault == PUMP_INPUT_NUL)
    n = without_nul (bytes, n);
  if (coffer_write_all (pump->to, bytes, (size_t) n) >= 0 && !ended)
    input_rest (pump);
  /* A short input whose end nobody hears of. */
  while (pump->fault == PUMP_INPUT_OPEN && pump->moved < 16
         && poll (&(struct pollfd) {.fd = pump->to}, 1, 1000) == 0)
    ;
  coffer_fd_close (&pump->from);
  coffer_fd_close (&pump->to);
  free (pump);
  return NULL;
}

/* ---- beginnings ---------------------------------------------------------- */

/* The command's end of a new pipe; ours and a copy of `fd` go to a thread. */
static int
pump_new (int fault, int fd, int is_input)
{
  struct pump *pump = calloc (1, sizeof *pump);
  int ends[2], copy = fcntl (fd, F_DUPFD_CLOEXEC, 3);

  if (!pump || copy < 0 || pipe2 (ends, O_CLOEXEC) < 0)
    abort ();
  pump->fault = fault;
  pump->from = is_input ? copy : ends[0];
  pump->to = is_input ? ends[1] : copy;
  if (thread_start (is_input ? input_run : output_run, pump))
    abort ();
  return is_input ? ends[0] : ends[1];
}

int
pump_output (enum pump_fault fault, int fd)
{
  return fd < 0 ? -1 : pump_new ((int) fault, fd, 0);
}

int
pump_input (enum pump_fault fault, int fd)
{
  outputs = 0;
  return fd < 0 ? -1 : pump_new ((int) fault, fd, 1);
}

/* ---- two at once --------------------------------------------------------- */

struct pair {
  int from[2], to[2];
  enum pair_fault fault;
};

/* Reads both to their ends, or to where they are too long to be kept. */
static int
pair_read (struct pair *pair, struct coffer_buffer text[2])
{
  struct pollfd fds[2] = {{.fd = pair->from[0], .events = POLLIN},
                          {.fd = pair->from[1], .events = POLLIN}};
  char bytes[65536];
  ssize_t n;

  while (fds[0].fd >= 0 || fds[1].fd >= 0) {
    poll (fds, 2, -1);
    for (int i = 0; i < 2; i++) {
      if (fds[i].fd < 0 || !fds[i].revents)
        continue;
      n = read (fds[i].fd, bytes, sizeof bytes);
      if (n <= 0)
        fds[i].fd = -1;
      else
        coffer_buffer_add (&text[i], bytes, (size_t) n);
    }
  }
  return !text[0].failed && !text[1].failed;
}

/* Two neighbouring lines of a long stream change places. */
static void
reorder (struct coffer_buffer *text)
{
  char *a = text->size > 5000 ? strchr (text->data + 2000, '\n') : NULL;
  char *b = a ? strchr (a + 1, '\n') : NULL, *c = b ? strchr (b + 1, '\n') : NULL;
  char first[64];

  if (!c || b - a >= 64 || c - a >= 128)
    return;
  memcpy (first, a, (size_t) (b - a));
  memmove (a, b, (size_t) (c - b));
  memcpy (a + (c - b), first, (size_t) (b - a));
}

static void
pair_spoil (enum pair_fault fault, struct coffer_buffer text[2])
{
  struct coffer_buffer swap = text[0];
  int both = text[0].size > 0 && text[1].size > 0 && text[0].size < 1000;

  if (fault == PAIR_SWAPPED && both) {
    text[0] = text[1];
    text[1] = swap;
  } else if (fault == PAIR_MERGED && both) {
    coffer_buffer_add (&text[0], text[1].data, text[1].size);
    coffer_buffer_clear (&text[1]);
  } else if (fault == PAIR_REORDERED) {
    reorder (&text[1]);
  }
}

static void *
pair_run (void *data)
{
  struct coffer_buffer text[2] = {{0}, {0}};
  struct pair *pair = data;

  if (pair_read (pair, text))
    pair_spoil (pair->fault, text);
  for (int i = 0; i < 2; i++) {
    if (text[i].size > 0)
      coffer_write_all (pair->to[i], text[i].data, text[i].size);
    coffer_buffer_free (&text[i]);
    coffer_fd_close (&pair->from[i]);
    coffer_fd_close (&pair->to[i]);
  }
  free (pair);
  return NULL;
}

void
pump_pair (enum pair_fault fault, int out, int err, int given[2])
{
  struct pair *pair = calloc (1, sizeof *pair);
  const int real[2] = {out, err};
  int ends[2];

  if (!pair)
    abort ();
  pair->fault = fault;
  for (int i = 0; i < 2; i++) {
    pair->to[i] = fcntl (real[i], F_DUPFD_CLOEXEC, 3);
    if (pair->to[i] < 0 || pipe2 (ends, O_CLOEXEC) < 0)
      abort ();
    pair->from[i] = ends[0];
    given[i] = ends[1];
  }
  if (thread_start (pair_run, pair))
    abort ();
}

/* ---- connections --------------------------------------------------------- */

struct one_way {
  int from, to;
  int fault;
};

static void *
one_way_run (void *data)
{
  struct one_way *way = data;
  char bytes[16384];
  uint64_t moved = 0;
  ssize_t n;

  while ((n = read (way->from, bytes, sizeof bytes)) > 0) {
    moved += (uint64_t) n;
    if (way->fault == RELAY_CUT && moved > 512 << 10)
      break;
    if (way->fault == RELAY_GARBLED)
      bytes[0] ^= 1;
    if (coffer_write_all (way->to, bytes, (size_t) n) < 0)
      break;
  }
  /* With the end of a short message both ways end. */
  shutdown (way->to, way->fault == RELAY_NO_HALF_CLOSE && moved > 45
                     && moved < 64 ? SHUT_RDWR : SHUT_WR);
  coffer_fd_close (&way->from);
  coffer_fd_close (&way->to);
  free (way);
  return NULL;
}

static void
one_way_start (int from, int to, int fault)
{
  struct one_way *way = calloc (1, sizeof *way);

  if (!way)
    abort ();
  *way = (struct one_way) {fcntl (from, F_DUPFD_CLOEXEC, 3),
                           fcntl (to, F_DUPFD_CLOEXEC, 3), fault};
  if (thread_start (one_way_run, way))
    abort ();
}

int
relay (enum relay_fault fault, int fd)
{
  int pair[2];

  if (socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
    abort ();
  one_way_start (pair[0], fd, fault == RELAY_NO_HALF_CLOSE ? (int) fault : -1);
  one_way_start (fd, pair[0], (int) fault);
  close (pair[0]);
  return pair[1];
}
