/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of execs.h share. */

#ifndef SANDBOX_EXECS_PRIVATE_H
#define SANDBOX_EXECS_PRIVATE_H

#include <pthread.h>

#include "sandbox/exec-keeper.h"
#include "sandbox/exec.h"
#include "sandbox/execs.h"
#include "sandbox/host.h"

struct live_exec;

/* What the pump watches: one descriptor of a command. */
struct live_stream {
  struct live_exec *live;       /* NULL: the pump's own */
  enum keeper_fd which;
};

struct live_exec {
  struct live_exec *next;       /* execs->lock, as the next */
  unsigned refs;
  struct exec_log *log;
  char *provider;
  struct share_hold place;      /* of its tenant's commands */
  int tty;
  /* -1: none, or ended.  OUT, ERR, RELAY and MASTER are the pump's to close,
   * IN belongs to who holds input_lock, as does writing to MASTER. */
  int fds[KEEPER_FDS];
  struct live_stream streams[KEEPER_FDS];
  pthread_mutex_t input_lock;
  int writing;                  /* input_lock: a copy of it is written to */
  int settled;                  /* execs->lock: how it ended is known */
  json_t *facts;                /* execs->lock: for the pump to write */
  int done;                     /* the pump's: the log has its end */
  int64_t pending_ns;           /* the pump's: since when a character is not
                                 * whole; 0: all are */
  int64_t due_ns, pause_ms;     /* execs->lock: when to ask how it ended */
  int through;                  /* execs->lock: its streams are */
};

/* Of a command's output. */
#define EXECS_PIPE_BYTES (256 << 10)

/* So many providers may hang, each with the thread that asks it, before others
 * wait for them. */
#define ASKERS 4
#define EXECS_THREADS (ASKERS + 2)

struct execs {
  struct execs_options options;
  struct exec_logs *logs;
  pthread_mutex_t lock;
  pthread_cond_t changed;       /* lock: the asker has something to do */
  struct live_exec *live;       /* lock */
  size_t count;                 /* lock */
  int stopping;                 /* lock */
  int epoll, wake_fd;
  int threads;                  /* that were started */
  pthread_t all[EXECS_THREADS];
  const char *asking[ASKERS];   /* lock: providers that are asked now */
  pthread_mutex_t keeper_lock;  /* comes before `lock` */
  int keeper;                   /* keeper_lock: -1: none */
  int keeper_failed;            /* keeper_lock: for the pump to mend */
  pid_t keeper_pid;             /* keeper_lock: a child of ours; 0: none */
  pid_t keeper_peer;            /* keeper_lock: who is connected to; 0: not
                                 * known */
  struct live_stream keeper_stream;
};

/* ---- execs.c -------------------------------------------------------------- */

/* Takes the log and the descriptors; adds it to the list and to the pump.
 * keep: the keeper gets copies. */
int live_new (struct execs *execs, struct exec_log *take_log,
              const char *provider, int fds[KEEPER_FDS], int keep,
              struct error **err);
void live_unref (struct execs *execs, struct live_exec *live);
/* By name; a reference, or NULL. */
struct live_exec *live_find (struct execs *execs, const char *sandbox,
                             const char *exec);
/* Its streams are through: ask how it ended. */
void live_ask_now (struct execs *execs, struct live_exec *live);

/* ---- execs-pump.c --------------------------------------------------------- */

int pump_add (struct execs *execs, struct live_exec *live);
void *pump_run (void *execs);
void pump_wake (struct execs *execs);

/* ---- execs-ask.c ---------------------------------------------------------- */

void *asker_run (void *execs);
void *sweeper_run (void *execs);
/* What there was before this daemon. */
void execs_adopt (struct execs *execs);

/* ---- execs-keeper.c ------------------------------------------------------- */

/* Connects to the keeper there is, or starts one. */
int keeper_open (struct execs *execs, struct error **err);
/* One that has nothing to hold ends. */
void keeper_close (struct execs *execs);
void keeper_keep (struct execs *execs, struct live_exec *live);
void keeper_tell (struct execs *execs, const struct live_exec *live,
                  enum keeper_kind kind);
/* Calls back with each that it held when it was connected to; the callback
 * takes the descriptors. */
void keeper_list (struct execs *execs,
                  void (*visit) (struct execs *execs,
                                 const struct keeper_message *message,
                                 int fds[KEEPER_FDS]));
/* It is gone: another one gets all there is.  The pump's to call. */
void keeper_lost (struct execs *execs);
/* Whether a message to it failed. */
int keeper_is_lost (struct execs *execs);

#endif /* SANDBOX_EXECS_PRIVATE_H */
