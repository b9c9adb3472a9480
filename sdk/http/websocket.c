/* SPDX-License-Identifier: Apache-2.0 */
/* WebSocket frames that come in: see <coffer/websocket.h>.  A head is judged
 * before a byte behind it is kept, so that a length costs nothing but what was
 * sent. */

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include <coffer/websocket.h>

#include "internal.h"

#define MOST_BY_DEFAULT (1024 * 1024)
#define KEPT_ROOM 65536         /* more than this is given back when empty */

#define FIN 0x80
#define RESERVED 0x70
#define MASKED 0x80

enum { TAKEN_MESSAGE = 1, TAKEN_CONTROL = 2 };

static int
refuse (struct coffer_websocket *websocket, int code, uint16_t problem,
        struct coffer_websocket_event *event)
{
  if (!websocket->failed) {
    websocket->failed = code;
    websocket->problem = problem;
  }
  memset (event, 0, sizeof *event);
  event->code = websocket->problem;
  errno = websocket->failed;
  return -1;
}

int
websocket_is_control (unsigned kind)
{
  return kind >= COFFER_WEBSOCKET_CLOSE;
}

int
websocket_is_kind (unsigned kind)
{
  return kind == COFFER_WEBSOCKET_TEXT || kind == COFFER_WEBSOCKET_BINARY
         || (kind >= COFFER_WEBSOCKET_CLOSE && kind <= COFFER_WEBSOCKET_PONG);
}

int
websocket_is_utf8 (const char *text, size_t size)
{
  uint32_t point;
  size_t n;

  while (size > 0) {
    n = (unsigned char) *text < 0x80 ? 1
                                     : coffer_utf8_decode (text, size, &point);
    if (n == 0)
      return 0;
    text += n;
    size -= n;
  }
  return 1;
}

int
websocket_is_close_code (uint16_t code)
{
  return (code >= 1000 && code <= 1014 && code != 1004 && code != 1005
          && code != 1006)
         || (code >= 3000 && code <= 4999);
}

void
websocket_mask (char *bytes, size_t size, const uint8_t key[4], uint64_t at)
{
  uint8_t turned[8];
  uint64_t word, mask;
  size_t i = 0;

  for (i = 0; i < 8; i++)
    turned[i] = key[(at + i) % 4];
  memcpy (&mask, turned, 8);
  for (i = 0; i + 8 <= size; i += 8) {
    memcpy (&word, bytes + i, 8);
    word ^= mask;
    memcpy (bytes + i, &word, 8);
  }
  for (; i < size; i++)
    bytes[i] = (char) (bytes[i] ^ turned[i % 8]);
}

/* ---- the head ------------------------------------------------------------ */

static unsigned
head_kind (const struct coffer_websocket *websocket)
{
  return websocket->head[0] & 0x0f;
}

/* Bytes of a head that begins with these two. */
static uint8_t
head_size (const uint8_t *head)
{
  const unsigned length = head[1] & 0x7f;

  return (uint8_t) (2 + (length == 126 ? 2 : length == 127 ? 8 : 0)
                    + (head[1] & MASKED ? 4 : 0));
}

static int
first_bytes_are_sound (const struct coffer_websocket *websocket)
{
  const uint8_t *head = websocket->head;
  const unsigned kind = head_kind (websocket);

  if (head[0] & RESERVED || (kind != 0 && !websocket_is_kind (kind))
      || !(head[1] & MASKED) != !websocket->is_server)
    return 0;
  if (websocket_is_control (kind))
    return head[0] & FIN && (head[1] & 0x7f) <= 125;
  return (kind == 0) == (websocket->kind != 0);
}

/* A length is written in as few bytes as it can be. */
static int
length_get (const uint8_t *head, uint64_t *out)
{
  const unsigned length = head[1] & 0x7f;
  const unsigned width = length == 126 ? 2 : length == 127 ? 8 : 0;
  uint64_t value = 0;

  for (unsigned i = 0; i < width; i++)
    value = value << 8 | head[2 + i];
  *out = width > 0 ? value : length;
  return width == 0 || value > (width == 2 ? 125U : 65535U) ? 0 : -1;
}

/* 1: the head is whole and its frame may come; 0: more bytes are needed. */
static int
take_head (struct coffer_websocket *websocket, const char *in, size_t size,
           size_t *used, struct coffer_websocket_event *event)
{
  const size_t most = websocket->most > 0 ? websocket->most : MOST_BY_DEFAULT;

  while (websocket->have < 2
         || websocket->have < head_size (websocket->head)) {
    if (*used == size)
      return 0;
    websocket->head[websocket->have++] = (uint8_t) in[(*used)++];
    if (websocket->have == 2 && !first_bytes_are_sound (websocket))
      return refuse (websocket, EPROTO, COFFER_WEBSOCKET_BAD_PROTOCOL, event);
    if (websocket->have < 2
        || websocket->have < head_size (websocket->head))
      continue;
    websocket->at = 0;
    if (length_get (websocket->head, &websocket->left) < 0)
      return refuse (websocket, EPROTO, COFFER_WEBSOCKET_BAD_PROTOCOL, event);
    if (!websocket_is_control (head_kind (websocket))
        && (websocket->left > most
            || websocket->message.size > most - websocket->left))
      return refuse (websocket, EMSGSIZE, COFFER_WEBSOCKET_TOO_LARGE, event);
    if (head_kind (websocket) == COFFER_WEBSOCKET_TEXT
        || head_kind (websocket) == COFFER_WEBSOCKET_BINARY)
      websocket->kind = (uint8_t) head_kind (websocket);
  }
  return 1;
}

