/* SPDX-License-Identifier: Apache-2.0 */
/* What the host provider and the keeper of a sandbox say to each other.
 *
 * A keeper is a process that holds one sandbox.  It listens on `keeper.sock`
 * in the sandbox's folder (SOCK_SEQPACKET); each connection carries one
 * request with its descriptors and gets one reply, or, for KEEPER_LIST, one a
 * command and a last one.  Numbers are in the machine's order: both ends run
 * on it.  A sandbox may outlive the release that made it, so the protocol has
 * a number, both structs begin with their size and grow only at the end, and
 * a reader takes the smaller of two sizes. */

#ifndef HOST_PROTOCOL_H
#define HOST_PROTOCOL_H

#include <stdint.h>

#define KEEPER_PROTOCOL 1
#define KEEPER_SOCKET "keeper.sock"
#define KEEPER_WORKSPACE "workspace"
#define KEEPER_TMP "tmp"
#define KEEPER_METADATA "metadata"

/* Descriptors that a keeper is started with. */
enum keeper_start_fd {
  KEEPER_FD_FOLDER = 3,         /* the sandbox's folder, locked */
  KEEPER_FD_RUNTIME = 4,        /* the folder that it lies in */
  KEEPER_FD_LISTENER = 5,
  KEEPER_FD_PLAN = 6,           /* memory file: struct keeper_plan, strings */
  KEEPER_FD_LIFELINE = 7,       /* only with KEEPER_HAS_LIFELINE */
  KEEPER_FD_PROGRAM = 8,        /* its own, which it closes */
  KEEPER_FD_END = 9
};

enum keeper_plan_flag {
  KEEPER_HAS_LIFELINE = 1,
  KEEPER_SINGLE = 2             /* one command, and then the end */
};

/* Followed by NUL-terminated strings: the sandbox's name, the working folder
 * ("" for the workspace), and n_env entries of the environment. */
struct keeper_plan {
  uint32_t size;
  uint32_t flags;
  uint64_t ttl_ms;              /* 0: none */
  uint32_t n_env;
  uint32_t reserved;
};

enum keeper_op {
  KEEPER_INFO = 1,
  KEEPER_EXEC = 2,
  KEEPER_WAIT = 3,              /* answered when the command has ended */
  KEEPER_LIST = 4,
  KEEPER_SIGNAL = 5,
  KEEPER_RESIZE = 6,
  KEEPER_EXTEND = 7,
  KEEPER_KILL = 8               /* answered when nothing is left */
};

enum keeper_exec_flag {
  KEEPER_EXEC_IN = 1,           /* a descriptor is passed for it */
  KEEPER_EXEC_OUT = 2,
  KEEPER_EXEC_ERR = 4,
  KEEPER_EXEC_TTY = 8           /* `in` and `out` are one terminal */
};

/* KEEPER_EXEC passes a memory file first: argc, then envc strings, then the
 * working folder ("" for the default); after it in, out and err as flagged. */
struct keeper_request {
  uint32_t size;
  uint16_t protocol;
  uint16_t op;
  uint32_t exec;                /* number of the command */
  int32_t signal;
  uint32_t rows, columns;
  uint64_t ttl_ms;
  uint64_t timeout_ms;          /* 0: never */
  uint32_t flags;
  uint32_t argc, envc;
  uint32_t reserved;
};

#define KEEPER_BLOCK_MAX (16u << 20)
#define KEEPER_FDS_MAX 4

enum keeper_reply_flag {
  KEEPER_EXITED = 1,
  KEEPER_TIMED_OUT = 2,
  KEEPER_LAST = 4               /* of a list: no command in this one */
};

struct keeper_reply {
  uint32_t size;
  uint16_t protocol;
  uint16_t reserved;
  int32_t error;                /* errno; 0: done */
  uint32_t exec;
  uint32_t flags;
  int32_t code;                 /* -1 when a signal ended it */
  int32_t signal;
  uint32_t killed;
  int32_t failure_errno;        /* why it never ran; 0: it did */
  uint32_t failure_stage;       /* enum keeper_stage */
  int64_t started_ns;           /* since the epoch */
  int64_t created_ns, expires_ns;
  uint64_t duration_us, cpu_us;
  int64_t pid;                  /* of the keeper */
};

enum keeper_stage {
  KEEPER_STAGE_NONE, KEEPER_STAGE_SETUP, KEEPER_STAGE_FOLDER,
  KEEPER_STAGE_PROGRAM
};

#endif /* HOST_PROTOCOL_H */
