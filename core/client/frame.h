/* SPDX-License-Identifier: Apache-2.0 */
/* A command's events as the daemon frames them: a head, then `size` bytes.  Of
 * output these are the bytes themselves, of the end a JSON object. */

#ifndef CLIENT_FRAME_H
#define CLIENT_FRAME_H

#include "client/client.h"

#define CLIENT_FRAME_TYPE "application/x-coffer-frames"
#define CLIENT_FRAME_MAX (1u << 20)

enum client_frame_kind { CLIENT_FRAME_OUTPUT = 1, CLIENT_FRAME_DROPPED = 2,
                         CLIENT_FRAME_EXITED = 3 };

struct client_frame {
  uint32_t size;                /* at most CLIENT_FRAME_MAX */
  int kind;
  int stream;                   /* 1 or 2; of output alone */
  uint64_t seq;
};

/* The next head; what follows is the caller's to read. */
int client_frame_next (struct client_reply *reply, struct client_frame *out,
                       struct error **err);

#endif /* CLIENT_FRAME_H */
