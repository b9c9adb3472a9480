/* SPDX-License-Identifier: Apache-2.0 */
/* WebSocket frames that go out, and the two texts of the handshake: see
 * <coffer/websocket.h>. */

#define _GNU_SOURCE

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include <coffer/websocket.h>

#include "internal.h"

#define CONTROL_MOST 125

/* ---- the handshake ---- */

int
coffer_websocket_key (char out[COFFER_WEBSOCKET_KEY_SIZE])
{
  uint8_t bytes[16];

  if (getrandom (bytes, sizeof bytes, 0) != (ssize_t) sizeof bytes)
    return -1;
  http_base64 (bytes, sizeof bytes, out);
  return 0;
}

/* 16 bytes are 22 digits, of whose last four bits are nothing, and "==". */
static int
is_key (const char *key)
{
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                               "abcdefghijklmnopqrstuvwxyz0123456789+/";

  return strspn (key, digits) == 22 && strchr ("AQgw", key[21])
         && strcmp (key + 22, "==") == 0;
}

int
coffer_websocket_accept (const char *key,
                         char out[COFFER_WEBSOCKET_ACCEPT_SIZE])
{
  static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  char text[24 + sizeof guid];
  uint8_t digest[20];

  if (!is_key (key)) {
    errno = EINVAL;
    return -1;
  }
  memcpy (text, key, 24);
  memcpy (text + 24, guid, sizeof guid);
  http_sha1 (text, 24 + sizeof guid - 1, digest);
  http_base64 (digest, sizeof digest, out);
  return 0;
}

/* ---- frames ---- */

/* -1 with errno. */
static int
may_write (const struct coffer_websocket *websocket, unsigned kind, int first,
           int last, size_t size)
{
  const int control = websocket_is_control (kind);

  errno = 0;
  if (!websocket_is_kind (kind) || (control && !(first && last))
      || (!control && !first != !!websocket->out_begun))
    errno = EINVAL;
  else if (websocket->out_closed)
    errno = EPIPE;
  else if (control && size > CONTROL_MOST)
    errno = EMSGSIZE;
  return errno ? -1 : 0;
}

static size_t
head_make (uint8_t head[14], unsigned first_byte, int masked, uint64_t size)
{
  const unsigned width = size <= 125 ? 0 : size <= 65535 ? 2 : 8;

  head[0] = (uint8_t) first_byte;
  head[1] = (uint8_t) ((masked ? 0x80 : 0)
                       | (width == 0 ? size : width == 2 ? 126 : 127));
  for (unsigned i = 0; i < width; i++)
    head[2 + i] = (uint8_t) (size >> (8 * (width - 1 - i)));
  return 2 + width;
}

/* A client masks with bytes that nobody can foresee: what a page sends must
 * not look like a request to what stands between. */
static int
frame_add (struct coffer_websocket *websocket, unsigned first_byte,
           const void *bytes, size_t size, struct coffer_buffer *out)
{
  const int masked = !websocket->is_server;
  uint8_t head[14];
  size_t n = head_make (head, first_byte, masked, size);

  if (masked && getrandom (head + n, 4, 0) != 4)
    return -1;
  coffer_buffer_add (out, head, n + (masked ? 4 : 0));
  coffer_buffer_add (out, bytes, size);
  if (out->failed) {
    errno = ENOMEM;
    return -1;
  }
  if (masked && size > 0)
    websocket_mask (out->data + out->size - size, size, head + n, 0);
  return 0;
}

int
coffer_websocket_write_part (struct coffer_websocket *websocket,
                             enum coffer_websocket_kind kind, int first,
                             int last, const void *bytes, size_t size,
                             struct coffer_buffer *out)
{
  if (may_write (websocket, kind, first, last, size) < 0
      || frame_add (websocket, (last ? 0x80U : 0) | (first ? kind : 0), bytes,
                    size, out) < 0)
    return -1;
  if (!websocket_is_control (kind))
    websocket->out_begun = !last;
  websocket->out_closed |= kind == COFFER_WEBSOCKET_CLOSE;
  return 0;
}

int
coffer_websocket_write (struct coffer_websocket *websocket,
                        enum coffer_websocket_kind kind, const void *bytes,
                        size_t size, struct coffer_buffer *out)
{
  if (kind == COFFER_WEBSOCKET_CLOSE
      || (kind == COFFER_WEBSOCKET_TEXT && !websocket_is_utf8 (bytes, size))) {
    errno = EINVAL;
    return -1;
  }
  return coffer_websocket_write_part (websocket, kind, 1, 1, bytes, size,
                                      out);
}

int
coffer_websocket_write_close (struct coffer_websocket *websocket,
                              uint16_t code, const char *reason,
                              struct coffer_buffer *out)
{
  char text[CONTROL_MOST];
  size_t n = reason ? strnlen (reason, sizeof text - 2) : 0;

  if (code != COFFER_WEBSOCKET_NO_CODE && !websocket_is_close_code (code)) {
    errno = EINVAL;
    return -1;
  }
  /* A character that the cut went through goes whole. */
  while (n > 0 && ((unsigned char) reason[n] & 0xc0) == 0x80)
    n--;
  if (n > 0 && !websocket_is_utf8 (reason, n))
    n = 0;
  text[0] = (char) (code >> 8);
  text[1] = (char) (code & 0xff);
  if (n > 0)
    memcpy (text + 2, reason, n);
  return coffer_websocket_write_part (
    websocket, COFFER_WEBSOCKET_CLOSE, 1, 1, text,
    code == COFFER_WEBSOCKET_NO_CODE ? 0 : n + 2, out);
}
