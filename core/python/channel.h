/* SPDX-License-Identifier: Apache-2.0 */
/* The channel to the runner: a request goes in, frames come back.
 *
 * What comes back after the verdict was written by code that nobody trusts, so
 * it is taken by its form alone: sizes and counts are bounded, JSON is strict,
 * and with the first byte that does not fit the rest is left where it is.  How
 * the code ended is never taken from here. */

#ifndef PYTHON_CHANNEL_H
#define PYTHON_CHANNEL_H

#include <pthread.h>

#include <coffer/buffer.h>

#include "base/json.h"

#define FRAME_HEAD 5            /* kind, size */
/* Fifty violations of five hundred characters, each as twelve bytes. */
#define FRAME_JSON_MAX (320 << 10)
#define ARTIFACT_MAX (4 << 20)
#define ARTIFACTS_MAX (8 << 20) /* of all */
#define ARTIFACTS_COUNT 16
#define ARTIFACT_NAME_MAX 255
#define RESULT_MAX 8192
#define ERROR_TEXT_MAX 1000

/* What has been understood so far; zeros are nothing. */
struct frames {
  struct coffer_buffer pending;
  json_t *verdict;              /* {"accepted", "violations", "layers"} */
  json_t *told;                 /* {"result", "error", "cut", "memory",
                                 * "skipped"} */
  json_t *artifacts;            /* [{"name", "size", "encoding", "data"}] */
  size_t artifact_bytes;
  int malformed;                /* nothing more is taken */
};

/* Takes bytes as they come.  -1: malformed, now or before. */
int frames_add (struct frames *frames, const char *bytes, size_t size);
void frames_fini (struct frames *frames);

/* The two ends of a conversation.  `theirs` is given to the runner, and closed
 * here once it has been. */
struct channel {
  int ours, theirs;
  struct coffer_buffer request;
  size_t sent;
  struct frames frames;
  pthread_t thread;
  int started;
};

/* The request of the channel must be filled before. */
int channel_begin (struct channel *channel, struct error **err);
/* Once the runner has ended: what it has sent is in `frames`. */
void channel_end (struct channel *channel);
/* Its request can be sent anew. */
void channel_reset (struct channel *channel);
void channel_fini (struct channel *channel);

#endif /* PYTHON_CHANNEL_H */
