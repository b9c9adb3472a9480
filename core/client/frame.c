/* SPDX-License-Identifier: Apache-2.0 */
/* Heads of frames. */

#include <config.h>

#include "client/frame.h"

#define HEAD_SIZE 24

static uint64_t
get_le (const unsigned char *bytes, int size)
{
  uint64_t value = 0;

  while (size-- > 0)
    value = value << 8 | bytes[size];
  return value;
}

int
client_frame_next (struct client_reply *reply, struct client_frame *out,
                   struct error **err)
{
  unsigned char head[HEAD_SIZE];

  if (client_read_all (reply, head, sizeof head, err) < 0)
    return -1;
  out->size = (uint32_t) get_le (head, 4);
  out->kind = head[4];
  out->stream = head[5];
  out->seq = get_le (head + 8, 8);
  if (out->size > CLIENT_FRAME_MAX
      || (out->kind == CLIENT_FRAME_OUTPUT && out->stream != 1
          && out->stream != 2))
    return error_set (err, E_CONNECT_FAILED, 0,
                      "the daemon's events are not framed as they should be");
  return 0;
}