/* ---- what is behind it --------------------------------------------------- */

static int
take_bytes (struct coffer_websocket *websocket, const char *in, size_t size,
            size_t *used)
{
  struct coffer_buffer *to = websocket_is_control (head_kind (websocket))
                               ? &websocket->control : &websocket->message;
  const size_t n = size - *used < websocket->left ? size - *used
                                                  : (size_t) websocket->left;

  coffer_buffer_add (to, in + *used, n);
  if (to->failed)
    return -1;
  if (websocket->is_server && n > 0)
    websocket_mask (to->data + to->size - n, n,
                    websocket->head + websocket->have - 4, websocket->at);
  *used += n;
  websocket->at += n;
  websocket->left -= n;
  return 0;
}

static void
event_set (struct coffer_websocket_event *event, unsigned kind,
           const struct coffer_buffer *from)
{
  *event = (struct coffer_websocket_event) {
    .kind = (enum coffer_websocket_kind) kind,
    .bytes = from->size > 0 ? from->data : "", .size = from->size,
  };
}

static int
give_close (struct coffer_websocket *websocket,
            struct coffer_websocket_event *event)
{
  websocket->closed = 1;
  event->code = COFFER_WEBSOCKET_NO_CODE;
  if (event->size == 0)
    return 1;
  if (event->size >= 2)
    event->code = (uint16_t) ((unsigned char) event->bytes[0] << 8
                              | (unsigned char) event->bytes[1]);
  if (event->size == 1 || !websocket_is_close_code (event->code))
    return refuse (websocket, EPROTO, COFFER_WEBSOCKET_BAD_PROTOCOL, event);
  event->bytes += 2;
  event->size -= 2;
  if (!websocket_is_utf8 (event->bytes, event->size))
    return refuse (websocket, EPROTO, COFFER_WEBSOCKET_BAD_BYTES, event);
  return 1;
}

/* At the end of a frame: 1 when it ends what people call a message. */
static int
give (struct coffer_websocket *websocket,
      struct coffer_websocket_event *event)
{
  const unsigned kind = head_kind (websocket);

  websocket->have = 0;
  if (websocket_is_control (kind)) {
    websocket->taken = TAKEN_CONTROL;
    event_set (event, kind, &websocket->control);
    return kind == COFFER_WEBSOCKET_CLOSE ? give_close (websocket, event) : 1;
  }
  if (!(websocket->head[0] & FIN))
    return 0;
  websocket->taken = TAKEN_MESSAGE;
  event_set (event, websocket->kind, &websocket->message);
  websocket->kind = 0;
  if (event->kind == COFFER_WEBSOCKET_TEXT
      && !websocket_is_utf8 (event->bytes, event->size))
    return refuse (websocket, EPROTO, COFFER_WEBSOCKET_BAD_BYTES, event);
  return 1;
}

/* What the last event lay in. */
static void
forget (struct coffer_websocket *websocket)
{
  if (websocket->taken == TAKEN_CONTROL)
    coffer_buffer_clear (&websocket->control);
  else if (websocket->taken && websocket->message.capacity > KEPT_ROOM)
    coffer_buffer_free (&websocket->message);
  else if (websocket->taken)
    coffer_buffer_clear (&websocket->message);
  websocket->taken = 0;
}

int
coffer_websocket_read (struct coffer_websocket *websocket, const void *in,
                       size_t size, size_t *used,
                       struct coffer_websocket_event *event)
{
  int r = 0;

  *used = 0;
  if (websocket->failed)
    return refuse (websocket, 0, 0, event);
  forget (websocket);
  if (websocket->closed)
    *used = size;
  while (r == 0 && *used < size) {
    r = take_head (websocket, in, size, used, event);
    if (r <= 0)
      return r;
    if (take_bytes (websocket, in, size, used) < 0)
      return refuse (websocket, ENOMEM, COFFER_WEBSOCKET_BROKEN, event);
    r = websocket->left == 0 ? give (websocket, event) : 0;
  }
  return r;
}

void
coffer_websocket_fini (struct coffer_websocket *websocket)
{
  coffer_buffer_free (&websocket->message);
  coffer_buffer_free (&websocket->control);
  coffer_buffer_free (&websocket->pending);
}
