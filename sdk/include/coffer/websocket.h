/* SPDX-License-Identifier: Apache-2.0 */
/* WebSocket framing (RFC 6455), both ends, without extensions.
 *
 * The first part does no I/O: bytes go in as they come, events come out, and
 * frames to be sent are appended to a buffer.  The second waits at a
 * descriptor.  Of one object, one thread may receive while another sends.
 * Part of libcoffer-http.a. */

#ifndef COFFER_WEBSOCKET_H
#define COFFER_WEBSOCKET_H

#include <stddef.h>
#include <stdint.h>

#include <coffer/buffer.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the handshake ------------------------------------------------------- */

#define COFFER_WEBSOCKET_KEY_SIZE 25            /* with the NUL */
#define COFFER_WEBSOCKET_ACCEPT_SIZE 29

/* A fresh Sec-WebSocket-Key.  -1 with errno. */
int coffer_websocket_key (char out[COFFER_WEBSOCKET_KEY_SIZE]);
/* The Sec-WebSocket-Accept for a client's key, which is anybody's text: -1
 * with errno EINVAL when it is not 16 bytes in base64. */
int coffer_websocket_accept (const char *key,
                             char out[COFFER_WEBSOCKET_ACCEPT_SIZE]);

/* ---- frames -------------------------------------------------------------- */

enum coffer_websocket_kind {
  COFFER_WEBSOCKET_TEXT = 1,
  COFFER_WEBSOCKET_BINARY = 2,
  COFFER_WEBSOCKET_CLOSE = 8,
  COFFER_WEBSOCKET_PING = 9,
  COFFER_WEBSOCKET_PONG = 10
};

enum coffer_websocket_close {
  COFFER_WEBSOCKET_NORMAL = 1000,
  COFFER_WEBSOCKET_GOING_AWAY = 1001,
  COFFER_WEBSOCKET_BAD_PROTOCOL = 1002,
  COFFER_WEBSOCKET_BAD_KIND = 1003,
  COFFER_WEBSOCKET_NO_CODE = 1005,      /* a close without one; never sent */
  COFFER_WEBSOCKET_BAD_BYTES = 1007,
  COFFER_WEBSOCKET_POLICY = 1008,
  COFFER_WEBSOCKET_TOO_LARGE = 1009,
  COFFER_WEBSOCKET_BROKEN = 1011
};

/* {0} with `most` and `is_server` filled in is a new one. */
struct coffer_websocket {
  int is_server;                /* 1: takes masked frames and sends plain ones;
                                 * 0: the other way round */
  size_t most;                  /* bytes of a message; 0: 1 MiB */
  /* For these functions only. */
  struct coffer_buffer message; /* fragments so far */
  struct coffer_buffer control; /* the control frame that is being read */
  struct coffer_buffer pending; /* received, from `looked` on not looked at */
  size_t looked;
  uint64_t left, at;            /* of the frame that is being read */
  uint8_t head[14], have;
  uint8_t kind;                 /* of the message that is being read; 0: none */
  uint8_t taken, closed;
  uint8_t out_begun, out_closed;
  uint16_t problem;             /* what to close with; 0: nothing is wrong */
  int failed;
};

/* A whole message or control frame. */
struct coffer_websocket_event {
  enum coffer_websocket_kind kind;
  const char *bytes;            /* NUL-terminated beyond size; of a close: its
                                 * reason.  Until the next read */
  size_t size;
  uint16_t code;                /* of a close */
};

/* Reads on in `size` bytes of `in`, and is done with *used of them.
 *   1   an event; call again with the rest of the bytes
 *   0   all are used, and more are needed
 *  -1   errno EPROTO or EMSGSIZE: the peer breaks the rules, or a message is
 *       larger than `most`; ENOMEM.  event->code is what to close with.
 * Text and reasons are UTF-8.  After a close nothing more comes out. */
int coffer_websocket_read (struct coffer_websocket *websocket,
                           const void *in, size_t size, size_t *used,
                           struct coffer_websocket_event *event);

/* Appends one frame to `out`: a whole message, or a control frame of at most
 * 125 bytes.  -1 with errno: EINVAL, the kind is none or text is not UTF-8;
 * EMSGSIZE; EPIPE, a close was written before; ENOMEM. */
int coffer_websocket_write (struct coffer_websocket *websocket,
                            enum coffer_websocket_kind kind,
                            const void *bytes, size_t size,
                            struct coffer_buffer *out);
/* The same in parts: `first` begins a message, `last` ends it. */
int coffer_websocket_write_part (struct coffer_websocket *websocket,
                                 enum coffer_websocket_kind kind, int first,
                                 int last, const void *bytes, size_t size,
                                 struct coffer_buffer *out);
/* Appends a close, NO_CODE: without one; the reason is cut at 123 bytes. */
int coffer_websocket_write_close (struct coffer_websocket *websocket,
                                  uint16_t code, const char *reason,
                                  struct coffer_buffer *out);
void coffer_websocket_fini (struct coffer_websocket *websocket);

/* ---- with a descriptor ---------------------------------------------------
 * Each waits until deadline_ns (CLOCK_MONOTONIC) or until cancel_fd is
 * readable: -1 with errno ETIMEDOUT or ECANCELED.  The descriptor is a stream
 * socket and may be blocking. */

/* The next event: 1; 0 when the peer has gone without a close.  Bytes that
 * came with the handshake are given by coffer_websocket_early before.  Nothing
 * is answered: a PING is the caller's to answer with a PONG. */
int coffer_websocket_receive (struct coffer_websocket *websocket, int fd,
                              struct coffer_websocket_event *event,
                              int64_t deadline_ns, int cancel_fd);
int coffer_websocket_early (struct coffer_websocket *websocket,
                            const void *bytes, size_t size);
/* Sends one frame, and is done when the kernel has all of it. */
int coffer_websocket_send (struct coffer_websocket *websocket, int fd,
                           enum coffer_websocket_kind kind,
                           const void *bytes, size_t size,
                           int64_t deadline_ns, int cancel_fd);
int coffer_websocket_close (struct coffer_websocket *websocket, int fd,
                            uint16_t code, const char *reason,
                            int64_t deadline_ns, int cancel_fd);

#ifdef __cplusplus
}
#endif

#endif /* COFFER_WEBSOCKET_H */
