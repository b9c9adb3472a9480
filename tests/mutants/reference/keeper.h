/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the keeper's program.
 *
 *   keeper ── minder ── command ── its descendants
 *          ── minder ── command ── …
 *
 * Both are subreapers: a descendant whose parent has ended becomes the
 * minder's child, and the keeper's when the minder ends.  So killing one's own
 * children again and again, until there are none, kills the whole tree, and a
 * child's number is nobody else's until it is reaped. */

#ifndef REFERENCE_KEEPER_H
#define REFERENCE_KEEPER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <coffer/descendants.h>
#include <coffer/process.h>

#include "protocol.h"

/* What comes from a client. */
struct packet {
  struct request request;
  int fds[REQUEST_FDS_MAX];     /* -1: none */
  size_t n_fds;
};

/* ---- packets.c ----------------------------------------------------------- */

/* 0, or -1: the client has gone, or talks nonsense. */
int packet_receive (int client, struct packet *packet);
void packet_fini (struct packet *packet);
void reply_send (int client, const struct reply *reply);
void reply_error (int client, int sys_errno);

/* ---- tree.c: everything below this process ------------------------------- */

typedef int tree_visit (void *data, pid_t pid);

/* Kills and reaps until no child is left, or for ten seconds. */
void tree_kill (coffer_reaped *reaped, void *data);
/* Stops every descendant, parents first, so that nobody can reap or make
 * another meanwhile; lets them go on. */
void tree_stop (void);
void tree_continue (void);
/* Calls for each descendant until one returns other than 0, which is what it
 * returns. */
int tree_walk (tree_visit *visit, void *data);
/* The state's letter, processor time with that of reaped children, and resident
 * memory of a process: -1 when it has gone. */
struct tree_facts {
  char state;
  uint64_t cpu_us, memory_bytes;
};
int tree_facts_read (pid_t pid, struct tree_facts *facts);
/* 4 or 6 when a descendant listens on this port for loopback; else 0. */
uint32_t tree_listens (uint32_t port);

/* ---- minder.c: one command ----------------------------------------------- */

struct assignment {
  struct coffer_session session;
  int folder;                   /* the command's own, EXECS/N */
  int listener;                 /* bound in it */
  int keeper;                   /* reads the end of file when that has gone */
  uint64_t timeout_ms;          /* 0: never */
  int background;
  uint64_t cap_bytes;
  int single;                   /* its end is the end of all it started */
};

void minder_main (const struct assignment *assignment)
  __attribute__ ((noreturn));

/* ---- spool.c: output that is kept ---------------------------------------- */

struct spool {
  int pipe;                     /* -1: at its end */
  int file;
  uint64_t kept, cap, dropped;
};

/* A file of the command's folder, and a pipe whose writing end is *writer. */
int spool_open (struct spool *spool, int folder, const char *name,
                uint64_t cap, int *writer);
/* Moves what is there, without waiting: 1 when there was something. */
int spool_take (struct spool *spool);
void spool_close (struct spool *spool);

#endif /* REFERENCE_KEEPER_H */
