/* SPDX-License-Identifier: Apache-2.0 */
/* One request to the program inside, and what comes of it (wire.h). */

#ifndef DOCKER_STREAM_H
#define DOCKER_STREAM_H

#include <coffer/frames.h>

#include "docker.h"
#include "wire.h"

struct stream_take;

struct stream {
  int fd;                       /* both ways; -1: closed */
  struct coffer_frames outer;   /* the engine's */
  struct coffer_buffer control; /* of the program's frames, not whole yet */
  struct coffer_buffer words;   /* what the engine itself said, its beginning */
  uint64_t spoken;              /* frames that came from the program */
  char *bytes;                  /* where it is read to */
};

/* What is done with what comes.  Not 0 ends the reading, with that; STREAM_DONE
 * well: there is nothing to wait for, and engines differ in how streams end. */
#define STREAM_DONE 1000

struct stream_sink {
  int (*out) (void *data, const char *bytes, size_t size);
  int (*frame) (void *data, uint32_t kind, const void *bytes, size_t size);
  void *data;
};

#define auto_stream __attribute__ ((cleanup (stream_fini)))

/* Starts the program as the sandbox's user and gives it the request with its
 * block.  COFFER_OK, or what coffer_fail has returned. */
int32_t stream_open (struct coffer_call *call, struct docker *docker,
                     const char *sandbox, struct wire_request *request,
                     const struct coffer_buffer *block, struct stream *out);
void stream_fini (struct stream *stream);
/* What is there now, at least a byte (waits in read).  1: more may come; 0: the
 * end; -1 with errno; else what the sink has returned. */
int stream_read (struct stream *stream, const struct stream_sink *sink);
/* Until the end, within the call's deadline: COFFER_OK, or what coffer_fail or the
 * sink has returned. */
int32_t stream_read_all (struct coffer_call *call, struct stream *stream,
                         const struct stream_sink *sink);
/* For one that ended before the program said anything. */
int32_t stream_fail (struct coffer_call *call, const struct stream *stream);
/* The same of a sandbox: NOT_FOUND when that was its end. */
int32_t stream_fail_sandbox (struct coffer_call *call, struct docker *docker,
                             const char *sandbox, const struct stream *stream);
/* coffer_fail for a WIRE_FAILED. */
int32_t stream_fail_frame (struct coffer_call *call, const void *bytes,
                           size_t size);
void stream_request (struct wire_request *request, uint32_t op);

/* files.c: the work of a request on one path or two, with what comes of it
 * emitted, or written to `out` (-1: none). */
int32_t docker_work (struct coffer_call *call, struct docker *docker,
                     const char *sandbox, struct wire_request *request,
                     const char *path, const char *other, int out);
/* The same for one that takes what comes from `in`, to its end. */
int32_t docker_work_in (struct coffer_call *call, struct docker *docker,
                        const char *sandbox, struct wire_request *request,
                        const char *path, int in);

/* The same in parts: to the end of a stream that was opened, giving `take` what
 * comes (NULL: nothing does; else it is as stream_sink's out), and connecting to
 * nothing. */
int32_t docker_work_on (struct coffer_call *call, struct stream *stream,
                        int (*take) (void *data, const char *bytes,
                                     size_t size), void *data);
/* What is sent, in pieces of WIRE_PIECE_MAX with a uint32_t for their size, and 0
 * at the end: COFFER_IO without a failure when nobody takes it, who has said why. */
int32_t docker_work_send (struct coffer_call *call, int fd, const char *bytes,
                          size_t size);

/* All three: opens, reads to the end, closes. */
int32_t stream_ask (struct coffer_call *call, struct docker *docker,
                    const char *sandbox, struct wire_request *request,
                    const struct coffer_buffer *block,
                    const struct stream_sink *sink);

#endif /* DOCKER_STREAM_H */
