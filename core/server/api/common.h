/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder that give on streams share. */

#ifndef SERVER_API_COMMON_H
#define SERVER_API_COMMON_H

#include "server/api/own.h"

/* The path within it that is left of the request's, "." when nothing is;
 * folder: slashes at its end say nothing.  The caller frees. */
char *api_path (const struct request *request, int folder, struct error **err);
/* A word of the query that is there or not: NAME, NAME=1, NAME=true; 0 and
 * false are as if it were not.  E_REQUEST. */
int api_flag (const struct request *request, const char *name, int *out,
              struct error **err);
/* The request's call, for what moves bytes: a day when it has no deadline. */
struct provider_call api_call (const struct request *request);

/* A provider takes so many calls at once, and one that moves bytes for a client
 * who is slow is one of them for long: of these there are fewer, so that others
 * are always served, and a tenant has its share of them (SHARE_TRANSFERS,
 * SHARE_WATCHES).  A transfer waits for its turn; E_LIMIT when none comes, and at
 * once for what has no end of its own. */
#define API_TRANSFERS 32        /* of the 64 that the shipped providers take */
#define API_WATCHES 8
int api_slot_take (const struct request *request, enum share slot,
                   struct error **err);
void api_slot_give (const struct request *request, enum share slot);

/* What a sandbox gives, as a reply.  size UINT64_MAX: not known.  events: lines
 * of JSON, whose failure is one more of them; else it breaks the transfer.
 * Waits until the first of it is there, so that what fails at once is an error
 * of its own.  Takes the stream, and the slot it was begun in. */
struct api_stream {
  struct sandbox_stream *stream;
  uint64_t size;
  int status;
  const char *type;
  int events;
  enum share slot;
};
int api_reply_stream (struct request *request,
                      const struct api_stream *take_stream,
                      struct error **err);

#endif /* SERVER_API_COMMON_H */
