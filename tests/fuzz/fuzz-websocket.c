/* SPDX-License-Identifier: Apache-2.0 */
/* WebSocket from a hostile peer.  The first byte says which end reads and in
 * which steps the bytes come: how they are cut must change nothing of what is
 * understood.  What one end writes, the other reads. */

#include <config.h>

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <coffer/websocket.h>

#define MOST 512

int LLVMFuzzerTestOneInput (const uint8_t *bytes, size_t size);

static void
must (int holds)
{
  if (!holds)
    abort ();
}

static int
is_utf8 (const char *text, size_t size)
{
  uint32_t point;
  size_t n;

  for (; size > 0; text += n, size -= n)
    if (!(n = coffer_utf8_decode (text, size, &point)))
      return 0;
  return 1;
}

static void
look (const struct coffer_websocket_event *event)
{
  const int control = event->kind >= COFFER_WEBSOCKET_CLOSE;

  must (event->size <= (control ? 125 : MOST));
  must (event->bytes[event->size] == '\0');
  must (event->kind == COFFER_WEBSOCKET_BINARY
        || event->kind == COFFER_WEBSOCKET_PING
        || event->kind == COFFER_WEBSOCKET_PONG
        || is_utf8 (event->bytes, event->size));
}

/* What is understood of bytes that come `step` at a time. */
static void
read_all (int is_server, const char *in, size_t size, size_t step,
          struct coffer_buffer *out)
{
  struct coffer_websocket websocket = { .is_server = is_server,
                                        .most = MOST };
  struct coffer_websocket_event event;
  size_t at = 0, used, part;
  int r = 0;

  while (at < size && r >= 0) {
    part = size - at < step ? size - at : step;
    r = coffer_websocket_read (&websocket, in + at, part, &used, &event);
    must (used <= part && (r != 0 || used == part));
    at += used;
    if (r == 1) {
      look (&event);
      coffer_buffer_printf (out, "%d/%u:", (int) event.kind, event.code);
      coffer_buffer_add (out, event.bytes, event.size);
    }
  }
  if (r < 0)
    coffer_buffer_printf (out, "!%u/%d", event.code, errno);
  coffer_websocket_fini (&websocket);
}

/* The bytes as a message, in one frame or two. */
static void
write_and_read (int is_server, const char *in, size_t size, size_t first)
{
  struct coffer_websocket from = { .is_server = is_server },
                          to = { .is_server = !is_server };
  coffer_autobuffer struct coffer_buffer wire = { 0 };
  struct coffer_websocket_event event;
  size_t used;

  if (first > size)
    first = size;
  must (coffer_websocket_write_part (&from, COFFER_WEBSOCKET_BINARY, 1, 0, in,
                                     first, &wire) == 0);
  must (coffer_websocket_write_part (&from, COFFER_WEBSOCKET_BINARY, 0, 1,
                                     in + first, size - first, &wire) == 0);
  must (coffer_websocket_read (&to, wire.data, wire.size, &used, &event) == 1);
  must (used == wire.size && event.size == size
        && memcmp (event.bytes, in, size) == 0);
  coffer_websocket_fini (&to);
}

int
LLVMFuzzerTestOneInput (const uint8_t *bytes, size_t size)
{
  coffer_autobuffer struct coffer_buffer whole = { 0 }, parts = { 0 };
  char accept[COFFER_WEBSOCKET_ACCEPT_SIZE], key[32] = "";
  const char *in;

  if (size < 2)
    return 0;
  in = (const char *) bytes + 1;
  size--;
  read_all (bytes[0] & 1, in, size, SIZE_MAX, &whole);
  read_all (bytes[0] & 1, in, size, 1 + bytes[0] / 2 % 16, &parts);
  must (whole.size == parts.size
        && (whole.size == 0
            || memcmp (whole.data, parts.data, whole.size) == 0));
  write_and_read (bytes[0] & 1, in, size, bytes[0] / 2);
  memcpy (key, in, size < sizeof key ? size : sizeof key - 1);
  if (coffer_websocket_accept (key, accept) == 0)
    must (strlen (accept) == 28);
  return 0;
}
