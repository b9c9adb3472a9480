/* SPDX-License-Identifier: Apache-2.0 */
/* What a keeper knows.  It has one thread and one loop: nothing is locked. */

#ifndef HOST_KEEPER_STATE_H
#define HOST_KEEPER_STATE_H

#include "keeper.h"

#define KEEPER_RUNNING_MAX 128  /* commands at once */
#define KEEPER_EXECS_MAX 1024   /* with those that have ended, oldest dropped */
#define KEEPER_CLIENTS_MAX 256

struct exec {
  uint32_t number;
  pid_t minder;                 /* 0: gone */
  int control;                  /* -1: gone */
  int collected;                /* a waiter has had its end */
  struct keeper_reply reply;
};

struct client {
  int fd;
  uint32_t waits_for;           /* number of a command; 0: none */
  int waits_for_end;            /* asked to kill the sandbox */
};

struct keeper {
  int folder, runtime, listener, lifeline, signals, timer;
  int workspace;
  char *name;                   /* of the folder in runtime */
  char *path;                   /* of the folder, absolute */
  char *workdir;                /* NULL: the workspace */
  const char *const *base;      /* environment */
  const char *const *env;
  int single;
  int64_t created_ns;           /* since the epoch */
  int64_t expires_ns;           /* CLOCK_BOOTTIME; 0: never */
  int64_t uncollected_ns;       /* single: when to stop waiting for a waiter */
  uint32_t next_exec;
  struct exec *execs[KEEPER_EXECS_MAX];
  size_t n_execs;
  struct client clients[KEEPER_CLIENTS_MAX];
  size_t n_clients;
  int orphaned;                 /* a minder was killed */
  int ending;
};

/* ---- requests.c ---------------------------------------------------------- */

/* Reads one request of a client and answers it.  0: the client stays, for it
 * waits; -1: it is done. */
int keeper_serve (struct keeper *keeper, struct client *client);

/* Answers who waits for this command. */
void keeper_answer_waiters (struct keeper *keeper, struct exec *exec);
void keeper_reply_error (int fd, int sys_errno);
void keeper_arm (struct keeper *keeper);
struct exec *keeper_find (struct keeper *keeper, uint32_t number);

/* ---- execs.c ---- */

/* Starts a minder for it.  0, or errno. */
int keeper_start (struct keeper *keeper, const struct command *command,
                  struct exec **out);
/* Something has come from a minder, or its end has. */
void keeper_report (struct keeper *keeper, struct exec *exec);
int keeper_order (const struct exec *exec, const struct minder_order *order);
/* Reaps minders and orphans; orphans of a dead minder are ended. */
void keeper_reap (struct keeper *keeper);
/* Ends all there is below. */
unsigned keeper_kill_all (struct keeper *keeper);

#endif /* HOST_KEEPER_STATE_H */
