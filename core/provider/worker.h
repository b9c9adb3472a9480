/* SPDX-License-Identifier: Apache-2.0 */
/* A worker as the host sees it: the process, the calls under way, and what is
 * remembered of processes that ended.  Private to this folder.
 *
 * There is no thread for reading.  Of the threads whose calls are under way
 * one reads the channel (the reader), and puts what is not its own into the
 * queue of the call it belongs to; the others sleep on a descriptor of their
 * own.  A call that ends hands the reading on.  So a single call costs no
 * switch, and a host that runs one command starts no thread. */

#ifndef PROVIDER_WORKER_H
#define PROVIDER_WORKER_H

#include <pthread.h>
#include <sys/types.h>

#include <coffer/buffer.h>

#include "provider/channel.h"
#include "provider/dispatch.h"

#define NS_PER_MS 1000000LL
#define WORKER_DEATHS 5         /* in a minute open the breaker */
#define WORKER_MAX_LINE 400

struct process {
  pid_t pid;
  int pidfd;
  int channel;
  int output;                   /* what it writes to stdout and stderr */
  int lifeline[2];              /* the kernel's hold on it; see process.c */
  int strict;                   /* its children are in its group */
  int held;                     /* it waits for a debugger */
  int refs;                     /* worker->lock; descriptors live as long */
  int ending, ended;            /* worker->lock */
  struct error *epitaph;        /* worker->lock: why it ended; once ended */
  atomic_int output_ended;      /* set with worker->output_lock */
};

struct process_end {
  int code;                     /* CLD_EXITED, CLD_KILLED, CLD_DUMPED; 0 */
  int status;
  int stopped;                  /* it had to be killed */
};

/* Starts coffer-worker and sends the start frame; does not wait for the
 * answer.  One reference. */
int process_start (const struct provider *provider, struct process **out,
                   struct error **err);
/* Ends it: the channel is shut, after `grace_ms` it is killed; so is all that
 * it has started.  Reaps it.  The descriptors stay. */
void process_end (struct process *process, int grace_ms,
                  struct process_end *end);
void process_free (struct process *process);

struct frame {
  struct frame *next;
  struct channel_message message;
};

/* A call under way, on its caller's stack. */
struct pending {
  struct pending *next;         /* lock */
  struct invoke *invoke;
  struct process *process;      /* a reference */
  int64_t id;
  struct frame *head, **tail;   /* lock */
  size_t queued, queued_fds;    /* lock: what they weigh */
  int wake_fd;                  /* -1 until it has to sleep */
  int sleeping;                 /* lock */
  int dead;                     /* lock: the process ended */
  int reader, done;             /* its own thread's */
  int broken;                   /* its own thread's: a frame that says nothing */
  struct coffer_buffer parts;   /* its own thread's: of a long text */
  int looked;                   /* its own thread's: before it slept */
  int64_t kill_ns;              /* its own thread's; 0: not asked to stop */
  int warned;                   /* its own thread's: kill_ns has passed once */
};

struct worker {
  pthread_mutex_t start_lock;   /* comes first: held while one is started */
  pthread_mutex_t output_lock;  /* a leaf */
  pthread_mutex_t lock;         /* never held while a frame is handled */
  pthread_cond_t ended;         /* with lock: an epitaph was written */
  struct process *process;      /* lock; NULL: none */
  int reading;                  /* lock */
  struct pending *calls;        /* lock */
  char *last_end;               /* lock: how the last one ended */
  int64_t deaths[WORKER_DEATHS];        /* lock: times, a ring */
  unsigned n_deaths;            /* lock */
  char line[WORKER_MAX_LINE];   /* output_lock */
  size_t line_size;
};

static inline struct worker *
worker_of (const struct provider *provider)
{
  return provider->state;
}

/* Runs a call that is in the list and was sent, to its end. */
void pending_run (struct provider *provider, struct pending *pending);
void pending_init (struct pending *pending, struct invoke *invoke,
                   struct process *process);
void pending_fini (struct pending *pending);

/* Ends the process, unless another thread was first, and tells its calls.
 * reason: a fault of the module's, or NULL when it went by itself. */
void worker_process_died (struct provider *provider, struct process *process,
                          struct error *reason, int grace_ms);
/* The log goes into the details; the last line of it, which mostly says why a
 * process is gone, into the message of one that ended. */
void worker_last_words (struct error **err, json_t *take_log);
void worker_unref (struct worker *worker, struct process *process);
/* Lines of stdout and stderr, into the log. */
void worker_drain_output (struct provider *provider, struct process *process,
                          int last);

#endif /* PROVIDER_WORKER_H */
