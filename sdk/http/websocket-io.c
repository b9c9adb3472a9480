/* SPDX-License-Identifier: Apache-2.0 */
/* WebSocket at a descriptor: see <coffer/websocket.h>. */

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include <coffer/fd.h>
#include <coffer/websocket.h>

#include "internal.h"

#define PIECE 16384

/* Bytes that have come, 0 at the end of the stream, -1 with errno. */
static ssize_t
receive_some (int fd, char *bytes, size_t size, int64_t deadline_ns,
              int cancel_fd)
{
  ssize_t n;

  do {
    if (coffer_wait_fd (fd, POLLIN, deadline_ns, cancel_fd) <= 0)
      return -1;
    n = recv (fd, bytes, size, MSG_DONTWAIT);
  } while (n < 0 && (errno == EINTR || errno == EAGAIN));
  return n;
}

int
coffer_websocket_early (struct coffer_websocket *websocket, const void *bytes,
                        size_t size)
{
  coffer_buffer_add (&websocket->pending, bytes, size);
  if (!websocket->pending.failed)
    return 0;
  errno = ENOMEM;
  return -1;
}

/* From what has come: as coffer_websocket_read. */
static int
pending_read (struct coffer_websocket *websocket,
              struct coffer_websocket_event *event)
{
  struct coffer_buffer *pending = &websocket->pending;
  size_t used;
  const char *from = pending->data ? pending->data + websocket->looked : "";
  const int r = coffer_websocket_read (websocket, from,
                                       pending->size - websocket->looked,
                                       &used, event);

  websocket->looked += used;
  if (websocket->looked == pending->size) {
    coffer_buffer_clear (pending);
    websocket->looked = 0;
  }
  return r;
}

/* A peer that sends without a pause must not hold us beyond the deadline. */
int
coffer_websocket_receive (struct coffer_websocket *websocket, int fd,
                          struct coffer_websocket_event *event,
                          int64_t deadline_ns, int cancel_fd)
{
  char coffer_unfilled bytes[PIECE];
  ssize_t n;
  int r = 0;

  for (;;) {
    if (websocket->pending.size > 0 || websocket->failed)
      r = pending_read (websocket, event);
    if (r != 0)
      return r;
    if (websocket->closed)
      return 0;
    if (coffer_now_ns () >= deadline_ns) {
      errno = ETIMEDOUT;
      return -1;
    }
    n = receive_some (fd, bytes, sizeof bytes, deadline_ns, cancel_fd);
    if (n <= 0)
      return (int) n;
    if (coffer_websocket_early (websocket, bytes, (size_t) n) < 0)
      return -1;
  }
}

static int
send_frame (struct coffer_buffer *frame, int result, int fd,
            int64_t deadline_ns, int cancel_fd)
{
  if (result == 0)
    result = coffer_write_until (fd, frame->data, frame->size, deadline_ns,
                                 cancel_fd);
  coffer_buffer_free (frame);
  return result;
}

int
coffer_websocket_send (struct coffer_websocket *websocket, int fd,
                       enum coffer_websocket_kind kind, const void *bytes,
                       size_t size, int64_t deadline_ns, int cancel_fd)
{
  struct coffer_buffer frame = { 0 };
  const int r = coffer_websocket_write (websocket, kind, bytes, size, &frame);

  return send_frame (&frame, r, fd, deadline_ns, cancel_fd);
}

int
coffer_websocket_close (struct coffer_websocket *websocket, int fd,
                        uint16_t code, const char *reason,
                        int64_t deadline_ns, int cancel_fd)
{
  struct coffer_buffer frame = { 0 };
  const int r = coffer_websocket_write_close (websocket, code, reason,
                                              &frame);

  return send_frame (&frame, r, fd, deadline_ns, cancel_fd);
}
