/* SPDX-License-Identifier: Apache-2.0 */
/* What the daemon and coffer-keeper say to each other.
 *
 * The keeper holds copies of the descriptors of every command in the background
 * and does nothing with them while a daemon is connected.  So a daemon that is
 * killed takes no pipe with it: the command goes on, waits when the pipe is
 * full, and the next daemon asks for what there is.  Of a command that ends
 * meanwhile the keeper moves the rest of the pipe into the log itself.
 *
 * One packet (SOCK_SEQPACKET) is one message, with descriptors in the order of
 * the bits of `has`.  Both are of one build or of two in a row: numbers are
 * never reused, and a message grows only at its end. */

#ifndef SANDBOX_EXEC_KEEPER_H
#define SANDBOX_EXEC_KEEPER_H

#include <stdint.h>

/* In KEEPER_INDEX_FILE, a uint64_t for each stream: bytes that no file took. */
#define KEEPER_DROPPED_AT 8

#define KEEPER_PROGRAM "coffer-keeper"
#define KEEPER_SOCKET "exec-keeper"     /* in the runtime folder */
#define KEEPER_VERSION 1

enum keeper_kind {
  KEEPER_KEEP = 1,              /* hold these; those of that name are let go */
  KEEPER_FORGET = 2,
  KEEPER_FORGET_IN = 3,         /* only the standard input of it */
  KEEPER_LIST = 4,              /* a KEPT for each, then END */
  KEEPER_KEPT = 5,
  KEEPER_END = 6
};

enum keeper_fd {
  KEEPER_OUT, KEEPER_ERR,       /* pipes, to be read */
  KEEPER_OUT_FILE, KEEPER_ERR_FILE,
  KEEPER_IN,                    /* a pipe, to be written to */
  KEEPER_MASTER,                /* of a terminal */
  KEEPER_RELAY,                 /* and the end of OUT that its bytes go into */
  KEEPER_INDEX_FILE,            /* of the log: where what was dropped is counted */
  KEEPER_FDS
};

struct keeper_message {
  uint32_t size;
  uint32_t version;
  uint32_t kind;
  uint32_t has;                 /* 1 << enum keeper_fd */
  char sandbox[32];
  char exec[72];
};

#endif /* SANDBOX_EXEC_KEEPER_H */
