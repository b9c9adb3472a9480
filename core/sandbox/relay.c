/* SPDX-License-Identifier: Apache-2.0 */
/* See relay.h. */

#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "sandbox/relay.h"

#define RELAY_BUFFER 65536
#define RELAY_STEP (1 << 20)

void
relay_init (struct relay *relay, int from, int to, enum relay_mode mode)
{
  memset (relay, 0, sizeof *relay);
  relay->from = from;
  relay->to = to;
  relay->mode = mode;
}

void
relay_fini (struct relay *relay)
{
  free (relay->buffer);
  relay->buffer = NULL;
}

void
relay_poll (const struct relay *relay, struct pollfd *pollfd)
{
  pollfd->fd = -1;
  pollfd->events = pollfd->revents = 0;
  if (!relay_active (relay))
    return;
  if (relay->size > 0 || relay->wait_sink) {
    pollfd->fd = relay->to;
    pollfd->events = POLLOUT;
  } else {
    pollfd->fd = relay->from;
    pollfd->events = POLLIN;
  }
}

void
relay_poll_sink (const struct relay *relay, struct pollfd *pollfd)
{
  pollfd->fd = relay_active (relay) && relay->size == 0 && !relay->wait_sink
                 ? relay->to : -1;
  pollfd->events = pollfd->revents = 0; /* POLLERR comes unasked */
}

static void
sink_gone (struct relay *relay, int code)
{
  relay->end = RELAY_SINK_GONE;
  relay->sink_errno = code;
}

/* 1: go on; 0: wait. */
static int
step_splice (struct relay *relay)
{
  ssize_t n = splice (relay->from, NULL, relay->to, NULL, RELAY_STEP,
                      SPLICE_F_MOVE | SPLICE_F_NONBLOCK);

  if (n > 0) {
    relay->moved += (uint64_t) n;
    relay->wait_sink = 0;
    return 0;                   /* poll says whether there is more */
  }
  if (n == 0) {
    relay->end = RELAY_SOURCE_ENDED;
    return 0;
  }
  switch (errno) {
  case EINTR:
    return 0;
  case EAGAIN:
    /* The sink said that it had room, and still did not take any: not a
     * pipe's way, so copy. */
    if (relay->wait_sink)
      relay->mode = RELAY_COPY;
    relay->wait_sink = !relay->wait_sink;
    return 0;
  case EINVAL:                  /* a terminal, an append-only file, … */
  case ENOSYS:
    relay->mode = RELAY_COPY;
    relay->wait_sink = 0;
    return 1;
  default:
    sink_gone (relay, errno);
    return 0;
  }
}

/* A write to a pipe of more than this may block though poll said that there
 * is room. */
static size_t
write_size (const struct relay *relay)
{
  struct stat st;

  if (relay->size <= PIPE_BUF || fstat (relay->to, &st) < 0
      || S_ISREG (st.st_mode) || S_ISCHR (st.st_mode))
    return relay->size;
  return PIPE_BUF;
}

static void
buffer_write (struct relay *relay)
{
  ssize_t n;

  if (relay->mode == RELAY_CALL) {
    relay->output (relay->data, relay->stream, relay->buffer + relay->start,
                   relay->size);
    relay->size = 0;
    return;
  }
  n = write (relay->to, relay->buffer + relay->start, write_size (relay));
  if (n >= 0) {
    relay->start += (size_t) n;
    relay->size -= (size_t) n;
  } else if (errno != EINTR && errno != EAGAIN) {
    sink_gone (relay, errno);
  }
}

/* 0, or -1: out of memory. */
static int
buffer_read (struct relay *relay, size_t limit)
{
  ssize_t n;

  if (!relay->buffer)
    relay->buffer = malloc (RELAY_BUFFER);
  if (!relay->buffer)
    return -1;
  n = read (relay->from, relay->buffer,
            limit < RELAY_BUFFER ? limit : RELAY_BUFFER);
  if (n > 0) {
    relay->start = 0;
    relay->size = (size_t) n;
    relay->moved += (uint64_t) n;
  } else if (n == 0 || (errno != EINTR && errno != EAGAIN)) {
    /* A terminal whose other side is closed says EIO. */
    relay->end = RELAY_SOURCE_ENDED;
  }
  return 0;
}

static int
step_copy (struct relay *relay)
{
  if (relay->size == 0 && buffer_read (relay, RELAY_BUFFER) < 0)
    return -1;
  if (relay->size > 0 && relay->mode == RELAY_CALL)
    buffer_write (relay);
  return 0;
}

int
relay_step (struct relay *relay, const struct pollfd *pollfd)
{
  int to_sink = pollfd->fd == relay->to && (relay->size || relay->wait_sink);

  if (pollfd->fd < 0 || pollfd->revents == 0 || !relay_active (relay))
    return 0;
  if (to_sink && relay->size > 0) {
    buffer_write (relay);
    return 0;
  }
  if (relay->mode == RELAY_SPLICE && !step_splice (relay))
    return 0;
  return step_copy (relay);
}

/* Waits for room in the sink, with no deadline but the caller's patience. */
static int
wait_sink (const struct relay *relay, int cancel_fd)
{
  struct pollfd fds[2] = { { .fd = relay->to, .events = POLLOUT },
                           { .fd = cancel_fd, .events = POLLIN } };

  while (poll (fds, 2, -1) < 0)
    if (errno != EINTR)
      return -1;
  return fds[1].revents ? -1 : 0;
}

int
relay_drain (struct relay *relay, int cancel_fd)
{
  int held = 0;
  size_t left;

  if (!relay_active (relay))
    return 0;
  if (ioctl (relay->from, FIONREAD, &held) < 0 || held < 0)
    held = 0;
  left = (size_t) held;
  /* From splice's side nothing waits in the buffer. */
  if (relay->mode == RELAY_SPLICE)
    relay->mode = RELAY_COPY;
  while (relay_active (relay) && (relay->size > 0 || left > 0)) {
    if (relay->size == 0) {
      if (buffer_read (relay, left) < 0)
        return -1;
      if (relay->size == 0)
        break;
      left -= relay->size < left ? relay->size : left;
    }
    if (relay->mode != RELAY_CALL && wait_sink (relay, cancel_fd) < 0)
      return 0;
    buffer_write (relay);
  }
  return 0;
}
