/* SPDX-License-Identifier: Apache-2.0 */
/* What a sandbox of the reference provider is on disk, and what the module, the
 * keeper of a sandbox and the minder of a command say to each other.
 *
 *   RUNTIME/ID/keeper.sock     the keeper listens: who cannot connect finds a
 *                              sandbox that is gone
 *   RUNTIME/ID/workspace/      the commands' folder
 *   RUNTIME/ID/tmp/            their TMPDIR
 *   RUNTIME/ID/metadata        as given to create, each with its NUL
 *   RUNTIME/ID/exec/N/         command N: `begun`, `exit` once it has ended,
 *                              `out` and `err` of one in the background, and
 *                              minder.sock
 *   STATE/snapshots/ID/        `about` and `tree`
 *
 * So any process that has the folders finds every sandbox again.  Messages are
 * single packets of SOCK_SEQPACKET sockets; both ends are of one build, and the
 * size in front says so. */

#ifndef REFERENCE_PROTOCOL_H
#define REFERENCE_PROTOCOL_H

#include <stdint.h>

#define KEEPER_SOCKET "keeper.sock"
#define MINDER_SOCKET "minder.sock"
#define WORKSPACE "workspace"
#define TEMPORARY "tmp"
#define METADATA "metadata"
#define EXECS "exec"
#define BEGUN "begun"
#define EXIT "exit"

/* Descriptors that a keeper is started with. */
enum keeper_start_fd {
  KEEPER_FD_FOLDER = 3,
  KEEPER_FD_RUNTIME = 4,        /* the folder that it lies in */
  KEEPER_FD_LISTENER = 5,
  KEEPER_FD_PLAN = 6,           /* memory file: struct plan, strings */
  KEEPER_FD_LIFELINE = 7,       /* only with PLAN_LIFELINE */
  KEEPER_FD_PROGRAM = 8,        /* its own, which it closes */
  KEEPER_FD_END = 9
};

enum plan_flag {
  PLAN_LIFELINE = 1,            /* the end of it is the sandbox's */
  PLAN_SINGLE = 2               /* one command, and then the end */
};

/* Followed by strings: the folder's name, the working folder ("" for the
 * workspace), and n_env of environment. */
struct plan {
  uint32_t flags;
  uint32_t n_env;
  uint64_t ttl_ms;              /* 0: none */
};

enum request_op {
  /* to a keeper */
  ASK_INFO = 1,
  ASK_START = 2,                /* a block (below), then in, out, err */
  ASK_EXTEND = 3,
  ASK_PAUSE = 4,
  ASK_RESUME = 5,
  ASK_METRICS = 6,
  ASK_PORT = 7,                 /* does a command listen there? */
  ASK_KILL = 8,                 /* answered when nothing is left */
  /* to a minder */
  ASK_WAIT = 20,                /* answered when the command has ended */
  ASK_FOLLOW = 21,              /* answered whenever there is more output */
  ASK_SIGNAL = 22,
  ASK_RESIZE = 23,
  ASK_STOP = 24,                /* the whole tree; ASK_PAUSE is made of it */
  ASK_CONTINUE = 25
};

enum request_flag {
  START_IN = 1, START_OUT = 2, START_ERR = 4,   /* a descriptor is passed */
  START_TTY = 8,                /* in and out are one terminal */
  START_BACKGROUND = 16
};

/* The block of ASK_START is a memory file: argc, then envc strings, then the
 * working folder ("" for the sandbox's). */
struct request {
  uint32_t size;
  uint32_t op;
  uint32_t flags;
  uint32_t argc, envc;
  int32_t signal;
  uint32_t rows, columns;
  uint32_t port;
  uint32_t reserved;
  uint64_t ttl_ms;
  uint64_t timeout_ms;          /* 0: never */
  uint64_t cap_bytes;           /* of each stream in the background */
};

#define BLOCK_MAX (16u << 20)
#define REQUEST_FDS_MAX 4
#define CAP_DEFAULT (1u << 20)

struct reply {
  uint32_t size;
  int32_t error;                /* errno; 0: done */
  uint32_t exec;                /* number of the command */
  uint32_t paused;
  int64_t pid;                  /* of the keeper */
  int64_t created_ns, expires_ns, started_ns;   /* since the epoch */
  uint64_t cpu_us, memory_bytes;
  uint32_t processes;
  uint32_t family;              /* of the port: 4 or 6 */
  uint32_t last;                /* of ASK_FOLLOW: the command has ended */
  uint32_t reserved;
};

/* The file `begun`. */
struct begun {
  int64_t started_ns;
  uint32_t background;
  uint32_t reserved;
};

/* The file `exit`. */
struct ended {
  int32_t code;                 /* -1 when a signal ended it */
  int32_t signal;
  uint32_t timed_out;
  uint32_t killed;
  int32_t failure_errno;        /* why it never ran; 0: it did */
  uint32_t failure_stage;       /* enum coffer_stage, or 0 */
  uint64_t duration_us, cpu_us;
  uint64_t dropped;             /* output beyond the cap */
};

#endif /* REFERENCE_PROTOCOL_H */
