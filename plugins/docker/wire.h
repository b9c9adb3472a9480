/* SPDX-License-Identifier: Apache-2.0 */
/* What travels between the provider and its program inside a container, through
 * a stream that the engine relays.
 *
 * In: one request with its block; behind it comes the standard input of the
 * command of `run`, the bytes of the file of `write`, the tar of `import`, what
 * `dial` is to send.  Out, on standard output: bytes of the command's output, of a
 * file or of a tar, and nothing else.  Out, on standard error: frames, each with
 * its size, in which the command's error stream is one kind.
 * So the command's large stream goes through no hand but the engine's, and what it
 * writes can never be taken for what the program says.
 *
 * Both are of one machine: numbers are in its byte order. */

#ifndef DOCKER_WIRE_H
#define DOCKER_WIRE_H

#include <stdint.h>

#define WIRE_MAGIC 0x63666531u
#define WIRE_BLOCK_MAX (8 << 20)        /* argv, env and cwd of a command */
#define WIRE_FRAME_MAX (128 << 10)
#define WIRE_PIECE_MAX (64u << 10)      /* of what is written or unpacked */
#define WIRE_ID_MAX 24                  /* bytes of a command's id, with NUL */

/* In INSIDE_KEPT, ID is a socket while the command runs, ID.end its wire_end when
 * it has ended; ID.out and ID.err are what was kept of one in the background. */

enum wire_op {
  WIRE_RUN = 1, WIRE_WAIT, WIRE_LIST, WIRE_ATTACH, WIRE_TELL, WIRE_SWEEP,
  WIRE_READ, WIRE_WRITE, WIRE_STAT, WIRE_LIST_FILES, WIRE_MKDIR, WIRE_REMOVE,
  WIRE_RENAME, WIRE_DIAL, WIRE_EXPORT, WIRE_IMPORT, WIRE_WATCH
};

/* Flags of a request. */
#define WIRE_IN 1u              /* what follows is the command's input */
#define WIRE_OUT 2u             /* else it is dropped */
#define WIRE_ERR 4u
#define WIRE_TTY 8u
#define WIRE_BACKGROUND 16u
#define WIRE_PARENTS 32u        /* of files: as the options of the same name */
#define WIRE_EXCLUSIVE 64u
#define WIRE_RECURSIVE 128u
#define WIRE_STILL 256u         /* of EXPORT: what runs stands still meanwhile */
#define WIRE_LINKS 512u         /* of IMPORT: links may lead out of the folder */

struct wire_request {
  uint32_t magic, op, flags;
  uint32_t block;               /* bytes of the block: strings with their NUL */
  uint32_t argc, envc;          /* of RUN: cwd ("": none), argv, env; of files:
                                 * one or two paths */
  uint32_t rows, columns;
  int32_t signal;               /* of TELL; -1: rows and columns */
  uint32_t mode, depth;
  uint32_t port;                /* of DIAL */
  uint64_t timeout_ms;          /* of RUN its own, of others that of the call;
                                 * 0: never */
  uint64_t cap;                 /* bytes kept of each stream */
  uint64_t offset, length;
  char id[WIRE_ID_MAX];
};

enum wire_kind {
  WIRE_ERR_BYTES = 1,           /* of the command's error stream */
  WIRE_OUT_ENDED,               /* u64: bytes of standard output in all; also of
                                 * EXPORT */
  WIRE_ERR_ENDED,
  WIRE_STARTED,                 /* wire_info; of DIAL nothing: it is connected */
  WIRE_ENDED,                   /* wire_end */
  WIRE_INFO,                    /* wire_info, of a list */
  WIRE_FILE,                    /* wire_file, then the path, then the target,
                                 * each with its NUL */
  WIRE_FAILED,                  /* wire_failure, then text with its NUL */
  WIRE_DONE,                    /* it went well; nothing follows */
  WIRE_EVENT,                   /* of WATCH: the kind of a change, the path, each
                                 * with its NUL */
  WIRE_WARNING                  /* text with its NUL, for the log */
};

struct wire_frame {
  uint32_t kind, size;
};

struct wire_info {
  char id[WIRE_ID_MAX];
  int64_t started_ns;           /* since the epoch */
  uint32_t flags;               /* WIRE_BACKGROUND */
  uint32_t running;
};

#define WIRE_TIMED_OUT 1u
#define WIRE_OOM 2u
#define WIRE_PIDS 4u

struct wire_end {
  struct wire_info info;
  int32_t code, signal;
  uint32_t flags;
  uint32_t killed;
  int32_t failure_errno;        /* 0: it ran */
  uint32_t failure_stage;       /* enum coffer_stage */
  uint64_t duration_us, cpu_us;
};

struct wire_file {
  uint64_t size_bytes, moved_bytes;
  int64_t modified_ns;
  uint32_t mode, has_target;
  char kind[16];
};

struct wire_failure {
  int32_t code;                 /* enum coffer_code */
  int32_t retryable;
};

#endif /* DOCKER_WIRE_H */
