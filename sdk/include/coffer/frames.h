/* SPDX-License-Identifier: Apache-2.0 */
/* Readers of what services stream: lines (NDJSON), server-sent events, and
 * frames with a length before them.
 *
 * They do no I/O.  Bytes go in as they come, in pieces of any size, and how
 * they are cut changes nothing of what comes out.  A reader of zeros, with its
 * limits filled in, is a new one.  Each _read function looks at `size` bytes of
 * `in`, is done with *used of them, and says:
 *
 *   1   something came out; call again with the rest of the bytes
 *   0   all bytes are used, and more are needed
 *  -1   errno: EMSGSIZE, beyond the limit; EPROTO, this is no such thing;
 *       ENOMEM.  Every later call says the same.
 *
 * What comes out lies in `in` or in the reader, until the next call.  Each
 * reader from one thread at a time.  Part of libcoffer-http.a. */

#ifndef COFFER_FRAMES_H
#define COFFER_FRAMES_H

#include <stddef.h>
#include <stdint.h>

#include <coffer/buffer.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- lines ---------------------------------------------------------------
 * They end with LF or CR LF, neither of which is part of them. */

struct coffer_lines {
  size_t most;                  /* bytes of a line; 0: 1 MiB */
  /* For these functions only. */
  struct coffer_buffer kept;    /* what came of the one that is not whole */
  int failed, taken;
};

/* *line is not NUL-terminated. */
int coffer_lines_read (struct coffer_lines *lines, const char *in,
                       size_t size, size_t *used, const char **line,
                       size_t *length);
/* After the last byte: 1 and the line that had no end, or 0. */
int coffer_lines_end (struct coffer_lines *lines, const char **line,
                      size_t *length);
void coffer_lines_fini (struct coffer_lines *lines);

/* ---- server-sent events --------------------------------------------------
 * As the HTML standard reads text/event-stream.  An event without data is none;
 * one that is not ended by an empty line is none either. */

struct coffer_sse {
  size_t most;                  /* bytes of an event; 0: 1 MiB */
  int64_t retry_ms;             /* how long to wait before connecting again, as
                                 * the server asked; 0: it did not */
  /* For these functions only. */
  struct coffer_buffer line, data, name, id;
  int failed, after_cr, begun, taken;
};

struct coffer_sse_event {
  const char *name;             /* "message" when it says nothing */
  const char *data;             /* lines with LF between them; NUL-terminated */
  size_t size;                  /* of data */
  const char *id;               /* the last that was said; "": none */
};

int coffer_sse_read (struct coffer_sse *sse, const char *in, size_t size,
                     size_t *used, struct coffer_sse_event *event);
void coffer_sse_fini (struct coffer_sse *sse);

/* ---- frames --------------------------------------------------------------
 * A head of a fixed size, in which somewhere is the number of bytes that
 * follow it.  A frame's bytes are given on as they come and never collected,
 * so that no frame is too large for memory. */

struct coffer_frame_format {
  uint8_t head;                 /* bytes of the head: 1 to 32 */
  uint8_t at;                   /* where in it the length is */
  uint8_t width;                /* 1, 2, 4 or 8 bytes of length */
  uint8_t little;               /* 1: little-endian */
  uint64_t most;                /* bytes that may follow; 0: no limit */
};

/* Container engines (stream, three zeros, u32), and Connect and gRPC (flags,
 * u32); both big-endian, without a limit. */
extern const struct coffer_frame_format coffer_frames_engine;
extern const struct coffer_frame_format coffer_frames_connect;

struct coffer_frames {
  struct coffer_frame_format format;
  /* For these functions only. */
  uint8_t head[32];
  uint8_t have;                 /* bytes of the head that came */
  uint8_t ended;                /* the frame of that head has */
  int failed;
  uint64_t size, left;          /* of the frame, and what has not come yet */
};

struct coffer_frame_part {
  const uint8_t *head;          /* all of it */
  uint64_t size;                /* of the whole frame, without its head */
  const char *bytes;            /* the next of its bytes */
  size_t n;
  int begins, ends;             /* 1: first, last part of the frame */
};

int coffer_frames_read (struct coffer_frames *frames, const char *in,
                        size_t size, size_t *used,
                        struct coffer_frame_part *part);
/* 1: a frame has begun and not ended, so that the end is no end. */
int coffer_frames_cut (const struct coffer_frames *frames);
/* Writes a head for `size` bytes, zeros but for the length.  -1 with errno
 * EMSGSIZE: it does not fit. */
int coffer_frame_head (const struct coffer_frame_format *format,
                       uint64_t size, uint8_t *head);

#ifdef __cplusplus
}
#endif

#endif /* COFFER_FRAMES_H */
